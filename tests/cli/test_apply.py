"""``lemll audit --apply``: the right rows, the right cells, and nothing else."""

import numpy as np
import openpyxl
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.tables import LabelSpec, read_table, split_table
from lemll.tables.edit import row_fingerprints

TEXT = (
    'row;note;x;tags\r\n"05";"a ""quote""";1,50;"sky; sea"\r\n5;"two\r\nlines";2,50;Rain;sky\r\n'
).replace("Rain;sky", '"Rain;sky"')


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], catch_exceptions=False)


def decide(folder, path, decisions, spec=None, *, has_ids=True):
    """Write decisions (row, id, label, given) on a table as it is now."""
    spec = LabelSpec(tags="tags") if spec is None else spec
    marks = row_fingerprints(read_table(path), spec, labels_count=not has_ids)
    lines = [f"{row},{key},{marks[row]},{label},{given},{1 - given},accept\n"
             for row, key, label, given in decisions]  # fmt: skip
    target = folder / "decisions.csv"
    head = "row,id,fingerprint,label,given,suggested,decision\n"
    target.write_text(head + "".join(lines), encoding="utf-8")
    return target


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
def test_only_the_changed_cells_of_a_text_file_change(tmp_path, encoding):
    path = tmp_path / "t.csv"
    before = TEXT.replace("quote", "Käfer")
    path.write_bytes(before.encode(encoding))
    decisions = decide(tmp_path, path, [(0, "05", "night", 0), (1, "5", "Rain", 1)])
    # The tag night comes from a third row.
    before += '7;"";3;night\r\n'
    path.write_bytes(before.encode(encoding))
    result = run(path, "--tags", "tags", "--id", "row", "--apply", decisions, "-o",
                 tmp_path / "c.csv", "--sep", ";")  # fmt: skip
    assert result.exit_code == 0
    assert "2 cells changed: 1 tags removed, 1 added; 0 decisions refused" in result.stdout
    after = before.replace('"sky; sea"', '"sky; sea; night"').replace('"Rain;sky"', '"sky"')
    assert (tmp_path / "c.csv").read_bytes() == after.encode(encoding)


@pytest.mark.parametrize("name", ["row", "file", "label"])
def test_the_list_of_an_audit_names_ids_without_a_clash(tmp_path, name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    tags = np.where(x > 0, "sea;sky", "sky")
    frame = pd.DataFrame({name: [f"0{i}" for i in range(40)], "x": x, "tags": tags})
    path, out = tmp_path / "t.csv", tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    run(path, "--tags", "tags", "--id", name, "--fast", "-o", out)
    issues = pd.read_csv(out, dtype=str)
    assert issues.columns[:4].tolist() == ["row", "id", "fingerprint", "label"]
    issues["decision"] = np.where(np.arange(len(issues)) == 0, "accept", "reject")
    issues.to_csv(tmp_path / "d.csv", index=False)
    result = run(path, "--tags", "tags", "--id", name, "--untagged", "none", "--apply",
                 tmp_path / "d.csv", "-o", tmp_path / "c.csv")  # fmt: skip
    assert result.exit_code == 0
    after = pd.read_csv(tmp_path / "c.csv", dtype=str, keep_default_na=False)
    changed = after.tags != frame.tags
    assert after[name][changed].tolist() == [issues["id"][0]]


def test_what_does_not_fit_any_more_is_refused_and_listed(tmp_path):
    path = tmp_path / "t.csv"
    rows = ["1,red,sea", "2,blue,sky", "3,green,sea;sky", "4,grey,rain", "5,pink,sky;rain"]
    path.write_text("x,y,tags\n" + "\n".join(rows) + "\n", encoding="utf-8")
    decided = [(0, "0", "sky", 0), (1, "1", "sea", 0), (2, "2", "sky", 1), (3, "3", "sea", 0)]
    decisions = decide(tmp_path, path, [*decided, (4, "4", "rain", 1), (4, "4", "rain", 1)],
                       has_ids=False)  # fmt: skip
    # Two rows change places, one has lost its tag, one was edited.
    rows = [rows[1], rows[0], "3,green,sea", "4,black,rain", rows[4]]
    path.write_text("x,y,tags\n" + "\n".join(rows) + "\n", encoding="utf-8")
    result = run(path, "--tags", "tags", "--apply", decisions, "-o", tmp_path / "c.csv")
    assert result.exit_code == 1
    assert "1 cells changed: 1 tags removed, 0 added; 5 decisions refused" in result.stdout
    for row, reason in [
        ("0: add sky", "the row is not as it was in the audit; if rows can move, audit with --id"),
        ("1: add sea", "the row is not as it was in the audit"),
        ("2: remove sky", "the row is not as it was in the audit"),
        ("3: add sea", "the row is not as it was in the audit"),
        ("4: remove rain", "decided twice"),
    ]:
        assert f"refused: {row}: {reason}" in result.stderr
    expected = [*rows[:4], "5,pink,sky"]
    text = (tmp_path / "c.csv").read_text(encoding="utf-8")
    assert text == "x,y,tags\n" + "\n".join(expected) + "\n"


def test_rows_with_equal_features_are_not_mistaken_for_each_other(tmp_path):
    path = tmp_path / "t.csv"
    rows = ["1,sea", "1,sea;sky", *(f"{i},{'sky' if i % 3 else 'sea'}" for i in range(2, 14))]
    path.write_text("x,tags\n" + "\n".join(rows) + "\n", encoding="utf-8")
    options = ["--tags", "tags", "--fast", "--limit", 99, "-o", tmp_path / "a.csv"]
    assert run(path, *options).exit_code == 0
    found = pd.read_csv(tmp_path / "a.csv", dtype=str)
    chosen = (found["row"] == "1") & (found["label"] == "sea")
    decided = found[chosen].assign(decision="accept")
    assert len(decided) == 1
    decided.to_csv(tmp_path / "d.csv", index=False)
    path.write_text("x,tags\n" + "\n".join([rows[1], rows[0], *rows[2:]]) + "\n", encoding="utf-8")
    result = run(path, "--tags", "tags", "--apply", tmp_path / "d.csv", "-o", tmp_path / "c.csv")
    assert result.exit_code == 1
    assert "the row is not as it was in the audit; if rows can move" in result.stderr
    assert (tmp_path / "c.csv").read_bytes() == path.read_bytes()


def test_with_ids_a_row_may_have_other_tags_since(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x,tags\na,1,sea;sky\nb,2,sky\n", encoding="utf-8")
    decisions = decide(tmp_path, path, [(0, "b", "sea", 0), (0, "a", "sky", 1), (1, "b", "sea", 0)])
    path.write_text("id,x,tags\na,1,sea\nb,2,sky;rain\n", encoding="utf-8")
    result = run(path, "--tags", "tags", "--id", "id", "--apply", decisions, "-o",
                 tmp_path / "c.csv")  # fmt: skip
    assert result.exit_code == 1
    assert "refused: b: add sea: the audit meant the row a; a spreadsheet may" in result.stderr
    assert "refused: a: remove sky: the row lacks the tag now" in result.stderr
    # A decision that does not fit leaves the place of one that does.
    text = (tmp_path / "c.csv").read_text(encoding="utf-8")
    assert text == "id,x,tags\na,1,sea\nb,2,sky;rain;sea\n"


@pytest.mark.parametrize(("changed", "meant"), [("5", "05"), ("7", "007")])
def test_ids_that_a_spreadsheet_changed_are_refused_with_the_right_id(tmp_path, changed, meant):
    path = tmp_path / "t.csv"
    path.write_text("key,x,tags\n5,1,sea\n05,2,sea;sky\n007,3,sky;sea\n", encoding="utf-8")
    decisions = decide(tmp_path, path, [(1, "05", "sky", 1), (2, "007", "sky", 1)])
    text = decisions.read_text(encoding="utf-8")
    decisions.write_text(text.replace(f",{meant},", f",{changed},"), encoding="utf-8")
    result = run(path, "--tags", "tags", "--id", "key", "--apply", decisions, "-o",
                 tmp_path / "c.csv")  # fmt: skip
    assert result.exit_code == 1
    assert f"refused: {changed}: remove sky: the audit meant the row {meant}; a" in result.stderr
    assert "1 cells changed: 1 tags removed, 0 added; 1 decisions refused" in result.stdout


def test_a_tag_with_the_separator_is_added_to_plain_text_as_a_list(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,x,tags\na,1,"[""red;blue""]"\nb,2,sky;[old]\nc,3,sea\n', encoding="utf-8")
    decisions = decide(tmp_path, path, [(2, "c", "red;blue", 0), (1, "b", "sky", 1)])
    result = run(path, "--tags", "tags", "--sep", ";", "--id", "id", "--apply", decisions, "-o",
                 tmp_path / "c.csv")  # fmt: skip
    assert result.exit_code == 0, result.output
    table = read_table(tmp_path / "c.csv", keep=["tags"])
    found = split_table(table, LabelSpec(tags="tags", sep=";"), ids="id")
    assert found.label_names == ("[old]", "red;blue", "sea")
    assert found.Y.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 1]]


def test_an_empty_cell_must_mean_that_no_tag_applies(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,tags\n1,sea\n2,sky\n", encoding="utf-8")
    decisions = decide(tmp_path, path, [(0, "0", "sea", 1)], has_ids=False)
    common = [path, "--tags", "tags", "--apply", decisions, "-o", tmp_path / "c.csv"]
    result = run(*common)
    assert result.exit_code == 1
    assert "without its last tag the cell would be empty; pass --untagged none" in result.stderr
    assert run(*common, "--untagged", "none").exit_code == 0
    assert (tmp_path / "c.csv").read_text(encoding="utf-8") == "x,tags\n1,\n2,sky\n"


def test_label_columns_keep_their_words(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\tSea\tSky\n1\tYes\tx\n2\tNo\t\n3\t?\tx\n", encoding="utf-8")
    spec = LabelSpec(labels=("Sea", "Sky"))
    decided = [(0, "0", "Sea", 1), (1, "1", "Sky", 0)]
    decisions = decide(tmp_path, path, decided, spec, has_ids=False)
    result = run(path, "--labels", "Sea,Sky", "--untagged", "none", "--delimiter", "tab",
                 "--apply", decisions, "-o", tmp_path / "c.csv")  # fmt: skip
    assert result.exit_code == 0
    text = (tmp_path / "c.csv").read_text(encoding="utf-8")
    assert text == "x\tSea\tSky\n1\tNo\tx\n2\tNo\tx\n3\t?\tx\n"


def test_tags_with_the_separator_stay_whole(tmp_path):
    columns = {"x": [1, 2, 3], "tags": [["red;blue", "a"], ["a"], None]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    path = tmp_path / "t.parquet"
    decided = [(1, "1", "red;blue", 0), (0, "0", "a", 1)]
    decisions = decide(tmp_path, path, decided, has_ids=False)
    result = run(path, "--tags", "tags", "--untagged", "unknown", "--apply", decisions, "-o",
                 tmp_path / "c.csv")  # fmt: skip
    assert result.exit_code == 0
    cells = read_table(tmp_path / "c.csv", keep=["tags"]).frame["tags"].tolist()
    assert cells == ['["red;blue"]', '["a", "red;blue"]', None]


def test_excel_is_written_as_csv_with_all_columns(tmp_path):
    book = openpyxl.Workbook()
    for row in (["key", "x", "tags"], ["01", 1.5, "b;a"], ["1", 2, "a"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    decisions = decide(tmp_path, tmp_path / "t.xlsx", [(1, "1", "b", 0)])
    run(tmp_path / "t.xlsx", "--tags", "tags", "--id", "key", "--apply", decisions, "-o",
        tmp_path / "c.csv")  # fmt: skip
    text = (tmp_path / "c.csv").read_text(encoding="utf-8").split()
    assert text == ["key,x,tags", "01,1.5,b;a", "1,2,a;b"]
