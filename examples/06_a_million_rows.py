"""
A million rows
==============

What grows with the number of rows, and what to set. Here with 20,000 rows, in a few seconds.
"""

# %%
# Texts of a web shop are sparse rows: a few words of a thousand. ``LEMLL_ROWS=1000000`` in the
# environment runs the same page with a million rows; it takes minutes and a few gigabytes.
import os
import time

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

n_rows, n_words, n_labels = int(os.environ.get("LEMLL_ROWS", "20000")), 1000, 20
rng = np.random.default_rng(0)
subject = rng.integers(0, 50, n_rows)
words = (subject[:, None] * 20 + rng.integers(0, 60, (n_rows, 12))) % n_words
places = np.arange(0, 12 * n_rows + 1, 12)
X = sparse.csr_array((np.ones(12 * n_rows, np.float32), words.ravel(), places), (n_rows, n_words))
X.sum_duplicates()
Y = (rng.random((50, n_labels)) < 0.15)[subject].astype(np.int8)
print(
    f"X: {X.data.nbytes / 1e6:.1f} MB in sparse float32; dense it would be {n_rows * 8e-3:.0f} MB"
)

# %%
# **The graph** is computed once and kept in a file. Up to 100,000 rows the search is exact and its
# time grows with the square of the rows; above, nearest neighbour descent takes over (``pip install
# 'lemll[ann]'``).
import tempfile
from pathlib import Path

from lemll.topology import neighbor_graph, save_graph

file = Path(tempfile.mkdtemp()) / "graph.npz"
sizes, graph_seconds = [n_rows // 4, n_rows // 2, n_rows], []
for size in sizes:
    begin = time.perf_counter()
    graph = neighbor_graph(X[:size])
    graph_seconds.append(time.perf_counter() - begin)
save_graph(graph, file)

# %%
# **The fit** is linear in the stored numbers. In single precision it needs half of the memory, and
# the certificate, which is computed in double precision, still says how far the optimum can be.
from lemll import LEMLL
from lemll.metrics import average_precision

fit_seconds = []
for size in sizes:
    begin = time.perf_counter()
    stored = str(file) if size == n_rows else None
    model = LEMLL(graph=stored, solver_params={"precision": "float32"}).fit(X[:size], Y[:size])
    fit_seconds.append(time.perf_counter() - begin)
    print(f"{size:,} rows: {fit_seconds[-1]:.1f} s, proven gap {model.optimality_:.0e}")
precision = average_precision(Y[:2000], model.decision_function(X[:2000]))
print(f"average precision on training rows: {precision:.3f}")

# %%
# The last point has its graph from the file.
figure, axes = plt.subplots(layout="constrained")
axes.plot(sizes, graph_seconds, marker="o", label="graph")
axes.plot(sizes, fit_seconds, marker="s", label="fit")
axes.set(xlabel="rows", ylabel="seconds", xscale="log", yscale="log")
axes.legend()
plt.show()
