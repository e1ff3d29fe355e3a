"""Label enhancers against PyLDL's, and MLFE against a Cholesky factor.

PyLDL (python-ldl 0.1.0 on Keras and torch) runs in an environment of its own, made on first use
below ``benchmarks/output`` or named by ``LEMLL_PYLDL_PYTHON``. Both sides get the same data, one
thread, and a fresh process; imports are counted on neither side, and only CPU seconds count. The
least of three runs counts on each side. A run of PyLDL that takes more than ten seconds is not
repeated. A run of PyLDL is stopped after 300 CPU seconds, which then count as its time. Our
enhancers get PyLDL's kernel, neighbours and normalisation through their parameters, so that the
quality can be compared.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import OUTPUT, best, data_dir, side_python, write_json
from lemll.datasets import binarize_distribution, load_dataset
from lemll.metrics import chebyshev, cosine, kl_divergence

CAP = 300
REPEATS = 3
# A run of PyLDL that takes longer is not repeated.
LONG = 10
REQUIREMENTS = ("torch==2.13.0", "python-ldl==0.1.0", "requests")

OURS_SETUP = """
import numpy as np
from lemll.enhancers import *
data = np.load({path!r})
X, Y = data["X"], data["Y"]
"""
OURS = """
result = time.process_time()
D = {enhancer}.fit_enhance(X, Y)
result = time.process_time() - result
np.save({out!r}, D)
"""
THEIRS = """
import json, resource, sys, time
import numpy as np
resource.setrlimit(resource.RLIMIT_CPU, ({cap} + 20, {cap} + 30))
from pyldl.algorithms import {name}
data = np.load({path!r})
X, Y = data["X"], data["Y"].astype(np.float32)
cpu = time.process_time()
D = {name}().fit(X, Y).transform()
cpu = time.process_time() - cpu
np.save({out!r}, np.asarray(D))
print(json.dumps(cpu))
"""

# PyLDL's settings, as our parameters; {l} is the number of labels. Its GLLE stops its iterations
# early, which a ridge of 5 comes near to. Its FCM stops when the change of all memberships has the
# norm 1e-7; so does ours if each of the 213 x 50 memberships of SJAFFE changes by 9e-10 at most.
SETTINGS = {
    "KM": "KMEnhancer(kernel='rbf', radius='all', delta=1e-7, normalization='softmax')",
    "LP": (
        "LabelPropagationEnhancer(transition='symmetric', self_similarity=True, "
        "normalization='softmax')"
    ),
    "ML": ("ML2Enhancer({l}, graph=dict(reg=1e-3, reg_policy='always'), normalization='softmax')"),
    "GLLE": ("GLLEEnhancer(n_neighbors={l} + 1, graph_gamma=0.5, standardize=False, ridge=5.0)"),
    "FCM": "FCMEnhancer(50, connection='none', normalization='softmax', tol=9e-10, random_state=0)",
}
DATA = ("Yeast_alpha", "SBU_3DFE")
# What takes minutes comes last.
RUNS = [(name, data) for name in ("KM", "LP", "GLLE") for data in DATA]
RUNS += [("FCM", "SJAFFE"), ("ML", "SBU_3DFE"), ("ML", "Yeast_alpha")]


def theirs(python: str, name: str, path: Path, out: Path) -> float:
    """Run PyLDL in a fresh process; return its CPU seconds, `CAP` if it takes longer."""
    environment = os.environ | {
        "KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }  # fmt: skip
    environment.pop("PYTHONPATH", None)
    code = THEIRS.format(name=name, path=str(path), out=str(out), cap=CAP)
    try:
        finished = subprocess.run(
            [python, "-c", code],
            capture_output=True, text=True, env=environment, timeout=2 * CAP, check=True,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        if isinstance(error, subprocess.CalledProcessError) and error.returncode > 0:
            raise RuntimeError(f"PyLDL's {name} failed:\n{error.stderr}") from error
        return float(CAP)
    return min(float(json.loads(finished.stdout.splitlines()[-1])), float(CAP))


def quality(D: Any, path: Path) -> tuple[float, ...] | None:
    """Return Chebyshev, KL(recovered || true) and cosine of a stored result, if there is one."""
    if not path.exists():
        return None
    recovered = np.load(path).astype(np.float64)
    recovered /= recovered.sum(axis=1, keepdims=True)
    divergence = kl_divergence(D, recovered, direction="pred_true")
    return chebyshev(D, recovered), divergence, cosine(D, recovered)


def compare(python: str, name: str, dataset: str) -> dict[str, Any]:
    """Compare one method on one set of data."""
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"{dataset}.npz"
    outs = [OUTPUT / f"{dataset}_{name}_{side}.npy" for side in ("ours", "theirs")]
    for out in outs:
        out.unlink(missing_ok=True)
    data = load_dataset(dataset)
    Y = binarize_distribution(data.D, 0.5)
    np.savez(path, X=data.X, Y=Y)
    enhancer = SETTINGS[name].format(l=Y.shape[1])
    ours_cpu = best(
        OURS_SETUP.format(path=str(path)), OURS.format(enhancer=enhancer, out=str(outs[0])),
        repeats=REPEATS,
    )["result"]  # fmt: skip
    their_cpu = theirs(python, name, path, outs[1])
    if their_cpu < LONG:
        again = [theirs(python, name, path, outs[1]) for _ in range(REPEATS - 1)]
        their_cpu = min([their_cpu, *again])
    ours_quality, their_quality = (quality(data.D, out) for out in outs)
    row = {
        "method": name, "data": dataset, "ours_cpu_s": ours_cpu, "pyldl_cpu_s": their_cpu,
        "times_less": their_cpu / ours_cpu, "ours": ours_quality, "pyldl": their_quality,
    }  # fmt: skip
    show = [
        "stopped" if q is None else "/".join(f"{value:.4f}" for value in q)
        for q in (ours_quality, their_quality)
    ]
    print(
        f"{name:4s} {dataset:11s} ours {ours_cpu:.3f} s CPU, {show[0]}; PyLDL {their_cpu:.2f} s "
        f"CPU, {show[1]}: {row['times_less']:.1f} times less",
        flush=True,
    )
    return row


def mlfe() -> dict[str, Any]:
    """MLFE on SBU_3DFE, codes included, against one Cholesky factor of order 2,500."""
    path = OUTPUT / "SBU_3DFE.npz"
    data = load_dataset("SBU_3DFE")
    OUTPUT.mkdir(exist_ok=True)
    np.savez(path, X=data.X, Y=binarize_distribution(data.D, 0.5))
    figures = {}
    for coding in ("admm", "lasso"):
        figures[coding] = best(
            OURS_SETUP.format(path=str(path)),
            f"result = MLFEEnhancer(coding={coding!r}).fit(X, Y).kkt_residual_",
            repeats=2,
        )
    setup = "import numpy as np, scipy.linalg\nA = np.ones((2500, 2500)) + 2500 * np.eye(2500)"
    factor = best(setup, "scipy.linalg.cholesky(A, lower=True)\nresult = None")["cpu"]
    for coding, measured in figures.items():
        cpu = measured["cpu"]
        print(
            f"MLFE ({coding}) on SBU_3DFE: {cpu:.2f} s CPU, {cpu / factor:.1f} Choleskys of order "
            f"2,500 ({factor:.3f} s); KKT residual {measured['result']:.1e}",
            flush=True,
        )
    return {
        "cholesky_cpu_s": factor,
        **{f"{coding}_cpu_s": measured["cpu"] for coding, measured in figures.items()},
        **{f"{coding}_choleskys": m["cpu"] / factor for coding, m in figures.items()},
    }


def main() -> None:
    """Measure all of it, print, and keep the figures."""
    data_dir()
    figures: dict[str, Any] = {"mlfe": mlfe()}
    python = side_python("pyldl", "LEMLL_PYLDL_PYTHON", REQUIREMENTS)
    figures["pyldl"] = [compare(python, name, dataset) for name, dataset in RUNS]
    write_json("enhancers", figures)


if __name__ == "__main__":
    main()
