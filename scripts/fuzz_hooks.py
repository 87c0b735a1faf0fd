"""What Schemathesis is told of this API (see fuzz.py): how calls are signed, and what is there."""

import os
from typing import Any

import requests
import schemathesis
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

# Made-up names lead to nothing: about half of them become such as lead on.
KNOWN = {"/workflows/{id}": "place-order", "/instances/{id}": "fuzzed"}
_SIGNATURE = ("Authorization", "X-Amz-Date")


class Signature(requests.auth.AuthBase):
    """Signs a call as the local stack's administrator."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Sign a call that is ready to be sent."""
        for name in _SIGNATURE:  # made up, as the description names such a header
            request.headers.pop(name, None)
        signed = AWSRequest(request.method, request.url, data=request.body or b"")
        credentials = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        SigV4Auth(credentials, "execute-api", os.environ["AWS_REGION"]).add_auth(signed)
        for name in _SIGNATURE:
            request.headers[name] = signed.headers[name]
        return request


schemathesis.auth.set_from_requests(Signature())


@schemathesis.check
def is_let_in(
    context: schemathesis.CheckContext,  # noqa: ARG001 - as checks are called
    response: schemathesis.Response,
    case: schemathesis.Case,  # noqa: ARG001
) -> None:
    """Fail for a call that API Gateway has kept away from the API: it tests nothing.

    OPTIONS it answers itself: no other origin is let in.
    """
    if response.request.method == "OPTIONS":
        return
    assert response.status_code not in (401, 403), "the signature was not taken"  # noqa: S101


@schemathesis.hook
def map_path_parameters(
    context: schemathesis.HookContext, path_parameters: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Name what is there in about half of the calls."""
    for start, name in KNOWN.items():
        given = (path_parameters or {}).get("id")
        if path_parameters and context.operation.path.startswith(start) and len(str(given)) % 2:
            return {**path_parameters, "id": name}
    return path_parameters
