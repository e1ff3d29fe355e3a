"""Probabilities of the training rows by models that did not see their labels, quickly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from lemll._types import Features, FloatArray, LabelArray, RandomState
from lemll._validation import UNOBSERVED
from lemll.predictors.blend.members import (
    BlendTask,
    ForestMember,
    Learned,
    Member,
    Scorer,
)
from lemll.predictors.lemll import LEMLL
from lemll.predictors.tag_predictor import BlendProgress, TagPredictor

__all__ = ["OutOfFold", "default_lemll", "out_of_fold_scores"]

# A kernel matrix of more rows takes minutes; with more rows LEMLL is linear.
_LARGEST_KERNEL = 5000
# A leaf of one row repeats its label, wrong or right.
_LEAF = 2


def default_lemll(n_samples: int) -> LEMLL:
    """Return LEMLL without a search: RBF kernel up to 5,000 rows, else linear; columns scaled.

    Parameters
    ----------
    n_samples : int
        Number of rows to fit.

    Returns
    -------
    LEMLL
        An estimator that is not fitted.
    """
    return LEMLL(kernel="rbf" if n_samples <= _LARGEST_KERNEL else "linear", scale="auto")


@dataclass(frozen=True)
class _PlainLemllMember:
    """LEMLL with its default weights: much faster than a search, and nearly as good in a blend."""

    def learn(self, task: BlendTask) -> Learned:
        """Score the rows by models of the other folds."""
        model = default_lemll(task.X.shape[0])
        scores = np.empty(task.Y.shape)
        for train, test in task.folds:
            scores[test] = task.fit(model, task.X, train)(task.X[test])
        return Learned(scores, None, f"{model.kernel} kernel, default weights")

    def fit(self, task: BlendTask, recipe: None) -> Scorer:
        """Fit LEMLL to all rows."""
        n_samples = len(task.Y)
        return task.fit(default_lemll(n_samples), task.X, np.arange(n_samples))


class OutOfFold(NamedTuple):
    """What models say of rows that they did not see.

    Attributes
    ----------
    probability : ndarray of shape (n_samples, n_labels)
        Probabilities of the blend, also in unknown cells.
    logistic : ndarray of shape (n_samples, n_labels)
        Probabilities of one member, the logistic regressions.
    """

    probability: FloatArray
    logistic: FloatArray


class _QuickBlend(TagPredictor):
    """TagPredictor without the search of LEMLL, with equal weights, and without final fits."""

    _STEPS = 1

    def _members(self, partial: bool) -> dict[str, Member]:
        members = super()._members(partial)
        for name, member in members.items():
            if isinstance(member, ForestMember):
                members[name] = replace(member, min_samples_leaf=_LEAF)
        return {**members, "LEMLL": _PlainLemllMember()}

    def _weigh(
        self, log_odds: dict[str, FloatArray], Y: LabelArray, weight: FloatArray | None
    ) -> dict[str, float]:
        # The loss of the given labels is mostly that of right ones. It does not tell which member
        # is surprised by the wrong ones, and often gives a member nearly all of the weight.
        return dict.fromkeys(log_odds, 1 / len(log_odds))

    def _blend(self, learned: dict[str, Learned], Y: LabelArray, weight: FloatArray | None) -> None:
        super()._blend(learned, Y, weight)
        calibration = self._calibrations["logistic"]
        self.logistic_proba = self._as_given(
            expit(calibration.log_odds(learned["logistic"].scores))
        )

    def _warn_unused(self, Y: LabelArray) -> None:
        # Rows in which nothing is known are scored, too.
        pass

    def _final_fits(self, *_: object) -> list[Any]:
        # Nothing is predicted but the rows themselves.
        return []


def out_of_fold_scores(
    X: Features,
    Y: LabelArray,
    *,
    cv: int = 5,
    n_estimators: int = 150,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
    callback: Callable[[BlendProgress], None] | None = None,
) -> OutOfFold:
    """Estimate the probability of each label in each row, without the labels of the row.

    Four members score every row with a model that did not see it: logistic regressions with a
    searched penalty, LEMLL with its default weights, a random forest (not with unknown cells) and
    extra trees, whose leaves have at least two rows. They are calibrated as in `TagPredictor`, and
    their log-odds have equal weights.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.
    cv : int, default=5
        Number of folds.
    n_estimators : int, default=150
        Number of trees of each forest.
    n_jobs : int, optional
        Number of threads of the forests, as in joblib.
    random_state : int, RandomState or None, default=0
        Seed of the trees.
    callback : callable, optional
        Called with a `BlendProgress` before each step.

    Returns
    -------
    OutOfFold
        The probabilities, and the part of the logistic regressions.
    """
    blend = _QuickBlend(
        "log_loss",
        n_estimators=n_estimators,
        cv=cv,
        n_jobs=n_jobs,
        random_state=random_state,
        callback=callback,
    )
    hidden = Y == UNOBSERVED
    blend.fit(X, np.ma.MaskedArray(Y, mask=hidden) if hidden.any() else Y)
    return OutOfFold(blend.out_of_fold_proba_, blend.logistic_proba)
