"""How many threads to work with: as many as the caller lets the linear algebra use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["worker_threads"]

# Each worker holds one tile, and Python itself runs one thread at a time.
MAX_WORKERS = 8


@cache
def _controller() -> Any:
    """Find the linear algebra libraries, once: it takes some milliseconds."""
    return ThreadpoolController()


@contextmanager
def worker_threads() -> Iterator[int]:
    """Trade the threads inside matrix products for threads around them, while in the context.

    Small products gain little from threads of their own, which wait for each other after each
    one. `OMP_NUM_THREADS` and ``threadpoolctl.threadpool_limits`` decide the number, as usual;
    scikit-learn's own neighbours search does the same.

    Yields
    ------
    int
        The number of threads to use.
    """
    libraries = _controller().select(user_api="blas").info()
    workers = max((library["num_threads"] for library in libraries), default=1)
    with _controller().limit(limits=1, user_api="blas"):
        yield min(MAX_WORKERS, workers)
