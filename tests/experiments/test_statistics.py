"""Ranks, wins and the t-test: by hand, against SciPy, and against the paper's own figures."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from lemll.lab import published_prediction
from lemll.lab.statistics import average_ranks, rank_rows, win_tie_loss
from lemll.metrics import METRICS
from lemll.models.pairwise import paired_t_test

METHODS = ("LEMLL", "MLFE", "ML2", "RELIAB", "MSVR", "ML-kNN", "CLR", "ECC")
MULTILABEL = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")

# Table IV as printed.
TABLE_IV = {
    "LEMLL": (1.500, 1.567, 1.400, 2.000, 1.400),
    "MLFE": (5.567, 5.400, 4.067, 5.233, 4.600),
    "ML2": (6.033, 6.867, 5.900, 6.600, 6.067),
    "RELIAB": (5.567, 2.233, 4.067, 2.667, 3.400),
    "MSVR": (2.833, 4.833, 2.833, 5.033, 3.067),
    "ML-kNN": (3.300, 4.833, 5.333, 4.667, 5.467),
    "CLR": (6.667, 4.800, 6.333, 4.600, 6.133),
    "ECC": (4.533, 5.467, 6.067, 5.600, 5.867),
}
# The per cent of the 75 cases in which the text finds LEMLL significantly better.
SIGNIFICANTLY_BETTER = {
    "MLFE": 89.3, "ML2": 90.7, "RELIAB": 80.0, "MSVR": 76.0, "ML-kNN": 82.7,
    "CLR": 93.3, "ECC": 88.0,
}  # fmt: skip


def published_means(metric: str) -> np.ndarray:
    cells = [cell for cell in published_prediction() if cell.metric == metric]
    datasets = list(dict.fromkeys(cell.dataset for cell in cells))
    means = {(cell.dataset, cell.method): cell.mean for cell in cells}
    return np.array([[means[dataset, method] for method in METHODS] for dataset in datasets])


def test_the_published_cells_are_complete():
    cells = published_prediction()
    assert len({(cell.metric, cell.dataset, cell.method) for cell in cells}) == len(cells) == 600
    assert all(published_means(metric).shape == (15, 8) for metric in MULTILABEL)


def test_table_iv_follows_from_tables_ii_and_iii_but_for_one_cell():
    contradictions = {}
    for column, metric in enumerate(MULTILABEL):
        direction = METRICS[metric].greater_is_better
        ours = average_ranks(published_means(metric), greater_is_better=direction)
        for method, rank in zip(METHODS, ours, strict=True):
            printed = TABLE_IV[method][column]
            if abs(rank - printed) > 0.0005 + 1e-9:
                contradictions[method, metric] = (round(float(rank), 3), printed)
    # First contradiction of the paper with itself: its own cells give RELIAB a better rank.
    assert contradictions == {("RELIAB", "coverage"): (2.267, 2.667)}


def test_first_and_second_places_are_the_papers_when_shared_ones_count_in_full():
    shared_first = mean_rank_first = shared_second = 0
    for metric in MULTILABEL:
        direction = METRICS[metric].greater_is_better
        means = published_means(metric)
        best = stats.rankdata(-means if direction else means, axis=1, method="min")[:, 0]
        shared_first += int((best == 1).sum())
        shared_second += int((best == 2).sum())
        mean_rank_first += int((rank_rows(means, greater_is_better=direction)[:, 0] == 1).sum())
    assert round(100 * shared_first / 75, 1) == 69.3
    assert round(100 * shared_second / 75, 1) == 21.3
    # Second contradiction: by the mean ranks of Table IV, LEMLL is first alone in 43 cases only.
    assert (shared_first, mean_rank_first) == (52, 43)


def test_significant_wins_are_the_papers_but_against_reliab():
    wins = Counter(cell.method for cell in published_prediction() if cell.mark == "•")
    ours = {method: round(100 * wins[method] / 75, 1) for method in SIGNIFICANTLY_BETTER}
    differing = {method for method in ours if ours[method] != SIGNIFICANTLY_BETTER[method]}
    # Third contradiction: the text says 80 %, the tables hold 50 bullets of 75.
    assert differing == {"RELIAB"}
    assert ours["RELIAB"] == 66.7


def test_lemll_never_loses_to_msvr_in_the_paper():
    for metric in MULTILABEL:
        means = published_means(metric)
        direction = METRICS[metric].greater_is_better
        counts = win_tie_loss(
            means[:, 0], means[:, METHODS.index("MSVR")], greater_is_better=direction
        )
        assert counts.losses == 0
        assert sum(counts) == 15


def test_ranks_share_the_mean_among_values_equal_to_three_decimals():
    values = [[0.1004, 0.1001, 0.5, 0.2], [0.3, 0.2, 0.2, 0.2]]
    np.testing.assert_array_equal(
        rank_rows(values, greater_is_better=False), [[1.5, 1.5, 4, 3], [4, 2, 2, 2]]
    )
    np.testing.assert_array_equal(
        rank_rows(values, greater_is_better=True, decimals=None), [[3, 4, 1, 2], [1, 3, 3, 3]]
    )


def test_the_t_test_is_scipys():
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(50):
        first = rng.normal(size=10)
        second = first + rng.normal(0.3, 0.5, size=10)
        expected = stats.ttest_rel(first, second)
        ours = paired_t_test(first, second, greater_is_better=True)
        assert ours.statistic == pytest.approx(expected.statistic, rel=1e-10)
        assert ours.pvalue == pytest.approx(expected.pvalue, rel=1e-10)
        opposite = paired_t_test(second, first, greater_is_better=True).outcome
        assert opposite == {"better": "worse", "worse": "better", "equal": "equal"}[ours.outcome]
        outcomes.add(ours.outcome)
    assert outcomes == {"worse", "equal"}


def test_the_t_test_where_differences_do_not_vary():
    values = np.array([0.1, 0.25, 0.3])
    same = paired_t_test(values, values, greater_is_better=False)
    assert (same.outcome, same.mark, same.pvalue) == ("equal", "", 1.0)
    # 0.1 + 0.1 and its like are not exact: the differences vary in the last digit only.
    constant = paired_t_test(values, values + 0.1, greater_is_better=False)
    assert (constant.outcome, constant.mark, constant.pvalue) == ("better", "•", 0.0)
    assert paired_t_test(values, values + 0.1, greater_is_better=True).mark == "∘"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_rows([1, 2], greater_is_better=True), r"must have shape \(n_datasets"),
        (lambda: rank_rows([[1, np.nan]], greater_is_better=True), "values must be finite"),
        (lambda: win_tie_loss([1], [1, 2], greater_is_better=True), "1-D and of one length"),
        (lambda: win_tie_loss([1], [np.inf], greater_is_better=True), "control and other must be"),
        (lambda: paired_t_test([1], [2], greater_is_better=True), "needs at least 2 splits, got 1"),
        (
            lambda: paired_t_test([1, 2], [2, 2], greater_is_better=True, level=5),
            "level must lie between 0 and 1, got 5",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
