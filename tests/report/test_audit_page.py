"""The page of an audit in a real browser: filters, keys, decisions, sizes, hostile names."""

import json
import time

import numpy as np
import pytest

from lemll.audit import TagAudit, correct, read_decisions
from lemll.audit.auditing import issue_frame
from lemll.audit.scores import NoiseRates
from lemll.audit.tags import read_tags
from lemll.report.audit import AuditRows, write_audit

HOSTILE = [
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "</script>x",
    "=1+1",
]


def made_up(n_rows=40, names=("sea", "sky", "hill"), seed=0, hidden=False, calibrated=True):
    """Return an audit with made-up scores, its issues and its rows."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, len(names))) < 0.4).astype(float)
    if hidden:
        Y[rng.random(Y.shape) < 0.1] = np.nan
    tags = read_tags(Y, names=names)
    error = np.where(np.isnan(Y), np.nan, rng.random(Y.shape))
    found = TagAudit(
        tags=tags,
        error=error,
        probability=rng.random(Y.shape),
        out_of_fold=rng.random(Y.shape),
        numerical_labels=rng.uniform(-1, 1, Y.shape),
        features=rng.random((n_rows, 2)),
        rates=NoiseRates(0.1, 0.1) if calibrated else None,
    )
    rows = AuditRows(
        [f"row-{i}" for i in range(n_rows)],
        ["light", "caption"],
        [[float(i), f"a photo number {i}"] for i in range(n_rows)],
    )
    return Y, found, rows


def write(folder, limit=None, title="Audit of photos.csv", **options):
    Y, found, rows = made_up(**options)
    issues = issue_frame(found, limit=limit)
    return Y, issues, write_audit(folder / "page.html", found, issues, rows, title=title)


def test_the_page_holds_the_list_as_text_and_asks_for_nothing(tmp_path):
    names = tuple(HOSTILE)
    _, issues, page = write(tmp_path, names=names, title=HOSTILE[1])
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "http://" not in text
    assert "https://" not in text
    content = text.split('id="content">')[1].split("</script>")[0]
    data = json.loads(content)
    assert data["labels"] == list(names)
    assert data["issues"]["row"] == issues["row"].tolist()
    assert [names[j] for j in data["issues"]["label"]] == issues["label"].tolist()
    np.testing.assert_allclose(data["issues"]["score"], issues["score"], atol=5e-5)
    first = data["rows"][str(issues["row"][0])]
    assert first["values"][1] == f"a photo number {issues['row'][0]}"


def test_unknown_cells_and_many_columns(tmp_path):
    _, found, _ = made_up(hidden=True)
    rows = AuditRows(
        [str(i) for i in range(40)],
        [f"c{k}" for k in range(50)],
        [[None, float("nan"), "x" * 400] + [k / 3 for k in range(47)] for _ in range(40)],
    )
    issues = issue_frame(found, limit=None)
    page = write_audit(tmp_path / "page.html", found, issues, rows, title="t", notes=["a note"])
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.split('id="content">')[1].split("</script>")[0])
    assert "a note" in text
    assert len(data["columns"]) == 30
    assert data["hidden_columns"] == 20
    row = str(issues["row"][0])
    assert data["rows"][row]["values"][:2] == ["", ""]
    assert data["rows"][row]["values"][2] == "x" * 400
    assert any(entry["unknown"] for entry in data["rows"].values())


@pytest.fixture(name="opened")
def _opened(browser, tmp_path):
    def open_page(**options):
        Y, issues, page = write(tmp_path, **options)
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(page.as_uri())
        browser.execute_script("localStorage.clear()")
        browser.get(page.as_uri())
        return Y, issues

    yield open_page
    assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []
    for line in browser.get_log("performance"):
        message = json.loads(line["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            assert message["params"]["request"]["url"].startswith(("file://", "blob:"))


def find(browser, selector):
    return browser.find_element("css selector", selector)


def lines(browser):
    """Return label and row of the lines in view, from the top."""
    return browser.execute_script(
        "return [...document.querySelectorAll('.issue')].map(line => "
        "[line.querySelector('.name').textContent, line.querySelector('.where').textContent])"
    )


def press(browser, *keys):
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def choose(browser, selector, text):
    for option in find(browser, selector).find_elements("tag name", "option"):
        if option.text == text:
            option.click()


@pytest.mark.slow
class TestInTheBrowser:
    def test_list_and_filters(self, browser, opened):
        _, issues = opened()
        expected = [
            [label, f"row-{row}"] for label, row in zip(issues.label, issues.row, strict=True)
        ]
        seen = lines(browser)
        assert seen == expected[: len(seen)]
        choose(browser, "#kind", "missing")
        choose(browser, "#label", "sky")
        wanted = issues[(issues.kind == "missing") & (issues.label == "sky")]
        assert f"{len(wanted)} of {len(issues)} doubtful tags" in find(browser, "#status").text
        assert lines(browser)[0] == ["sky", f"row-{wanted.row.iloc[0]}"]
        find(browser, "#search").send_keys("photo number 1")
        time.sleep(0.3)
        assert all("row-1" in row for _, row in lines(browser))
        find(browser, "#search").send_keys("zzz")
        time.sleep(0.3)
        assert find(browser, "#detail").text == "No tag matches these filters."

    def test_keys_decide_and_the_export_is_read_back(self, browser, opened):
        Y, issues = opened(hidden=True)
        for old in browser.downloads.glob("*.csv"):
            old.unlink()
        press(browser, "a", "r", "j", "a", "r", "u", "k", "k", "e")
        path = browser.downloads / "decisions.csv"
        for _ in range(100):
            if path.exists() and path.stat().st_size:
                break
            time.sleep(0.05)
        decisions = read_decisions(path)
        # The third is skipped, and the decision on the fifth is taken back.
        decided = issues.iloc[[0, 1, 3]]
        assert decisions["decision"].tolist() == ["accept", "reject", "accept"]
        assert decisions["row"].tolist() == decided["row"].tolist()
        assert decisions["label"].tolist() == decided["label"].tolist()
        expected = issues.iloc[[0, 3]]
        found = correct(Y, decisions, label_names=("sea", "sky", "hill"))
        changed = np.argwhere((found.Y != Y) & ~np.isnan(Y))
        assert len(changed) == 2
        assert set(changed[:, 0]) == set(expected["row"])

    def test_decisions_survive_a_reload_and_buttons_work(self, browser, opened):
        opened()
        find(browser, "#accept").click()
        # The next tag is shown, and the keyboard stays where it was.
        assert browser.switch_to.active_element.get_attribute("id") == "accept"
        press(browser, "k")
        assert find(browser, "#accept").get_attribute("aria-pressed") == "true"
        time.sleep(0.5)  # another process of the browser keeps what the page stores
        browser.refresh()
        assert "1 accepted, 0 rejected" in find(browser, "#status").text
        find(browser, "#reject").click()
        assert "0 accepted, 1 rejected" in find(browser, "#status").text
        choose(browser, "#state", "open")
        find(browser, "#accept").click()
        assert "1 accepted, 1 rejected" in find(browser, "#status").text

    def test_undo_brings_back_a_tag_that_the_filter_hid(self, browser, opened):
        opened()
        choose(browser, "#state", "open")
        first = lines(browser)[0]
        find(browser, "#accept").click()
        assert lines(browser)[0] != first
        press(browser, "u")
        assert lines(browser)[0] == first
        assert "0 accepted, 0 rejected" in find(browser, "#status").text
        # A filter that the tag does not pass is cleared.
        find(browser, "#accept").click()
        choose(browser, "#state", "accepted")
        find(browser, "#accept").send_keys("u")
        assert find(browser, "#state").get_attribute("value") == ""
        assert lines(browser)[0] == first

    def test_the_detail_shows_features_and_neighbours(self, browser, opened):
        _, issues = opened()
        text = find(browser, "#detail").text
        first = issues.iloc[0]
        assert f"a photo number {first['row']}" in text
        assert f"row-{first['neighbours'][0]}" in text
        assert f"{100 * first['score']:.1f} %" in text

    def test_scores_of_fast_mode_are_no_percentages(self, browser, opened):
        _, issues = opened(calibrated=False)
        assert find(browser, ".issue .score").text == f"{issues['score'][0]:.3f}"
        assert "no probabilities" in browser.page_source

    def test_hostile_names_do_nothing_and_come_back(self, browser, opened):
        Y, issues = opened(names=tuple(HOSTILE), title=HOSTILE[0])
        for old in browser.downloads.glob("*.csv"):
            old.unlink()
        shown = {name for name, _ in lines(browser)}
        assert shown <= set(HOSTILE)
        for _ in range(12):
            press(browser, "a")
        press(browser, "e")
        path = browser.downloads / "decisions.csv"
        for _ in range(100):
            if path.exists() and path.stat().st_size:
                break
            time.sleep(0.05)
        assert browser.execute_script("return window.hit") is None
        assert not [line for line in path.read_text().splitlines() if ",=" in line]
        decisions = read_decisions(path)
        assert decisions["label"].tolist() == issues["label"].tolist()[:12]
        assert len(correct(Y, decisions, label_names=HOSTILE).changes) == 12

    def test_twenty_thousand_lines_are_fluid(self, browser, opened):
        opened(n_rows=4000, names=("a", "b", "c", "d", "e"))
        assert "20000 of 20000" in find(browser, "#status").text
        assert len(browser.find_elements("css selector", ".issue")) < 60
        frames = browser.execute_async_script(
            """
            const done = arguments[0], list = document.getElementById("list"), times = [];
            let last = performance.now(), step = 0;
            const tick = () => {
              const now = performance.now(); times.push(now - last); last = now;
              list.scrollTop = (step++ * 17389) % list.scrollHeight;
              step < 60 ? requestAnimationFrame(tick) : done(times.slice(1));
            };
            requestAnimationFrame(tick);
            """
        )
        assert np.median(frames) < 50
        spent = browser.execute_script(
            "const begin = performance.now(); const kind = document.getElementById('kind');"
            "kind.value = '1'; kind.dispatchEvent(new Event('change'));"
            "return performance.now() - begin"
        )
        assert spent < 500
        press(browser, "\ue010")  # the key End
        assert len(lines(browser)) > 3

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1280, 390])
    def test_it_fits_and_can_be_read(self, browser, opened, width, scheme, tmp_path):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        try:
            opened(names=("sea", "x" * 90, "a long name with spaces " * 3))
            inside = "return document.documentElement.scrollWidth <= window.innerWidth"
            assert browser.execute_script(inside)
            for selector in ("#list", "#detail", "#export"):
                box = find(browser, selector).rect
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= width + 1
                assert box["y"] + box["height"] <= 801
            colours = browser.execute_script(
                "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
            )
            ink, paper = (
                np.mean([float(part) for part in colour.strip("rgb()").split(",")[:3]])
                for colour in colours
            )
            assert (ink < 90 and paper > 200) if scheme == "light" else (ink > 200 and paper < 60)
            assert len(lines(browser)) >= 3
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
