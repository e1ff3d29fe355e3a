"""LEMLL with parameters chosen by cross-validation, with one solution path per fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lemll._types import Estimator, FloatArray, KernelLike, Settings, Thresholds
from lemll.predictors.lemll import LEMLL
from lemll.predictors.search import PAPER_GRID, PathCV, check_axis
from lemll.solvers import GridPoint

__all__ = ["LEMLLCV"]


class LEMLLCV(PathCV):
    r"""LEMLL with alpha, beta and gamma, and optionally the kernel, chosen by cross-validation.

    For each fold and each kernel, one path (`lemll.solvers.solve_path`) solves all parameters,
    each to a certified gap of `tol_search`. Then :class:`LEMLL` is fitted to all rows with the
    best parameters. It minimises Eq. (9).

    Parameters
    ----------
    alphas, betas, gammas : sequence of float, default={1/64, 1/16, 1/4, 1, 4, 16, 64}
        Values to try. All combinations are tried. The default is the grid of the paper.
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
    kernel : "auto", str or callable, default="linear"
        As in :class:`LEMLL`. "auto" tries the linear kernel and the RBF kernel with three widths.
    kernel_gamma, degree, coef0 : object
        Parameters of the kernel, as in :class:`LEMLL`.
    normalize_rows : bool or "auto", default=False
        Whether each row is divided by its length, after the scaling. "auto" tries both.
    scale : {"auto", "standard", "maxabs", "none"}, optional
        The scaling of the columns, learned on the training rows of each fold. "standard" subtracts
        the mean and divides by the standard deviation; sparse features are only divided. "maxabs"
        divides by the largest absolute value. "none" changes nothing, as in the paper. "auto"
        tries "none", and "standard" ("maxabs" for sparse features). By default "auto" if `kernel`
        is "auto", otherwise "none".
    epsilon, n_neighbors, reg_policy, max_iter
        As in :class:`LEMLL`.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        As in :class:`LEMLL`, for the final model.
    probability : bool, default=False
        Whether the final model has `predict_proba`, as in :class:`LEMLL`. It needs five more fits.
    tol_search, tol_final : float, default=1e-3, 1e-6
        Certified relative gaps. `tol_search` is used during the search. `tol_final` is used for
        the ten best combinations, from which the winner is chosen, and for the final model.
    precision : {"float64", "float32"}, default="float64"
        Floating-point precision of the iterates during the search.
    refit : bool, default=True
        Whether to fit the final model. Without it, the object cannot predict.
    max_seconds : float, optional
        Wall time after which no further combinations are tried. At least one space is tried, and
        the final model is always fitted.
    n_jobs : int, optional
        Number of folds that run at the same time, in threads, as in joblib. The result does not
        depend on it.
    callback : callable, optional
        Called with a `SearchProgress` (done, expected, best_score, elapsed) after each fold. If it
        returns True, the search ends early, as with `max_seconds`, with the best so far.

    Attributes
    ----------
    best_params_ : dict
        alpha, beta, gamma, kernel, kernel_gamma, normalize_rows and scale of the final model.
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

    def __init__(
        self,
        alphas: Sequence[float] = PAPER_GRID,
        betas: Sequence[float] = PAPER_GRID,
        gammas: Sequence[float] = PAPER_GRID,
        *,
        scoring: Any = "average_precision",
        cv: Estimator = 5,
        search: str = "auto",
        one_standard_error: bool = False,
        kernel: KernelLike = "linear",
        kernel_gamma: str | float = "variance",
        degree: int = 3,
        coef0: float = 1.0,
        normalize_rows: Any = False,
        scale: str | None = None,
        epsilon: float = 0.1,
        n_neighbors: int = 10,
        reg_policy: str = "always",
        thresholds: Thresholds = "zero",
        probability: bool = False,
        tol_search: float = 1e-3,
        tol_final: float = 1e-6,
        max_iter: int = 1000,
        precision: str = "float64",
        refit: bool = True,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        callback: Any = None,
    ) -> None:
        self.alphas = alphas
        self.betas = betas
        self.gammas = gammas
        self.scoring = scoring
        self.cv = cv
        self.search = search
        self.one_standard_error = one_standard_error
        self.kernel = kernel
        self.kernel_gamma = kernel_gamma
        self.degree = degree
        self.coef0 = coef0
        self.normalize_rows = normalize_rows
        self.scale = scale
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.reg_policy = reg_policy
        self.thresholds = thresholds
        self.probability = probability
        self.tol_search = tol_search
        self.tol_final = tol_final
        self.max_iter = max_iter
        self.precision = precision
        self.refit = refit
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.callback = callback

    def _axes(self) -> list[list[float]]:
        return [
            check_axis("alphas", self.alphas),
            check_axis("betas", self.betas),
            check_axis("gammas", self.gammas, inclusive=True),
        ]

    def _graph_options(self) -> Settings:
        return {
            "n_neighbors": self.n_neighbors,
            "reg_policy": self.reg_policy,
            "precision": self.precision,
        }

    def _check_partial(self, weight: FloatArray) -> None:
        """Accept unknown cells: Eq. (9) has a weight per cell."""

    def _model(self, point: GridPoint) -> LEMLL:
        return LEMLL(**point._asdict(), n_neighbors=self.n_neighbors, reg_policy=self.reg_policy)
