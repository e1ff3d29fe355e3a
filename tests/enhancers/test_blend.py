"""Sources of degrees that rated rows weigh: few rows, wrong sources, unknown cells."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import ttest_rel
from sklearn.exceptions import NotFittedError

from lemll.datasets import binarize_distribution, make_artificial
from lemll.enhancers import BlendEnhancer, LabelGraphEnhancer, LEMLLEnhancer, blend
from lemll.enhancers.calibrate import _losses, _shares, blend_sources, unit_source
from lemll.enhancers.order import in_order
from lemll.enhancers.sources import label_sources, propagate_labels
from lemll.metrics import canberra, chebyshev, clark, cosine, intersection, kl_divergence


@pytest.fixture(name="data", scope="module")
def _data():
    made = make_artificial(300, random_state=0)
    return made.X, made.D, binarize_distribution(made.D, 0.5)


def fitted(data, n_rated=10, seed=0, **options):
    X, D, Y = data
    rows = np.random.RandomState(seed).choice(len(D), n_rated, replace=False)
    return BlendEnhancer(**options).fit(X, Y).calibrate(rows, D[rows]), rows


def test_without_rated_rows_it_is_a_flat_label_graph_in_the_order_of_the_evidence(data):
    X, D, Y = data
    enhancer = BlendEnhancer().fit(X, Y)
    graph = propagate_labels(Y, None, 0.5, pseudo_count=1.0).scores
    expected = unit_source(np.log(np.maximum(graph, 1e-4)))
    values = enhancer.order_.values(enhancer.evidence_)
    for i, given in enumerate(Y == 1):
        level = expected[i, given].mean()
        expected[i, given] = level + 0.3 * (values[i, given] - values[i, given].mean())
    np.testing.assert_allclose(enhancer.numerical_labels_, 0.1 * expected, atol=1e-12)
    assert enhancer.blend_ is None
    uniform = np.full(D.shape, 1 / D.shape[1])
    assert chebyshev(D, enhancer.label_distribution_) < chebyshev(D, uniform)


def test_only_rated_rows_need_the_sources(data, monkeypatch):
    X, D, Y = data
    expected = BlendEnhancer().fit(X, Y).calibrate(range(10), D[:10]).label_distribution_
    with monkeypatch.context() as counted:
        counted.setattr(LEMLLEnhancer, "_numerical_labels", None)
        counted.setattr(blend, "principal_rows", None)
        changed = X.copy()
        enhancer = BlendEnhancer().fit(changed, Y)
    changed[:] = 0
    found = copy.deepcopy(enhancer).calibrate(range(10), D[:10])
    np.testing.assert_array_equal(found.label_distribution_, expected)
    with pytest.raises(NotFittedError):
        BlendEnhancer().sources_  # noqa: B018 (what is tested)


def test_rated_rows_are_kept_and_the_others_improve(data):
    X, D, Y = data
    enhancer, rows = fitted(data)
    others = np.setdiff1d(np.arange(len(D)), rows)
    np.testing.assert_array_equal(enhancer.label_distribution_[rows], D[rows])
    graph = LabelGraphEnhancer().fit(X, Y).calibrate(rows, D[rows], random_state=0)
    uniform = np.full(D.shape, 1 / D.shape[1])
    errors = [
        kl_divergence(D[others], found[others])
        for found in (enhancer.label_distribution_, graph.label_distribution_, uniform)
    ]
    assert errors[0] < errors[1] < errors[2]


def test_it_says_what_it_used_and_how_sure_it_is(data):
    enhancer, rows = fitted(data, 20)
    blend = enhancer.blend_
    assert set(blend.weights) == {
        "label graph", "plain label graph", "label graph by size", "far label graph",
        "logical labels",
        "labels and frequencies", "LEMLL", "smooth labels", "smooth label graph",
    }  # fmt: skip
    assert sum(blend.shares.values()) == pytest.approx(1)
    assert blend.optimality <= 1e-9
    # The error of rows left out is about that of rows that nobody rated.
    D = data[1]
    others = np.setdiff1d(np.arange(len(D)), rows)
    true = kl_divergence(D[others], enhancer.label_distribution_[others])
    assert true / 3 < blend.error < 3 * true
    assert blend.error < blend.error_of_mean
    values = enhancer.order_.values(enhancer.evidence_)
    expected = in_order(blend.distribution(enhancer.sources_), values, data[2] == 1)[others]
    np.testing.assert_allclose(enhancer.label_distribution_[others], expected)


def test_one_or_two_rows_fit_one_number(data):
    for n_rated in (1, 2):
        enhancer, _ = fitted(data, n_rated)
        blend = enhancer.blend_
        assert blend.shares == {"scale of the label graph": 1.0}
        assert not blend.bias.any()
        assert [name for name, weight in blend.weights.items() if weight] == ["label graph"]
        assert blend.error is None


def test_sources_that_say_nothing_are_not_trusted():
    rng = np.random.RandomState(0)
    noise = {name: unit_source(rng.randn(200, 5)) for name in "abcd"}
    mean = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    D = rng.dirichlet(200 * mean, size=40)
    blend = blend_sources(noise, np.arange(40), D)
    # The biases carry the mean; the noise has small weights.
    assert np.abs(list(blend.weights.values())).max() < 0.1
    found = blend.distribution(noise)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.03)
    assert blend.error < 1.3 * blend.error_of_mean


def test_many_rows_recover_weights_and_biases():
    rng = np.random.RandomState(1)
    sources = {name: unit_source(rng.randn(2000, 4)) for name in ("one", "two", "three")}
    weights, bias = np.array([0.5, -0.3, 0.8]), np.array([0.4, 0.0, -0.2, -0.2])
    log = sum(w * z for w, z in zip(weights, sources.values(), strict=True)) + bias
    D = np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)
    blend = blend_sources(sources, np.arange(2000), D)
    np.testing.assert_allclose(list(blend.weights.values()), weights, atol=0.01)
    np.testing.assert_allclose(blend.bias, bias, atol=0.01)


def test_any_enhancer_can_weigh_its_labels_against_the_label_graph(data):
    X, D, Y = data
    rows = np.arange(12)
    others = np.arange(12, len(D))
    scaled = LEMLLEnhancer().fit(X, Y).calibrate(rows, D[rows], random_state=0)
    before = chebyshev(D[others], scaled.label_distribution_[others])
    scaled.calibrate(rows, D[rows], method="sources", random_state=0)
    assert chebyshev(D[others], scaled.label_distribution_[others]) < before
    assert "numerical labels" in scaled.blend_.weights
    # New rows have no labels, so they use the scale.
    assert scaled.scale_ != 1
    assert scaled.fit(X, Y).blend_ is None


def test_unknown_cells_never_influence_anything(data):
    X, D, Y = data
    hidden = np.random.RandomState(4).uniform(size=Y.shape) < 0.3
    weight = (~hidden).astype(float)
    found = [
        BlendEnhancer()
        .fit(X, np.where(hidden, poison, Y), label_weight=weight)
        .calibrate(np.arange(10), D[:10])
        .label_distribution_
        for poison in (0.0, 1.0, np.inf)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_source_of_equal_values_is_zero():
    np.testing.assert_array_equal(unit_source(np.full((3, 2), 0.1)), np.zeros((3, 2)))


def test_refusals(data):
    X, D, Y = data
    with pytest.raises(ValueError, match="prior_scale"):
        BlendEnhancer(prior_scale=0.0).fit(X, Y)
    with pytest.raises(ValueError, match="method='both' must be one of auto, scale, sources"):
        BlendEnhancer().fit(X, Y).calibrate([0], D[:1], method="both")


def test_the_prior_is_where_the_first_weight_is_pulled(data):
    X, D, Y = data
    found = [
        BlendEnhancer(prior_scale=prior).fit(X, Y).calibrate([0], D[:1]).blend_.weights
        for prior in (0.01, 0.1, 3.0)
    ]
    weights = [weights["label graph"] for weights in found]
    assert weights == sorted(weights)
    assert weights[0] < weights[2]


def test_sources_without_differences_and_a_scale_of_before(data):
    X, D, Y = data
    everything = LEMLLEnhancer().fit(X, np.ones_like(Y))
    everything.calibrate(range(5), D[:5], method="sources")
    np.testing.assert_allclose(everything.label_distribution_.sum(axis=1), 1)
    graph = LabelGraphEnhancer().fit(X, Y).calibrate(range(5), D[:5], random_state=0)
    assert graph.scale_ != 1
    graph.calibrate(range(5), D[:5], method="sources")
    assert (graph.scale_, graph.scale_interval_) == (1.0, None)


def test_many_labels_have_no_biases():
    rng = np.random.RandomState(0)
    sources = {name: unit_source(rng.randn(20, 150)) for name in ("one", "two")}
    blend = blend_sources(sources, np.arange(10), rng.dirichlet(np.ones(150), size=10))
    assert not blend.bias.any()
    assert {name for name in blend.shares if "biases" in name} == set()
    assert {"scale of the label graph", "all sources"} == set(blend.shares)


@pytest.mark.parametrize("name", ["smooth labels", "LEMLL"])
def test_one_source_that_is_right_is_found_with_five_rows(name):
    rng = np.random.RandomState(1)
    names = ("label graph", "label graph by size", "logical labels", "LEMLL", "smooth labels")
    sources = {key: unit_source(rng.randn(200, 6)) for key in names}
    D = softmax(0.7 * sources[name], axis=1)
    blend = blend_sources(sources, np.arange(5), D[:5])
    best = max(blend.shares, key=blend.shares.__getitem__)
    assert best in (f"{name} alone", f"{name} by squared errors")
    # The variants of the label graph are not judged alone, and neither are the labels.
    assert not {"label graph by size alone", "logical labels alone"} & set(blend.shares)
    # Nine numbers and free biases are too many for five rows.
    assert "all sources and biases" not in blend.shares
    np.testing.assert_allclose(blend.distribution(sources), D, atol=0.01)


def test_without_any_source_the_biases_are_the_model():
    rng = np.random.RandomState(0)
    nothing = {name: np.zeros((100, 6)) for name in ("label graph", "logical labels", "LEMLL")}
    D = rng.dirichlet(40 * np.array([0.4, 0.3, 0.1, 0.1, 0.05, 0.05]), size=100)
    blend = blend_sources(nothing, np.arange(9), D[:9])
    assert max(blend.shares, key=blend.shares.__getitem__) == "biases alone"
    uniform = np.full(D.shape, 1 / 6)
    assert kl_divergence(D, blend.distribution(nothing)) < 0.5 * kl_divergence(D, uniform)


def smoothing_matrix(X):
    """Return (I + M)^-1 of LESC with squared noise, from a singular value decomposition."""
    rows = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    Q, S, _ = np.linalg.svd(rows, full_matrices=False)
    last = np.argmax(np.cumsum(S**2) >= 0.8 * (S**2).sum())
    C = Q * np.maximum(0, 1 - S[last] ** 2 / S**2) @ Q.T
    M = (np.eye(len(X)) - C).T @ (np.eye(len(X)) - C)
    return np.linalg.inv(np.eye(len(X)) + M)


def test_far_and_smooth_label_graphs_connect_the_labels_of_similar_rows(data):
    X, _, Y = data
    sources = BlendEnhancer().fit(X, Y).sources_
    smoother = smoothing_matrix(X)
    n_labels = Y.shape[1]
    graph = np.eye(n_labels)
    for j in range(n_labels):
        for k in range(n_labels):
            together = max(0.0, sum(Y[i, j] * (smoother[i] @ Y[:, k]) for i in range(len(Y))))
            either = Y[:, j].sum() + Y[:, k].sum() - together
            if j != k:
                graph[j, k] = (together + 1) / (either + 2)
    sums = graph.sum(axis=1)

    def propagated(alpha):
        step = np.linalg.inv(np.eye(n_labels) - alpha * graph / np.sqrt(np.outer(sums, sums)))
        return unit_source(np.log(np.maximum((1 - alpha) * Y @ step, 1e-4)))

    np.testing.assert_allclose(sources["far label graph"], propagated(0.9), atol=1e-8)
    expected = unit_source(smoother @ propagated(0.7))
    np.testing.assert_allclose(sources["smooth label graph"], expected, atol=1e-8)
    expected = unit_source(smoother @ Y)
    np.testing.assert_allclose(sources["smooth labels"], expected, atol=1e-8)


def test_among_the_labels_that_a_row_lacks_frequent_ones_are_first():
    Y = np.eye(4, dtype=int)[[0] * 10 + [1] * 6 + [2] * 4]
    source = label_sources(Y, None)["labels and frequencies"]
    frequency = np.array([0.5, 0.3, 0.2, 0.0])
    log = np.log(np.maximum((Y + frequency) / 2, 1e-4))
    centred = log - log.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(source, centred / np.sqrt(np.mean(centred**2)), atol=1e-12)
    assert source[0, 0] > source[0, 1] > source[0, 2] > source[0, 3]


def test_labels_of_similar_rows_are_neighbours_although_no_row_has_both():
    # Labels 0 and 1 share a region of the features, label 2 has another one.
    rng = np.random.RandomState(0)
    Y = np.repeat(np.eye(3, dtype=int), 40, axis=0)
    X = rng.randn(120, 5)
    X[:, :2] += np.where(Y[:, [2]] == 1, 2.0, -2.0)
    sources = BlendEnhancer().fit(X, Y).sources_
    plain, far = sources["label graph"][0], sources["far label graph"][0]
    assert plain[1] == pytest.approx(plain[2])
    assert far[0] > far[1] > far[2] + 0.5


def test_a_graph_of_similar_rows_with_unknown_cells_is_a_graph():
    rng = np.random.RandomState(0)
    Y = (rng.uniform(size=(60, 4)) < 0.5).astype(float)
    weight = (rng.uniform(size=Y.shape) < 0.2).astype(float)
    mean = np.full((60, 60), 1 / 60)
    for measure in ("jaccard", "cosine"):
        found = propagate_labels(Y, weight, 0.9, measure, smooth=lambda rough: mean @ rough)
        assert (found.graph >= 0).all()
        assert (found.graph <= 1).all()
        np.testing.assert_array_equal(found.graph, found.graph.T)
        assert found.residual < 1e-10


def test_a_graph_of_similar_rows_stays_in_range_where_few_rows_know_both_labels():
    # One row knows both labels, but all rows are alike.
    Y = np.ones((40, 2))
    weight = np.zeros((40, 2))
    weight[:20, 0] = weight[20:, 1] = weight[0, 1] = 1
    mean = np.full((40, 40), 1 / 40)
    found = propagate_labels(Y, weight, 0.5, smooth=lambda rough: mean @ rough)
    np.testing.assert_allclose(found.graph, np.ones((2, 2)))


def test_labels_of_opposite_rows_are_not_connected():
    Y = np.repeat(np.eye(2, dtype=int), 10, axis=0)
    found = propagate_labels(Y, None, 0.5, smooth=lambda rough: rough - rough.mean(axis=0))
    np.testing.assert_array_equal(found.graph, np.eye(2))


def test_a_graph_of_rows_that_are_similar_to_themselves_only_is_the_usual_one():
    rng = np.random.RandomState(0)
    Y = (rng.uniform(size=(60, 4)) < 0.5).astype(float)
    weight = rng.uniform(size=Y.shape) * (rng.uniform(size=Y.shape) < 0.5)
    for given in (None, weight):
        usual, same = (
            propagate_labels(Y, given, 0.5, pseudo_count=1.0, smooth=smooth)
            for smooth in (None, np.copy)
        )
        np.testing.assert_allclose(same.graph, usual.graph, atol=1e-12)
        np.testing.assert_allclose(same.scores, usual.scores, atol=1e-12)


def test_sources_of_size_labels_and_frequencies_with_unknown_cells():
    rng = np.random.RandomState(0)
    Y = (rng.uniform(size=(30, 4)) < 0.4).astype(float)
    weight = (rng.uniform(size=Y.shape) < 0.6).astype(float)
    frequency = (Y * weight).sum(axis=0) / weight.sum(axis=0)
    labels = np.where(weight > 0, Y, frequency)
    found = label_sources(Y, weight)
    size = np.log(np.maximum(labels.sum(axis=1, keepdims=True), 1))
    expected = found["label graph"] * (size - size.mean())
    np.testing.assert_allclose(found["label graph by size"], expected, atol=1e-12)
    np.testing.assert_allclose(found["logical labels"], unit_source(labels), atol=1e-12)
    mixed = np.log(np.maximum((labels + labels.mean(axis=0)) / 2, 1e-4))
    np.testing.assert_allclose(found["labels and frequencies"], unit_source(mixed), atol=1e-12)


def test_features_that_are_too_large_leave_out_the_smooth_sources(data, monkeypatch):
    X, _, Y = data
    size = X.shape[0] * X.shape[1] * min(X.shape)
    for limit, smooth in ((size, True), (size - 1, False)):
        monkeypatch.setattr(blend, "_LARGEST_DECOMPOSITION", limit)
        sources = BlendEnhancer().fit(X, Y).sources_
        assert ("smooth labels" in sources) == smooth
        assert ("smooth label graph" in sources) == smooth
    plain = label_sources(Y, None)["far label graph"]
    np.testing.assert_allclose(sources["far label graph"], plain)


def test_the_source_of_lemll_scales_the_features(data):
    X, _, Y = data
    X = X * 10.0 ** np.arange(X.shape[1])
    lemll = LEMLLEnhancer(n_neighbors=10, feature_scale="auto").fit(X, Y)
    expected = unit_source(lemll.numerical_labels_)
    np.testing.assert_allclose(BlendEnhancer().fit(X, Y).sources_["LEMLL"], expected, atol=1e-8)


def test_the_models_with_many_rated_rows(data):
    enhancer, _ = fitted(data, 10)
    assert set(enhancer.blend_.shares) == {
        "scale of the label graph", "label graph and biases", "all sources",
        "all sources and small biases", "biases alone", "all sources and biases",
        "smooth labels alone",
        "LEMLL alone", "LEMLL by squared errors", "plain label graph alone",
        "plain label graph by squared errors", "smooth label graph and biases",
    }  # fmt: skip


def test_identical_ratings_of_identical_rows_do_not_overflow(data):
    X, D, Y = (part.copy() for part in data)
    X[:3], Y[:3] = X[0], Y[0]
    enhancer = BlendEnhancer().fit(X, Y).calibrate(range(3), np.tile(D[0], (3, 1)))
    np.testing.assert_allclose(enhancer.label_distribution_.sum(axis=1), 1)
    shares = _shares(np.array([[2.0**-10] * 4, [0.5] * 4]))
    np.testing.assert_allclose(shares, [1, 0], atol=1e-12)


def test_ratings_that_sum_to_nearly_one_are_divided_by_their_sum(data):
    _, D, Y = data
    sources = label_sources(Y, None)
    exact, short = (blend_sources(sources, np.arange(8), D[:8] * by) for by in (1.0, 0.999991))
    assert short.error == pytest.approx(exact.error, rel=1e-6)
    assert short.shares == pytest.approx(exact.shares, rel=1e-6)


def test_models_that_differ_by_rounding_errors_count_alike():
    losses = np.tile(np.linspace(0.1, 0.2, 6), (2, 1))
    losses[1] += 1e-14
    np.testing.assert_allclose(_shares(losses), 0.5, atol=1e-9)


def test_losses_are_the_six_distances_in_equal_parts():
    rng = np.random.RandomState(0)
    D, unseen = rng.dirichlet(np.ones(4), size=5), rng.randn(3, 5, 4)
    found = softmax(unseen, axis=2)
    parts = [
        np.stack([metric(D, model, average=False) for model in found])
        for metric in (chebyshev, clark, canberra, kl_divergence)
    ]
    parts += [
        np.stack([1 - metric(D, model, average=False) for model in found])
        for metric in (cosine, intersection)
    ]
    expected = sum(part / part.mean(axis=1).min() for part in parts)
    np.testing.assert_allclose(_losses(D, unseen), expected, rtol=1e-10)
    # Beside an exact model, which has only rounding errors, the others have finite, large losses.
    exact = _losses(D, np.stack([np.log(D), unseen[0]]))
    assert np.isfinite(exact).all()
    assert (np.abs(exact[0]) < 1e-9 * exact[1]).all()


@pytest.mark.slow
def test_with_many_labels_the_largest_degrees_count_too():
    rng = np.random.RandomState(1)
    X = rng.randn(500, 20)
    D = np.exp(0.7 * X @ rng.randn(20, 68) / np.sqrt(20) + 0.5 * rng.randn(500, 68))
    D /= D.sum(axis=1, keepdims=True)
    Y = binarize_distribution(D, 0.1)
    ours = BlendEnhancer().fit(X, Y)
    lemll = LEMLLEnhancer(feature_scale="auto").fit(X, Y)
    found: dict[str, list[float]] = {"blend": [], "lemll": []}
    for seed in range(6):
        rows = np.random.RandomState(seed).choice(500, 10, replace=False)
        for name, enhancer in (("blend", ours), ("lemll", lemll)):
            enhancer.calibrate(rows, D[rows], random_state=0)
            found[name].append(chebyshev(D, enhancer.label_distribution_))
    assert np.mean(found["blend"]) < 1.04 * np.mean(found["lemll"])


def test_models_count_by_the_paired_t_test():
    rng = np.random.RandomState(0)
    losses = 1 + rng.uniform(size=(4, 8))
    losses[0] -= 0.3
    t = np.array([0.0, *(ttest_rel(losses[k], losses[0]).statistic for k in (1, 2, 3))])
    errors = losses.mean(axis=1)
    assert errors.argmin() == 0
    expected = np.exp(-(t**2) / 4 - (errors / errors[0] - 1) / 20)
    np.testing.assert_allclose(_shares(losses), expected / expected.sum(), rtol=1e-10)


def test_one_bad_row_costs_little_and_the_same_excess_in_all_rows_costs_all():
    rng = np.random.RandomState(1)
    best = 1 + 0.1 * rng.uniform(size=10)
    by_one_row, by_all_rows = best.copy(), best + 0.1 + 0.01 * rng.uniform(size=10)
    by_one_row[3] += 1.05
    shares = _shares(np.stack([best, by_one_row, by_all_rows]))
    assert shares[1] > 0.7 * shares[0]
    assert shares[2] < 1e-6


def test_models_with_the_same_losses_count_alike_and_an_exact_one_alone():
    np.testing.assert_allclose(_shares(np.full((3, 5), 0.2)), 1 / 3)
    np.testing.assert_allclose(_shares(np.zeros((3, 5))), 1 / 3)
    # The excess of 2^-2 is the same number in all rows, without any rounding error.
    exact = np.array([[0.0] * 5, [0.1, 0.2, 0.1, 0.3, 0.2], [0.25] * 5])
    np.testing.assert_allclose(_shares(exact), [1, 0, 0], atol=1e-12)


def test_pairs_of_labels_that_occur_by_chance_count_little():
    Y = np.repeat(np.eye(4, dtype=int), 50, axis=0)
    Y[0, 1] = 1  # the only row with two labels
    apart, together = (
        propagate_labels(Y, None, 0.5, pseudo_count=count).scores[[60, 160]] for count in (0.0, 1.0)
    )
    # Without the count, the logarithm of a label that never occurs beside the row's own is -inf.
    assert apart[0, 2] == 0 < apart[0, 0]
    assert 1 < together[0, 0] / together[0, 2] < 2.5


def test_a_label_without_relevant_rows_stays_alone_with_a_pseudo_count():
    Y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0]])
    found = propagate_labels(Y, None, 0.5, pseudo_count=1.0)
    np.testing.assert_array_equal(found.graph[2], [0, 0, 1])
    np.testing.assert_array_equal(found.scores[:, 2], 0)
    assert found.graph[0, 1] == pytest.approx((1 + 1) / (3 + 2))


def test_the_mean_of_one_hot_rows_has_no_infinite_error():
    rng = np.random.RandomState(0)
    sources = {"noise": unit_source(rng.randn(30, 4))}
    blend = blend_sources(sources, np.arange(8), np.eye(4)[rng.randint(4, size=8)])
    assert blend.error_of_mean < 3 * np.log(4)
