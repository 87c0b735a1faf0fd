"""HTTP from outside: start at a request, answer it, and wait for a callback."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.expressions import is_expression
from aftercommit.http_parts import METHODS, find_headers_fault, find_path_fault
from aftercommit.jsons import Json
from aftercommit.limits import NAME_CHARACTERS_MAX
from aftercommit.model import Failure

HTTP = "http"
_CALLBACK = "callback"
_STATUS_MIN, _STATUS_MAX = 200, 599


def http_stimulus(path: str, method: str) -> dict[str, Json]:
    """Return the stimulus that a request to an endpoint is."""
    return {"name": HTTP, "payload": {"path": path, "method": method}}


def callback_stimulus(instance_id: str, name: str) -> dict[str, Json]:
    """Return the stimulus that the call of a callback address is; each instance has its own names."""
    return {"name": f"{_CALLBACK}:{name}", "payload": {"instance_id": instance_id}}


def callback_name(stimulus: dict[str, Json]) -> str:
    """Return the name of the callback that a stimulus is."""
    return str(stimulus["name"]).removeprefix(f"{_CALLBACK}:")


class HttpEndpoint(Activity):
    """With `starts`, a request to /endpoints/{path} with one of `methods` starts the workflow here.

    Without, it waits until the callback address that the instance gives out under `name` is called. The
    request goes into `result`: {method, path, query, headers, body}.
    """

    is_exclusive = True
    properties = {
        "path": Property("text"),
        "methods": Property("texts"),
        "name": Property("value"),
        "starts": Property("flag"),
        "registers_none": Property("flag"),
        "result": Property("variable"),
    }
    path: Json  # as it was read, until find_faults has looked at it
    methods: Json
    name: Json
    starts: bool | None

    def __init__(
        self,
        path: str | None = None,
        *,
        methods: list[str] | None = None,
        name: Json = None,
        starts: bool = False,
        registers_none: bool = False,
        result: str | None = None,
    ) -> None:
        super().__init__(
            path=path,
            methods=methods,
            name=name,
            starts=starts or None,
            registers_none=registers_none or None,
            result=result,
        )

    def takes_time(self) -> bool:
        """Say so: it does."""
        return True

    def gives_tokens(self) -> bool:
        """Only where it waits for a callback."""
        return not self.starts

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse what belongs to the other use, and a path or a method that is none."""
        if not self.starts:
            told = "is for a start; without starts it waits for a callback, which has a name"
            faults = [
                (each, told)
                for each in ("path", "methods", "registers_none")
                if getattr(self, each) is not None
            ]
            if self.name is None:
                faults.append(("name", "is missing: a callback is known by its name"))
            elif not _is_name(self.name) and not (isinstance(self.name, str) and is_expression(self.name)):
                faults.append(("name", _NAME_TOLD))
            return faults
        faults = []
        if self.name is not None:
            faults.append(("name", "is for a callback; with starts it has a path"))
        if self.path is None:
            faults.append(("path", "is missing: where requests start the workflow"))
        elif isinstance(self.path, str) and self.path and (message := find_path_fault(self.path)):
            faults.append(("path", message))
        methods = self.methods if isinstance(self.methods, list) else []
        for index, each in enumerate(methods):
            if isinstance(each, str) and each not in METHODS:
                faults.append((f"methods[{index}]", f"must be one of {', '.join(METHODS)}"))
            elif each in methods[:index]:
                faults.append((f"methods[{index}]", "is there twice"))
        return faults

    def payloads(self) -> list[tuple[str, dict[str, Json]]] | None:
        """Start at each of its methods; GET, if none is named."""
        if not self.starts:
            return None
        methods = ["GET"] if self.methods is None else self.methods
        stimuli = [http_stimulus(self.path or "", each) for each in methods]
        return [(each["name"], each["payload"]) for each in stimuli]

    def enter(self, visit: Visit) -> None:
        """Go on at once where a request has started the instance; else wait."""
        if visit.take_trigger():
            visit.complete(result=(visit.trigger or {}).get("value"))
        elif self.starts:
            # As an Event does. Nothing comes: a request starts an instance of its own.
            visit.wait("request")
        else:
            name = visit.evaluate(self.name)
            if not _is_name(name):
                raise ExpressionError(str(self.name), _NAME_TOLD)
            visit.wait("callback", stimulus=callback_stimulus(visit.instance_id, name))

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Take the request."""
        visit.complete(outcome, value)


_NAME_TOLD = f"a callback's name is a text of 1 to {NAME_CHARACTERS_MAX} characters"


def _is_name(name: Json) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= NAME_CHARACTERS_MAX


class WriteHttpResponse(Activity):
    """Answers the request that the instance was started with; the first that runs counts.

    In an instance that no request has started, the answer is kept for nobody.
    """

    properties = {
        "status": Property("value"),
        "headers": Property("value_map"),
        "body": Property("value"),
    }
    status: Json
    headers: dict[str, Json] | None
    body: Json

    def __init__(
        self, status: Json = None, *, headers: dict[str, Json] | None = None, body: Json = None
    ) -> None:
        super().__init__(status=status, headers=headers, body=body)

    def enter(self, visit: Visit) -> None:
        """Leave the answer in the state, and go on."""
        status = 200 if self.status is None else visit.evaluate(self.status)
        headers = visit.evaluate(self.headers or {})
        if type(status) is not int or not _STATUS_MIN <= status <= _STATUS_MAX:
            told = f"status must be a whole number from {_STATUS_MIN} to {_STATUS_MAX}"
            visit.fault(Failure("HttpResponseError", told))
        elif fault := find_headers_fault(headers):
            visit.fault(Failure("HttpResponseError", f"headers{fault[0]} {fault[1]}"))
        else:
            lowered = {name.lower(): value for name, value in headers.items()}
            visit.respond({"status": status, "headers": lowered, "body": visit.evaluate(self.body)})
            visit.complete()
