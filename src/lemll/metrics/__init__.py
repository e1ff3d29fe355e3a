"""Metrics of multi-label predictions and of label distributions, and their scorers.

**Multi-label**: :func:`hamming_loss` of 0/1 predictions; :func:`ranking_loss`, :func:`one_error`,
:func:`coverage` and :func:`average_precision` of scores. **Distribution**: :func:`chebyshev`,
:func:`clark`, :func:`canberra`, :func:`kl_divergence`, :func:`cosine`, :func:`intersection`, and
:func:`pair_order` of the labels that a row has, or has not. All of these are means over rows. With
``average=False`` they return one value per row. **Decisions**:
:func:`micro_f1`, :func:`macro_f1`, :func:`example_f1`, :func:`subset_accuracy`,
:func:`micro_precision`, :func:`macro_precision`, :func:`micro_recall` and :func:`macro_recall` of
0/1 predictions; :func:`label_figures` gives precision, recall and F1 of each label. **Scores**:
:func:`macro_auc`, :func:`micro_auc`, :func:`label_auc` and :func:`precision_at_k`.
**Probabilities**: :func:`log_loss`, :func:`brier_score` and
:func:`calibration_error`. :data:`METRICS` lists those with one figure and no further
argument, with their direction.
:func:`get_scorer` returns the scorer of a metric, for the model selection of scikit-learn.

Notes
-----
The definitions of the ranking metrics do not say how to treat equal scores. They also divide by
zero if a row has no relevant label (*empty*) or only relevant labels (*full*). Published code
treats these cases in different ways, so values can be compared only under one convention. For this
reason these metrics have the following options:

``convention``
    The name of a complete set of choices. ``"paper"``, the default, is that of the LEMLL paper.
    ``"lamda"`` is the MATLAB code of the LAMDA group (ML-kNN, LIFT). ``"levi"`` is the MATLAB code
    of the label-enhancement papers GLLE and LEVI. ``"mulan"`` is the Java library Mulan.
    ``"sklearn"`` is scikit-learn, which does not have a one-error.
``ties``
    ``"pessimistic"``: irrelevant labels come before relevant labels with the same score, and in
    average precision all of them share the last rank. ``"optimistic"``: relevant labels come
    first. ``"first"``: the lower label index comes first. ``"last"``: the higher label index comes
    first.
``empty``, ``full``
    ``"skip"`` leaves such rows out of the mean. ``"count"`` keeps them, with the value that each
    function documents. If all rows are skipped, a ValueError is raised.
``unit``
    Only for coverage: ``"fraction"``, ``"steps"`` or ``"depth"``.

An option given by the caller overrides the value of the convention:

=================  ===========  ===========  ===========  ===========  ===========  ===========
metric             option       paper        lamda        levi         mulan        sklearn
=================  ===========  ===========  ===========  ===========  ===========  ===========
ranking loss       ties         pessimistic  pessimistic  pessimistic  last         pessimistic
ranking loss       empty, full  skip         skip         skip         count        count
one-error          ties         optimistic   optimistic   optimistic   last         undefined
one-error          empty, full  skip         skip         skip         count        undefined
coverage           ties         pessimistic  last         last         last         pessimistic
coverage           empty        skip         depth_zero   depth_zero   count        count
coverage           unit         fraction     steps        fraction     steps        depth
average precision  ties         pessimistic  last         pessimistic  last         pessimistic
average precision  empty        skip         skip         skip         skip         count
average precision  full         skip         skip         skip         count        count
=================  ===========  ===========  ===========  ===========  ===========  ===========

The distribution metrics treat zeros as follows. In Clark and Canberra, a term 0/0 counts as 0. In
the Kullback-Leibler divergence, both arguments are clipped from below at machine epsilon. The
tables of the paper contain the divergence KL(recovered || true). :data:`METRICS` and the scorers
call it ``"kl_divergence_pred_true"``; ``"kl_divergence"`` is the other direction.
"""

from lemll.metrics.decisions import (
    brier_score,
    calibration_error,
    example_f1,
    label_figures,
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
    pair_order,
)
from lemll.metrics.multilabel import (
    average_precision,
    coverage,
    hamming_loss,
    one_error,
    ranking_loss,
)
from lemll.metrics.ranked import label_auc, macro_auc, micro_auc, precision_at_k
from lemll.metrics.scorers import MetricScorer, get_scorer, scorer_names
from lemll.metrics.table import METRICS, Metric

__all__ = [
    "METRICS",
    "Metric",
    "MetricScorer",
    "average_precision",
    "brier_score",
    "calibration_error",
    "canberra",
    "chebyshev",
    "clark",
    "cosine",
    "coverage",
    "example_f1",
    "get_scorer",
    "hamming_loss",
    "intersection",
    "kl_divergence",
    "label_auc",
    "label_figures",
    "log_loss",
    "macro_auc",
    "macro_f1",
    "macro_precision",
    "macro_recall",
    "micro_auc",
    "micro_f1",
    "micro_precision",
    "micro_recall",
    "one_error",
    "pair_order",
    "precision_at_k",
    "ranking_loss",
    "scorer_names",
    "subset_accuracy",
]
