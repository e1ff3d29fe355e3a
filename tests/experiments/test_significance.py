"""Many data sets at once: against SciPy, scikit-posthocs, printed values, and by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from scipy import stats

from lemll.lab import published_prediction
from lemll.lab.significance import cliques, critical_difference, friedman_test, nemenyi_pvalues
from lemll.lab.statistics import wilcoxon_holm
from lemll.metrics import METRICS
from lemll.models.pairwise import holm, paired_t_test

METHODS = ("LEMLL", "MLFE", "ML2", "RELIAB", "MSVR", "ML-kNN", "CLR", "ECC")


@pytest.fixture(
    name="table", params=[0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 5))]
)
def _table(request):
    rng = np.random.default_rng(request.param)
    return rng.random((12, 6)) + 0.3 * rng.random(6)


def published_table(metric):
    cells = {(c.dataset, c.method): c.mean for c in published_prediction() if c.metric == metric}
    rows = dict.fromkeys(dataset for dataset, _ in cells)
    return np.array([[cells[row, method] for method in METHODS] for row in rows])


@pytest.mark.parametrize(
    ("k", "test", "expected"),
    [(8, "nemenyi", 2.711), (8, "bonferroni-dunn", 2.406), (6, "nemenyi", 1.947),
     (6, "bonferroni-dunn", 1.760)],
)  # fmt: skip
def test_critical_differences_of_fifteen_data_sets(k, test, expected):
    assert critical_difference(k, 15, test=test) == pytest.approx(expected, abs=5e-4)


def test_friedman_is_scipys_with_and_without_ties(table):
    for values, decimals in ((table, None), (table, 1)):
        ours = friedman_test(values, greater_is_better=True, decimals=decimals)
        given = values if decimals is None else values.round(decimals)
        theirs = stats.friedmanchisquare(*given.T)
        assert ours.chi_square == pytest.approx(theirs.statistic, rel=1e-10)
        assert ours.chi_square_pvalue == pytest.approx(theirs.pvalue, rel=1e-8)


def test_iman_davenport_by_the_formula(table):
    n, k = table.shape
    ours = friedman_test(table, greater_is_better=False, decimals=None)
    R = ours.average_ranks
    chi_square = 12 * n / (k * (k + 1)) * (np.square(R).sum() - k * (k + 1) ** 2 / 4)
    f = (n - 1) * chi_square / (n * (k - 1) - chi_square)
    assert ours.f == pytest.approx(f)
    assert ours.f_pvalue == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def test_the_direction_turns_the_ranks_and_nothing_else(table):
    up = friedman_test(table, greater_is_better=True, decimals=None)
    down = friedman_test(table, greater_is_better=False, decimals=None)
    np.testing.assert_allclose(up.average_ranks, 7 - down.average_ranks)
    assert up.chi_square == pytest.approx(down.chi_square)


def test_where_all_tie_nothing_differs_and_where_the_order_is_one_all_does():
    tied = friedman_test(np.ones((5, 3)), greater_is_better=True)
    assert (tied.chi_square, tied.f, tied.f_pvalue) == (0.0, 0.0, 1.0)
    ordered = friedman_test(np.tile([0.1, 0.2, 0.3], (5, 1)), greater_is_better=False)
    assert ordered.f == np.inf
    assert ordered.f_pvalue == pytest.approx(1 / 6**4)


def test_one_order_on_few_data_sets_may_be_chance():
    # Of two orders of two methods, two data sets share one every other time.
    two = friedman_test([[0.1, 0.2], [0.3, 0.4]], greater_is_better=False)
    assert (two.f, two.f_pvalue) == (np.inf, 0.5)
    # One tie of three leaves three orders.
    tied = friedman_test([[0.1, 0.2, 0.2]] * 3, greater_is_better=False)
    assert (tied.f, tied.f_pvalue) == (np.inf, pytest.approx(1 / 9))


def test_nemenyi_is_that_of_scikit_posthocs(table):
    # Theirs takes the greatest for the last: of differences of ranks that is the same.
    theirs = scikit_posthocs.posthoc_nemenyi_friedman(table).to_numpy()
    found = friedman_test(table, greater_is_better=True, decimals=None)
    ours = nemenyi_pvalues(found.average_ranks, len(table))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_a_critical_difference_is_where_the_pvalue_is_the_level(table):
    difference = critical_difference(6, len(table))
    pvalues = nemenyi_pvalues([1.0, 1.0 + difference, 1, 1, 1, 1], len(table))
    assert pvalues[0, 1] == pytest.approx(0.05, abs=1e-6)


def test_wilcoxon_holm_is_that_of_scikit_posthocs(table):
    frame = pd.DataFrame(table).melt(var_name="method", value_name="value")
    theirs = scikit_posthocs.posthoc_wilcoxon(
        frame, val_col="value", group_col="method", p_adjust="holm"
    ).to_numpy()
    for test in wilcoxon_holm(table, greater_is_better=True):
        assert test.adjusted == pytest.approx(theirs[test.first, test.second], rel=1e-8)


def test_the_effect_is_the_share_of_signed_ranks():
    gain = np.array([1.0, -2.0, 3.0, 4.0, 0.0])
    table = np.column_stack([gain, np.zeros(5)])
    (test,) = wilcoxon_holm(table, greater_is_better=True)
    assert test.effect == pytest.approx((1 - 2 + 3 + 4) / 10)
    (turned,) = wilcoxon_holm(table, greater_is_better=False)
    assert turned.effect == -test.effect
    assert turned.pvalue == test.pvalue


@pytest.mark.parametrize("seed", range(5))
def test_the_signed_rank_test_is_exact_with_ties(seed):
    rng = np.random.default_rng(seed)
    gain = rng.integers(-3, 5, 9).astype(float)
    (test,) = wilcoxon_holm(np.column_stack([gain, np.zeros(9)]), greater_is_better=True)
    gain = gain[gain != 0]
    ranks = stats.rankdata(np.abs(gain))
    signs = np.array(list(itertools.product([0, 1], repeat=len(gain))))
    sums, seen = signs @ ranks, ranks[gain > 0].sum()
    expected = min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))
    assert test.pvalue == pytest.approx(expected, rel=1e-12)


def test_methods_that_never_differ_are_equal():
    (test,) = wilcoxon_holm(np.ones((6, 2)), greater_is_better=True)
    assert (test.pvalue, test.effect, test.outcome) == (1.0, 0.0, "equal")


def test_a_control_is_compared_with_all_others():
    rng = np.random.default_rng(0)
    table = rng.random((20, 4)) + np.array([0, 1.0, 1.0, 0.0])
    tests = wilcoxon_holm(table, greater_is_better=False, control=0)
    assert [(t.first, t.second) for t in tests] == [(0, 1), (0, 2), (0, 3)]
    assert [t.outcome for t in tests] == ["better", "better", "equal"]


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.02, 0.9, 0.02]), [0.04, 0.06, 0.9, 0.06])
    assert holm([]).shape == (0,)


@pytest.mark.parametrize(
    ("ranks", "difference", "expected"),
    [
        ([1, 2, 3, 4], 0.5, []),
        ([1, 2, 3, 4], 1.0, [(0, 1), (1, 2), (2, 3)]),
        ([4, 3, 2, 1], 9.0, [(3, 2, 1, 0)]),
        ([1, 1.5, 4, 4], 1.0, [(0, 1), (2, 3)]),
    ],
)
def test_groups_that_do_not_differ(ranks, difference, expected):
    assert cliques(ranks, difference) == expected


def test_the_corrected_t_test_finds_less():
    rng = np.random.default_rng(1)
    one = rng.normal(0.20, 0.01, 10)
    other = one + rng.normal(0.008, 0.01, 10)
    plain = paired_t_test(one, other, greater_is_better=False)
    corrected = paired_t_test(one, other, greater_is_better=False, test_train_ratio=1.0)
    # For ten halves the variance is 11 times that of the plain test.
    assert plain.statistic == pytest.approx(corrected.statistic * np.sqrt(11))
    assert plain.statistic == pytest.approx(stats.ttest_rel(one, other).statistic)
    assert (plain.outcome, corrected.outcome) == ("better", "equal")
    assert corrected.pvalue == pytest.approx(2 * stats.t.sf(abs(corrected.statistic), 9))


@pytest.mark.parametrize("metric", ["hamming_loss", "ranking_loss", "one_error", "coverage",
                                    "average_precision"])  # fmt: skip
def test_the_published_tables_through_all_tests(metric):
    values = published_table(metric)
    assert values.shape == (15, 8)
    up = METRICS[metric].greater_is_better
    found = friedman_test(values, greater_is_better=up)
    # F(7, 98) at 5 %.
    assert found.f > 2.104
    assert found.f_pvalue < 1e-6
    assert found.average_ranks.argmin() == 0
    beyond = found.average_ranks - found.average_ranks[0] > critical_difference(
        8, 15, test="bonferroni-dunn"
    )
    # The paper's claim holds but against one rival, by each measure.
    assert beyond[1:].sum() >= 5
    assert not beyond[1:].all()
    tests = wilcoxon_holm(values, greater_is_better=up, control=0)
    assert sum(test.outcome == "better" for test in tests) >= 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: friedman_test([[1.0, 2.0]], greater_is_better=True), "2 data sets and 2 methods"),
        (lambda: critical_difference(1, 5), "needs 2 methods and 1 data set, got 1 and 5"),
        (lambda: critical_difference(3, 5, level=2), "level must lie between 0 and 1, got 2"),
        (lambda: wilcoxon_holm([1, 2], greater_is_better=True), r"must have shape \(n_datasets"),
        (lambda: wilcoxon_holm([[1], [2]], greater_is_better=True), "needs 2 methods, got 1"),
        (
            lambda: wilcoxon_holm([[1, 2], [3, np.nan]], greater_is_better=True),
            "must be finite, got nan for data set 1, method 1; leave out",
        ),
        (
            lambda: wilcoxon_holm([[1, 2]], greater_is_better=True, control=-1),
            "control must be a column of values, from 0 to 1, got -1",
        ),
        (
            lambda: wilcoxon_holm([[1, 2]], greater_is_better=True, control=2),
            "control must be a column of values, from 0 to 1, got 2",
        ),
        (
            lambda: wilcoxon_holm([[1, 2]], greater_is_better=True, level=np.nan),
            "level must lie between 0 and 1, got nan",
        ),
        (lambda: nemenyi_pvalues([1.5], 3), "needs 2 methods and 1 data set, got 1 and 3"),
        (lambda: nemenyi_pvalues([1, 2], 0), "needs 2 methods and 1 data set, got 2 and 0"),
        (lambda: nemenyi_pvalues([[1, 2]], 3), r"average_ranks must be 1-D.* got shape \(1, 2\)"),
        (lambda: cliques([1, np.nan], 1), r"average_ranks must be finite, got \[1.0, nan\]"),
        (lambda: cliques([1, 2], -1), "difference must be >= 0, got -1"),
        (lambda: holm([0.1, 2]), "pvalues must lie between 0 and 1, got 2.0"),
        (lambda: holm(0.1), r"pvalues must be 1-D, one value each, got shape \(\)"),
        (lambda: critical_difference(3, 5, test="dunn"), "'nemenyi' or 'bonferroni-dunn', got 'd"),
        (
            lambda: paired_t_test([1, 2], [2, 4], greater_is_better=True, test_train_ratio=-1),
            "test_train_ratio must be finite and >= 0, got -1",
        ),
    ],
)
def test_what_cannot_be_tested_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
