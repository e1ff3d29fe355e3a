"""The table of all metrics, with the type of prediction and the direction of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from lemll.metrics import decisions, distribution, multilabel, ranked


@dataclass(frozen=True)
class Metric:
    """One metric: its function, and the information that tables and scorers need.

    A call of this object calls the function.

    Attributes
    ----------
    name : str
        Its key in ``METRICS``.
    title : str
        Its name in a table.
    function : callable
        ``function(truth, prediction, **options)``, the mean over rows.
    prediction : {"labels", "scores", "probabilities", "distribution"}
        What it compares with the truth: 0/1 labels, scores to rank, one probability per label, or
        a label distribution. The truth is a distribution in the last case, 0/1 labels in the
        others.
    greater_is_better : bool
        Its direction.
    in_paper : bool
        Whether the tables of the LEMLL paper report it.

    Examples
    --------
    >>> from lemll.metrics import METRICS
    >>> metric = METRICS["ranking_loss"]
    >>> f"{metric.title} {metric.arrow}", metric.kind
    ('Ranking loss ↓', 'multilabel')
    >>> metric([[1, 0, 0]], [[0.5, 0.7, 0.1]])
    0.5
    """

    name: str
    title: str
    function: Callable[..., Any]
    prediction: Literal["labels", "scores", "probabilities", "distribution"]
    greater_is_better: bool = False
    in_paper: bool = False

    @property
    def kind(self) -> Literal["multilabel", "distribution"]:
        """The type of the truth: logical labels or a distribution."""
        return "distribution" if self.prediction == "distribution" else "multilabel"

    @property
    def ranks_or_decides(self) -> bool:
        """Whether scores are enough to compute it: it ranks them, or compares them with 0."""
        return self.prediction in ("labels", "scores")

    @property
    def arrow(self) -> Literal["↑", "↓"]:
        """The direction as an arrow for the header of a table."""
        return "↑" if self.greater_is_better else "↓"

    def __call__(self, truth: Any, prediction: Any, **options: Any) -> Any:
        """Measure a prediction."""
        return self.function(truth, prediction, **options)


# The tables of the paper have the second argument of the divergence first.
_KL_PAPER = partial(distribution.kl_divergence, direction="pred_true")
_TABLE = (
    Metric("hamming_loss", "Hamming loss", multilabel.hamming_loss, "labels", in_paper=True),
    Metric("ranking_loss", "Ranking loss", multilabel.ranking_loss, "scores", in_paper=True),
    Metric("one_error", "One-error", multilabel.one_error, "scores", in_paper=True),
    Metric("coverage", "Coverage", multilabel.coverage, "scores", in_paper=True),
    Metric(
        "average_precision", "Average precision", multilabel.average_precision, "scores", True, True
    ),
    Metric("micro_f1", "Micro F1", decisions.micro_f1, "labels", True),
    Metric("macro_f1", "Macro F1", decisions.macro_f1, "labels", True),
    Metric("example_f1", "Example F1", decisions.example_f1, "labels", True),
    Metric("subset_accuracy", "Subset accuracy", decisions.subset_accuracy, "labels", True),
    Metric("micro_precision", "Micro precision", decisions.micro_precision, "labels", True),
    Metric("macro_precision", "Macro precision", decisions.macro_precision, "labels", True),
    Metric("micro_recall", "Micro recall", decisions.micro_recall, "labels", True),
    Metric("macro_recall", "Macro recall", decisions.macro_recall, "labels", True),
    Metric("macro_auc", "Macro AUC", ranked.macro_auc, "scores", True),
    Metric("micro_auc", "Micro AUC", ranked.micro_auc, "scores", True),
    Metric("precision_at_1", "Precision at 1", partial(ranked.precision_at_k, k=1), "scores", True),
    Metric("precision_at_3", "Precision at 3", partial(ranked.precision_at_k, k=3), "scores", True),
    Metric("log_loss", "Log loss", decisions.log_loss, "probabilities"),
    Metric("brier_score", "Brier score", decisions.brier_score, "probabilities"),
    Metric("calibration_error", "Calibration error", decisions.calibration_error, "probabilities"),
    Metric("chebyshev", "Chebyshev", distribution.chebyshev, "distribution", in_paper=True),
    Metric("clark", "Clark", distribution.clark, "distribution"),
    Metric("canberra", "Canberra", distribution.canberra, "distribution"),
    Metric("kl_divergence", "K-L", distribution.kl_divergence, "distribution"),
    Metric("kl_divergence_pred_true", "K-L (pred‖true)", _KL_PAPER, "distribution", in_paper=True),
    Metric("cosine", "Cosine", distribution.cosine, "distribution", True, True),
    Metric("intersection", "Intersection", distribution.intersection, "distribution", True),
)
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})
"""All metrics by name. Those of the paper are in the order of its tables."""
