"""Dual points that prove more: the better the bound, the earlier a search may end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lemll._types import Array
from lemll.objective import GapParts
from lemll.solvers._model import Model

__all__ = ["Bound", "tight_gap"]


class Bound(NamedTuple):
    """A certified gap, and Z/2 of the dual point that proves it."""

    gap: float
    half_dual: Array


def tight_gap(parts: GapParts, model: Model, alpha: float, V: Array, enough: float) -> Bound:
    """Bound the gap of Eq. (9) by better and better dual points, until one is good enough.

    First the two that the point itself suggests, which cost one product each. The gap is convex
    in Z, and what is wrong with the one is right with the other: the best between the two has a
    gap several times smaller, at no product. What is left there is mostly that Z does not belong
    to the model. The system that preconditions the search knows how to change Z so that it does,
    at two more products.

    Parameters
    ----------
    parts : GapParts
        The point.
    model : Model
        Ready to solve.
    alpha : float
        Weight of ``|Theta|_F^2``.
    V : ndarray
        The model's unknowns.
    enough : float
        A gap that needs no better bound.

    Returns
    -------
    Bound
        The best found.
    """
    tried: list[Bound] = []

    def good_enough(half_dual: Array, square: float) -> bool:
        tried.append(Bound(parts.gap(half_dual, square), half_dual))
        return tried[-1].gap <= enough

    first, second = parts.from_tube(), parts.from_labels()
    force, image = model.force(alpha, V, first)
    square = float(np.vdot(force, image))
    if good_enough(first, square):
        return tried[-1]
    other, other_image = model.force(alpha, V, second)
    squares = square, float(np.vdot(force, other_image)), float(np.vdot(other, other_image))
    if good_enough(second, squares[2]):
        return tried[-1]
    share = parts.best_between(first, second, squares)
    between = (1 - share) * first + share * second
    force = (1 - share) * force + share * other
    image = (1 - share) * image + share * other_image
    if not good_enough(between, float(np.vdot(force, image))):
        reconciled = model.reconcile(alpha, force)
        if reconciled is not None:
            change, square = reconciled
            change += between
            change -= change.mean(axis=0)
            good_enough(change, square)
    return min(tried, key=lambda bound: bound.gap)
