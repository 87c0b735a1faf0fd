"""What must be true of events once a world is quiet: at least once, one id, none lost, none too early."""

import json
from collections import Counter
from collections.abc import Iterator

from aftercommit.ids import derive_id
from tests.simulation.dynamodb import Item
from tests.simulation.layout import QUEUES
from tests.simulation.story import Story, plain
from tests.simulation.users import ORDERS


def is_of_event(story: Story, stimulus_item_id: str) -> bool:
    """Whether a stimulus is what an event has made of itself."""
    return any(
        stimulus_item_id.endswith(derive_id("event", name))
        for (_, name), item in story.items.items()
        if item["command"] == "event"
    )


def check_events(story: Story) -> Iterator[str]:
    """Check all that is said of events."""
    events = {name: item for (_, name), item in story.items.items() if item["command"] == "event"}
    yield from _check_intended(story, events)
    yield from _check_told(story, events)
    yield from _check_one_stimulus(story, events)
    yield from _check_one_send_per_claim(story, events)
    yield from _check_unhindered(story)


def _check_intended(story: Story, events: dict[str, dict]) -> Iterator[str]:
    """I1, I5: an event is stored with its order, in one commit, or decided by a revision."""
    calls: dict[tuple[str, str], int] = {}
    for change in story.world.changes:
        row = plain(change.after or change.before or {})
        if change.table == ORDERS:
            calls[ORDERS, row["event_id"]] = change.call
        elif change.table == "outbox" and change.before is None:
            calls["outbox", row["item_id"]] = change.call
    for event_id in events:
        if not story.intends(event_id) and calls.get((ORDERS, event_id)) != calls["outbox", event_id]:
            yield f"event {event_id} was not stored with its order"
    for row in map(plain, _orders(story)):
        if row["event_id"] not in events:
            yield f"order {row['order_id']} was stored without its event"


def _orders(story: Story) -> list[Item]:
    table = story.world.dynamodb.tables.get(ORDERS)
    return list(table.rows.values()) if table else []


def _check_told(story: Story, events: dict[str, dict]) -> Iterator[str]:
    """I1, I2: what a sink heard was committed before, and each that was committed was heard of, unchanged."""
    born = {
        plain(change.after)["item_id"]: change.at
        for change in reversed(story.world.changes)
        if change.table == "outbox" and change.after
    }
    texts: dict[str, set[str]] = {}
    for heard in story.world.sink.announcements:
        texts.setdefault(heard.event_id, set()).add(heard.text)
        if heard.event_id not in events:
            yield f"event {heard.event_id} was heard of, and was never stored"
        elif heard.at < born[heard.event_id]:
            yield f"event {heard.event_id} was heard of before it was stored"
    for event_id, item in events.items():
        told = json.loads(item.get("sinks", "{}"))
        if len(texts.get(event_id, ())) > 1:
            yield f"event {event_id} was told in different ways"
        if item["status"] != "done" or "ttl" not in item or "due_at" in item:
            yield f"event {event_id} is {item['status']}, which is not done with"
        for sink, state in told.items():
            if "sent_at" not in state:
                yield f"event {event_id} was never sent to the {sink}"
        if "queue" in told and event_id not in texts:
            yield f"event {event_id} is recorded as sent, and nobody heard of it"


def _check_one_stimulus(story: Story, events: dict[str, dict]) -> Iterator[str]:
    """I3: however often it was delivered, an event is one stimulus."""
    made = Counter(
        event_id
        for event_id in events
        for (_, name), item in story.items.items()
        if item["command"] == "stimulus" and name.endswith(derive_id("event", event_id))
    )
    for event_id, times in made.items():
        if times > 1:
            yield f"event {event_id} became {times} stimuli"
    for event_id, item in events.items():
        if "stimuli" in json.loads(item.get("sinks", "{}")) and not made[event_id]:
            yield f"event {event_id} is recorded as a stimulus, and there is none"


def _check_one_send_per_claim(story: Story, events: dict[str, dict]) -> Iterator[str]:
    """Of those that read the same row, one claims it: an event is not sent more often than it was claimed.

    A request that is refused whole is followed by single ones under the same claim, so then those count.
    """
    sent = Counter(
        json.loads(entry["MessageBody"])["id"]
        for call in story.world.trace
        if call.what == "SendMessageBatch" and call.arguments["QueueUrl"] == QUEUES["events"]
        if len(call.arguments["Entries"]) == 1 or not story.world.sink.refuses_whole
        for entry in call.arguments["Entries"]
    )
    for event_id, item in events.items():
        if sent[event_id] > item["sends"]:
            yield f"event {event_id}: {sent[event_id]} sends for {item['sends']} claims"


def _check_unhindered(story: Story) -> Iterator[str]:
    """I9: without faults, an event that a sink refuses holds back no other, and is one incident."""
    world = story.world
    if world.planned or world.weather.name == "rough":
        return
    for heard in world.sink.announcements:
        if heard.event_id not in world.refused_ids and heard.at > world.moment_at(world.prompt_seconds):
            yield f"event {heard.event_id} was heard of late"
    for event_id, times in Counter(each.event_id for each in world.sink.announcements).items():
        if times > 1:
            yield f"event {event_id} was sent {times} times, though nobody died"
    for event_id in world.refused_ids:
        incidents = [
            row
            for (_, name), row in world.dynamodb.tables["instances"].rows.items()
            if name.startswith("incident#") and row.get("item_id") == {"S": event_id}
        ]
        if len(incidents) != 1:
            yield f"event {event_id} was refused, with {len(incidents)} incidents"
