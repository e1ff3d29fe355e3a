"""Stores filled with made-up results, in a moment: for what is printed, not for what is true."""

import os
import shutil
from itertools import pairwise

import numpy as np
import pytest

from lemll.lab import Protocol, Splits
from lemll.lab.cells import Source
from lemll.lab.code import environment
from lemll.lab.demo import make_demo
from lemll.lab.methods import MethodSpec
from lemll.lab.records import Record
from lemll.lab.store import Store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
DRIVER = shutil.which("chromedriver")


@pytest.fixture(name="browser", scope="module")
def _browser(tmp_path_factory):
    """Open a browser without a window; its downloads go to `browser.downloads`."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no browser: install the Debian packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    downloads = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.downloads = downloads
    yield driver
    driver.quit()


def fill(folder, *, datasets, methods, n_splits=3, skip=(), fail=()):
    """Write a record for every cell but those skipped, by number; of those in `fail` a failure."""
    assert all(a != b for a, b in pairwise(sorted(datasets)))
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for number, name in enumerate(datasets):
        rng = np.random.default_rng(number)
        path = folder / f"set{number}.npz"
        np.savez(path, X=rng.random((8, 2)), Y=rng.integers(0, 2, (8, 3)))
        sources.append(Source(name, str(path)))
    protocol = Protocol(
        name="made-up",
        experiment="prediction",
        datasets=tuple(sources),
        methods=tuple(
            MethodSpec("LEMLL", label, {"alpha": 1.0 + number})
            for number, label in enumerate(methods)
        ),
        splits=Splits("halves", n_splits),
    )
    store = Store(folder / "store")
    rng = np.random.default_rng(0)
    level = {name: rng.uniform(0.1, 0.6) for name in datasets}
    for number, cell in enumerate(protocol.cells()):
        if number in skip:
            continue
        failed = number in fail
        better = 0.02 * methods.index(cell.method.label)
        figure = level[cell.source.name] + better + rng.normal(0, 0.01)
        error = {"type": "ValueError", "message": "it <b>broke</b>", "traceback": "..."}
        record = Record(
            id=cell.id, work=cell.work, code=cell.code, status="failed" if failed else "done",
            experiment="prediction", dataset=cell.source.name, method=cell.method.label,
            estimator="LEMLL", parameters=dict(cell.parameters), chosen=None,
            setting=cell.setting.key, data_sha256=cell.data_sha256,
            rows_sha256=cell.setting.rows_sha256,
            metrics={} if failed else {name: figure for name in protocol.metrics},
            criterion="optimality", criterion_value=1e-5,
            seconds={"fit": float(rng.uniform(0.01, 2)), "predict": 0.01}, warnings=[],
            error=error if failed else None, attempt=1, finished="2026-01-01T00:00:00+00:00",
            environment=environment(), outputs=None,
        )  # fmt: skip
        store.write(record, None)
    return protocol, store


@pytest.fixture(name="fill")
def _fill(tmp_path, monkeypatch):
    # Nothing here has to survive a power failure.
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def make(**options):
        return fill(tmp_path / "run", **options)

    return make


@pytest.fixture(name="made", scope="session")
def _made(tmp_path_factory):
    """Make the demonstration once, for its own tests and for those in the browser."""
    with pytest.MonkeyPatch.context() as patch:
        # Nothing here has to survive a power failure.
        patch.setattr(os, "fsync", lambda _: None)
        return make_demo(tmp_path_factory.mktemp("demo"), n_splits=2)
