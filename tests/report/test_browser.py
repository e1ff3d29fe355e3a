"""The pages in a real browser: they sort, filter and open records, and ask for nothing else."""

import json

import pytest

from lemll.lab.report import write_comparison

pytestmark = pytest.mark.slow
METHODS = ["LEMLL", "MSVR", "BR"]


@pytest.fixture(name="opened")
def _opened(browser, fill, tmp_path):
    def open_page(**options):
        protocol, store = fill(**options)
        page = write_comparison(tmp_path / "page.html", protocol, store)
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(page.as_uri())
        return page

    yield open_page
    problems = [line for line in browser.get_log("browser") if line["level"] != "INFO"]
    assert problems == []
    for line in browser.get_log("performance"):
        message = json.loads(line["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            assert message["params"]["request"]["url"].startswith("file://")


def column(browser, number, table="#panel-1 table.data"):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".filter(row => !row.hidden).map(row => row.cells[arguments[1]].textContent)",
        table,
        number,
    )


def find(browser, selector):
    return browser.find_element("css selector", selector)


def test_a_click_sorts_and_another_turns(browser, opened):
    opened(datasets=["c", "a", "d", "b"], methods=METHODS)
    head = find(browser, "#panel-1 table.data thead th:nth-child(1)")
    head.find_element("tag name", "button").click()
    assert column(browser, 0) == ["a", "b", "c", "d"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.find_element("tag name", "button").click()
    assert column(browser, 0) == ["d", "c", "b", "a"]
    find(browser, "#panel-1 table.data thead th:nth-child(3) button").click()
    figures = [float(text.split()[0]) for text in column(browser, 2)]
    assert figures == sorted(figures)
    assert head.get_attribute("aria-sort") is None


def test_it_can_be_sorted_by_the_keyboard(browser, opened):
    opened(datasets=["b", "a"], methods=METHODS)
    button = find(browser, "#panel-1 table.data thead th button")
    button.send_keys("\n")
    assert column(browser, 0) == ["a", "b"]


def test_names_are_filtered_and_methods_hidden(browser, opened):
    opened(datasets=["yeast", "Yeast_alpha", "scene"], methods=METHODS)
    find(browser, "#filter").send_keys("yEAST")
    assert column(browser, 0) == ["yeast", "Yeast_alpha"]
    assert column(browser, 0, "#panel-2 table.data") == ["yeast", "Yeast_alpha"]
    assert find(browser, "#shown").text == "2 of 3 data sets"
    find(browser, "input[data-method='1']").click()
    assert not find(browser, "#panel-1 table.data thead th[data-c='1']").is_displayed()
    assert find(browser, "#panel-1 table.data thead th[data-c='2']").is_displayed()


def test_a_cell_opens_its_records_and_their_links_lead_there(browser, opened):
    page = opened(datasets=["a", "b"], methods=METHODS)
    find(browser, "#panel-1 button[data-e='1,2']").click()
    assert find(browser, "#record-title").text == "BR on b"
    rows = browser.find_elements("css selector", "#record tbody tr")
    assert len(rows) == 3
    link = rows[0].find_element("tag name", "a").get_attribute("href")
    find(browser, "#close").click()
    assert not find(browser, "#record").is_displayed()
    browser.get(link)
    assert '"method":"BR"' in browser.page_source
    assert '"dataset":"b"' in browser.page_source
    browser.get(page.as_uri())


def test_hostile_names_do_nothing(browser, opened):
    hostile = ["<script>window.hit=1</script>", "<img src=x onerror=window.hit=1>", "</script>x"]
    opened(datasets=hostile, methods=[*hostile, "LEMLL"])
    assert sorted(column(browser, 0)) == sorted(hostile)
    find(browser, "#panel-1 button[data-e='0,1']").click()
    assert find(browser, "#record-title").text == f"{hostile[1]} on {hostile[0]}"
    assert browser.execute_script("return window.hit") is None


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out_of_the_window(browser, opened, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened(datasets=["a", "x" * 80, "a long name with spaces " * 3], methods=METHODS)
        browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
        inside = "return document.documentElement.scrollWidth <= window.innerWidth"
        assert browser.execute_script(inside)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_thousands_of_cells_are_one_page(browser, opened, nightly):
    n_splits = 50 if nightly else 3
    names = [f"set {number}" for number in range(25)]
    methods = ["LEMLL", *(f"method {number}" for number in range(7))]
    page = opened(datasets=names, methods=methods, n_splits=n_splits)
    assert page.stat().st_size < 5e6
    assert len(column(browser, 0)) == 25
    find(browser, "#panel-1 button[data-e='24,7']").click()
    assert len(browser.find_elements("css selector", "#record tbody tr")) == n_splits
