"""The guard that refuses before allocating."""

from __future__ import annotations

import pytest

from lemll import _memory
from lemll._memory import available_bytes, check_memory
from lemll.exceptions import LemllError, NotEnoughMemoryError


def test_what_fits_passes_and_what_does_not_is_refused_with_both_figures():
    check_memory(1, "Nothing", "do nothing")
    with pytest.raises(
        NotEnoughMemoryError, match=r"This needs about .* GiB and .* GiB are available; do less\."
    ):
        check_memory(2**60, "This", "do less")
    assert issubclass(NotEnoughMemoryError, MemoryError)
    assert issubclass(NotEnoughMemoryError, LemllError)


def test_a_containers_limit_counts(tmp_path, monkeypatch):
    assert available_bytes() > 0
    (tmp_path / "max").write_text("1000\n")
    (tmp_path / "used").write_text("400\n")
    monkeypatch.setattr(_memory, "_CGROUP_LIMIT", tmp_path / "max")
    monkeypatch.setattr(_memory, "_CGROUP_USED", tmp_path / "used")
    assert available_bytes() == 600
    (tmp_path / "max").write_text("max\n")
    assert available_bytes() > 600
