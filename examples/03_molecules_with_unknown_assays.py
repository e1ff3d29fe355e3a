"""
Molecules with unknown assays
=============================

A molecule is tested for some effects and not for others. *Not active* and *not tested* differ.
"""

# %%
# The molecules are made here: 64 bits of a fingerprint, and eight assays that depend on a few bits.
# As in screening libraries, some assays are cheap and tested on most molecules, others on few. NaN
# means that nobody tested.
import matplotlib.pyplot as plt
import numpy as np

from lemll import LEMLL
from lemll.metrics import average_precision

rng = np.random.default_rng(0)
n_molecules, n_assays = 1200, 8
fingerprints = (rng.random((n_molecules, 64)) < 0.3).astype(float)
effect = rng.standard_normal((64, n_assays)) * (rng.random((64, n_assays)) < 0.2)
signal = fingerprints @ effect
active = (signal > np.quantile(signal, 0.8, axis=0)).astype(float)
train, test = slice(0, 600), slice(600, None)
# The first assay is the cheapest. Of the cells of an assay, the share `spread` of it is empty.
spread = np.linspace(0.2, 1.0, n_assays)
order = rng.random(active[train].shape)


def tested(share):
    """Return the assays of the training molecules; of the dearest one, a share is not tested."""
    return np.where(order < share * spread, np.nan, active[train])


def precision(outcomes):
    """Fit LEMLL to assays, and measure it on molecules that have all assays."""
    model = LEMLL(16.0).fit(fingerprints[train], outcomes)
    return average_precision(active[test], model.decision_function(fingerprints[test]))


# %%
# Fit the same model twice: to the cells as they are, and to a table in which somebody wrote 0, "not
# active", where nobody tested.
shares = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95)
unknown = [precision(tested(share)) for share in shares]
as_zero = [precision(np.nan_to_num(tested(share), nan=0.0)) for share in shares]
for share, honest, zero in zip(shares, unknown, as_zero, strict=True):
    print(f"up to {share:.0%} not tested: {honest:.3f} if unknown, {zero:.3f} if read as 0")

# %%
# The model also says what the untested cells probably are: which molecules to test next?
model = LEMLL(16.0).fit(fingerprints[train], tested(0.9))
hidden = np.isnan(tested(0.9))
scores = np.where(hidden, model.numerical_labels_, -np.inf)
best = np.argsort(-scores, axis=0)[:20]
hits = np.take_along_axis(active[train], best, axis=0).mean()
print(f"of the 20 best untested molecules per assay, {hits:.0%} are active; of all, "
      f"{active[train][hidden].mean():.0%}")  # fmt: skip

# %%
# On the left, the cells of forty molecules. On the right, the average precision on the test
# molecules.
figure, (left, axes) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
shown = np.nan_to_num(tested(0.9)[:40], nan=0.5)
left.imshow(shown, cmap="gray_r", vmin=0, vmax=1, aspect="auto")
left.set(title="black: active, white: not active,\ngrey: not tested", xlabel="assay",
         ylabel="molecule")  # fmt: skip
axes.plot(shares, unknown, marker="o", label="not tested = unknown (NaN)")
axes.plot(shares, as_zero, marker="s", label="not tested = 0")
axes.set(
    xlabel="share of untested cells in the dearest assay",
    ylabel="average precision on complete molecules",
)
axes.legend()
plt.show()

# %%
# In a table with one column per assay, an empty cell is unknown: ``lemll fit molecules.csv --labels
# -8 --id molecule -m molecules.lemll``.
