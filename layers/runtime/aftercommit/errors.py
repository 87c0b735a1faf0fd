"""Every error of the runtime, in one tree.

The branches say what happens next: try it later (TryLaterError), accept that someone else
decided (OvertakenError), fault the instance (InstanceFaultError), or tell the caller what to
change (RefusedError).
"""


class AftercommitError(Exception):
    """Base of all errors of this package."""


# --- try later: nothing was decided, the same call may succeed in a while ---


class TryLaterError(AftercommitError):
    """The database or the queue could not serve the call now (throttled, contended, away)."""


class SinkDownError(TryLaterError):
    """A sink took nothing, whatever was sent: it is away, too slow, or refuses the sender."""


class LeaseHeldError(TryLaterError):
    """Another worker holds the lease of the instance."""


class NewerFormError(TryLaterError):
    """A row was written by newer code than this, in a form that this one must not act on."""


class PayloadsAwayError(TryLaterError):
    """S3 did not serve a request: what is kept there is out of reach for now."""


class ContentionError(TryLaterError):
    """A transaction kept meeting other transactions on the same items, through all its retries."""


# --- someone else won: the decision is made, and it was not ours ---


class OvertakenError(AftercommitError):
    """Another writer decided first; what this one computed is void."""


class ConditionFailedError(OvertakenError):
    """A conditional write met another state than it required.

    `purposes` names the writes of the commit whose condition did not hold.
    """

    def __init__(self, purposes: frozenset[str]) -> None:
        super().__init__(f"the condition did not hold: {', '.join(sorted(purposes))}")
        self.purposes = purposes


class ItemSettledError(OvertakenError):
    """The outbox item is no longer undone: its effect has committed, or it was failed or cancelled."""


class EventExistsError(OvertakenError):
    """An event of this id was announced before, and its row is still kept: the whole transaction failed."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"an event with the id {event_id!r} exists")
        self.event_id = event_id


class InstanceEndedError(OvertakenError):
    """The instance has ended; nothing can be applied to it any more."""


# --- the instance faults: retrying the same thing would end the same way ---


class InstanceFaultError(AftercommitError):
    """A fault of the workflow itself; becomes an incident of its instance."""


class ExpressionError(InstanceFaultError):
    """An expression that cannot be parsed or evaluated."""

    def __init__(self, expression: str, message: str) -> None:
        super().__init__(f"{message} in expression {expression!r}")
        self.expression = expression
        self.message = message


class StateTooLargeError(InstanceFaultError):
    """Inputs and variables together outgrew what one instance can hold."""


class ResultTooLargeError(InstanceFaultError):
    """What an activity returned is larger than a result may be."""


class InputTooLargeError(InstanceFaultError):
    """The input of a child is larger than an input may be."""


class TooManyItemsError(InstanceFaultError):
    """A bulk dispatch over more items than one may have."""


class WorkerDiedError(InstanceFaultError):
    """The same activity ended its worker again and again (out of memory, time-out)."""


class UnknownActivityError(InstanceFaultError):
    """The deployed code has no activity of this name."""


class HttpStatusError(InstanceFaultError):
    """A request was answered with a status that counts as a failure."""


class HttpTimeoutError(InstanceFaultError):
    """A request was not answered in its time."""


class HttpFailedError(InstanceFaultError):
    """A request got no answer: no connection, or one that was lost."""


class HttpRefusedError(InstanceFaultError):
    """A request was not made, or its answer not taken, by this side: trying again would end the same way."""


class UnwritableError(InstanceFaultError):
    """DynamoDB refuses the write itself (too large, a malformed key): it would every time."""


# --- refused: the caller (or the author of a definition) has to change something ---


class RefusedError(AftercommitError):
    """A request that cannot be served as it is.

    `code` is stable and meant for programs, `field` names what to change, `status` is the HTTP status.
    """

    code = "refused"
    status = 400

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class MalformedRequestError(RefusedError):
    """The body or a parameter is not of the documented form."""

    code = "malformed"


class InputRefusedError(RefusedError):
    """The input does not fit what the workflow declares; `field` names the place, as `input.items[2].sku`."""

    code = "input_refused"
    status = 422

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, field=field)


class DefinitionRefusedError(RefusedError):
    """A definition with faults; `faults` lists them all as (path, message)."""

    code = "definition_refused"
    status = 422

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in faults), field=faults[0][0])
        self.faults = faults


class EventRefusedError(RefusedError):
    """An event that cannot be stored or sent; `field` names what is wrong with it."""

    code = "event_refused"
    status = 422


class ContentRefusedError(RefusedError):
    """A sink refused what was sent to it for its content: at least one of the events in it."""

    code = "content_refused"


class ForbiddenError(RefusedError):
    """The caller may not act for this tenant."""

    code = "forbidden"
    status = 403


class NotFoundError(RefusedError):
    """The named thing does not exist (or belongs to another tenant, which looks the same)."""

    code = "not_found"
    status = 404


class ConflictError(RefusedError):
    """The request contradicts something that exists."""

    code = "conflict"
    status = 409


class ActivationRefusedError(ConflictError):
    """The definition may have one live instance at a time, and has it: `holder`."""

    code = "activation_refused"

    def __init__(self, holder: str) -> None:
        super().__init__(f"instance {holder!r} is live, and its workflow runs one at a time", field="id")
        self.holder = holder


class MethodNotAllowedError(RefusedError):
    """There is such an endpoint, for other methods; `methods` names them."""

    code = "method_not_allowed"
    status = 405

    def __init__(self, message: str, methods: list[str]) -> None:
        super().__init__(message, field="method")
        self.methods = methods


class KeyReusedError(RefusedError):
    """An Idempotency-Key came again with another body."""

    code = "idempotency_key_reused"
    status = 422


class TooLargeError(RefusedError):
    """The request is larger than the documented limit."""

    code = "too_large"
    status = 413


class SettingError(RefusedError):
    """A setting (environment variable) that cannot be used; `field` names it."""

    code = "setting"
    status = 500


class MalformedMessageError(RefusedError):
    """A queue message that is none of ours, or lost a part."""

    code = "malformed_message"


class MalformedRowError(RefusedError):
    """A stored row that cannot be read; `field` names its key."""

    code = "malformed_row"
    status = 500


class UnreadableInstanceError(MalformedRowError):
    """An instance whose snapshot or definition cannot be read: it stays as it is until it can be."""
