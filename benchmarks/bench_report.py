"""The page of a store of 10,000 cells: its size, how long writing it takes, and opening it.

The cells are run, by the quick methods of the engine's benchmark. Opening is measured by the
browser itself, headless Chromium, from the start of the navigation to the end of the load event.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._measure import write_json
from benchmarks.bench_engine import CELLS, make_protocol
from lemll.lab.report import write_comparison
from lemll.lab.runner import run
from lemll.lab.store import Store

LARGEST_BYTES = 5e6
LONGEST_SECONDS = 2.0
REPEATS = 3


def opening_seconds(page: Path) -> list[float]:
    """Seconds to open a page, some times over; none where there is no browser."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        print("no browser: install the Debian packages chromium and chromium-driver")
        return []
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    script = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
    seconds = []
    try:
        for _ in range(REPEATS):
            browser.get(page.as_uri())
            seconds.append(float(browser.execute_script(script)) / 1000)
    finally:
        browser.quit()
    return seconds


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        protocol, store = make_protocol(CELLS // 2), Store(Path(folder) / "store")
        end = run(protocol, store, backend="sequential")
        start = time.perf_counter()
        page = write_comparison(Path(folder) / "page.html", protocol, store)
        writing = time.perf_counter() - start
        result: dict[str, Any] = {
            "cells": end.done,
            "bytes": page.stat().st_size,
            "writing_seconds": writing,
            "opening_seconds": opening_seconds(page),
        }
    print(
        f"{end.done} cells: page of {result['bytes'] / 1e6:.2f} MB (at most "
        f"{LARGEST_BYTES / 1e6:g}), written in {writing:.1f} s, opened in "
        f"{[round(s, 2) for s in result['opening_seconds']]} s (at most {LONGEST_SECONDS:g})"
    )
    write_json("report", result)


if __name__ == "__main__":
    main()
