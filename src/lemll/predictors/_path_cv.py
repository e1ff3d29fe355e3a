"""Parameters chosen by cross-validation, over one path a fold: what the estimators share."""

from __future__ import annotations

import itertools
from abc import abstractmethod
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
from lemll.predictors._folds import Fold, FoldScores, Measure, Space, measures_of, score_fold
from lemll.predictors._grid import coarse_to_fine, one_standard_error, results_table
from lemll.solvers import GridPoint

__all__ = ["PAPER_GRID", "PathCV", "check_axis"]

PAPER_GRID = tuple(4.0**power for power in range(-3, 4))
# Widths to try, as multiples of one over the sum of the features' variances.
_WIDTHS = (0.25, 1.0, 4.0)


class PathCV(MultilabelClassifier):
    """Base of classifiers that choose their parameters by cross-validation.

    A subclass has the parameters read here, and implements `_axes` and `_model`.
    """

    scoring: Any
    cv: Any
    search: Any
    one_standard_error: Any
    kernel: Any
    kernel_gamma: Any
    degree: Any
    coef0: Any
    normalize_rows: Any
    epsilon: Any
    tol_search: Any
    tol_final: Any
    max_iter: Any
    n_jobs: Any

    @abstractmethod
    def _axes(self) -> list[list[float]]:
        """Ascending values of alpha, beta and gamma to try."""

    @abstractmethod
    def _model(self, point: GridPoint) -> Any:
        """Return the unfitted estimator of a point, but for what it shares with the search."""

    def _graph_options(self) -> dict[str, Any]:
        """Options of the path that only some models have."""
        return {}

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
        if self.search not in ("grid", "coarse"):
            raise ValueError(f"search={self.search!r} must be 'grid' or 'coarse'.")
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
            **self._graph_options(),
            "epsilon": check_number("epsilon", self.epsilon, above=0, inclusive=True),
            "tol": check_number("tol_search", self.tol_search, above=0),
            "max_iter": check_whole("max_iter", self.max_iter, least=1),
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
        model = self._model(point).set_params(
            kernel=space.kernel,
            kernel_gamma=space.kernel_gamma,
            degree=self.degree,
            coef0=self.coef0,
            epsilon=self.epsilon,
            thresholds=self.thresholds if coding.multilabel else "zero",
            tol=self.tol_final,
            max_iter=self.max_iter,
        )
        self.best_estimator_ = model.fit(space.rows(X), Y)
        tuned = {name: value for name, value in point._asdict().items() if hasattr(model, name)}
        self.best_params_ = tuned | {
            name: getattr(space, name) for name in ("kernel", "kernel_gamma", "normalize_rows")
        }
        self._space = space
        self._store(coding, model.thresholds_)

    def _fit(self, X: Any, Y: LabelArray) -> None:
        raise NotImplementedError  # `fit` does more than this

    def _score(self, X: Any) -> FloatArray:
        scores: FloatArray = self.best_estimator_._score(self._space.rows(X))
        return scores

    def __getattr__(self, name: str) -> Any:
        """Give the final model's attributes as if they were this one's."""
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def check_axis(name: str, given: Any, *, inclusive: bool = False) -> list[float]:
    """Return values to try, ascending and each once, or say what is wrong with them.

    Parameters
    ----------
    name : str
        What the caller calls them.
    given : sequence of float
        The values, > 0.
    inclusive : bool, default=False
        Whether 0 is allowed.

    Returns
    -------
    list of float
        At least one.
    """
    values = {
        check_number(name, value, above=0, inclusive=inclusive)
        for value in np.atleast_1d(np.asarray(given, dtype=object)).tolist()
    }
    if not values:
        raise ValueError(f"{name} must hold at least one value, got none.")
    return sorted(values)
