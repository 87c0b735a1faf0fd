"""Where instances, outbox items and activity executions stand, and how executions end."""

from enum import StrEnum

from aftercommit.errors import NewerFormError


class InstanceStatus(StrEnum):
    """Where an instance stands; the last three are endings."""

    PENDING = "pending"  # stored, not run yet
    RUNNING = "running"  # has work that needs no outside input
    SUSPENDED = "suspended"  # waits at its bookmarks
    COMPLETED = "completed"
    FAULTED = "faulted"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing can change any more."""
        return self in _ENDINGS


_ENDINGS = frozenset({InstanceStatus.COMPLETED, InstanceStatus.FAULTED, InstanceStatus.CANCELLED})


class ItemStatus(StrEnum):
    """Where an outbox item stands."""

    UNDONE = "undone"  # its effect has not committed
    DONE = "done"  # its effect has committed
    FAILED = "failed"  # given up, with its consequence
    CANCELLED = "cancelled"  # withdrawn before its effect committed


class ItemCommand(StrEnum):
    """What an outbox item intends."""

    START = "start"  # create and run a child
    RESUME = "resume"  # continue an instance at one of its bookmarks
    RUN = "run"  # go on with an instance that is pending or stranded
    CANCEL = "cancel"  # withdraw a dispatch, or cancel the child it has led to
    JOIN = "join"  # continue an instance when the children of a bulk dispatch have ended
    STIMULUS = "stimulus"  # start and resume whatever it matches
    EVENT = "event"  # tell the sinks


class ExecutionStatus(StrEnum):
    """Where one activity execution stands."""

    READY = "ready"  # a step to be run by a worker
    WAITING = "waiting"  # at a bookmark
    RUNNING = "running"  # a composite whose children run
    FAULTED = "faulted"  # abandoned under the strategy `continue`


class Outcome(StrEnum):
    """How an activity execution ended, for its parent and its `on` branches."""

    DONE = "Done"
    DISPATCHED = "Dispatched"
    COMPLETED = "Completed"
    FAULTED = "Faulted"
    CANCELLED = "Cancelled"
    DISPATCH_FAILED = "DispatchFailed"


def instance_status(text: str) -> InstanceStatus:
    """Read the status of a head; raises NewerFormError for one that this code does not know."""
    try:
        return InstanceStatus(text)
    except ValueError:
        raise NewerFormError(f"this code does not know the status {text!r} of an instance") from None
