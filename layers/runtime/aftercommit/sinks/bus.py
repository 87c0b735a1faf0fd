"""An EventBridge bus: PutEvents, with the event's name as detail type."""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from aftercommit import aws
from aftercommit.errors import ContentRefusedError
from aftercommit.settings import settings
from aftercommit.sinks.sink import Outgoing, Refusal, refused

_DETAIL_TYPE_CHARACTERS_MAX = 128
# Of a request, and of an entry: docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
_CONTENT = {"ValidationException", "PutEventsRequestEntrySizeExceeded"}
_CONTENT_OF_ENTRY = {"MalformedDetail", "InvalidArgument", "NotAuthorizedForDetailTypeException"}


class Bus:
    """The bus of EVENT_BUS_ARN."""

    name = "bus"
    events_max = 10
    bytes_max = 256 * 1024

    def send(self, events: Sequence[Outgoing], seconds: float) -> list[Refusal | None]:
        """Put events; each is taken or refused by itself."""
        del seconds  # the client's own time-out, three quarters of a send's, is never longer
        # The bus would refuse the whole request for one name that is too long.
        fitting = [each for each in events if len(each.body["name"]) <= _DETAIL_TYPE_CHARACTERS_MAX]
        answers = iter(self._put(fitting) if fitting else [])
        too_long = refused(
            "NameTooLongError",
            f"a bus takes names of {_DETAIL_TYPE_CHARACTERS_MAX} characters at most",
            content=True,
        )
        return [next(answers) if each in fitting else too_long for each in events]

    def _put(self, events: list[Outgoing]) -> list[Refusal | None]:
        entries = [_entry(each) for each in events]
        client = aws.client("events", seconds=settings().event_send_timeout_seconds)
        try:
            answer = client.put_events(Entries=entries)
        except ClientError as error:
            if error.response["Error"]["Code"] in _CONTENT:
                raise ContentRefusedError(str(error)) from error
            raise
        return [_read(each) for each in answer["Entries"]]


def _entry(event: Outgoing) -> dict[str, Any]:
    return {
        "EventBusName": settings().event_bus_arn,
        "Source": settings().event_source,
        "DetailType": event.body["name"],
        "Detail": event.text(),
        "Time": event.body["ts"] / 1000,
    }


def _read(entry: dict[str, Any]) -> Refusal | None:
    code = entry.get("ErrorCode")
    if not code:
        return None
    return refused(code, str(entry.get("ErrorMessage", code)), content=code in _CONTENT_OF_ENTRY)
