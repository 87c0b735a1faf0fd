"""Which variables an execution sees: those that the loops around it give it, over the instance's own."""

from collections.abc import Iterator

from aftercommit.jsons import Json
from aftercommit.model import Execution, State
from aftercommit.sizes import charge, charge_locals


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


def assign(state: State, execution: Execution, variable: str, value: Json) -> None:
    """Set a variable where it is visible from here: the nearest loop that gives it, else the instance.

    Raises StateTooLargeError, with nothing changed.
    """
    for each in lineage(state, execution):
        if variable in each.memory.get("locals", ()):
            given = {**each.memory["locals"], variable: value}
            charge_locals(state, each, given)
            each.memory["locals"] = given
            return
    charge(state, variable, value)
    state.variables[variable] = value


def below(state: State, top: Execution) -> list[Execution]:
    """Return the executions that an execution has led to, directly or not."""
    return [
        each
        for each in state.executions.values()
        if each is not top and any(above is top for above in lineage(state, each))
    ]
