"""``lemll enhance``: files in, degrees out, and ratings that fix the scale."""

from __future__ import annotations

import csv
import importlib
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lemll.cli import main
from lemll.cli.app import app
from lemll.enhancers import BlendEnhancer, LEMLLEnhancer
from lemll.exceptions import LemllError

NAMES = ["sky", "sea", "sand"]

# The package has a function of the same name.
enhance_command = importlib.import_module("lemll.cli.enhance")


@pytest.fixture
def file(tmp_path):
    rng = np.random.RandomState(0)
    X = rng.rand(30, 2)
    Y = np.column_stack([X[:, 0] > 0.3, X[:, 1] > 0.5, X.sum(axis=1) > 1]).astype(int)
    path = tmp_path / "photos.csv"
    rows = [[*x, *y] for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["a", "b", *NAMES], *rows])
    return path, X, Y


def run(*arguments, answers=None, fails=False):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=answers)
    if fails:
        return result.exception
    if result.exception is not None:
        raise result.exception
    return result.output


def read(path):
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    return rows[0], np.array(rows[1:], dtype=float)


def test_degrees_are_written_with_the_labels_names(file, tmp_path):
    path, X, Y = file
    out = tmp_path / "out" / "degrees.csv"
    output = run("enhance", path, "--labels", ",".join(NAMES), "-o", out)
    header, values = read(out)
    assert header == ["row", *NAMES]
    np.testing.assert_allclose(values[:, 1:], BlendEnhancer().fit_enhance(X, Y), rtol=1e-4)
    assert "30 rows, 3 labels" in output
    assert "Blend without rated rows: labels tell which matters more" in output
    assert "Rate a few rows (--rate 10, or --rated FILE) to fix how steep the degrees" in output


def test_rows_without_a_known_label_are_not_shown_as_rows_without_labels(file, tmp_path):
    path, _, _ = file
    header, first, second, *rest = path.read_text().splitlines()
    first, second = (",".join(row.split(",")[:2]) for row in (first, second))
    path.write_text("\n".join([header, f"{first},0,0,0", f"{second},0,,", *rest]))
    output = run("enhance", path, "--labels", ",".join(NAMES), "-o", tmp_path / "degrees.csv")
    assert re.search(r"\b0 +│ none +│", output)
    assert re.search(r"\b1 +│ none known +│", output)


@pytest.mark.parametrize(
    "method", ["lemll.rivals:KMEnhancer", "Uniform", "lemll.rivals:GLLEEnhancer"]
)
def test_methods_of_lemll_and_of_others(file, tmp_path, method):
    out = tmp_path / "d.csv"
    run("enhance", file[0], "--labels", ",".join(NAMES), "--method", method, "-o", out)
    np.testing.assert_allclose(read(out)[1][:, 1:].sum(axis=1), 1, atol=1e-4)


def write_ratings(path, known):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["row", *NAMES])
        # Degrees on any scale: here of 100 points.
        writer.writerows([i, *(100 * known[i])] for i in range(10))


def test_rated_rows_weigh_the_sources(file, tmp_path):
    path, X, Y = file
    known = np.random.RandomState(1).dirichlet(np.ones(3), size=30)
    write_ratings(tmp_path / "rated.csv", known)
    common = ["enhance", path, "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    output = run(*common, "--rated", tmp_path / "rated.csv")
    assert "weights from 10 rated rows: " in output
    assert "(Kullback-Leibler), and " in output
    enhancer = BlendEnhancer().fit(X, Y).calibrate(range(10), known[:10])
    found = read(tmp_path / "d.csv")[1][:, 1:]
    np.testing.assert_allclose(found, enhancer.label_distribution_, atol=1e-5)
    # The rows that the user rated have the degrees of the user.
    np.testing.assert_allclose(found[:10], known[:10], atol=1e-5)


def test_rated_rows_fix_the_scale(file, tmp_path):
    path, X, Y = file
    enhancer = LEMLLEnhancer(graph={"reg_policy": "auto"}, tol=1e-6, max_iter=5000, scale=3.0)
    known = enhancer.fit_enhance(X, Y)
    rated = tmp_path / "rated.csv"
    write_ratings(rated, known)
    out = tmp_path / "d.csv"
    output = run(
        "enhance", path, "--labels", ",".join(NAMES), "--method", "LEMLL", "--rated", rated,
        "-o", out,
    )  # fmt: skip
    assert "scale 3 from 10 rated rows" in output
    np.testing.assert_allclose(read(out)[1][:, 1:], known, atol=1e-3)


@pytest.mark.parametrize(("high", "wide"), [(37.3, True), (10.0, False)])
def test_a_scale_that_the_ratings_hardly_fix_is_told(high, wide):
    enhancer = SimpleNamespace(blend_=None, scale_=5.0, scale_interval_=(1.27, high))
    text = enhance_command._found(enhancer, 10)
    assert f"scale 5 from 10 rated rows (95 % interval 1.27 to {high:g})" in text
    assert ("The interval is wide: the ratings hardly fix the scale" in text) == wide


def test_ratings_may_have_percent_signs_and_accents_of_other_programs(tmp_path):
    composed, apart = "\u00e9t\u00e9", "e\u0301te\u0301"
    (tmp_path / "d.csv").write_text(
        f"a,{composed},sea\n" + "1.5,1,0\n2.5,0,1\n" * 5, encoding="utf-8"
    )
    (tmp_path / "r.csv").write_text(f"row,{apart},sea\n0,70%,30 %\n1,20%,80%\n", encoding="utf-8")
    out = tmp_path / "o.csv"
    labels = f"{composed},sea"
    run("enhance", tmp_path / "d.csv", "--labels", labels, "--rated", tmp_path / "r.csv", "-o", out)
    np.testing.assert_allclose(read(out)[1][:2, 1:], [[0.7, 0.3], [0.2, 0.8]])


def test_rows_can_be_rated_by_answering(file, tmp_path):
    answers = "5 3 2\n\n1 2\nfive 1 1\n1 1 1\n"
    output = run(
        "enhance", file[0], "--labels", ",".join(NAMES), "--rate", 3, "-o", tmp_path / "d.csv",
        answers=answers,
    )  # fmt: skip
    assert "from 2 rated rows" in output
    assert "expected 3 numbers, got 2; give one for each of sky, sea, sand" in output
    assert "column 'sky' must hold a degree, a number from 0, got 'five'" in output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "row,sky,sea\n0,1,2\n",
            "lacks 'sand'; it needs the row numbers, counted from 0, in 'row', and one "
            "column per label; to rate by ids, pass --id COL",
        ),
        ("sky,sea,sand\n1,2,3\n", "lacks 'row'; it needs"),
        ("row,sky,sea,sand\n", "the table has no rows below its header"),
        (
            "row,sky,sea,sand\n0,1,x,2\n",
            "rated.csv, row 0: column 'sea' must hold a degree, a number from 0, got 'x'; write for"
            " example 0.5, or 50 for 50 of 100 points",
        ),
        ("row,sky,sea,sand\n0,1,-1,2\n", "column 'sea' must hold a degree, a number from 0"),
        ("row,sky,sea,sand\n0,1,1,1e200\n", "column 'sand' must hold a degree"),
        (
            "row,sky,sea,sand\n4,0,0,0\n",
            "rated.csv, row 4: all degrees are 0; give the labels that matter a number above 0",
        ),
        (
            "row,sky,sea,sand\n99,1,1,2\n",
            "rated.csv: column 'row' holds '99', which is not a row of the data, such as '0' or "
            "'29'; rows are counted from 0; mend or leave out this line",
        ),
        ("row,sky,sea,sand\n,1,1,2\n", "column 'row' holds an empty cell, which is not a row"),
        (
            "row,sky,sea,sand\n1,1,1,2\n1,2,2,1\n",
            "rated.csv, row 1 is rated twice; leave one line out",
        ),
        (
            "row,sky,sea,sand\n1,1,1,\n",
            "row 1: column 'sand' is empty; write 0 if this label does not matter there",
        ),
        ('row,sky,sea,sand\n1,1,1,"' + 200_000 * "x" + '"\n', "field larger than field limit"),
    ],
)
def test_bad_ratings_are_named(file, tmp_path, content, message):
    rated = tmp_path / "rated.csv"
    rated.write_text(content)
    error = run(
        "enhance", file[0], "--labels", ",".join(NAMES), "--rated", rated,
        "-o", tmp_path / "d.csv", fails=True,
    )  # fmt: skip
    assert isinstance(error, LemllError)
    assert message in str(error)


def write_photos(path, n=40):
    """Tags in one column, and ids, one of which looks like a formula."""
    rng = np.random.RandomState(0)
    X = rng.rand(n, 2)
    ids = [f"IMG_{i:03d}" for i in range(n - 1)] + ["=last"]
    tags = ["sea;sky" if a > 0.6 else "sky" if b > 0.5 else "sand" for a, b in X]
    rows = zip(ids, X.round(3).tolist(), tags, strict=True)
    text = "".join(f"{name},{a},{b},{tags}\n" for name, (a, b), tags in rows)
    path.write_text("file,light,hue,tags\n" + text)
    return ["enhance", path, "--tags", "tags", "--id", "file", "-o", path.parent / "d.csv"]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("file,sand,sea,sky\nIMG_003,0,0.25,0.75\nIMG_001,0.5,0.25,0.25\n'=last,0,1,3\n", "utf-8"),
        ("file;sand;sea;sky\nIMG_003;0;0,25;0,75\nIMG_001;0,5;0,25;0,25\n=last;0;1;3\n", "latin-1"),
        # Three decimals could also be thousands, but degrees have no such signs.
        ("file;sand;sea;sky\nIMG_003;0;0,250;0,750\nIMG_001;0,500;0,250;0,250\n=last;0;1;3\n",
         "utf-16"),
        ("sky\tsea\tsand\trow\n3\t1\t0\t3\n1\t1\t2\t1\n3\t1\t0\t39\n", "utf-8-sig"),
    ],
)  # fmt: skip
def test_rows_can_be_rated_by_their_ids(tmp_path, content, encoding):
    common = write_photos(tmp_path / "photos.csv")
    rated = tmp_path / "rated.csv"
    rated.write_text(content, encoding=encoding)
    assert "weights from 3 rated rows" in run(*common, "--rated", rated)
    with (tmp_path / "d.csv").open(newline="") as stream:
        header, *rows = list(csv.reader(stream))
    assert header == ["file", "sand", "sea", "sky"]
    found = {row[0]: [float(cell) for cell in row[1:]] for row in rows}
    np.testing.assert_allclose(found["IMG_003"], [0, 0.25, 0.75], atol=1e-5)
    np.testing.assert_allclose(found["IMG_001"], [0.5, 0.25, 0.25], atol=1e-5)
    np.testing.assert_allclose(found["'=last"], [0, 0.25, 0.75], atol=1e-5)


def test_wrong_ids_of_ratings_are_named(tmp_path):
    common = write_photos(tmp_path / "photos.csv")
    rated = tmp_path / "rated.csv"
    rated.write_text("file,sand,sea,sky\nIMG_3,0,0.25,0.75\n")
    message = "column 'file' holds 'IMG_3', which is not a file of the data, such as 'IMG_000'"
    assert message in str(run(*common, "--rated", rated, fails=True))
    rated.write_text("name,sand,sea,sky\nIMG_003,0,0.25,0.75\n")
    message = (
        "lacks 'file'; it needs the ids in 'file' or the row numbers, counted from 0, "
        "in 'row', and one column per label"
    )
    assert message in str(run(*common, "--rated", rated, fails=True))


def test_the_questions_show_ids(tmp_path):
    common = write_photos(tmp_path / "photos.csv")
    output = run(*common, "--rate", 2, answers="1 2\n0,5 0,25 0,25\n")
    assert "Type the degrees of sand, sea, sky, separated by blanks" in output
    first, tags = re.search(r"file (IMG_\d+) \(([a-z, ]+)\): ", output).groups()
    with (tmp_path / "photos.csv").open(newline="") as stream:
        row = next(row for row in csv.reader(stream) if row[0] == first)
    assert tags == ", ".join(row[3].split(";"))
    assert f"file {first}: expected 3 numbers, got 2; give one for each of sand, sea" in output
    with (tmp_path / "d.csv").open(newline="") as stream:
        degrees = next(row for row in csv.reader(stream) if row[0] == first)
    assert [float(cell) for cell in degrees[1:]] == [0.5, 0.25, 0.25]


def test_labels_that_cannot_be_found_name_the_options(file, tmp_path):
    pd.DataFrame({"when": ["x", "y"], "sky": [True, False]}).to_parquet(tmp_path / "t.parquet")
    message = "say where the labels are: `tags` for one column with all tags, or `labels`"
    for path in (file[0], tmp_path / "t.parquet"):
        assert message in str(run("enhance", path, fails=True))
        assert message in str(run("enhance", path, "--id", "when", fails=True))


def test_missing_files_and_folders_are_named(file, tmp_path):
    common = ["enhance", file[0], "--labels", ",".join(NAMES)]
    absent = tmp_path / "none.csv"
    error = run(*common, "--rated", absent, fails=True)
    assert f"--rated {absent}: there is no file {absent}; check its name" in str(error)
    error = run(*common, "--rated", tmp_path, fails=True)
    assert f"--rated {tmp_path}: {tmp_path} is a folder; give the name of a file" in str(error)
    error = run(*common, "-o", tmp_path, fails=True)
    assert f"-o {tmp_path} is a folder; give the name of a file" in str(error)
    error = run(*common, "-o", file[0], fails=True)
    assert f"-o {file[0]} would replace an input; choose another name" in str(error)
    assert f"there is no file {absent}; check its name" in str(run("enhance", absent, fails=True))
    assert f"{tmp_path} is a folder; give the name of a file, or of a data set (lemll " in str(
        run("enhance", tmp_path, fails=True)
    )
    error = run("enhance", absent, "--tags", "tags", fails=True)
    assert f"there is no file {absent}; check its name" in str(error)


def test_an_error_of_the_system_is_told_without_its_number(file, tmp_path, monkeypatch, capsys):
    (tmp_path / "plain").write_text("")
    out = tmp_path / "plain" / "d.csv"
    arguments = ["enhance", str(file[0]), "--labels", ",".join(NAMES), "-o", str(out)]
    monkeypatch.setattr("sys.argv", ["lemll", *arguments])
    with pytest.raises(SystemExit, match="; check its name, its folder and the permissions") as end:
        main()
    assert "Errno" not in str(end.value)
    assert str(tmp_path / "plain") in str(end.value)
    capsys.readouterr()


def test_a_file_of_a_spreadsheet_and_answers_that_end_early_will_do(file, tmp_path):
    rated = tmp_path / "rated.csv"
    rated.write_text("row,sky,sea,sand\n1,5,3,2\n", encoding="utf-8-sig")
    common = ["enhance", file[0], "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    assert "Rate at least 3 rows to know how good they are." in run(*common, "--rated", rated)
    lemll = [*common, "--method", "LEMLL", "--rated", rated]
    assert "from 1 rated row (one row gives no interval)" in run(*lemll)
    assert "from 2 rated rows" in run(*common, "--rate", 9, answers="5 3 2\n4 4 2\n")


def test_typed_ratings_are_kept_and_continued(file, tmp_path):
    out, kept = tmp_path / "d.csv", tmp_path / "d_ratings.csv"
    common = ["enhance", file[0], "--labels", ",".join(NAMES), "-o", out]
    output = run(*common, "--rate", 2, answers="5 3 2\n1 1 2\n")
    assert f"wrote {kept}: 2 rated rows; pass --rated {kept} to use the ratings again" in output
    header, first = read(kept)
    assert header == ["row", *NAMES]
    np.testing.assert_allclose(first[:, 1:], [[0.5, 0.3, 0.2], [0.25, 0.25, 0.5]])
    # The same rows are not asked for again, and their ratings stay.
    output = run(*common, "--rated", kept, "--rate", 2, answers="3 3 4\n1 0 0\n")
    assert "weights from 4 rated rows" in output
    _, both = read(kept)
    np.testing.assert_allclose(both[:2], first)
    assert len(np.unique(both[:, 0])) == 4
    degrees = read(out)[1][both[:, 0].astype(int)]
    np.testing.assert_allclose(degrees, both, atol=1e-5)
    message = f"{kept} has earlier answers; pass --rated {kept} to add to them, or remove the file"
    assert message in str(run(*common, "--rate", 1, answers="1 1 1\n", fails=True))
    kept.unlink()
    run(*common, "--rate", 1, answers="\n")
    assert not kept.exists()


def test_a_short_answer_gives_the_other_labels_no_degree(file, tmp_path):
    path, _, Y = file
    kept = tmp_path / "d_ratings.csv"
    order = np.random.RandomState(0).permutation(30)
    n_skipped = next(k for k, row in enumerate(order) if Y[row].sum() == 2)
    row = order[n_skipped]
    # Without the sign, with a number too many, with a word, and right.
    answers = "\n" * n_skipped + "1 3\n1 3 9 *\n1 x *\n1 3 *\n"
    output = run("enhance", path, "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv",
                 "--rate", n_skipped + 1, answers=answers)  # fmt: skip
    shown = ", ".join(name for name, on in zip(NAMES, Y[row], strict=True) if on)
    assert f"row {row} ({shown}): " in output
    assert f"expected 3 numbers, got 2; give one for each of {', '.join(NAMES)}" in output
    assert f"expected 2 numbers, got 3; give one for each of {', '.join(NAMES)}" in output
    assert f", or for each of {shown} and then *" in output
    assert "must hold a degree, a number from 0, got 'x'" in output
    expected = Y[row].astype(float)
    expected[expected == 1] = [0.25, 0.75]
    np.testing.assert_array_equal(read(kept)[1], [[row, *expected]])


def test_a_verdict_follows_the_ratings(file, tmp_path):
    path, X, Y = file
    rated = tmp_path / "rated.csv"
    common = ["enhance", path, "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    true = BlendEnhancer(scale=8.0).fit_enhance(X, Y)
    write_ratings(rated, true)
    assert re.search(
        r"So the error is \d\d% lower: labels and features explain the ratings\.",
        run(*common, "--rated", rated),
    )
    write_ratings(rated, true[np.random.RandomState(0).permutation(10)])
    assert "So the labels hardly explain the ratings; look whether each rating is at its row." in (
        run(*common, "--rated", rated)
    )


def test_a_label_that_no_row_has_is_named_unless_rows_are_rated(file, tmp_path):
    path = tmp_path / "with_dragons.csv"
    frame = pd.read_csv(file[0]).assign(dragon=0)
    frame.to_csv(path, index=False)
    common = ["enhance", path, "--labels", ",".join([*NAMES, "dragon"]), "-o", tmp_path / "d.csv"]
    # Warnings are errors in tests.
    output = run(*common)
    assert re.search(
        r"No row has the labels dragon \(0\.\d\d\), but they have these mean degrees; "
        r"leave them out, or rate some rows\.",
        output,
    )
    assert "the degrees differ little on purpose" in output
    (tmp_path / "rated.csv").write_text(
        "row,sky,sea,sand,dragon\n1,5,3,2,0\n2,1,1,1,0\n3,2,1,1,0\n"
    )
    assert "dragon" not in run(*common, "--rated", tmp_path / "rated.csv").split("The first")[0]


def test_a_label_called_row_is_refused(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("a,row,b\n1,0,1\n2,1,0\n3,1,1\n")
    error = run("enhance", path, "--labels", "row,b", fails=True)
    assert "has a label called 'row'" in str(error)


def test_an_unknown_method_is_told_the_nearest(file):
    error = run("enhance", file[0], "--labels", ",".join(NAMES), "--method", "LEML", fails=True)
    assert "did you mean 'LEMLL'?" in str(error)


def test_columns_of_ratings_that_are_no_label_are_named(tmp_path):
    common = write_photos(tmp_path / "photos.csv")
    rated = tmp_path / "rated.csv"
    rated.write_text("file,sand,sea,sky,water,note\nIMG_003,0,1,3,2,x\nIMG_001,2,1,1,2,y\n")
    output = run(*common, "--rated", rated)
    assert "not used, because the data have no such label: water, note" in output


def test_tags_alone_are_enough_for_the_label_graph(tmp_path):
    path, output = tmp_path / "tags.csv", tmp_path / "d.csv"
    tags = ["sea;sky", "sky", "sand;sea", "sand", "sea;sky;sand", "sky"]
    path.write_text("file,tags\n" + "".join(f"f{i},{cell}\n" for i, cell in enumerate(tags)))
    common = ("enhance", path, "--tags", "tags", "--id", "file", "-o", output)
    assert "wrote" in run(*common, "--method", "LabelGraph")
    assert "No row has" not in run(*common, "--method", "LabelGraph")
    assert len(output.read_text().splitlines()) == 7
    message = "no column is left for the features"
    assert message in str(run(*common, "--method", "LEMLL", fails=True))


def test_names_of_other_formats_are_refused(tmp_path):
    common = write_photos(tmp_path / "photos.csv")
    message = "lemll does not write this format; give a name that ends in .csv"
    assert message in str(run(*common[:-1], tmp_path / "d.xlsx", fails=True))


@pytest.mark.parametrize("method", ["Blend", "LEMLL"])
def test_the_dialect_of_a_file_does_not_change_degrees(file, tmp_path, method):
    path, _, _ = file
    text = path.read_text(encoding="utf-8").replace(",", ";").replace(".", ",")
    (tmp_path / "other.csv").write_text(text, encoding="utf-16")
    for source, out in ((path, "a.csv"), (tmp_path / "other.csv", "b.csv")):
        common = ["enhance", source, "--labels", ",".join(NAMES), "--method", method]
        run(*common, "-o", tmp_path / out)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def plain_order(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_given_labels_are_written_in_their_order(file, tmp_path):
    path, _, Y = file
    output = run("enhance", path, "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv")
    assert "the method expects" in output
    head, *lines = plain_order(tmp_path / "d_order.csv")
    assert head == ["row", "rank", "label", "given", "share", "before the next"]
    _, *degrees = plain_order(tmp_path / "d.csv")
    for row in range(len(Y)):
        of_row = [line for line in lines if line[0] == str(row)]
        given = [line for line in of_row if line[3] == "1"]
        assert {line[2] for line in given} == {n for n, y in zip(NAMES, Y[row], strict=True) if y}
        values = [float(degrees[row][1 + NAMES.index(line[2])]) for line in given]
        assert values == sorted(values, reverse=True)
        if given:
            assert sum(float(line[4]) for line in given) == pytest.approx(1, abs=0.002)
            assert given[-1][5] == ""
        assert {line[5] for line in given[:-1]} <= {"sure", "toss-up"}


def test_comparisons_are_asked_kept_and_continued(file, tmp_path):
    path, _, _ = file
    common = ["enhance", path, "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    first = run(*common, "--compare", "3", answers="1\nboth\n2\n\n")
    assert "expected 1, 2 or an empty line, got 'both'" in first
    head, *answers = plain_order(tmp_path / "photos_comparisons.csv")
    assert head == ["row", "more", "less"]
    assert len(answers) == 2
    assert len({row for row, _, _ in answers}) == 2
    # The input ended; the same command goes on with other rows.
    again = run(*common, "--compare", "1", answers="1\n")
    _, *more = plain_order(tmp_path / "photos_comparisons.csv")
    assert more[:2] == answers
    assert len(more) == 3
    assert "3 comparisons" in again
    assert "pass --compared" in run(*common)
    kept = (tmp_path / "photos_comparisons.csv").read_bytes()
    asked = run(*common, "--compared", tmp_path / "photos_comparisons.csv")
    assert "Which of the two" not in asked
    # In its row, an answer holds.
    order = [(line[0], line[2]) for line in plain_order(tmp_path / "d_order.csv")[1:]]
    for row, greater, less in more:
        assert order.index((row, greater)) < order.index((row, less))
    other = tmp_path / "other.csv"
    other.write_bytes(kept)
    with pytest.raises(LemllError, match="has earlier answers"):
        run(*common, "--compared", other, "--compare", "1", answers="1\n")
    assert other.read_bytes() == kept


def test_questions_show_the_text_of_a_row(tmp_path):
    texts = [f"a long caption of photo number {i} by the sea" for i in range(30)]
    Y = np.random.RandomState(0).rand(30, 3) < 0.6
    frame = pd.DataFrame(
        {"caption": texts, **{n: Y[:, j].astype(int) for j, n in enumerate(NAMES)}}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    output = run("enhance", tmp_path / "t.csv", "--labels", ",".join(NAMES),
                 "-o", tmp_path / "d.csv", "--compare", "1", answers="1\n")  # fmt: skip
    assert re.search(
        r"row \d+ \(a long caption of photo number \d+ by the sea\): 1 = \w+, 2 = ", output
    )


def test_a_file_that_is_read_is_never_replaced(file, tmp_path):
    path = tmp_path / "data_order.csv"
    path.write_bytes(file[0].read_bytes())
    common = ["--labels", ",".join(NAMES)]
    with pytest.raises(LemllError, match="would replace an input"):
        run("enhance", path, *common, "-o", tmp_path / "data.csv")
    rated = tmp_path / "q_order.csv"
    rated.write_text("row,sky,sea,sand\n1,1,1,2\n")
    with pytest.raises(LemllError, match="would replace an input"):
        run("enhance", file[0], *common, "--rated", rated, "-o", tmp_path / "q.csv")
    assert path.read_bytes() == file[0].read_bytes()


def test_methods_without_probabilities_do_not_say_sure(file, tmp_path):
    common = ["enhance", file[0], "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    assert " > " not in run(*common, "--method", "Logical")
    signs = {line[5] for line in plain_order(tmp_path / "d_order.csv")[1:]}
    assert signs <= {"", "equal"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("row,more\n1,sky\n", "lacks 'less'"),
        ("row,more,less\n1,sky,sae\n", "unknown label 'sae'; did you mean 'sea'"),
        ("row,more,less\n999,sky,sea\n", "holds '999'"),
        ("row,more,less\n1,sky,sky\n", "cannot be compared"),
        ("row,more,less\n1,sky,\n", "is empty"),
    ],
)
def test_bad_comparisons_are_named(file, tmp_path, content, message):
    answers = tmp_path / "answers.csv"
    answers.write_text(content)
    common = ["enhance", file[0], "--labels", ",".join(NAMES), "-o", tmp_path / "d.csv"]
    with pytest.raises(LemllError, match=message):
        run(*common, "--compared", answers)
    with pytest.raises(LemllError, match="comparisons need --method Blend"):
        run(*common, "--compared", answers, "--method", "LEMLL")
