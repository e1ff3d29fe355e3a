"""Many labels: LEMLL beside logistic regressions (BR), napkinXC and label frequencies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks._learners import peers_python
from benchmarks._measure import OUTPUT, data_dir
from benchmarks._text import text_like
from lemll.datasets import load_dataset

MOST_BYTES = 4e9
SYNTHETIC = {"rows": 100_000, "features": 20_000, "labels": 2_000, "density": 0.003}
HELD_OUT = 10_000

_SCRIPT = """
import json, sys, time
import numpy as np
from scipy import sparse
def peak():
    # ru_maxrss of a new process is at least that of its parent, which made the data.
    with open("/proc/self/status") as lines:
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
stored = np.load({path!r})
def matrix(name):
    parts = tuple(stored[name + "_" + part] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=tuple(stored[name + "_shape"]))
X, T, Y = matrix("X"), matrix("T"), matrix("Y")
{setup}
start, cpu = time.perf_counter(), time.process_time()
{fit}
fitted = time.perf_counter(), time.process_time()
{predict}
done = time.perf_counter(), time.process_time()
np.save({out!r}, np.asarray(top, np.int64))
print(json.dumps(dict(
    fit=[fitted[0] - start, fitted[1] - cpu], predict=[done[0] - fitted[0], done[1] - fitted[1]],
    peak=peak(), note=note,
)))
"""
# The names of the labels of an array are y0, y1, ...
_TOP = "top = np.vectorize(lambda name: int(name[1:]))(model.predict_top_k(T, 5))"
_LEMLL = {
    "setup": "from lemll import LEMLL",
    "fit": 'settings = {{"precision": "float32", "label_block": {block}}}\n'
    "model = LEMLL(tol=1e-3, solver_params=settings).fit(X, Y)\n"
    "note = dict(gap=model.optimality_, n_iter=model.n_iter_, **model.neighbor_search_)",
    "predict": _TOP,
}
_BR = {
    "setup": "from lemll import BinaryRelevance",
    "fit": "model, note = BinaryRelevance().fit(X, Y), None",
    "predict": _TOP,
}
_NAPKIN = {
    "setup": "import tempfile\nfrom napkinxc.models import PLT\nfolder = tempfile.mkdtemp()\n"
    "note, sets = None, [y.indices.tolist() for y in Y]",
    "fit": "model = PLT(folder, threads=2, verbose=False, seed=0)\nmodel.fit(X, sets)",
    "predict": "top = model.predict(T, top_k=5)",
}


def stored(name: str, parts: dict[str, Any]) -> Path:
    """Write the matrices of a problem to a file."""
    OUTPUT.mkdir(exist_ok=True)
    arrays: dict[str, Any] = {}
    for key, part in parts.items():
        csr = sparse.csr_array(part)
        arrays |= {
            f"{key}_data": csr.data,
            f"{key}_indices": csr.indices.astype(np.int32),
            f"{key}_indptr": csr.indptr.astype(np.int32),
            f"{key}_shape": np.array(csr.shape),
        }
    path = OUTPUT / f"many_labels_{name}.npz"
    np.savez(path, **arrays)
    return path


def problem(name: str) -> tuple[Path, Any]:
    """Return the file of training and test rows, and the test labels."""
    if name == "synthetic":
        size = SYNTHETIC["rows"] + HELD_OUT
        X, Y = text_like(
            int(size),
            int(SYNTHETIC["features"]),
            int(SYNTHETIC["labels"]),
            density=SYNTHETIC["density"],
        )
        seen = np.arange(int(SYNTHETIC["rows"]))
        unseen = np.arange(len(seen), X.shape[0])
    else:
        data = load_dataset(name)
        X, Y = sparse.csr_array(data.X), sparse.csr_array(data.Y)
        seen, unseen = np.split(np.random.RandomState(0).permutation(len(data)), [len(data) // 2])
    return stored(name, {"X": X[seen], "T": X[unseen], "Y": Y[seen]}), (Y[unseen], Y[seen])


def precisions(V: Any, top: Any) -> list[float]:
    """Return P@1, P@3 and P@5."""
    rows = np.arange(V.shape[0])[:, None]
    hits = np.asarray(V[np.broadcast_to(rows, top.shape), top].todense()).reshape(top.shape)
    return [float(hits[:, :k].mean()) for k in (1, 3, 5)]


def run_method(path: Path, parts: dict[str, str], python: str) -> tuple[dict[str, Any], Any]:
    """Run one method in a process of its own, with two threads."""
    out = OUTPUT / "many_labels_top.npy"
    environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    script = _SCRIPT.format(path=str(path), out=str(out), **parts)
    finished = subprocess.run(
        [python, "-c", script], capture_output=True, text=True, check=False, env=environment
    )
    if finished.returncode:
        raise RuntimeError(finished.stderr)
    return json.loads(finished.stdout.splitlines()[-1]), np.load(out)


def many_labels(names: tuple[str, ...] = ("delicious", "synthetic")) -> list[dict[str, Any]]:
    """Compare the methods by time, memory and P@1, P@3, P@5."""
    data_dir()
    rows = []
    for name in names:
        path, (V, Y) = problem(name)
        often = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")[:5]
        found = precisions(V, np.tile(often, (V.shape[0], 1)))
        print(f"{name} {V.shape[1]} labels; by frequency P@1/3/5 " + _shown(found), flush=True)
        block = 50 if name == "synthetic" else None
        methods = {
            "LEMLL": (_LEMLL | {"fit": _LEMLL["fit"].format(block=block)}, sys.executable),
            "napkinXC PLT": (_NAPKIN, peers_python()),
            "BR logistic": (_BR, sys.executable),
        }
        for title, (parts, python) in methods.items():
            figures, top = run_method(path, parts, python)
            found = precisions(V, top)
            rows.append({"data": name, "method": title, "precisions": found} | figures)
            enough = "" if figures["peak"] <= MOST_BYTES else "  MORE THAN 4 GB"
            print(
                f"{name:10s} {title:13s} fit {figures['fit'][0]:.1f} s (cpu "
                f"{figures['fit'][1]:.1f}), predict {figures['predict'][0]:.1f} s (cpu "
                f"{figures['predict'][1]:.1f}), peak {figures['peak'] / 1e9:.2f} GB{enough}, "
                f"P@1/3/5 {_shown(found)} {figures['note'] or ''}",
                flush=True,
            )
    return rows


def _shown(values: list[float]) -> str:
    return " ".join(f"{value:.4f}" for value in values)
