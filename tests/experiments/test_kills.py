"""Runners killed at random moments: nothing finished runs twice, nothing is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "helpers" / "kill_runs.py"


@pytest.mark.parametrize(
    ("few", "many", "workers"), [(5, 50, 0), (1, 6, 2)], ids=["in place", "two workers"]
)
def test_killed_at_random_moments_a_run_can_always_be_resumed(
    tmp_path, few, many, workers, nightly
):
    kills = many if nightly else few
    # One thread: the script forks, and threads of the linear algebra do not survive that.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(tmp_path), str(kills), "0", str(workers)]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=280
    )
    assert ended.returncode == 0, ended.stderr
    counts = json.loads(ended.stdout)
    assert counts["kills"] == kills
    assert counts["cells"] >= 40
