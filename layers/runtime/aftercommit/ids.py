"""Identities: derived where a repeated decision must meet its earlier self, random only at the door.

A derived id is SHA-256 over length-prefixed parts, cut to 128 bits (32 hex digits): a UUID's worth, as
rows hold many ids and are billed by the KB. The prefixes keep ("ab", "c") and ("a", "bc") apart.
"""

import hashlib
import secrets

EVENT_OWNER = "event#"  # what the owner ids of events begin with
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def derive_id(kind: str, *parts: str | int) -> str:
    """Derive the id that the same kind and parts always give."""
    digest = hashlib.sha256()
    for part in (kind, *parts):
        encoded = str(part).encode()
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()[:32]


def derive_execution_id(instance_id: str, activity_id: str, iteration: int, scheduled_by: str) -> str:
    """Derive an activity execution's id from where it stands, never from the order in which things ran."""
    return derive_id("execution", instance_id, activity_id, iteration, scheduled_by)


def derive_child_id(execution_id: str) -> str:
    """Derive the id of the instance that an activity execution starts."""
    return derive_id("child", execution_id)


def derive_event_owner(event_id: str) -> str:
    """Derive the owner id of an event: a partition of its own, known by how it begins."""
    return EVENT_OWNER + derive_id("event", event_id)


def derive_join_id(execution_id: str) -> str:
    """Derive the id of the join of the children that a bulk dispatch starts."""
    return derive_id("join", execution_id)


def part_name(join_id: str, index: int) -> str:
    """Return the id of a child's dispatch in a bulk: as text they sort by index, behind their join's id."""
    return f"{join_id}-{index:05}"


def join_name(join_id: str, turn: int) -> str:
    """Return the item id of a join; a new turn begins when a batch of ended children was handed over."""
    return f"{join_id}-join{turn:05}"


def derive_shard(key: str, shards: int) -> int:
    """Spread keys evenly over `shards` partitions of a swept index."""
    return int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) % shards


def derive_fingerprint(text: str) -> str:
    """Return a digest that tells two texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()


def derive_fraction(*parts: str | int) -> float:
    """Return a number in [0, 1) that the same parts always give: jitter that a replay repeats."""
    return int(derive_id("fraction", *parts)[:13], 16) / 16**13


def new_instance_id() -> str:
    """Return a new id for an instance started from outside: a ULID, so that ids sort by birth."""
    from ulid import ULID  # 136 ms to import, and only the API needs it  # noqa: PLC0415

    return str(ULID())


def new_event_id(at: float) -> str:
    """Return a new id for an event: a ULID of this instant, made without a package that is slow to import."""
    number = int(at * 1000) << 80 | int(secrets.token_hex(10), 16)
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def new_token() -> str:
    """Return a random token: a lease's, or the nonce by which a writer knows its own row."""
    return secrets.token_hex(8)
