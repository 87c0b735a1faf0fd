"""The workflows in process: no AWS, and time is skipped."""

from aftercommit import direct
from workflows import greet, write_greeting


def test_a_greeting_is_composed_and_written_down():
    result = direct.run(greet, {"name": "Ada"}, workflows=[write_greeting])
    assert result.status == "completed"
    assert result.output == {"greeting": "Hello, Ada!"}
    assert [child.definition_id for child in result.children] == ["write-greeting"]


def test_writing_is_tried_again():
    def fail_once(text, context):
        if context.attempt == 1:
            raise ConnectionError("no answer")
        return {"text": text}

    result = direct.run(
        greet, {"name": "Ada"}, workflows=[write_greeting], activities={"write_down": fail_once}
    )
    assert result.output == {"greeting": "Hello, Ada!"}
