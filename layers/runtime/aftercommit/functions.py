"""Activity functions: how plain Python functions become known by name, and what they may ask for.

A function that is decorated stays what it was: call it in a test like any other.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from aftercommit import clock, intentions, schema
from aftercommit.errors import InputRefusedError, ResultTooLargeError, UnknownActivityError
from aftercommit.ids import derive_fraction, derive_id
from aftercommit.intentions import intend_start, stimulus_body, take_along
from aftercommit.jsons import Json, dumps, size_of
from aftercommit.limits import (
    COMMIT_INTENTIONS_MAX,
    DELAY_SECONDS_MAX,
    EVENT_BYTES_MAX,
    INPUT_BYTES_MAX,
    MESSAGE_CHARACTERS_MAX,
    NAME_CHARACTERS_MAX,
    RESULT_BYTES_MAX,
    TOKEN_CHARACTERS_MAX,
    TOKEN_DAYS,
    told_bytes,
)
from aftercommit.log import Logger, logger
from aftercommit.model import Failure, Intention
from aftercommit.statuses import ItemCommand
from aftercommit.tokens import make_callback_token

F = TypeVar("F", bound=Callable[..., Any])


_LEAST = {"attempts_max": 1, "first_delay_seconds": 0, "backoff": 1, "delay_max_seconds": 0, "jitter": 0}


@dataclass(frozen=True)
class Retry:
    """When an activity that raised runs again: durably, without a function that waits.

    Attempt n waits first_delay_seconds * backoff ** (n - 1), at most delay_max_seconds, shortened by up to
    `jitter` (a share) so that many do not come back at once. Errors whose class name is in `non_retryable`
    are not tried again.
    """

    attempts_max: int = 3
    first_delay_seconds: float = 1
    backoff: float = 2
    delay_max_seconds: float = 3600
    jitter: float = 0.1
    non_retryable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what makes no sense, naming the field."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
                raise ValueError(f"{name} must be a number, at least {least}")
        if self.jitter > 1:
            raise ValueError("jitter must be at most 1")
        if self.delay_max_seconds > DELAY_SECONDS_MAX:
            raise ValueError(f"delay_max_seconds must be at most {DELAY_SECONDS_MAX}")

    def to_json(self) -> dict[str, Json]:
        """Return it as the `retry` of a Step."""
        return {
            "attempts_max": self.attempts_max,
            "first_delay_seconds": self.first_delay_seconds,
            "backoff": self.backoff,
            "delay_max_seconds": self.delay_max_seconds,
            "jitter": self.jitter,
            "non_retryable": list(self.non_retryable),
        }

    @classmethod
    def from_json(cls, written: dict[str, Json]) -> "Retry":
        """Read a Step's `retry`; raises ValueError or TypeError for one that makes no sense."""
        values = dict(written)
        values["non_retryable"] = tuple(values.get("non_retryable", ()))
        return cls(**values)

    def next_attempt_at(
        self, *, attempt: int, failure: Failure, at: float, execution_id: str
    ) -> float | None:
        """Return when the attempt after `attempt` is due, or None if there is none."""
        if attempt >= self.attempts_max or failure.type in self.non_retryable:
            return None
        try:
            delay = min(self.first_delay_seconds * self.backoff ** (attempt - 1), self.delay_max_seconds)
        except OverflowError:  # after very many attempts
            delay = self.delay_max_seconds
        return at + delay * (1 - self.jitter * derive_fraction(execution_id, attempt))


NO_RETRY = Retry(attempts_max=1)


@dataclass(frozen=True)
class ActivityFunction:
    """A registered activity function. `timeout_seconds`: the time it needs to have left in its invocation."""

    name: str
    call: Callable[..., Any]
    retry: Retry
    timeout_seconds: float
    takes_context: bool
    built_in: bool = False  # run for an activity of the runtime; no Step can name it

    def run(self, inputs: Mapping[str, Json], context: "ActivityContext") -> Json:
        """Call it with a copy of the inputs, so that what one attempt does to them stays with it.

        Returns the result as JSON gives it back. Raises what the function raises, TypeError or ValueError
        for a result that is no JSON, ResultTooLargeError for one that no commit can hold.
        """
        more = {"context": context} if self.takes_context else {}
        result = self.call(**_copy(inputs), **more)
        text = dumps(result)
        size = len(text.encode()) + sum(size_of(each.body) for each in context.intentions)
        if size > context.bytes_max:
            raise ResultTooLargeError(
                f"{self.name} returned {size} bytes, with what it dispatched and published; "
                f"at most {told_bytes(context.bytes_max)} fit"
            )
        if len(context.intentions) > COMMIT_INTENTIONS_MAX:
            raise ResultTooLargeError(
                f"{self.name} dispatched and published {len(context.intentions)} times; one activity may "
                f"{COMMIT_INTENTIONS_MAX} times"
            )
        return json.loads(text) if isinstance(result, dict | list | tuple) else result


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_copy(each) for each in value]
    return value


def asks_for_context(function: Callable[..., Any]) -> bool:
    """Return whether a function has a parameter named `context`."""
    try:
        return "context" in inspect.signature(function).parameters
    except ValueError:  # some of what is written in C has no signature
        return False


_registered: dict[str, ActivityFunction] = {}


@overload
def activity(function: F) -> F: ...
@overload
def activity(
    *, name: str | None = None, retry: Retry | None = None, timeout_seconds: float = 10
) -> Callable[[F], F]: ...
def activity(
    function: F | None = None,
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout_seconds: float = 10,
) -> F | Callable[[F], F]:
    """Register a function as an activity, by its own name unless `name` gives another.

    `retry`: what happens when it raises (None: it faults at once). `timeout_seconds`: if less than this is
    left of an invocation, the activity starts in a fresh one.
    """

    def register(function: F) -> F:
        registered_name = name or function.__name__
        known = _registered.get(registered_name)
        if known and _origin(known.call) != _origin(function):
            raise ValueError(
                f"two activities are named {registered_name!r}: {_origin(known.call)} and {_origin(function)}"
            )
        _registered[registered_name] = ActivityFunction(
            registered_name,
            function,
            retry or NO_RETRY,
            timeout_seconds,
            asks_for_context(function),
        )
        function.activity_name = registered_name  # type: ignore[attr-defined]
        return function

    return register if function is None else register(function)


def register_built_in(name: str, function: Callable[..., Any]) -> ActivityFunction:
    """Register a function of the runtime's own, under a name that no activity function can have then."""
    asks = asks_for_context(function)
    _registered[name] = ActivityFunction(name, function, NO_RETRY, 0, asks, built_in=True)
    return _registered[name]


def _origin(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def find_function(name: str) -> ActivityFunction:
    """Return the activity function of a name; raises UnknownActivityError if the deployed code has none."""
    try:
        return _registered[name]
    except KeyError:
        raise UnknownActivityError(f"the deployed code has no activity named {name!r}") from None


def registered_names() -> frozenset[str]:
    """Return the names of all registered activities."""
    return frozenset(name for name, each in _registered.items() if not each.built_in)


def descriptors() -> list[dict[str, Json]]:
    """Return a descriptor (JSON Schema of inputs and output) per registered activity, by name."""
    return [
        {"name": name, **schema.describe(each.call), "retry": each.retry.to_json()}
        for name, each in sorted(_registered.items())
        if not each.built_in
    ]


@dataclass
class ActivityContext:
    """What an activity may ask for, by a parameter named `context`.

    `idempotency_key` is the same on every attempt and for no other activity execution: hand it to outside
    systems, so that what they do happens once.
    """

    idempotency_key: str
    attempt: int
    instance_id: str
    correlation_id: str | None
    tenant: str
    deadline: float  # when the invocation ends, seconds since the epoch
    depth: int = 0
    channels: frozenset[str] | None = None  # of the deployment; None: not known here, so none is refused
    bytes_max: int = RESULT_BYTES_MAX  # of its result, with all that it dispatches and publishes
    token_days: int = TOKEN_DAYS  # for how long the tokens are good that it gives out
    secret: str | None = field(default=None, repr=False)  # proves the tokens that the instance gives out
    logger: Logger = logger  # its lines bear the ids of instance and activity
    intentions: list[Intention] = field(default_factory=list)

    def remaining_seconds(self) -> float:
        """Return how long the invocation still has."""
        return self.deadline - clock.now()

    def dispatch(
        self,
        workflow: str,
        input: dict[str, Json] | None = None,  # noqa: A002 - the word of the design
        *,
        version: int | None = None,
        correlation_id: str | None = None,
        channel: str | None = None,
        cancel_with_parent: bool = False,
    ) -> str:
        """Start a workflow once this activity's result has committed, and never otherwise.

        Returns the id the new instance will have. The n-th dispatch of an activity execution is the same
        one on every attempt. `cancel_with_parent`: whether it is cancelled if this instance is.
        """
        _check_name(correlation_id, "a correlation id")
        if channel is not None and self.channels is not None and channel not in self.channels:
            raise ValueError(f"this deployment has no channel {channel!r}")
        intention = intend_start(
            self._unique(),
            definition_id=workflow,
            version=version,
            input=json.loads(dumps(input or {})),  # as it is now, whatever the activity does to it later
            correlation_id=correlation_id or self.correlation_id,
            channel=channel,
            depth=self.depth + 1,
        )
        self.intentions.append(take_along(intention) if cancel_with_parent else intention)
        instance_id: str = intention.body["instance_id"]
        return instance_id

    def publish(
        self,
        event_name: str,
        payload: dict[str, Json] | None = None,
        input: Json = None,  # noqa: A002 - the word of the design
        *,
        correlation_id: str | None = None,
        local: bool = False,
        sinks: list[str] | None = None,
    ) -> None:
        """Publish an event once this activity's result has committed, and never otherwise.

        `local` reaches waits of this instance only; `correlation_id` those of instances that bear it. Those
        of one activity are applied in their order. With `sinks` it is told to those, its input, an object,
        being its data.
        """
        _check_name(event_name, "an event's name")
        _check_name(correlation_id, "a correlation id")
        if not isinstance(payload, dict | None):
            raise TypeError("a payload is an object")
        if sinks is not None:
            self.intentions.append(self._event(event_name, payload, input, correlation_id, sinks))
            return
        body = stimulus_body(
            name=intentions.event_name(event_name),
            payload=payload or {},
            value=input,
            correlation_id=correlation_id,
            instance_id=self.instance_id if local else None,
        )
        # As it will be stored: what the activity does to its values afterwards has no part in it.
        body = json.loads(dumps(body))
        _check_size(body, "a stimulus")
        unique = f"{len(self.intentions):04}-{self._unique()}"
        self.intentions.append(Intention(ItemCommand.STIMULUS, unique, body))

    def _event(
        self,
        event_name: str,
        payload: dict[str, Json] | None,
        data: Json,
        correlation_id: str | None,
        sinks: list[str],
    ) -> Intention:
        if not sinks or not set(sinks) <= set(intentions.SINKS):
            raise ValueError(f"sinks are some of {', '.join(intentions.SINKS)}")
        if not isinstance(data, dict | None):
            raise TypeError("what sinks are told is an object")
        intention = intentions.intend_event(
            self._unique(),
            at=clock.now(),
            name=event_name,
            data=json.loads(dumps(data or {})),
            payload=json.loads(dumps(payload)),
            correlation_id=correlation_id,
            sinks=list(sinks),
        )
        if size_of(intention.body) > EVENT_BYTES_MAX:
            raise ValueError(f"an event has at most {EVENT_BYTES_MAX} bytes")
        return intention

    def resume(self, token: str, input: Json = None) -> None:  # noqa: A002
        """Complete the task of a token once this activity's result has committed, and never otherwise.

        It may be a task of any instance of this tenant. A token that is good for nothing by then is an
        incident of this instance, which goes on.
        """
        _check_name(token, "a token", longest=TOKEN_CHARACTERS_MAX)
        body = json.loads(dumps({"token": token, "value": input}))
        _check_size(body, "what completes a task")
        self.intentions.append(Intention(ItemCommand.RESUME, self._unique(), body))

    def run(self, instance_id: str) -> None:
        """Run an existing instance that is pending or was left, once this activity's result has committed.

        One that waits, has ended or is not there is left alone.
        """
        _check_name(instance_id, "an instance id")
        self.intentions.append(Intention(ItemCommand.RUN, self._unique(), {"instance_id": instance_id}))

    def callback_path(self, name: str) -> str:
        """Return the path of the API under which the HttpEndpoint that waits under `name` can be called.

        It is the same each time on one day, and good before the wait is there, until the instance ends or
        CallbackTokenDays have passed. Raises ValueError if nothing in the workflow waits so.
        """
        _check_name(name, "a callback's name")
        if self.secret is None:
            raise ValueError("no HttpEndpoint of this workflow waits for a callback")
        token = make_callback_token(self.tenant, self.instance_id, name, self.secret, self.token_days)
        return f"/callbacks/{token}"

    def _unique(self) -> str:
        return derive_id("queued", self.idempotency_key, len(self.intentions))


def _check_name(name: Json, what: str, *, longest: int = NAME_CHARACTERS_MAX) -> None:
    if name is not None and not (isinstance(name, str) and 1 <= len(name) <= longest):
        raise ValueError(f"{what} is a text of 1 to {longest} characters")


def _check_size(body: dict[str, Json], what: str) -> None:
    # Whatever an activity may return: these stand in their rows, for whomever they are.
    if size_of(body) > INPUT_BYTES_MAX:
        raise ValueError(f"{what} has at most {INPUT_BYTES_MAX} bytes")


def failure_of(error: BaseException) -> Failure:
    """Tell an error as a failure: its class's name, and its message, bounded."""
    name, message = type(error).__name__, str(error)
    if isinstance(error, InputRefusedError):
        message = f"{error.field} {error.message}"  # its message says what its field is not
    # Half a character, as in a file name that is no UTF-8, could not be stored.
    message = message.encode(errors="replace").decode()
    return Failure(name, (message or name)[:MESSAGE_CHARACTERS_MAX])
