"""What the benchmarks of classical learners share: halves, the peers' environment, the figures.

scikit-multilearn-ng and napkinXC run in an environment of their own, made on first use below
``benchmarks/output`` or named by ``LEMLL_PEERS_PYTHON``. Every run is a fresh process with one
thread that reads the same halves; imports and reading are counted on no side.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._measure import OUTPUT, data_dir, side_python
from lemll.datasets import load_dataset
from lemll.metrics import average_precision, coverage, hamming_loss, one_error, ranking_loss

REQUIREMENTS = ("scikit-multilearn-ng==0.0.8", "napkinxc==0.7.2")
MEASURES = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")

_SCRIPT = """
import json, resource, time, warnings
import numpy as np
from scipy import sparse
warnings.simplefilter("ignore")
half = np.load({half!r})
def features(name):
    if name in half:
        return half[name]
    parts = tuple(half[name + "_" + part] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=tuple(half[name + "_shape"]))
X, T, Y = features("X"), features("T"), half["Y"]
{setup}
start, cpu = time.perf_counter(), time.process_time()
{fit}
fitted = time.process_time()
{predict}
done = time.process_time()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
np.savez({out!r}, scores=np.asarray(scores, float), labels=np.asarray(labels, np.int8))
print(json.dumps(dict(
    fit=fitted - cpu, predict=done - fitted, cpu=done - cpu, peak=peak,
    seconds=time.perf_counter() - start,
)))
"""


def peers_python() -> str:
    """Return the interpreter of the peers' environment; make it if there is none."""
    return side_python("peers", "LEMLL_PEERS_PYTHON", REQUIREMENTS)


def halves(name: str) -> tuple[Path, Any]:
    """Store the halves of ``RandomState(0).permutation``; return the file and the test labels."""
    data_dir()
    data = load_dataset(name)
    order = np.random.RandomState(0).permutation(len(data.Y))
    seen, unseen = np.split(order, [len(order) // 2])
    arrays: dict[str, Any] = {"Y": data.Y[seen].astype(np.int64)}
    for key, rows in (("X", seen), ("T", unseen)):
        part = data.X[rows]
        if sparse.issparse(part):
            part = part.astype(np.float64)
            arrays |= {
                f"{key}_data": part.data,
                f"{key}_indices": part.indices.astype(np.int32),
                f"{key}_indptr": part.indptr.astype(np.int32),
                f"{key}_shape": np.array(part.shape),
            }
        else:
            arrays[key] = part
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"halves_{name}.npz"
    np.savez(path, **arrays)
    return path, data.Y[unseen]


def measure(
    half: Path, *, setup: str, fit: str, predict: str, python: str = sys.executable
) -> tuple[dict[str, Any], Any]:
    """Time `fit` and `predict` (which sets `scores` and `labels`); return figures and scores."""
    environment = os.environ | {
        name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    }
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)
    out = OUTPUT / f"learner_{os.getpid()}.npz"
    script = _SCRIPT.format(half=str(half), out=str(out), setup=setup, fit=fit, predict=predict)
    finished = subprocess.run(
        [python, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    if finished.returncode:
        raise RuntimeError(f"{fit!r} failed:\n{finished.stderr}")
    with np.load(out) as stored:
        result = dict(stored)
    out.unlink()
    return json.loads(finished.stdout.splitlines()[-1]), result


def quality(Y: Any, result: Any) -> dict[str, float]:
    """Return the five measures of the paper's tables."""
    scores = result["scores"]
    ranked = (ranking_loss, one_error, coverage, average_precision)
    values = [hamming_loss(Y, result["labels"]), *(measure(Y, scores) for measure in ranked)]
    return dict(zip(MEASURES, (float(value) for value in values), strict=True))


def best_of(repeats: int, half: Path, **parts: Any) -> tuple[dict[str, Any], Any]:
    """Return the run with the least CPU time: noise only ever adds."""
    runs = [measure(half, **parts) for _ in range(repeats)]
    return min(runs, key=lambda run: float(run[0]["cpu"]))


def line(name: str, method: str, figures: dict[str, Any], values: dict[str, float]) -> str:
    """Return a line of a table."""
    measures = " ".join(f"{value:.4f}" for value in values.values())
    return (
        f"{name:9} {method:44} {figures['fit']:8.2f} {figures['predict']:7.2f} "
        f"{figures['peak'] / 2**20:7.0f}  {measures}"
    )


HEADER = (
    f"{'data':9} {'method':44} {'fit s':>8} {'pred. s':>7} {'MiB':>7}  "
    "HL     RL     OE     CO     AP"
)
