"""Events: wait for one, start at one, and publish one."""

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.errors import ExpressionError
from aftercommit.ids import derive_id
from aftercommit.intentions import SINKS, event_name, intend_event, intend_stimulus
from aftercommit.jsons import Json, size_of
from aftercommit.limits import EVENT_BYTES_MAX, EVENT_CHARACTERS_MAX, INPUT_BYTES_MAX
from aftercommit.model import Intention


class Event(Activity):
    """Waits for the event `name` with just this `payload`; its input goes into `result`.

    With `starts`, the event also starts the workflow, which then goes on here. With `each`, the wait stays:
    each event runs that activity once, with its input as the variable `result` that only this round sees.
    Rounds may overlap; a Break in one ends them all. With `scope="activity"` only an event that names the
    waiting execution is met.
    """

    properties = {
        "name": Property("text", required=True),
        "payload": Property("value_map"),
        "starts": Property("flag"),
        "scope": Property("choice", choices=("all", "activity")),
        "each": Property("child"),
        "result": Property("variable"),
    }
    is_loop = True
    name: str
    payload: dict[str, Json] | None
    starts: bool | None
    scope: str | None
    each: Activity | None

    def __init__(
        self,
        name: str,
        *,
        payload: dict[str, Json] | None = None,
        starts: bool = False,
        scope: str | None = None,
        each: Activity | None = None,
        result: str | None = None,
    ) -> None:
        super().__init__(
            name=name, payload=payload, starts=starts or None, scope=scope, each=each, result=result
        )

    def takes_time(self) -> bool:
        """Say so: it does."""
        return True

    def payloads(self) -> list[tuple[str, dict[str, Json]]] | None:
        """Start at the event, if it is told to."""
        return [(event_name(self.name), self.payload or {})] if self.starts else None

    def enter(self, visit: Visit) -> None:
        """Go on at once where the event has started the instance; else wait for it."""
        begun = visit.take_trigger()
        value = (visit.trigger or {}).get("value")
        if begun and not self.each:
            visit.complete(result=value)
            return
        stimulus = {"name": event_name(self.name), "payload": take_payload(self.payload, visit)}
        if self.scope == "activity":
            stimulus["execution_id"] = visit.execution.execution_id
        visit.wait("stimulus", stimulus=stimulus, multi_use=bool(self.each))
        if begun:
            self._go_round(visit, value)

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Take the event's input."""
        if self.each:
            self._go_round(visit, value)
        else:
            visit.complete(outcome, value)

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """Wait on after a round."""

    def _go_round(self, visit: Visit, value: Json) -> None:
        number = visit.memory.get("rounds", 0)
        visit.memory["rounds"] = number + 1
        visit.schedule("each", number, {self.result: value} if self.result else None)


class PublishEvent(Activity):
    """Publishes an event after the commit: it starts and resumes what waits for its name and payload.

    `local` reaches waits of this instance only; `correlation_id` those of instances that bear it. With
    `sinks` it is told to those, as events of your own transactions are; its input is then its data.
    """

    properties = {
        "name": Property("text", required=True),
        "payload": Property("value_map"),
        "input": Property("value"),
        "correlation_id": Property("value"),
        "local": Property("flag"),
        "sinks": Property("texts"),
    }
    name: str
    payload: dict[str, Json] | None
    input: Json
    correlation_id: Json
    local: bool | None
    sinks: list[str] | None

    def __init__(
        self,
        name: str,
        *,
        payload: dict[str, Json] | None = None,
        input: Json = None,  # noqa: A002 - the word of the design
        correlation_id: Json = None,
        local: bool = False,
        sinks: list[str] | None = None,
    ) -> None:
        super().__init__(
            name=name,
            payload=payload,
            input=input,
            correlation_id=correlation_id,
            local=local or None,
            sinks=sinks,
        )

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse sinks that there are none of, and what has no meaning for them."""
        given: Json = self.sinks
        if not isinstance(given, list):
            return []
        faults = []
        unknown = [each for each in given if each not in SINKS]
        if unknown or not given or len({str(each) for each in given}) < len(given):
            faults.append(("sinks", f"names each of {', '.join(SINKS)} once at most, and one at least"))
        if self.local:
            faults.append(("local", "sinks are outside: an event for them is not local"))
        if len(str(self.name)) > EVENT_CHARACTERS_MAX:
            faults.append(("name", f"sinks take names of {EVENT_CHARACTERS_MAX} characters at most"))
        return faults

    def enter(self, visit: Visit) -> None:
        """Intend the stimulus, or the event for the sinks, and go on."""
        if self.sinks is not None:
            visit.intend(self._event(visit, self.sinks))
            visit.complete()
            return
        given = visit.evaluate(self.input)
        if size_of(given) > INPUT_BYTES_MAX:
            raise ExpressionError(str(self.input), f"an event's input has at most {INPUT_BYTES_MAX} bytes")
        correlation_id = visit.evaluate_correlation_id(self.correlation_id)
        visit.intend(
            intend_stimulus(
                derive_id("published", visit.execution.execution_id),
                at=visit.at,
                name=event_name(self.name),
                payload=take_payload(self.payload, visit),
                value=given,
                correlation_id=correlation_id,
                instance_id=visit.instance_id if self.local else None,
            )
        )
        visit.complete()

    def _event(self, visit: Visit, sinks: list[str]) -> Intention:
        data = {} if self.input is None else visit.evaluate(self.input)
        if not isinstance(data, dict):
            told = f"what sinks are told is an object, not {type(data).__name__}"
            raise ExpressionError(str(self.input), told)
        intention = intend_event(
            derive_id("published", visit.execution.execution_id),
            at=visit.at,
            name=self.name,
            data=data,
            payload=take_payload(self.payload, visit) or None,
            correlation_id=visit.evaluate_correlation_id(self.correlation_id),
            sinks=sinks,
        )
        if size_of(intention.body) > EVENT_BYTES_MAX:
            raise ExpressionError(str(self.input), f"an event has at most {EVENT_BYTES_MAX} bytes")
        return intention


class RunTask(Activity):
    """Waits until somebody outside has completed a task; what they give goes into `result`.

    `inputs` are for them to see: with the instance's bookmarks, each task is shown with its token.
    """

    properties = {
        "name": Property("text", required=True),
        "inputs": Property("value_map"),
        "result": Property("variable"),
    }
    name: str
    inputs: dict[str, Json] | None

    def __init__(
        self, name: str, *, inputs: dict[str, Json] | None = None, result: str | None = None
    ) -> None:
        super().__init__(name=name, inputs=inputs, result=result)

    def takes_time(self) -> bool:
        """Say so: it does."""
        return True

    def gives_tokens(self) -> bool:
        """Say so: whoever completes the task holds one."""
        return True

    def enter(self, visit: Visit) -> None:
        """Offer the task."""
        visit.memory["inputs"] = visit.evaluate(self.inputs or {})
        visit.wait("task")

    def resumed(self, visit: Visit, outcome: str, value: Json) -> None:
        """Take what was given."""
        visit.complete(outcome, value)


def take_payload(payload: Json, visit: Visit) -> dict[str, Json]:
    """Evaluate a payload; it is an object, as it is matched by what its members are."""
    given = visit.evaluate(payload or {})
    if not isinstance(given, dict):
        raise ExpressionError(str(payload), f"a payload is an object, not {type(given).__name__}")
    return given
