"""MSVR on labels, with alpha and optionally the kernel chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lemll._types import FloatArray
from lemll.predictors.msvr import MSVRClassifier
from lemll.predictors.search import PAPER_GRID, PathCV, check_axis

# MSVR is Eq. (9) with an infinite beta: U is fixed at Y. Then the gamma term is a constant.
_FIXED_LABELS = ([float("inf")], [0.0])


@dataclass(eq=False, repr=False)
class MSVRCV(PathCV):
    """`MSVRClassifier` with alpha, and optionally the kernel, chosen by cross-validation.

    The search is the same as in :class:`LEMLLCV`, but the labels are not enhanced. Compare the two
    to see the effect of label enhancement. The model minimises Eq. (10).

    Parameters
    ----------
    alphas : sequence of float, default={1/64, 1/16, 1/4, 1, 4, 16, 64}
        Values to try.
    estimator : MSVRClassifier, optional
        A template of the parameters that are not searched, as in :class:`LEMLLCV`. By default
        ``MSVRClassifier(tol=1e-10)``, with ``scale="auto"`` if `kernel` is "auto".
    kernel, normalize_rows, scoring, cv, one_standard_error, tol_search
        As in :class:`LEMLLCV`. With ``kernel="auto"`` it searches by halving.
    max_seconds, n_jobs, refit, callback
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

    _kind = MSVRClassifier
    _tol = 1e-10

    alphas: Sequence[float] = PAPER_GRID

    def _axes(self) -> list[list[float]]:
        return [check_axis("alphas", self.alphas), *_FIXED_LABELS]

    def _check_partial(self, weight: FloatArray) -> None:
        """Accept unknown cells: Eq. (10) has a weight per cell."""
