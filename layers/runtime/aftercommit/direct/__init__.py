"""Direct execution: run a workflow in process, with no AWS, for the tests of those who write workflows.

The engine is the real one; the queue and the tables are lists in memory, and time is skipped.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aftercommit.activities import PublishEvent
from aftercommit.direct.outside import Callback, Request, place_of
from aftercommit.direct.result import DirectResult
from aftercommit.direct.world import World
from aftercommit.intentions import event_name, intend_stimulus
from aftercommit.jsons import Json
from aftercommit.model import Intention, State
from aftercommit.schema import check_inputs
from aftercommit.workflow import Workflow

__all__ = ["Callback", "DirectResult", "Request", "run"]


def run(  # noqa: PLR0913 - what a test may say, each by its name
    workflow: Workflow,
    input: dict[str, Json] | Request | None = None,  # noqa: A002 - the word of the design
    *,
    workflows: list[Workflow] | None = None,
    activities: Mapping[str, Callable[..., Any]] | None = None,
    events: Sequence[PublishEvent | Callback] | None = None,
    tasks: Mapping[str, Callable[..., Any]] | None = None,
    correlation_id: str | None = None,
    tenant: str = "default",
    large_payloads: bool = False,
) -> DirectResult:
    """Run a workflow to its end, or until nothing more can happen, without AWS and without waiting.

    `workflows` are those it may dispatch, or start by an event; `activities` replace activity functions by
    name, and what SendHttpRequest does by that name. A `Request` in place of the input starts the
    workflow at its HttpEndpoint. `events`, callbacks among them, come from outside, at the beginning: each is
    kept until something waits for it. `tasks` are functions by the name of the RunTask that they complete;
    they get its inputs. A task without one, or an event that never comes, leaves the workflow suspended.
    `large_payloads` gives instances the limits that they have with that parameter of a deployment.
    Raises InputRefusedError if the input does not fit what the workflow declares, ValueError for a request
    that it does not start at.
    """
    world = World([workflow, *(workflows or [])], activities or {}, tasks or {}, tenant)
    world.large_payloads = large_payloads
    request = input if isinstance(input, Request) else None
    given = {} if isinstance(input, Request) else input or {}
    inputs = check_inputs(workflow.definition.inputs, given)
    state = State(world.main_id, inputs, correlation_id=correlation_id)
    if request:
        state.trigger = {"activity_id": place_of(request, workflow), "value": request.to_json()}
    world.create(workflow.definition, state)
    for number, each in enumerate(events or []):
        if isinstance(each, Callback):
            world.callbacks.append(each)
        else:
            world.open.append(_sent(each, number, world))
    world.settle()
    return world.result(world.main_id)


def _sent(event: PublishEvent, number: int, world: World) -> Intention:
    return intend_stimulus(
        f"sent-{number}",
        at=world.now,
        name=event_name(event.name),
        payload=event.payload or {},
        value=event.input,
        correlation_id=event.correlation_id,
        instance_id=world.main_id if event.local else None,
    )
