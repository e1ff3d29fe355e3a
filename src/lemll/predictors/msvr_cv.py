"""MSVR on labels, with alpha and optionally the kernel chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lemll._types import Estimator, FloatArray, KernelLike, Thresholds
from lemll.predictors.msvr import MSVRClassifier
from lemll.predictors.search import PAPER_GRID, PathCV, check_axis
from lemll.solvers import GridPoint

__all__ = ["MSVRCV"]

# MSVR is Eq. (9) with an infinite beta: U is fixed at Y. Then the gamma term is a constant.
_FIXED_LABELS = ([float("inf")], [0.0])


class MSVRCV(PathCV):
    """`MSVRClassifier` with alpha, and optionally the kernel, chosen by cross-validation.

    The search is the same as in :class:`LEMLLCV`, but the labels are not enhanced. Compare the two
    to see the effect of label enhancement. The model minimises Eq. (10).

    Parameters
    ----------
    alphas : sequence of float, default={1/64, 1/16, 1/4, 1, 4, 16, 64}
        Values to try.
    scoring, cv, one_standard_error, kernel, kernel_gamma, degree, coef0, normalize_rows, scale
        As in :class:`LEMLLCV`. With ``kernel="auto"`` it searches by halving.
    epsilon, thresholds, probability, max_iter
        As in :class:`MSVRClassifier`.
    tol_search, tol_final : float, default=1e-3, 1e-10
        As in :class:`LEMLLCV`.
    refit, max_seconds, n_jobs, callback
        As in :class:`LEMLLCV`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in :class:`LEMLLCV`.
    best_estimator_ : MSVRClassifier
        The final model. Its attributes are also available on this object.

    See Also
    --------
    LEMLLCV : The same search with label enhancement.

    Examples
    --------
    >>> from lemll import MSVRCV
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = MSVRCV(cv=2).fit(digits.X[:300], digits.Y[:300])
    >>> sorted(model.best_params_)
    ['alpha', 'kernel', 'kernel_gamma', 'normalize_rows', 'scale']
    """

    def __init__(
        self,
        alphas: Sequence[float] = PAPER_GRID,
        *,
        scoring: Any = "average_precision",
        cv: Estimator = 5,
        one_standard_error: bool = False,
        kernel: KernelLike = "linear",
        kernel_gamma: str | float = "variance",
        degree: int = 3,
        coef0: float = 1.0,
        normalize_rows: Any = False,
        scale: str | None = None,
        epsilon: float = 0.1,
        thresholds: Thresholds = "zero",
        probability: bool = False,
        tol_search: float = 1e-3,
        tol_final: float = 1e-10,
        max_iter: int = 1000,
        refit: bool = True,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callback: Any = None,
    ) -> None:
        self.alphas = alphas
        self.scoring = scoring
        self.cv = cv
        self.one_standard_error = one_standard_error
        self.kernel = kernel
        self.kernel_gamma = kernel_gamma
        self.degree = degree
        self.coef0 = coef0
        self.normalize_rows = normalize_rows
        self.scale = scale
        self.epsilon = epsilon
        self.thresholds = thresholds
        self.probability = probability
        self.tol_search = tol_search
        self.tol_final = tol_final
        self.max_iter = max_iter
        self.refit = refit
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _axes(self) -> list[list[float]]:
        return [check_axis("alphas", self.alphas), *_FIXED_LABELS]

    def _check_partial(self, weight: FloatArray) -> None:
        """Accept unknown cells: Eq. (10) has a weight per cell."""

    def _model(self, point: GridPoint) -> MSVRClassifier:
        return MSVRClassifier(point.alpha)
