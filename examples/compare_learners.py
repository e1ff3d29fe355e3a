"""
Compare learners and draw conclusions
=====================================

A protocol says what is run. Statistical tests say what you can conclude from the results.
"""

# %%
# We make five small data sets from the first images of the digits, with fewer and fewer grey
# levels. They are files: a protocol reads files, embedded sets and registered sets.
import tempfile
from pathlib import Path

import numpy as np

from lemll.datasets import Dataset, load_digit_tags, write_dataset
from lemll.lab import ComparisonTable, Protocol, Splits, Store, run
from lemll.lab.significance import conclude, overlap_ratio

folder = Path(tempfile.mkdtemp())
digits = load_digit_tags()
files = []
for levels in (16, 8, 4, 2, 1):
    coarse = np.floor(digits.X[:300] * levels / 16)
    files.append(folder / f"levels-{levels}.npz")
    write_dataset(Dataset(X=coarse, Y=digits.Y[:300]), files[-1])

# %%
# Run the protocol. If the run is stopped at any moment, the same call continues it.
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
# Print the table, with the marks of the paper's t-test.
table = ComparisonTable.from_store(protocol, store)
print(table.to_markdown())

# %%
# These five sets are variants of one set. A real comparison needs independent data sets. This part
# only shows how to read the conclusions.
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
