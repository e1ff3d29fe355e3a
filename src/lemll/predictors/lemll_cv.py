"""LEMLL with parameters chosen by cross-validation, with one solution path per fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType

from lemll._types import FloatArray, Settings
from lemll._validation import check_settings
from lemll.fitting.equation9 import (
    FEATURE_SETTINGS,
    SOLVER_SETTINGS,
    graph_is_given,
    graph_settings,
)
from lemll.fitting.kernels import KERNEL_SETTINGS
from lemll.predictors.lemll import LEMLL
from lemll.predictors.search import PAPER_GRID, PathCV, check_axis


@dataclass(eq=False, repr=False)
class LEMLLCV(PathCV):
    r"""LEMLL with alpha, beta and gamma, and optionally the kernel, chosen by cross-validation.

    For each fold and each kernel, one path (`lemll.solvers.solve_path`) solves all parameters,
    each to a certified gap of `tol_search`. Then :class:`LEMLL` is fitted to all rows with the
    best parameters. It minimises Eq. (9).

    Parameters
    ----------
    alphas, betas, gammas : sequence of float, default={1/64, 1/16, 1/4, 1, 4, 16, 64}
        Values to try. All combinations are tried. The default is the grid of the paper.
    estimator : LEMLL, optional
        A template: the parameters that are not searched are taken from it, for the search and for
        the final model. It is not changed. Its `alpha`, `beta` and `gamma` are not used, and it
        cannot have a given graph, an approximation of the kernel or blocks of labels. Its `tol` is
        the certified gap of the ten best combinations, from which the winner is chosen, and of the
        final model. With ``scale="auto"``, the search tries "none" and "standard" ("maxabs" for
        sparse features). The scaling is learned on the training rows of each fold. By default
        ``LEMLL(tol=1e-6)``; ``LEMLL(scale="auto", tol=1e-6)`` if `kernel` is "auto".
    kernel : "auto", str or callable, optional
        As in :class:`LEMLL`; by default that of `estimator`. "auto" tries the linear kernel and the
        RBF kernel with three widths.
    normalize_rows : bool or "auto", default=False
        Whether each row is divided by its length, after the scaling. "auto" tries both.
    scoring : str, sequence of str, or callable, default="average_precision"
        One or more names in ``lemll.metrics.METRICS``; the first one decides. Or a function of the
        true labels and the scores; a greater value is better.
    cv : int, splitter or iterable, default=5
        The number of folds, which are then stratified for all labels together. Or a splitter, or
        pairs of training and test rows, as in scikit-learn.
    search : {"auto", "grid", "coarse", "halving"}, default="auto"
        "grid" tries all combinations. "coarse" first tries every third value of each parameter.
        Then it tries the neighbours of the best combination, until no neighbour is better. This
        takes about a quarter of the work. With several measures in `scoring`, it does so for the
        best combination of each of them. "halving" first compares all kernels and scalings on
        two folds of at most 600 rows, with three values of alpha. The best third of them go on to
        three times the rows, and so on; the last ones are compared on all rows and in all folds.
        From the best combination it walks: it multiplies or divides one parameter by 4, the width
        of an RBF kernel included, until the score does not improve. So it can leave the given
        values: alpha from 4**-8 to 4**8, beta and gamma from 4**-4 to 4**4. "auto" is "halving" if
        `kernel` is "auto", otherwise "grid".
    one_standard_error : bool, default=False
        Whether to choose the simplest model that is almost as good as the best. Candidates have
        the same kernel as the best, and a mean score within one standard error of it. Among them
        the largest alpha wins, then the largest beta, then the smallest gamma.
    tol_search : float, default=1e-3
        Certified relative gap of the models of the search.
    max_seconds : float, optional
        Wall time after which no further combinations are tried. At least one space is tried, and
        the final model is always fitted.
    n_jobs : int, optional
        Number of folds that run at the same time, in threads, as in joblib. The result does not
        depend on it.
    refit : bool, default=True
        Whether to fit the final model. Without it, the object cannot predict.
    callback : callable, optional
        Called with a `SearchProgress` (done, expected, best_score, elapsed) after each fold. If it
        returns True, the search ends early, as with `max_seconds`, with the best so far.

    Attributes
    ----------
    best_params_ : dict
        alpha, beta, gamma, kernel, normalize_rows and scale of the final model, and
        kernel_gamma, which is ``gamma`` in its `kernel_params`.
    best_score_ : float
        Mean of the first measure over the folds. Greater is better.
    best_index_ : int
        Index of the best parameters in `cv_results_`.
    cv_results_ : dict of str to ndarray
        One entry per combination tried. It holds the parameters (``param_...``), and per measure
        the scores (``mean_test_...``, ``std_test_...``, ``split0_test_...``) and the rank. Losses
        are negated. ``optimality`` is the largest certified gap over the folds.
    best_estimator_ : LEMLL
        The final model. Its attributes (``coef_``, ``label_distribution_``, ...) are also
        available on this object. It expects rows that are already scaled.
    n_splits_ : int
        Number of folds.

    See Also
    --------
    LEMLL : A single model with given parameters.
    MSVRCV : The same search without label enhancement.

    Examples
    --------
    >>> from lemll import LEMLLCV
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = LEMLLCV(search="coarse", cv=2).fit(digits.X[:300], digits.Y[:300])
    >>> sorted(model.best_params_)
    ['alpha', 'beta', 'gamma', 'kernel', 'kernel_gamma', 'normalize_rows', 'scale']
    >>> model.predict(digits.X[300:]).shape
    (1497, 8)
    """

    _kind = LEMLL
    _tol = 1e-6
    _KERNEL_SETTINGS = MappingProxyType({**KERNEL_SETTINGS, **FEATURE_SETTINGS})

    alphas: Sequence[float] = PAPER_GRID
    betas: Sequence[float] = PAPER_GRID
    gammas: Sequence[float] = PAPER_GRID
    _: KW_ONLY
    search: str = "auto"

    def _axes(self) -> list[list[float]]:
        return [
            check_axis("alphas", self.alphas),
            check_axis("betas", self.betas),
            check_axis("gammas", self.gammas, inclusive=True),
        ]

    def _path_options(self) -> Settings:
        fixed = self._template()
        reason = not_searchable(fixed)
        if reason is not None:
            raise ValueError(f"{reason} of estimator cannot be used in a search; leave it out.")
        solver = check_settings("solver_params", fixed.solver_params, SOLVER_SETTINGS)
        return {
            **super()._path_options(),
            "graph": {"n_neighbors": fixed.n_neighbors, **graph_settings(fixed.graph)},
            "precision": solver["precision"],
        }

    def _check_partial(self, weight: FloatArray) -> None:
        """Accept unknown cells: Eq. (9) has a weight per cell."""


def not_searchable(estimator: LEMLL) -> str | None:
    """Return which parameter of a learner `LEMLLCV` cannot use, None if it can use all.

    Parameters
    ----------
    estimator : LEMLL
        A template.

    Returns
    -------
    str or None
        Its name.
    """
    if graph_is_given(estimator.graph):
        return "the given graph"
    if (estimator.kernel_params or {}).get("approximation") is not None:
        return "approximation in kernel_params"
    if (estimator.solver_params or {}).get("label_block") is not None:
        return "label_block in solver_params"
    return None
