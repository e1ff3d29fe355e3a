"""Search that leaves bad feature spaces early and walks on until the score turns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lemll.predictors.search.folds import Fold, Space
from lemll.predictors.search.trials import Trials
from lemll.solvers import GridPoint

__all__ = ["LIMITS", "halve_and_walk", "rounds_of_few_rows"]

# Smallest and largest values that the walk may reach.
LIMITS = {
    "alpha": (4.0**-8, 4.0**8),
    "beta": (4.0**-4, 4.0**4),
    "gamma": (4.0**-4, 4.0**4),
}
_STEP = 4.0
# The walk may make the kernel this many steps wider or narrower than the widths it starts from.
_WIDTH_STEPS = 3
# The first round compares the spaces on two folds of at most this many rows.
_FIRST_ROWS = 600
_FEW_FOLDS = 2
# The next round has this many times the rows, and one third of the spaces take part in it.
_FACTOR = 3
# Further rounds have less than this share of the rows. A larger one would take nearly as long as
# the comparison with all rows that follows.
_MOST_OF_THE_ROWS = 0.75


def rounds_of_few_rows(folds: Sequence[Fold]) -> list[list[Fold]]:
    """Return the folds of the rounds before all rows are used: two folds of each round.

    Parameters
    ----------
    folds : sequence of Fold
        All folds.

    Returns
    -------
    list of list of Fold
        The first round has at most 600 rows, and each further round three times as many as the one
        before, while this is less than three quarters of all rows. The rows are drawn with a fixed
        seed.
    """
    n_rows = len(folds[0].train) + len(folds[0].test)
    sizes = [_FIRST_ROWS]
    while _FACTOR * sizes[-1] < _MOST_OF_THE_ROWS * n_rows:
        sizes.append(_FACTOR * sizes[-1])
    return [[_part(fold, min(1.0, size / n_rows)) for fold in folds[:_FEW_FOLDS]] for size in sizes]


def _part(fold: Fold, share: float) -> Fold:
    random = np.random.RandomState(0)
    train, test = (
        np.sort(random.choice(rows, math.ceil(share * len(rows)), replace=False))
        for rows in (fold.train, fold.test)
    )
    return Fold(fold.X, fold.Y, train, test, fold.weight)


def halve_and_walk(
    spaces: Sequence[Space],
    axes: Sequence[Sequence[float]],
    rounds: Sequence[Trials],
    trials: Trials,
) -> None:
    """Compare the spaces on few rows, the best ones on more rows, and improve the very best one.

    The spaces are compared by their best score at the smallest, the middle and the largest alpha.
    In the best space the search walks: it multiplies or divides one parameter by 4, the width of
    an RBF kernel included, as long as the score improves. It may leave the given axes, up to
    `LIMITS`.

    Parameters
    ----------
    spaces : sequence of Space
        The candidates.
    axes : sequence of three sequences of float
        Ascending values of alpha, beta and gamma to start from.
    rounds : sequence of Trials
        The trials of the rounds of `rounds_of_few_rows`.
    trials : Trials
        The trials on all rows. They hold the results.
    """
    alphas, betas, gammas = axes
    ends = dict.fromkeys((alphas[0], alphas[len(alphas) // 2], alphas[-1]))
    points = [GridPoint(a, betas[len(betas) // 2], gammas[len(gammas) // 2]) for a in ends]
    kept = list(spaces)
    for few_rows in rounds:
        if len(kept) == 1 or trials.out_of_time():
            break
        scores: list[float] = []
        for space in kept:
            if scores and trials.out_of_time():
                break
            scores.append(_evaluate(few_rows, space, points))
        # The measure may judge none of so few rows; then this round cannot tell the spaces apart.
        if not np.isfinite(scores).any():
            continue
        order = np.argsort(-np.array(scores), kind="stable")
        kept = [kept[i] for i in order[: math.ceil(len(kept) / _FACTOR)]]
    for space in kept:
        if trials.tried and trials.out_of_time():
            break
        _evaluate(trials, space, points)
        trials.best()  # fails at once if no fold can be judged
    _walk(trials)


def _evaluate(trials: Trials, space: Space, points: Sequence[GridPoint]) -> float:
    best = float(trials.evaluate(space, points)[:, 0].max())
    trials.forget()
    return best


def _walk(trials: Trials) -> None:
    """Move from the best combination to better neighbours until there is none, or no time."""
    start = trials.best()[0]
    while not trials.out_of_time():
        before = trials.best()
        _walk_in_space(trials)
        space, point = trials.best()
        for wider in _other_widths(space, start):
            if trials.out_of_time():
                return
            # Another width wants another alpha, so the next values of alpha are tried with it.
            around = [p for p in (point, *_neighbours(point)) if p[1:] == point[1:]]
            new = [p for p in around if (wider, p) not in trials.tried]
            if new:
                _evaluate(trials, wider, new)
        if trials.best() == before:
            return


def _walk_in_space(trials: Trials) -> None:
    space, point = trials.best()
    while not trials.out_of_time():
        new = [p for p in _neighbours(point) if (space, p) not in trials.tried]
        if new:
            trials.evaluate(space, new, keep=True)
        if trials.best() == (space, point):
            break
        space, point = trials.best()
    trials.forget()


def _neighbours(point: GridPoint) -> list[GridPoint]:
    """Return the points with one weight multiplied or divided by 4, within the limits."""
    found = []
    for name, (low, high) in LIMITS.items():
        value = getattr(point, name)
        # MSVR has an infinite beta, and gamma = 0 has no neighbours by multiplication.
        if not math.isfinite(value) or value == 0:
            continue
        for moved in (value / _STEP, value * _STEP):
            if low <= moved <= high:
                found.append(point._replace(**{name: moved}))
    return found


def _other_widths(space: Space, start: Space) -> list[Space]:
    """Return the next wider and the next narrower RBF kernel."""
    if space.kernel != "rbf" or isinstance(space.kernel_gamma, str):
        return []
    middle = float(start.kernel_gamma)
    return [
        space._replace(kernel_gamma=moved)
        for moved in (space.kernel_gamma / _STEP, space.kernel_gamma * _STEP)
        if abs(math.log(moved / middle, _STEP)) <= _WIDTH_STEPS + 0.5
    ]
