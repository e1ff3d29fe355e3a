"""Base of the classifiers that choose parameters by cross-validation, one path per fold."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv
from threadpoolctl import threadpool_limits

from lemll._labels import LabelCoding, check_same_rows, labels_for_folds, weigh_cells
from lemll._types import (
    Estimator,
    Features,
    FloatArray,
    KernelLike,
    LabelArray,
    MatrixLike,
    Settings,
    SettingsView,
    Thresholds,
)
from lemll._validation import (
    all_or_nothing,
    check_choice,
    check_n_jobs,
    check_number,
    check_settings,
    check_whole,
    warn_caller,
)
from lemll.fitting.equation9 import KERNEL_SETTINGS
from lemll.fitting.kernels import inverse_variance
from lemll.fitting.scaling import check_scale, usual_scale
from lemll.model_selection import IterativeStratifiedKFold, equal_row_groups
from lemll.predictors.base import partial_refusal, plain_method_names
from lemll.predictors.calibrated import CalibratedProbabilities
from lemll.predictors.folds import (
    SPACE_PARAMETERS,
    Fold,
    Space,
    Trials,
    coarse_to_fine,
    measures_of,
    one_standard_error,
    results_table,
)
from lemll.solvers import GridPoint

# Smallest and largest values that the walk may reach.
LIMITS = {"alpha": (4.0**-8, 4.0**8), "beta": (4.0**-4, 4.0**4), "gamma": (4.0**-4, 4.0**4)}
_STEP = 4.0
# The walk may make the kernel this many steps wider or narrower than the widths it starts from.
_WIDTH_STEPS = 3
# The first round compares the spaces on two folds of at most this many rows.
_FIRST_ROWS = 600
_FEW_FOLDS = 2
# The next round has this many times the rows, and one third of the spaces take part in it.
_FACTOR = 3
# Further rounds have less than this share of the rows. A larger one would take nearly as long as
# the comparison with all rows that follows.
_MOST_OF_THE_ROWS = 0.75


def rounds_of_few_rows(folds: Sequence[Fold]) -> list[list[Fold]]:
    """Return the folds of the rounds before all rows are used: two folds of each round.

    Parameters
    ----------
    folds : sequence of Fold
        All folds.

    Returns
    -------
    list of list of Fold
        The first round has at most 600 rows, and each further round three times as many as the one
        before, while this is less than three quarters of all rows. The rows are drawn with a fixed
        seed.
    """
    n_rows = len(folds[0].train) + len(folds[0].test)
    sizes = [_FIRST_ROWS]
    while _FACTOR * sizes[-1] < _MOST_OF_THE_ROWS * n_rows:
        sizes.append(_FACTOR * sizes[-1])
    return [[_part(fold, min(1.0, size / n_rows)) for fold in folds[:_FEW_FOLDS]] for size in sizes]


def _part(fold: Fold, share: float) -> Fold:
    random = np.random.RandomState(0)
    train, test = (
        np.sort(random.choice(rows, math.ceil(share * len(rows)), replace=False))
        for rows in (fold.train, fold.test)
    )
    return Fold(fold.X, fold.Y, train, test, fold.weight)


def halve_and_walk(
    spaces: Sequence[Space],
    axes: Sequence[Sequence[float]],
    rounds: Sequence[Trials],
    trials: Trials,
) -> None:
    """Compare the spaces on few rows, the best ones on more rows, and improve the very best one.

    The spaces are compared by their best score at the smallest, the middle and the largest alpha.
    In the best space the search walks: it multiplies or divides one parameter by 4, the width of
    an RBF kernel included, as long as the score improves. It may leave the given axes, up to
    `LIMITS`.

    Parameters
    ----------
    spaces : sequence of Space
        The candidates.
    axes : sequence of three sequences of float
        Ascending values of alpha, beta and gamma to start from.
    rounds : sequence of Trials
        The trials of the rounds of `rounds_of_few_rows`.
    trials : Trials
        The trials on all rows. They hold the results.
    """
    alphas, betas, gammas = axes
    ends = dict.fromkeys((alphas[0], alphas[len(alphas) // 2], alphas[-1]))
    points = [GridPoint(a, betas[len(betas) // 2], gammas[len(gammas) // 2]) for a in ends]
    kept = list(spaces)
    for few_rows in rounds:
        if len(kept) == 1 or trials.out_of_time():
            break
        scores: list[float] = []
        for space in kept:
            if scores and trials.out_of_time():
                break
            scores.append(_evaluate(few_rows, space, points))
        # The measure may judge none of so few rows; then this round cannot tell the spaces apart.
        if not np.isfinite(scores).any():
            continue
        order = np.argsort(-np.array(scores), kind="stable")
        kept = [kept[i] for i in order[: math.ceil(len(kept) / _FACTOR)]]
    for space in kept:
        if trials.tried and trials.out_of_time():
            break
        _evaluate(trials, space, points)
        trials.best()  # fails at once if no fold can be judged
    _walk(trials)


def _evaluate(trials: Trials, space: Space, points: Sequence[GridPoint]) -> float:
    best = float(trials.evaluate(space, points)[:, 0].max())
    trials.forget()
    return best


def _walk(trials: Trials) -> None:
    """Move from the best combination to better neighbours until there is none, or no time."""
    start = trials.best()[0]
    while not trials.out_of_time():
        before = trials.best()
        _walk_in_space(trials)
        space, point = trials.best()
        for wider in _other_widths(space, start):
            if trials.out_of_time():
                return
            # Another width wants another alpha, so the next values of alpha are tried with it.
            around = [p for p in (point, *_neighbours(point)) if p[1:] == point[1:]]
            new = [p for p in around if (wider, p) not in trials.tried]
            if new:
                _evaluate(trials, wider, new)
        if trials.best() == before:
            return


def _walk_in_space(trials: Trials) -> None:
    space, point = trials.best()
    while not trials.out_of_time():
        new = [p for p in _neighbours(point) if (space, p) not in trials.tried]
        if new:
            trials.evaluate(space, new, keep=True)
        if trials.best() == (space, point):
            break
        space, point = trials.best()
    trials.forget()


def _neighbours(point: GridPoint) -> list[GridPoint]:
    """Return the points with one weight multiplied or divided by 4, within the limits."""
    found = []
    for name, (low, high) in LIMITS.items():
        value = getattr(point, name)
        # MSVR has an infinite beta, and gamma = 0 has no neighbours by multiplication.
        if not math.isfinite(value) or value == 0:
            continue
        for moved in (value / _STEP, value * _STEP):
            if low <= moved <= high:
                found.append(point._replace(**{name: moved}))
    return found


def _other_widths(space: Space, start: Space) -> list[Space]:
    """Return the next wider and the next narrower RBF kernel."""
    if space.kernel != "rbf" or isinstance(space.kernel_gamma, str):
        return []
    middle = float(start.kernel_gamma)
    return [
        space._replace(kernel_gamma=moved)
        for moved in (space.kernel_gamma / _STEP, space.kernel_gamma * _STEP)
        if abs(math.log(moved / middle, _STEP)) <= _WIDTH_STEPS + 0.5
    ]


PAPER_GRID = tuple(4.0**power for power in range(-3, 4))
# Values of kernel_gamma to try, as multiples of one divided by the sum of the feature variances.
_WIDTHS = (0.25, 1.0, 4.0)
# This many of the best combinations are solved again to the final `tol` before one is chosen.
_FINALISTS = 10
# With fewer rows, products are too small to be worth several threads.
_ROWS_FOR_THREADS = 3000


@plain_method_names
@dataclass(eq=False, repr=False, kw_only=True)
class PathCV(CalibratedProbabilities):
    """Base of classifiers that choose their parameters by cross-validation.

    A subclass implements `_axes`. What is not searched comes from `estimator`, an unfitted learner
    of the class `_kind`.
    """

    _kind: ClassVar[Any]
    # `tol` of the final model, unless `estimator` says another.
    _tol: ClassVar[float]
    # What `kernel_params` of the learner may hold.
    _KERNEL_SETTINGS: ClassVar[SettingsView] = KERNEL_SETTINGS

    # A parameter of `LEMLLCV` only.
    search = "auto"

    estimator: Estimator = None
    kernel: KernelLike | None = None
    normalize_rows: Any = False
    scoring: Any = "average_precision"
    cv: Estimator = 5
    one_standard_error: bool = False
    tol_search: float = 1e-3
    max_seconds: float | None = None
    n_jobs: int | None = None
    refit: bool = True
    callback: Any = None

    def _findings(self) -> Mapping[str, str]:
        best = ", ".join(f"{name}={value}" for name, value in self.best_params_.items())
        return {"the best of the search": best}

    @abstractmethod
    def _axes(self) -> list[list[float]]:
        """Return the values of alpha, beta and gamma to try, in ascending order."""

    def _template(self) -> Estimator:
        """Return a copy of the learner with the parameters that are not searched."""
        if self.estimator is None:
            # Columns with other units than others may hide that a kernel is good.
            scale = "auto" if self._searches_kernels else "none"
            return self._kind(scale=scale, tol=self._tol)
        if not isinstance(self.estimator, self._kind):
            kind = self._kind.__name__
            raise TypeError(
                f"estimator must be None or an unfitted {kind}, got {self.estimator!r}; pass "
                f"{kind}(...) with the parameters that are not searched."
            )
        return clone(self.estimator)

    def set_params(self, **params: object) -> Self:
        """Set parameters, also those of `estimator`, for example ``estimator__thresholds="f1"``.

        Parameters
        ----------
        **params : object
            The parameters. If one of `estimator` is set while it is None, it becomes the learner
            that None stands for.

        Returns
        -------
        self
            The same object.
        """
        nested = {n: value for n, value in params.items() if n.startswith("estimator__")}
        super().set_params(**{n: value for n, value in params.items() if n not in nested})
        if nested and self.estimator is None:
            self.estimator = self._template()
        super().set_params(**nested)
        return self

    @property
    def _kernel(self) -> KernelLike:
        given = self.kernel
        return getattr(self.estimator, "kernel", "linear") if given is None else given

    @property
    def _pairwise(self) -> bool:
        return bool(self._kernel == "precomputed")

    @property
    def thresholds(self) -> Thresholds:  # type: ignore[override]
        """How the final model chooses its thresholds."""
        return getattr(self.estimator, "thresholds", "zero")

    @property
    def probability(self) -> bool:  # type: ignore[override]
        """Whether the final model has `predict_proba`."""
        return bool(getattr(self.estimator, "probability", False))

    def _to_set(self, setting: str) -> str:
        return f"estimator={self._kind.__name__}({setting})"

    def _path_options(self) -> Settings:
        """Return the options of `FoldPath`."""
        fixed = self._template()
        return {
            "epsilon": check_number("epsilon", fixed.epsilon, above=0, inclusive=True),
            "tol": check_number("tol_search", self.tol_search, above=0),
            "max_iter": check_whole("max_iter", fixed.max_iter, least=1),
        }

    def _searched(self, point: GridPoint) -> Settings:
        """Return the weights that the class searches: MSVRCV has `alphas`, but no `betas`."""
        return {n: value for n, value in point._asdict().items() if hasattr(self, n + "s")}

    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        *third: object,
        groups: MatrixLike = None,
        label_weight: MatrixLike = None,
        **others: object,
    ) -> Self:
        """Choose the parameters, then fit the final model to all rows.

        If a call fails, the results of an earlier call remain.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Logical labels, 0/1. Or a 1-D target, as in the classifiers of scikit-learn. NaN, None,
            ``pandas.NA`` and masked cells mean that nobody observed the cell, if the learner can
            use such labels. The scores of the folds skip them.
        groups : array-like of shape (n_samples,), optional
            The group of each row, for splitters that keep groups together. With a number as `cv`,
            rows with equal features are a group by default.
        label_weight : array-like or sparse matrix of shape (n_samples, n_labels), optional
            How sure each cell of y is, from 0 (not observed) to 1 (certain, the default). Where it
            is 0, y may hold any value.
        *third, **others : object
            Refused.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._refuse(third, others)
        return self._choose(X, y, groups, label_weight)

    @all_or_nothing
    def _choose(
        self, X: MatrixLike, y: MatrixLike, groups: MatrixLike, label_weight: MatrixLike
    ) -> Self:
        check_same_rows(X, label_weight, "label_weight")
        X, Y, coding = self._validated(X, y, label_weight)
        Y, weight = weigh_cells(Y, label_weight, coding)
        if weight is not None:
            self._check_partial(weight)
        found = self._search(X, Y, weight, groups)
        self._learn(X, Y, weight, found["_combination"], coding)
        self.__dict__.update(found)
        self._note_tags(Y)
        return self

    def _check_partial(self, weight: FloatArray) -> None:
        """Refuse unknown cells. Searches of learners that can use them override this."""
        raise partial_refusal(self, weight)

    def _search(
        self, X: Features, Y: LabelArray, weight: FloatArray | None, groups: MatrixLike
    ) -> Settings:
        """Try the parameters; return the attributes to set and the best combination."""
        measures = measures_of(self.scoring)
        search = self._chosen_search()
        axes = self._axes()
        options = self._path_options()
        n_jobs = check_n_jobs(self.n_jobs)
        folds, spaces = self._folds(X, Y, weight, groups), self._spaces(X)
        make_trials = partial(
            Trials, measures=measures, options=options, n_jobs=n_jobs, max_seconds=self._budget()
        )
        trials = make_trials(folds, callback=self.callback)
        # Threads of BLAS wait for each other in small products, most of all on a busy machine.
        with threadpool_limits(1 if len(Y) < _ROWS_FOR_THREADS else None, user_api="blas"):
            if search == "halving":
                trials.expect(None, 1)
                rounds = [make_trials(few, callback=None) for few in rounds_of_few_rows(folds)]
                halve_and_walk(spaces, axes, rounds, trials)
            else:
                self._all_spaces(search, spaces, axes, trials)
            self._warn(trials)
            best = self._final(trials)
        results = results_table(trials.tried, trials.scores, list(measures))
        if self.one_standard_error:
            best = one_standard_error(trials.tried, [s.values[:, 0] for s in trials.scores])
        space, point = trials.tried[best]
        return {
            "_combination": trials.tried[best],
            "cv_results_": results,
            "best_index_": best,
            "best_score_": float(trials.means()[best]),
            "best_params_": {
                **self._searched(point),
                **{n: getattr(space, n) for n in SPACE_PARAMETERS},
            },
            "n_splits_": len(folds),
        }

    def _chosen_search(self) -> str:
        check_choice("search", self.search, ("auto", "grid", "coarse", "halving"))
        if self.search != "auto":
            return self.search
        return "halving" if self._searches_kernels else "grid"

    @property
    def _searches_kernels(self) -> bool:
        return isinstance(self._kernel, str) and self._kernel == "auto"

    def _budget(self) -> float:
        if self.max_seconds is None:
            return float("inf")
        return check_number("max_seconds", self.max_seconds, above=0)

    def _all_spaces(
        self, search: str, spaces: Sequence[Space], axes: Sequence[Sequence[float]], trials: Trials
    ) -> None:
        """Search every space by itself, on the given axes."""
        grid = [GridPoint(*point) for point in itertools.product(*axes)]
        for number, space in enumerate(spaces):
            if number and trials.out_of_time():
                return
            if search == "grid":
                trials.expect(len(grid), len(spaces) - number)
                trials.evaluate(space, grid)
            else:
                trials.expect(None, len(spaces) - number)
                coarse_to_fine(
                    axes, partial(trials.evaluate, space, keep=True), is_over=trials.out_of_time
                )
            trials.forget()
            trials.best()  # fails at once if no fold can be judged

    def _final(self, trials: Trials) -> int:
        """Return the index of the best combination, after solving it to the final `tol`.

        Scores of neighbours on the grid differ by less than the error that a loose gap allows.
        Therefore the best combinations are compared again at the tight gap.
        """
        tol = check_number("tol of estimator", self._template().tol, above=0)
        exact = set(range(len(trials.tried))) if tol >= self.tol_search else set()
        while True:
            means = trials.means()
            best = int(means.argmax())
            if best in exact or trials.out_of_time():
                return best
            order = np.argsort(-means, kind="stable").tolist()
            # The scores change when they are refined, so another combination may lead now. Go on
            # until the leader is one of those solved to `tol`.
            finalists = [place for place in order if place not in exact][:_FINALISTS]
            trials.refine(finalists, tol)
            exact.update(finalists)

    def _warn(self, trials: Trials) -> None:
        gaps = [float(scores.optimality.max()) for scores in trials.scores]
        missed = sum(gap > self.tol_search for gap in gaps)
        if missed:
            warn_caller(
                f"{missed} of {len(gaps)} combinations tried by {type(self).__name__} did not "
                f"reach the certified gap tol_search={self.tol_search:.2e} in every fold, the "
                f"largest being {max(gaps):.2e}; raise max_iter or tol_search. "
                "cv_results_['optimality'] tells which.",
                ConvergenceWarning,
            )

    def _spaces(self, X: Features) -> list[Space]:
        if self.normalize_rows not in (True, False, "auto"):
            raise ValueError(f"normalize_rows={self.normalize_rows!r} must be a bool or 'auto'.")
        fixed = self._template()
        settings = check_settings("kernel_params", fixed.kernel_params, self._KERNEL_SETTINGS)
        gamma, degree, coef0 = (settings[name] for name in KERNEL_SETTINGS)
        # "auto" compares the rows as they are with scaled ones.
        scales = ["none", usual_scale(X)] if check_scale(fixed.scale) == "auto" else [fixed.scale]
        if self._pairwise and (self.normalize_rows or scales != ["none"]):
            raise ValueError(
                "normalize_rows must be False and scale 'none' with a precomputed kernel, whose "
                "rows are not features."
            )
        lengths = (False, True) if self.normalize_rows == "auto" else (self.normalize_rows,)
        spaces = []
        for scale, to_length_1 in itertools.product(scales, lengths):
            plain = Space(self._kernel, gamma, to_length_1, degree, coef0, scale)
            if not self._searches_kernels:
                spaces.append(plain)
                continue
            # The variance changes with the scaling of rows and columns, and so do useful widths.
            spaces.append(plain._replace(kernel="linear"))
            middle = inverse_variance(plain.fit(X)(X))
            spaces += [plain._replace(kernel="rbf", kernel_gamma=middle * w) for w in _WIDTHS]
        return spaces

    def _folds(
        self, X: Features, Y: LabelArray, weight: FloatArray | None, groups: MatrixLike
    ) -> list[Fold]:
        if isinstance(self.cv, Integral):
            # Random folds may contain no row with a rare label.
            splitter = IterativeStratifiedKFold(check_whole("cv", self.cv, least=2))
            if len(Y) < splitter.n_splits:
                raise ValueError(
                    f"cv={self.cv} folds need at least as many rows, got n_samples={len(Y)}."
                )
            if groups is None and not self._pairwise:
                groups = equal_row_groups(X, splitter.n_splits)
        else:
            splitter = check_cv(self.cv)
        # Other splitters may not know what a masked cell is.
        own = isinstance(splitter, IterativeStratifiedKFold)
        labels = labels_for_folds(Y) if own else np.maximum(Y, 0)
        folds = [
            Fold(X, Y, np.asarray(train), np.asarray(test), weight)
            for train, test in splitter.split(X, labels, groups)
        ]
        if not folds:
            raise ValueError(f"cv={self.cv!r} must give at least one split, got none.")
        return folds

    def _learn(
        self,
        X: Features,
        Y: LabelArray,
        weight: FloatArray | None,
        best: tuple[Space, GridPoint],
        coding: LabelCoding,
    ) -> None:
        """Fit the final model, unless `refit` is False."""
        # The model of an earlier fit must not answer for this one.
        self.__dict__.pop("best_estimator_", None)
        if not self.refit:
            self._store(coding, np.zeros(Y.shape[1]))
            return
        space, point = best
        model = self._template()
        settings = model.kernel_params or {}
        if space.kernel_gamma != settings.get("gamma", KERNEL_SETTINGS["gamma"]):
            model.set_params(kernel_params={**settings, "gamma": space.kernel_gamma})
        model.set_params(**self._searched(point), kernel=space.kernel, scale="none")
        if not coding.multilabel:
            # A 1-D target takes the class with the best score, so thresholds have no effect.
            model.set_params(thresholds="zero")
        labels = Y if weight is None else np.where(Y < 0, np.nan, Y)
        self._rows = space.fit(X)
        self.best_estimator_ = model.fit(self._rows(X), labels, label_weight=weight)
        if self.probability:
            self._calibration = model._calibration
        self._store(coding, model.thresholds_)

    def _score(self, X: Features) -> FloatArray:
        if not self.refit:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted with refit=False, so there is no model to "
                "predict with; fit it with refit=True, or a model of your own with best_params_."
            )
        scores: FloatArray = self.best_estimator_._score(self._rows(X))
        return scores

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the final model as if it belonged to this object."""
        # Look in vars(self): hasattr would call this method again without end.
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def check_axis(name: str, given: MatrixLike, *, inclusive: bool = False) -> list[float]:
    """Return the values to try, ascending and without duplicates, or raise a ValueError.

    Parameters
    ----------
    name : str
        Name of the parameter, for the error message.
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
