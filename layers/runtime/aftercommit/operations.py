"""What operators and outside callers do to running things, beside starting them: each one call of the API."""

from aftercommit import clock
from aftercommit.activities.http_endpoint import callback_stimulus
from aftercommit.bodies import body_of
from aftercommit.bookmarks import stimulus_id_of
from aftercommit.callbacks import callback_put, read_callback_token
from aftercommit.errors import (
    ConditionFailedError,
    ConflictError,
    KeyReusedError,
    NotFoundError,
    TooLargeError,
)
from aftercommit.ids import derive_fingerprint, derive_id, new_instance_id, new_token
from aftercommit.intentions import begin_stimulus_id, event_name, intend_stimulus
from aftercommit.jsons import Json, canonical, size_of
from aftercommit.limits import INPUT_BYTES_MAX, REQUEST_DAYS
from aftercommit.log import count, ids_of, logger
from aftercommit.model import Intention
from aftercommit.outbox import find_item, item_put
from aftercommit.schema import check_storable
from aftercommit.statuses import ItemCommand, ItemStatus
from aftercommit.tables import CallbackRow, ItemRow, RequestRow, key_of
from aftercommit.writes import Delete, Put, Update, commit


def send_stimulus(
    tenant: str,
    name: str,
    *,
    payload: dict[str, Json],
    value: Json,
    correlation_id: str | None,
    instance_id: str | None,
    execution_id: str | None = None,
    idempotency_key: str | None = None,
) -> str:
    """Store a stimulus, to be applied in the background; returns its id.

    With `execution_id` it is for that activity execution, if that waits with the scope `activity`.
    The same stimulus under the same Idempotency-Key is stored once; repeats return its id.
    Raises TooLargeError, InputRefusedError for what cannot be stored, or KeyReusedError.
    """
    _check(value, "input")
    _check(payload, "payload")
    at = clock.now()
    request_id = None
    if idempotency_key is not None:
        request_id = derive_id("stimulus-request", tenant, idempotency_key)
    intention = intend_stimulus(
        request_id or new_instance_id(),
        at=at,
        name=name,
        payload=payload,
        value=value,
        correlation_id=correlation_id,
        instance_id=instance_id,
        execution_id=execution_id,
    )
    owner_id = stimulus_id_of(intention.body["stimulus"])
    put = item_put(tenant, owner_id, intention, at)
    stimulus_id = name_stimulus(owner_id, intention.item_id)
    if request_id is None:
        commit([put])
        return stimulus_id
    told = canonical([name, payload, value, correlation_id, instance_id, execution_id])
    request = RequestRow(
        key_of(tenant, request_id),
        fingerprint=derive_fingerprint(told),
        stimulus_id=stimulus_id,
        created_at=clock.to_text(at),
        ttl=int(at) + REQUEST_DAYS * 86_400,
    )
    return _send_once(request, put, at)


def _send_once(request: RequestRow, put: Put, at: float) -> str:
    """Store a stimulus with the request that asks for it, unless that has come before; returns its id.

    The stimulus's own id begins with the time of the call, so a repeat could not meet it by that.
    """
    # Closes: the same call twice, also at once. A row past its time counts as none: it is removed late.
    unknown = RequestRow.owner_key.does_not_exist() | (RequestRow.ttl <= int(at))
    try:
        commit([Put("request", request, unknown), put])
    except ConditionFailedError:
        first = RequestRow.get(request.owner_key, request.item_id, consistent_read=True)
        if first.fingerprint != request.fingerprint:
            raise KeyReusedError(
                "this Idempotency-Key came before with another body", field="Idempotency-Key"
            ) from None
        return str(first.stimulus_id)
    return str(request.stimulus_id)


def _check(value: Json, name: str) -> None:
    check_storable(value, name)
    if size_of(value) > INPUT_BYTES_MAX:
        raise TooLargeError(f"the {name} is larger than {INPUT_BYTES_MAX} bytes", field=name)


def send_event(tenant: str, name: str, **more: Json) -> str:
    """Store the stimulus of an event; see `send_stimulus`."""
    return send_stimulus(tenant, event_name(name), **more)


def resume_by_token(tenant: str, token: str, value: Json) -> None:
    """Intend the resume of the bookmark that a token stands for.

    Raises NotFoundError, the same for a token that is forged, used, or another tenant's.
    """
    _check(value, "input")
    try:
        commit([callback_put(tenant, token, value, clock.now())])
    except ConditionFailedError:
        raise NotFoundError("no such bookmark", field="token") from None


def call_back(tenant: str | None, token: str, request: dict[str, Json]) -> None:
    """Store the stimulus of a callback, with the request as its input; the first call of an address counts.

    Raises NotFoundError, the same for a token that is forged, used, another tenant's, or of an instance that
    has ended. The row that says so lives as long as the instance; a stimulus is forgotten before.
    """
    head, name = read_callback_token(tenant, token)
    at = clock.now()
    stimulus = callback_stimulus(head.instance_id, name)
    intention = intend_stimulus(
        derive_id("callback", head.instance_id, name),
        at=at,
        name=stimulus["name"],
        payload=stimulus["payload"],
        value=request,
        instance_id=head.instance_id,
    )
    used = CallbackRow(
        head.instance_key,
        f"callback#{derive_id('callback', name)}",
        item_id=intention.item_id,
        nonce=new_token(),
        created_at=clock.to_text(at),
    )
    unused = CallbackRow.instance_key.does_not_exist()  # closes: called before, or twice at once
    item = item_put(head.tenant, stimulus_id_of(stimulus), intention, at)
    try:
        commit([Put("callback", used, unused), item])
    except ConditionFailedError:
        # After a lost answer the row may be our own.
        if CallbackRow.get(used.instance_key, used.row, consistent_read=True).nonce != used.nonce:
            raise NotFoundError("no such callback", field="token") from None


def replay(tenant: str, stimulus_id: str, item_id: str) -> str:
    """Make a dead letter an open stimulus again, once; returns the new one's id.

    Raises NotFoundError, or ConflictError naming the stimulus that an earlier replay has made.
    """
    dead = find_dead_letter(tenant, stimulus_id, item_id)
    if dead.replayed_as:
        raise _replayed(dead)
    at = clock.now()
    body = body_of(dead)
    unique = derive_id("replay", stimulus_id, item_id)  # there is one at most
    intention = Intention(ItemCommand.STIMULUS, f"{begin_stimulus_id(at)}-{unique}", body)
    first = (ItemRow.status == ItemStatus.FAILED.value) & ItemRow.replayed_as.does_not_exist()
    # Closes: two replays at once. The mark and the new stimulus are one commit.
    mark = Update(
        "replay",
        ItemRow(dead.owner_key, dead.item_id),
        [ItemRow.replayed_as.set(intention.item_id), ItemRow.attention_at.remove()],
        first,
    )
    try:
        commit([mark, item_put(tenant, stimulus_id, intention, at)])
    except ConditionFailedError:
        raise _replayed(find_dead_letter(tenant, stimulus_id, item_id)) from None
    new_id = name_stimulus(stimulus_id, intention.item_id)
    logger.info(
        "dead letter replayed", extra={**ids_of(dead), "reason": f"a caller asked for it; now {new_id}"}
    )
    count("DeadLettersReplayed")
    return new_id


def _replayed(dead: ItemRow) -> ConflictError:
    return ConflictError(f"replayed already, as {name_stimulus(dead.owner_id, dead.replayed_as)}", field="id")


def name_stimulus(stimulus_key: str, item_id: str) -> str:
    """Return the id under which callers know a stimulus: its key and its place there."""
    return f"{stimulus_key}.{item_id}"


def read_stimulus_id(stimulus_id: str) -> tuple[str, str]:
    """Return (key, item id) of a stimulus's id; raises NotFoundError for what is none."""
    key, separator, item_id = stimulus_id.partition(".")
    if not separator or not key or not item_id:
        raise NotFoundError("no such dead letter", field="id")
    return key, item_id


def find_dead_letter(tenant: str, stimulus_id: str, item_id: str) -> ItemRow:
    """Return a dead letter; raises NotFoundError."""
    item = find_item(tenant, stimulus_id, item_id)
    if item is None or item.command != ItemCommand.STIMULUS or item.status != ItemStatus.FAILED:
        raise NotFoundError("no such dead letter", field="id")
    return item


def delete_dead_letter(tenant: str, stimulus_id: str, item_id: str) -> None:
    """Remove a dead letter; raises NotFoundError."""
    dead = find_dead_letter(tenant, stimulus_id, item_id)
    dead_still = ItemRow.status == ItemStatus.FAILED.value  # closes: two removals at once
    try:
        commit([Delete("dead letter", ItemRow(dead.owner_key, dead.item_id), dead_still)])
    except ConditionFailedError:
        raise NotFoundError("no such dead letter", field="id") from None
    logger.info("dead letter removed", extra={**ids_of(dead), "reason": "a caller asked for it"})
    count("DeadLettersRemoved")
