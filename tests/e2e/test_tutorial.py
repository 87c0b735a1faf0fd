"""docs/tutorial.md, followed by a reader who believes it: files written, commands given, outputs compared.

AWS is the emulator, so the account is what part 5 of the page calls "without an AWS account".
"""

import os
import re
import subprocess
import sys

from scripts.emulator import ROOT, clean_environment
from scripts.local_build import TOOLS
from tests.e2e.conftest import await_that
from tests.pages import DOCS, blocks_of, prints

PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")
# What these print changes with time, and asking again changes nothing.
ASKING = ("workflows", "get", "watch", "list", "incidents", "dispatches", "dead-letters", "outbox", "doctor")
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
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert not re.search(r"^(Traceback|Error:|Build Failed)", ran.stdout, re.MULTILINE), ran.stdout
        return ran.stdout

    def write(self, path, text):
        """Write a file of the project, for the Python that is at hand."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (self.folder / STACK_NAME / path).write_text(text.replace("python3.13", version), encoding="utf-8")

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
    given = printed = ""
    for block in blocks_of(PAGE):
        if block.path:
            reader.write(block.path, block.text)
        elif block.kind == "sh":
            given, printed = block.text, reader.give(block.text)
            if "sam deploy" in given:
                reader.find_api()
        elif block.kind == "text":
            seen = [printed]

            def as_told(block=block, given=given, seen=seen):
                if prints(block.text, seen[-1]):
                    return True
                if not only_asks(given):
                    raise AssertionError(f"$ {given}\nprinted\n{seen[-1]}\nand not\n{block.text}")
                seen.append(reader.give(given))
                return False

            await_that(
                as_told,
                explain=lambda g=given, s=seen, b=block: f"$ {g}\nprinted\n{s[-1]}\nand not\n{b.text}",
            )
