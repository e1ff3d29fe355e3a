"""Audit tags: one function that learns, and an object that holds what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import check_array

from lemll._labels import check_same_rows, labels_for_folds
from lemll._types import (
    BoolArray,
    Features,
    FloatArray,
    IndexArray,
    LabelArray,
    MatrixLike,
    RandomState,
)
from lemll._validation import UNOBSERVED, check_magnitude, check_whole
from lemll.audit.context import context_log_odds
from lemll.audit.missing import missing_log_odds
from lemll.audit.noise import EVEN_ODDS, NoiseRates, noise_rates
from lemll.audit.quality import error_probability, row_quality
from lemll.audit.tags import TagMatrix, read_probabilities, read_tags
from lemll.fitting import fit_scaling
from lemll.model_selection import IterativeStratifiedKFold
from lemll.predictors import BlendProgress, default_lemll, out_of_fold_scores
from lemll.topology import nearest_neighbors

__all__ = ["AuditMode", "TagAudit", "audit_tags"]

AuditMode = Literal["default", "fast"]

# Bound of the log-odds of a model; none is that sure.
_SUREST = 7.0
_FEWEST_ROWS = 10
# In fast mode, numerical labels become shares by a logistic function of this steepness. A given tag
# that is as relevant as the median one of its label has the share 0.9.
_STEEPNESS = 4.0
_TYPICAL = float(np.log(9.0))


@dataclass(frozen=True, kw_only=True)
class TagAudit:
    """What an audit found, cell by cell.

    Attributes
    ----------
    tags : TagMatrix
        The tags that were audited.
    error : ndarray of shape (n_samples, n_labels)
        Probability that the cell is wrong, NaN in unknown cells. In fast mode a score in [0, 1].
        For tags that are not given it may use more than `probability`; see `audit_tags`.
    probability : ndarray of shape (n_samples, n_labels)
        Probability that the tag is given, from the features and the other tags of the row, by
        models that did not see the row. In fast mode, numerical labels from 0 to 1.
    out_of_fold : ndarray of shape (n_samples, n_labels) or None
        The same from the features alone, or the `pred_probs` of the user. None in fast mode.
    numerical_labels : ndarray of shape (n_samples, n_labels) or None
        Numerical labels U of one LEMLL fit, about -1 to 1. None without features.
    features : ndarray or csr_array or None
        Scaled features, for neighbours.
    rates : NoiseRates or None
        The noise that `error` assumes. None in fast mode.
    """

    tags: TagMatrix
    error: FloatArray
    probability: FloatArray
    out_of_fold: FloatArray | None
    numerical_labels: FloatArray | None
    features: Features
    rates: NoiseRates | None

    @property
    def quality(self) -> FloatArray:
        """Quality of each cell in [0, 1], low if it is doubtful; NaN in unknown cells."""
        return 1 - self.error

    @property
    def likely(self) -> BoolArray:
        """Whether each cell is more likely wrong than right: its score is above 2/7.

        The scores assume less noise than is estimated, so even odds have this score.
        """
        return np.asarray(self.error > EVEN_ODDS)

    @property
    def row_quality(self) -> FloatArray:
        """Quality of each row in [0, 1]: the product over its cells."""
        return row_quality(self.quality)

    def neighbours(self, n_neighbors: int) -> IndexArray | None:
        """Return the nearest rows of every row by their scaled features; None without features."""
        if self.features is None:
            return None
        return nearest_neighbors(self.features, min(n_neighbors, self.features.shape[0] - 1))

    def worst_cells(self, limit: int | None) -> tuple[IndexArray, IndexArray]:
        """Return rows and labels of the most doubtful known cells, worst first."""
        known = np.flatnonzero(~np.isnan(self.error))
        values = self.error.ravel()[known]
        if limit is not None and limit < len(known):
            # Selecting first is much faster than sorting a million cells. Ties stay in order.
            least = np.partition(values, len(values) - limit)[len(values) - limit]
            known, values = known[values >= least], values[values >= least]
        order = np.argsort(-values, kind="stable")[:limit]
        rows, labels = np.unravel_index(known[order], self.error.shape)
        return rows, labels


def audit_tags(
    X: MatrixLike,
    Y: MatrixLike,
    *,
    mode: AuditMode = "default",
    pred_probs: MatrixLike = None,
    label_names: Any = None,
    cv: int = 5,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
    callback: Callable[[BlendProgress], None] | None = None,
) -> TagAudit:
    """Find out how doubtful each cell of the tags is.

    The default mode has four steps. (1) Logistic regressions, LEMLL and two forests predict each
    row without having seen it; the mean of their log-odds counts. (2) A logistic model per label
    adds the other tags of the row as evidence: a tag may exclude another, follow from it, or be the
    only one; it is fitted on the other folds too. (3) The rates of wrong and missing tags are
    estimated from the cells that the models are most sure of. (4) Bayes' rule gives the probability
    that a cell is wrong.
    For tags that are not given, the logistic regressions of step 1 (or `pred_probs`) count once
    more beside step 2, if the given tags show that missing ones are then found sooner.

    The fast mode fits LEMLL once. A given tag is doubtful if its numerical label is far below the
    median of the given tags of its label; a tag that is not given, if its numerical label is high.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features), or None
        Features. May be None if `pred_probs` is given; then there are no neighbours.
    Y : array-like, sparse matrix, frame or list of lists
        Tags, as `read_tags` reads them: 0/1, or lists of classes. Unknown cells are not judged.
    mode : {"default", "fast"}, default="default"
        What to compute.
    pred_probs : array-like or frame of shape (n_samples, n_labels), optional
        Probabilities by models that did not see the row, which replace step 1.
    label_names : sequence of str, optional
        Names of the labels; by default the columns of a frame, or ``y0, y1, ...``.
    cv : int, default=5
        Number of folds.
    n_jobs : int, optional
        Number of threads of the forests.
    random_state : int, RandomState or None, default=0
        Seed of the forests.
    callback : callable, optional
        Called with a `BlendProgress` before each step of the blend.

    Returns
    -------
    TagAudit
        The result.
    """
    if not isinstance(mode, str) or mode not in get_args(AuditMode):
        raise ValueError(f"mode={mode!r} must be one of {', '.join(get_args(AuditMode))}.")
    check_same_rows(X, Y)
    n_splits = check_whole("cv", cv, least=2)
    n_labels = np.shape(pred_probs)[1] if np.ndim(pred_probs) == 2 else None
    tags = read_tags(Y, n_labels=n_labels, names=label_names)
    given = None if pred_probs is None else read_probabilities(pred_probs, tags)
    rows = _read_features(X, tags, needed=given is None or mode == "fast")
    if mode == "fast":
        if given is not None:
            raise ValueError("mode='fast' does not use pred_probs; leave one of the two out.")
        return _fast(rows, tags)
    if given is not None:
        alone = given
    else:
        given, alone = out_of_fold_scores(
            rows,
            tags.Y,
            cv=n_splits,
            n_jobs=n_jobs,
            random_state=random_state,
            callback=callback,
        )
    features = _log_odds(given)
    in_context = _in_context(features, tags.Y, n_splits)
    probability = np.asarray(expit(in_context))
    rates = noise_rates(probability, tags.Y)
    unmarked = expit(missing_log_odds(in_context, _log_odds(alone), tags.Y))
    return TagAudit(
        tags=tags,
        error=error_probability(np.where(tags.Y == 1, probability, unmarked), tags.Y, rates),
        probability=probability,
        out_of_fold=given,
        numerical_labels=None if rows is None else _numerical_labels(rows, tags.Y),
        features=None if rows is None else fit_scaling("auto", rows)(rows),
        rates=rates,
    )


def _read_features(X: MatrixLike, tags: TagMatrix, *, needed: bool) -> Features:
    if X is None:
        if needed:
            raise ValueError(
                "X is None, so there is nothing to predict the tags from; give features, or "
                "probabilities of your own model with pred_probs=."
            )
        return None
    try:
        rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    except ValueError as error:
        if "contains NaN" in str(error):
            raise ValueError(
                "X holds missing values (NaN); fill them with sklearn.impute.SimpleImputer()"
                ".fit_transform(X), or with lemll.tables.TableEncoder().fit_transform(X)."
            ) from error
        if "could not convert string to float" not in str(error):
            raise
        raise ValueError(
            f"X holds text ({error}); encode it with lemll.tables.TableEncoder().fit_transform(X), "
            "or audit the file with lemll audit."
        ) from error
    if rows.shape[0] != len(tags.Y):
        raise ValueError(f"X and Y must have the same rows, got {rows.shape[0]} and {len(tags.Y)}.")
    if rows.shape[0] < _FEWEST_ROWS:
        raise ValueError(
            f"an audit needs at least {_FEWEST_ROWS} rows to learn from, got {rows.shape[0]}."
        )
    check_magnitude(rows)
    return rows


def _log_odds(probability: FloatArray) -> FloatArray:
    bound = expit(_SUREST)
    return np.asarray(logit(np.clip(probability, 1 - bound, bound)))


def _in_context(features: FloatArray, Y: LabelArray, n_splits: int) -> FloatArray:
    """Return the log-odds after the other tags of the row are taken into account."""
    if len(Y) < n_splits:
        return features
    folds = list(IterativeStratifiedKFold(n_splits).split(features, labels_for_folds(Y)))
    found = context_log_odds(features, Y, folds)
    return np.clip(found, -2 * _SUREST, 2 * _SUREST)


def _numerical_labels(rows: Features, Y: LabelArray) -> FloatArray:
    hidden = Y == UNOBSERVED
    model = default_lemll(rows.shape[0])
    model.fit(rows, np.ma.MaskedArray(Y, mask=hidden) if hidden.any() else Y)
    return np.asarray(model.numerical_labels_)


def _fast(rows: Features, tags: TagMatrix) -> TagAudit:
    Y = tags.Y
    U = _numerical_labels(rows, Y)
    given = Y == 1
    # A label without a given tag has no median, and no given tag to judge.
    typical = np.array(
        [np.median(u[of]) if of.any() else 0.0 for u, of in zip(U.T, given.T, strict=True)]
    )
    wrong = expit(-_STEEPNESS * (U - typical) - _TYPICAL)
    error = np.where(given, wrong, expit(_STEEPNESS * U))
    return TagAudit(
        tags=tags,
        error=np.where(Y == UNOBSERVED, np.nan, error),
        probability=np.clip((U + 1) / 2, 0, 1),
        out_of_fold=None,
        numerical_labels=U,
        features=fit_scaling("auto", rows)(rows),
        rates=None,
    )
