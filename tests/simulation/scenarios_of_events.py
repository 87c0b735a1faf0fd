"""Scenarios of events: those that workflows publish and hear, and those that users store with orders."""

from tests.simulation.calls import Start
from tests.simulation.scenario import BOTH, CHILD, COMPLETED, EAGER_OFF, Scenario, times
from tests.simulation.users import deploy_sink_later, order, refuse_whole, save_orders

_TELLING = {"before": 1, "told": 1}
QUEUE = {"EVENT_QUEUE_ARN": "arn:aws:sqs:us-east-1:123456789012:sim-events", "EVENT_STIMULI": "false"}

SCENARIOS = (
    Scenario("event", (Start("hearing"), Start("telling", "other", after=5)), BOTH, {"heard": 1, **_TELLING}),
    Scenario(
        "early-event",
        (Start("telling", "other"), Start("hearing", after=5)),
        BOTH,
        {"heard": 1, **_TELLING},
    ),
    # The event comes when both surely wait, whatever died before: it is for those that do.
    Scenario(
        "event-for-two",
        (Start("hearing"), Start("hearing", "second"), Start("telling", "other", after=1500)),
        {"second": "completed", **BOTH},
        {"heard": 2, **_TELLING},
        thorough=False,
    ),
    Scenario(
        "event-rounds",
        (Start("counting"), Start("ticking", "other", after=5)),
        BOTH,
        {"round": 2, "between": 1},
    ),
    Scenario("event-starts", (Start("opening"),), COMPLETED, {"begun": 1}),
)
ORDERS = (
    Scenario("orders", (), {}, settings=QUEUE, disturb=save_orders(*map(order, range(1, 4))), seeds=2),
    Scenario("orders-eager-off", (), {}, settings=QUEUE | EAGER_OFF, disturb=save_orders(order(1), order(2))),
    # The stream comes as late as the second sweep, so that both deliver the same events.
    Scenario(
        "orders-raced",
        (),
        {},
        settings=QUEUE,
        disturb=save_orders(*map(order, range(1, 4)), stream_delay=19.98),
        seeds=2,
    ),
    # Clocks differ by up to 40 seconds, the claim less the time that a send may take, and the sink takes it.
    Scenario(
        "orders-skewed",
        (),
        {},
        settings=QUEUE,
        disturb=save_orders(*map(order, range(1, 4)), skew=20, sink_seconds=19.9),
        seeds=5,
        thorough=False,
    ),
    Scenario(
        "orders-refused",
        (),
        {},
        settings=QUEUE,
        disturb=save_orders(*map(order, range(1, 4)), refused=("order-2",)),
    ),
    Scenario("orders-one-by-one", (), {}, settings=QUEUE, disturb=refuse_whole),
    Scenario(
        "orders-sink-later",
        (),
        {},
        settings={"EVENT_STIMULI": "false"},
        disturb=deploy_sink_later({"EVENT_QUEUE_ARN": QUEUE["EVENT_QUEUE_ARN"]}),
        thorough=False,
    ),
    Scenario(
        "orders-several-sinks",
        (),
        {},
        settings=QUEUE | {"EVENT_STIMULI": "true", "STIMULUS_OPEN_SECONDS": "60"},
        disturb=save_orders(order(1), order(2), refused=("order-2",)),
        thorough=False,
    ),
    Scenario(
        "order-resumes",
        (Start("hearing"),),
        COMPLETED,
        {"heard": 1},
        # Before the instance waits, or after: neither loses it.
        disturb=save_orders(order(1, "said", payload={"n": 1})),
        seeds=2,
    ),
    Scenario("announcing", (Start("announcing"),), COMPLETED, {"before": 1, "after": 1}, QUEUE),
)
HEARD_AGAIN = (
    Scenario(
        "multi-use",
        (Start("listening"), Start("pinging", "other", after=5)),
        BOTH,
        {"ping": 3, "between": 2, "after-pings": 1},
    ),
    Scenario(
        "multi-use-early",
        (Start("pinging", "other"), Start("listening", after=5)),
        BOTH,
        {"ping": 3, "between": 2, "after-pings": 1},
        thorough=False,
    ),
    Scenario(
        "multi-use-overlap",
        (Start("overlapping", correlation_id="r"), Start("ringing", "other", after=5)),
        BOTH,
        {"ring": 2, "stopped": 1, **times(CHILD, 2)},
    ),
)
