"""The guard that refuses before allocating."""

import sys

import pytest

from lemll import _validation
from lemll._validation import available_bytes, check_memory
from lemll.exceptions import LemllError, NotEnoughMemoryError


def test_what_fits_passes_and_what_does_not_is_refused_with_both_figures():
    check_memory(1, "Nothing", "do nothing")
    with pytest.raises(
        NotEnoughMemoryError, match=r"needs about .* GiB and .* GiB are .*; do less\."
    ):
        check_memory(2**60, "This", "do less")
    assert issubclass(NotEnoughMemoryError, MemoryError)
    assert issubclass(NotEnoughMemoryError, LemllError)


def test_small_needs_are_not_worth_a_question(monkeypatch):
    def asked():
        raise AssertionError

    monkeypatch.setattr(_validation, "available_bytes", asked)
    check_memory(_validation.WORTH_CHECKING - 1, "Little", "do nothing")
    with pytest.raises(AssertionError):
        check_memory(_validation.WORTH_CHECKING, "Much", "do less")


@pytest.mark.parametrize("known", [True, False], ids=["with psutil", "without psutil"])
def test_a_system_that_does_not_tell_refuses_nothing(known, monkeypatch, tmp_path):
    if not known:
        monkeypatch.setitem(sys.modules, "psutil", None)
        monkeypatch.setattr(_validation, "Path", lambda _: tmp_path / "nothing")
    assert available_bytes() > 2**20
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.setattr(_validation, "_physical_bytes", lambda: None)
    monkeypatch.setattr(_validation, "_CGROUP_LIMIT", tmp_path / "nothing")
    assert available_bytes() is None
    check_memory(2**60, "This", "do less")


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    assert available_bytes() > 0
    (tmp_path / "max").write_text("1000\n")
    (tmp_path / "used").write_text("400\n")
    monkeypatch.setattr(_validation, "_CGROUP_LIMIT", tmp_path / "max")
    monkeypatch.setattr(_validation, "_CGROUP_USED", tmp_path / "used")
    assert available_bytes() == 600
    (tmp_path / "max").write_text("max\n")
    assert available_bytes() > 600
