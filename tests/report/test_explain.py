"""The pages of lemll explain and lemll compare, as text and in a browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lemll import BinaryRelevance
from lemll.enhancers import OrderEstimate
from lemll.models import Explanation, explain_table, fit_table
from lemll.models.assess import THRESHOLDS
from lemll.models.explain import Feature
from lemll.models.pairwise import best_of_splits
from lemll.report.diagrams import value_dots
from lemll.report.explain import write_explanation
from lemll.rivals import MLkNN
from lemll.tables import LabelSpec, Table

select = pytest.importorskip("selenium.webdriver.support.select")
INSIDE = "return document.documentElement.scrollWidth <= window.innerWidth"


def photos(n=80):
    rng = np.random.RandomState(0)
    hue, light = rng.randn(n), rng.randn(n)
    frame = pd.DataFrame({"file": [f"IMG_{i:03d}" for i in range(n)], "hue": hue, "light": light})
    frame["camera"] = rng.choice(["Nikon", "<b>Leica</b>"], n)
    frame["sea"], frame["night"] = (hue > 0).astype(int), (light < 0).astype(int)
    frame["sand"] = np.where(rng.rand(n) < 0.2, None, (hue + light > 0.5).astype(int))
    return frame


@pytest.fixture(name="found", scope="module")
def _found():
    table = Table(photos(), "photos.csv")
    spec = LabelSpec(labels=("sea", "night", "sand"))
    model, _ = fit_table(table, spec, ids="file", learner=BinaryRelevance())
    return explain_table(model, table)


def many(n_rows, n_labels=8):
    """Return an explanation of many rows without fitting anything."""
    rng = np.random.RandomState(0)
    names = tuple(f"label {j}" for j in range(n_labels))
    Y = (rng.rand(n_rows, n_labels) < 0.3).astype(float)
    p = np.clip(0.2 + 0.6 * Y + 0.2 * rng.randn(*Y.shape), 0, 1)
    figure = {"relevant": 30, "predicted": 28, "precision": 0.8, "recall": 0.7, "f1": 0.75,
              "auc": None}  # fmt: skip
    counts = {"predicted": [60 - 3 * k for k in range(19)], "hits": [30 - k for k in range(19)]}
    return Explanation(
        source="large.csv", learner="TagPredictor", ids=tuple(f"row {i}" for i in range(n_rows)),
        label_names=names, Y=Y, importance=p / p.sum(axis=1, keepdims=True),
        tossups=Y == 1, order=OrderEstimate(0.7, 0.4, None, 0), probabilities=p,
        are_probabilities=True, predicted=p > 0.5,
        neighbors=rng.randint(0, n_rows, (n_rows, 10)), weights=rng.randn(n_rows, 10),
        telling=[[Feature("width", 0.5), Feature("caption: sea", -0.2)]] * n_labels,
        columns=("width", "caption"), sensitivity=rng.rand(2, n_labels),
        together=(Y.T @ Y).astype(int),
        cells=pd.DataFrame({"width": rng.randn(n_rows), "caption": ["a photo"] * n_rows}),
        report={"verdict": "The model predicts new rows.", "rows": 100, "scores": [],
                "labels": [figure] * n_labels, "curves": [counts] * n_labels, "calibration": [],
                "calibration_error": None},
    )  # fmt: skip


# --- What is explained -------------------------------------------------------------------------


def test_importance_is_a_share_of_the_given_labels(found):
    given = np.nan_to_num(found.Y) == 1
    some = given.any(axis=1)
    np.testing.assert_allclose(np.where(given, found.importance, 0).sum(axis=1)[some], 1)
    # Of the labels of a row, all but the last may have an uncertain order to the next one.
    assert (found.tossups.sum(axis=1) < np.maximum(given.sum(axis=1), 1)).all()
    assert not (found.tossups & ~given).any()
    assert 0.5 <= found.order.expected <= 1


def test_neighbours_are_those_of_lemll(found):
    assert found.neighbors.shape == (80, 10)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    assert (np.diff(np.abs(found.weights), axis=1) <= 0).all()
    assert (found.neighbors != np.arange(80)[:, None]).all()


def test_telling_features_and_columns_are_those_that_made_the_labels(found):
    best = {name: features[0] for name, features in zip(found.label_names, found.telling,
                                                        strict=True)}  # fmt: skip
    assert best["sea"].name == "hue"
    assert best["sea"].effect > 0
    assert best["night"].name == "light"
    assert best["night"].effect < 0
    changes = dict(zip(found.columns, found.sensitivity, strict=True))
    assert changes["hue"][0] > 5 * changes["light"][0]
    assert changes["light"][1] > 5 * changes["camera"][1]
    assert found.together[0, 0] == (found.Y[:, 0] == 1).sum()
    assert found.together[0, 1] == ((found.Y[:, 0] == 1) & (found.Y[:, 1] == 1)).sum()


def test_the_page_needs_nothing_else_and_escapes_names(found, tmp_path):
    text = write_explanation(tmp_path / "e.html", found).read_text(encoding="utf-8")
    assert "<b>Leica" not in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "What BinaryRelevance learned from photos.csv" in text
    assert "The model predicts new rows better than the frequencies" in text


def test_scores_without_probabilities_are_explained_too(tmp_path):
    table = Table(photos().drop(columns="sand"), "photos.csv")
    spec = LabelSpec(labels=("sea", "night"))

    class Scores(MLkNN):
        predict_proba = property()

    model, _ = fit_table(table, spec, ids="file", learner=Scores())
    text = write_explanation(tmp_path / "e.html", explain_table(model, table)).read_text("utf-8")
    assert "gives scores, not probabilities" in text


def test_dots_lie_between_the_ends_of_the_axis():
    plot = value_dots({"a": [0.1, 0.4], "b": [0.25]})
    assert [row.name for row in plot.rows] == ["a", "b"]
    assert plot.ticks[0].at <= plot.rows[0].dots[0].x < plot.rows[0].dots[1].x <= plot.ticks[-1].at


def test_one_learner_has_nobody_to_beat():
    assert best_of_splits([[0.5], [0.6]], greater_is_better=True, test_train_ratio=0.2) == []


# --- In a browser ------------------------------------------------------------------------------


@pytest.fixture(name="opened")
def _opened(browser, tmp_path):
    def open_page(found) -> Path:
        page = write_explanation(tmp_path / "explain.html", found)
        browser.get_log("browser")
        browser.get(page.as_uri())
        return page

    yield open_page
    assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []


def find(browser, selector):
    return browser.find_element("css selector", selector)


def choose(browser, selector, value):
    select.Select(find(browser, selector)).select_by_value(value)


def shown(browser):
    rows = browser.find_elements("css selector", ".example b")
    return [row.text for row in rows]


@pytest.mark.slow
def test_search_filter_and_order(browser, opened, found):
    opened(found)
    assert find(browser, "#count").text == "80 of 80 rows"
    find(browser, "body").send_keys("/")
    find(browser, "#search").send_keys("img_07")
    assert shown(browser) == [f"IMG_07{i}" for i in range(10)]
    assert find(browser, "#count").text == "10 of 80 rows"
    find(browser, "#search").send_keys("\ue00c")  # escape
    assert find(browser, "#count").text == "80 of 80 rows"
    choose(browser, "#label-filter", "0")
    choose(browser, "#kind-filter", "given")
    expected = int((found.Y[:, 0] == 1).sum())
    assert find(browser, "#count").text == f"{expected} of 80 rows"
    choose(browser, "#order", "surprise")
    away = np.abs(found.Y - found.probabilities)
    worst = np.argsort(-np.nanmax(np.where(found.Y[:, :1] == 1, away, -1), axis=1).round(3),
                       kind="stable")  # fmt: skip
    assert shown(browser)[0] == found.ids[worst[0]]
    find(browser, "#search").send_keys("no such row")
    assert "No row fits" in find(browser, "#detail").text


@pytest.mark.slow
def test_the_keyboard_moves_and_neighbours_are_reached(browser, opened, found):
    opened(found)
    box = find(browser, "#list")
    for key in ("\ue015", "\ue015", "\ue013"):  # down, down, up
        box.send_keys(key)
    assert find(browser, "#detail h3").text == "IMG_001"
    assert box.get_attribute("aria-activedescendant") == "example-1"
    box.send_keys("\ue010")  # end
    assert find(browser, "#detail h3").text == "IMG_079"
    neighbour = find(browser, "#detail button")
    name = neighbour.text
    assert name == found.ids[found.neighbors[79, 0]]
    neighbour.click()
    assert find(browser, "#detail h3").text == name
    row = int(name.removeprefix("IMG_"))
    cells = find(browser, "#detail table tbody").text
    given = found.importance[row, found.Y[row] == 1]
    for share in given / given.sum():
        assert f"{100 * share:.0f} %" in cells
    assert "<b>Leica</b>" in find(browser, "body").text or "Nikon" in find(browser, "body").text


@pytest.mark.slow
def test_a_label_shows_its_thresholds_and_features(browser, opened, found):
    opened(found)
    find(browser, "table.labels tbody tr[data-label='1']").click()
    assert find(browser, "#label").get_attribute("value") == "1"
    assert find(browser, "#telling .name").text == "light"
    line = find(browser, "#thresholds path.recall").get_attribute("d").split()
    assert len(line) == 2 * len(THRESHOLDS)
    assert "best F1" in find(browser, "#thresholds").text


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_twenty_thousand_rows_fit_any_window(browser, opened, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page = opened(many(20_000))
        assert page.stat().st_size < 12e6
        assert browser.execute_script(INSIDE)
        assert len(browser.find_elements("css selector", ".example")) < 40
        box = find(browser, "#list")
        begin = browser.execute_script("return performance.now()")
        box.send_keys("\ue010")
        assert find(browser, "#detail h3").text == "row 19999"
        find(browser, "#search").send_keys("row 12345")
        assert find(browser, "#count").text == "1 of 20000 rows"
        assert browser.execute_script("return performance.now()") - begin < 5000
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
