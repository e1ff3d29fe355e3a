"""PyLDL's enhancers in the comparison of enhancers: ``results/enhancement/others.csv``.

    python -m benchmarks.enhancement_pyldl [DATA_SET ...] [--methods NAME ...] [--cap SECONDS]

PyLDL (python-ldl 0.1.0) runs in its own environment, as in `bench_enhancers`, one process per
method, on one thread, with its default parameters and the seed 0. lemll calibrates and
measures the degrees that it returns: with ``normalization="sum"`` the scale is a power of them. If
they come from a softmax, as they do in PyLDL, this is the same as a scale before the softmax. What
is in the file is not run again. A fit that takes more CPU seconds than the cap is stopped, and so
are the fits of the same method on the rest of this data set. These, and fits whose degrees are not
finite, are listed in ``others_failed.csv``. Stopped fits are run again if the cap differs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
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
from lemll.lab.studies.enhancement import (
    OTHERS_FILE,
    EnhancementKey,
    FailedFit,
    MeasuredRegime,
    enhancement_protocol,
    measure_fitted,
    read_enhancement,
    read_failed,
    write_enhancement,
    write_failed,
)

FOLDER = Path(__file__).parents[1] / "results" / "enhancement"
METHODS = ("FCM", "KM", "LP", "ML", "GLLE", "LEVI", "LIBLE", "ConLE")
SMALL = ("SJAFFE", "Yeast_spoem", "Natural_Scene", "SBU_3DFE", "Yeast_alpha")
CAP = 120
NO_DISTRIBUTION = "returned degrees that are negative or not finite"
Job = tuple[str, float]

# The import costs more than most fits, so one process does all fits of a method. It prints one
# line per result, so that what is done before the cap counts.
THEIRS = """
import json, resource, time
import numpy as np
import keras
from pyldl.algorithms import {name}
for path, key, out in {jobs!r}:
    data = np.load(path)
    X, Y = data["X"], data[key].astype(np.float32)
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + {cap} + 1, -1))
    keras.utils.set_random_seed(0)
    cpu = time.process_time()
    D = {name}().fit(X, Y).transform()
    cpu = time.process_time() - cpu
    np.save(out, np.asarray(D, dtype=np.float64))
    print(json.dumps([out, cpu]), flush=True)
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
    python: str, name: str, jobs: Sequence[Job], cap: int
) -> Iterator[tuple[Job, float | None]]:
    """Run a method of PyLDL; yield each job and its CPU seconds, None if it was stopped.

    One process does the jobs, until one of them is stopped. The next process leaves out the other
    jobs of this data set.
    """
    left = list(jobs)
    while left:
        done = []
        for job, seconds in _one_process(python, name, left, cap):
            done.append(job)
            yield job, seconds
        stopped = next((job for job in left if job not in done), None)
        if stopped is None:
            return
        yield stopped, None
        left = [job for job in left if job not in done and job[0] != stopped[0]]


def _one_process(
    python: str, name: str, jobs: Sequence[Job], cap: int
) -> Iterator[tuple[Job, float]]:
    """Run a method of PyLDL in one process; yield what it has done and its CPU seconds."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | one | {"KERAS_BACKEND": "torch"}
    environment.pop("PYTHONPATH", None)
    tasks = [(str(_stored(dataset)), f"{t:g}", str(_out(name, dataset, t))) for dataset, t in jobs]
    code = THEIRS.format(name=name, jobs=tasks, cap=cap)
    by_out = {task[2]: job for task, job in zip(tasks, jobs, strict=True)}
    last = ""
    with subprocess.Popen(
        [python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            last = line.strip() or last
            if line.startswith('["'):
                out, cpu = json.loads(line)
                yield by_out[out], cpu
    if process.returncode not in (0, -signal.SIGXCPU):
        raise RuntimeError(f"PyLDL {name} ended with {process.returncode}: {last}")


def _out(name: str, dataset: str, threshold: float) -> Path:
    return OUTPUT / f"pyldl_{name}_{dataset}_{threshold:g}.npy"


def _stored(dataset: str) -> Path:
    """Write the features and the labels of all thresholds for the other environment."""
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"{dataset}_thresholds.npz"
    if not path.exists():
        data = load_dataset(dataset)
        X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        thresholds = enhancement_protocol(FOLDER).thresholds
        labels = {f"{t:g}": binarize_distribution(np.asarray(data.D), t) for t in thresholds}
        np.savez(path, X=X, **labels)
    return path


def measured(
    name: str, job: Job, seconds: float, metrics: Sequence[str]
) -> Iterator[MeasuredRegime]:
    """Calibrate and measure degrees by the code of the comparison."""
    dataset, threshold = job
    degrees = np.load(_out(name, dataset, threshold))
    if not np.isfinite(degrees).all() or (degrees < 0).any():
        return
    data = load_dataset(dataset)
    D = np.asarray(data.D)
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
    parser.add_argument("--thresholds", nargs="+", type=float, help="by default all")
    parser.add_argument("--cap", type=int, default=CAP, help="largest CPU seconds of a fit")
    given = parser.parse_args()
    data_dir()
    protocol = enhancement_protocol(FOLDER)
    python = side_python("pyldl", "LEMLL_PYLDL_PYTHON", REQUIREMENTS)
    rows = {row.key: row for row in read_enhancement(FOLDER, OTHERS_FILE)}
    failed = {fit[:3]: fit for fit in read_failed(FOLDER)}
    for name in given.methods:
        label, stopped = f"PyLDL {name}", f"was stopped after {given.cap} CPU seconds"
        done = {row.key[:2] for row in rows.values() if row.key.method == label}
        of_method = [fit for fit in failed.values() if fit.method == label]
        done |= {fit[:2] for fit in of_method if fit.reason == NO_DISTRIBUTION}
        too_long = {fit.dataset for fit in of_method if fit.reason == stopped}
        jobs = [
            (dataset, threshold)
            for dataset in given.datasets
            for threshold in given.thresholds or protocol.thresholds
            if dataset not in too_long and (dataset, threshold) not in done
        ]
        for job, seconds in theirs(python, name, jobs, given.cap):
            found = [] if seconds is None else [*measured(name, job, seconds, protocol.metrics)]
            failed.pop((*job, label), None)
            if not found:
                reason = stopped if seconds is None else NO_DISTRIBUTION
                failed[*job, label] = FailedFit(*job, label, reason)
            rows |= {row.key: row for row in found}
            write_enhancement(FOLDER, OTHERS_FILE, rows.values(), protocol.metrics)
            write_failed(FOLDER, failed.values())
            shown = stopped if seconds is None else f"{seconds:.2f} CPU seconds"
            print(f"{label} on {job[0]}, {job[1]:g}: {shown}", flush=True)


if __name__ == "__main__":
    main()
