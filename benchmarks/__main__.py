"""Run every benchmark in this folder, or those named: ``python -m benchmarks [name ...]``."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main() -> None:
    """Run them one after the other; each prints its table and writes its JSON."""
    known = [
        m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name.startswith("bench_")
    ]
    chosen = [f"bench_{name.removeprefix('bench_')}" for name in sys.argv[1:]] or known
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(unknown)}; known: {', '.join(known)}")
    for name in chosen:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
