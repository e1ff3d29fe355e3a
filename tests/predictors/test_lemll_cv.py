"""LEMLLCV and MSVRCV: they find what a loop over single fits would find."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict, cross_val_score

from lemll import LEMLL, LEMLLCV, MSVRCV, MSVRClassifier
from lemll.metrics import METRICS, get_scorer, hamming_loss, one_error
from lemll.model_selection import IterativeStratifiedKFold

AXIS = (1 / 16, 1.0, 16.0)
SMALL = {"alphas": AXIS, "betas": AXIS, "gammas": (0.0, 4.0)}
EXACT = LEMLL(tol=1e-10, max_iter=20_000)
TIGHT = {"tol_search": 1e-10, "estimator": EXACT}


def loop_scores(X, Y, cv, scoring="average_precision", **settings):
    """Mean scores by one fit for every fold and point."""
    return {
        point: cross_val_score(
            LEMLL(*point, tol=1e-10, max_iter=20_000, **settings),
            X,
            Y,
            cv=cv,
            scoring=get_scorer(scoring),
        ).mean()
        for point in itertools.product(AXIS, AXIS, SMALL["gammas"])
    }


def points_of(model):
    names = ("alpha", "beta", "gamma")
    return list(zip(*(model.cv_results_[f"param_{name}"].tolist() for name in names), strict=True))


@pytest.mark.parametrize("scoring", ["average_precision", "ranking_loss"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_scores_are_those_of_a_loop_over_single_fits(labelled, scoring, kernel):
    X, Y = labelled
    cv = IterativeStratifiedKFold(3)
    # A width of its own in every fold, as a single fit would choose it.
    model = LEMLLCV(**SMALL, **TIGHT, cv=3, scoring=scoring, kernel=kernel).fit(X, Y)
    expected = loop_scores(X, Y, cv, scoring, kernel=kernel)
    means = model.cv_results_[f"mean_test_{scoring}"]
    assert dict(zip(points_of(model), means, strict=True)) == pytest.approx(expected, abs=1e-6)
    best = tuple(model.best_params_[name] for name in ("alpha", "beta", "gamma"))
    assert expected[best] == pytest.approx(max(expected.values()), abs=1e-6)
    assert model.best_score_ == pytest.approx(max(expected.values()), abs=1e-6)
    alone = LEMLL(*best, kernel=kernel, tol=1e-10, max_iter=20_000).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_msvr_scores_are_those_of_a_loop(labelled):
    X, Y = labelled
    model = MSVRCV(AXIS, cv=KFold(3), tol_search=1e-10).fit(X, Y)
    expected = [
        cross_val_score(
            MSVRClassifier(alpha), X, Y, cv=KFold(3), scoring=get_scorer("average_precision")
        ).mean()
        for alpha in AXIS
    ]
    np.testing.assert_allclose(model.cv_results_["mean_test_average_precision"], expected, 1e-6)
    assert model.best_params_["alpha"] == AXIS[int(np.argmax(expected))]
    assert set(model.best_params_) == {"alpha", "kernel", "kernel_gamma", "normalize_rows", "scale"}
    assert isinstance(model.best_estimator_, MSVRClassifier)
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))


def test_the_results_are_tidy_and_losses_negated(labelled):
    X, Y = labelled
    measures = ("hamming_loss", "average_precision")
    model = LEMLLCV(**SMALL, scoring=measures, cv=3).fit(X, Y)
    table = pd.DataFrame(model.cv_results_)
    assert len(table) == 18
    assert (table["mean_test_hamming_loss"] <= 0).all()
    assert (table["mean_test_average_precision"] >= 0).all()
    for name in measures:
        splits = table[[f"split{i}_test_{name}" for i in range(3)]].to_numpy()
        np.testing.assert_allclose(table[f"mean_test_{name}"], splits.mean(axis=1))
        np.testing.assert_allclose(table[f"std_test_{name}"], splits.std(axis=1))
        ranks = (-table[f"mean_test_{name}"]).rank(method="min")
        np.testing.assert_array_equal(table[f"rank_test_{name}"], ranks)
    assert (table["optimality"] <= 1e-3).all()
    assert model.n_splits_ == 3
    # The first decides.
    assert model.best_index_ == table["mean_test_hamming_loss"].argmax()
    assert model.best_score_ == table["mean_test_hamming_loss"].max()
    assert table["mean_test_average_precision"].argmax() != model.best_index_


def test_a_function_scores(labelled):
    X, Y = labelled
    seen = []

    def fewest_errors(truth, scores):
        seen.append((truth.shape, scores.shape))
        return -hamming_loss(truth, (scores > 0).astype(int)) - one_error(truth, scores)

    settings = SMALL | {"cv": KFold(4), "estimator": LEMLL(tol=1e-3)}
    model = LEMLLCV(**settings, scoring=fewest_errors).fit(X, Y)
    assert set(seen) == {((15, 3), (15, 3))}
    assert len(seen) == 4 * 18
    named = LEMLLCV(**settings, scoring=("hamming_loss", "one_error")).fit(X, Y)
    total = named.cv_results_["mean_test_hamming_loss"] + named.cv_results_["mean_test_one_error"]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], total)


def test_a_loss_is_negated_by_name_function_metric_and_scorer(labelled):
    X, Y = labelled
    settings = SMALL | {"cv": KFold(4), "estimator": LEMLL(tol=1e-3)}
    named = LEMLLCV(**settings, scoring="one_error").fit(X, Y).cv_results_["mean_test_one_error"]
    assert named.max() < 0
    for same in (one_error, METRICS["one_error"], get_scorer("one_error")):
        found = LEMLLCV(**settings, scoring=same).fit(X, Y).cv_results_["mean_test_one_error"]
        np.testing.assert_array_equal(found, named)


def test_folds_by_number_splitter_or_pairs(labelled):
    X, Y = labelled
    by_number = LEMLLCV(**SMALL, cv=3).fit(X, Y)
    by_splitter = LEMLLCV(**SMALL, cv=IterativeStratifiedKFold(3)).fit(X, Y)
    pairs = list(IterativeStratifiedKFold(3).split(X, Y))
    by_pairs = LEMLLCV(**SMALL, cv=pairs).fit(X, Y)
    by_numpy_number = LEMLLCV(**SMALL, cv=np.int64(3)).fit(X, Y)
    for other in (by_splitter, by_pairs, by_numpy_number):
        for name, column in by_number.cv_results_.items():
            np.testing.assert_array_equal(other.cv_results_[name], column)


def test_groups_stay_together(labelled):
    X, Y = labelled
    groups = np.arange(60) % 6
    by_groups = LEMLLCV(**SMALL, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    pairs = list(GroupKFold(3).split(X, Y, groups))
    by_pairs = LEMLLCV(**SMALL, cv=pairs).fit(X, Y)
    np.testing.assert_array_equal(
        by_groups.cv_results_["mean_test_average_precision"],
        by_pairs.cv_results_["mean_test_average_precision"],
    )
    with pytest.raises(ValueError, match="groups"):
        LEMLLCV(**SMALL, cv=GroupKFold(3)).fit(X, Y)


@pytest.mark.nightly(when=lambda n_jobs: n_jobs == -1)
@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("search", ["grid", "coarse"])
@pytest.mark.slow
def test_jobs_do_not_change_the_result(labelled, n_jobs, search):
    X, Y = labelled
    settings = {"search": search, "kernel": "auto", "cv": 3} | SMALL
    one = LEMLLCV(**settings, n_jobs=1).fit(X, Y)
    many = LEMLLCV(**settings, n_jobs=n_jobs).fit(X, Y)
    assert one.best_params_ == many.best_params_
    for name, column in one.cv_results_.items():
        np.testing.assert_array_equal(many.cv_results_[name], column)
    np.testing.assert_array_equal(one.decision_function(X), many.decision_function(X))


def test_sparse_features_give_the_same_choice(labelled):
    X, Y = labelled
    X = X * (np.abs(X) > 0.5)
    dense = LEMLLCV(**SMALL, **TIGHT, cv=3).fit(X, Y)
    thin = LEMLLCV(**SMALL, **TIGHT, cv=3).fit(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(
        thin.cv_results_["mean_test_average_precision"],
        dense.cv_results_["mean_test_average_precision"],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        thin.decision_function(sparse.csr_array(X)), dense.decision_function(X), atol=1e-4
    )


def test_a_precomputed_kernel_is_split_by_rows_and_columns(labelled):
    X, Y = labelled
    settings = {"alphas": AXIS, "betas": (1.0,), "gammas": (0.0,), "cv": 3} | TIGHT
    K = rbf_kernel(X, gamma=0.3)
    given = LEMLLCV(**settings, kernel="precomputed").fit(K, Y)
    template = clone(EXACT).set_params(kernel_params={"gamma": 0.3})
    computed = LEMLLCV(**settings | {"estimator": template}, kernel="rbf").fit(X, Y)
    np.testing.assert_allclose(
        given.cv_results_["mean_test_average_precision"],
        computed.cv_results_["mean_test_average_precision"],
        atol=1e-6,
    )
    np.testing.assert_allclose(given.decision_function(K), computed.decision_function(X), atol=1e-5)


def test_labels_constant_in_a_fold_or_everywhere(labelled):
    X, Y = labelled
    rare = np.zeros(60, dtype=int)
    rare[7] = 1
    Y = np.column_stack([Y, rare, np.ones(60, dtype=int)])
    for model in (LEMLLCV(**SMALL, cv=3), MSVRCV(AXIS, cv=3)):
        model.fit(X, Y)
        assert np.isfinite(model.cv_results_["mean_test_average_precision"]).all()
        assert (model.predict(X)[:, 4] == 1).all()


def test_one_dimensional_targets(labelled):
    X, Y = labelled
    names = np.array(["no", "yes"])[Y[:, 0]]
    model = LEMLLCV(**SMALL, cv=3, estimator=LEMLL(thresholds="f1", tol=1e-6)).fit(X, names)
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.score(X, names) > 0.7
    # Of a label and its opposite, one comes first: 1 where it is right, else 1/2.
    correct = cross_val_predict(LEMLL(), X, names, cv=KFold(3)) == names
    same = LEMLLCV([1.0], [1.0], [1.0], cv=KFold(3), tol_search=1e-4).fit(X, names)
    assert same.best_score_ == pytest.approx((1 + correct.mean()) / 2)
    three = LEMLLCV(**SMALL, cv=3).fit(X, Y[:, 0] + Y[:, 1])
    assert three.classes_.tolist() == [0, 1, 2]
    assert set(three.predict(X)) <= {0, 1, 2}
