"""Scorers for the model selection of scikit-learn, one per metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor

from lemll._types import Estimator, FloatArray, MatrixLike, Settings
from lemll.metrics.table import METRICS, Metric


class MetricScorer:
    """A metric as ``scoring=`` of scikit-learn; made by :func:`get_scorer`.

    Parameters
    ----------
    metric : Metric
        What to measure.
    options : dict, optional
        Options of the metric.
    """

    def __init__(self, metric: Metric, options: Settings | None = None) -> None:
        self.metric = metric
        self.options = dict(options or {})

    def __call__(self, estimator: Estimator, X: MatrixLike, y: MatrixLike) -> float:
        """Return the metric of `estimator` on (X, y), negated if lower is better.

        Parameters
        ----------
        estimator : object
            A fitted estimator.
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like or sparse matrix of shape (n_samples, n_labels)
            True logical labels, or for a distribution metric the true distribution.

        Returns
        -------
        float
            Greater is better.
        """
        if self.metric.prediction == "labels":
            prediction = estimator.predict(X)
        elif self.metric.prediction == "scores":
            prediction = label_scores(estimator, X, self.metric.name)
        elif self.metric.prediction == "probabilities":
            prediction = label_probabilities(estimator, X, self.metric.name)
        else:
            prediction = _distribution(estimator, X, self.metric.name)
        value = float(self.metric(y, prediction, **self.options))
        return value if self.metric.greater_is_better else -value

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"get_scorer({self.metric.name!r}{options})"


def scorer_names() -> list[str]:
    """Return the names that :func:`get_scorer` knows, sorted.

    Returns
    -------
    list of str
        The keys of ``METRICS``.

    Examples
    --------
    >>> from lemll.metrics import scorer_names
    >>> scorer_names()[:3]
    ['average_precision', 'brier_score', 'calibration_error']
    """
    return sorted(METRICS)


def get_scorer(name: str, **options: Any) -> MetricScorer:
    """Return the scorer of a metric, for ``scoring=`` in the model selection of scikit-learn.

    The value of a scorer is greater for the better estimator. So metrics are negated if lower is
    better.

    Ranking metrics use ``decision_function``. If it does not exist, they use ``predict_proba``,
    which may also return a list of arrays, one per label. The Hamming loss and F1 use ``predict``.
    The log loss, the Brier score and the calibration error use ``predict_proba``. Distribution
    metrics use ``predict_distribution``, or ``predict`` for a regressor without it.

    Parameters
    ----------
    name : str
        One of :func:`scorer_names`.
    **options
        Options of the metric, for example ``convention="mulan"``.

    Returns
    -------
    MetricScorer
        Called as ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> from lemll.metrics import get_scorer
    >>> X, Y = make_multilabel_classification(n_samples=60, random_state=0)
    >>> model = OneVsRestClassifier(LogisticRegression(max_iter=1000))
    >>> grid = {"estimator__C": [0.01, 1.0]}
    >>> search = GridSearchCV(model, grid, scoring=get_scorer("ranking_loss"), cv=3).fit(X, Y)
    >>> bool(-1 <= search.best_score_ <= 0)
    True
    """
    if name not in METRICS:
        raise ValueError(f"unknown metric {name!r}; known are {', '.join(scorer_names())}.")
    scorer = MetricScorer(METRICS[name], options)
    # Try the metric on a small array that is valid as labels, scores and distribution. A wrong
    # option then fails here, and not as a NaN in the middle of a grid search.
    value = scorer.metric([[1, 0], [0, 1]], [[1, 0], [0, 1]], **options)
    if not isinstance(value, float):
        raise ValueError("a scorer needs one number; leave out average=False.")
    return scorer


def label_scores(estimator: Estimator, X: MatrixLike, metric: str) -> Any:
    """Return the scores of all labels, by the best method that the estimator has."""
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{metric} ranks labels by score, but {type(estimator).__name__} has neither "
            "decision_function nor predict_proba; use an estimator with one of them, or "
            "'hamming_loss'."
        )
    return label_probabilities(estimator, X, metric)


def label_probabilities(estimator: Estimator, X: MatrixLike, metric: str) -> Any:
    """Return the probability of each label, as one array."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{metric} needs probabilities, but {type(estimator).__name__} has no predict_proba; "
            "use an estimator that has it, for example TagPredictor."
        )
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):
        return _stack_probabilities(probabilities, getattr(estimator, "classes_", None))
    return probabilities


def _stack_probabilities(probabilities: list[Any], classes: Any) -> FloatArray:
    """Return P(label = 1) as one array, from one (n_samples, n_classes) array per label."""
    columns = []
    for label, table in enumerate(np.asarray(p, dtype=np.float64) for p in probabilities):
        # A label that was constant in training has one class. Only classes_ says if it is 0 or 1.
        known = [0, 1] if classes is None else list(classes[label])
        if len(known) != table.shape[1]:
            raise ValueError(
                f"predict_proba has {table.shape[1]} columns for label {label}, but there are "
                f"{len(known)} classes {known}; the estimator must have classes_, a list with the "
                "classes of each label."
            )
        columns.append(table[:, known.index(1)] if 1 in known else np.zeros(len(table)))
    return np.column_stack(columns)


def _distribution(estimator: Estimator, X: MatrixLike, metric: str) -> Any:
    if hasattr(estimator, "predict_distribution"):
        return estimator.predict_distribution(X)
    if is_regressor(estimator):
        return estimator.predict(X)
    raise TypeError(
        f"{metric} compares label distributions, but {type(estimator).__name__} has no "
        "predict_distribution and is not a regressor."
    )
