"""
A new method, compared by lemll bench
=====================================

Write a learner, name it in a protocol, and let tests say whether it is better than the others.
"""

# %%
# The method is any multi-label learner of scikit-learn's kind. This one takes nearest neighbours
# and lets the nearer ones count more. A file beside the protocol registers it.
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
METHOD = '''
import numpy as np
from sklearn.neighbors import NearestNeighbors

from lemll.lab import Method, register
from lemll.predictors.base import MultilabelClassifier


class NearVotes(MultilabelClassifier):
    """Each neighbour votes with a weight that falls with its distance."""

    def _fit(self, X, Y):
        self.search_, self.votes_ = NearestNeighbors(n_neighbors=10).fit(X), Y

    def _score(self, X):
        distances, rows = self.search_.kneighbors(X)
        weights = 1 / (distances + 1e-9)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("ij,ijk->ik", weights, self.votes_[rows]) - 0.5


register(Method("Near votes", "learner", NearVotes, summary="weighted nearest neighbours"))
'''
(folder / "near_votes.py").write_text(METHOD, encoding="utf-8")

# %%
# A protocol reads files, embedded sets and registered sets. We make five small files from the
# digits, with fewer and fewer grey levels.
import numpy as np

from lemll.datasets import Dataset, load_digit_tags, write_dataset

digits = load_digit_tags()
for levels in (16, 8, 4, 2, 1):
    coarse = np.floor(digits.X[:300] * levels / 16)
    write_dataset(Dataset(X=coarse, Y=digits.Y[:300]), folder / f"levels-{levels}.npz")
PROTOCOL = """
imports = ["near_votes"]
experiment = "prediction"
datasets = ["levels-16.npz", "levels-8.npz", "levels-4.npz", "levels-2.npz", "levels-1.npz"]
methods = ["Near votes", "LEMLL", "BR", "ML-kNN"]
metrics = ["average_precision"]
control = "Near votes"

[splits]
kind = "halves"
n_splits = 5
"""
(folder / "votes.toml").write_text(PROTOCOL, encoding="utf-8")

# %%
# Run it. If the run is stopped at any moment, the same call continues it. On the command line:
#
# .. code-block:: text
#
#    lemll bench run votes.toml --trust-imports
#    lemll bench table votes.toml
#    lemll bench report votes.toml
from lemll.lab import ComparisonTable, Protocol, Store, run

protocol = Protocol.from_toml(folder / "votes.toml", trust_imports=True)
store = Store(folder / "store")
end = run(protocol, store)
print(f"{end.done} of {end.total} cells done")
table = ComparisonTable.from_store(protocol, store)
print(table.to_markdown())

# %%
# Who is better, and may it be chance? These five sets are variants of one set. A real comparison
# needs independent data sets; this part only shows how to read the conclusions.
from lemll.lab.significance import conclude, overlap_ratio

conclusions = conclude(table.panels[0], protocol.control, ratio=overlap_ratio(protocol.splits))
print(f"average ranks must differ by {conclusions.nemenyi:.2f} (Nemenyi)")
for other in conclusions.against:
    print(
        f"Near votes against {other.method}: {other.t_test.wins} better, {other.t_test.losses} "
        f"worse by the t-test, {other.corrected.wins} and {other.corrected.losses} corrected for "
        f"overlap; Wilcoxon-Holm p = {other.pair.adjusted:.3f}"
    )

# %%
# Each line is a method; each point is the mean of five halves of one data set.
import matplotlib.pyplot as plt

panel = table.panels[0]
figure, axes = plt.subplots(layout="constrained")
for method in panel.methods:
    means = [panel.entries[dataset, method].figures[0] for dataset in panel.datasets]
    axes.plot(panel.datasets, means, marker="o", label=method)
axes.set(ylabel="average precision")
axes.legend()
plt.show()
