"""LEMLL with its parameters chosen by cross-validation, over one path a fold."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import check_cv

from lemll._labels import LabelCoding
from lemll._parameters import check_number, check_whole
from lemll._validation import LabelArray
from lemll.enhancers._kernels import inverse_variance
from lemll.model_selection import IterativeStratifiedKFold
from lemll.predictors._base import FloatArray, MultilabelClassifier
from lemll.predictors._folds import (
    Fold,
    FoldScores,
    Measure,
    Space,
    measures_of,
    score_fold,
)
from lemll.predictors._grid import coarse_to_fine, one_standard_error, results_table
from lemll.predictors.lemll import LEMLL
from lemll.solvers import GridPoint

__all__ = ["LEMLLCV", "PAPER_GRID"]

PAPER_GRID = tuple(4.0**power for power in range(-3, 4))
# Widths to try, as multiples of one over the sum of the features' variances.
_WIDTHS = (0.25, 1.0, 4.0)


class LEMLLCV(MultilabelClassifier):
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
        A number of folds, stratified for all labels together; or what scikit-learn takes.
    search : {"grid", "coarse"}, default="grid"
        All combinations; or every third value first, then the surroundings of the best, until
        nothing around it is better: about a quarter of the work.
    one_standard_error : bool, default=False
        Whether to take, among the parameters within one standard error of the best, those with
        the largest alpha, then beta, then gamma: the plainest model that is as good.
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
    tol_search, tol_final : float, default=1e-3, 1e-4
        Certified relative gaps, while searching and of the final model.
    precision : {"float64", "float32"}, default="float64"
        Of the iterates while searching.
    n_jobs : int, optional
        Folds and kernels worked on at a time, as in joblib. The result does not depend on it.

    Attributes
    ----------
    best_params_ : dict
        alpha, beta, gamma, kernel, kernel_gamma and normalize_rows of the final model.
    best_score_ : float
        Mean over the folds of the first measure, greater being better.
    cv_results_ : dict of str to ndarray
        One entry for each combination tried: the parameters (``param_...``), and for each measure
        (``mean_test_...``, ``std_test_...``, ``split0_test_...``), losses negated; the rank; the
        largest certified gap of the folds (``optimality``).
    best_estimator_ : LEMLL
        The final model; its attributes are this one's too.
    n_splits_ : int
        Number of folds.

    See Also
    --------
    LEMLL : One model.

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
        cv: Any = 5,
        search: Any = "grid",
        one_standard_error: bool = False,
        kernel: Any = "linear",
        kernel_gamma: Any = "variance",
        degree: int = 3,
        coef0: float = 1.0,
        normalize_rows: Any = False,
        epsilon: float = 0.1,
        n_neighbors: int = 10,
        reg_policy: Any = "always",
        thresholds: Any = "zero",
        tol_search: float = 1e-3,
        tol_final: float = 1e-4,
        max_iter: int = 1000,
        precision: Any = "float64",
        n_jobs: int | None = None,
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
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Choose the parameters, then learn with them from all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Logical labels, 0/1; or a 1-D target as scikit-learn's classifiers take it.
        groups : array-like of shape (n_samples,), optional
            For splitters that keep groups together.

        Returns
        -------
        self
            The fitted classifier.
        """
        X, Y, coding = self._validated(X, y)
        measures = measures_of(self.scoring)
        folds = self._folds(X, Y, groups)
        spaces = self._spaces(X)
        axes = self._axes()
        tried: list[tuple[Space, GridPoint]] = []
        scores: list[FoldScores] = []

        def evaluate(space: Space, points: Sequence[GridPoint]) -> FloatArray:
            """Try points and return their mean scores by the first measure."""
            found = self._evaluate(folds, space, points, measures)
            tried.extend((space, point) for point in points)
            scores.extend(found)
            return np.array([entry.values[:, 0].mean() for entry in found])

        for space in spaces:
            if self.search == "grid":
                evaluate(space, [GridPoint(*point) for point in itertools.product(*axes)])
            else:
                coarse_to_fine(axes, partial(evaluate, space))
        results = results_table(tried, scores, list(measures))
        best = int(results["mean_test_" + next(iter(measures))].argmax())
        if self.one_standard_error:
            best = one_standard_error(tried, [entry.values[:, 0] for entry in scores])
        self._learn(X, Y, tried[best], coding)
        self.cv_results_, self.best_index_ = results, best
        self.best_score_ = float(results["mean_test_" + next(iter(measures))][best])
        self.n_splits_ = len(folds)
        return self

    def _axes(self) -> list[list[float]]:
        if self.search not in ("grid", "coarse"):
            raise ValueError(f"search={self.search!r} must be 'grid' or 'coarse'.")
        axes = []
        for name in ("alphas", "betas", "gammas"):
            given = np.atleast_1d(np.asarray(getattr(self, name), dtype=object)).tolist()
            inclusive = name == "gammas"
            values = {check_number(name, value, above=0, inclusive=inclusive) for value in given}
            if not values:
                raise ValueError(f"{name} must hold at least one value, got none.")
            axes.append(sorted(values))
        return axes

    def _spaces(self, X: Any) -> list[Space]:
        spaces = []
        for scaled in (False, True) if self.normalize_rows == "auto" else (self.normalize_rows,):
            plain = Space(self.kernel, self.kernel_gamma, scaled, self.degree, self.coef0)
            if not (isinstance(self.kernel, str) and self.kernel == "auto"):
                spaces.append(plain)
                continue
            spaces.append(plain._replace(kernel="linear"))
            middle = inverse_variance(plain.rows(X))
            spaces += [plain._replace(kernel="rbf", kernel_gamma=middle * w) for w in _WIDTHS]
        return spaces

    def _folds(self, X: Any, Y: LabelArray, groups: Any) -> list[Fold]:
        if isinstance(self.cv, int) and not isinstance(self.cv, bool):
            splitter: Any = IterativeStratifiedKFold(check_whole("cv", self.cv, least=2))
        else:
            splitter = check_cv(self.cv)
        return [
            Fold(X, Y, np.asarray(train), np.asarray(test))
            for train, test in splitter.split(X, Y, groups)
        ]

    def _evaluate(
        self,
        folds: Sequence[Fold],
        space: Space,
        points: Sequence[GridPoint],
        measures: Mapping[str, Measure],
    ) -> list[FoldScores]:
        """Return for each point its scores over the folds."""
        options = {
            "n_neighbors": self.n_neighbors,
            "reg_policy": self.reg_policy,
            "epsilon": check_number("epsilon", self.epsilon, above=0, inclusive=True),
            "tol": check_number("tol_search", self.tol_search, above=0),
            "max_iter": check_whole("max_iter", self.max_iter, least=1),
            "precision": self.precision,
        }
        by_fold = Parallel(self.n_jobs)(
            delayed(score_fold)(fold, space, points, measures, options) for fold in folds
        )
        values = np.stack([scores.values for scores in by_fold], axis=1)
        gaps = np.stack([scores.optimality for scores in by_fold], axis=1)
        return [FoldScores(*entry) for entry in zip(values, gaps, strict=True)]

    def _learn(
        self, X: Any, Y: LabelArray, best: tuple[Space, GridPoint], coding: LabelCoding
    ) -> None:
        space, point = best
        model = LEMLL(
            **point._asdict(),
            kernel=space.kernel,
            kernel_gamma=space.kernel_gamma,
            degree=self.degree,
            coef0=self.coef0,
            epsilon=self.epsilon,
            n_neighbors=self.n_neighbors,
            reg_policy=self.reg_policy,
            thresholds=self.thresholds if coding.multilabel else "zero",
            tol=self.tol_final,
            max_iter=self.max_iter,
        )
        self.best_estimator_ = model.fit(space.rows(X), Y)
        self.best_params_ = point._asdict() | {
            name: getattr(space, name) for name in ("kernel", "kernel_gamma", "normalize_rows")
        }
        self._space = space
        self._store(coding, model.thresholds_)

    def _fit(self, X: Any, Y: LabelArray) -> None:
        raise NotImplementedError  # `fit` does more than this

    def _score(self, X: Any) -> FloatArray:
        return self.best_estimator_._score(self._space.rows(X))

    def __getattr__(self, name: str) -> Any:
        """Give the final model's attributes as if they were this one's."""
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
