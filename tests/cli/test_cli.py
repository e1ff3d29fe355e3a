"""The command line: what it prints, what it writes, how it fails."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from support import in_process, invoke
from typer.testing import CliRunner

import lemll
from lemll import cli
from lemll.cli.app import app
from lemll.datasets import read_dataset
from lemll.exceptions import (
    DatasetFormatError,
    DatasetNotFoundError,
    LemllError,
    MissingExtraError,
    UnknownDatasetError,
)

pytestmark = pytest.mark.slow

ARFF = b"@relation 'r: -C 1'\n@attribute sky {0,1}\n@attribute x numeric\n@data\n1,2.5\n0,3\n"


def run(*arguments: object) -> str:
    return invoke(*arguments).stdout  # progress goes to the other stream


def test_version_and_help():
    assert run("--version") == f"lemll {lemll.__version__}\n"
    assert "audit" in run("--help")


def test_list_names_every_set():
    output = run("bench", "datasets", "list")
    for name in ("cal500", "tmc2007", "SJAFFE", "Human_Gene", "delicious"):
        assert name in output


def test_check_loads_28_sets_and_finds_the_known_differences_only(data_dir):
    output = run("bench", "datasets", "check")
    assert "28 sets loaded; not available: msra, Human_Gene" in output
    assert "every figure equals Tables I and V, except for the known differences shown" in output
    assert "labels: 6 here, 5 in the paper (known)" in output


def test_check_without_data_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("LEMLL_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DatasetNotFoundError, match="set LEMLL_DATA_DIR"):
        run("bench", "datasets", "check")


def test_check_fails_on_a_difference_nobody_knew(monkeypatch, tmp_path):
    (tmp_path / "multilabel" / "yeast").mkdir(parents=True)
    np.savez(tmp_path / "multilabel" / "yeast" / "yeast.npz", X=np.eye(3), Y=np.eye(3))
    monkeypatch.setenv("LEMLL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["bench", "datasets", "check"])
    assert result.exit_code == 1
    assert "figures differ from the paper, and these differences are new" in result.output


def test_info_of_a_registered_set_and_of_a_file(data_dir, tmp_path):
    output = run("bench", "datasets", "info", "scene")
    assert "differs from the paper: labels: 6 here, 5 in the paper (known)" in output
    assert "Beach, Sunset" in output
    (tmp_path / "a.arff").write_bytes(ARFF)
    assert "2 rows, 1 feature (dense), 1 logical label" in run(
        "bench", "datasets", "info", tmp_path / "a.arff"
    )
    with pytest.raises(UnknownDatasetError, match="did you mean 'scene'"):
        run("bench", "datasets", "info", "scen")


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".csv.gz", ".parquet", ".arff.xz"])
def test_convert(tmp_path, suffix):
    (tmp_path / "a.arff").write_bytes(ARFF)
    out = tmp_path / f"b{suffix}"
    output = run("bench", "datasets", "convert", tmp_path / "a.arff", out)
    assert "2 rows" in output
    options = {"labels": -1} if ".csv" in suffix else {}
    assert ("labels=-1" in output) == (".csv" in suffix)
    data = read_dataset(out, **options)
    np.testing.assert_array_equal(data.X, [[2.5], [3]])
    assert data.label_names == ("sky",)


def test_convert_options_and_refusals(tmp_path):
    source, out = tmp_path / "a.csv", tmp_path / "b.npz"
    source.write_text("x,sky,sea\n1,0,1\n")
    run("bench", "datasets", "convert", source, out, "--labels", "sky,sea")
    assert read_dataset(out).label_names == ("sky", "sea")
    with pytest.raises(LemllError, match="exists already; choose another name, or pass --force"):
        run("bench", "datasets", "convert", source, out, "--labels", "-2")
    run("bench", "datasets", "convert", source, out, "--labels", "-1", "--force")
    assert read_dataset(out).label_names == ("sea",)
    with pytest.raises(LemllError, match="files of this format take no --labels"):
        run("bench", "datasets", "convert", out, tmp_path / "c.npz", "--labels", "2")
    with pytest.raises(LemllError, match="--labels given, but yeast is not a file"):
        run("bench", "datasets", "convert", "yeast", tmp_path / "c.npz", "--labels", "2")


def test_info_of_ones_own_table(tmp_path):
    source = tmp_path / "own.csv"
    source.write_text("x,[red]sky[/],:smile:\n1,0,1\n2,1,1\n")
    output = run("bench", "datasets", "info", source, "--labels", "[red]sky[/], :smile:")
    assert "[red]sky[/], :smile:" in output  # names are text, neither markup nor emoji
    with pytest.raises(LemllError, match="pass `labels`"):
        run("bench", "datasets", "info", source)
    with pytest.raises(DatasetFormatError, match="no such file"):
        run("bench", "datasets", "info", "nowhere.arff")


def test_a_folder_does_not_hide_a_data_set(data_dir, tmp_path, monkeypatch):
    (tmp_path / "yeast").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "2417 rows" in run("bench", "datasets", "info", "yeast")


def test_check_shows_what_cannot_be_read_and_goes_on(monkeypatch, tmp_path):
    folder = tmp_path / "multilabel" / "yeast"
    folder.mkdir(parents=True)
    (folder / "yeast.npz").write_bytes(b"junk")
    monkeypatch.setenv("LEMLL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["bench", "datasets", "check"])
    assert result.exit_code == 1
    assert "yeast cannot be read" in result.output


def test_reproduce_prints_ours_beside_the_published(data_dir, tmp_path):
    output = run("reproduce", "reconstruction", "SJAFFE", "--store", tmp_path / "store")
    assert "LEMLL: 15 of 15 cells within 0.001 of the printed figure" in output
    assert "MLFE: 15 of 15 cells within 0.005 of the printed figure" in output
    assert "0.077 [0.077]" in output
    assert "LEMLL calibrated by 10 rated rows" in output
    tables = (tmp_path / "store-tables" / "tables.md").read_text(encoding="utf-8")
    assert "| SJAFFE |" in tables
    # A second run finds all cells done.
    again = run("reproduce", "reconstruction", "SJAFFE", "--store", tmp_path / "store")
    assert again == output


@pytest.mark.parametrize("experiment", ["reconstruction", "prediction"])
def test_reproduce_misses_what_the_page_needs_before_the_work(
    data_dir, monkeypatch, tmp_path, experiment
):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"needs the library 'jinja2'.*lemll\[report\]"):
        run("reproduce", experiment, "--quick", "--store", tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_reproduce_without_data_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("LEMLL_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DatasetNotFoundError, match="none of the data sets is available"):
        run("reproduce", "reconstruction")
    with pytest.raises(DatasetNotFoundError, match="none of the data sets is available"):
        run("reproduce", "prediction", "--quick")


def test_reproduce_prediction_prints_ours_beside_the_published(data_dir, tmp_path):
    common = ["reproduce", "prediction", "yeast", "--quick", "--methods", "LEMLL, MSVR"]
    output = run(*common, "--store", tmp_path / "store")
    assert "Average ranks: ours [printed]" in output
    assert "of 5 means within two of the paper's standard deviations" in output
    assert "2 halves, default parameters." in output
    tables = (tmp_path / "store-tables" / "tables.md").read_text(encoding="utf-8")
    assert "[0.201 ± 0.002]" in tables
    # A second run finds all cells done; more of them can be asked for.
    assert run(*common, "--store", tmp_path / "store") == output
    more = run(*common, "--store", tmp_path / "store", "--splits", 3, "--output", tmp_path / "o")
    assert "3 halves, default parameters." in more
    assert (tmp_path / "o" / "summary.md").is_file()


def test_an_error_ends_in_one_line_and_a_failing_exit_code():
    words = ("bench", "datasets", "info", "scen")
    result = in_process("from lemll.cli import main; main()", *words, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("lemll: no data set is called 'scen'; did you mean 'scene'?")
    assert result.stderr.count("\n") == 1


def test_without_its_extra_the_command_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"pip install 'lemll\[cli\]'"):
        cli.main()


def test_the_printed_tables_go_through_all_tests(tmp_path):
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["reproduce", "statistics", "--output", str(page)])
    assert result.exit_code == 0, result.output
    assert "2.711" in result.output
    assert "2.406" in result.output
    assert page.is_file()


def test_the_version_takes_less_than_half_a_second_of_cpu():
    code = (
        "import resource, sys; sys.argv = ['lemll', '--version']\n"
        "from lemll.cli import main; main()\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, 'sklearn' in sys.modules)"
    )
    done = in_process(code)
    version, measured = done.stdout.splitlines()
    assert version == f"lemll {lemll.__version__}"
    seconds, heavy = measured.split()
    assert float(seconds) < 0.5
    assert heavy == "False"


def test_a_fault_shows_its_traceback_only_for_debug(monkeypatch, capsys):
    def broken():
        # An error of a file of lemll, and not of the user.
        exec(compile("raise TypeError('a fault\x1b[2J')", lemll.__file__, "exec"))

    monkeypatch.setattr("lemll.cli.app.app", broken)
    monkeypatch.setattr("sys.argv", ["lemll", "demo"])
    with pytest.raises(SystemExit) as caught:
        lemll.cli.main()
    assert caught.value.code == 70
    printed = capsys.readouterr().err
    assert "lemll: TypeError: a fault\\x1b[2J" in printed
    assert "run the command again with --debug" in printed
    monkeypatch.setattr("sys.argv", ["lemll", "demo", "--debug"])
    with pytest.raises(TypeError, match="a fault"):
        lemll.cli.main()
    assert sys.argv == ["lemll", "demo"]
