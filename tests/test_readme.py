"""README and guide tell the truth: its examples run, and two commands set everything up."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_examples_run(capsys):
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})
    assert "3.6" in capsys.readouterr().out


def test_the_guides_examples_run():
    guide = blocks("python", (ROOT / "docs" / "guide.md").read_text(encoding="utf-8"))
    assert guide
    fitted = []
    for block in guide:
        namespace: dict[str, object] = {}
        exec(compile(block, "guide.md", "exec"), namespace)
        fitted += [value for value in namespace.values() if hasattr(value, "optimality_")]
    assert fitted
    assert all(model.optimality_ <= 1e-4 for model in fitted)


def test_exactly_two_set_up_commands():
    assert [block.strip() for block in blocks("sh")] == ["make demo", "make test"]
