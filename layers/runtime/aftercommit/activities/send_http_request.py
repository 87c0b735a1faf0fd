"""SendHttpRequest: call somebody else's HTTP API, with the guarantees of a step."""

from typing import Any

from aftercommit.activities.activity import Activity, Property, Visit
from aftercommit.activities.step import Step
from aftercommit.errors import (
    ExpressionError,
    HttpFailedError,
    HttpRefusedError,
    HttpStatusError,
    HttpTimeoutError,
)
from aftercommit.expressions import is_expression
from aftercommit.functions import ActivityContext, ActivityFunction, Retry, failure_of
from aftercommit.http_call import SEND_HTTP_REQUEST, find_url_fault, host_of
from aftercommit.http_parts import METHODS, find_headers_fault
from aftercommit.jsons import Json
from aftercommit.model import Failure

TIMEOUT_SECONDS = 10
TIMEOUT_SECONDS_MAX = 600
_MARGIN_SECONDS = 2  # beside the request's own time: to connect, and to take the answer in

_TIMEOUT, _FAILED = "Timeout", "Failed"
_OUTCOME_OF_FAILURE = {
    HttpTimeoutError.__name__: _TIMEOUT,
    HttpFailedError.__name__: _FAILED,
    HttpRefusedError.__name__: _FAILED,
}
_BAD_STATUS_MIN = 400
_STATUSES = range(100, 600)
_TOO_MANY_REQUESTS, _SERVER_ERRORS = 429, range(500, 600)
_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx")


class SendHttpRequest(Step):
    """Sends a request; the answer, {status, headers, body}, goes into `result`, its status is the outcome.

    A branch in `on` handles its outcome: a status ("404"), else its class ("4xx"), Timeout or Failed. What
    none handles completes below 400, and faults otherwise, so that no failure passes for success. With
    `retry`, answers 429 and 5xx, time-outs and lost connections are tried again first.
    """

    properties = {
        "url": Property("value", required=True),
        "method": Property("choice", choices=METHODS),
        "headers": Property("value_map"),
        "body": Property("value"),
        "timeout_seconds": Property("number"),
        "retry": Property("options"),
        "on": Property("branches"),
        "result": Property("variable"),
    }
    activity = SEND_HTTP_REQUEST
    url: Json
    method: str | None
    headers: dict[str, Json] | None
    body: Json
    timeout_seconds: int | None
    on: dict[str, Activity] | None

    def __init__(
        self,
        url: Json,
        *,
        method: str | None = None,
        headers: dict[str, Json] | None = None,
        body: Json = None,
        timeout_seconds: int | None = None,
        retry: Any = None,
        result: str | None = None,
        on: dict[str, Activity] | None = None,
    ) -> None:
        Activity.__init__(
            self,
            url=url,
            method=method,
            headers=headers,
            body=body,
            timeout_seconds=timeout_seconds,
            retry=retry.to_json() if hasattr(retry, "to_json") else retry,
            on=on,
            result=result,
        )

    def find_faults(self) -> list[tuple[str, str]]:
        """Refuse an address that can be none, and a branch for an outcome that cannot happen."""
        faults = super().find_faults()
        if self.url is not None and not (isinstance(self.url, str) and is_expression(self.url)):
            message = find_url_fault(self.url) if isinstance(self.url, str) else "must be a text"
            faults += [("url", message)] if message else []
        if type(self.timeout_seconds) is int and self.timeout_seconds > TIMEOUT_SECONDS_MAX:
            faults.append(("timeout_seconds", f"must be at most {TIMEOUT_SECONDS_MAX}"))
        told = f"is no outcome; there are statuses, {', '.join(_CLASSES)}, {_TIMEOUT} and {_FAILED}"
        branches = self.on if isinstance(self.on, dict) else {}
        return faults + [(f"on.{each}", told) for each in branches if not _is_outcome(each)]

    def enter(self, visit: Visit) -> None:
        """Evaluate the request, so that every attempt sends the same one, and become ready for a worker."""
        url = visit.evaluate(self.url)
        if not isinstance(url, str):
            raise ExpressionError(str(self.url), "url must be a text")
        headers = visit.evaluate(self.headers or {})
        if fault := find_headers_fault(headers):
            raise ExpressionError(str(self.headers), f"headers{fault[0]} {fault[1]}")
        visit.memory["inputs"] = {
            "request": {
                "url": url,
                "method": self.method or "GET",
                "headers": headers,
                "body": visit.evaluate(self.body),
                "timeout_seconds": self._seconds(),
            }
        }
        visit.make_ready()

    def _seconds(self) -> int:
        return TIMEOUT_SECONDS if self.timeout_seconds is None else self.timeout_seconds

    # --- what a worker asks ---

    def policy(self, function: ActivityFunction) -> Retry:
        """Return when it is tried again: never, if this side has refused it."""
        policy = super().policy(function)
        never = (*policy.non_retryable, HttpRefusedError.__name__)
        return Retry.from_json({**policy.to_json(), "non_retryable": never})

    def seconds_needed(self, function: ActivityFunction) -> float:
        """Return the time that the request may take."""
        del function
        return self._seconds() + _MARGIN_SECONDS

    def run(self, function: ActivityFunction, inputs: Json, context: ActivityContext) -> Json:
        """Send it; raises HttpStatusError for an answer that is to be tried again."""
        result = super().run(function, inputs, context)
        status = _find_status(result)
        if status is None:  # of a function that stands in for the real one, in a test
            raise TypeError("an answer is an object with a whole number from 100 to 599 as its status")
        if status == _TOO_MANY_REQUESTS or status in _SERVER_ERRORS:
            error = HttpStatusError(_told(inputs, status))
            again = self.policy(function).next_attempt_at(
                attempt=context.attempt, failure=failure_of(error), at=0, execution_id=context.idempotency_key
            )
            if again is not None:
                raise error
        return result

    # --- its end ---

    def finished(self, visit: Visit, result: Json) -> None:
        """Take the answer: a branch for its status, else for its class; without one, a bad status faults."""
        status = _find_status(result)
        if status is None:
            visit.fault(Failure(HttpFailedError.__name__, "the answer has no status"))
            return
        handled = self._branch(str(status), f"{status // 100}xx")
        if handled is None and status >= _BAD_STATUS_MIN:
            visit.fault(failure_of(HttpStatusError(_told(visit.memory["inputs"], status))))
        elif handled is None:
            visit.complete(str(status), result)
        else:
            self._go_on(visit, str(status), handled, result)

    def raised(self, visit: Visit, failure: Failure) -> None:
        """Take it that there was no answer, if that is why."""
        outcome = _OUTCOME_OF_FAILURE.get(failure.type)
        handled = self._branch(outcome) if outcome else None
        if outcome is None or handled is None:
            visit.fault(failure)
        else:
            self._go_on(visit, outcome, handled, {"error": failure.to_json()})

    def child_ended(self, visit: Visit, key: str, outcome: str) -> None:
        """End after the branch, with the outcome that chose it."""
        del key, outcome
        visit.complete(visit.memory["outcome"])

    def _branch(self, *names: str) -> str | None:
        return next((name for name in names if name in (self.on or {})), None)

    def _go_on(self, visit: Visit, outcome: str, branch: str, result: Json) -> None:
        visit.memory["outcome"] = outcome
        if self.result:  # set before the branch runs, so that it can read it
            visit.set_variable(self.result, result)
        visit.schedule(f"on.{branch}")


def _is_outcome(name: str) -> bool:
    is_status = len(name) == len("200") and name.isascii() and name.isdigit() and "100" <= name <= "599"
    return is_status or name in (*_CLASSES, _TIMEOUT, _FAILED)


def _find_status(result: Json) -> int | None:
    status = result.get("status") if isinstance(result, dict) else None
    return status if type(status) is int and status in _STATUSES else None


def _told(inputs: Json, status: int) -> str:
    return f"{host_of(inputs['request']['url'])} answered {status}"
