"""Where the real data sets are, and what waits for the night."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
from hypothesis import settings


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of real data sets, or skip the test, saying why."""
    folder = os.environ.get("LEMLL_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no real data sets: set LEMLL_DATA_DIR to the folder that holds them")
    return Path(folder)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make nightly`."""
    parser.addoption("--nightly", action="store_true", help="run every seed, size, kill and check")


def pytest_configure(config: pytest.Config) -> None:
    """Let generated examples be as many at night as a test wants at most."""
    settings.register_profile("nightly", max_examples=2_000)
    if config.getoption("--nightly"):
        settings.load_profile("nightly")


@pytest.fixture(scope="session")
def nightly(pytestconfig: pytest.Config) -> bool:
    """Tell a test that repeats itself whether to do it as often as `make nightly` asks."""
    return bool(pytestconfig.getoption("--nightly"))


def _waits_for_the_night(item: pytest.Item) -> bool:
    """Tell whether a marker `nightly` holds for this case; `when` gets parameters by name."""
    # Only the cases of a parametrised test have `callspec`.
    case = item.callspec.params if hasattr(item, "callspec") else {}
    for marker in item.iter_markers("nightly"):
        when = marker.kwargs.get("when", lambda: True)
        if when(**{name: case[name] for name in inspect.signature(when).parameters}):
            return True
    return False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what waits for the night; call tests on real data sets slow; start long ones."""
    if not config.getoption("--nightly"):
        left_out = {item for item in items if _waits_for_the_night(item)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
