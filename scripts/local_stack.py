"""The whole stack, deployed on this machine: for `make local`, the demo, and the end-to-end tests.

with deployed(port=4570, parameters={"EagerDelivery": "false"}) as stack:
    answer = stack.request("POST", "/workflows/place-order/dispatch", {"input": {...}})
"""

import contextlib
import http.client
import json
import os
import signal
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.session import Session, get_session

from scripts.emulator import ACCESS_KEY, REGION, SECRET_KEY, Emulator, client_environment
from scripts.local_build import DATA_PATH, PYTHON_RUNTIME, TOOLS, built, run_tool

LOG_PAGE = 10_000  # lines that CloudWatch gives at once
STACK_NAME = "aftercommit"
BUCKET = "aftercommit-artefacts"
EMULATOR_POLICY = "emulator"
FUNCTIONS = ("api", "run", "deliver", "events", "sweep", "publish")

Say = Callable[[str], None]


def say_nothing(_message: str) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Answer:
    """What the HTTP API answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the decoded body; raises ValueError if it is no JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Stack:
    """A deployed stack. Safe to share between threads."""

    emulator: Emulator
    outputs: Mapping[str, str]
    api_url: str
    _session: Session = field(repr=False)
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def endpoint_url(self) -> str:
        """Address of the emulated AWS services."""
        return self.emulator.endpoint_url

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead the AWS clients of another process to this stack, as its administrator."""
        return client_environment(self.emulator.port)

    def client(self, service: str) -> Any:
        """Return the botocore client of a service, as the administrator."""
        # Clients may be shared between threads; making them may not be.
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._session.create_client(
                    service,
                    region_name=REGION,
                    endpoint_url=self.endpoint_url,
                    aws_access_key_id=ACCESS_KEY,
                    aws_secret_access_key=SECRET_KEY,
                    config=Config(max_pool_connections=50),
                )
            return self._clients[service]

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        signed: bool = True,
    ) -> Answer:
        """Call the HTTP API, signed as the administrator.

        `path` starts with a slash and may have a query; `body` is sent as JSON, or as it is if it is bytes.
        """
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        request = AWSRequest(method, self.api_url + path, dict(headers or {}), data)
        if data and "Content-Type" not in request.headers:
            request.headers["Content-Type"] = "application/json"
        if signed:
            SigV4Auth(Credentials(ACCESS_KEY, SECRET_KEY), "execute-api", REGION).add_auth(request)
        url = urllib.parse.urlsplit(self.api_url + path)
        connection = http.client.HTTPConnection(url.netloc, timeout=40)
        with contextlib.closing(connection):
            connection.request(
                method, url.path + (f"?{url.query}" if url.query else ""), data, dict(request.headers)
            )
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())

    def function_name(self, function: str) -> str:
        """Return the deployed name of one of FUNCTIONS."""
        return self.outputs[f"{function.capitalize()}Function"]

    def invoke(self, function: str, event: object) -> Any:
        """Invoke one of FUNCTIONS and return its result; raises RuntimeError with the fault it raised."""
        answer = self.client("lambda").invoke(
            FunctionName=self.function_name(function), Payload=json.dumps(event).encode()
        )
        payload = answer["Payload"].read()
        if "FunctionError" in answer:
            raise RuntimeError(f"{function} failed: {payload.decode(errors='replace')}")
        return json.loads(payload) if payload else None

    def worker_pids(self, function: str) -> list[int]:
        """Return the processes that run one of FUNCTIONS at this moment, busy or idle."""
        return self.emulator.worker_pids(self.function_name(function))

    def kill_worker(self, function: str, pid: int) -> bool:
        """Kill a worker as a crashed sandbox would die; tells whether it was still there."""
        if pid not in self.worker_pids(function):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def logs(self, function: str, pattern: str = "") -> list[str]:
        """Return what one of FUNCTIONS has logged, oldest first; only lines with `pattern`, if given."""
        client = self.client("logs")
        group = f"/aws/lambda/{STACK_NAME}-{function}"
        lines: list[str] = []
        since, read = 0, 0  # the instant to read from, and how many lines of it were read before
        while True:
            # The emulator gives no token to go on from, so the next page begins where this one ends.
            events = client.filter_log_events(logGroupName=group, startTime=since)["events"]
            lines += [event["message"] for event in events[read:] if pattern in event["message"]]
            if len(events) < LOG_PAGE or events[-1]["timestamp"] == since:
                return lines
            since = events[-1]["timestamp"]
            read = sum(event["timestamp"] == since for event in events)

    def describe_failures(self) -> str:
        """Return the warnings and errors of the emulator itself, to explain a test that failed."""
        lines = self.emulator.log_path.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if " WARNING " in line or " ERROR " in line)


@contextlib.contextmanager
def deployed(
    *,
    port: int = 4566,
    parameters: Mapping[str, str] | None = None,
    workflows_dir: Path | None = None,
    environment: Mapping[str, str] | None = None,
    noting: bool = False,
    say: Say = say_nothing,
) -> Iterator[Stack]:
    """Start an emulator, build and deploy into it, and end everything when the context closes.

    `parameters` are the template's; `environment` is added to that of the emulator, and so reaches every
    function; `workflows_dir` holds a user's own workflows package, in place of the example. With `noting` the
    emulator keeps what it allows and refuses.
    """
    emulator = Emulator(port, {"AWS_DATA_PATH": str(DATA_PATH), **(environment or {})}, noting=noting)
    with contextlib.ExitStack() as running:
        with _step(say, f"Starting the AWS emulator on port {port}"):
            running.enter_context(emulator)
        # The emulator loads each service at its first call: it may do so while the build runs.
        preparing = running.enter_context(ThreadPoolExecutor()).submit(_prepare, emulator)
        # Builds of the same sources wait for each other, and for the deploy that reads them.
        with contextlib.ExitStack() as building:
            with _step(say, "Building functions and layers (sam build)") as note:
                folder, fresh = building.enter_context(built(workflows_dir))
                if not fresh:
                    note("unchanged since the last build")
            with _step(say, "Deploying (sam deploy)"):
                preparing.result()
                deploy(folder / "lean", port, parameters)
        stack = _describe(emulator)
        _allow_batches(stack)
        _allow_http(stack)
        yield stack


def _prepare(emulator: Emulator) -> None:
    stack = Stack(emulator, {}, "", get_session())
    # A bucket for the artefacts; sam's --resolve-s3 would deploy a stack of its own for it.
    stack.client("s3").create_bucket(Bucket=BUCKET)
    stack.client("cloudformation").list_stacks()


def deploy(folder: Path, port: int, parameters: Mapping[str, str] | None = None) -> None:
    """Deploy a build (its folder `lean`) into the emulator of a port, anew or over what is there."""
    overrides = {"PythonRuntime": PYTHON_RUNTIME, **(parameters or {})}
    run_tool(
        [
            TOOLS / "sam",
            "deploy",
            "--template-file",
            folder / "template.yaml",
            "--stack-name",
            STACK_NAME,
            "--s3-bucket",
            BUCKET,
            "--capabilities",
            "CAPABILITY_IAM",
            "--no-confirm-changeset",
            "--no-progressbar",
            "--parameter-overrides",
            *(f"{name}={value}" for name, value in overrides.items()),
        ],
        # Away from samconfig.toml, which is for real accounts.
        folder,
        # It asks each 5 seconds by default, several times over.
        client_environment(port) | {"SAM_CLI_POLL_DELAY": "0.3"},
    )


def _allow_batches(stack: Stack) -> None:
    """Let events be claimed and recorded in batches.

    AWS authorises each statement of a batch by what it does, as the template says (PartiQLUpdate). The
    emulator asks for the request's own name instead, of no table in particular.
    """
    found = stack.client("cloudformation").describe_stack_resource(
        StackName=STACK_NAME, LogicalResourceId="EventsRole"
    )
    allowed = {"Effect": "Allow", "Action": "dynamodb:BatchExecuteStatement", "Resource": "*"}
    stack.client("iam").put_role_policy(
        RoleName=found["StackResourceDetail"]["PhysicalResourceId"],
        PolicyName=EMULATOR_POLICY,
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}),
    )


def _allow_http(stack: Stack) -> None:
    """Let the bucket of payloads be used: its policy refuses plain HTTP, all that the emulator has."""
    stack.client("s3").delete_bucket_policy(Bucket=stack.outputs["PayloadBucket"])


def _describe(emulator: Emulator) -> Stack:
    session = get_session()
    answer = Stack(emulator, {}, "", session).client("cloudformation").describe_stacks(StackName=STACK_NAME)
    outputs = {output["OutputKey"]: output["OutputValue"] for output in answer["Stacks"][0]["Outputs"]}
    return Stack(emulator, outputs, f"{emulator.endpoint_url}/_aws/execute-api/{outputs['ApiId']}", session)


@contextlib.contextmanager
def _step(say: Say, what: str) -> Iterator[Say]:
    started = time.monotonic()
    notes: list[str] = []
    say(f"{what} ...")
    yield notes.append
    remark = f", {notes[0]}" if notes else ""
    say(f"  done in {time.monotonic() - started:.1f} s{remark}")
