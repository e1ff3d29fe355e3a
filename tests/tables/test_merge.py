"""Tags in small and capital letters: one tag, if the user says so."""

import json
import unicodedata

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lemll import load
from lemll.audit import find_tag_issues
from lemll.cli.app import app
from lemll.exceptions import LemllError
from lemll.tables import LabelSpec, Table, read_table, split_table
from lemll.tables.labels import tags_alike, truth_of

MERGED = LabelSpec(tags="tags", merge="case")
TAGS = ["politics;Sport", "Politics;sport", "politics", "POLITICS;été", "Été"]


def table(tags):
    return Table(pd.DataFrame({"x": np.arange(len(tags)) % 7 * 1.5, "tags": tags}), "t")


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments], catch_exceptions=False)


def test_the_most_frequent_spelling_is_kept():
    found = split_table(table(TAGS), MERGED)
    # Ties: the first in the order of the text.
    assert found.label_names == ("Sport", "politics", "Été")
    assert found.Y.tolist() == [[1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]]
    groups = tags_alike(table(TAGS), LabelSpec(tags="tags"))
    assert groups == [("politics", "POLITICS", "Politics"), ("Sport", "sport"), ("Été", "été")]


def test_new_rows_have_the_spellings_of_the_model():
    Y, unknown = truth_of(table(["POLITICS;Tea", "sport"]), MERGED, ["Sport", "politics"])
    assert Y.tolist() == [[0, 1], [1, 0]]
    assert unknown == ("Tea",)
    assert LabelSpec.from_json(json.loads(json.dumps(MERGED.to_json()))) == MERGED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "tags", "merge": "all"}, "`merge` must be case, got 'all'"),
        ({"labels": ("a",), "merge": "case"}, "`merge` belongs to `tags`; leave it out"),
    ],
)
def test_refused_merges(options, message):
    with pytest.raises(LemllError, match=message):
        LabelSpec(**options)


def write_archive(path, n_rows=60):
    """Write rows whose tags have many spellings; return the groups."""
    rng = np.random.default_rng(0)
    names = ["alpha", "beta", "gamma", "delta", "omega"]
    x = rng.normal(size=n_rows)
    tags = []
    for i, value in enumerate(x):
        own = [names[i % 5], "alpha" if value > 0 else "beta"]
        tags.append(";".join(name.title() if i % 3 == 0 else name for name in dict.fromkeys(own)))
    pd.DataFrame({"x": x, "tags": tags}).to_csv(path, index=False)
    return names


def test_info_proposes_the_option_with_all_groups(tmp_path):
    names = write_archive(tmp_path / "t.csv")
    result = run("info", tmp_path / "t.csv")
    assert "tags of tags that differ only in case (5 groups): " in result.stdout
    assert all(f"{name}, {name.title()}" in result.stdout for name in names)
    assert "pass --merge case" in result.stdout
    assert "--tags tags --merge case -m t.lemll" in result.stdout
    found = json.loads(run("info", tmp_path / "t.csv", "--json").stdout)
    assert len(found["tags_alike"]["tags"]) == 5


@pytest.mark.parametrize("column", ["[broken]", "[[[]"])
def test_info_reads_a_column_that_only_looks_like_lists(tmp_path, column):
    (tmp_path / "t.csv").write_text(f"x,tags\n1,{column}]\n2,{column}]\n", encoding="utf-8")
    assert run("info", tmp_path / "t.csv").exit_code == 0


def test_a_model_remembers_to_merge(tmp_path):
    path, model = tmp_path / "t.csv", tmp_path / "t.lemll"
    names = write_archive(path)
    result = run("fit", path, "--tags", "tags", "--merge", "case", "-m", model, "--learner",
                 "BinaryRelevance", "--json")  # fmt: skip
    assert sorted(json.loads(result.stdout)["labels"]) == sorted(names)
    assert load(model).spec.merge == "case"
    new = pd.read_csv(path)
    new["x"] += 0.001
    new.to_csv(tmp_path / "n.csv", index=False)
    new.assign(tags=new["tags"].str.upper()).to_csv(tmp_path / "u.csv", index=False)
    figures = [json.loads(run("evaluate", model, tmp_path / file, "--json").stdout)
               for file in ("n.csv", "u.csv")]  # fmt: skip
    assert figures[0] == figures[1]
    assert figures[0]["unknown_tags"] == []


def test_a_tag_in_another_spelling_is_not_missing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    apart = unicodedata.normalize("NFD", "café")
    spellings = [["Sea", "café"], ["sea", apart]]
    Y = [spellings[i % 2] if x > 0 else ["sky"] for i, x in enumerate(X[:, 0])]
    issues = find_tag_issues(X, Y, limit=None, mode="fast")
    keys = {"sea": "sea", "Sea": "sea", "café": "é", apart: "é", "sky": "sky"}
    given = [{keys[tag] for tag in row} for row in Y]
    missing = issues[issues.kind == "missing"]
    assert len(missing)
    assert not any(keys[label] in given[row] for row, label in missing[["row", "label"]].values)
    # The limit counts what is listed.
    assert len(find_tag_issues(X, Y, limit=50, mode="fast")) == 50


@pytest.mark.parametrize("sep", [None, ";"])
def test_predicted_tags_that_contain_the_separator_stay_whole(tmp_path, sep):
    x = np.linspace(-1, 1, 60)
    tags = [json.dumps(["red;blue", "sea"] if value > 0 else ["sea"]) for value in x]
    pd.DataFrame({"x": x, "tags": tags}).to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "--tags", "tags", "-m", tmp_path / "m.lemll", "--learner",
        "BinaryRelevance")  # fmt: skip
    run("predict", tmp_path / "m.lemll", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    predicted = read_table(tmp_path / "p.csv", keep=["tags"])
    found = split_table(predicted, LabelSpec(tags="tags", sep=sep))
    assert found.label_names == ("red;blue", "sea")
