"""Built functions as Lambda's own Runtime Interface Emulator serves them: it starts each with Lambda's own
runtime client, which finds the artefact and the layers, and nothing else that is installed here."""

import contextlib
import json
import os
import platform
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from scripts.emulator import ROOT, clean_environment
from tests.e2e.conftest import free_port

PYTHON = ROOT / ".tools/lambda/bin/python"
START_SECONDS_MAX = 60


def emulator_path():
    """Return the emulator that comes with the SAM CLI, for this machine's processor."""
    processor = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    packages = (ROOT / ".tools/sam/lib").glob("python3*/site-packages")
    [found] = [each / f"samcli/local/rapid/aws-lambda-rie-{processor}" for each in packages]
    return found


class Served:
    """One function, served until the context closes."""

    def __init__(self, built_folder: Path, function: str, variables, folder: Path, *, timeout_seconds=60):
        self.artefact = built_folder / f"{function.capitalize()}Function"
        layers = [built_folder / name / "python" for name in ("RuntimeLayer", "WorkflowsLayer")]
        self.log_path = folder / f"{function}-{timeout_seconds}.log"
        self.port = free_port()
        self.environment = {
            **clean_environment(),
            **variables,
            "AWS_LAMBDA_FUNCTION_NAME": function,
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_seconds),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
            "LAMBDA_TASK_ROOT": str(self.artefact),
            "POWERTOOLS_SERVICE_NAME": function,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTHONPATH": os.pathsep.join(str(each) for each in (self.artefact, *layers)),
        }

    def __enter__(self):
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    emulator_path(),
                    "--runtime-interface-emulator-address",
                    f"127.0.0.1:{self.port}",
                    "--runtime-api-address",
                    f"127.0.0.1:{free_port()}",
                    PYTHON,
                    "-m",
                    "awslambdaric",
                    "app.handler",
                ],
                cwd=self.artefact,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def invoke_raw(self, event):
        """Return what the emulator answers, as text."""
        deadline = time.monotonic() + START_SECONDS_MAX
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/2015-03-31/functions/function/invocations",
            json.dumps(event).encode(),
        )
        while True:
            try:
                with urllib.request.urlopen(request, timeout=120) as response:
                    return response.read().decode()
            except urllib.error.HTTPError as error:
                return error.read().decode()
            except OSError:
                assert time.monotonic() < deadline, f"not served: {self.log()}"
                assert self.process.poll() is None, self.log()
                time.sleep(0.1)

    def invoke(self, event):
        """Return the function's result; fails with its log if it raised."""
        text = self.invoke_raw(event)
        result = json.loads(text) if text else None
        assert not (isinstance(result, dict) and "errorType" in result), f"{text}\n{self.log()}"
        return result

    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:]
