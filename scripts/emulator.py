"""The AWS emulator as a process of this machine: start it, see its Lambda workers, end all of it.

It listens on 127.0.0.1 only, enforces IAM, and keeps its state in memory and in a temporary folder,
so every start is a fresh account. Its workers are processes of their own, in its process group.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".tools/emulator/bin/python"
NOTING = ROOT / "scripts/authorisations.py"

REGION = "us-east-1"
# The emulator's administrator. Its account is fictitious, and so are these.
ACCESS_KEY = "test"
SECRET_KEY = "test"  # noqa: S105

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 10
MEMORY_FOLDER_BYTES_MIN = 2 * 1024**3


class EmulatorError(Exception):
    """The emulator could not be started or ended."""


@dataclass(frozen=True)
class Process:
    """A running process, as far as it matters here."""

    pid: int
    group: int
    command: str


@dataclass(frozen=True)
class Authorisation:
    """What the emulator answered when a principal asked for an action on a resource (ARNs, or * for none)."""

    principal: str
    action: str
    resource: str
    allowed: bool


def clean_environment() -> dict[str, str]:
    """Return this process's environment without anything that leads to a real AWS account."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SAM_"))}
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    for name in ("no_proxy", "NO_PROXY"):
        environment[name] = "127.0.0.1,localhost"
    return environment


def client_environment(port: int) -> dict[str, str]:
    """Return the variables that lead AWS clients to the emulator, and nowhere else."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": REGION,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "SAM_CLI_TELEMETRY": "0",
    }


def processes() -> Iterator[Process]:
    """List the processes of this machine; from /proc where there is one, since `ps` may be missing."""
    proc = Path("/proc")
    if (proc / "self/stat").exists():
        for folder in proc.iterdir():
            # A process may end while it is being read.
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The command's name is in parentheses and may hold anything; state, parent, group follow it.
                after_name = (folder / "stat").read_text().rpartition(")")[2].split()
                if after_name[0] != "Z":
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    yield Process(int(folder.name), int(after_name[2]), command)
        return
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat=,command="], capture_output=True, text=True, check=True
    )
    for line in listing.stdout.splitlines():
        pid, group, state, arguments = line.split(maxsplit=3)
        if not state.startswith("Z"):
            yield Process(int(pid), int(group), arguments)


def _memory_folder() -> str | None:
    """Return a folder in memory, or None: each worker unpacks 1,500 files, which a disk takes seconds for."""
    folder = "/dev/shm"  # noqa: S108 - only the parent of a folder with a random name
    try:
        system = os.statvfs(folder)
    except OSError:
        return None
    roomy = system.f_bavail * system.f_frsize >= MEMORY_FOLDER_BYTES_MIN
    # Compiled dependencies of a user's workflows could not be loaded from a file system without programs.
    return folder if roomy and not system.f_flag & os.ST_NOEXEC else None


class Emulator:
    """A running emulator; a context manager that leaves no process and no file behind.

    With `noting` it keeps what it allows and refuses, for `authorisations`.
    """

    def __init__(
        self, port: int, environment: Mapping[str, str] | None = None, *, noting: bool = False
    ) -> None:
        self.port = port
        self._program = [NOTING] if noting else ["-m", "ministack"]
        self.endpoint_url = f"http://127.0.0.1:{port}"
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self._refuse_taken_port()
        self._folder = tempfile.TemporaryDirectory(
            prefix="aftercommit-local-", dir=_memory_folder(), ignore_cleanup_errors=True
        )
        folder = Path(self._folder.name)
        for name in ("tmp", "s3", "state"):
            (folder / name).mkdir()
        environment = clean_environment() | {
            "AUTH": "true",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_REGION": REGION,
            "PERSIST_STATE": "0",
            "S3_DATA_DIR": str(folder / "s3"),
            "STATE_DIR": str(folder / "state"),
            "TMPDIR": str(folder / "tmp"),
            "AUTHORISATIONS_FILE": str(self._authorisations_path),
            **self._environment,
        }
        try:
            with self.log_path.open("wb") as log:
                self._process = subprocess.Popen(
                    [PYTHON, *self._program],
                    env=environment,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # A group of its own: one signal ends it with all its workers, and Ctrl-C does not.
                    start_new_session=True,
                )
            self._await_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def log_path(self) -> Path:
        """The emulator's own log, which dies with it."""
        if self._folder is None:
            raise EmulatorError("the emulator is not running")
        return Path(self._folder.name) / "emulator.log"

    @property
    def _authorisations_path(self) -> Path:
        return self.log_path.with_name("authorisations.jsonl")

    def authorisations(self) -> set[Authorisation]:
        """Return what was allowed and refused so far, each once; empty unless the emulator is `noting`."""
        if not self._authorisations_path.exists():
            return set()
        lines = self._authorisations_path.read_text(encoding="utf-8").splitlines()
        return {Authorisation(*json.loads(line)) for line in lines}

    def is_running(self) -> bool:
        """Tell whether the emulator's own process lives."""
        return self._process is not None and self._process.poll() is None

    def worker_pids(self, function_name: str) -> list[int]:
        """Return the processes in which a deployed function runs at this moment, busy or idle."""
        mark = f"/ministack-lambda-{function_name}-"
        return [process.pid for process in self._group() if mark in process.command]

    def _group(self) -> list[Process]:
        if self._process is None:
            return []
        return [process for process in processes() if process.group == self._process.pid]

    def _refuse_taken_port(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError as error:
                raise EmulatorError(
                    f"port {self.port} is taken by another program; choose another with PORT=..."
                ) from error

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if not self.is_running():
                break
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.endpoint_url}/_ministack/health", timeout=2),
            ):
                return
            time.sleep(0.1)
        raise EmulatorError(
            f"the emulator did not start:\n{self.log_path.read_text(errors='replace')[-4000:]}"
        )

    def _stop(self) -> None:
        if self._process is not None:
            # Killed at once: all that it holds is in memory and in the temporary folder.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._await_empty_group()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _await_empty_group(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS_MAX
        # The emulator itself is reaped here, or it would stay in its group as a zombie.
        while self.is_running() or self._group():
            if time.monotonic() > deadline:
                raise EmulatorError(f"these processes could not be ended: {self._group()}")
            time.sleep(0.02)
