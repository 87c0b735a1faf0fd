"""The size of a state: what it holds is counted when it is set, so that it never outgrows its row."""

from aftercommit.errors import StateTooLargeError
from aftercommit.jsons import Json, size_of
from aftercommit.limits import told_bytes
from aftercommit.model import Execution, State

# What executions keep that may be large; the word is the one a person is told.
_LARGE = ("inputs", "items", "locals")


# An execution with its bookmark, about; so much of them has room in the item beside a full state.
_EXECUTION_BYTES = 320
_EXECUTIONS_BYTES_FREE = 48 * 1024


def charge(state: State, name: str, value: Json) -> None:
    """Account for a value that the state is about to hold; raises StateTooLargeError naming the largest."""
    sizes = measured(state)
    size = size_of(value)
    if state.bytes - sizes.get(name, 0) + size + _excess(state) > state.bytes_max:
        largest = sorted({**sizes, name: size}.items(), key=lambda each: -each[1])[:3]
        told = ", ".join(f"{each} ({bytes_} bytes)" for each, bytes_ in largest)
        most = told_bytes(state.bytes_max)
        raise StateTooLargeError(f"the state would outgrow {most}; the largest: {told}")
    state.bytes += size - sizes.get(name, 0)
    sizes[name] = size


def charge_memory(state: State, execution: Execution) -> None:
    """Account for what an execution keeps; raises StateTooLargeError.

    None of it changes once it is kept, save variables: so a loop over many items measures them once.
    """
    if (excess := _excess(state)) and measured(state) and state.bytes + excess > state.bytes_max:
        told = (
            f"{len(state.executions)} activities at once, beside {state.bytes} bytes of values, are too many"
        )
        raise StateTooLargeError(told)
    for kind in _LARGE:
        if kind in execution.memory and _name(kind, execution) not in measured(state):
            charge(state, _name(kind, execution), execution.memory[kind])


def charge_locals(state: State, execution: Execution, given: dict[str, Json]) -> None:
    """Account for variables that an execution is about to have instead of those it has."""
    charge(state, _name("locals", execution), given)


def release(state: State, execution: Execution) -> None:
    """Forget what an execution kept."""
    if execution.memory:
        sizes = measured(state)
        for kind in _LARGE:
            state.bytes -= sizes.pop(_name(kind, execution), 0)


def measured(state: State) -> dict[str, int]:
    """Return the bytes of everything large that the state holds, by name; measured once, then kept up."""
    if state.sizes is None:
        state.sizes = {name: size_of(value) for name, value in state.variables.items()}
        state.sizes["the inputs"] = size_of(state.inputs)
        if state.response is not None:
            state.sizes["the response"] = size_of(state.response)
        for execution in state.executions.values():
            for kind in _LARGE:
                if kind in execution.memory:
                    state.sizes[_name(kind, execution)] = size_of(execution.memory[kind])
        state.bytes = sum(state.sizes.values())
    return state.sizes


def _excess(state: State) -> int:
    """Return the bytes that the executions take from what values may have."""
    return max(0, len(state.executions) * _EXECUTION_BYTES - _EXECUTIONS_BYTES_FREE)


def _name(kind: str, execution: Execution) -> str:
    return f"{kind} of {execution.activity_id} ({execution.execution_id})"
