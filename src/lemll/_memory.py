"""Memory that would not fit is refused before it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

from lemll.exceptions import NotEnoughMemoryError

__all__ = ["available_bytes", "check_memory"]

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def available_bytes() -> int:
    """Estimate how much memory this process may still use: the machine's, or its container's."""
    free: int = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    try:
        limit, used = _CGROUP_LIMIT.read_text().strip(), int(_CGROUP_USED.read_text())
    except (OSError, ValueError):
        return free
    return free if limit == "max" else min(free, int(limit) - used)


def check_memory(needed: int, purpose: str, remedy: str) -> None:
    """Refuse what would not fit.

    Parameters
    ----------
    needed : int
        Estimated bytes.
    purpose : str
        What they are for, as the start of a sentence.
    remedy : str
        What the user can do instead.
    """
    free = available_bytes()
    if needed > free:
        raise NotEnoughMemoryError(
            f"{purpose} needs about {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are "
            f"available; {remedy}."
        )
