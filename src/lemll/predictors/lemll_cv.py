"""LEMLL with its parameters chosen by cross-validation, over one path a fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lemll._types import Estimator, KernelLike, Settings, Thresholds
from lemll.predictors.lemll import LEMLL
from lemll.predictors.search.path_cv import PAPER_GRID, PathCV, check_axis
from lemll.solvers import GridPoint

__all__ = ["LEMLLCV"]


class LEMLLCV(PathCV):
    r"""LEMLL with alpha, beta and gamma, and if wanted the kernel, chosen by cross-validation.

    For every fold and kernel all parameters are solved on one path (`lemll.solvers.solve_path`),
    each to a certified gap of `tol_search`; then :class:`LEMLL` is fitted to all rows with the
    best ones.

    Parameters
    ----------
    alphas, betas, gammas : sequence of float, default={1/64, 1/16, 1/4, 1, 4, 16, 64}
        Values to try, the paper's grid; all combinations are.
    scoring : str, sequence of str, or callable, default="average_precision"
        Names in ``lemll.metrics.METRICS``, of which the first decides, or a function of the true
        labels and the scores, of which greater is better.
    cv : int, splitter or iterable, default=5
        A number of folds, stratified for all labels together; or a splitter, or pairs of
        training and test rows, as scikit-learn takes them.
    search : {"grid", "coarse"}, default="grid"
        All combinations; or every third value first, then the surroundings of the best, until
        nothing around it is better: about a quarter of the work.
    one_standard_error : bool, default=False
        Whether to take, among the parameters within one standard error of the best and with its
        kernel, those with the largest alpha, then the largest beta, then the smallest gamma: the
        plainest model that is as good.
    kernel : "auto", str or callable, default="linear"
        As in :class:`LEMLL`; "auto" tries the linear and the RBF kernel, of three widths.
    kernel_gamma, degree, coef0 : object
        Of the kernel, as in :class:`LEMLL`.
    normalize_rows : bool or "auto", default=False
        Whether rows are divided by their lengths; "auto" tries both.
    epsilon, n_neighbors, reg_policy, max_iter
        As in :class:`LEMLL`.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        As in :class:`LEMLL`, for the final model.
    tol_search, tol_final : float, default=1e-3, 1e-6
        Certified relative gaps: while searching; and of the ten best, from which one is then
        chosen, and of the final model.
    precision : {"float64", "float32"}, default="float64"
        Of the iterates while searching.
    refit : bool, default=True
        Whether to fit the final model; without it there are no predictions.
    n_jobs : int, optional
        Folds worked on at a time, as in joblib, by threads. The result does not depend on it.
    callback : callable, optional
        Called with a `SearchProgress` (done, expected, best_score, elapsed) after each fold.

    Attributes
    ----------
    best_params_ : dict
        alpha, beta, gamma, kernel, kernel_gamma and normalize_rows of the final model.
    best_score_ : float
        Mean over the folds of the first measure, greater being better.
    best_index_ : int
        Where the best parameters are in `cv_results_`.
    cv_results_ : dict of str to ndarray
        One entry for each combination tried: the parameters (``param_...``), and for each measure
        (``mean_test_...``, ``std_test_...``, ``split0_test_...``), losses negated; the rank; the
        largest certified gap of the folds (``optimality``).
    best_estimator_ : LEMLL
        The final model; its attributes (``coef_``, ``label_distribution_``, ...) are this one's
        too. Where `normalize_rows` was chosen, it wants rows of length 1.
    n_splits_ : int
        Number of folds.

    See Also
    --------
    LEMLL : One model.
    MSVRCV : The same search, with the labels as they are.

    Examples
    --------
    >>> from lemll import LEMLLCV
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = LEMLLCV(search="coarse", cv=2).fit(digits.X[:300], digits.Y[:300])
    >>> sorted(model.best_params_)
    ['alpha', 'beta', 'gamma', 'kernel', 'kernel_gamma', 'normalize_rows']
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
        search: str = "grid",
        one_standard_error: bool = False,
        kernel: KernelLike = "linear",
        kernel_gamma: str | float = "variance",
        degree: int = 3,
        coef0: float = 1.0,
        normalize_rows: Any = False,
        epsilon: float = 0.1,
        n_neighbors: int = 10,
        reg_policy: str = "always",
        thresholds: Thresholds = "zero",
        tol_search: float = 1e-3,
        tol_final: float = 1e-6,
        max_iter: int = 1000,
        precision: str = "float64",
        refit: bool = True,
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
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.reg_policy = reg_policy
        self.thresholds = thresholds
        self.tol_search = tol_search
        self.tol_final = tol_final
        self.max_iter = max_iter
        self.precision = precision
        self.refit = refit
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

    def _model(self, point: GridPoint) -> LEMLL:
        return LEMLL(**point._asdict(), n_neighbors=self.n_neighbors, reg_policy=self.reg_policy)
