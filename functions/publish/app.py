"""publish: a CloudFormation custom resource that publishes a deploy's definitions, after its functions."""

import json
import urllib.request
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from aftercommit.log import logger, tell_failure
from aftercommit.publish import publish_workflows
from aftercommit.settings import settings

_REASON_CHARACTERS_MAX = 1_000


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Publish on create and update; CloudFormation learns why if it cannot be done, and rolls back."""
    status, reason = "SUCCESS", ""
    try:
        if event["RequestType"] != "Delete":  # instances outlive the stack, and need their definitions
            publish_workflows(settings().workflows_module)
    except Exception as error:  # noqa: BLE001 - CloudFormation waits for an answer, whatever happened
        # Here the text may be told, too: it speaks of definitions and settings, there are no inputs yet.
        status, reason = "FAILED", f"{type(error).__name__}: {error}"[:_REASON_CHARACTERS_MAX]
        tell_failure("not published", error, reason=reason)
    _answer(event, status, reason)


def _answer(event: dict[str, Any], status: str, reason: str) -> None:
    answer = {
        "Status": status,
        "Reason": reason,
        "PhysicalResourceId": "published-definitions",
        **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")},
    }
    request = urllib.request.Request(  # noqa: S310 - CloudFormation's own presigned address
        event["ResponseURL"], json.dumps(answer).encode(), method="PUT", headers={"Content-Type": ""}
    )
    urllib.request.urlopen(request, timeout=20).close()  # noqa: S310
