"""The page of a comparison, read as text; `test_browser` opens it."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lemll.lab.report import time_scatter, write_comparison, write_table
from lemll.lab.studies.prediction import printed_prediction
from lemll.lab.tables import ComparisonTable
from lemll.report.diagrams import round_ticks

METHODS = ["LEMLL", "MSVR", "BR"]
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
    "{% include 'style.css' %}",
    "<!-- comment",
    "]]>",
    "&lt;b&gt;",
    "<style>body{display:none}</style>",
    "</title><script>alert(1)</script>",
    "</table><h1>gone</h1>",
    "<iframe src=http://example.com>",
    "\u202eright to left",
    "line\nbreak",
    "\u2028separator",
    "<a href=//example.com>",
    "${alert(1)}",
]


class Reader(HTMLParser):
    """Elements with their attributes, and the text of all but scripts and styles."""

    def __init__(self):
        super().__init__()
        self.elements, self.text, self.data, self._inside = [], "", "", ""

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        self._json = dict(attrs).get("type") == "application/json"

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script" and self._json:
            self.data += data
        elif self._inside not in ("script", "style"):
            self.text += data


def read(page: Path) -> Reader:
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def test_the_page_holds_what_the_table_does(fill, tmp_path):
    protocol, store = fill(datasets=["yeast", "mine"], methods=METHODS)
    page = read(write_comparison(tmp_path / "new folder" / "page.html", protocol, store))
    table = ComparisonTable.from_store(protocol, store)
    for panel in table.panels:
        assert panel.title in page.text
        for entry in panel.entries.values():
            mean, std = entry.figures
            assert f"{mean:.3f} ± {std:.3f}" in page.text
    # Published figures of LEMLL on yeast.
    assert "[0.201 ± 0.002]" in page.text
    assert "Friedman's test over 2 data sets" in page.text
    links = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    assert all(link.startswith(("#", "../run/store/cells/")) for link in links)


def test_links_lead_to_the_records(fill, tmp_path):
    protocol, store = fill(datasets=["a", "b"], methods=METHODS)
    page = write_comparison(tmp_path / "pages" / "page.html", protocol, store)
    data = json.loads(read(page).data)
    ids = [row[-1] for rows in data["entries"].values() for row in rows]
    assert len(ids) == 2 * 3 * 3
    for cell_id in ids:
        assert (page.parent / data["folder"] / f"{cell_id}.json").is_file()


def test_a_store_that_still_fills_says_so(fill, tmp_path):
    protocol, store = fill(datasets=["a", "b", "c"], methods=METHODS, skip=(0, 1), fail=(5,))
    claim = store.claim(next(iter(protocol.cells())).id)
    try:
        text = read(write_comparison(tmp_path / "page.html", protocol, store)).text
    finally:
        claim.release()
    assert "24 cells done, 1 running now" in text
    assert "2 cells have not been run yet." in text
    assert "it <b>broke</b>" in text
    assert "2 of 3" in text
    assert "Friedman's test over 2 data sets" in text


def test_an_empty_store_has_a_page_too(fill, tmp_path):
    protocol, store = fill(datasets=["a"], methods=METHODS, skip=range(9))
    text = read(write_comparison(tmp_path / "page.html", protocol, store)).text
    assert "9 cells have not been run yet." in text
    assert "Friedman" not in text


@pytest.mark.slow
def test_twenty_hostile_names_stay_text(fill, tmp_path):
    assert len(HOSTILE) == 20
    protocol, store = fill(datasets=HOSTILE, methods=METHODS, n_splits=2)
    path = write_comparison(tmp_path / "page.html", protocol, store)
    harmless, plain = fill(datasets=[f"set {i}" for i in range(20)], methods=METHODS, n_splits=2)
    expected = read(write_comparison(tmp_path / "plain.html", harmless, plain))
    page = read(path)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in expected.elements]
    for (_, one), (_, other) in zip(page.elements, expected.elements, strict=True):
        assert one.keys() == other.keys()
    for name in HOSTILE:
        assert name in page.text
    assert json.loads(page.data)["datasets"] == HOSTILE


def test_hostile_methods_stay_text(fill, tmp_path):
    protocol, store = fill(datasets=["a", "b"], methods=HOSTILE[:6], n_splits=2)
    page = read(write_comparison(tmp_path / "page.html", protocol, store))
    assert sum(tag == "script" for tag, _ in page.elements) == 2
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)


def test_nothing_comes_from_elsewhere(fill, tmp_path):
    protocol, store = fill(datasets=["a", "b"], methods=METHODS)
    path = write_comparison(tmp_path / "page.html", protocol, store)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://", text)
    assert "default-src 'none'" in text
    assert not any("src" in attrs for _, attrs in read(path).elements)


def test_one_method_on_one_set_is_said_so(fill, tmp_path):
    protocol, store = fill(datasets=["é"], methods=["中"])
    text = read(write_comparison(tmp_path / "page.html", protocol, store)).text
    assert "1 method on 1 data set, prediction: 3 cells done. The table shows means" in text
    assert "Friedman" not in text


def test_a_page_that_cannot_be_written_says_where_and_what_to_do(fill, tmp_path):
    protocol, store = fill(datasets=["a"], methods=METHODS, skip=range(9))
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"cannot be written to .*page\.html: .*give the name of a"):
        write_comparison(tmp_path / "file" / "page.html", protocol, store)


def test_the_printed_tables_have_a_page(tmp_path):
    table = printed_prediction()
    page = write_table(tmp_path / "page.html", table, title="As printed", source="the paper")
    text = read(page).text
    assert "8 methods on 15 data sets, the paper." in text
    assert text.count("Friedman's test over 15 data sets") == 5
    assert "differ by more than 2.711 (Nemenyi)" in text
    assert "differ by more than 2.406 (Bonferroni and Dunn)" in text
    assert "cells done" not in text
    # There is one figure for each data set: nothing that a t-test could have marked.
    assert "t-test" not in text
    assert "standard deviations" not in text


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (0.42, 0.47, [0.42, 0.43, 0.44, 0.45, 0.46, 0.47]),
     (0.5, 0.5, None), (0.0766129, 0.0766129, None), (0.0, 0.0, None)],
)  # fmt: skip
def test_ticks_are_round_and_hold_the_values(low, high, expected):
    ticks = round_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert len({f"{tick:g}" for tick in ticks}) == len(ticks) >= 2
    if expected is not None:
        assert ticks == pytest.approx(expected)


def test_a_scatter_needs_all_times_and_ranks():
    assert time_scatter(["A", "B"], [1.0, 2.0], {"A": 0.1}) is None
    assert time_scatter(["A", "B"], [], {"A": 0.1, "B": 1.0}) is None
    drawn = time_scatter(["A", "B"], [1.0, 2.0], {"A": 0.1, "B": 1.0})
    assert [tick.text for tick in drawn.x_ticks] == ["100 ms", "1 s"]
    assert [(p.x, p.y) for p in drawn.points] == [(60.0, 20.0), (690.0, 280.0)]


def test_renamed_methods_and_data_sets_keep_their_results(fill, tmp_path):
    protocol, store = fill(datasets=["a"], methods=METHODS)
    renamed = dataclasses.replace(
        protocol,
        datasets=(dataclasses.replace(protocol.datasets[0], name="b"),),
        methods=tuple(
            dataclasses.replace(spec, label=f"new {spec.label}") for spec in protocol.methods
        ),
        control="",
    )
    text = read(write_comparison(tmp_path / "page.html", renamed, store)).text
    assert "9 cells done" in text
    assert "new MSVR" in text


def test_two_labels_of_one_method_share_its_results(fill, tmp_path):
    protocol, store = fill(datasets=["a"], methods=METHODS)
    twin = dataclasses.replace(protocol.methods[0], label="twin")
    both = dataclasses.replace(protocol, methods=(*protocol.methods, twin))
    page = write_comparison(tmp_path / "page.html", both, store).read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="entries">(.*?)</script>', page, re.DOTALL)[1])
    assert len(data["entries"]["0,0"]) == len(data["entries"]["0,3"]) == 3


def test_the_verdict_is_at_the_top(fill, tmp_path):
    protocol, store = fill(datasets=list("abcdef"), methods=["LEMLL", "MSVR", "BR"])
    text = write_comparison(tmp_path / "page.html", protocol, store).read_text(encoding="utf-8")
    verdict = text.split('<p class="verdict">')[1].split("</p>")[0]
    assert verdict.startswith("LEMLL has the best average rank by ")
    assert text.index('verdict">') < text.index("<table")


def test_the_text_of_the_critical_difference_stays_inside_the_picture(fill, tmp_path):
    """With three methods the difference is nearly as long as the axis; its text is above it."""
    protocol, store = fill(datasets=list("abcd"), methods=["LEMLL", "MSVR", "BR"])
    text = write_comparison(tmp_path / "page.html", protocol, store).read_text(encoding="utf-8")
    start = text.split(">critical difference")[0].rsplit('<text x="', 1)[1]
    assert float(start.split('"')[0]) + 300 < 720
