"""The functions that users of cleanlab's multi-label module know, with the scores of this room."""

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
    Frame,
    IndexArray,
    LabelArray,
    MatrixLike,
    RandomState,
    Settings,
)
from lemll._validation import UNOBSERVED, check_magnitude, check_number, check_whole
from lemll.audit.scores import (
    EVEN_ODDS,
    NoiseRates,
    context_log_odds,
    error_probability,
    label_noise,
    missing_log_odds,
    noise_rates,
    row_quality,
)
from lemll.audit.tags import TagMatrix, read_probabilities, read_tags, spelled_otherwise
from lemll.exceptions import import_extra
from lemll.fitting.scaling import fit_scaling
from lemll.model_selection import IterativeStratifiedKFold
from lemll.predictors import BlendProgress, default_lemll, out_of_fold_scores
from lemll.topology import nearest_neighbors

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
        """Return rows and labels of the most doubtful known cells, worst first.

        Among equal scores, those come first that the features alone contradict most.
        """
        known = np.flatnonzero(~np.isnan(self.error))
        values = self.error.ravel()[known]
        if limit is not None and limit < len(known):
            # Selecting first is much faster than sorting a million cells. Ties stay together.
            least = np.partition(values, len(values) - limit)[len(values) - limit]
            known, values = known[values >= least], values[values >= least]
        keys = [-values]
        if self.out_of_fold is not None:
            keys.insert(0, -np.abs(self.tags.Y - self.out_of_fold).ravel()[known])
        order = np.lexsort(keys)[:limit]
        rows, labels = np.unravel_index(known[order], self.error.shape)
        return rows, labels


def audit_tags(
    X: MatrixLike,
    Y: MatrixLike,
    *,
    mode: AuditMode = "default",
    pred_probs: MatrixLike = None,
    label_names: MatrixLike = None,
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


# The columns of the frame of issues.
COLUMNS = (
    "row",
    "label",
    "given",
    "suggested",
    "kind",
    "score",
    "probability",
    "out_of_fold",
    "numerical_label",
    "neighbour_share",
    "neighbours",
)
# An interval that reaches further tells nothing that would change what a user does.
_TELLS = 0.5


def find_tag_issues(
    X: MatrixLike,
    Y: MatrixLike,
    *,
    limit: int | None = 1000,
    n_neighbors: int = 10,
    **options: Any,
) -> Frame:
    """List the tags that look wrong and the tags that look missing, most doubtful first.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features), or None
        Features. May be None with `pred_probs`.
    Y : array-like, sparse matrix, frame or list of lists
        Tags: a 0/1 matrix (NaN, None and masked cells are unknown and are not judged), a frame, or
        lists of class numbers or of tag names per row.
    limit : int or None, default=1000
        Largest number of cells to list, the most doubtful ones. A cell is one label of one row,
        so a row can be listed several times. None lists every known cell.
    n_neighbors : int, default=10
        Number of nearest rows that are named as evidence.
    **options
        `mode`, `pred_probs`, `label_names`, `cv`, `n_jobs`, `random_state` and `callback` of
        `audit_tags`.

    Returns
    -------
    pandas.DataFrame
        One row per cell. A tag that the row has in another case is not listed as missing.

        - ``row`` (its number, from 0) and ``label`` (its name);
        - ``given`` and ``suggested`` (0 or 1), and ``kind``: "wrong" if the tag is given, "missing"
          if it is not;
        - ``score``: the probability that the cell is wrong, in [0, 1]; in fast mode it only ranks;
        - ``probability`` of the tag, from the features and the other tags of the row;
        - ``out_of_fold``: from the features alone; NaN in fast mode;
        - ``numerical_label``: U of one LEMLL fit, about -1 to 1;
        - ``neighbour_share``: share of the nearest rows that have the tag;
        - ``neighbours``: the numbers of these rows.

    Examples
    --------
    >>> from lemll.audit import find_tag_issues
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> X, Y = digits.X[:300], digits.Y[:300].copy()
    >>> Y[7, 0] = 1 - Y[7, 0]  # a mistake on purpose
    >>> issues = find_tag_issues(X, Y, limit=20)
    >>> bool(((issues.row == 7) & (issues.label == "y0")).any())
    True
    """
    if limit is not None:
        limit = check_whole("limit", limit, least=1)
    n_neighbors = check_whole("n_neighbors", n_neighbors, least=1)
    import_extra("pandas", "tables", "The frame of issues")
    return issue_frame(audit_tags(X, Y, **options), limit=limit, n_neighbors=n_neighbors)


def issue_frame(audit: TagAudit, *, limit: int | None = 1000, n_neighbors: int = 10) -> Frame:
    """Return the frame of `find_tag_issues` of an audit.

    Parameters
    ----------
    audit : TagAudit
        The audit.
    limit : int or None, default=1000
        Largest number of cells to list; a cell is one label of one row. None lists all.
    n_neighbors : int, default=10
        Number of neighbours.

    Returns
    -------
    pandas.DataFrame
        The frame.
    """
    pandas = import_extra("pandas", "tables", "The frame of issues")
    other = spelled_otherwise(audit.tags)
    rows, labels = audit.worst_cells(None if limit is None else limit + int(other.sum()))
    listed = np.flatnonzero(~other[rows, labels])[:limit]
    rows, labels = rows[listed], labels[listed]
    given = audit.tags.Y[rows, labels]
    near = audit.neighbours(n_neighbors)
    frame = pandas.DataFrame(
        {
            "row": rows,
            "label": np.array(audit.tags.names, dtype=object)[labels],
            "given": given,
            "suggested": 1 - given,
            "kind": np.where(given == 1, "wrong", "missing").astype(object),
            "score": audit.error[rows, labels],
            "probability": audit.probability[rows, labels],
            "out_of_fold": _cells(audit.out_of_fold, rows, labels),
            "numerical_label": _cells(audit.numerical_labels, rows, labels),
            "neighbour_share": _neighbour_share(audit, near, rows, labels),
        }
    )
    named: list[tuple[int, ...]] = (
        [()] * len(rows) if near is None else [tuple(found) for found in near[rows].tolist()]
    )
    frame["neighbours"] = pandas.Series(named, dtype=object)
    return frame[list(COLUMNS)]


def _cells(values: FloatArray | None, rows: IndexArray, labels: IndexArray) -> FloatArray:
    return np.full(len(rows), np.nan) if values is None else values[rows, labels]


def _neighbour_share(
    audit: TagAudit, near: IndexArray | None, rows: IndexArray, labels: IndexArray
) -> FloatArray:
    """Return the share of the neighbours with the tag, among those whose tag is known."""
    if near is None:
        return np.full(len(rows), np.nan)
    of_near = audit.tags.Y[near[rows], labels[:, None]]
    known = (of_near != UNOBSERVED).sum(axis=1)
    share = (of_near == 1).sum(axis=1) / np.maximum(known, 1)
    return np.where(known > 0, share, np.nan)


def tag_quality(
    X: MatrixLike, Y: MatrixLike, *, per: Literal["tag", "row"] = "tag", **options: Any
) -> FloatArray:
    """Say how trustworthy each cell of the tags is, or each row.

    Parameters
    ----------
    X, Y
        Features and tags, as in `find_tag_issues`.
    per : {"tag", "row"}, default="tag"
        Whether to judge cells or rows. A row is as good as the product of its cells: the
        probability that none of them is wrong.
    **options
        As in `find_tag_issues`.

    Returns
    -------
    ndarray of shape (n_samples, n_labels) or (n_samples,)
        In [0, 1], low if doubtful. NaN in unknown cells, and for rows without known cells.

    Examples
    --------
    >>> from lemll.audit import tag_quality
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> tag_quality(digits.X[:300], digits.Y[:300], mode="fast").shape
    (300, 8)
    """
    if per not in ("tag", "row"):
        raise ValueError(f"per={per!r} must be 'tag' or 'row'.")
    audit = audit_tags(X, Y, **options)
    return audit.quality if per == "tag" else audit.row_quality


def estimate_noise(
    X: MatrixLike, Y: MatrixLike, *, confidence: float = 0.9, **options: Any
) -> Frame:
    """Estimate, label by label, the share of wrong tags and of missing tags, with intervals.

    The rows that look most like a tag, to models that did not see it, bound the share of missing
    tags: if every tenth of them lacks the tag, at most about a tenth is missing. The rows that look
    least like it bound the wrong tags in the same way. This holds if wrong and missing tags fall on
    rows by chance; mistakes that follow the features can stay unseen.

    Parameters
    ----------
    X, Y
        Features and tags, as in `find_tag_issues`.
    confidence : float, default=0.9
        Of each interval, between 0 and 1.
    **options
        `pred_probs`, `label_names`, `cv`, `n_jobs`, `random_state` and `callback` of `audit_tags`.
        There is no `limit` here: that of `find_tag_issues` is a number of cells to list, and the
        estimates are shares of all known cells of a label. Fast mode gives no estimates.

    Returns
    -------
    pandas.DataFrame
        One row per label: ``label``, ``n_given``; ``wrong`` (share of the given tags),
        ``wrong_low``, ``wrong_high``, ``wrong_told``; ``missing`` (share of the tags that apply),
        ``missing_low``, ``missing_high``, ``missing_told``. The lower ends are 0: no data can tell
        a tag that is hard to predict from a tag with noise. ``_told`` is False if the interval
        reaches above one half: the data cannot tell.
    """
    import_extra("pandas", "tables", "The frame of noise")
    level = check_number("confidence", confidence, above=0)
    if level >= 1:
        raise ValueError(f"confidence must be below 1, got {confidence!r}.")
    if options.get("mode", "default") == "fast":
        raise ValueError("mode='fast' gives no probabilities, which the estimates need; leave it.")
    return noise_frame(audit_tags(X, Y, **options), confidence=level)


def noise_frame(audit: TagAudit, *, confidence: float = 0.9) -> Frame:
    """Return the frame of `estimate_noise` of an audit in default mode.

    Parameters
    ----------
    audit : TagAudit
        The audit.
    confidence : float, default=0.9
        Of each interval.

    Returns
    -------
    pandas.DataFrame
        The frame.
    """
    pandas = import_extra("pandas", "tables", "The frame of noise")
    Y = audit.tags.Y
    found = label_noise(audit.probability, Y, confidence)
    columns: Settings = {
        "label": list(audit.tags.names),
        "n_given": (Y == 1).sum(axis=0),
    }
    for kind, estimate, high in (
        ("wrong", found.wrong, found.wrong_high),
        ("missing", found.missing, found.missing_high),
    ):
        columns[kind] = estimate
        columns[f"{kind}_low"] = np.zeros(len(high))
        columns[f"{kind}_high"] = high
        columns[f"{kind}_told"] = high <= _TELLS
    return pandas.DataFrame(columns)


_ORDERS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def find_label_issues(
    labels: MatrixLike, pred_probs: MatrixLike, *, return_indices_ranked_by: str | None = None
) -> BoolArray | IndexArray:
    """Find the rows with a wrong or a missing tag.

    The call is that of ``cleanlab.multilabel_classification.filter.find_label_issues``, but the
    other tags of a row count as evidence, and the rates of the noise are estimated.

    Parameters
    ----------
    labels : list of lists, array-like, sparse matrix or frame
        Tags, as in `find_tag_issues`; cleanlab's lists of class numbers among them.
    pred_probs : array-like of shape (n_samples, n_labels)
        Probabilities by models that did not see the row.
    return_indices_ranked_by : str, optional
        If given, the numbers of these rows are returned, worst first. The names of cleanlab's
        scores are accepted; the order is always that of `get_label_quality_scores`.

    Returns
    -------
    ndarray of bool of shape (n_samples,), or ndarray of int
        Whether each row has a cell that is more likely wrong than right, or the numbers of the
        rows.
    """
    if return_indices_ranked_by not in (None, *_ORDERS):
        raise ValueError(
            f"return_indices_ranked_by={return_indices_ranked_by!r} must be None or one of "
            f"{', '.join(_ORDERS)}."
        )
    audit = audit_tags(None, labels, pred_probs=pred_probs)
    found = np.asarray(audit.likely.any(axis=1))
    if return_indices_ranked_by is None:
        return found
    order = np.argsort(audit.row_quality, kind="stable")
    return np.asarray(order[found[order]])


def get_label_quality_scores(labels: MatrixLike, pred_probs: MatrixLike) -> FloatArray:
    """Return the quality of each row in [0, 1], low if doubtful; NaN if nothing is known of it.

    Parameters
    ----------
    labels, pred_probs
        As in `find_label_issues`.

    Returns
    -------
    ndarray of shape (n_samples,)
        The probability that no tag of the row is wrong or missing.
    """
    return audit_tags(None, labels, pred_probs=pred_probs).row_quality


def get_label_quality_scores_per_class(labels: MatrixLike, pred_probs: MatrixLike) -> FloatArray:
    """Return the quality of each cell in [0, 1], low if doubtful; NaN in unknown cells.

    Parameters
    ----------
    labels, pred_probs
        As in `find_label_issues`.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The probability that the cell is right.
    """
    return audit_tags(None, labels, pred_probs=pred_probs).quality
