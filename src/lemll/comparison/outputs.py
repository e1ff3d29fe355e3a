"""Read the stored outputs of a cell, and check that they can be its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lemll._types import Array
from lemll.datasets import Dataset
from lemll.experiments import Cell, Record, damage, own_arrays, split_rows

__all__ = ["sound_outputs"]

Arrays = Mapping[str, Array]


def sound_outputs(
    cell: Cell, record: Record, dataset: Dataset, read: Callable[[Record], Arrays]
) -> Arrays:
    """Read the arrays of a cell, and check names, shapes and test rows against its data set.

    Parameters
    ----------
    cell : Cell
        The cell.
    record : Record
        Its record, with status done.
    dataset : Dataset
        Its data set.
    read : callable
        `Store.arrays`, which reads the arrays.

    Returns
    -------
    mapping of str to ndarray
        The arrays.

    Raises
    ------
    StoreError
        If the arrays are damaged, or cannot be those of this cell.
    """
    arrays = read(record)
    shapes = {name: array.shape for name, array in arrays.items()}
    n_rows, n_labels = dataset.labels.shape
    wanted: dict[str, tuple[int, ...]]
    if cell.experiment == "prediction":
        _, test = split_rows(cell, dataset)
        n_rows = len(test)
        wanted = {"scores": (n_rows, n_labels), "predictions": (n_rows, n_labels)}
        wanted["test"] = (n_rows,)
        own = own_arrays(cell, record.chosen)
        # Probabilities are stored if a metric of the protocol needs them.
        for name in (*own.values(), *(["probabilities"] if "probabilities" in arrays else [])):
            wanted[name] = (n_rows, n_labels)
    else:
        wanted = dict.fromkeys(("distribution", "numerical_labels"), (n_rows, n_labels))
    if shapes != wanted:
        raise damage(f"{record.id}.npz", f"it holds {shapes}, and its cell leaves {wanted}")
    if not all(array.dtype.kind in "fiub" for array in arrays.values()):
        raise damage(f"{record.id}.npz", "it holds something else than numbers")
    if cell.experiment == "prediction" and not np.array_equal(arrays["test"], test):
        raise damage(f"{record.id}.npz", "its test rows are not those of its split")
    return arrays
