"""Run every benchmark in this folder, or those named: ``python -m benchmarks [name ...]``.

Options behind the names go to those benchmarks: ``python -m benchmarks fuzz --seconds 60``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys

import benchmarks


def main() -> None:
    """Run them one after the other; each prints its table and writes its JSON."""
    arguments = sys.argv[1:]
    first = next((i for i, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    known = [
        m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name.startswith("bench_")
    ]
    chosen = [f"bench_{name.removeprefix('bench_')}" for name in names] or known
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        sys.exit(f"no such benchmark: {', '.join(unknown)}; known: {', '.join(known)}")
    failed = [name for name in chosen if _run(name, options)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _run(name: str, options: list[str]) -> bool:
    """Run one benchmark; tell whether it failed."""
    run = importlib.import_module(f"benchmarks.{name}").main
    takes_options = bool(inspect.signature(run).parameters)
    if options and not takes_options:
        sys.exit(f"{name} takes no options, got {' '.join(options)}")
    print(f"== {name}", flush=True)
    return bool(run(options) if takes_options else run())


if __name__ == "__main__":
    main()
