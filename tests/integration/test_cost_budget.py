"""What the main job costs is held down, too: a row that slips over a KB fails here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


TRACED = {
    "TRACING": "true",
    "_X_AMZN_TRACE_ID": "Root=1-6b0d9af3-0123456789abcdef01234567;Parent=53995c3f42cd8ad8;Sampled=1",
}


@pytest.mark.parametrize("environment", [{}, TRACED], ids=["untraced", "traced"])
def test_an_awaited_child_stays_within_its_budget_of_requests_and_units(environment):
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--budget"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
