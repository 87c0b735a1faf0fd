"""What every command has in common: which stack it talks to, as whom, and how it answers."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from botocore.awsrequest import AWSRequest

from aftercommit_cli.account import Account
from aftercommit_cli.api import Api
from aftercommit_cli.errors import UsageProblemError
from aftercommit_cli.output import Output

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass
class Call:
    """The options that all commands share, and what follows from them."""

    api_url: str | None = None
    stack: str | None = None
    tenant: str | None = None
    profile: str | None = None
    region: str | None = None
    token: str | None = None
    as_json: bool = False

    @functools.cached_property
    def account(self) -> Account:
        """The AWS account; asked for nothing until something needs it."""
        return Account(self.profile, self.region)

    @functools.cached_property
    def output(self) -> Output:
        """Where answers go."""
        return Output(as_json=self.as_json)

    @functools.cached_property
    def api(self) -> Api:
        """The HTTP API; raises UsageProblemError if nothing says where it is."""
        token = self.token or os.environ.get("AFTERCOMMIT_TOKEN")
        tenant = self.tenant or os.environ.get("AFTERCOMMIT_TENANT")

        def bear(request: AWSRequest) -> None:
            request.headers["Authorization"] = f"Bearer {token}"

        return Api(
            self._address(),
            bear if token else self.account.sign,
            {"X-Tenant-Id": tenant} if tenant else {},
            ca_bundle=self.account.ca_bundle,
            as_json=self.as_json,
        )

    def find_stack(self) -> str | None:
        """Return the stack that an option or the environment names."""
        return self.stack or os.environ.get("AFTERCOMMIT_STACK")

    def _address(self) -> str:
        # What the command line says comes before what the environment says, in whichever form.
        url = self.api_url or (None if self.stack else os.environ.get("AFTERCOMMIT_API_URL"))
        if url:
            if not url.startswith(("https://", "http://")):
                raise UsageProblemError(f"the API's address must begin with https:// (not {url!r})")
            return url
        stack = self.find_stack()
        if not stack:
            raise UsageProblemError(
                "which stack? Name it: --stack NAME or --api-url URL"
                " (or set AFTERCOMMIT_STACK or AFTERCOMMIT_API_URL)"
            )
        outputs = self.account.outputs(stack)
        if "ApiUrl" not in outputs:
            raise UsageProblemError(f"stack {stack} has no output ApiUrl; is it one of Aftercommit?")
        return outputs["ApiUrl"]


_OPTIONS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--stack",), {"metavar": "NAME", "help": "CloudFormation stack [env: AFTERCOMMIT_STACK]"}),
    (("--api-url",), {"metavar": "URL", "help": "Address of its API [env: AFTERCOMMIT_API_URL]"}),
    (("--tenant",), {"metavar": "ID", "help": "Tenant [env: AFTERCOMMIT_TENANT]"}),
    (("--profile",), {"metavar": "NAME", "help": "AWS profile [env: AWS_PROFILE]"}),
    (("--region",), {"metavar": "NAME", "help": "AWS region [env: AWS_REGION]"}),
    (("--token",), {"help": "Bearer token, instead of a signature [env: AFTERCOMMIT_TOKEN]"}),
    (("--json", "as_json"), {"is_flag": True, "default": None, "help": "Print JSON, as the API answers"}),
]


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep an option's value: a command's own comes after, and wins over, that of the whole program."""
    call = context.ensure_object(Call)
    if value is not None and parameter.name:
        setattr(call, parameter.name, value)


def with_options(function: _Function) -> _Function:
    """Add the shared options to a command or to the program: they may stand before or after its name."""
    for names, more in reversed(_OPTIONS):
        function = click.option(*names, expose_value=False, callback=_note, **more)(function)
    return function
