"""README and documentation tell the truth: their code runs, their commands and targets exist."""

from __future__ import annotations

import pydoc
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.lab import Protocol, methods
from lemll.lab.photos import make_photos

ROOT = Path(__file__).parents[1]
PAGES = {
    (f"{path.parent.name}/index.md" if path.name == "index.md" else path.name): path.read_text(
        encoding="utf-8"
    )
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if not any(part.startswith("_") for part in path.relative_to(ROOT).parts)
}


def blocks(page: str, *languages: str) -> list[str]:
    wanted = "|".join(languages)
    return re.findall(rf"^```(?:{wanted})\n(.*?)^```", PAGES[page], flags=re.DOTALL | re.MULTILINE)


def command_lines(block: str) -> list[str]:
    """Take the commands out of a block; what they do may stand beside them, in a column."""
    lines = block.splitlines()
    starts = [
        found.end() for line in lines for found in [re.search(r"\S {2,}(?=\S)", line)] if found
    ]
    # A command that fills its column is one space away from its explanation.
    column = min(starts, default=0)
    commands = []
    for line in lines:
        explained = column and line[column - 1 : column] == " "
        commands.append((line[:column] if explained else line).strip())
    return [command for command in commands if command.startswith("lemll ")]


def mentions(page: str, word: str) -> list[str]:
    """Take what stands in the text as `word ...`, blocks of code aside."""
    text = re.sub(r"^```.*?^```", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    return [" ".join(found.split()) for found in re.findall(rf"`({word} [^`]+)`", text)]


def walk(command_line: str):
    """Follow a command line down to its command; every name and option on the way must exist."""
    typer = pytest.importorskip("typer")
    from lemll.cli.app import Later, app

    command, words = typer.main.get_command(app), shlex.split(command_line)[1:]
    left: list[str] = []
    while words:
        word = words.pop(0)
        if word.startswith("-"):
            options = {
                name: option
                for option in command.params
                for name in (*option.opts, *option.secondary_opts)
            }
            assert word in options or word == "--help", f"{command_line}: no option {word}"
            left.append(word)
            if word in options and not getattr(options[word], "is_flag", False) and words:
                left.append(words.pop(0))
        elif hasattr(command, "commands"):
            assert word in command.commands, f"{command_line}: no command {word}"
            command, left = command.commands[word], []
            command = command.loaded() if isinstance(command, Later) else command
        else:
            left.append(word)
    return command, left


def check(command_line: str) -> None:
    """Parse a whole command line as it would be when called, and do not call it."""
    command, words = walk(command_line)
    command.make_context("lemll", words).close()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
@pytest.mark.slow
def test_python_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    namespace: dict[str, object] = {}
    fitted = []
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), namespace)
        made = [value for value in namespace.values() if not isinstance(value, type)]
        fitted += [value for value in made if hasattr(value, "optimality_")]
    assert all(np.max(model.optimality_) <= 1e-4 for model in fitted)
    if page == "python.md":
        assert "3.6" in capsys.readouterr().out
    if page in ("python.md", "learners.md"):
        assert fitted


def test_the_pages_with_python_are_known():
    assert {page for page in PAGES if blocks(page, "python")} == {
        "README.md",
        "audit.md",
        "dask.md",
        "experiments.md",
        "incomplete.md",
        "docs/index.md",
        "label-enhancement.md",
        "learners.md",
        "python.md",
        "scale.md",
        "tables.md",
    }


@pytest.mark.parametrize("page", PAGES)
def test_commands_parse(page):
    for block in blocks(page, "sh", "text", "console"):
        for line in command_lines(block):
            check(line)
    for line in mentions(page, "lemll"):
        walk(line)


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    inside = re.findall(r"^make (.+)$", "\n".join(blocks(page, "sh")), flags=re.MULTILINE)
    named = {line.split()[-1] for line in [*mentions(page, "make"), *inside]}
    assert named <= targets


def test_protocols_in_the_text_are_understood(tmp_path):
    block, hiding = blocks("experiments.md", "toml")
    (tmp_path / "text.toml").write_text(block, encoding="utf-8")
    protocol = Protocol.from_toml(tmp_path / "text.toml")
    assert [spec.label for spec in protocol.methods] == ["LEMLL", "LEMLL without graph"]
    assert [source.name for source in protocol.datasets] == ["digit-tags", "yeast", "mine"]
    head = 'experiment = "prediction"\ndatasets = ["digit-tags"]\n'
    (tmp_path / "hide.toml").write_text(head + hiding, encoding="utf-8")
    hidden = Protocol.from_toml(tmp_path / "hide.toml")
    assert [rule.share for rule in hidden.hide] == [0.3, 0.6, 0.9]
    assert [spec.options for spec in hidden.methods] == [
        {},
        {"unobserved": "zero"},
        {"features": "scaled"},
    ]


def test_no_summary_of_the_reference_cites():
    """A list of summaries has no bibliography, so a citation there would show its internal key."""
    names = [
        (module, name)
        for module, block in re.findall(
            r"currentmodule:: (\S+)\n(.*?)```", PAGES["api.md"], flags=re.DOTALL
        )
        for name in re.findall(r"^   (\w+)$", block, flags=re.MULTILINE)
    ]
    assert len(names) > 200
    documented = [pydoc.locate(f"{module}.{name}") for module, name in names]
    summaries = [pydoc.splitdoc(pydoc.getdoc(each))[0] for each in documented]
    assert all(summaries)
    assert [summary for summary in summaries if "]_" in summary] == []


def test_exactly_two_set_up_commands():
    assert [block.strip() for block in blocks("README.md", "sh")] == ["make demo", "make test"]


def test_commands_are_found_and_a_renamed_option_is_noticed():
    block = (
        "lemll bench run P.toml          explained after a gap\n"
        "lemll bench status a-long.toml  one gap\n"
        "lemll bench table a-longer.toml one space in the same column\n"
        "lemll bench verify the-longest-of-all.toml\n"
    )
    assert command_lines(block) == [
        "lemll bench run P.toml",
        "lemll bench status a-long.toml",
        "lemll bench table a-longer.toml",
        "lemll bench verify the-longest-of-all.toml",
    ]
    assert sum(len(command_lines(b)) for b in blocks("python.md", "text")) >= 10
    assert len(mentions("learners.md", "lemll")) >= 1
    check("lemll bench --import mine run P.toml --jobs 2 --dask local:2")
    with pytest.raises(AssertionError, match="no option --workers"):
        walk("lemll bench run P.toml --workers 2")
    with pytest.raises(AssertionError, match="no command runs"):
        walk("lemll bench runs P.toml")
    with pytest.raises(Exception, match="Missing parameter: file"):
        check("lemll bench run --jobs 2")
    with pytest.raises(Exception, match="valid int"):
        check("lemll bench run P.toml --jobs two")


def test_the_table_of_results_in_the_readme_is_that_of_the_results():
    tool = runpy.run_path(str(ROOT / "tools" / "readme_results.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tool["updated"](readme) == readme, "run python tools/readme_results.py"
    # A README without a table would also be equal to itself.
    assert "TagPredictor 1." in readme


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_readme_is_one_screen_of_each():
    lines = PAGES["README.md"].splitlines()
    assert len(lines) <= 120
    assert next(i for i, line in enumerate(lines) if line.startswith("![")) < 10
    assert next(i for i, line in enumerate(lines) if "pip install" in line) < 20


@pytest.mark.slow
def test_the_readme_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,), (printed,) = blocks("README.md", "python"), blocks("README.md", "text")
    exec(compile(code, "README.md", "exec"), {})
    assert squeezed(capsys.readouterr().out) == squeezed(printed)


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_photos().frame.to_csv("photos.csv", index=False)
    (block,) = blocks("README.md", "console")
    checked = 0
    for part in block.split("$ lemll ")[1:]:
        command, *expected = part.strip().splitlines()
        result = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert result.exit_code == 0
        for line in expected:
            assert squeezed(line) in squeezed(result.stdout), command
            checked += 1
    assert checked >= 4
