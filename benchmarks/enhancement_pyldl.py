"""PyLDL's enhancers in the comparison of enhancers: ``results/enhancement/others.csv``.

    python -m benchmarks.enhancement_pyldl [DATA_SET ...] [--methods NAME ...] [--cap SECONDS]

PyLDL (python-ldl 0.1.0) runs in its own environment, as in `bench_enhancers`, one process per data
set and method, on one thread, with its default parameters and the seed 0. lemll calibrates and
measures the degrees that it returns: with ``normalization="sum"`` the scale is a power of them. If
they come from a softmax, as they do in PyLDL, this is the same as a scale before the softmax. What
is in the file is not run again. A fit that takes more than the cap is left out, and so are the
other thresholds of its data set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import OUTPUT, data_dir, side_python
from benchmarks.bench_enhancers import REQUIREMENTS
from lemll.datasets import binarize_distribution, load_dataset
from lemll.enhancers import BaseEnhancer
from lemll.paper.enhancement import enhancement_protocol, measure_fitted
from lemll.paper.enhancement_cells import (
    OTHERS_FILE,
    EnhancementKey,
    MeasuredRegime,
    read_enhancement,
    write_enhancement,
)

FOLDER = Path(__file__).parents[1] / "results" / "enhancement"
METHODS = ("FCM", "KM", "LP", "ML", "GLLE", "LEVI", "LIBLE", "ConLE")
SMALL = ("SJAFFE", "Natural_Scene", "SBU_3DFE", "Yeast_spoem", "Yeast_alpha")
CAP = 120

# One result per line, so that what is done before the cap counts.
THEIRS = """
import json, resource, sys, time
import numpy as np
import keras
from pyldl.algorithms import {name}
data = np.load({path!r})
X = data["X"]
for threshold in {thresholds!r}:
    Y = data[f"Y{{threshold:g}}"].astype(np.float32)
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + {cap} + 1, int(used) + {cap} + 9))
    keras.utils.set_random_seed(0)
    cpu = time.process_time()
    D = {name}().fit(X, Y).transform()
    cpu = time.process_time() - cpu
    out = {out!r} + f"_{{threshold:g}}.npy"
    np.save(out, np.asarray(D, dtype=np.float64))
    print(json.dumps([threshold, cpu, out]), flush=True)
"""


class Degrees(BaseEnhancer):
    """Degrees that another library returned, to be calibrated.

    Parameters
    ----------
    degrees : ndarray of shape (n_samples, n_labels)
        Not negative.
    normalization : {"sum"}
        The scale is a power of the degrees.
    scale : float
        The power before calibration.
    """

    def __init__(self, degrees: Any, *, normalization: Any = "sum", scale: float = 1.0) -> None:
        self.degrees = degrees
        self.normalization = normalization
        self.scale = scale

    def _numerical_labels(self, X: Any, Y: Any) -> Any:
        return np.asarray(self.degrees, dtype=np.float64)


def theirs(
    python: str, name: str, dataset: str, thresholds: Sequence[float], cap: int
) -> list[tuple[float, float, Any]]:
    """Run a method of PyLDL in one process; return thresholds, CPU seconds and degrees."""
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"{dataset}_thresholds.npz"
    data = load_dataset(dataset)
    X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    labels = {f"Y{t:g}": binarize_distribution(np.asarray(data.D), t) for t in thresholds}
    np.savez(path, X=X, **labels)
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | one | {"KERAS_BACKEND": "torch"}
    environment.pop("PYTHONPATH", None)
    code = THEIRS.format(
        name=name, path=str(path), out=str(OUTPUT / f"pyldl_{name}_{dataset}"), cap=cap,
        thresholds=list(thresholds),
    )  # fmt: skip
    ended = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    if ended.returncode > 0:
        print(f"PyLDL {name} on {dataset} failed: {ended.stderr.strip().splitlines()[-1]}")
    elif ended.returncode < 0:
        print(f"PyLDL {name} on {dataset} took more than {cap} CPU seconds", flush=True)
    found = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("[")]
    return [(threshold, cpu, np.load(out)) for threshold, cpu, out in found]


def measured(
    name: str, dataset: str, found: Sequence[tuple[float, float, Any]], metrics: Sequence[str]
) -> Iterator[MeasuredRegime]:
    """Calibrate and measure degrees by the code of the comparison."""
    data = load_dataset(dataset)
    D = np.asarray(data.D)
    for threshold, seconds, degrees in found:
        if not np.isfinite(degrees).all() or (degrees < 0).any():
            print(f"PyLDL {name} on {dataset}, {threshold:g}: its degrees are not a distribution")
            continue
        with warnings.catch_warnings():
            # Scales at the end of the range are results here.
            warnings.simplefilter("ignore", UserWarning)
            fitted = Degrees(degrees).fit(data.X, binarize_distribution(D, threshold))
            for regime, values in measure_fitted(fitted, D, metrics):
                key = EnhancementKey(dataset, threshold, f"PyLDL {name}", regime)
                yield MeasuredRegime(key, values, seconds)


def main() -> None:
    """Run what the file lacks, data set by data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", default=SMALL)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--cap", type=int, default=CAP, help="largest CPU seconds of a fit")
    given = parser.parse_args()
    data_dir()
    protocol = enhancement_protocol(FOLDER)
    python = side_python("pyldl", "LEMLL_PYLDL_PYTHON", REQUIREMENTS)
    rows = {row.key: row for row in read_enhancement(FOLDER, OTHERS_FILE)}
    for name in given.methods:
        for dataset in given.datasets:
            mine = dataset, f"PyLDL {name}"
            done = {key.threshold for key in rows if (key.dataset, key.method) == mine}
            todo = [t for t in protocol.thresholds if t not in done]
            found = theirs(python, name, dataset, todo, given.cap) if todo else []
            rows |= {row.key: row for row in measured(name, dataset, found, protocol.metrics)}
            write_enhancement(FOLDER, OTHERS_FILE, rows.values(), protocol.metrics)
            seconds = [round(cpu, 2) for _, cpu, _ in found]
            print(f"PyLDL {name} on {dataset}: {seconds} CPU seconds", flush=True)


if __name__ == "__main__":
    main()
