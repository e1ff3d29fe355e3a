"""
Compare learners, and conclude no more than that
================================================

A protocol says what is run; the tests say what may be concluded from it.
"""

# %%
# Five small sets: the first images of the digits, their pixels ever coarser. Files are what a
# protocol reads besides embedded and registered sets.
import tempfile
from pathlib import Path

import numpy as np

from lemll.comparison.conclusions import conclude, overlap_ratio
from lemll.datasets import Dataset, load_digit_tags, write_dataset
from lemll.experiments import ComparisonTable, Protocol, Splits, Store, run

folder = Path(tempfile.mkdtemp())
digits = load_digit_tags()
files = []
for levels in (16, 8, 4, 2, 1):
    coarse = np.floor(digits.X[:300] * levels / 16)
    files.append(folder / f"levels-{levels}.npz")
    write_dataset(Dataset(X=coarse, Y=digits.Y[:300]), files[-1])

# %%
# Run it. Stopped at any moment, the same call goes on where it was.
protocol = Protocol(
    name="coarse pixels",
    experiment="prediction",
    datasets=tuple(str(file) for file in files),
    methods=("LEMLL", "BR", "ML-kNN"),
    metrics=("average_precision",),
    splits=Splits("halves", 5),
)
store = Store(folder / "store")
end = run(protocol, store)
print(f"{end.done} of {end.total} cells done")

# %%
# The table, with the marks of the paper's t-test.
table = ComparisonTable.from_store(protocol, store)
print(table.to_markdown())

# %%
# Five sets that are variants of one are five sets for the arithmetic only: a real comparison needs
# independent ones. This is how its conclusions are read.
ratio = overlap_ratio(protocol.splits)
conclusions = conclude(table.panels[0], protocol.control, ratio=ratio)
friedman = conclusions.friedman
print(f"Friedman: chi-square {friedman.chi_square:.2f}, p = {friedman.chi_square_pvalue:.3f}")
print(f"Iman-Davenport: F = {friedman.f:.2f}, p = {friedman.f_pvalue:.3f}")
print(f"average ranks must differ by {conclusions.nemenyi:.2f} (Nemenyi)")
for group in conclusions.groups:
    print("cannot be told apart:", ", ".join(group))
for other in conclusions.against:
    print(
        f"LEMLL against {other.method}: {other.t_test.wins} better, {other.t_test.losses} worse by "
        f"the t-test, {other.corrected.wins} and {other.corrected.losses} corrected for overlap; "
        f"Wilcoxon-Holm p = {other.pair.adjusted:.3f}, effect {other.pair.effect:+.2f}"
    )
