"""``lemll bench``: what it prints, how it ends, that it can be stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import invoke

from lemll import MSVRClassifier
from lemll.datasets import load_digit_tags
from lemll.exceptions import ProtocolError, StoreError
from lemll.lab import Method, methods, register
from lemll.lab.protocol import Protocol
from lemll.lab.store import Store

pytestmark = pytest.mark.slow

HELPERS = Path(__file__).parents[1] / "experiments" / "helpers"
LEMLL = [sys.executable, "-c", "from lemll.cli import main; main()"]

QUICK = """
experiment = "prediction"
datasets = ["digit-tags"]
methods = ["MSVR"]
metrics = ["hamming_loss", "one_error"]
splits = {kind = "halves", n_splits = 2}
"""
FAILING = QUICK.replace('methods = ["MSVR"]', "methods.MSVR.alpha = -1.0")
SLOW = """
experiment = "prediction"
datasets = ["digit-tags"]
methods = {"Logged A" = {seconds = 0.3}}
splits = {kind = "halves", n_splits = 40}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("quick", QUICK), ("failing", FAILING), ("slow", SLOW)):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    return tmp_path


def bench(*arguments: object, code: int = 0) -> str:
    return invoke("bench", *arguments, code=code).output


def with_helpers() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(HELPERS), os.environ.get("PYTHONPATH"))))
    return os.environ | {"PYTHONPATH": path}


def count(status: str, output: str) -> int:
    return int(re.search(rf"{status}\D*│\s*(\d+)", output).group(1))


def test_run_status_table_verify_export(files):
    assert "2 of 2 cells done, 0 failed, 0 out of time" in bench("run", "quick.toml")
    assert (files / "lemll-results" / "quick" / "cells").is_dir()
    status = bench("status", "quick.toml")
    assert (count("done", status), count("pending", status)) == (2, 0)
    assert "### Hamming loss ↓" in bench("table", "quick.toml")
    assert "Hamming" not in bench("table", "quick.toml", "--metric", "one_error")
    assert r"\toprule" in bench("table", "quick.toml", "--format", "latex")
    assert bench("table", "quick.toml", "--format", "csv").startswith("metric,threshold,dataset,")
    assert "4 figures computed again, 0 problems" in bench("verify", "quick.toml")
    assert "2 cells" in bench("export", "quick.toml", "out.csv")
    assert len((files / "out.csv").read_text(encoding="utf-8").splitlines()) == 3
    assert "2 of 2 cells done" in bench("resume", "quick.toml", "--jobs", 2)


def test_verify_exits_1_on_a_difference(files):
    bench("run", "quick.toml", "--store", "s")
    next((files / "s" / "cells").glob("*.npz")).write_bytes(b"")
    assert "its files are not what was written" in bench(
        "verify", "quick.toml", "--store", "s", code=1
    )
    assert count("damaged", bench("status", "quick.toml", "--store", "s")) == 1


def test_failures_are_shown_kept_and_retried(files):
    output = bench("run", "failing.toml", code=1)
    assert "failed: MSVR on digit-tags, halves 0: alpha must be finite and > 0" in output
    assert "0 of 2 cells done, 2 failed" in output
    assert "failed: MSVR on digit-tags, halves 1: alpha" in bench("status", "failing.toml")
    bench("resume", "failing.toml", code=1)
    for options, attempts in (([], 2), (["--failed"], 3), (["--timeout"], 3)):
        bench("retry", "failing.toml", *options, code=1)
        stored = Store(files / "lemll-results" / "failing").records()
        assert {record.attempt for record in stored} == {attempts}


def test_a_cell_being_retried_is_running_and_not_pending(files):
    bench("run", "failing.toml", code=1)
    store = Store(files / "lemll-results" / "failing")
    held = store.claim(next(store.records()).id)
    status = bench("status", "failing.toml")
    assert (count("running", status), count("pending", status)) == (1, 0)
    held.release()


def test_what_is_not_there_is_said(files):
    with pytest.raises(StoreError, match="is not a store of results; run the protocol first"):
        bench("resume", "quick.toml")
    (files / "bad.toml").write_text("metods = []", encoding="utf-8")
    with pytest.raises(ValueError, match="bad.toml: unknown key 'metods'; did you mean 'methods'"):
        bench("run", "bad.toml")
    with pytest.raises(ProtocolError, match=r"none\.toml: there is no such file; give the path of"):
        bench("run", "none.toml")


def test_every_registered_method_is_listed(monkeypatch):
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    assert "One more" not in bench("methods")
    register(Method("One more", "learner", MSVRClassifier, {"alpha": (1,)}, "a line of text"))
    output = bench("methods")
    for text in ("One more", "a line of text", "alpha, beta, gamma"):
        assert text in output


def test_methods_of_a_module_of_ones_own(files):
    command = [*LEMLL, "bench", "--import", "engine_methods", "methods"]
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, env=with_helpers()
    )
    assert "Logged A" in printed.stdout


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
@pytest.mark.nightly(when=lambda code, jobs: (code == 130) == (jobs == "1"))
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_that_is_stopped_says_how_to_resume(files, number, code, jobs):
    command = [*LEMLL, "bench", "--import", "engine_methods", "run", "slow.toml", "--jobs", jobs]
    runner = subprocess.Popen(
        command,
        cwd=files,
        env=with_helpers(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cells = files / "lemll-results" / "slow" / "cells"
    deadline = time.monotonic() + 100
    while not list(cells.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    # To the whole group, as a terminal does it.
    os.killpg(runner.pid, number)
    output, errors = runner.communicate(timeout=60)
    assert runner.returncode == code, errors
    assert "To continue: lemll bench resume slow.toml\n" in output
    assert "Traceback" not in output + errors
    records = list(Store(files / "lemll-results" / "slow").records())
    assert 1 <= len(records) < 40
    assert {record.status for record in records} == {"done"}


def test_a_protocol_finds_files_beside_itself(files):
    from lemll.datasets import write_dataset

    (files / "sub").mkdir()
    write_dataset(load_digit_tags(), files / "sub" / "mine.npz")
    text = QUICK.replace("digit-tags", "mine.npz")
    (files / "sub" / "p.toml").write_text(text, encoding="utf-8")
    (source,) = Protocol.from_toml("sub/p.toml").datasets
    assert (source.name, source.path) == ("mine", str(files.resolve() / "sub" / "mine.npz"))
    assert "2 of 2 cells done" in bench("run", "sub/p.toml")


def test_a_report_is_written_into_the_store(files):
    bench("run", "quick.toml")
    text = bench("report", "quick.toml")
    page = Path("lemll-results/quick/report.html")
    assert f"open {page}" in text
    assert "2 cells done" in page.read_text(encoding="utf-8")
    bench("report", "quick.toml", "--output", "elsewhere/page.html")
    assert Path("elsewhere/page.html").is_file()


def test_a_cluster_of_this_machine_gives_the_same_table(files):
    bench("run", "quick.toml", "--store", "here")
    text = bench("run", "quick.toml", "--store", "dask", "--dask", "local:1")
    assert "2 of 2 cells done, 0 failed" in text
    here, there = (bench("table", "quick.toml", "--store", name) for name in ("here", "dask"))
    assert here == there


@pytest.mark.parametrize(
    "options", [("--jobs", 2), ("--time-limit", 3), ("--memory-limit", 1)], ids=lambda o: o[0]
)
def test_what_a_cluster_would_not_heed_is_refused(files, options):
    with pytest.raises(ValueError, match=f"{options[0]} {options[1]} .* not for --dask"):
        bench("run", "quick.toml", "--dask", "local:1", *options)
    assert not Path("lemll-results").exists()


@pytest.mark.parametrize("command", ["status", "verify", "table", "report"])
def test_a_protocol_that_is_not_there_is_named_before_its_store(files, command):
    with pytest.raises((OSError, ValueError), match=r"quik\.toml"):
        bench(command, "quik.toml")


def test_progress_is_shown_in_lines_where_there_is_no_terminal(files, monkeypatch):
    monkeypatch.setattr("lemll.lab.cli.bench._SECONDS_BETWEEN_LINES", 0.0)
    assert re.search(r"1 of 2 cells, 0 failed(, \d:\d\d:\d\d left)?\n", bench("run", "quick.toml"))
    assert "2 of 2 cells, 0 failed" in bench("run", "quick.toml", "--store", "again")
