"""Trouble on the way to AWS, planted into the client by botocore's own events."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError

from aftercommit import aws


class Crash(BaseException):
    """The worker dies here: nothing that user code or the runtime catches."""


def refusal(code: str, *, reasons: list[str] | None = None) -> dict[str, Any]:
    """Return an answer of DynamoDB that refuses a call."""
    answer: dict[str, Any] = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {}}
    if reasons is not None:
        answer["CancellationReasons"] = [{"Code": each, "Message": each} for each in reasons]
    return answer


def no_answer() -> ReadTimeoutError:
    """Return what a call raises when its answer never comes."""
    return ReadTimeoutError(endpoint_url="https://dynamodb")


@dataclass
class _Plan:
    operation: str
    error: BaseException | dict[str, Any]
    times: int
    match: str
    skip: int
    struck: int = 0
    act: Callable[[], object] | None = None

    def strikes(self, text: str) -> bool:
        if self.times <= 0 or self.match not in text:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        self.struck += 1
        return True


class Faults:
    """Plans what goes wrong, and counts what was sent.

    `before`: the call does not take effect. `after`: it does, and its answer is lost. `match` is a text that
    the request must hold, `skip` how many such requests pass first.
    """

    def __init__(self) -> None:
        self._events: list[tuple[Any, str, Callable[..., Any]]] = []
        self._before: list[_Plan] = []
        self._after: list[_Plan] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        for service in ("dynamodb", "sqs"):
            self.watch(service)

    def watch(self, service: str) -> None:
        """Plan for the calls of one more service, too."""
        events = aws.client(service).meta.events
        for name, handler in (("before-call", self._on_call), ("after-call", self._on_answer)):
            events.register(f"{name}.{service}", handler)
            self._events.append((events, f"{name}.{service}", handler))

    def before(self, operation, error, *, times=1, match="", skip=0):
        plan = _Plan(operation, error, times, match, skip)
        self._before.append(plan)
        return plan

    def after(self, operation, error, *, times=1, match="", skip=0):
        plan = _Plan(operation, error, times, match, skip)
        self._after.append(plan)
        return plan

    def meanwhile(self, operation: str, act: Callable[[], object], *, match: str = "") -> None:
        """Let others act just before the next such call takes effect."""
        self._before.append(_Plan(operation, {}, 1, match, 0, act=act))

    def right_after(self, operation, act, *, match="", skip=0):
        """Let something happen right after a call took effect, before its answer comes."""
        self._after.append(_Plan(operation, {}, 1, match, skip, act=act))

    def count(self, operation: str) -> int:
        return sum(1 for name, _ in self.sent if name == operation)

    def writes(self) -> list[tuple[str, dict[str, Any]]]:
        kinds = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}
        return [each for each in self.sent if each[0] in kinds]

    def close(self) -> None:
        for events, name, handler in self._events:
            events.unregister(name, handler)

    def _on_call(self, model, params, context, **_):
        body = params["body"]
        text = body.decode(errors="replace") if isinstance(body, bytes) else str(body)
        context["text"] = text
        self.sent.append((model.name, json.loads(text) if text.startswith("{") else {}))
        for plan in self._before:
            if plan.operation == model.name and plan.strikes(text):
                if plan.act:
                    plan.act()
                    continue
                if isinstance(plan.error, BaseException):
                    raise plan.error
                return SimpleNamespace(status_code=400, headers={}), plan.error
        return None

    def _on_answer(self, model, context, **_):
        for plan in self._after:
            if plan.operation == model.name and plan.strikes(context.get("text", "")):
                if plan.act:
                    plan.act()
                    continue
                raise plan.error
