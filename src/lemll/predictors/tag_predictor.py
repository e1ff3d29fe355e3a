"""Probabilities of the training rows by models that did not see their labels, quickly."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_memory
from threadpoolctl import threadpool_limits

from lemll._labels import LabelCoding, labels_for_folds
from lemll._types import (
    Estimator,
    Features,
    FloatArray,
    IndexArray,
    LabelArray,
    RandomState,
    Thresholds,
)
from lemll._validation import (
    UNOBSERVED,
    check_choice,
    check_magnitude,
    check_n_jobs,
    check_number,
    check_whole,
    is_sparse,
)
from lemll.model_selection import IterativeStratifiedKFold, equal_row_groups
from lemll.predictors.base import WeighsRows
from lemll.predictors.blend import (
    LARGEST_KERNEL,
    BlendLoss,
    BlendTask,
    ForestMember,
    Learned,
    LemllMember,
    LogisticMember,
    Member,
    MsvrMember,
    Scorer,
    blend_weights,
    content_order,
    expected_f1_threshold,
)
from lemll.predictors.calibrated import (
    Calibration,
    ProbabilityClassifier,
    constant_labels,
    fit_calibration,
)
from lemll.predictors.forest import weighs_whole_rows
from lemll.predictors.lemll import LEMLL

# Measures of the order of the labels in a row. The others judge each label by itself.
_Ranking = Literal["average_precision", "ranking_loss", "one_error", "coverage"]
_RANKINGS = get_args(_Ranking)
Optimize = Literal[_Ranking, "hamming", "f1", "micro_f1", "log_loss"]
_MEMBERS = ("logistic", "MSVR", "random forest", "extra trees", "LEMLL")
# A member with a smaller share of the weights is not worth its time in `predict`.
_SMALLEST_SHARE = 0.03
# Features with a smaller share of values other than zero are stored as sparse and not centred. The
# model must not depend on how the user stored them.
_DENSE = 0.3
# With fewer rows, products are too small to be worth several threads.
_ROWS_FOR_THREADS = 3000


class BlendProgress(NamedTuple):
    """The progress of a fit.

    Attributes
    ----------
    step : str
        What begins now, for example "extra trees: out-of-fold scores".
    done, expected : int
        Number of steps done, and in total.
    elapsed : float
        Seconds since the fit began.
    """

    step: str
    done: int
    expected: int
    elapsed: float


class _BlendPart(NamedTuple):
    """A member in the final model."""

    score: Scorer
    calibration: Calibration
    weight: float


@dataclass(eq=False, repr=False)
class TagPredictor(WeighsRows, ProbabilityClassifier):
    r"""The recommended predictor: LEMLL, MSVR, logistic regressions and forests, calibrated.

    1. Each member scores every training row with a model that did not see the row: MSVR, linear or
       with an RBF kernel, whose scaling and width are chosen; LEMLL in the same space, with
       searched weights; one logistic regression per label; and two forests, of extra trees and of
       random trees, whose scores come from the trees that have not seen a row.
    2. The scores of each member become log-odds by one line per label, which is pulled towards a
       line that all labels share. So labels with few relevant rows are calibrated too.
    3. The weights of the members minimise a convex loss of the blended log-odds (the logistic loss
       of pairs of labels for a ranking measure, otherwise the logistic loss of the labels), with a
       small pull to equal weights.
    4. The blend is calibrated in the same way, which gives the probabilities, and the thresholds
       are chosen for the measure to optimise.

    Parameters
    ----------
    optimize : str, default="average_precision"
        The measure that matters most: "average_precision", "ranking_loss", "one_error",
        "coverage", "hamming", "f1" (the mean over the labels), "micro_f1" or "log_loss". It decides
        the loss of the weights, the scoring of the search of LEMLL, and, by default, the
        thresholds.
    members : sequence of str, optional
        The members to blend, of "logistic", "MSVR" (up to 5000 rows), "random forest",
        "extra trees" and "LEMLL". Members that are named are neither left out when the time is
        used up, nor dropped because of a small weight: each has a share of about 3 % at least. By
        default all of them.
    thresholds : {"zero", "f1", "hamming"}, optional
        A label is predicted if its log-odds are above its threshold. "zero" uses 0 for all labels:
        a probability of one half. "f1" and "hamming" choose one threshold per label: the one with
        the best F1, or with the most correct decisions, to be expected from the probabilities of
        unseen rows; for the latter this is 0. By default `optimize` decides: "f1" for "f1", one
        threshold with the best F1 of all labels together for "micro_f1", otherwise "zero".
    n_estimators : int, default=300
        Number of trees of each forest.
    cv : int, default=5
        Number of folds of the out-of-fold scores.
    max_seconds : float, optional
        Wall time for learning. Forests get fewer trees, the search of LEMLL stops when the time is
        used up, and members that have not begun are left out. There is always at least one member.
        The final fits of the members come after it. Without this limit, the same data give the
        same model.
    n_jobs : int, optional
        Number of threads of the forests, as in joblib.
    random_state : int, RandomState or None, default=0
        Seed of the trees. The default gives the same model for the same data.
    memory : None, str or object with the interface of joblib.Memory, default=None
        Cache of the out-of-fold scores of the members. With thresholds for another measure ("f1",
        "micro_f1") a second fit to the same rows costs only the final fits. Fitted forests are not
        kept, so a fit with a cache fits the random forest once more. It is not used with
        `max_seconds`.
    callback : callable, optional
        Called with a `BlendProgress` (step, done, expected, elapsed) before each step.
    verbose : int, default=0
        If positive, print each step to standard error.

    Attributes
    ----------
    contributions_ : dict of str to float
        The share of each member in the weights. Members with less than 3 % were dropped and have
        the share 0.
    chosen_ : dict of str to str
        What each member chose, for a reader.
    cut_short_ : list of str
        Members that `max_seconds` has left out, or that have tried less because of it.
    out_of_fold_proba_ : ndarray of shape (n_samples, n_labels)
        Probabilities of the training rows by models that did not see them. The weights and the
        calibration were chosen on them, which are few numbers.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its log-odds are above it.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    LEMLLCV : LEMLL alone, with a certified solution and label distributions.
    MultilabelForest : A forest alone.

    Notes
    -----
    If at least 30 % of the features are not zero, they are stored as dense and their columns are
    standardised. Otherwise they are stored as sparse, and the members choose the scaling. So the
    model does not depend on how the user stored the features. It also does not depend on the order
    of rows, columns and labels: all of them are sorted by their content first.

    Unknown cells of y and weights are used by all members; the forests then have one forest per
    label, and there is no random forest. If a label has the same value in all rows, this value is
    always predicted, with the odds of half a row against all. The default folds of scikit-learn
    refuse NaN in y: pass ``cv=KFold(5)`` to `cross_val_score` and `GridSearchCV`, or
    ``Y.astype(object)``. In place of `cross_val_predict`, use `out_of_fold_proba_`.

    Examples
    --------
    >>> from lemll import TagPredictor
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = TagPredictor(n_estimators=20, cv=3).fit(digits.X[:200], digits.Y[:200])
    >>> model.predict_proba(digits.X[200:]).shape
    (1597, 8)
    >>> sorted(model.contributions_)
    ['LEMLL', 'MSVR', 'extra trees', 'logistic', 'random forest']
    """

    # Steps of each member: its out-of-fold scores and its final fit.
    _STEPS = 2

    optimize: Optimize = "average_precision"
    _: KW_ONLY
    members: Sequence[str] | None = None
    thresholds: Thresholds | None = None
    n_estimators: int = 300
    cv: int = 5
    max_seconds: float | None = None
    n_jobs: int | None = None
    random_state: RandomState = 0
    memory: Estimator = None
    callback: Callable[[BlendProgress], None] | None = None
    verbose: int = 0

    def _findings(self) -> Mapping[str, str]:
        shares = {
            f"{name}, {share:.0%}": self.chosen_[name]
            for name, share in self.contributions_.items()
        }
        cut = {"time": f"cut short: {', '.join(self.cut_short_)}"} if self.cut_short_ else {}
        return {"optimised for": self.optimize, **shares, **cut}

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        members = self._members(len(Y), weight is not None and not weighs_whole_rows(weight))
        check_magnitude(X)
        self._sparse = _mostly_zero(X)
        X = _stored(X, self._sparse)
        self._order = order = content_order(X, Y, weight)
        X = _sorted_columns(X[order.rows], order.columns)
        # Sums round by the order of the cells in memory, which must not depend on the given order.
        Y = np.ascontiguousarray(Y[order.rows][:, order.labels])
        if weight is not None:
            weight = np.ascontiguousarray(weight[order.rows][:, order.labels])
        callbacks = [show for show in (self.callback, _print if self.verbose else None) if show]
        clock = _TimeBudget(self.max_seconds, callbacks, self._STEPS * len(members))
        task = BlendTask(X, Y, weight, self._folds(X, Y), clock.seconds_left)
        self._constant = constant_labels(Y, weight)
        # Half a row with the other value: a label that no row has is unlikely, not impossible.
        counted = np.full(Y.shape[1], len(Y)) if weight is None else (weight > 0).sum(axis=0)
        self._constant_odds = np.log(2 * counted + 1.0)
        # Threads of BLAS wait for each other in small products, most of all on a busy machine.
        with threadpool_limits(1 if len(Y) < _ROWS_FOR_THREADS else None, user_api="blas"):
            learned: dict[str, Learned] = {}
            self.cut_short_ = []
            for name, member in members.items():
                if learned and self.members is None and clock.seconds_left() <= 0:
                    clock.report(f"{name}: left out, because the time is used up")
                    self.cut_short_.append(name)
                    continue
                clock.report(f"{name}: out-of-fold scores")
                if isinstance(member, LemllMember) and "MSVR" in learned:
                    # The best space of the same regression without label enhancement.
                    members[name] = replace(member, space=learned["MSVR"].recipe[0])
                learned[name] = self._learned(members[name], task)
                self.cut_short_ += [name] if learned[name].cut_short else []
            self._blend(learned, Y, weight)
            self._parts = self._final_fits(members, learned, task, clock)

    _fit_partial = _fit

    def _final_fits(
        self,
        members: dict[str, Member],
        learned: dict[str, Learned],
        task: BlendTask,
        clock: _TimeBudget,
    ) -> list[_BlendPart]:
        """Fit the members that take part in the blend to all rows."""
        parts = []
        for name, found in learned.items():
            clock.report(f"{name}: final fit")
            if self._weights[name] > 0:
                score = members[name].fit(task, found.recipe)
                parts.append(_BlendPart(score, self._calibrations[name], self._weights[name]))
        return parts

    def _learned(self, member: Member, task: BlendTask) -> Learned:
        """Let a member learn, or load what it has learned from the cache."""
        # With a time budget, what a member learns depends on the time, so it cannot be kept.
        if self.memory is None or self.max_seconds is not None:
            return member.learn(task)
        keep: Callable[..., Learned] = check_memory(self.memory).cache(_learn_member)
        return keep(member, task.X, task.Y, task.weight, task.folds)

    def _members(self, n_rows: int, partial: bool) -> dict[str, Member]:
        """Return the members, the fastest first, so that a time budget is well used."""
        check_choice("optimize", self.optimize, get_args(Optimize))
        n_estimators = check_whole("n_estimators", self.n_estimators, least=1)
        n_jobs = check_n_jobs(self.n_jobs)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        scoring = self.optimize if self.optimize in _RANKINGS else "average_precision"
        members: dict[str, Member] = {"logistic": LogisticMember()}
        if n_rows <= LARGEST_KERNEL:
            members["MSVR"] = MsvrMember()
        # A random forest gets its scores from the trees that did not see a row, so one forest is
        # enough. With unknown cells there are none, and the forests per label are slow.
        if not partial:
            members["random forest"] = ForestMember("random", n_estimators, n_jobs, seed)
        members["extra trees"] = ForestMember("extra", n_estimators, n_jobs, seed)
        members["LEMLL"] = LemllMember(scoring)
        return members if self.members is None else self._named(members)

    def _named(self, members: dict[str, Member]) -> dict[str, Member]:
        """Return the members that the user names."""
        names = [] if isinstance(self.members, str) else list(self.members or [])
        odd = [name for name in names if name not in _MEMBERS]
        if not names or odd or len(set(names)) < len(names):
            raise ValueError(
                f"members={self.members!r} must be a list of different names of "
                f"{', '.join(_MEMBERS)}."
            )
        able = {name: member for name, member in members.items() if name in names}
        if not able:
            raise ValueError(
                f"members={self.members!r} cannot use unknown cells of y; name another member."
            )
        return able

    def _folds(self, X: Features, Y: LabelArray) -> list[Any]:
        n_splits = check_whole("cv", self.cv, least=2)
        if len(Y) < n_splits:
            raise ValueError(
                f"cv={self.cv} folds need at least as many rows, got n_samples={len(Y)}."
            )
        groups = equal_row_groups(X, n_splits)
        return list(IterativeStratifiedKFold(n_splits).split(X, labels_for_folds(Y), groups))

    def _blend(self, learned: dict[str, Learned], Y: LabelArray, weight: FloatArray | None) -> None:
        """Calibrate the members, weigh them, drop those that do not pay, calibrate the blend."""
        self._calibrations = {
            name: fit_calibration(found.scores, Y, weight) for name, found in learned.items()
        }
        log_odds = {
            name: self._calibrations[name].log_odds(found.scores) for name, found in learned.items()
        }
        weights = self._weigh(log_odds, Y, weight)
        blend = sum(w * log_odds[name] for name, w in weights.items())
        self._total_calibration = fit_calibration(np.asarray(blend), Y, weight)
        final = self._with_constants(self._total_calibration.log_odds(np.asarray(blend)))
        self.out_of_fold_proba_ = self._as_given(expit(final))
        total = sum(weights.values())
        self._weights = {name: weights.get(name, 0.0) for name in learned}
        self.contributions_ = {name: w / total for name, w in self._weights.items()}
        self.chosen_ = {name: found.chosen for name, found in learned.items()}

    def _weigh(
        self, log_odds: dict[str, FloatArray], Y: LabelArray, weight: FloatArray | None
    ) -> dict[str, float]:
        """Return the weights of the members that pay."""
        loss: BlendLoss = "ranking" if self.optimize in _RANKINGS and Y.shape[1] > 1 else "log"
        weights = _weights(log_odds, Y, weight, loss)
        least = _SMALLEST_SHARE * sum(weights.values())
        if self.members is not None:
            # Members that the user names are kept.
            return {name: max(w, least) for name, w in weights.items()}
        kept = {name for name, w in weights.items() if w >= least}
        return _weights({name: log_odds[name] for name in kept}, Y, weight, loss)

    def _as_given(self, values: FloatArray) -> FloatArray:
        """Return values of the training rows in the order in which rows and labels were given."""
        rows, labels = np.argsort(self._order.rows), np.argsort(self._order.labels)
        return values[rows][:, labels]

    def _with_constants(self, log_odds: FloatArray) -> FloatArray:
        return np.where(self._constant == 0, log_odds, self._constant * self._constant_odds)

    def _uses_untagged_rows(self) -> bool:
        # LEMLL is the only member with a graph of all rows.
        return self.contributions_.get("LEMLL", 0.0) > 0

    def _score(self, X: Features) -> FloatArray:
        total: Any = 0.0
        X = _sorted_columns(_stored(X, self._sparse), self._order.columns)
        for part in self._parts:
            total = total + part.weight * part.calibration.log_odds(part.score(X))
        scores = self._with_constants(self._total_calibration.log_odds(total))
        return scores[:, np.argsort(self._order.labels)]

    def _criterion(self) -> None:
        # The thresholds come from the out-of-fold probabilities, without further fits.
        if self.thresholds is not None:
            super()._criterion()

    def _store(self, coding: LabelCoding, thresholds: FloatArray) -> None:
        if coding.multilabel:
            thresholds = self._chosen_thresholds()
        super()._store(coding, thresholds)

    def _chosen_thresholds(self) -> FloatArray:
        p = self.out_of_fold_proba_
        n_labels = p.shape[1]
        if self.thresholds is None and self.optimize == "micro_f1":
            return np.full(n_labels, expected_f1_threshold(p.ravel()))
        if (self.thresholds or self.optimize) == "f1":
            return np.array([expected_f1_threshold(p[:, j]) for j in range(n_labels)])
        # Half is also the threshold with the most correct decisions to be expected.
        return np.zeros(n_labels)


def _learn_member(
    member: Member,
    X: Features,
    Y: LabelArray,
    weight: FloatArray | None,
    folds: Sequence[tuple[IndexArray, IndexArray]],
) -> Learned:
    """Let a member learn without a time limit, from arguments that a cache can distinguish."""
    found = member.learn(BlendTask(X, Y, weight, folds, lambda: float("inf")))
    # A fitted forest may take a gigabyte; to fit it again is better than to keep it.
    if isinstance(found.recipe, BaseEstimator):
        return found._replace(recipe=clone(found.recipe))
    return found


def _mostly_zero(X: Features) -> bool:
    n_values = X.nnz if is_sparse(X) else np.count_nonzero(X)
    return bool(n_values < _DENSE * X.shape[0] * X.shape[1])


def _stored(X: Features, as_sparse: bool) -> Features:
    """Return features in the other form, if they are not in this one."""
    if is_sparse(X) == as_sparse:
        return X
    return sparse.csr_array(X) if as_sparse else X.toarray()


def _sorted_columns(X: Features, columns: IndexArray) -> Features:
    """Return columns in another order."""
    X = X[:, columns]
    if not is_sparse(X):
        return np.ascontiguousarray(X)
    X.sort_indices()  # sums round by the order of their terms
    return X


def _weights(
    log_odds: dict[str, FloatArray], Y: LabelArray, weight: FloatArray | None, loss: BlendLoss
) -> dict[str, float]:
    # The order of the members must not depend on the order of a set.
    names = sorted(log_odds)
    found = blend_weights(np.stack([log_odds[name] for name in names]), Y, weight, loss)
    # Weights of zero mean that the members say nothing; then their mean says the same.
    if not found.any():
        found = np.full(len(names), 1 / len(names))
    return dict(zip(names, found.tolist(), strict=True))


class _TimeBudget:
    """The time budget and the progress of a fit."""

    def __init__(
        self,
        max_seconds: float | None,
        callbacks: Sequence[Callable[[BlendProgress], None]],
        expected: int,
    ) -> None:
        self._begin = time.perf_counter()
        self._limit = float("inf")
        if max_seconds is not None:
            self._limit = check_number("max_seconds", max_seconds, above=0)
        self._callbacks, self._expected, self._done = callbacks, expected, 0

    def seconds_left(self) -> float:
        return self._limit - (time.perf_counter() - self._begin)

    def report(self, step: str) -> None:
        elapsed = time.perf_counter() - self._begin
        for show in self._callbacks:
            show(BlendProgress(step, self._done, self._expected, elapsed))
        self._done += 1


def _print(progress: BlendProgress) -> None:
    done = f"step {progress.done + 1} of {progress.expected}"
    sys.stderr.write(f"TagPredictor, {done}, {progress.elapsed:.1f} s: {progress.step}\n")


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
    return LEMLL(kernel="rbf" if n_samples <= LARGEST_KERNEL else "linear", scale="auto")


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

    def _members(self, n_rows: int, partial: bool) -> dict[str, Member]:
        members = super()._members(n_rows, partial)
        # Plain LEMLL is the regression of all labels here.
        members.pop("MSVR", None)
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
