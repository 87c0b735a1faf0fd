"""Which ids each line of the log must bear, by its message."""

ITEM = frozenset({"tenant", "owner_id", "item_id"})
INSTANCE = frozenset({"tenant", "instance_id"})
_OF_ITEMS = (
    "attempt not recorded",
    "attempt refused",
    "claim failed",
    "dead letter",
    "dead letter removed",
    "dead letter replayed",
    "dispatch is gone",
    "dispatch overslept",
    "dispatch was set aside",
    "dispatches withdrawn",
    "item dropped",
    "item given up",
    "item set aside",
    "no undone item",
    "redriven",
    "start refused",
)
_OF_INSTANCES = (
    "activation left",
    "execution went on elsewhere",
    "instance cancelled",
    "instance cannot be read",
    "instance deleted",
    "instance faulted",
    "instance kept",
    "instance not pushed back",
    "instance not swept",
    "instance removed",
    "instance removed in part",
    "item settled already",
    "lease not given back",
    "nothing to run",
    "old payload not removed",
    "old snapshot not removed",
    "payloads discarded",
    "response not read",
    "step given up",
    "step raised",
    "stopped, as its workers end",
    "swept instance",
)
# About either, or about what is neither: an event, a bookmark, the row of a message that cannot be told.
_OTHERS = {
    "bookmark row not removed": {"bookmark_id"},
    "command failed": {"message_id"},
    "early stimuli not looked for": {"tenant"},
    "event refused": {"tenant", "event_id"},
    "hint not sent": {"tenant"},
    "incident not recorded": {"tenant", "event_id"},
    "instance ended": {"tenant", "message_id"},
    "join not hurried": {"tenant", "owner_id"},
    "left to newer code": {"tenant"},
    "message set aside": {"message_id"},
    "postponed": {"tenant", "message_id"},
    "retracted": {"definition_id"},
    "row not updated": {"owner_key", "item_id"},
    "rows of bookmarks removed": INSTANCE,
    "start points left behind": {"definition_id"},
    "times of schedules removed": {"definition_id"},
}
# About many at once, or about nothing that has an id.
WITHOUT = frozenset(
    {
        "channel not known any more",
        "delivered",
        "delivered events",
        "delivery left to the sweep",
        "ended instances not swept",
        "events given back",
        "events left to the sweep",
        "events not swept",
        "events without a sink",
        "no function delivers events",
        "no time left for events",
        "not published",
        "published",
        "request failed",  # those of its path, if there are any
        "rows not updated",
        "shard not swept",
        "sink is down",
        "stream record without keys",
        "swept items",
        "tick not sent",
        "trace not told",
        "try later",
    }
)
REQUIRED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_OF_ITEMS, ITEM),
    **dict.fromkeys(_OF_INSTANCES, INSTANCE),
    **{message: frozenset(ids) for message, ids in _OTHERS.items()},
}
