"""The AWS side of a call: profile, region, credentials and clients, all as the AWS CLI finds them."""

import re
import urllib.parse
from functools import cached_property
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
)
from botocore.exceptions import (
    ConnectionError as NotConnectedError,
)
from botocore.session import Session

from aftercommit_cli.errors import ProblemError, UnreachableError, UsageProblemError

SERVICE = "execute-api"
_HOST = re.compile(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$")
_CONFIG = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3})


class Account:
    """An AWS account, as a profile or the environment gives it."""

    def __init__(self, profile: str | None, region: str | None) -> None:
        self._profile = profile
        self._region = region
        self._clients: dict[str, Any] = {}

    @cached_property
    def _session(self) -> Session:
        try:
            session = Session(profile=self._profile)
            session.get_scoped_config()  # an unknown profile fails here, and not in the middle of something
        except BotoCoreError as error:
            raise explain(error) from error
        if self._region:
            session.set_config_variable("region", self._region)
        return session

    @property
    def ca_bundle(self) -> str | None:
        """The certificates that the AWS settings name, if any."""
        bundle: str | None = self._session.get_config_variable("ca_bundle")
        return bundle

    def client(self, service: str) -> Any:
        """Return the client of a service; raises ProblemError."""
        if service not in self._clients:
            try:
                self._clients[service] = self._session.create_client(service, config=_CONFIG)
            except (BotoCoreError, ValueError) as error:
                raise explain(error) from error
        return self._clients[service]

    def outputs(self, stack: str) -> dict[str, str]:
        """Return the outputs of a stack; raises ProblemError."""
        try:
            answer = self.client("cloudformation").describe_stacks(StackName=stack)
        except (BotoCoreError, ClientError) as error:
            raise explain(error, f"stack {stack}") from error
        found = answer["Stacks"][0].get("Outputs", [])
        return {output["OutputKey"]: output["OutputValue"] for output in found}

    def sign(self, request: AWSRequest) -> None:
        """Sign a request to the API; raises ProblemError."""
        host = urllib.parse.urlsplit(str(request.url)).hostname or ""
        named = _HOST.search(host)
        region = self._region or (named[1] if named else self._session.get_config_variable("region"))
        if not region:
            raise explain(NoRegionError())
        try:
            credentials = self._session.get_credentials()
            if credentials is None:
                raise NoCredentialsError
            SigV4Auth(credentials, SERVICE, region).add_auth(request)
        except BotoCoreError as error:
            raise explain(error) from error


def explain(error: Exception, about: str = "AWS") -> ProblemError:
    """Return the problem that an error of AWS, or of its settings, means for a command."""
    if isinstance(error, ClientError):
        told = error.response.get("Error", {})
        return ProblemError(f"{about}: {told.get('Message') or error} ({told.get('Code', 'Unknown')})")
    if isinstance(error, (HTTPClientError, NotConnectedError)):
        return UnreachableError(f"{about}: {error}")
    if isinstance(error, NoCredentialsError):
        return UsageProblemError(
            "no AWS credentials: name a --profile, or log in as for the AWS CLI; with --token none are needed"
        )
    if isinstance(error, NoRegionError):
        return UsageProblemError("no AWS region: name a --region, or set AWS_REGION")
    return UsageProblemError(f"{about}: {error}")
