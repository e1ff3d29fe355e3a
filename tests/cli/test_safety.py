"""What files say is shown and not obeyed: by terminals and by spreadsheets."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.table import Table
from support import in_process, invoke

from lemll._files import safe_cell
from lemll.cli import console as _console
from lemll.datasets import Dataset, write_npz
from lemll.lab.cli import bench as _run
from lemll.lab.runner import RunProgress

pytestmark = pytest.mark.slow

LEMLL = [sys.executable, "-c", "from lemll.cli import main; main()"]
# Clear the screen; the same by the single byte CSI; set the title; write backwards.
COMMANDS = ["\x1b[2J", "\x9b2J", "\x1b]0;title\x07", "\u202egnp"]
FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1", '=a\rb,"c\nd']


def run(*arguments: object, code: int = 0, answers: str | None = None) -> str:
    return invoke(*arguments, code=code, answers=answers).output


def obeyed(text: str) -> bool:
    return any(sign in text for sign in ("\x1b", "\x9b", "\x07", "\u202e"))


def dataset(path: Path, names: list[str]) -> Path:
    rng = np.random.RandomState(0)
    X = rng.rand(30, 2)
    Y = (rng.rand(30, len(names)) > 0.5).astype(int)
    write_npz(Dataset(X=X, Y=Y, label_names=tuple(names), name=names[0]), path)
    return path


def protocol(folder: Path, methods: list[str]) -> Path:
    lines = ['experiment = "prediction"', "datasets = [{path = 'data.npz', name = \"\\u001B[2J\"}]",
             "splits = {n_splits = 2}"]  # fmt: skip
    for name in methods:
        quoted = '"' + "".join(f"\\u{ord(sign):04x}" for sign in name) + '"'
        lines += [f"[methods.{quoted}]", 'method = "MSVR"', f"max_iter = {1000 + len(lines)}"]
    (folder / "p.toml").write_text("\n".join(lines), encoding="utf-8")
    return folder / "p.toml"


def test_names_in_files_do_not_command_the_terminal(tmp_path):
    file = dataset(tmp_path / "data.npz", COMMANDS)
    out = tmp_path / "out.csv"
    printed = run("bench", "datasets", "info", file)
    assert r"\x1b[2J, \x9b2J, \x1b]0;title, \u202egnp" in printed  # rich drops a bell by itself
    printed += run("enhance", file, "-o", out)
    printed += run("enhance", file, "-o", out, "--rate", 1, answers="\n")
    assert not obeyed(printed)


def test_names_in_protocols_and_records_do_neither(tmp_path):
    dataset(tmp_path / "data.npz", ["a", "b"])
    file = protocol(tmp_path, COMMANDS)
    printed = run("bench", "run", file, "--store", tmp_path / "s")
    assert "8 of 8 cells done" in printed
    next((tmp_path / "s" / "cells").glob("*.json")).write_bytes(b"")
    tables = [["table", "--format", form] for form in ("markdown", "latex", "csv")]
    for command in (["status"], ["verify"], *tables):
        code = int(command == ["verify"])
        printed += run("bench", *command, file, "--store", tmp_path / "s", code=code)
    assert "damaged" in printed
    assert not obeyed(printed)


def test_errors_and_warnings_do_neither(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for arguments in (
        ["bench", "datasets", "info", "\x1b[2J.csv"],
        ["bench", "run", "\x1b[2J.toml"],
    ):
        ended = subprocess.run(
            [*LEMLL, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 1
        assert r"\x1b[2J" in ended.stderr
        assert not obeyed(ended.stderr)
    code = (
        "import warnings; from lemll.cli import main; from lemll.cli.app import app; "
        "app.command('warn')(lambda: warnings.warn('\\x1b[2J')); main()"
    )
    for option, shown in (([], "note: "), (["--debug"], "UserWarning: ")):
        ended = in_process(code, "warn", *option)
        assert shown + r"\x1b[2J" in ended.stderr
        assert not obeyed(ended.stderr)


def test_a_terminal_gets_styles_and_bars_and_nothing_from_names():
    stream = io.StringIO()
    console = _console._SafeConsole(file=stream, force_terminal=True, markup=False, width=200)
    table = Table("name", title="\x1b[2J title")
    table.add_row("\x1b[2J row")
    console.print(table)
    with _run._live(console) as show:
        show(RunProgress(2, 0, 0, 0, ("\x1b[2J on [red]x[/nothing]",), None, None))
    text = stream.getvalue()
    assert "\x1b[2J" not in text
    assert text.count(r"\x1b[2J") >= 3
    assert "\x1b[1m" in text  # a table's head is bold


def test_text_that_cannot_be_encoded_is_shown_too():
    assert _console.safe_text("caf\udce9\ttab\nline") == "caf\\udce9\ttab\nline"


@pytest.mark.nightly(when=lambda text: text not in FORMULAS[::7])
@pytest.mark.parametrize("text", FORMULAS)
def test_no_export_holds_a_formula(tmp_path, text):
    dataset(tmp_path / "data.npz", [text, "b"])
    file = protocol(tmp_path, [text])
    run("bench", "run", file, "--store", tmp_path / "s")
    run("bench", "export", file, tmp_path / "cells.csv", "--store", tmp_path / "s")
    table = run("bench", "table", file, "--format", "csv", "--store", tmp_path / "s")
    run("enhance", tmp_path / "data.npz", "-o", tmp_path / "degrees.csv")
    files = [tmp_path / f"{name}.csv" for name in ("cells", "degrees")]
    texts = [table, *(path.read_bytes().decode() for path in files)]
    for content in texts:
        cells = [cell for row in csv.reader(io.StringIO(content, newline="")) for cell in row]
        assert {f"'{text}", f"'{_console.safe_text(text)}"} & set(cells)
        assert not [c for c in cells if c.startswith(("=", "+", "@", "\t", "\r", "＝"))]


def test_numbers_stay_numbers():
    for value in (-1.5, 3, None, True, "-1.5", "+2", "-1e-05", "1", "", "a=b"):
        assert safe_cell(value) is value
    assert safe_cell("-x") == "'-x"
    assert safe_cell("-1+1") == "'-1+1"


def test_degrees_that_were_written_can_be_read_as_ratings(tmp_path):
    file = dataset(tmp_path / "data.npz", ["=a", "b"])
    run("enhance", file, "-o", tmp_path / "degrees.csv")
    assert (tmp_path / "degrees.csv").read_text("utf-8").startswith("row,'=a,b\n")
    assert "30 rated rows" in run("enhance", file, "--rated", tmp_path / "degrees.csv",
                                  "-o", tmp_path / "again.csv")  # fmt: skip
