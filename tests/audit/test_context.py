"""The model of a tag given the other tags, against slow versions of the same equations."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from lemll.audit.scores import ContextModel, context_log_odds, fit_context, tag_evidence


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 4))
    Y = (features + rng.normal(size=(80, 4)) > 0.3).astype(np.int8)
    Y[:, 3] = (Y[:, 0] & (1 - Y[:, 1])) ^ (rng.random(80) < 0.1)
    return features, Y


def slow_objective(model, features, Y, tags, penalty):
    """Eq. of `fit_context`, cell by cell."""
    total = penalty / 2 * ((model.coupling**2).sum() + (model.by_count**2).sum())
    total += ((model.slope - 1) ** 2).sum() / 2
    for i in range(len(Y)):
        for j in range(Y.shape[1]):
            if Y[i, j] < 0:
                continue
            margin = model.slope[j] * features[i, j] + model.intercept[j]
            others = 0.0
            for k in range(Y.shape[1]):
                if k != j:
                    margin += tags[i, k] * model.coupling[k, j]
                    others += tags[i, k]
            for r in range(3):
                margin += model.by_count[r, j] * max(0.0, 1 - abs(others - r))
            sign = 1 if Y[i, j] else -1
            total += np.log1p(np.exp(-sign * margin))
    return total


@pytest.mark.parametrize("hidden", [False, True])
def test_fit_minimises_the_objective(problem, hidden):
    features, Y = problem
    if hidden:
        Y = Y.copy()
        Y[np.random.default_rng(1).random(Y.shape) < 0.2] = -1
    evidence = tag_evidence(features, Y)
    tags = evidence.tags.toarray() if sparse.issparse(evidence.tags) else evidence.tags
    found = fit_context(features, Y, evidence, 2.0)
    value = slow_objective(found, features, Y, tags, 2.0)
    shapes = [part.shape for part in found]

    def slow(at):
        parts = np.split(at, np.cumsum([np.prod(shape) for shape in shapes])[:-1])
        model = ContextModel(*(p.reshape(s) for p, s in zip(parts, shapes, strict=True)))
        return slow_objective(model, features, Y, tags, 2.0)

    start = np.concatenate([part.ravel() for part in found])
    better = minimize(slow, start, method="L-BFGS-B", options={"maxfun": 600})
    assert value <= better.fun + 1e-3 * abs(better.fun)
    assert np.all(np.diag(found.coupling) == 0)


def test_sparse_and_dense_tags_give_the_same(problem):
    features, Y = problem
    evidence = tag_evidence(features, Y)
    dense = evidence._replace(tags=np.asarray(evidence.tags))
    thin = evidence._replace(tags=sparse.csr_array(dense.tags))
    first = fit_context(features, Y, dense, 3.0)
    second = fit_context(features, Y, thin, 3.0)
    np.testing.assert_allclose(
        first.log_odds(features, dense), second.log_odds(features, thin), atol=1e-6
    )


def test_a_tag_that_follows_from_others_is_found():
    """The third tag is given if and only if the first is not."""
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 3)) < 0.4).astype(np.int8)
    Y[:, 2] = 1 - Y[:, 0]
    features = np.zeros((400, 3))
    rows = np.arange(400)
    folds = [(rows[rows % 5 != k], rows[rows % 5 == k]) for k in range(5)]
    found = context_log_odds(features, Y, folds)
    assert ((found[:, 2] > 0) == (Y[:, 2] == 1)).all()
    assert ((found[:, 0] > 0) == (Y[:, 0] == 1)).all()


def test_a_row_does_not_see_its_own_tag():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 4)) < 0.4).astype(np.int8)
    Y[:, 3] = Y[:, 0] | Y[:, 1]
    features = rng.normal(size=(200, 4))
    rows = np.arange(200)
    folds = [(rows[rows % 4 != k], rows[rows % 4 == k]) for k in range(4)]
    found = context_log_odds(features, Y, folds)
    changed = Y.copy()
    changed[8, 2] = 1 - changed[8, 2]  # row 8 is scored by fold 0, which is fitted without it
    again = context_log_odds(features, changed, folds)
    assert again[8, 2] == pytest.approx(found[8, 2], abs=1e-9)
    assert again[8, 3] != found[8, 3]


def test_one_label_has_no_other_tags():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 1))
    Y = (features > 0).astype(np.int8)
    folds = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    assert context_log_odds(features, Y, folds) is features
