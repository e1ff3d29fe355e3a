"""The demonstration: its data are what they are called, its page says what the cells say."""

import re
import sys
from html import unescape
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from lemll.datasets import read_npz
from lemll.exceptions import MissingExtraError
from lemll.lab import Store, demo
from lemll.lab.demo import demo_protocol, demo_sets
from lemll.lab.demo_jobs import first_tags
from lemll.lab.photos import make_photos
from lemll.models.pairwise import paired_t_test
from lemll.report.page import Link, Picture, Section, TableData, write_page

pytestmark = pytest.mark.slow


def table(made, caption):
    (found,) = [table for table in made.tables if caption in table.caption]
    return {row[0]: dict(zip(found.header[1:], row[1:], strict=True)) for row in found.rows}


def values(made, metric):
    protocol = demo_protocol(made.page.parent / "data", 2)
    found = {}
    for record in Store(made.page.parent / "store").overview(protocol.cells()).records.values():
        found.setdefault((record.dataset, record.method), []).append(
            (record.setting, record.metrics[metric])
        )
    return {key: [value for _, value in sorted(pairs)] for key, pairs in found.items()}


def test_the_table_says_what_the_cells_say_and_marks_by_both_tests(made):
    shown, marks = table(made, "Average precision ↑, mean ± std"), set()
    cells = values(made, "average_precision")
    assert len(cells) == 25
    for (dataset, method), measured in cells.items():
        text = f"{np.mean(measured):.3f} ± {np.std(measured, ddof=1):.3f}"
        control = cells[dataset, "TagPredictor"]
        mark = paired_t_test(control, measured, greater_is_better=True).mark
        if (
            mark
            and not paired_t_test(
                control, measured, greater_is_better=True, test_train_ratio=1.0
            ).mark
        ):
            mark = f"({mark})"
        marks.add(mark)
        assert shown[dataset][method] == f"{text} {mark}".strip()
    assert len(marks) > 2


def test_the_demonstration_fits_a_phone_and_leads_to_its_comparison(browser, made):
    browser.get_log("browser")
    widths = {}
    try:
        for width in (390, 1280):
            size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(made.page.as_uri())
            inside = "return document.documentElement.scrollWidth <= window.innerWidth"
            assert browser.execute_script(inside)
            image = browser.find_element("css selector", "picture img")
            widths[width] = browser.execute_script("return arguments[0].naturalWidth", image)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert 2 * 300 < widths[390] < widths[1280]  # in pairs on a phone, all in a line else
    # By the keyboard alone: tabs reach every table and the way to the other page.
    reached, active = [], "return document.activeElement"
    for _ in range(60):
        browser.switch_to.active_element.send_keys("\t")
        element = browser.execute_script(active)
        reached.append(element.get_attribute("aria-label") or element.text)
        if (element.get_attribute("href") or "").endswith("comparison.html"):
            break
    assert any(name.startswith("The data sets, ") for name in reached)
    browser.switch_to.active_element.send_keys("\n")
    assert browser.current_url == made.comparison.as_uri()
    assert browser.find_element("css selector", "h1").text == "Five learners on embedded data"
    assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []


def test_the_page_says_who_is_best(made):
    text = unescape(made.page.read_text(encoding="utf-8"))
    cells = values(made, "hamming_loss")
    datasets = dict.fromkeys(dataset for dataset, _ in cells)
    means = {key: round(np.mean(measured), 3) for key, measured in cells.items()}
    best = {d: min(mean for (dataset, _), mean in means.items() if dataset == d) for d in datasets}
    (sentence,) = re.findall(
        r"Hamming loss: who is better\?</h2>\s*<p>Number of data sets, out of 5, on which a "
        r"learner has the best mean \(ties count for each learner\): (.*?)\.",
        text,
    )
    told = dict(part.rsplit(" ", 1) for part in sentence.split(", "))
    expected = {}
    for (dataset, method), mean in means.items():
        expected[method] = expected.get(method, 0) + (mean == best[dataset])
    assert told == {method: str(count) for method, count in expected.items() if count}
    assert 'href="comparison.html"' in text
    assert made.comparison == made.page.parent / "comparison.html"
    assert "50 cells done" in made.comparison.read_text(encoding="utf-8")


def test_a_second_demo_runs_no_cell_again_and_tells_the_same(made):
    def execute(protocol, store):
        overview = store.overview(protocol.cells())
        assert (overview.count("done"), len(overview.pending)) == (50, 0)

    assert demo.make_demo(made.page.parent, n_splits=2, execute=execute).tables == made.tables


def test_one_split_is_refused(tmp_path):
    with pytest.raises(ValueError, match="tests need at least 2 splits, got 1"):
        demo.make_demo(tmp_path, n_splits=1)


def test_what_the_page_needs_is_missed_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"needs the library 'jinja2'.*lemll\[report\]"):
        demo.make_demo(tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_the_sets_keep_their_labels_out_of_the_features(made):
    for dataset, _ in demo_sets():
        stored = read_npz(made.page.parent / "data" / f"{dataset.name}.npz")
        np.testing.assert_array_equal(stored.X, dataset.X)
        np.testing.assert_array_equal(stored.Y, dataset.Y)
        if not dataset.name.startswith("digit"):
            order = np.argsort(dataset.X, axis=0, kind="stable")
            for label in dataset.Y.T:
                # A label that is a feature above its median would be sorted by this feature.
                steps = np.abs(np.diff(label[order].astype(int), axis=0)).sum(axis=0)
                assert (steps > 1).all()


def test_photos_are_what_they_are_called():
    photos = make_photos(seed=3)
    again = make_photos(seed=3)
    assert photos.frame.equals(again.frame)
    np.testing.assert_allclose(photos.degrees.sum(axis=1), 1)
    wrong, missing = photos.given > photos.truth, photos.given < photos.truth
    assert (wrong.sum(), missing.sum()) == (25, 25)
    assert photos.given.sum(axis=1).min() >= 1
    # What is given is what the table says, and the table has no other trace of the truth.
    for tags, row in zip(photos.frame["tags"], photos.given, strict=True):
        assert tags.split(";") == [photos.label_names[j] for j in np.flatnonzero(row)]
    assert list(photos.frame) == [
        "file", "caption", "camera", "blue", "green", "brightness", "edges", "tags",
    ]  # fmt: skip
    assert (photos.degrees[photos.truth == 1].min()) > photos.degrees[photos.truth == 0].max()


def test_the_page_counts_the_planted_mistakes_that_were_found(made):
    photos, folder = make_photos(), made.page.parent
    listed = pd.read_csv(folder / "audit.csv")
    assert len(listed) == 100
    files = list(photos.frame["file"])
    found = sum(
        photos.truth[files.index(cell.id), photos.label_names.index(cell.label)] != cell.given
        for cell in listed.itertuples()
    )
    text = unescape(made.page.read_text(encoding="utf-8"))
    assert f"{found} of the 50 mistakes are among the 100 tags that the audit lists" in text
    assert found > 25


def test_the_order_of_tags_is_measured_as_by_hand():
    photos = make_photos(40)
    values = np.random.default_rng(0).random(photos.degrees.shape).round(1)
    first, pairs = [], []
    for i in range(40):
        tags = [j for j in range(12) if photos.given[i, j] == photos.truth[i, j] == 1]
        if len(tags) < 2:
            continue
        best = [j for j in tags if values[i, j] == max(values[i, tags])]
        first.append((max(tags, key=lambda j: photos.degrees[i, j]) in best) / len(best))
        right = []
        for a, b in combinations(tags, 2):
            higher, lower = sorted((a, b), key=lambda j: -photos.degrees[i, j])
            same = values[i, higher] == values[i, lower]
            right.append(0.5 if same else float(values[i, higher] > values[i, lower]))
        pairs.append(np.mean(right))
    np.testing.assert_allclose(
        first_tags(photos, values, range(40)), (np.mean(first), np.mean(pairs))
    )
    assert first_tags(photos, photos.degrees, range(40)) == (1.0, 1.0)


def test_everything_on_a_page_is_text(tmp_path):
    bad = "<script>alert(1)</script>"
    section = Section(
        heading=bad,
        paragraphs=[bad],
        picture=Picture(b"a", b"b", f'"{bad}'),
        tables=[TableData(bad, [bad, bad], [[bad, bad]], words=(1,))],
        link=Link(f'"{bad}', bad),
    )
    write_page(tmp_path / "page.html", bad, [section])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 15
    assert text.count('class="words"') == 2
