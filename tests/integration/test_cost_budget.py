"""What the main job costs is held down, too: a row that slips over a KB fails here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_an_awaited_child_stays_within_its_budget_of_requests_and_units():
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--budget"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
