"""Workflows that hand on more than a row can hold, and what of it lies in the bucket."""

from aftercommit import (
    DispatchWorkflow,
    Sequence,
    SetVariable,
    Step,
    Workflow,
    aws,
    inputs,
    var,
)
from aftercommit.settings import settings
from tests.integration.world import raw_rows

BUCKET = "their-payloads"
LARGE = "ä" * 500_000  # a million bytes
DAY_SECONDS = 86_400

child = Workflow(
    "child",
    inputs={"text": str},
    root=Step("act", name="below", value=inputs.text, result="made"),
    output={"made": var.made},
)
parent = Workflow(
    "parent",
    inputs={"text": str},
    root=Sequence(
        Step("act", name="first", value=inputs.text, result="made"),
        SetVariable("made", "gone again"),
        DispatchWorkflow("child", input={"text": inputs.text}, wait=True, result="child"),
        Step("act", name="last"),
    ),
    output=var.child.made,
)
one = Workflow("one", inputs={"text": str}, root=Step("act", name="only", result="made"), output=var.made)
waiting = Workflow(
    "waiting", inputs={"text": str}, root=DispatchWorkflow("child", input={"text": "small"}, wait=True)
)


def objects():
    found = aws.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return sorted(each["Key"] for each in found)


def announcements():
    return [row for row in raw_rows(settings().instances_table) if row["row"]["S"].startswith("payloads#")]


def overdue():
    return [row for row in announcements() if "due_at" in row]
