"""Where the real data sets are, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE_THE_PROJECT = Path(__file__).resolve().parents[2] / "shared" / "data"

if "LEMLL_DATA_DIR" not in os.environ and _BESIDE_THE_PROJECT.is_dir():
    os.environ["LEMLL_DATA_DIR"] = str(_BESIDE_THE_PROJECT)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of real data sets, or skip the test, saying why."""
    folder = os.environ.get("LEMLL_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip("no real data sets: set LEMLL_DATA_DIR to the folder that holds them")
    return Path(folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call tests on real data sets slow, so that `make quick` leaves them out; start long ones."""
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
