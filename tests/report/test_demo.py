"""The demonstration: its data are what they are called, its page says what the cells say."""

from __future__ import annotations

import re
import sys
from html import unescape

import numpy as np
import pytest

from lemll.datasets import read_npz
from lemll.exceptions import MissingExtraError
from lemll.lab import Store, demo
from lemll.lab.demo import demo_protocol, demo_sets
from lemll.models.pairwise import paired_t_test
from lemll.report.page import Link, Picture, Section, TableData, write_page

pytestmark = pytest.mark.slow


def table(made, caption):
    (found,) = [table for table in made.tables if caption in table.caption]
    return {row[0]: dict(zip(found.header[1:], row[1:], strict=True)) for row in found.rows}


def values(made, metric):
    protocol = demo_protocol(made.page.parent / "data", 3)
    found = {}
    for record in Store(made.page.parent / "store").overview(protocol.cells()).records.values():
        found.setdefault((record.dataset, record.method), []).append(
            (record.setting, record.metrics[metric])
        )
    return {key: [value for _, value in sorted(pairs)] for key, pairs in found.items()}


def test_the_table_says_what_the_cells_say_and_marks_by_both_tests(made):
    shown, marks = table(made, "Average precision ↑, mean ± std"), set()
    cells = values(made, "average_precision")
    assert len(cells) == 30
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
        if "onward" in (element.get_attribute("class") or ""):
            break
    assert "The data sets" in reached
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
        r"Hamming loss: who is better\?</h2>\s*<p>Number of data sets, out of 6, on which a "
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
    assert "90 cells done" in made.comparison.read_text(encoding="utf-8")


def test_a_second_demo_runs_no_cell_again_and_tells_the_same(made):
    def execute(protocol, store):
        overview = store.overview(protocol.cells())
        assert (overview.count("done"), len(overview.pending)) == (90, 0)

    assert demo.make_demo(made.page.parent, n_splits=3, execute=execute).tables == made.tables


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


def test_segments_are_those_of_a_calculator():
    segments = next(made.dataset for made in demo_sets() if made.dataset.name == "digit-segments")
    # How many segments light for 0 to 9; no two digits look alike.
    lit = sorted({tuple(row) for row in segments.Y.tolist()}, key=sum)
    assert [sum(row) for row in lit] == [2, 3, 4, 5, 5, 5, 6, 6, 6, 7]


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
    assert text.count("&lt;script&gt;") == 14
    assert text.count('class="words"') == 2
