"""Runs of the command line in process."""

import inspect
import json

from click.testing import CliRunner

from aftercommit_cli.program import program

# Up to click 8.1 the two outputs are mixed unless told otherwise; later, there is nothing to tell.
_APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}


class Runs:
    """Runs commands against an address, in an environment of their own."""

    def __init__(self, address):
        self.environment = {
            "AFTERCOMMIT_API_URL": address,
            "AFTERCOMMIT_STACK": None,
            "AFTERCOMMIT_TENANT": None,
            "AFTERCOMMIT_TOKEN": None,
            "AFTERCOMMIT_DEBUG": None,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_SESSION_TOKEN": None,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_REGION": None,
            "AWS_PROFILE": None,
            "AWS_ENDPOINT_URL": None,
            "AWS_EC2_METADATA_DISABLED": "true",
            "COLUMNS": "80",
            "no_proxy": "127.0.0.1",
        }

    def __call__(self, *arguments, stdin=None, **environment):
        runner = CliRunner(**_APART)
        result = runner.invoke(
            program, [str(each) for each in arguments], input=stdin, env={**self.environment, **environment}
        )
        assert "Traceback" not in result.output
        return result

    def json(self, *arguments, **more):
        """Return what a command that succeeds prints with --json."""
        result = self(*arguments, "--json", **more)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)
