"""Which variables an execution sees: those that the loops around it give it, over the instance's own."""

from collections.abc import Iterator

from aftercommit.model import Execution, Json, State


def lineage(state: State, execution: Execution) -> Iterator[Execution]:
    """Yield an execution, the one that scheduled it, and so on up to the root."""
    while True:
        yield execution
        if not execution.scheduled_by:
            return
        execution = state.executions[execution.scheduled_by]


def visible_variables(state: State, execution: Execution) -> dict[str, Json]:
    """Return the variables an execution sees; the innermost loop's hide all others of their names."""
    variables = state.variables
    given = [each.memory["locals"] for each in lineage(state, execution) if "locals" in each.memory]
    for each in reversed(given):
        variables = {**variables, **each}
    return variables


def holder_of(state: State, execution: Execution, variable: str) -> Execution | None:
    """Return the execution whose loop variable a name means here, or None if it is the instance's."""
    return next(
        (each for each in lineage(state, execution) if variable in each.memory.get("locals", ())), None
    )


def below(state: State, top: Execution) -> list[Execution]:
    """Return the executions that an execution has led to, directly or not."""
    return [
        each
        for each in state.executions.values()
        if each is not top and any(above is top for above in lineage(state, each))
    ]
