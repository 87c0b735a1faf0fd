"""The activities of the simulated workflows: each tells the world what it does outside."""

from typing import Any

from aftercommit import ActivityContext, Retry, activity
from aftercommit.views import show_instance

_world: list[Any] = []  # the world that activities act in: one at a time per process


def enter(world: Any) -> None:
    """Let activities act in this world from now on."""
    _world[:] = [world]


@activity(name="sim_act", timeout_seconds=1)
def act(name: str, context: ActivityContext, seconds: float = 0, size: int = 0) -> dict:
    """Have an effect named `name`, after so many seconds; return something of this size."""
    _act(name, context, seconds)
    return {"done": name, "padding": "x" * size}


@activity(name="sim_flaky", timeout_seconds=1, retry=Retry(attempts_max=4, first_delay_seconds=3))
def flaky(name: str, context: ActivityContext, succeeds_at: int = 3) -> str:
    """Fail until the attempt that succeeds."""
    _act(name, context, 0)
    if context.attempt < succeeds_at:
        raise ConnectionError(f"attempt {context.attempt} failed")
    return name


@activity(name="sim_refuse", timeout_seconds=1)
def refuse(context: ActivityContext) -> None:
    """Raise, for good."""
    raise ValueError("never possible")


@activity(name="sim_kill", timeout_seconds=1)
def kill(context: ActivityContext) -> None:
    """Take longer than any invocation has: the worker is ended each time."""
    _world[0].work(1_000)


@activity(name="sim_long", timeout_seconds=50)
def long(name: str, context: ActivityContext) -> str:
    """Take 45 seconds, and declare it."""
    _act(name, context, 45)
    return name


@activity(name="sim_queue", timeout_seconds=1)
def queue(workflow: str, context: ActivityContext, times: int = 2) -> list:
    """Dispatch from inside an activity: the children exist exactly if this result commits."""
    _act("queue", context, 0)
    return [context.dispatch(workflow, {"name": f"queued-{number}"}) for number in range(times)]


@activity(name="sim_tell", timeout_seconds=1, retry=Retry(attempts_max=50, first_delay_seconds=5, backoff=1))
def tell(task_of: str, run: str, workflow: str, context: ActivityContext) -> str:
    """Complete a task by its token, publish, dispatch and run, all with this result or not at all."""
    shown = show_instance(context.tenant, task_of)
    tokens = [each["token"] for each in shown["bookmarks"] if "token" in each]
    token = tokens[0] if tokens else "used"
    if not tokens and shown["status"] != "completed":
        raise LookupError("no task yet")
    _act("tell", context, 0)
    context.resume(token, {"by": context.instance_id})
    context.publish("told", {"n": 1}, {"order": 1})
    context.publish("told", {"n": 1}, {"order": 2})
    context.run(run)
    return context.dispatch(workflow, {"name": "child-first"})


@activity(name="sim_ask", timeout_seconds=1)
def ask(name: str, context: ActivityContext, answered_after: float = 0) -> None:
    """Give a callback address out; it is called after so many seconds, once for each time it was given."""
    _act("ask", context, 0)
    _world[0].call_back(context.callback_path(name), after=answered_after)


def _act(name: str, context: ActivityContext, seconds: float) -> None:
    world = _world[0]
    if seconds:
        world.work(seconds)
    world.effect(name, context.instance_id, context.idempotency_key)


def later(context: ActivityContext) -> None:
    """Is not among the activities at first."""
    _act("later", context, 0)
