"""For every row, the few other rows whose distance bounds are smallest: one sweep over all pairs.

Tiles of pairs are taken above the diagonal only; each serves its rows and its columns. Every row
keeps its best candidates, and a new one has to beat the last of them. After the first tiles hardly
any pair does, so a tile costs its product and two comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from lemll._types import IndexArray
from lemll.topology._rows import Block, Float32Array, Rows
from lemll.topology._threads import worker_threads

__all__ = ["Candidates", "sweep"]

# A tile that offers more than this many times the kept number is sifted twice.
MANY = 3


class Pairs(NamedTuple):
    """Pairs of a row and a candidate, and how close they are."""

    row: IndexArray
    candidate: IndexArray
    closeness: Float32Array


class Candidates:
    """The best `width` candidates of every row so far, best first.

    Parameters
    ----------
    n_samples : int
        The number of rows.
    width : int
        How many candidates to keep.

    Attributes
    ----------
    closeness : ndarray of shape (n_samples, width), float32
        Minus half the lower bound of the squared distance; minus infinity where none is kept yet.
        No pair left out is closer than the last one kept.
    index : ndarray of shape (n_samples, width), int32
        The rows they belong to.
    """

    def __init__(self, n_samples: int, width: int) -> None:
        self.closeness = np.full((n_samples, width), -np.inf, np.float32)
        self.index = np.zeros((n_samples, width), np.int32)

    def closer(self, tile: Float32Array, rows: int, columns: int, *, axis: int) -> Pairs:
        """Return the pairs of a tile that are closer than the last one kept.

        Parameters
        ----------
        tile : ndarray, float32
            Closeness of pairs.
        rows, columns : int
            First of the rows that look for candidates, first of the candidates.
        axis : {0, 1}
            The axis of `tile` along which the candidates lie.

        Returns
        -------
        Pairs
            Sorted by row and then by candidate.
        """
        n_rows, width = tile.shape[1 - axis], self.closeness.shape[1]
        threshold = np.expand_dims(self.closeness[rows : rows + n_rows, -1], axis)
        closer = tile > threshold
        if np.count_nonzero(closer) > MANY * width * n_rows and tile.shape[axis] > width:
            closer = tile > np.maximum(threshold, _within_reach(tile, width, axis))
        flat = np.flatnonzero(closer)
        i, j = np.divmod(flat, tile.shape[1])
        values = tile.ravel()[flat]
        if axis == 0:
            order = np.argsort(j, kind="stable")
            i, j, values = j[order], i[order], values[order]
        return Pairs(i + rows, j + columns, values)

    def merge(self, pairs: Pairs) -> None:
        """Merge new candidates into the kept ones.

        They must come in the order of their indices: among equals the first one stays, so that
        ties go to the lower index.
        """
        i, width = pairs.row, self.closeness.shape[1]
        if len(i) == 0:
            return
        first = np.flatnonzero(np.diff(i, prepend=-1))
        count = np.diff(first, append=len(i))
        touched = i[first]
        line = np.repeat(np.arange(len(first)), count)
        place = np.arange(len(i)) - first[line] + width
        values = np.full((len(first), width + int(count.max())), -np.inf, np.float32)
        names = np.zeros(values.shape, np.int32)
        values[:, :width], names[:, :width] = self.closeness[touched], self.index[touched]
        values[line, place], names[line, place] = pairs.closeness, pairs.candidate
        order = np.argsort(-values, axis=1, kind="stable")[:, :width]
        self.closeness[touched] = np.take_along_axis(values, order, axis=1)
        self.index[touched] = np.take_along_axis(names, order, axis=1)


def _within_reach(tile: Float32Array, width: int, axis: int) -> Float32Array:
    """Return a bound that at least `width` values along an axis are above.

    The values are dealt into groups; among the largest of each group, the `width`-th is reached by
    `width` values. That is nearly as high as the `width`-th of all, and much faster to find.
    """
    size = max(1, tile.shape[axis] // (4 * width))
    groups = tile.shape[axis] // size
    if axis == 0:
        largest = tile[: groups * size].reshape(size, groups, -1).max(axis=0)
    else:
        largest = tile[:, : groups * size].reshape(-1, size, groups).max(axis=1)
    bound = np.partition(largest, groups - width, axis=axis).take([groups - width], axis=axis)
    return np.nextafter(bound, np.float32(-np.inf))


class _Columns:
    """A block as the right-hand side of the sifting product, made once for many tiles."""

    def __init__(self, block: Block) -> None:
        self.dense = block.dense.copy()
        self.dense[:, -2:] = block.dense[:, :-3:-1]
        self.occasional = self.rare = None
        if block.occasional is not None:
            self.occasional = np.ascontiguousarray(block.occasional.toarray().T)
        if block.rare is not None:
            self.rare = block.rare.T.tocsr()

    def closeness(self, rows: Block) -> Float32Array:
        """Return minus half the lowered squared distances of `rows` and these columns."""
        tile: Float32Array = rows.dense @ self.dense.T
        if self.occasional is not None:
            tile += rows.occasional @ self.occasional
        if self.rare is not None:
            product = rows.rare @ self.rare
            line = np.repeat(np.arange(0, tile.size, tile.shape[1]), np.diff(product.indptr))
            tile.ravel()[line + product.indices] += product.data
        return tile


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
    candidates = Candidates(rows.n_samples, width)
    if rows.n_samples <= 4 * rows.block_rows:
        _all_turns(rows, candidates, map)
        return candidates
    with worker_threads() as workers, ThreadPoolExecutor(workers) as pool:
        _all_turns(rows, candidates, pool.map if workers > 1 else map)
    return candidates


def _all_turns(rows: Rows, candidates: Candidates, in_order: Callable[..., Any]) -> None:
    """Let every block meet itself and all later blocks.

    So for any row the other blocks come in index order: the earlier ones as columns of earlier
    turns. Tiles of one turn may be worked on at the same time: each has rows of its own, and what
    it finds for the columns is merged in order. A worker may see a threshold before or after such
    a merge; both leave the same rows in the end.
    """
    n_samples, step = rows.n_samples, rows.block_rows
    for low in range(0, n_samples, step):
        own = rows.block(low, min(low + step, n_samples))
        columns = _Columns(own)
        tile = columns.closeness(own)
        np.fill_diagonal(tile, -np.inf)
        candidates.merge(candidates.closer(tile, low, low, axis=1))

        def meet(other: int, low: int = low, columns: _Columns = columns) -> Pairs:
            tile = columns.closeness(rows.block(other, min(other + step, n_samples)))
            candidates.merge(candidates.closer(tile, other, low, axis=1))
            return candidates.closer(tile, low, other, axis=0)

        for pairs in in_order(meet, range(low + step, n_samples, step)):
            candidates.merge(pairs)
