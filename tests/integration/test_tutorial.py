"""docs/tutorial.md, followed by a reader who believes it: files written, commands given, outputs compared.

The commands of the program go to the API's handler; deploying is publishing what the project's package holds.
tests/e2e/test_tutorial.py gives the same commands to a shell, and deploys with SAM.
"""

import importlib
import os
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from aftercommit import functions
from aftercommit.publish import publish_workflows
from aftercommit_cli.program import COMMANDS, program
from tests.cli.runs import Runs
from tests.integration.handlers import Api
from tests.integration.template import load_template
from tests.pages import ASKING, DOCS, blocks_of, commands_of, prints

PAGE = (DOCS / "tutorial.md").read_text(encoding="utf-8")
STARTER = DOCS.parent / "cli/aftercommit_cli/starter"
STACK_NAME = "my-shop"
ROUNDS_MAX = 60  # two minutes of the simulated time
SECONDS_PER_ROUND = 2
WIDTH = "120"


def is_metric(line):
    """Tell whether a line is one that the handlers, which run in this process here, have printed."""
    return line.startswith('{"_aws"')


def serve(api):
    """Return a server that hands requests to the API's handler, as API Gateway would."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            url = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            query = dict(parse_qsl(url.query)) or None
            found = api.raw(self.command, url.path, text or None, query=query, headers=headers)
            self.send_response(found["statusCode"])
            self.end_headers()
            self.wfile.write(found["body"].encode())

        do_GET = do_POST = answer  # noqa: N815 - as http.server calls them

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


class Reader:
    """Does what the page says in a folder of its own, and lets time go on when it has to wait."""

    def __init__(self, world, set_environment, monkeypatch, address):
        self.world = world
        self.set_environment = set_environment
        self.monkeypatch = monkeypatch
        self.run = Runs(address)

    def give(self, commands):
        """Give the commands of a block, and return what they print together."""
        return "".join(self.give_one(line) for line in commands.replace("\\\n", " ").splitlines())

    def give_one(self, line):
        words = shlex.split(line)
        if words[0] == "aftercommit":
            # What waits for time is looked at again; see `await_that_it_prints`.
            waits = ["--timeout", "0"] if words[1] == "watch" and "--timeout" not in words else []
            now = [
                "0" if before == "--timeout" else word
                for before, word in zip(["", *words], words, strict=False)
            ]
            ran = self.run(*now[1:], *waits, COLUMNS=WIDTH)
            assert ran.exit_code in (0, 6), ran.stderr
            return "".join(line for line in ran.stdout.splitlines(keepends=True) if not is_metric(line))
        if words[0] == "cd":
            os.chdir(words[1])
        elif words[0] == "rm":
            for each in words[1:]:
                Path(each).unlink()
        elif words[0] == "pytest":
            return self.run_its_tests(*words[1:])
        elif words[:2] == ["sam", "deploy"]:
            self.deploy()
        else:
            assert words[:2] == ["sam", "build"] or words[0] == "export", line
        return ""

    def run_its_tests(self, *options):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    def deploy(self):
        """Publish the project's workflows, with the settings of its samconfig.toml, and forget old code."""
        overrides = tomllib.loads(Path("samconfig.toml").read_text())["default"]["global"]["parameters"]
        given = dict(word.split("=") for word in overrides["parameter_overrides"].split())
        self.set_environment(STIMULUS_OPEN_SECONDS=given["StimulusOpenSeconds"])
        self.monkeypatch.setattr(functions, "_registered", built_in())
        forget_workflows()
        publish_workflows("workflows")

    def await_that_it_prints(self, expected, commands, printed):
        for _ in range(ROUNDS_MAX):
            if prints(expected, printed):
                return
            if not all(
                line.split()[:1] == ["aftercommit"] and line.split()[1] in ASKING
                for line in commands.splitlines()
            ):
                break
            self.world.settle(seconds=SECONDS_PER_ROUND)
            self.world.clock.at += SECONDS_PER_ROUND
            printed = self.give(commands)
        raise AssertionError(f"$ {commands}\nprinted\n{printed}\nand not\n{expected}")


def built_in():
    """Return the activity functions that a fresh process knows."""
    return {name: each for name, each in functions._registered.items() if each.built_in}


def forget_workflows():
    for name in [each for each in sys.modules if each.partition(".")[0] == "workflows"]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def reader(world, set_environment, monkeypatch, tmp_path):
    before = {name: each for name, each in sys.modules.items() if name.partition(".")[0] == "workflows"}
    monkeypatch.setattr(functions, "_registered", built_in())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / STACK_NAME / "layers/workflows")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two versions of a file may be of one second
    server = serve(Api())
    yield Reader(world, set_environment, monkeypatch, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    forget_workflows()
    sys.modules.update(before)


def test_the_tutorial_does_what_it_says(reader):
    commands = printed = ""
    for block in blocks_of(PAGE):
        if block.path:
            path = Path(block.path)
            path.write_text(block.applied_to(path.read_text() if path.exists() else ""), encoding="utf-8")
            shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        elif block.kind == "sh":
            commands, printed = block.text, reader.give(block.text)
        elif block.kind == "text":
            reader.await_that_it_prints(block.text, commands, printed)


def test_every_block_of_a_file_says_of_which():
    assert [
        each.text for each in blocks_of(PAGE) if each.kind in ("py", "toml", "diff") and not each.path
    ] == []


@pytest.mark.parametrize("command", list(commands_of(PAGE, "aftercommit")))
def test_a_command_of_the_program_can_be_given(command):
    words = shlex.split(command)
    words = words[words.index("aftercommit") + 1 :]
    [known] = [each for each in COMMANDS if each.name == words[0]]
    context = known.make_context(words[0], words[1:], parent=program.make_context("aftercommit", ["x"]))
    assert context.params is not None


def test_every_target_of_make_exists():
    targets = {each.split("make ")[1].split()[0] for each in commands_of(PAGE, "make")}
    makefile = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [each for each in targets if f"\n{each}:" not in makefile] == []


@pytest.mark.parametrize("environment_name", ["default", "prod"])
def test_parameters_of_the_samconfig_are_those_of_the_template(environment_name):
    [text] = [each.text for each in blocks_of(PAGE) if each.path == "samconfig.toml"]
    settings = tomllib.loads(text)[environment_name]
    declared = load_template()["Parameters"]
    for word in settings["global"]["parameters"]["parameter_overrides"].split():
        name, _, value = word.partition("=")
        assert value in [str(each) for each in declared[name].get("AllowedValues", [value])], word
    assert settings["deploy"]["parameters"]["capabilities"] == "CAPABILITY_IAM"


def test_the_stack_to_rely_on_is_the_one_that_init_writes():
    [text] = [each.text for each in blocks_of(PAGE) if each.path == "samconfig.toml"]
    written = (STARTER / "samconfig.toml").read_text(encoding="utf-8")
    written = written.replace("STACK_NAME", STACK_NAME).replace("PYTHON_VERSION", "3.13")
    assert tomllib.loads(text)["prod"] == tomllib.loads(written)["prod"]
