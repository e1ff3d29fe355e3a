"""The README tells the truth: its examples run, and two commands set everything up."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_examples_run(capsys):
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})
    assert "3.6" in capsys.readouterr().out


def test_exactly_two_set_up_commands():
    assert [block.strip() for block in blocks("sh")] == ["make demo", "make test"]
