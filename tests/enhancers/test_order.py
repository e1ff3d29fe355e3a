"""The order of labels: evidence against refits, the model against an oracle, comparisons."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from lemll.datasets import binarize_distribution, make_artificial
from lemll.enhancers import BlendEnhancer
from lemll.enhancers.order import (
    Comparison,
    Evidence,
    collect_evidence,
    estimate_order,
    fit_order,
    from_features,
    from_other_labels,
    in_order,
    next_pairs,
    ranked_labels,
    rated_pairs,
    short_lists,
    usual_order,
)
from lemll.metrics import pair_order
from lemll.solvers import solve_log_linear


@pytest.fixture(name="data", scope="module")
def _data():
    """Rows with 8 labels whose degrees follow the features."""
    rng = np.random.RandomState(0)
    X = rng.randn(300, 6)
    D = np.exp(X @ rng.randn(6, 8) + 0.5 * rng.randn(8))
    D /= D.sum(axis=1, keepdims=True)
    return X, D, np.asarray(binarize_distribution(D, 0.7))


@pytest.fixture(name="evidence", scope="module")
def _evidence(data):
    return collect_evidence(data[0], data[2], None)


def test_pairs_are_counted_as_by_a_loop():
    rng = np.random.RandomState(1)
    D, U = rng.randint(4, size=(2, 40, 5)).astype(float)
    Y = rng.choice([0.0, 1.0, np.nan], size=D.shape)
    for part, wanted in (("given", 1.0), ("others", 0.0)):
        expected = []
        for d, u, y in zip(D, U, Y, strict=True):
            right = [
                0.5 if u[j] == u[k] else float((u[j] > u[k]) == (d[j] > d[k]))
                for j, k in itertools.combinations(range(5), 2)
                if y[j] == y[k] == wanted and d[j] != d[k]
            ]
            expected.append(np.mean(right) if right else np.nan)
        found = pair_order(D, U, Y, part=part, average=False)
        np.testing.assert_allclose(found, expected)
        assert pair_order(D, U, Y, part=part) == pytest.approx(np.nanmean(expected))


def test_the_measure_says_what_is_wrong():
    one = np.array([[0.6, 0.4]])
    for arguments, message in (
        ((one, one, [[1, 0]]), "no row has two given labels"),
        ((one, one[:, :1], [[1, 1]]), "pred must have the shape of true"),
        ((one, one * np.nan, [[1, 1]]), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            pair_order(*arguments)
    with pytest.raises(ValueError, match="'given' or 'others'"):
        pair_order(one, one, [[1, 1]], part="all")


def test_other_labels_are_a_ridge_regression_without_the_label_itself(data):
    labels = data[2].astype(float)
    rows = (labels - labels.mean(axis=0)) / labels.std(axis=0)
    for j in range(labels.shape[1]):
        others = np.delete(rows, j, axis=1)
        system = others.T @ others / len(rows) + 0.1 * np.eye(others.shape[1])
        coef = np.linalg.solve(system, others.T @ rows[:, j] / len(rows))
        p = labels[:, j].mean() + others @ coef * labels[:, j].std()
        expected = np.clip(p, 0.003, 0.997)
        np.testing.assert_allclose(expit(from_other_labels(labels)[:, j]), expected, atol=1e-10)


def test_features_predict_rows_that_were_left_out(data):
    X, _, Y = data
    X, labels = X[:40], Y[:40].astype(float)
    found = from_features(X, labels)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    distances = np.square(scaled[:, None] - scaled).sum(axis=2)
    kernel = np.exp(-distances / np.median(distances))
    centre = np.eye(40) - 1 / 40
    values = np.linalg.eigvalsh(centre @ kernel @ centre)
    candidates = []
    for ridge in values[values > 1e-8 * values.max()].mean() * 10.0 ** np.arange(-3, 4):
        out = np.empty_like(labels)
        for i in range(40):
            # Leaving row i out of a ridge regression with an intercept: weight it by almost zero.
            weight = np.ones(40)
            weight[i] = 0
            system = np.zeros((41, 41))
            system[:40, :40] = np.diag(weight) @ centre @ kernel @ centre + ridge * np.eye(40)
            system[:40, 40] = weight
            system[40, :40] = 1
            right = np.vstack([weight[:, None] * labels, np.zeros((1, labels.shape[1]))])
            solution = np.linalg.solve(system, right)
            out[i] = (centre @ kernel @ centre)[i] @ solution[:40] + solution[40]
        candidates.append((np.square(labels - out).sum(), out))
    expected = min(candidates, key=lambda pair: pair[0])[1]
    np.testing.assert_allclose(expit(found), np.clip(expected, 0.003, 0.997), atol=1e-6)


def test_a_label_of_short_lists_matters_more():
    given = np.zeros((200, 5), dtype=bool)
    given[:100, 0] = True
    given[100:, 1:] = True
    found = short_lists(given)
    np.testing.assert_allclose(found[1:], found[1])
    # 100 rows with the share 1, and five with the mean share.
    usual = 200 / given.sum()
    assert np.exp(found[0]) == pytest.approx((100 + 5 * usual) / 105)
    assert np.ptp(short_lists(np.ones((9, 4), dtype=bool))) == 0


def test_the_fit_of_comparisons_is_that_of_an_oracle(evidence, data):
    pairs, weights = rated_pairs(evidence, np.arange(12), data[1][:12])
    assert all(evidence.given[row, [more, less]].all() for row, more, less in pairs)
    model = fit_order(evidence, pairs, weights)
    assert model.optimality <= 1e-9
    usual, unit = np.array([0.4, 0.2, 2.0, 0.0]), np.array([1, 1, 0.3, 1])

    def objective(x):
        value = 15 * np.square((x[:4] - usual) * unit).sum() + 5 * np.square(x[4:]).sum()
        for (row, more, less), v in zip(pairs, weights, strict=True):
            off = (evidence.values[row, more] - evidence.values[row, less]) @ x[:4]
            value += v * np.logaddexp(0, -(off + x[4 + more] - x[4 + less]))
        return value

    start = np.concatenate([usual, np.zeros(8)])
    oracle = minimize(objective, start, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(np.concatenate([model.weights, model.bias]), oracle.x, atol=2e-5)


def test_weights_of_rows_count_like_copies():
    rng = np.random.RandomState(2)
    G, D = rng.randn(5, 3, 2), rng.dirichlet(np.ones(3), size=5)
    ridge, centre = np.ones(2), np.zeros(2)
    weighted = solve_log_linear(G, D, ridge, centre, weight=np.array([2.0, 1, 0, 3, 1]))
    copies = np.repeat(np.arange(5), [2, 1, 0, 3, 1])
    copied = solve_log_linear(G[copies], D[copies], ridge, centre)
    np.testing.assert_allclose(weighted.coef, copied.coef, atol=1e-7)


def test_degrees_are_exchanged_only_among_given_labels():
    rng = np.random.RandomState(3)
    degrees, values = rng.dirichlet(np.ones(6), size=30), rng.randn(30, 6)
    given = rng.uniform(size=(30, 6)) < 0.5
    found = in_order(degrees, values, given)
    np.testing.assert_array_equal(found[~given], degrees[~given])
    for i in range(30):
        np.testing.assert_array_equal(np.sort(found[i, given[i]]), np.sort(degrees[i, given[i]]))
        np.testing.assert_array_equal(rankdata(found[i, given[i]]), rankdata(values[i, given[i]]))


def test_features_order_the_given_labels(data):
    X, D, Y = data
    found = BlendEnhancer().fit(X, Y)
    true = pair_order(D, found.label_distribution_, Y)
    assert true > 0.6
    assert abs(found.order_estimate_.expected - true) < 0.1
    # A label that a row has is never below one that it has not.
    lowest = np.where(Y == 1, found.label_distribution_, 1).min(axis=1)
    assert (lowest >= np.where(Y == 0, found.label_distribution_, 0).max(axis=1) - 1e-3).all()


def test_sure_pairs_are_right_more_often(data, evidence):
    _, D, Y = data
    values = usual_order(8).values(evidence)
    right = {True: [], False: []}
    for i in range(len(Y)):
        for j, k in itertools.combinations(np.flatnonzero(Y[i]), 2):
            sure = bool(expit(abs(values[i, j] - values[i, k])) >= 0.65)
            right[sure].append((values[i, j] > values[i, k]) == (D[i, j] > D[i, k]))
    assert np.mean(right[True]) > 0.65 > np.mean(right[False]) - 0.05
    estimate = estimate_order(evidence, usual_order(8))
    assert 0 < estimate.sure < 1
    assert estimate.left_out is None


def answers_of(answers, row):
    return next(two for number, *two in answers if number == row)


def test_comparisons_change_the_order_and_nothing_else(data):
    X, D, Y = data
    enhancer = BlendEnhancer().fit(X, Y)
    before = enhancer.label_distribution_
    asked = enhancer.next_pairs(40)
    assert len({row for row, _, _ in asked}) == 40
    names = list(enhancer.label_names_)
    answers = [
        (row, *((a, b) if D[row, names.index(a)] > D[row, names.index(b)] else (b, a)))
        for row, a, b in asked
    ]
    enhancer.calibrate(pairs=answers)
    assert enhancer.blend_ is None
    assert enhancer.order_estimate_.n_pairs == 40
    assert enhancer.order_estimate_.left_out > 0.5
    assert np.abs(enhancer.label_distribution_ - before).max() > 0
    np.testing.assert_allclose(enhancer.label_distribution_[Y == 0], before[Y == 0], rtol=0.05)
    # In its row, each answer holds.
    for row, more, _ in answers[:5]:
        two = [n for n, *_ in enhancer.ranked_labels(row) if names[n] in answers_of(answers, row)]
        assert names[two[0]] == more
    told = {row for row, *_ in answers}
    assert not told & {row for row, _, _ in enhancer.next_pairs(40)}
    # The answers that the next question would change most are asked first, one per row.
    again = next_pairs(enhancer.evidence_, enhancer.order_, 3)
    assert len(again) == 3


def test_rated_rows_also_tell_the_order(data):
    X, D, Y = data
    enhancer = BlendEnhancer().fit(X, Y).calibrate(np.arange(20), D[:20])
    np.testing.assert_array_equal(enhancer.label_distribution_[:20], D[:20])
    for row in range(20):
        ranked = [D[row, one.label] for one in enhancer.ranked_labels(row)]
        assert ranked == sorted(ranked, reverse=True)
    values = enhancer.order_.values(enhancer.evidence_)
    np.testing.assert_allclose(
        pair_order(values[20:], enhancer.label_distribution_[20:], Y[20:]), 1, atol=1e-12
    )
    assert enhancer.blend_ is not None
    plain = BlendEnhancer().fit(X, Y)
    assert pair_order(D[20:], enhancer.label_distribution_[20:], Y[20:]) > (
        pair_order(D[20:], plain.label_distribution_[20:], Y[20:]) - 0.02
    )


def test_labels_are_ranked_for_people():
    ranked = ranked_labels(np.array([0.0, 2.0, 5.0, 1.9]), np.array([True, True, False, True]))
    assert [one.label for one in ranked] == [1, 3, 0]
    assert [one.sure for one in ranked] == [False, True, True]
    assert sum(one.share for one in ranked) == pytest.approx(1)
    assert ranked_labels(np.zeros(2), np.zeros(2, dtype=bool)) == []


def test_unknown_cells_are_neither_given_nor_evidence(data):
    X, _, Y = data
    hidden = np.random.RandomState(4).uniform(size=Y.shape) < 0.3
    weight = (~hidden).astype(float)
    first, second = (collect_evidence(X, np.where(hidden, x, Y), weight) for x in (0, 1))
    np.testing.assert_array_equal(first.values, second.values)
    assert not first.given[hidden].any()


def test_wrong_comparisons_are_refused(data):
    pd = pytest.importorskip("pandas")
    X, D, Y = data
    enhancer = BlendEnhancer().fit(X, Y)
    row = int(np.flatnonzero(Y.sum(axis=1) > 1)[0])
    has, has_not = np.flatnonzero(Y[row])[0], np.flatnonzero(Y[row] == 0)[0]
    for pairs, message in (
        ([(row, has, has_not)], "two different labels that the row has"),
        ([(row, has, has)], "two different labels"),
        ([(9999, 0, 1)], "numbers from 0 to 299"),
        ([(row, "sea", 1)], "unknown label 'sea'"),
        ([(row, [1], 1)], "unknown label"),
        ([(row, 1)], "a row and two labels"),
        (5, "a row and two labels"),
    ):
        with pytest.raises(ValueError, match=message):
            enhancer.calibrate(pairs=pairs)
    before = enhancer.order_
    with pytest.raises(ValueError, match="method"):
        enhancer.calibrate(range(3), D[:3], method="nope")
    assert enhancer.order_ is before
    with pytest.raises(ValueError, match="belong together"):
        enhancer.calibrate(None, D[:3], pairs=[])
    with pytest.raises(ValueError, match="row must be a number"):
        enhancer.ranked_labels(-1)
    with pytest.raises(ValueError, match="rated rows .* or comparisons"):
        enhancer.calibrate()
    with pytest.raises(ValueError, match="lacks the columns more, less"):
        enhancer.calibrate(pairs=pd.DataFrame({"row": [0]}))


def test_rows_and_labels_have_the_names_of_frames(data):
    pd = pytest.importorskip("pandas")
    X, _, Y = data
    index = [f"photo {i}" for i in range(len(X))]
    labels = pd.DataFrame(Y, index=index, columns=list("abcdefgh"))
    enhancer = BlendEnhancer().fit(pd.DataFrame(X, index=index).add_prefix("x"), labels)
    row = int(np.flatnonzero(Y.sum(axis=1) > 1)[0])
    two = np.flatnonzero(Y[row])[:2]
    named = pd.DataFrame({"row": [index[row]], "more": ["abcdefgh"[two[1]]],
                          "less": ["abcdefgh"[two[0]]]})  # fmt: skip
    found = enhancer.calibrate(pairs=named).order_
    expected = enhancer.calibrate(pairs=[Comparison(row, int(two[1]), int(two[0]))]).order_
    np.testing.assert_array_equal(found.bias, expected.bias)
    assert found.bias[two[1]] > 0 > found.bias[two[0]]
    twice = pd.DataFrame(X, index=["a", "b"] * (len(X) // 2)).add_prefix("x")
    enhancer = BlendEnhancer().fit(twice, Y)
    with pytest.raises(ValueError, match="more than one row 'a'"):
        enhancer.calibrate(pairs=[("a", int(two[0]), int(two[1]))])


def test_many_rows_are_represented_by_landmarks():
    data = make_artificial(1500, random_state=0)
    Y = np.asarray(binarize_distribution(data.D, 0.5), dtype=float)
    found = expit(from_features(data.X, Y))
    base = np.square(Y - Y.mean(axis=0)).mean()
    assert np.square(Y - found).mean() < 0.5 * base


def test_evidence_of_one_label_per_row_is_finite():
    Y = np.eye(3, dtype=np.int8)[np.arange(30) % 3]
    evidence = collect_evidence(np.arange(30.0)[:, None], Y, None)
    assert np.isfinite(evidence.values).all()
    assert np.isnan(estimate_order(evidence, usual_order(3)).expected)
    assert next_pairs(evidence, usual_order(3), 5) == []
    assert fit_order(evidence, []).weights.tolist() == [0.4, 0.2, 2.0, 0.0]
    assert isinstance(evidence, Evidence)
