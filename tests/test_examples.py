"""The examples run, and show what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_every_example_is_tested():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == ["tags_in_a_frame.py"]


def test_tags_in_a_frame(capsys):
    pytest.importorskip("pandas")
    names = runpy.run_path(str(EXAMPLES / "tags_in_a_frame.py"))
    output = capsys.readouterr().out
    assert names["search"].best_score_ > 0.9
    assert list(names["predicted"].columns) == list(names["tags"].columns)
    assert list(names["predicted"].index) == names["new"]
    assert len(names["doubtful"]) == 5
    assert output.count("by a margin of") == 5
