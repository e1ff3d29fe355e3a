"""Metrics of multi-label predictions and of label distributions, and scorers made of them.

**Multi-label**: :func:`hamming_loss` of 0/1 predictions; :func:`ranking_loss`, :func:`one_error`,
:func:`coverage` and :func:`average_precision` of scores. **Distribution**: :func:`chebyshev`,
:func:`clark`, :func:`canberra`, :func:`kl_divergence`, :func:`cosine`, :func:`intersection`. All
are means over rows; ``average=False`` gives the value of every row. :data:`METRICS` lists them
with their direction, :func:`get_scorer` makes of each a scorer for scikit-learn's model selection.

Notes
-----
The definitions of the ranking metrics say nothing of equal scores, and divide by zero where a row
has no relevant label (*empty*) or no other (*full*). Published code settles this in different
ways, so values are comparable only under one convention. These metrics therefore take:

``convention``
    A whole set of choices by name. ``"paper"``, the default, is that of the LEMLL paper;
    ``"lamda"`` the MATLAB code of the LAMDA group (ML-kNN, LIFT); ``"levi"`` the MATLAB code of
    the label-enhancement papers GLLE and LEVI; ``"mulan"`` the Java library; ``"sklearn"``
    scikit-learn, which has no one-error.
``ties``
    ``"pessimistic"``: irrelevant labels come before relevant ones of the same score, and in
    average precision all of them share the last rank. ``"optimistic"``: relevant ones come
    first. ``"first"``, ``"last"``: the lower, the higher label index comes first.
``empty``, ``full``
    ``"skip"`` leaves such rows out of the mean; ``"count"`` keeps them, with the value that each
    function documents. Where every row is skipped there is no mean, and a ValueError says so.
``unit``
    Of coverage only: ``"fraction"``, ``"steps"`` or ``"depth"``.

An option that is given overrides that of the convention:

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

The distribution metrics meet zeros: in Clark and Canberra a term 0/0 counts as 0, and in the
Kullback-Leibler divergence both arguments are clipped from below at machine epsilon. The paper's
tables hold the divergence of the recovered from the true distribution, in :data:`METRICS` and
among the scorers ``"kl_divergence_pred_true"``; ``"kl_divergence"`` is the other direction.
"""

from __future__ import annotations

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
from lemll.metrics.scorers import MetricScorer, get_scorer, label_scores, scorer_names
from lemll.metrics.table import METRICS, Metric

__all__ = [
    "METRICS",
    "Metric",
    "MetricScorer",
    "average_precision",
    "canberra",
    "chebyshev",
    "clark",
    "cosine",
    "coverage",
    "get_scorer",
    "hamming_loss",
    "intersection",
    "kl_divergence",
    "label_scores",
    "one_error",
    "ranking_loss",
    "scorer_names",
]
