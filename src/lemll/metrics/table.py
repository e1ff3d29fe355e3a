"""The table of all metrics, with the type of prediction and the direction of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from lemll.metrics.decisions import (
    brier_score,
    calibration_error,
    example_f1,
    log_loss,
    macro_f1,
    macro_precision,
    macro_recall,
    micro_f1,
    micro_precision,
    micro_recall,
    subset_accuracy,
)
from lemll.metrics.distribution import (
    canberra,
    chebyshev,
    clark,
    cosine,
    intersection,
    kl_divergence,
)
from lemll.metrics.multilabel import (
    average_precision,
    coverage,
    hamming_loss,
    one_error,
    ranking_loss,
)
from lemll.metrics.ranked import macro_auc, micro_auc, precision_at_k


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
    greater_is_better: bool
    in_paper: bool

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


_PRECISION_AT_1 = partial(precision_at_k, k=1)
_PRECISION_AT_3 = partial(precision_at_k, k=3)
_KL_PAPER = partial(kl_divergence, direction="pred_true")

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("hamming_loss", "Hamming loss", hamming_loss, "labels", False, True),
            Metric("ranking_loss", "Ranking loss", ranking_loss, "scores", False, True),
            Metric("one_error", "One-error", one_error, "scores", False, True),
            Metric("coverage", "Coverage", coverage, "scores", False, True),
            Metric(
                "average_precision", "Average precision", average_precision, "scores", True, True
            ),
            Metric("micro_f1", "Micro F1", micro_f1, "labels", True, False),
            Metric("macro_f1", "Macro F1", macro_f1, "labels", True, False),
            Metric("example_f1", "Example F1", example_f1, "labels", True, False),
            Metric("subset_accuracy", "Subset accuracy", subset_accuracy, "labels", True, False),
            Metric("micro_precision", "Micro precision", micro_precision, "labels", True, False),
            Metric("macro_precision", "Macro precision", macro_precision, "labels", True, False),
            Metric("micro_recall", "Micro recall", micro_recall, "labels", True, False),
            Metric("macro_recall", "Macro recall", macro_recall, "labels", True, False),
            Metric("macro_auc", "Macro AUC", macro_auc, "scores", True, False),
            Metric("micro_auc", "Micro AUC", micro_auc, "scores", True, False),
            Metric("precision_at_1", "Precision at 1", _PRECISION_AT_1, "scores", True, False),
            Metric("precision_at_3", "Precision at 3", _PRECISION_AT_3, "scores", True, False),
            Metric("log_loss", "Log loss", log_loss, "probabilities", False, False),
            Metric("brier_score", "Brier score", brier_score, "probabilities", False, False),
            Metric(
                "calibration_error",
                "Calibration error",
                calibration_error,
                "probabilities",
                False,
                False,
            ),
            Metric("chebyshev", "Chebyshev", chebyshev, "distribution", False, True),
            Metric("clark", "Clark", clark, "distribution", False, False),
            Metric("canberra", "Canberra", canberra, "distribution", False, False),
            Metric("kl_divergence", "K-L", kl_divergence, "distribution", False, False),
            Metric(
                "kl_divergence_pred_true",
                "K-L (pred‖true)",
                _KL_PAPER,
                "distribution",
                False,
                True,
            ),
            Metric("cosine", "Cosine", cosine, "distribution", True, True),
            Metric("intersection", "Intersection", intersection, "distribution", True, False),
        )
    }
)
"""All metrics by name. Those of the paper are in the order of its tables."""
