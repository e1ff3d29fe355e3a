"""``lemll info``, ``fit``, ``predict``, ``evaluate``: three files of different habits, refusals."""

import csv
import json
import shlex
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from support import in_process
from typer.testing import CliRunner

import lemll
from lemll import BinaryRelevance
from lemll.cli.app import app
from lemll.cli.console import as_options
from lemll.cli.tables import LEARNERS
from lemll.datasets import load_digit_tags
from lemll.exceptions import LemllError
from lemll.models import training

pytestmark = pytest.mark.slow

TAGS = np.array(["night", "sea", "sky"])
FAST = ["--learner", "BinaryRelevance"]


def examples(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, 3)
    return X, np.column_stack([X[:, 0] < -0.3, X[:, 1] > 0, X[:, 1] + X[:, 2] > 0.2])


def write_tags(path, n=150, seed=0):
    """Tags in one column, text, categories, ids, dates, gaps."""
    X, Y = examples(n, seed)
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(X.round(3), columns=["light", "hue", "blue"])
    frame = frame.mask(rng.rand(n, 3) < 0.05)
    frame.insert(0, "file", [f"IMG_{seed}_{i:04d}" for i in range(n)])
    frame["taken"] = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(n)]
    frame["camera"] = rng.choice(["Nikon", "Canon", None], n)
    frame["caption"] = [
        f"a photo of the {'water' if row[1] else 'town'} number {i}" for i, row in enumerate(Y)
    ]
    frame["tags"] = ["|".join(TAGS[row]) for row in Y]
    frame.to_csv(path, index=False)
    return ["--tags", "tags", "--sep", "|", "--untagged", "none", "--id", "file"]


def write_numbers(path, n=150, seed=0):
    """0/1 with unknown cells, semicolons, decimal commas, UTF-16."""
    X, Y = examples(n, seed)
    frame = pd.DataFrame(X.round(3), columns=["light", "hue", "blue"])
    frame.insert(0, "nr", [f"P-{i}" for i in range(n)])
    hidden = np.random.RandomState(seed).rand(n, 3) < 0.1
    for j, tag in enumerate(TAGS):
        frame[tag] = pd.array(np.where(hidden[:, j], None, Y[:, j].astype(int)), dtype="Int64")
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-16")
    return ["--labels", "night,sea,sky", "--id", "nr"]


def write_parquet(path, n=150, seed=0):
    """Parquet with booleans, dates and a categorical column."""
    X, Y = examples(n, seed)
    frame = pd.DataFrame(X, columns=["light", "hue", "blue"])
    frame["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) % 50, "D")
    frame["camera"] = pd.Categorical(["Nikon", "Canon"] * (n // 2))
    for j, tag in enumerate(TAGS):
        frame[tag] = Y[:, j]
    frame.to_parquet(path)
    return ["--labels", "night,sea,sky"]


HABITS = {
    "photos.csv": write_tags,
    "plants.csv": write_numbers,
    "scans.parquet": write_parquet,
}


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def ran(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def read(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_info_proposes_the_options_that_the_file_was_read_with(tmp_path):
    data = tmp_path / "t.csv"
    lines = [f"0,1{i % 10}5;{1 + i % 7},500;{i % 2}" for i in range(40)]
    data.write_text("\n".join(["low;high;label", *lines]), encoding="utf-8")
    # No group of thousands begins with 0, so the commas of the first column are decimal marks.
    assert "--decimal" not in ran("info", data).stdout
    shown = ran("info", data, "--decimal", ",", "--delimiter", ";").stdout
    assert "--delimiter ';' --decimal ," in shown.splitlines()[-1]


@pytest.mark.parametrize("name", HABITS)
def test_from_a_file_to_predictions(name, tmp_path):
    data, model, out = tmp_path / name, tmp_path / "m.lemll", tmp_path / "out.csv"
    options = HABITS[name](data)
    shown = ran("info", data).stdout
    assert len(shown.splitlines()) <= 10
    assert f"{data}: 150 rows" in shown
    # What `info` proposes is what the file needs, apart from the meaning of empty cells.
    proposed = json.loads(ran("info", data, "--json").stdout)["next"].split()
    assert proposed[proposed.index(options[0]) + 1] == options[1]

    fitted = ran("fit", data, *options, *FAST, "-m", model)
    assert "fitting 120 rows; 30 rows are held out" in fitted.stderr
    assert "30 rows that no choice has seen" in fitted.stdout
    assert "The model predicts new rows better than the frequencies" in fitted.stdout
    assert f"wrote {model}: BinaryRelevance, 150 rows, 3 labels" in fitted.stdout

    new = tmp_path / f"new_{name}"
    HABITS[name](new, 60, seed=1)
    assert "60 rows" in ran("predict", model, new, "-o", out).stdout
    header, *rows = read(out)
    assert header[1:] == ["tags", "p_night", "p_sea", "p_sky"]
    assert len(rows) == 60
    for row in rows:
        likely = TAGS[np.array(row[2:], dtype=float) > 0.5]
        assert set(row[1].split("|" if name == "photos.csv" else ";")) - {""} == set(likely)
    first = {"photos.csv": "IMG_1_0000", "plants.csv": "P-0", "scans.parquet": "1"}
    assert rows[0][0] == first[name]

    assert "60 rows of" in ran("evaluate", model, new).stdout
    measured = json.loads(ran("evaluate", model, new, "--json").stdout)
    assert measured["scores"][0]["value"] > 0.8
    described = ran("info", model).stdout
    assert "labels (3): night, sea, sky" in described
    assert "average_precision on 30 held-out rows" in described


def test_json_is_all_that_is_printed(tmp_path):
    options = write_tags(tmp_path / "t.csv")
    model = tmp_path / "m.lemll"
    fitted = json.loads(
        ran("fit", tmp_path / "t.csv", *options, *FAST, "-m", model, "--json").stdout
    )
    assert fitted["labels"] == ["night", "sea", "sky"]
    assert fitted["held_out"]["learned"] is True
    done = ran("predict", model, tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--json")
    assert json.loads(done.stdout)["rows"] == 150
    assert json.loads(ran("info", model, "--json").stdout)["format"] == 2


def test_info_says_what_empty_cells_of_tags_need(tmp_path):
    write_tags(tmp_path / "t.csv")
    empty = int(pd.read_csv(tmp_path / "t.csv")["tags"].isna().sum())
    assert empty
    line = (
        f"looks like tags: tags (separated by '|'; {empty} empty cells: pass --untagged none if no "
        "tag applies to them, or --untagged unknown if nobody looked)\n"
    )
    assert line in ran("info", tmp_path / "t.csv").stdout


def test_columns_that_are_ignored_are_named(tmp_path):
    options = write_tags(tmp_path / "t.csv")
    frame = pd.read_csv(tmp_path / "t.csv")
    frame["by"], frame["note"] = "bot", None
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", *options, *FAST, "-m", tmp_path / "m.lemll"]
    line = "ignored columns (2): by (the same value in all rows, 'bot'); note (no values)\n"
    assert line in ran(*fit).stdout
    assert json.loads(ran(*fit, "--json").stdout)["ignored_columns"] == {
        "by": "the same value in all rows, 'bot'",
        "note": "no values",
    }
    for j in range(9):
        frame[f"same{j}"] = "x"
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "; and 3 more (--json shows them)\n" in ran(*fit).stdout


def test_rare_tags_get_a_warning_that_rows_stay_empty(tmp_path):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(200, 3), columns=list("abc"))
    frame["x"], frame["y"] = (rng.rand(200) < 0.1).astype(int), (rng.rand(200) < 0.1).astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    fitted = ran("fit", tmp_path / "t.csv", "--labels", "x,y", *FAST, "-m", tmp_path / "m.lemll")
    assert "no score is above its threshold" in fitted.stdout
    assert "thresholds='f1'" in fitted.stdout


def test_the_default_learner_within_a_budget(tmp_path):
    options = write_tags(tmp_path / "t.csv")
    model = tmp_path / "m.lemll"
    fitted = ran("fit", tmp_path / "t.csv", *options, "-m", model, "--seconds", 4)
    assert "logistic: out-of-fold scores (1 of 10" in fitted.stderr
    assert "TagPredictor" in ran("info", model).stdout


def test_ctrl_c_ends_without_a_traceback_and_without_a_file(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "fit_table", interrupted)
    options = write_tags(tmp_path / "t.csv")
    result = run("fit", tmp_path / "t.csv", *options, "-m", tmp_path / "m.lemll")
    assert result.exit_code == 130
    assert result.stderr == "stopped; no model was written\n"
    assert not (tmp_path / "m.lemll").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say where the labels are: --tags for"),
        (["--tags", "tgas"], "has no column 'tgas' for --tags; did you mean 'tags'"),
        (["--tags", "tags", "--sep", ";"], "pass --untagged none if no tag applies"),
        (["--tags", "tags"], "pass --sep '|', or --sep ';' if this is one tag"),
        (["--labels", "camera"], "if it holds tags, use --tags camera"),
        (["--tags", "tags", "--untagged", "maybe"], "--untagged must be none or unknown"),
        (["--tags", "tags", "--learner", "xgb"], "--learner must be one of TagPredictor"),
        (["--tags", "tags", "--seconds", "0"], "--seconds must be above 0"),
    ],
)
def test_doubt_about_labels_is_an_error_that_names_the_option(tmp_path, options, message):
    write_tags(tmp_path / "t.csv")
    result = run("fit", tmp_path / "t.csv", *options, "-m", tmp_path / "m.lemll")
    assert isinstance(result.exception, LemllError)
    assert message in as_options(str(result.exception))
    assert not (tmp_path / "m.lemll").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "{t}", "--tags", "tags", "-m", "{d}/m.pkl"], "-m must name a file that ends in"),
        (["fit", "{t}", "--tags", "tags", "-m", "{d}/no/m.lemll"], "there is no folder"),
        (["fit", "{d}/no.csv", "--tags", "tags", "-m", "{d}/m.lemll"], "there is no file"),
        (["predict", "{d}/no.lemll", "{t}", "-o", "{d}/o"], "fit a model with lemll fit"),
        (["predict", "{m}", "{t}", "-o", "{t}"], "would replace an input; choose another name"),
        (["predict", "{a}", "{t}", "-o", "{d}/o"], "holds a BinaryRelevance without its table"),
        (["info", "{d}/no.csv"], "there is no file"),
    ],
)
def test_wrong_files(tmp_path_factory, arguments, message):
    folder = tmp_path_factory.getbasetemp() / "wrong_files"
    names = {"d": folder, "t": folder / "t.csv", "m": folder / "m.lemll", "a": folder / "a.lemll"}
    if not folder.exists():
        folder.mkdir()
        options = write_tags(names["t"])
        ran("fit", names["t"], *options, *FAST, "-m", names["m"])
        digits = load_digit_tags()
        lemll.save(BinaryRelevance().fit(digits.X[:50], digits.Y[:50]), names["a"])
    result = run(*(argument.format(**names) for argument in arguments))
    assert isinstance(result.exception, LemllError), result.output
    assert message in str(result.exception)


def test_top_writes_the_most_probable_tags_in_order(tmp_path):
    options = write_tags(tmp_path / "t.csv")
    model, out = tmp_path / "m.lemll", tmp_path / "o.csv"
    ran("fit", tmp_path / "t.csv", *options, *FAST, "-m", model)
    ran("predict", model, tmp_path / "t.csv", "-o", out)
    whole = read(out)
    ran("predict", model, tmp_path / "t.csv", "-o", out, "--top", 2)
    head, *rows = read(out)
    assert head == ["file", "tags", "tag_1", "p_1", "tag_2", "p_2"]
    names = [title.removeprefix("p_") for title in whole[0][2:]]
    for row, full in zip(rows, whole[1:], strict=True):
        ranked = sorted(zip(names, full[2:], strict=True), key=lambda pair: -float(pair[1]))
        assert row == [*full[:2], *(cell for pair in ranked[:2] for cell in pair)]


def test_rows_are_numbered_without_the_column_of_ids(tmp_path):
    options = write_tags(tmp_path / "t.csv")
    model, out = tmp_path / "m.lemll", tmp_path / "o.csv"
    ran("fit", tmp_path / "t.csv", *options, *FAST, "-m", model)
    pd.read_csv(tmp_path / "t.csv").drop(columns=["file", "tags"]).to_csv(tmp_path / "n.csv")
    shown = ran("predict", model, tmp_path / "n.csv", "-o", out).stdout
    assert "there is no column 'file'; rows are numbered from 1" in shown
    assert read(out)[1][0] == "1"


def test_unknown_tags_are_named(tmp_path):
    options = write_tags(tmp_path / "t.csv")
    model = tmp_path / "m.lemll"
    ran("fit", tmp_path / "t.csv", *options, *FAST, "-m", model)
    write_tags(tmp_path / "n.csv", seed=1)
    text = (tmp_path / "n.csv").read_text(encoding="utf-8").replace("night|sea", "dog|sea")
    (tmp_path / "n.csv").write_text(text, encoding="utf-8")
    shown = ran("evaluate", model, tmp_path / "n.csv").stdout
    assert "1 tags are not known to the model and are left out: dog" in shown


def test_other_habits_of_a_table_to_evaluate(tmp_path):
    options = write_tags(tmp_path / "t.csv")
    model = tmp_path / "m.lemll"
    frame = pd.read_csv(tmp_path / "t.csv").dropna(subset="tags")
    frame.to_csv(tmp_path / "t.csv", index=False)
    tags, ids = options[:4], options[-2:]
    ran("fit", tmp_path / "t.csv", *tags, *ids, *FAST, "-m", model)
    write_tags(tmp_path / "n.csv", seed=1)
    frame = pd.read_csv(tmp_path / "n.csv").dropna(subset="tags")
    frame["tags"] = frame["tags"].str.replace("|", ";")
    frame.loc[frame.index[0], "tags"] = None
    frame.to_csv(tmp_path / "n.csv", index=False)
    result = run("evaluate", model, tmp_path / "n.csv", "--sep", ";")
    assert "--untagged none if no tag applies" in as_options(str(result.exception))
    shown = ran("evaluate", model, tmp_path / "n.csv", "--sep", ";", "--untagged", "unknown").stdout
    assert f"{len(frame)} rows of" in shown
    assert "not known" not in shown


def test_a_table_without_labels_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1.5,2.5\n2.5,1\n", encoding="utf-8")
    assert "no column looks like labels: name them" in ran("info", tmp_path / "t.csv").stdout


def test_unknown_cells_and_columns_that_look_like_labels_are_named(tmp_path):
    options = write_numbers(tmp_path / "plants.csv")
    command = [sys.executable, "-m", "lemll", "fit", "plants.csv", *FAST, "-m", "m.lemll"]
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=True)
    said = run([*command, *options])
    hidden = np.random.RandomState(0).rand(150, 3) < 0.1
    assert f"{hidden.sum()} of 450 cells of labels are unknown; 0 of 150 rows have" in said.stderr
    assert "look like labels" not in said.stderr
    header = next(line for line in said.stdout.splitlines() if "relevant" in line)
    assert header.replace("┃", " ").split()[:3] == ["label", "known", "relevant"]
    said = run([*command, "--labels", "night,sea", "--id", "nr"])
    text = "these columns look like labels and are used as features: sky; name them in --ignore"
    assert text in said.stderr
    # Both fits warn about the same rows, and the user reads it once per text.
    notes = [line for line in said.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == len(set(notes)) > 0
    assert "UserWarning" not in said.stderr
    said = run([*command, "--labels", "night,sea", "--id", "nr", "--ignore", "sky"])
    assert "look like labels" not in said.stderr


def test_a_table_that_only_marks_the_labels_that_apply(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((120, 3))
    marks = np.where(X > 0.2, "x", "")
    lines = [",".join([*map(str, x), *m]) for x, m in zip(X, marks, strict=True)]
    text = "a,b,c,sea,sky,sand\n" + "\n".join(lines)
    (tmp_path / "marked.csv").write_text(text, encoding="utf-8")
    (tmp_path / "ones.csv").write_text(text.replace("x", "1"), encoding="utf-8")
    said = CliRunner().invoke(app, ["info", str(tmp_path / "marked.csv")])
    assert "may be labels that only mark rows (3; one sign or empty): sea, sky, sand" in said.output
    assert "--labels sea,sky,sand --untagged none" in said.output.split("next: ")[1]
    command = ["--labels", "sea,sky,sand", "-m", str(tmp_path / "m.lemll"), *FAST]
    said = CliRunner().invoke(app, ["fit", str(tmp_path / "ones.csv"), *command])
    wanted = "all known cells of these labels say that the label applies: sea, sky, sand; if the"
    assert wanted in said.output
    for name in ("marked.csv", "ones.csv"):
        file = str(tmp_path / name)
        said = CliRunner().invoke(app, ["fit", file, *command, "--untagged", "none"])
        assert said.exit_code == 0, said.output
        assert "all known cells" not in said.output
        assert "no row has these labels" not in said.output
        new = tmp_path / f"new {name}"
        pd.read_csv(file).assign(a=X[:, 0] + 1e-3).to_csv(new, index=False)
        words = ["evaluate", str(tmp_path / "m.lemll"), str(new), "--json"]
        measured = CliRunner().invoke(app, words)
        (score,) = [
            score
            for score in json.loads(measured.stdout)["scores"]
            if score["measure"] == "average_precision"
        ]
        assert score["value"] > 0.9


def test_a_label_that_no_row_has_is_named(tmp_path):
    lines = [f"{i % 7},{i % 2},0,{'' if i % 3 else 0}" for i in range(60)]
    (tmp_path / "t.csv").write_text("a,sea,sky,sand\n" + "\n".join(lines), encoding="utf-8")
    command = ["fit", str(tmp_path / "t.csv"), "--labels", "sea,sky,sand"]
    said = CliRunner().invoke(app, [*command, "-m", str(tmp_path / "m.lemll"), *FAST])
    text = "no row has these labels, so they are never predicted: sky, sand; leave them out"
    assert text in said.output


def test_info_counts_the_empty_cells_of_labels(tmp_path):
    write_numbers(tmp_path / "plants.csv")
    write_parquet(tmp_path / "stations.parquet")
    hidden = (np.random.RandomState(0).rand(150, 3) < 0.1).sum()
    said = CliRunner().invoke(app, ["info", str(tmp_path / "plants.csv")])
    assert f"{hidden} of 450 cells of these columns are empty: nobody looked there" in said.output
    said = CliRunner().invoke(app, ["info", str(tmp_path / "stations.parquet")])
    assert "look like labels (3" in said.output
    assert "are empty" not in said.output


def test_the_command_of_info_fits_lists_among_other_tags(tmp_path):
    path = tmp_path / "t.csv"
    cells = ["None", '["war; peace", "sea"]', "sea; None", "", '["war; peace"]', "NA"] * 10
    frame = pd.DataFrame({"x": ["sea" in cell for cell in cells], "tags": cells})
    frame["x"] = frame["x"] + np.random.RandomState(0).rand(60)
    frame.to_csv(path, index=False)
    found = json.loads(run("info", path, "--json").stdout)
    assert found["look_like_tags"] == {"tags": ";"}
    assert "--tags tags --sep ';' --untagged unknown" in found["next"]
    assert "10 empty cells: pass --untagged" in run("info", path).stdout
    model = tmp_path / "t.lemll"
    words = shlex.split(found["next"])[1:-1]
    result = run(*words, model, "--learner", "LEMLL", "--json")
    assert result.exception is None
    fitted = json.loads(result.stdout)
    assert fitted["labels"] == ["NA", "None", "sea", "war; peace"]


def test_the_names_of_the_learners_are_those_of_the_library():
    assert tuple(training.LEARNERS) == LEARNERS


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["predict", "--help"]])
def test_help_imports_no_learner(words):
    code = (
        "import sys; sys.argv = ['lemll', *sys.argv[1:]]\n"
        "try:\n    from lemll.cli import main; main()\n"
        "finally:\n    assert 'sklearn' not in sys.modules and 'pandas' not in sys.modules\n"
    )
    done = in_process(code, *words, check=False)
    assert "Usage: " in done.stdout
    assert done.stderr == ""
