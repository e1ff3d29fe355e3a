"""Pictures of models and audits with matplotlib, after the Display convention of scikit-learn.

Each display has ``from_estimator`` or ``from_predictions``, takes ``ax=``, and keeps the axes as
``ax_``, the figure as ``figure_`` and what it draws as attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.special import expit

from lemll._types import BoolArray, Estimator, FloatArray, IndexArray, MatrixLike
from lemll._validation import check_whole, unknown_name
from lemll.exceptions import LemllError, import_extra
from lemll.metrics import calibration_error, label_figures

__all__ = [
    "AuditDisplay",
    "ContributionsDisplay",
    "DegreesDisplay",
    "LabelFiguresDisplay",
    "ReliabilityDisplay",
    "ThresholdDisplay",
]

# matplotlib is imported when something is drawn.
Axes: TypeAlias = Any
_BLUE, _ORANGE, _GREY = "#2a6db0", "#d8701c", "#8a8f98"
_FIGURES = ("precision", "recall", "f1")
# Colours tell this number of labels apart.
_MOST_COLOURS = 9


@dataclass(kw_only=True)
class _Display:
    """What all displays have: axes and a figure, once they are drawn."""

    ax_: Axes = field(default=None, init=False, repr=False)
    figure_: Axes = field(default=None, init=False, repr=False)

    def plot(self, ax: Axes = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        display
            The display, with `ax_` and `figure_`.
        """
        if ax is None:
            ax = import_extra("matplotlib.pyplot", "plots", "Drawing").subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


def _names(given: Sequence[str] | None, source: object, n_labels: int) -> tuple[str, ...]:
    """Return the names of the labels: those given, those of a frame or model, or numbers."""
    found: Any = given
    for attribute in ("columns", "label_names_"):
        found = getattr(source, attribute, None) if found is None else found
    names = tuple(map(str, range(n_labels) if found is None else found))
    if len(names) != n_labels:
        raise ValueError(
            f"label_names has {len(names)} names, but there are {n_labels} labels; give one per "
            "label."
        )
    return names


def _matrix(name: str, values: MatrixLike) -> FloatArray:
    matrix = np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have rows and labels, got {matrix.ndim} dimensions.")
    return matrix


def _place(label: str | int, names: Sequence[str]) -> int:
    if isinstance(label, str):
        if label not in names:
            raise ValueError(unknown_name("label", label, names))
        return names.index(label)
    place = check_whole("label", label, least=0)
    if place >= len(names):
        raise ValueError(f"label must be a name or below {len(names)}, got {place}.")
    return place


@dataclass(kw_only=True)
class ReliabilityDisplay(_Display):
    """Are the probabilities right? Of the cells with a probability near .7, 70 % should be true.

    Attributes
    ----------
    probability, share : ndarray of shape (n_bins,)
        Mean probability, and share of relevant cells, of each bin that holds any.
    cells : ndarray of shape (n_bins,)
        Number of cells in the bin.
    error : float
        `lemll.metrics.calibration_error`.

    Examples
    --------
    >>> from lemll.plots import ReliabilityDisplay
    >>> shown = ReliabilityDisplay.from_predictions([[1, 0], [0, 1]], [[0.9, 0.2], [0.2, 0.8]])
    >>> shown.share.tolist(), shown.cells.tolist()
    ([0.0, 1.0, 1.0], [2, 1, 1])
    """

    probability: FloatArray
    share: FloatArray
    cells: IndexArray
    error: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: MatrixLike,
        *,
        n_bins: int = 10,
        ax: Axes = None,
    ) -> Self:
        """Draw the probabilities of an estimator for rows that it has not seen.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with `predict_proba`.
        X, y : array-like
            Features and labels (0/1, NaN in unknown cells).
        n_bins : int, default=10
            Number of bins of equal width.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        if not hasattr(estimator, "predict_proba"):
            raise LemllError(
                f"{type(estimator).__name__} has no predict_proba here; fit it with "
                "probability=True, or use TagPredictor"
            )
        return cls.from_predictions(y, estimator.predict_proba(X), n_bins=n_bins, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: MatrixLike, y_proba: MatrixLike, *, n_bins: int = 10, ax: Axes = None
    ) -> Self:
        """Draw given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples, n_labels)
            Labels, 0/1; unknown cells (NaN) are skipped.
        y_proba : array-like of shape (n_samples, n_labels)
            Probabilities.
        n_bins : int, default=10
            Number of bins of equal width.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        error = calibration_error(y_true, y_proba, n_bins=n_bins)  # checks both
        Y, P = _matrix("y_true", y_true), _matrix("y_proba", y_proba)
        known = ~np.isnan(Y)
        place = np.minimum((P[known] * n_bins).astype(np.intp), n_bins - 1)
        counts = np.bincount(place, minlength=n_bins)
        held = counts > 0
        means = [np.bincount(place, M[known], n_bins)[held] / counts[held] for M in (P, Y)]
        return cls(
            probability=means[0], share=means[1], cells=counts[held], error=float(error)
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=_GREY, linewidth=1, linestyle="--")
        ax.plot(self.probability, self.share, color=_BLUE)
        sizes = 12 + 120 * self.cells / self.cells.max()
        ax.scatter(self.probability, self.share, s=sizes, color=_BLUE)
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            xlabel="predicted probability",
            ylabel="share of relevant cells",
            title=f"calibration error {self.error:.3f}",
        )


@dataclass(kw_only=True)
class ThresholdDisplay(_Display):
    """What a threshold does for one label: precision, recall and F1 at every possible value.

    Attributes
    ----------
    label : str
        The label.
    thresholds, precision, recall, f1 : ndarray
        The curve. A tag is given if its score is above the threshold.
    chosen : float or None
        The threshold of the model.
    scale : str
        What the thresholds are compared with.
    """

    label: str
    thresholds: FloatArray
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    chosen: float | None
    scale: str = "probability"

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: MatrixLike,
        *,
        label: str | int,
        ax: Axes = None,
    ) -> Self:
        """Draw the scores of an estimator for rows that it has not seen, and its threshold.

        Parameters
        ----------
        estimator : estimator
            A fitted learner of lemll.
        X, y : array-like
            Features and labels.
        label : str or int
            The name or the number of the label.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        ThresholdDisplay
            The display.
        """
        scores, thresholds = (
            _matrix("scores", estimator.decision_function(X)),
            estimator.thresholds_,
        )
        scale = "score"
        # The scores of some learners are log-odds, and people think in probabilities.
        if hasattr(estimator, "predict_proba") and np.allclose(
            expit(scores), np.asarray(estimator.predict_proba(X))
        ):
            scores, thresholds, scale = expit(scores), expit(thresholds), "probability"
        names = _names(None, y if hasattr(y, "columns") else estimator, scores.shape[1])
        chosen = float(thresholds[_place(label, names)])
        return cls.from_predictions(
            y, scores, label=label, label_names=names, chosen=chosen, scale=scale, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: MatrixLike,
        y_score: MatrixLike,
        *,
        label: str | int,
        label_names: Sequence[str] | None = None,
        chosen: float | None = None,
        scale: str = "probability",
        ax: Axes = None,
    ) -> Self:
        """Draw given scores.

        Parameters
        ----------
        y_true, y_score : array-like of shape (n_samples, n_labels)
            Labels (0/1, NaN if unknown) and scores.
        label : str or int
            The name or the number of the label.
        label_names : sequence of str, optional
            The names; by default the columns of a frame, or numbers.
        chosen : float, optional
            A threshold to mark.
        scale : str, default="probability"
            The name of the scores.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        ThresholdDisplay
            The display.
        """
        Y, S = _matrix("y_true", y_true), _matrix("y_score", y_score)
        names = _names(label_names, y_true, Y.shape[1])
        j = _place(label, names)
        known = ~np.isnan(Y[:, j])
        y, score = Y[known, j], S[known, j]
        if not y.any():
            raise ValueError(f"label {names[j]!r} has no relevant row; there is nothing to draw.")
        order = np.argsort(score, kind="stable")
        # A threshold below each different score; the rows above it are chosen.
        first = np.flatnonzero(np.diff(score[order], prepend=-np.inf))
        hits = np.cumsum(y[order][::-1])[::-1][first]
        chosen_rows = len(y) - first
        precision, recall = hits / chosen_rows, hits / y.sum()
        f1 = 2 * hits / (chosen_rows + y.sum())
        return cls(
            label=names[j],
            thresholds=np.nextafter(score[order][first], -np.inf),
            precision=precision,
            recall=recall,
            f1=f1,
            chosen=chosen,
            scale=scale,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        lines = {"precision": _BLUE, "recall": _ORANGE, "f1": "black"}
        for name, colour in lines.items():
            ax.step(self.thresholds, getattr(self, name), color=colour, label=name, where="post")
        if self.chosen is not None:
            ax.axvline(self.chosen, color=_GREY, linestyle="--", label="threshold of the model")
        ax.set(xlabel=f"threshold ({self.scale})", ylim=(0, 1.02), title=self.label)
        ax.legend()


@dataclass(kw_only=True)
class LabelFiguresDisplay(_Display):
    """Precision, recall or F1 of each label, the most frequent label first.

    Attributes
    ----------
    label_names : tuple of str
        The labels in the order of the bars.
    values : ndarray of shape (n_labels,)
        The figures; NaN where there is none.
    relevant : ndarray of shape (n_labels,)
        Number of rows with the label.
    measure : str
        What is drawn.
    """

    label_names: tuple[str, ...]
    values: FloatArray
    relevant: IndexArray
    measure: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        y: MatrixLike,
        *,
        measure: str = "f1",
        most: int = 30,
        ax: Axes = None,
    ) -> Self:
        """Draw the figures of an estimator on rows that it has not seen.

        Parameters
        ----------
        estimator : estimator
            A fitted learner.
        X, y : array-like
            Features and labels.
        measure : {"f1", "precision", "recall"}, default="f1"
            The figure.
        most : int, default=30
            Number of labels to draw, the most frequent ones.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        LabelFiguresDisplay
            The display.
        """
        predicted = estimator.predict(X)
        source = y if hasattr(y, "columns") else estimator
        names = _names(None, source, np.shape(predicted)[1])
        return cls.from_predictions(
            y, predicted, label_names=names, measure=measure, most=most, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: MatrixLike,
        y_pred: MatrixLike,
        *,
        label_names: Sequence[str] | None = None,
        measure: str = "f1",
        most: int = 30,
        ax: Axes = None,
    ) -> Self:
        """Draw the figures of given predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples, n_labels)
            True and predicted labels, 0/1; NaN in unknown cells of y_true.
        label_names : sequence of str, optional
            The names; by default the columns of a frame, or numbers.
        measure : {"f1", "precision", "recall"}, default="f1"
            The figure.
        most : int, default=30
            Number of labels to draw, the most frequent ones.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        LabelFiguresDisplay
            The display.
        """
        if measure not in _FIGURES:
            raise ValueError(unknown_name("measure", measure, _FIGURES))
        most = check_whole("most", most, least=1)
        found = label_figures(y_true, y_pred)
        names = _names(label_names, y_true, len(found.relevant))
        order = np.argsort(-found.relevant, kind="stable")[:most]
        return cls(
            label_names=tuple(names[j] for j in order),
            values=getattr(found, measure)[order],
            relevant=found.relevant[order],
            measure=measure,
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        places = np.arange(len(self.values))
        ax.barh(places, np.nan_to_num(self.values), color=_BLUE)
        pairs = zip(self.label_names, self.relevant, strict=True)
        ax.set_yticks(places, [f"{name} ({count:g})" for name, count in pairs])
        ax.invert_yaxis()
        ax.set(xlim=(0, 1), xlabel=self.measure, ylabel="label (rows that have it)")


@dataclass(kw_only=True)
class DegreesDisplay(_Display):
    """How much each label matters in a few rows: one bar per row, divided among its labels.

    Attributes
    ----------
    degrees : ndarray of shape (n_rows, n_shown)
        The shares of the labels that are drawn by name. The rest belongs to the others.
    label_names : tuple of str
        These labels.
    rows : tuple of int
        The rows.
    """

    degrees: FloatArray
    label_names: tuple[str, ...]
    rows: tuple[int, ...]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike = None,
        *,
        rows: Sequence[int] = range(10),
        ax: Axes = None,
    ) -> Self:
        """Draw the label distribution of training rows, or of other rows.

        Parameters
        ----------
        estimator : estimator
            A fitted LEMLL, or a fitted enhancer.
        X : array-like, optional
            Rows to predict; by default the training rows.
        rows : sequence of int, default=range(10)
            Which of them are drawn.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        DegreesDisplay
            The display.
        """
        if X is not None:
            degrees = estimator.predict_distribution(X)
        elif hasattr(estimator, "label_distribution_"):
            degrees = estimator.label_distribution_
        else:
            raise LemllError(
                f"{type(estimator).__name__} has no label_distribution_; fit LEMLL or an enhancer"
            )
        names = getattr(estimator, "label_names_", None)
        return cls.from_predictions(degrees, label_names=names, rows=rows, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        degrees: MatrixLike,
        *,
        label_names: Sequence[str] | None = None,
        rows: Sequence[int] = range(10),
        ax: Axes = None,
    ) -> Self:
        """Draw given degrees.

        Parameters
        ----------
        degrees : array-like of shape (n_samples, n_labels)
            Degrees of each row; they sum to 1.
        label_names : sequence of str, optional
            The names; by default the columns of a frame, or numbers.
        rows : sequence of int, default=range(10)
            Which rows are drawn; those beyond the last one are left out.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        DegreesDisplay
            The display.
        """
        D = _matrix("degrees", degrees)
        names = _names(label_names, degrees, D.shape[1])
        chosen = tuple(row for row in rows if 0 <= row < len(D))
        if not chosen:
            raise ValueError(f"rows names none of the {len(D)} rows; give numbers from 0.")
        D = D[list(chosen)]
        shown = np.sort(np.argsort(-D.mean(axis=0), kind="stable")[:_MOST_COLOURS])
        return cls(
            degrees=D[:, shown], label_names=tuple(names[j] for j in shown), rows=chosen
        ).plot(ax)

    def _draw(self, ax: Axes) -> None:
        places, left = np.arange(len(self.rows)), np.zeros(len(self.rows))
        for j, name in enumerate(self.label_names):
            ax.barh(places, self.degrees[:, j], left=left, label=name, color=f"C{j}")
            left = left + self.degrees[:, j]
        if (left < 1 - 1e-9).any():
            ax.barh(places, 1 - left, left=left, label="other labels", color="#dddddd")
        ax.set_yticks(places, [str(row) for row in self.rows])
        ax.invert_yaxis()
        ax.set(xlim=(0, 1), xlabel="degree", ylabel="row")
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


@dataclass(kw_only=True)
class AuditDisplay(_Display):
    """The most doubtful tags of an audit: one bar per cell, given tags and missing ones apart.

    Attributes
    ----------
    cells : list of str
        Row and label of each cell.
    scores : ndarray
        How doubtful it is.
    wrong : ndarray of bool
        Whether the tag is given and looks wrong; otherwise it looks missing.
    """

    cells: list[str]
    scores: FloatArray
    wrong: BoolArray

    @classmethod
    def from_issues(cls, issues: Any, *, most: int = 20, ax: Axes = None) -> Self:
        """Draw the frame of `lemll.audit.find_tag_issues`.

        Parameters
        ----------
        issues : pandas.DataFrame
            The frame.
        most : int, default=20
            Number of cells to draw.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        AuditDisplay
            The display.
        """
        shown = issues.head(check_whole("most", most, least=1))
        if not len(shown):
            raise ValueError("issues lists no cell; there is nothing to draw.")
        cells = [f"{label}, row {row}" for row, label in zip(shown.row, shown.label, strict=True)]
        return cls(
            cells=cells,
            scores=shown["score"].to_numpy(dtype=float),
            wrong=(shown["kind"] == "wrong").to_numpy(),
        ).plot(ax)

    @classmethod
    def from_predictions(
        cls, y_true: MatrixLike, y_proba: MatrixLike, *, most: int = 20, ax: Axes = None
    ) -> Self:
        """Draw the audit of given tags by out-of-fold probabilities of any model.

        Parameters
        ----------
        y_true : array-like of shape (n_samples, n_labels)
            The given tags.
        y_proba : array-like of shape (n_samples, n_labels)
            Probabilities by models that did not see the row.
        most : int, default=20
            Number of cells to draw.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        AuditDisplay
            The display.
        """
        from lemll.audit import find_tag_issues

        return cls.from_issues(
            find_tag_issues(None, y_true, pred_probs=y_proba, limit=most), most=most, ax=ax
        )

    def _draw(self, ax: Axes) -> None:
        places = np.arange(len(self.scores))
        for kind, colour, title in (
            (True, _ORANGE, "looks wrong"),
            (False, _BLUE, "looks missing"),
        ):
            of = self.wrong == kind
            ax.barh(places[of], self.scores[of], color=colour, label=title)
        ax.set_yticks(places, self.cells)
        ax.invert_yaxis()
        ax.set(xlabel="how doubtful")
        ax.legend()


@dataclass(kw_only=True)
class ContributionsDisplay(_Display):
    """The share of each member in the blend of a TagPredictor.

    Attributes
    ----------
    contributions : dict of str to float
        The shares; they sum to 1.
    """

    contributions: Mapping[str, float]

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes = None) -> Self:
        """Draw the members of a fitted TagPredictor.

        Parameters
        ----------
        estimator : TagPredictor
            The fitted estimator.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on.

        Returns
        -------
        ContributionsDisplay
            The display.
        """
        if not hasattr(estimator, "contributions_"):
            raise LemllError(
                f"{type(estimator).__name__} has no contributions_; give a fitted TagPredictor"
            )
        return cls(contributions=dict(estimator.contributions_)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        ordered = sorted(self.contributions.items(), key=lambda item: -item[1])
        bars = ax.barh([name for name, _ in ordered], [100 * share for _, share in ordered])
        ax.bar_label(bars, fmt="%.0f %%", padding=3)
        ax.invert_yaxis()
        ax.set(xlim=(0, 112), xlabel="share of the weights, %")
