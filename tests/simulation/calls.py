"""What callers ask of the API while a scenario runs: one class per kind of call.

A caller calls again until it has an answer; `make` raises NotYetError for what it calls too early. A refusal
is an answer, too: `refusals` are those that a repeat, or a race, may bring.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from aftercommit.cancel import cancel
from aftercommit.client import StartRequest, dispatch, execute
from aftercommit.delete import delete
from aftercommit.endpoints import answer
from aftercommit.errors import ActivationRefusedError, ConflictError, NotFoundError, RefusedError
from aftercommit.ids import derive_id
from aftercommit.instances import find_head
from aftercommit.operations import (
    call_back,
    find_dead_letter,
    read_stimulus_id,
    replay,
    resume_by_token,
    send_event,
)
from aftercommit.publish import publish_draft, put_draft, retract
from aftercommit.statuses import InstanceStatus
from aftercommit.views import show_instance
from tests.simulation.workflows import BY_NAME

TENANT = "acme"


class NotYetError(Exception):
    """What the caller is after has not come yet."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call, made so many seconds after the world began."""

    after: float = 0
    refusals: ClassVar[tuple[type[RefusedError], ...]] = ()

    def make(self, world: Any, deadline: float) -> Any:
        """Make it, and return what it answers."""
        raise NotImplementedError


@dataclass(frozen=True)
class Start(Call):
    """Start an instance; several with one id are one start."""

    definition_id: str
    instance_id: str = "parent"
    input: dict[str, Any] = field(default_factory=dict)
    synchronous: bool = False
    correlation_id: str | None = None
    refusals = (ActivationRefusedError,)

    def make(self, world: Any, deadline: float) -> str:
        """Dispatch, or execute."""
        request = StartRequest(
            TENANT, self.definition_id, self.input, self.correlation_id, instance_id=self.instance_id
        )
        return execute(request, deadline=deadline - 4) if self.synchronous else dispatch(request)


@dataclass(frozen=True)
class Request(Start):
    """Send a request to the endpoint at the first place of a workflow, under an Idempotency-Key.

    Its instance is named by the key.
    """

    path: str = ""
    key: str = "key"
    instance_id: str = ""

    def __post_init__(self) -> None:
        """Name the instance as the API does."""
        object.__setattr__(self, "instance_id", requested_id(self.definition_id, self.key))

    def make(self, world: Any, deadline: float) -> Any:
        """Send it."""
        return answer(TENANT, self.request, idempotency_key=self.key, deadline=deadline - 4)

    @property
    def request(self) -> dict[str, Any]:
        """The request, as workflows see it."""
        return {"method": "POST", "path": self.path, "query": {}, "headers": {}, "body": self.key}

    @property
    def trigger(self) -> dict[str, Any]:
        """What the instance is born with."""
        return {"activity_id": "root.activities[0]", "value": self.request}


def requested_id(definition_id: str, key: str = "key") -> str:
    """Return the id of the instance that a request under a key starts."""
    return derive_id("request", TENANT, definition_id, key)


@dataclass(frozen=True)
class CallBack(Call):
    """Call a callback address that an activity has given out. Only the first call counts."""

    callback_path: str
    refusals = (NotFoundError,)

    def make(self, world: Any, deadline: float) -> None:
        """Call it."""
        token = self.callback_path.removeprefix("/callbacks/")
        call_back(TENANT, token, {"method": "POST", "body": "called"})


@dataclass(frozen=True)
class Send(Call):
    """Send an event from outside. Its key makes a repeat the same stimulus, not a second one."""

    name: str
    key: str
    payload: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    correlation_id: str | None = None

    def make(self, world: Any, deadline: float) -> str:
        """Send it."""
        return send_event(
            TENANT,
            self.name,
            payload=self.payload,
            value=self.value,
            correlation_id=self.correlation_id,
            instance_id=None,
            idempotency_key=self.key,
        )


@dataclass(frozen=True)
class Cancel(Call):
    """Cancel an instance, once it is there."""

    instance_id: str = "parent"

    def make(self, world: Any, deadline: float) -> bool:
        """Cancel it."""
        if find_head(TENANT, self.instance_id) is None:
            raise NotYetError
        return cancel(TENANT, self.instance_id, "cancelled over the API")


@dataclass(frozen=True)
class Complete(Call):
    """Complete the task of an instance, once it is offered. The first answer counts."""

    value: Any
    instance_id: str = "parent"
    refusals = (NotFoundError,)

    def make(self, world: Any, deadline: float) -> None:
        """Complete it by the token that the instance shows."""
        if find_head(TENANT, self.instance_id) is None:
            raise NotYetError
        shown = show_instance(TENANT, self.instance_id)
        tokens = [each["token"] for each in shown["bookmarks"] if "token" in each]
        if tokens:
            resume_by_token(TENANT, tokens[0], self.value)
        elif not InstanceStatus(shown["status"]).ended:
            raise NotYetError


@dataclass(frozen=True)
class Delete(Call):
    """Delete an instance, once it has ended. A repeat finds it gone."""

    instance_id: str = "parent"
    refusals = (NotFoundError,)

    def make(self, world: Any, deadline: float) -> None:
        """Delete it."""
        if find_head(TENANT, self.instance_id) is None:
            raise NotYetError
        try:
            delete(TENANT, self.instance_id)
        except ConflictError:
            raise NotYetError from None  # it still runs, or what it owns is undone


@dataclass(frozen=True)
class Replay(Call):
    """Replay the dead letter that the event sent under `key` has become. The first replay makes a new one."""

    key: str
    refusals = (ConflictError,)

    def make(self, world: Any, deadline: float) -> str:
        """Replay it."""
        sent = [answer for each, answer in world.answers if isinstance(each, Send) and each.key == self.key]
        if not sent:
            raise NotYetError
        dead = read_stimulus_id(sent[0])
        try:
            find_dead_letter(TENANT, *dead)
        except NotFoundError:
            raise NotYetError from None
        return replay(TENANT, *dead)


@dataclass(frozen=True)
class Publish(Call):
    """Put a workflow as a draft of its tenant, and publish what is the draft by then."""

    name: str  # in a workflows_of_...

    def make(self, world: Any, deadline: float) -> int:
        """Put it and publish."""
        workflow = BY_NAME[self.name]
        data = {name: value for name, value in workflow.data.items() if name != "version"}
        put_draft(TENANT, workflow.id, data)
        return publish_draft(TENANT, workflow.id)


@dataclass(frozen=True)
class Retract(Call):
    """Take back what is published under a name. A repeat finds nothing published."""

    definition_id: str
    refusals = (NotFoundError,)

    def make(self, world: Any, deadline: float) -> None:
        """Retract it."""
        retract(TENANT, self.definition_id)
