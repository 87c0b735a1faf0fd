"""The client: start instances from outside, in the background or here and now.

A dispatch is durable before it is answered: the pending instance is stored first, and the message that
hurries it is only a hint, for the sweep finds what is pending.
"""

from dataclasses import dataclass

from aftercommit import clock
from aftercommit.activations import commit_birth
from aftercommit.burst import Burst, Worker
from aftercommit.definition import find_name_fault
from aftercommit.definitions import find_owner_and_version, load_definition
from aftercommit.errors import (
    ConditionFailedError,
    ConflictError,
    KeyReusedError,
    MalformedRequestError,
    NotFoundError,
    OvertakenError,
    RefusedError,
    TooLargeError,
    TryLaterError,
    UnwritableError,
)
from aftercommit.ids import derive_fingerprint, derive_id, new_instance_id
from aftercommit.instances import Birth, birth_writes, find_head, head_of
from aftercommit.jsons import Json, dumps, size_of
from aftercommit.limits import LEASE_MARGIN_SECONDS, told_bytes, value_bytes_max
from aftercommit.log import ids_of, logger, reason_of
from aftercommit.queue import Message, Sending, known_channel, queue_url_of, send
from aftercommit.run import run
from aftercommit.schema import check_inputs
from aftercommit.settings import settings
from aftercommit.statuses import instance_status
from aftercommit.tables import HeadRow
from aftercommit.writes import Write


@dataclass(frozen=True)
class StartPoint:
    """Where in which version of a definition an instance is started, and with what HTTP request."""

    owner: str
    version: int
    activity_id: str
    request: dict[str, Json]


@dataclass(frozen=True)
class StartRequest:
    """What a caller asks for. At most one of `instance_id` and `idempotency_key` names the instance."""

    tenant: str
    definition_id: str
    input: dict[str, Json]
    correlation_id: str | None = None
    instance_id: str | None = None
    idempotency_key: str | None = None
    channel: str | None = None
    start_point: StartPoint | None = None

    def is_repeatable(self) -> bool:
        """Whether the caller names the instance, so that asking again can meet it."""
        return self.idempotency_key is not None or self.instance_id is not None

    def fingerprint(self) -> str:
        """Return a digest of what is asked for."""
        asked: list[Json] = [self.definition_id, self.input, self.correlation_id, self.channel]
        if self.start_point:
            # Headers tell of the sending, and differ each time.
            request = self.start_point.request.items()
            asked.append({name: value for name, value in request if name != "headers"})
        return derive_fingerprint(dumps(asked))


def dispatch(request: StartRequest) -> str:
    """Start an instance in the background; returns its id once it is stored.

    The same request under the same Idempotency-Key or instance id starts nothing again. Raises RefusedError
    of the fitting kind.
    """
    instance_id, is_new = _store(request)
    if is_new:
        _hurry([_hint(request, instance_id)])
    return instance_id


def bulk_dispatch(requests: list[StartRequest]) -> list[str | RefusedError | TryLaterError]:
    """Start instances in the background; returns, in their order, each one's id, or why it was not stored.

    One that is refused stops none of the others.
    """
    results: list[str | RefusedError | TryLaterError] = []
    hints = []
    for request in requests:
        try:
            instance_id, is_new = _store(request)
        except (RefusedError, TryLaterError) as error:
            results.append(error)
            continue
        results.append(instance_id)
        if is_new:
            hints.append(_hint(request, instance_id))
    _hurry(hints)
    return results


def _store(request: StartRequest) -> tuple[str, bool]:
    """Store a pending instance; returns its id, and whether this request has made it."""
    birth = _prepare(request)
    queue_url_of(request.channel)
    try:
        _commit_birth(birth_writes(birth, clock.now()))
    except ConditionFailedError:
        _meet_existing(request, birth)
        return birth.instance_id, False
    return birth.instance_id, True


def _commit_birth(writes: list[Write]) -> None:
    try:
        commit_birth(writes)
    except UnwritableError as error:  # no try can store it, so whoever asks must ask for something else
        raise RefusedError(str(error)) from error


def execute(request: StartRequest, *, deadline: float) -> str:
    """Run an instance here until it waits, ends, or time is up; returns its id.

    What is not done by `deadline` goes on in the background. Raises RefusedError of the fitting kind.
    """
    birth = _prepare(request)
    queue_url_of(request.channel)
    worker = Worker(deadline, fresh=False)
    writes = birth_writes(birth, clock.now(), lease_until=deadline + LEASE_MARGIN_SECONDS)
    try:
        _commit_birth(writes)
    except ConditionFailedError:
        if not _is_own(head_of(writes)):
            _meet_existing(request, birth)
            _go_on(birth, worker)
            return birth.instance_id
    try:
        Burst(head_of(writes), worker).run()
    except (OvertakenError, TryLaterError) as error:  # the instance is there, and the sweep goes on with it
        told = {"tenant": birth.tenant, "instance_id": birth.instance_id, "reason": reason_of(error)}
        logger.info("execution went on elsewhere", extra=told)
    return birth.instance_id


def _go_on(birth: Birth, worker: Worker) -> None:
    try:
        run(birth.tenant, birth.instance_id, worker)
    except (OvertakenError, TryLaterError):
        return  # another worker is at it, or will be


def _is_own(wanted: HeadRow) -> bool:
    """Tell whether a birth that met an instance met its own, whose answer was lost."""
    head = find_head(wanted.tenant, wanted.instance_id)
    return head is not None and head.lease_token == wanted.lease_token


def dispatch_existing(tenant: str, instance_id: str) -> None:
    """Run an existing instance in the background; raises NotFoundError, or ConflictError if it has ended."""
    head = find_head(tenant, instance_id)
    if head is None or head.deleted_at:
        raise NotFoundError(f"no instance {instance_id!r}", field="id")
    if instance_status(head.status).ended:
        raise ConflictError(f"instance {instance_id!r} is {head.status}", field="id")
    _hurry([Sending(Message(tenant, instance_id=instance_id), channel=known_channel(head.channel))])


def _hint(request: StartRequest, instance_id: str) -> Sending:
    return Sending(Message(request.tenant, instance_id=instance_id), channel=request.channel)


def _hurry(hints: list[Sending]) -> None:
    for hint, failed in zip(hints, send(hints), strict=True):
        if failed:  # the caller's 202 holds all the same: the sweep finds what is pending
            logger.warning("hint not sent", extra={**ids_of(hint.message), "reason": reason_of(failed)})


def _prepare(request: StartRequest) -> Birth:
    at = request.start_point
    if at:
        owner, version = at.owner, at.version
    else:
        owner, version = find_owner_and_version(request.tenant, request.definition_id)
    definition = load_definition(owner, request.definition_id, version)
    inputs = check_inputs(definition.inputs, request.input)
    large = settings().large_payloads
    if size_of(request.input) > (most := value_bytes_max(large)):
        raise TooLargeError(f"the input is larger than {told_bytes(most)}", field="input")
    return Birth(
        tenant=request.tenant,
        instance_id=_choose_id(request),
        owner=owner,
        definition=definition,
        inputs=inputs,
        correlation_id=request.correlation_id,
        named=request.is_repeatable(),
        trigger={"activity_id": at.activity_id, "value": at.request} if at else None,
        request_fingerprint=request.fingerprint() if request.is_repeatable() else None,
        channel=request.channel,
        large=large,
    )


def _choose_id(request: StartRequest) -> str:
    if request.instance_id is not None:
        if request.idempotency_key is not None:
            raise MalformedRequestError(
                "give an Idempotency-Key or an instance_id, not both", field="instance_id"
            )
        if message := find_name_fault(request.instance_id):
            raise MalformedRequestError(message, field="instance_id")
        return request.instance_id
    if request.idempotency_key is not None:
        return derive_id("request", request.tenant, request.definition_id, request.idempotency_key)
    return new_instance_id()


def _meet_existing(request: StartRequest, birth: Birth) -> None:
    """Accept an instance that this very request has started before; refuse any other."""
    head = find_head(birth.tenant, birth.instance_id)
    if head is None:
        raise TryLaterError(f"instance {birth.instance_id!r} was removed just now; ask again to start it")
    if head.definition_id != birth.definition.definition_id:
        raise ConflictError(
            f"instance {birth.instance_id!r} exists already, of workflow {head.definition_id!r}",
            field="instance_id",
        )
    if head.request_fingerprint == birth.request_fingerprint:
        return
    if request.instance_id:
        raise ConflictError(
            f"instance {birth.instance_id!r} exists already, started with another body", field="instance_id"
        )
    if request.idempotency_key:
        raise KeyReusedError("this Idempotency-Key came before with another body", field="Idempotency-Key")
