"""A process whose memory is capped below the need refuses before it allocates."""

from __future__ import annotations

from typing import Any

from benchmarks._measure import run

_SETUP = """
import psutil, resource, time
from benchmarks._text import text_like
from lemll import LEMLL
X, Y = text_like(300_000, 500, 100, density=0.015)
LEMLL(tol=1e-3).fit(X[:500], Y[:500])
used = psutil.Process().memory_info().vms
cap = {cap}
resource.setrlimit(resource.RLIMIT_AS, (used + cap, used + cap))
"""
_FIT = """
start, kind, text = time.perf_counter(), None, "fitted"
try:
    LEMLL(tol=1e-3, solver_params={{"precision": {precision!r}}}).fit(X, Y)
except MemoryError as error:
    kind, text = type(error).__name__, str(error)
result = dict(kind=kind, text=text, after=time.perf_counter() - start)
"""


def refusals() -> list[dict[str, Any]]:
    """Fit 300,000 rows and 100 labels with 1 GiB above what the process has."""
    rows = []
    for precision in ("float64", "float32"):
        measured = run(_SETUP.format(cap=2**30), _FIT.format(precision=precision), threads=2)
        result = measured["result"]
        print(
            f"{precision}: {result['kind']} after {result['after']:.1f} s, "
            f"{measured['bytes'] / 2**20:.0f} MiB more than before: {result['text']}",
            flush=True,
        )
        rows.append(measured)
    return rows
