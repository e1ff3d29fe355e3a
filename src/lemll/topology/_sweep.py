"""For every row, the few other rows whose distance bounds are smallest: one sweep over all pairs.

Tiles of pairs are taken above the diagonal only; each serves its rows and its columns. Every row
keeps its best candidates and the bound that a new one has to beat. After the first tiles hardly
any pair does, so a tile costs its product and two comparisons.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lemll.topology._rows import Block, Float32Array, IndexArray, Rows

__all__ = ["Candidates", "sweep"]

# Columns among which each row looks first, for a bound to start from.
SAMPLE_COLUMNS = 256


class Candidates:
    """The best `width` candidates of every row so far, best first.

    Parameters
    ----------
    start : ndarray of shape (n_samples,), float32
        Closeness that a pair has to beat from the start.
    width : int
        How many candidates to keep.

    Attributes
    ----------
    closeness : ndarray of shape (n_samples, width), float32
        Minus half the lower bound of the squared distance; minus infinity where none is kept.
    index : ndarray of shape (n_samples, width), int32
        The rows they belong to.
    threshold : ndarray of shape (n_samples,), float32
        No pair left out was closer than this.
    """

    def __init__(self, start: Float32Array, width: int) -> None:
        self.threshold = start
        self.closeness = np.full((len(start), width), -np.inf, np.float32)
        self.index = np.zeros((len(start), width), np.int32)

    def offer(self, tile: Float32Array, rows: int, columns: int, *, transposed: bool) -> None:
        """Take the pairs of a tile that beat their row's threshold.

        Tiles must come in the order of `columns`: among equals the first one stays, so that ties
        go to the lower index.
        """
        if transposed:
            threshold = self.threshold[rows : rows + tile.shape[1]]
            flat = np.flatnonzero(tile > threshold)
            j, i = np.divmod(flat, tile.shape[1])
            order = np.argsort(i, kind="stable")
            flat, i, j = flat[order], i[order], j[order]
        else:
            threshold = self.threshold[rows : rows + tile.shape[0], None]
            flat = np.flatnonzero(tile > threshold)
            i, j = np.divmod(flat, tile.shape[1])
        if len(flat):
            self._merge(i + rows, j + columns, tile.ravel()[flat])

    def _merge(self, i: IndexArray, j: IndexArray, closeness: Float32Array) -> None:
        """Merge new candidates, sorted by row and then by index, into the kept ones."""
        width = self.closeness.shape[1]
        first = np.flatnonzero(np.diff(i, prepend=-1))
        count = np.diff(first, append=len(i))
        touched = i[first]
        line = np.repeat(np.arange(len(first)), count)
        place = np.arange(len(i)) - first[line] + width
        values = np.full((len(first), width + int(count.max())), -np.inf, np.float32)
        names = np.zeros(values.shape, np.int32)
        values[:, :width], names[:, :width] = self.closeness[touched], self.index[touched]
        values[line, place], names[line, place] = closeness, j
        order = np.argsort(-values, axis=1, kind="stable")[:, :width]
        self.closeness[touched] = np.take_along_axis(values, order, axis=1)
        self.index[touched] = np.take_along_axis(names, order, axis=1)
        last = self.closeness[touched, -1]
        self.threshold[touched] = np.maximum(self.threshold[touched], last)


class _Columns:
    """A block as the right-hand side of the sifting product, made once for many tiles."""

    def __init__(self, block: Block) -> None:
        self.dense = block.dense.copy()
        self.dense[:, -2:] = block.dense[:, :-3:-1]
        self.rare = None if block.rare is None else np.ascontiguousarray(block.rare.toarray().T)

    def closeness(self, rows: Block) -> Float32Array:
        """Return minus half the lowered squared distances of `rows` and these columns."""
        tile: Float32Array = rows.dense @ self.dense.T
        if self.rare is not None:
            tile += rows.rare @ self.rare
        return tile


def _starting_thresholds(rows: Rows, width: int) -> Float32Array:
    """Return, for every row, what its `width`-th best among a few columns reaches."""
    n_samples = rows.n_samples
    sample = min(n_samples, max(SAMPLE_COLUMNS, 4 * width))
    start: npt.NDArray[np.float32] = np.empty(n_samples, np.float32)
    for low in range(0, n_samples, rows.block_rows):
        high = min(low + rows.block_rows, n_samples)
        origin = min(low, n_samples - sample)
        tile = _Columns(rows.block(origin, origin + sample)).closeness(rows.block(low, high))
        own = np.arange(low, high) - origin
        inside = own < sample
        tile[np.flatnonzero(inside), own[inside]] = -np.inf
        start[low:high] = np.partition(tile, sample - width, axis=1)[:, sample - width]
    # The same pair may come out a little different in a tile of another shape.
    margin = np.abs(start) * np.float32(2.0**-16) + np.finfo(np.float32).tiny
    return np.asarray(start - margin, dtype=np.float32)


def sweep(rows: Rows, width: int) -> Candidates:
    """Return the `width` rows with the smallest distance bounds, for every row.

    Parameters
    ----------
    rows : Rows
        The rows.
    width : int
        How many to keep, smaller than the number of rows.

    Returns
    -------
    Candidates
        Never the row itself; ties kept by lower index.
    """
    candidates = Candidates(_starting_thresholds(rows, width), width)
    n_samples, step = rows.n_samples, rows.block_rows
    # For any row, the other blocks come in index order: first as columns of earlier outer turns.
    for low in range(0, n_samples, step):
        own = rows.block(low, min(low + step, n_samples))
        columns = _Columns(own)
        for other in range(low, n_samples, step):
            if other == low:
                tile = columns.closeness(own)
                np.fill_diagonal(tile, -np.inf)
                candidates.offer(tile, low, low, transposed=False)
                continue
            tile = columns.closeness(rows.block(other, min(other + step, n_samples)))
            candidates.offer(tile, other, low, transposed=False)
            candidates.offer(tile, low, other, transposed=True)
    return candidates
