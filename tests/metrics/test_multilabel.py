"""The five multi-label metrics against scikit-learn, a slow oracle, and cases worked by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import metrics as skm
from support import Peak

from lemll.metrics import average_precision, coverage, hamming_loss, one_error, ranking_loss

RANKING = {
    "ranking_loss": ranking_loss,
    "one_error": one_error,
    "coverage": coverage,
    "average_precision": average_precision,
}
TIES = ("pessimistic", "optimistic", "first", "last")


# --- The oracle: one row at a time, from the definitions -------------------------------------


def measure_order(metric, relevant, order):
    """Value of a strict ranking, given as label indices, best first; coverage in depth."""
    ranks = {label: rank for rank, label in enumerate(order, start=1)}
    irrelevant = set(order) - relevant
    if metric == "ranking_loss":
        wrong = sum(ranks[k] < ranks[j] for j in relevant for k in irrelevant)
        return wrong / (len(relevant) * len(irrelevant))
    if metric == "one_error":
        return float(order[0] not in relevant)
    if metric == "coverage":
        return float(max(ranks[j] for j in relevant))
    return np.mean([sum(ranks[k] <= ranks[j] for k in relevant) / ranks[j] for j in relevant])


def oracle_row(metric, y, s, ties):
    """Value of a row that is neither empty nor (coverage apart) full."""
    n_labels = len(s)
    relevant = {j for j in range(n_labels) if y[j]}
    if ties == "first":
        return measure_order(metric, relevant, sorted(range(n_labels), key=lambda j: -s[j]))
    if ties == "last":  # ascending stable sort, read from its end
        return measure_order(metric, relevant, sorted(range(n_labels), key=lambda j: s[j])[::-1])
    if ties == "pessimistic" and metric == "average_precision":
        return np.mean(
            [
                sum(s[k] >= s[j] for k in relevant) / sum(s[k] >= s[j] for k in range(n_labels))
                for j in relevant
            ]
        )
    orders = [
        order
        for order in itertools.permutations(range(n_labels))
        if all(s[a] >= s[b] for a, b in itertools.pairwise(order))
    ]
    values = [measure_order(metric, relevant, order) for order in orders]
    lower_is_better = metric != "average_precision"
    return min(values) if (ties == "optimistic") == lower_is_better else max(values)


# Of each published convention: tie rule, value of an empty row, value of a full row. None skips
# the row, "as is" measures it like any other. Written down from the code of each package.
COLUMNS = {
    ("paper", "ranking_loss"): ("pessimistic", None, None),
    ("paper", "one_error"): ("optimistic", None, None),
    ("paper", "coverage"): ("pessimistic", None, "as is"),
    ("paper", "average_precision"): ("pessimistic", None, None),
    ("lamda", "ranking_loss"): ("pessimistic", None, None),
    ("lamda", "one_error"): ("optimistic", None, None),
    ("lamda", "coverage"): ("last", -1, "as is"),
    ("lamda", "average_precision"): ("last", None, None),
    ("levi", "ranking_loss"): ("pessimistic", None, None),
    ("levi", "one_error"): ("optimistic", None, None),
    ("levi", "coverage"): ("last", "-1/l", "as is"),
    ("levi", "average_precision"): ("pessimistic", None, None),
    ("mulan", "ranking_loss"): ("last", 0, 0),
    ("mulan", "one_error"): ("last", 1, 0),
    ("mulan", "coverage"): ("last", 0, "as is"),
    ("mulan", "average_precision"): ("last", None, 1),
    ("sklearn", "ranking_loss"): ("pessimistic", 0, 0),
    ("sklearn", "coverage"): ("pessimistic", 0, "as is"),
    ("sklearn", "average_precision"): ("pessimistic", 1, 1),
}
UNITS = {
    "paper": lambda depth, n_labels: (depth - 1) / n_labels,
    "lamda": lambda depth, n_labels: depth - 1,
    "levi": lambda depth, n_labels: (depth - 1) / n_labels,
    "mulan": lambda depth, n_labels: depth - 1,
    "sklearn": lambda depth, n_labels: depth,
}


def oracle(convention, metric, Y, scores):
    """Value of every row, NaN where it is skipped."""
    ties, if_empty, if_full = COLUMNS[convention, metric]
    n_labels = Y.shape[1]
    values = []
    for y, s in zip(Y, scores, strict=True):
        special = if_empty if not y.any() else if_full if y.all() else "as is"
        if special is None:
            values.append(np.nan)
        elif special == "-1/l":
            values.append(-1 / n_labels)
        elif special != "as is":
            values.append(special)
        else:
            value = oracle_row(metric, y, s, ties)
            values.append(UNITS[convention](value, n_labels) if metric == "coverage" else value)
    return np.array(values, dtype=float)


@st.composite
def problems(draw, *, distinct=False, min_labels=1, max_labels=5):
    """Labels and scores; few distinct score values, hence many ties, unless distinct."""
    shape = (draw(st.integers(1, 6)), draw(st.integers(min_labels, max_labels)))
    Y = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    if distinct:
        rows = [draw(st.permutations(range(shape[1]))) for _ in range(shape[0])]
        return Y, np.array(rows, dtype=float)
    return Y, draw(hnp.arrays(np.float64, shape, elements=st.sampled_from([-1.5, 0.0, 0.25, 2.0])))


def partial_rows(Y):
    return (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < Y.shape[1])


@pytest.mark.parametrize(("convention", "metric"), COLUMNS)
@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_every_convention_equals_the_oracle(convention, metric, problem):
    Y, scores = problem
    expected = oracle(convention, metric, Y, scores)
    values = RANKING[metric](Y, scores, convention=convention, average=False)
    assert_allclose(values, expected, rtol=1e-13)
    if np.isnan(expected).all():
        with pytest.raises(ValueError, match="no row of Y_true can be measured"):
            RANKING[metric](Y, scores, convention=convention)
    else:
        mean = RANKING[metric](Y, scores, convention=convention)
        assert isinstance(mean, float)
        assert mean == pytest.approx(np.nanmean(expected), rel=1e-13)


@pytest.mark.parametrize("metric", RANKING)
@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_every_tie_rule_equals_the_oracle(metric, ties, problem):
    Y, scores = problem
    options = {"unit": "depth"} if metric == "coverage" else {}
    values = RANKING[metric](Y, scores, ties=ties, average=False, **options)
    rows = partial_rows(Y)
    expected = [oracle_row(metric, y, s, ties) for y, s in zip(Y[rows], scores[rows], strict=True)]
    assert_allclose(values[rows], expected, rtol=1e-13)


@settings(max_examples=200, deadline=None)
@given(problem=problems(min_labels=2, max_labels=8))
def test_the_sklearn_convention_is_scikit_learn(problem):
    Y, scores = problem
    for ours, theirs in (
        (ranking_loss, skm.label_ranking_loss),
        (coverage, skm.coverage_error),
        (average_precision, skm.label_ranking_average_precision_score),
    ):
        assert ours(Y, scores, convention="sklearn") == pytest.approx(theirs(Y, scores), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(problem=problems(min_labels=2), flip=st.randoms(use_true_random=False))
def test_hamming_loss_is_scikit_learns(problem, flip):
    Y, _ = problem
    wrong = np.array([[flip.random() < 0.3 for _ in row] for row in Y])
    predicted = np.where(wrong, 1 - Y, Y)
    assert hamming_loss(Y, predicted) == pytest.approx(skm.hamming_loss(Y, predicted))
    assert_allclose(hamming_loss(Y, predicted, average=False), wrong.mean(axis=1))


# --- Worked by hand ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ties", "loss", "error", "depth", "precision"),
    [
        ("pessimistic", 0.5, 1, 2, 0.5),
        ("optimistic", 0, 0, 1, 1),
        ("first", 0, 0, 1, 1),
        ("last", 0.5, 1, 2, 0.5),
    ],
)
def test_a_tie_at_the_top(ties, loss, error, depth, precision):
    Y, scores = [[1, 0, 0]], [[0.5, 0.5, 0.1]]
    assert ranking_loss(Y, scores, ties=ties) == loss
    assert one_error(Y, scores, ties=ties) == error
    assert coverage(Y, scores, ties=ties, unit="depth") == depth
    assert average_precision(Y, scores, ties=ties) == precision


def test_tied_relevant_labels_share_the_last_rank_in_pessimistic_average_precision():
    # Three labels at one score, two of them relevant: 2 hits at rank 3 for both.
    assert average_precision([[1, 1, 0]], [[0.5, 0.5, 0.5]]) == pytest.approx(2 / 3)
    assert average_precision([[1, 1, 0]], [[0.5, 0.5, 0.5]], ties="optimistic") == 1
    # irrelevant, relevant, relevant: (1/2 + 2/3) / 2
    assert average_precision([[1, 1, 0]], [[0.5, 0.5, 0.5]], ties="last") == pytest.approx(7 / 12)
    # All labels tied at the top are relevant, so even the pessimist sees no error.
    assert one_error([[1, 1, 0]], [[0.5, 0.5, 0.1]], ties="pessimistic") == 0


EMPTY_FULL = [[0, 0, 0], [1, 1, 1], [0, 1, 0]]
EMPTY_FULL_SCORES = [[0.3, 0.2, 0.1], [0.3, 0.2, 0.1], [0.3, 0.2, 0.1]]


@pytest.mark.parametrize(
    ("metric", "convention", "rows"),
    [
        ("ranking_loss", "paper", [np.nan, np.nan, 0.5]),
        ("ranking_loss", "mulan", [0, 0, 0.5]),
        ("ranking_loss", "sklearn", [0, 0, 0.5]),
        ("one_error", "levi", [np.nan, np.nan, 1]),
        ("one_error", "mulan", [1, 0, 1]),
        ("coverage", "paper", [np.nan, 2 / 3, 1 / 3]),
        ("coverage", "lamda", [-1, 2, 1]),
        ("coverage", "levi", [-1 / 3, 2 / 3, 1 / 3]),
        ("coverage", "mulan", [0, 2, 1]),
        ("coverage", "sklearn", [0, 3, 2]),
        ("average_precision", "lamda", [np.nan, np.nan, 0.5]),
        ("average_precision", "mulan", [np.nan, 1, 0.5]),
        ("average_precision", "sklearn", [1, 1, 0.5]),
    ],
)
def test_empty_and_full_rows_by_hand(metric, convention, rows):
    function = RANKING[metric]
    values = function(EMPTY_FULL, EMPTY_FULL_SCORES, convention=convention, average=False)
    assert_allclose(values, rows)
    mean = function(EMPTY_FULL, EMPTY_FULL_SCORES, convention=convention)
    assert mean == pytest.approx(np.nanmean(rows))


def test_an_option_overrides_its_convention_and_only_that():
    values = ranking_loss(EMPTY_FULL, EMPTY_FULL_SCORES, empty="count", average=False)
    assert_allclose(values, [0, np.nan, 0.5])
    values = average_precision(
        EMPTY_FULL, EMPTY_FULL_SCORES, convention="sklearn", full="skip", average=False
    )
    assert_allclose(values, [1, np.nan, 0.5])


def test_infinite_scores_are_ranked():
    scores = [[-np.inf, np.inf, 0.0]]
    assert ranking_loss([[0, 1, 0]], scores) == 0
    assert coverage([[1, 0, 0]], scores, unit="depth") == 3


# --- Invariances ------------------------------------------------------------------------------


# --- Input ------------------------------------------------------------------------------------


def random_problem(n_rows=50, n_labels=12):
    rng = np.random.default_rng(0)
    Y = (rng.random((n_rows, n_labels)) < 0.3).astype(np.uint8)
    return Y, rng.integers(0, 6, size=Y.shape).astype(float)


@pytest.mark.parametrize("metric", RANKING)
@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_matrix, np.ndarray.tolist, bool])
def test_any_container_of_labels_gives_the_same(metric, convert):
    Y, scores = random_problem()
    converted = Y.astype(bool) if convert is bool else convert(Y)
    assert RANKING[metric](converted, scores) == RANKING[metric](Y, scores)
    assert RANKING[metric](Y, sparse.csr_array(scores)) == RANKING[metric](Y, scores)


def test_sparse_labels_in_hamming_loss():
    Y, scores = random_problem()
    predicted = (scores > 3).astype(int)
    expected = hamming_loss(Y, predicted)
    assert hamming_loss(sparse.csr_array(Y), sparse.csr_matrix(predicted)) == expected


@pytest.mark.parametrize("ties", TIES)
def test_blocks_do_not_show_and_callers_arrays_stay(monkeypatch, ties):
    Y, scores = random_problem()
    Y_before, scores_before = Y.copy(), scores.copy()
    Y.flags.writeable = scores.flags.writeable = False
    whole = [f(Y, scores, ties=ties, average=False) for f in RANKING.values()]
    for entries in (1, 36, 100):
        monkeypatch.setattr("lemll.metrics.multilabel._BLOCK_ENTRIES", entries)
        blocks = [f(Y, scores, ties=ties, average=False) for f in RANKING.values()]
        assert_array_equal(blocks, whole)
    assert_array_equal(Y, Y_before)
    assert_array_equal(scores, scores_before)


def test_memory_stays_far_below_a_rows_by_labels_by_labels_array():
    Y, scores = random_problem(n_rows=200, n_labels=2000)
    with Peak() as peak:
        for function in RANKING.values():
            function(Y, scores)
    assert peak.bytes < 60e6  # 200 x 2000 x 2000 booleans take 800 MB


@pytest.mark.parametrize("metric", [hamming_loss, *RANKING.values()])
@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[1, -1, -1], [-1, 1, -1]], "Y_true is coded -1/\\+1"),
        ([[1, 0, 2]], "Y_true must hold only 0 and 1, got 2 in row 0, label 2"),
        ([1, 0, 1], "Y_true must be 2-D"),
        (np.zeros((0, 3)), r"at least one row and one label, got shape \(0, 3\)"),
        (np.zeros((3, 0)), r"at least one row and one label, got shape \(3, 0\)"),
    ],
)
def test_bad_labels(metric, Y, message):
    with pytest.raises(ValueError, match=message):
        metric(Y, np.ones(np.shape(Y)))


def test_bad_predicted_labels():
    with pytest.raises(ValueError, match="Y_pred is coded -1/\\+1"):
        hamming_loss([[1, 0]], [[1, -1]])
    with pytest.raises(ValueError, match=r"Y_pred must have the shape of Y_true, \(1, 2\), got"):
        hamming_loss([[1, 0]], [[1, 0, 0]])


@pytest.mark.parametrize("metric", RANKING.values())
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[0.1, 0.2], [0.3, np.nan]], "scores must not hold NaN, got one in row 1, label 1"),
        ([[0.1, 0.2]], r"scores must have the shape of Y_true, \(2, 2\), got \(1, 2\)"),
        (np.ones((2, 2, 2)), r"shape of Y_true, \(2, 2\), got \(2, 2, 2\)"),
        ([["a", "b"], ["c", "d"]], "scores must hold numbers, got dtype <U1"),
        (np.ones((2, 2), dtype=complex), "scores must hold numbers, got dtype complex128"),
    ],
)
def test_bad_scores(metric, scores, message):
    with pytest.raises(ValueError, match=message):
        metric([[1, 0], [0, 1]], scores)


def test_no_row_to_measure():
    Y, scores = [[0, 0], [1, 1]], [[0.1, 0.2], [0.1, 0.2]]
    for metric in (ranking_loss, one_error, average_precision):
        with pytest.raises(ValueError, match="all 2 are empty or full"):
            metric(Y, scores)
        assert np.isnan(metric(Y, scores, average=False)).all()
    with pytest.raises(ValueError, match="all 1 are empty; add rows"):
        coverage(Y[:1], scores[:1])


def test_bad_options():
    Y, scores = [[1, 0]], [[0.2, 0.1]]
    with pytest.raises(ValueError, match=r"convention must be one of 'paper', 'lamda', .*'weka'"):
        ranking_loss(Y, scores, convention="weka")
    with pytest.raises(ValueError, match="'sklearn' does not define one_error; use one of 'paper'"):
        one_error(Y, scores, convention="sklearn")
    with pytest.raises(ValueError, match=r"ties must be one of 'pessimistic', .* got 'random'"):
        ranking_loss(Y, scores, ties="random")
    with pytest.raises(ValueError, match="empty must be one of 'skip', 'count', got 'depth_zero'"):
        average_precision(Y, scores, empty="depth_zero")
    with pytest.raises(ValueError, match="full must be one of 'skip', 'count', got 'drop'"):
        one_error(Y, scores, full="drop")
    with pytest.raises(ValueError, match="unit must be one of 'fraction', 'steps', 'depth', got"):
        coverage(Y, scores, unit="percent")
