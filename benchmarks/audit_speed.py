"""CPU seconds of an audit beside cleanlab with five-fold logistic regressions, on one thread.

``OPENBLAS_NUM_THREADS=1 python -m benchmarks.audit_speed --cleanlab PYTHON --sets bibtex`` writes
``results/audit/speed.csv``. The time of cleanlab is that of its scores alone, in its environment;
the time of the probabilities is beside it.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.audit_noise import Noise, add_noise, load_clean
from benchmarks.audit_run import default_logistic
from lemll.audit import audit_tags
from lemll.fitting.scaling import fit_scaling

OUTPUT = Path(__file__).parents[1] / "results" / "audit" / "speed.csv"


def main():
    """Measure each set and append to the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cleanlab", required=True)
    parser.add_argument("--sets", required=True)
    options = parser.parse_args()
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    for name in options.sets.split(","):
        X, Y = load_clean(name)
        Z = add_noise(X, Y, Noise("flip", 0.10), 0)
        scaled = fit_scaling("auto", X)(X)
        shape = f"{X.shape[0]} x {X.shape[1]}, {Y.shape[1]} labels"

        begin = time.process_time()
        audit_tags(X, Z, mode="fast")
        write(name, shape, "lemll, fast", time.process_time() - begin)
        begin = time.process_time()
        p = default_logistic(scaled, Z)
        write(name, shape, "five-fold logistic regressions", time.process_time() - begin)
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "in.npz", Z=Z, p_logistic=p)
            script = Path(__file__).with_name("audit_cleanlab.py")
            begin = time.perf_counter()
            subprocess.run(
                [options.cleanlab, str(script)],
                input=f"{folder}/in.npz {folder}/out.npz\n",
                text=True,
                check=True,
                capture_output=True,
            )
            write(name, shape, "cleanlab, all scorers (wall)", time.perf_counter() - begin)
        begin = time.process_time()
        audit_tags(None, Z, pred_probs=p)
        write(name, shape, "lemll, from these probabilities", time.process_time() - begin)
        begin = time.process_time()
        audit_tags(X, Z)
        write(name, shape, "lemll, default", time.process_time() - begin)


def write(*cells):
    """Append a line."""
    new = not OUTPUT.exists()
    with OUTPUT.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(["set", "shape", "what", "seconds"])
        writer.writerow([*cells[:-1], f"{cells[-1]:.1f}"])
    print(*cells, flush=True)


if __name__ == "__main__":
    main()
