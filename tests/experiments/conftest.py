"""Makes the methods for tests importable, here and in worker processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# No tests, and imported under their plain names only.
collect_ignore = ["helpers"]

HELPERS = Path(__file__).parent / "helpers"

if str(HELPERS) not in sys.path:
    sys.path.insert(0, str(HELPERS))


@pytest.fixture
def log(tmp_path, monkeypatch) -> Path:
    """Give the file to which the methods for tests write a line at every fit."""
    path = tmp_path / "executions.log"
    path.touch()
    monkeypatch.setenv("LEMLL_TEST_LOG", str(path))
    monkeypatch.setenv("LEMLL_TEST_ONCE", str(tmp_path / "once"))
    return path
