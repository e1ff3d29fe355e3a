"""``lemll audit``: from a table to a list, a page and corrected labels."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.exceptions import LemllError
from lemll.tables import LabelSpec, read_table
from lemll.tables.edit import row_fingerprints

pytestmark = pytest.mark.slow

TAGS = np.array(["night", "sea", "=sky"])


def write_photos(path, n=150):
    """Write a table with text, gaps, ids, and three mistakes; return the rows of the mistakes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([X[:, 0] < -0.3, X[:, 1] > 0, X[:, 1] + X[:, 2] > 0.2])
    clear = np.argsort(-np.abs(X[:, 0] + 0.3))[:3]
    Y[clear, 0] = ~Y[clear, 0]
    frame = pd.DataFrame(X.round(3), columns=["light", "hue", "blue"])
    frame.insert(0, "file", [f"IMG_{i:04d}" for i in range(n)])
    frame["caption"] = [f"number <b>{i}</b>" for i in range(n)]
    frame["tags"] = ["|".join(TAGS[row]) for row in Y]
    frame.to_csv(path, index=False)
    return {f"IMG_{i:04d}" for i in clear}


def prints(path, **spec):
    """Return the fingerprints of the rows of a table."""
    return row_fingerprints(read_table(path), LabelSpec(**(spec or {"tags": "tags"})))


OPTIONS = ["--tags", "tags", "--sep", "|", "--untagged", "none", "--id", "file"]


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], catch_exceptions=False)


def test_a_table_becomes_a_list_and_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mistakes = write_photos(tmp_path / "photos.csv")
    before = (tmp_path / "photos.csv").read_bytes()
    result = run("photos.csv", *OPTIONS, "--limit", 60)
    assert result.exit_code == 0
    assert "wrote photos-audit.csv: the 60 most doubtful tags" in result.stdout
    assert "open photos-audit.html to accept or reject them" in result.stdout
    assert "random forest: out-of-fold scores" in result.stderr
    with (tmp_path / "photos-audit.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 60
    assert mistakes == {row["id"] for row in rows[:6] if row["label"] == "night"} & mistakes
    assert {row["label"] for row in rows} <= {"night", "sea", "'=sky"}
    assert all(len(row["neighbours"].split(";")) == 10 for row in rows)
    page = (tmp_path / "photos-audit.html").read_text(encoding="utf-8")
    assert "number <b>" not in page
    assert "Audit of photos.csv" in page
    assert (tmp_path / "photos.csv").read_bytes() == before


def test_fast_mode_and_json(tmp_path):
    write_photos(tmp_path / "photos.csv")
    target = tmp_path / "out.csv"
    result = run(tmp_path / "photos.csv", *OPTIONS, "--fast", "--json", "-o", target)
    found = json.loads(result.stdout)
    assert found["output"] == str(target)
    assert found["page"] == str(tmp_path / "out.html")
    assert found["noise"] is None
    # A tenth of 450 known tags would be few.
    assert sum(found["listed"].values()) == 100
    assert "fast mode" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_labels_of_which_the_data_cannot_tell_come_last(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    write_photos(tmp_path / "photos.csv")
    frame = pd.read_csv(tmp_path / "photos.csv", keep_default_na=False)
    for j, rows in enumerate(([1, 70], [30, 90], [60, 140])):
        frame.loc[rows, "tags"] = frame.loc[rows, "tags"] + f"|rare{j}"
    frame.to_csv(tmp_path / "photos.csv", index=False)
    shown = run(tmp_path / "photos.csv", *OPTIONS, "-o", tmp_path / "a.csv").output
    untold = [line.count("cannot tell") for line in shown.splitlines() if "│" in line]
    assert len(untold) == 6
    assert untold == sorted(untold)
    assert untold[0] < untold[-1]


def test_label_columns_with_unknown_cells(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    frame["up"] = pd.array((X[:, 0] > 0).astype(int), dtype="Int64")
    frame["down"] = pd.array((X[:, 1] > 0).astype(int), dtype="Int64")
    frame.loc[3, "up"] = pd.NA
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    result = run(path, "--labels", "up,down", "--limit", 500, "-o", tmp_path / "o.csv", "--json")
    found = json.loads(result.stdout)
    assert sum(found["listed"].values()) == 119
    assert [entry["label"] for entry in found["noise"]] == ["up", "down"]
    assert all(0 <= entry["missing"] <= entry["missing_high"] <= 1 for entry in found["noise"])
    spec = LabelSpec(labels=("up", "down"))
    mark = row_fingerprints(read_table(path), spec, labels_count=True)[0]
    decisions = tmp_path / "d.csv"
    decisions.write_text(
        f"row,id,fingerprint,label,given,suggested,decision\n0,0,{mark},up,{frame.up[0]},"
        f"{1 - frame.up[0]},accept\n",
        encoding="utf-8",
    )
    run(path, "--labels", "up,down", "--apply", decisions, "-o", tmp_path / "c.csv")
    found = pd.read_csv(tmp_path / "c.csv")
    assert found.up[0] == 1 - frame.up[0]
    assert np.isnan(found.up[3])


def test_decisions_find_their_rows_by_id(tmp_path):
    path = tmp_path / "photos.csv"
    write_photos(path)
    table = pd.read_csv(path, keep_default_na=False)
    given = int("night" in table.tags[7])
    decisions = tmp_path / "decisions.csv"
    # As a spreadsheet in Europe saves it.
    text = (
        "row;id;fingerprint;label;given;suggested;score;decision\r\n"
        f"7;IMG_0007;{prints(path)[7]};night;{given};{1 - given};0,9;accept\r\n"
        f"8;IMG_0008;{prints(path)[8]};sea;{int('sea' in table.tags[8])};0;0,8;reject\r\n"
    )
    decisions.write_bytes(text.encode("cp1252"))
    table.iloc[::-1].to_csv(path, index=False)
    target = tmp_path / "corrected.csv"
    result = run(path, *OPTIONS, "--apply", decisions, "-o", target)
    assert f"IMG_0007: {'remove' if given else 'add'} night" in result.stderr
    corrected = pd.read_csv(target, keep_default_na=False).set_index("file").tags
    before = table.set_index("file").tags
    tags = [{name: set(column[name].lstrip("'").split("|")) for name in before.index}
            for column in (before, corrected)]  # fmt: skip
    assert [name for name in before.index if tags[0][name] != tags[1][name]] == ["IMG_0007"]
    # The corrected tags are read as tags again, also those that begin like a formula.
    merged = table.drop(columns="tags").merge(corrected, left_on="file", right_index=True)
    merged.to_csv(path, index=False)
    again = run(path, *OPTIONS, "--fast", "--json", "-o", tmp_path / "again.csv")
    assert json.loads(again.stdout)["labels"] == ["=sky", "night", "sea"]


def test_refusals(tmp_path):
    path = tmp_path / "photos.csv"
    write_photos(path)
    with pytest.raises(LemllError, match="would replace an input; choose another name"):
        run(path, *OPTIONS, "-o", path)
    with pytest.raises(LemllError, match="-o and --page are both .*; choose another name for one"):
        run(path, *OPTIONS, "-o", tmp_path / "a.html")
    decisions = tmp_path / "decisions.csv"
    decisions.write_text("row,id,label,given,suggested\n0,IMG_0000,sea,1,0\n", encoding="utf-8")
    with pytest.raises(LemllError, match="would replace an input; choose another name"):
        run(path, *OPTIONS, "--apply", decisions, "-o", decisions)
    with pytest.raises(LemllError, match="has no column 'decision'; decide on the page"):
        run(path, *OPTIONS, "--apply", decisions, "-o", tmp_path / "c.csv")
    decisions.write_text(
        "row,id,label,given,suggested,decision\n0,IMG_9,sea,1,0,accept\n", encoding="utf-8"
    )
    with pytest.raises(LemllError, match="has no column 'fingerprint'; decide on the page"):
        run(path, *OPTIONS, "--apply", decisions, "-o", tmp_path / "c.csv")
    decisions.write_text(
        "row,id,fingerprint,label,given,suggested,decision\n0,IMG_9,x,sea,1,0,accept\n",
        encoding="utf-8",
    )
    with pytest.raises(LemllError, match="for the id 'IMG_9', but no --id was given"):
        run(path, *OPTIONS[:-2], "--apply", decisions, "-o", tmp_path / "c.csv")
    with pytest.raises(LemllError, match="there is no folder"):
        run(path, *OPTIONS, "-o", tmp_path / "no" / "x.csv")
    with pytest.raises(LemllError, match="there is no file"):
        run(path, *OPTIONS, "--apply", tmp_path / "none.csv", "-o", tmp_path / "c.csv")
    with pytest.raises(LemllError, match="say where the labels are"):
        run(path)
