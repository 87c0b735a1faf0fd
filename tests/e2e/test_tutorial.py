"""docs/tutorial.md, followed by a reader who believes it: files written, commands given, outputs compared.

AWS is the emulator, so the account is what part 5 of the page calls "without an AWS account".
"""

import os
import re
import subprocess
import sys

from scripts.emulator import ROOT, clean_environment
from scripts.local_build import TOOLS
from tests.e2e.conftest import PATIENCE_SECONDS, await_that
from tests.pages import ASKING, DOCS, blocks_of, prints

PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")
STACK_NAME = "my-shop"


class Reader:
    """A shell that keeps its folder and its variables from block to block, in a folder of its own."""

    def __init__(self, folder, stack):
        self.stack = stack
        self.folder = folder
        self.state = folder / "state"
        # sam builds with the first Python there is, which must have pip; that of .venv has none.
        path = os.pathsep.join([str(TOOLS), str(ROOT / ".venv/bin"), os.environ["PATH"]])
        self.environment = {
            **clean_environment(),
            **stack.environment,
            "PATH": path,
            "SAM_CLI_POLL_DELAY": "0.3",
            "COLUMNS": "160",
        }
        self.state.write_text("")

    def give(self, commands):
        """Give commands, and return what they print; questions are answered with yes."""
        script = f". {self.state}\n{commands}\n(export -p; echo cd \"'$PWD'\") > {self.state}\n"
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            input="y\n" * 20,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        said = ran.stdout + ran.stderr
        assert not re.search(r"^(Traceback|Error:|Build Failed)", said, re.MULTILINE), said
        return ran.stdout

    def write(self, block):
        """Write or change a file of the project, for the Python that is at hand."""
        path = self.folder / STACK_NAME / block.path
        text = block.applied_to(path.read_text(encoding="utf-8") if path.exists() else "")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        path.write_text(text.replace("python3.13", version), encoding="utf-8")

    def find_api(self):
        """Take the API's address from the outputs of the stack, once it is deployed."""
        found = self.stack.client("cloudformation").describe_stacks(StackName=STACK_NAME)["Stacks"][0]
        assert found["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), found
        outputs = {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}
        address = f"{self.stack.endpoint_url}/_aws/execute-api/{outputs['ApiId']}"
        self.environment["AFTERCOMMIT_API_URL"] = address


def only_asks(commands):
    return all(
        line.startswith("aftercommit ") and line.split()[1] in ASKING
        for line in commands.strip().splitlines()
    )


def test_the_tutorial_does_what_it_says(stack, tmp_path):
    reader = Reader(tmp_path, stack)
    given, printed = "", [""]
    for block in blocks_of(PAGE):
        if block.path:
            reader.write(block)
        elif block.kind == "sh":
            given, printed = block.text, [reader.give(block.text)]
            if "sam deploy" in given:
                reader.find_api()
        elif block.kind == "text":
            await_that(
                lambda expected=block.text, given=given, printed=printed: (
                    prints(expected, printed[-1]) or (only_asks(given) and printed.append(reader.give(given)))
                ),
                seconds=PATIENCE_SECONDS if only_asks(given) else 0.1,
                explain=lambda expected=block.text, given=given, printed=printed: (
                    f"$ {given}\nprinted\n{printed[-1]}\nand not\n{expected}"
                ),
            )
