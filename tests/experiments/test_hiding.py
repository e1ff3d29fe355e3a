"""Hidden labels: which cells, from whom, and that nobody sees their values."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from engine_methods import plan, ran
from sklearn.base import BaseEstimator, ClassifierMixin

from lemll.datasets import Dataset, load_digit_tags, write_npz
from lemll.exceptions import ProtocolError
from lemll.lab import (
    ComparisonTable,
    Hide,
    Method,
    Protocol,
    Splits,
    Store,
    Tuning,
    register,
    run,
    run_cell,
    searches,
    verify,
)
from lemll.lab.cells import make_source
from lemll.lab.methods import MethodSpec

SEEN: list[tuple[np.ndarray, np.ndarray]] = []


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps what it was given; its scores are the first features times `weight`."""

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def fit(self, X, y):
        SEEN.append((np.array(X), np.array(y)))
        self.n_labels_ = y.shape[1]
        return self

    def decision_function(self, X):
        return self.weight * np.asarray(X)[:, : self.n_labels_]

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


register(Method("Spy", "learner", Spy, {}, "for tests"))


@pytest.fixture(autouse=True)
def _forget():
    SEEN.clear()


def protocol(*hide: Hide, methods=("Spy",), splits=1, **options) -> Protocol:
    return plan(*methods, splits=splits, hide=hide, **options)


def halves(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.RandomState(seed).permutation(len(load_digit_tags()))
    return order[: len(order) // 2], order[len(order) // 2 :]


def given(rule: Protocol) -> list[np.ndarray]:
    """Run all cells; return the labels that the methods were fitted to."""
    for cell in rule.cells():
        outcome = run_cell(rule, cell)
        assert outcome.status == "done", outcome.error
    return [labels for _, labels in SEEN]


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
def test_exactly_the_share_is_hidden_and_the_others_stay(share):
    Y = load_digit_tags().Y[:101]
    cells, positives, rows = (
        Hide(kind, share).apply(Y, seed=(3,)) for kind in ("cells", "positives", "rows")
    )
    assert np.isnan(cells).sum() == round(share * Y.size)
    assert np.array_equal(cells[~np.isnan(cells)], Y[~np.isnan(cells)])
    assert np.isnan(positives).sum() == round(share * Y.sum())
    assert (Y[np.isnan(positives)] == 1).all()
    gone = np.isnan(rows)
    assert gone.all(axis=1).sum() == gone.any(axis=1).sum() == round(share * len(Y))


@pytest.mark.parametrize("kind", ["cells", "positives", "rows"])
def test_a_larger_share_hides_what_a_smaller_one_hides(kind):
    Y = load_digit_tags().Y[:101]
    small, large = (np.isnan(Hide(kind, share).apply(Y, seed=(0,))) for share in (0.3, 0.6))
    assert (large | ~small).all()
    assert large.sum() > small.sum()


def test_labels_that_are_unknown_already_do_not_count_as_hidden():
    Y = np.where(np.arange(40).reshape(10, 4) % 4 == 0, np.nan, 1.0)
    hidden = Hide("cells", 0.5).apply(Y, seed=(0,))
    assert np.isnan(hidden[:, 0]).all()
    assert np.isnan(hidden[:, 1:]).sum() == 15


def test_the_labels_of_the_caller_do_not_change():
    Y = load_digit_tags().Y[:20]
    before = Y.copy()
    Hide("cells", 0.5).apply(Y, seed=(0,))
    assert np.array_equal(Y, before)


def test_all_methods_get_the_same_labels_and_another_split_gets_others():
    first, second, third, _ = given(
        protocol(Hide("cells", 0.6), methods=("Spy", MethodSpec("Spy", "again")), splits=2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(np.isnan(first), np.isnan(third))
    train, _ = halves()
    known = ~np.isnan(first)
    assert np.array_equal(first[known], load_digit_tags().Y[train][known])


def test_the_halves_of_a_seed_hide_the_same_whatever_the_number_of_splits():
    rule = protocol(Hide("cells", 0.6), splits=2)
    alone = dataclasses.replace(rule, splits=Splits("halves", 1, random_state=1))
    assert [cell.id for cell in rule.cells()][1:] == [cell.id for cell in alone.cells()]
    _, second, again = given(rule) + given(alone)[2:]
    np.testing.assert_array_equal(second, again)


@pytest.mark.parametrize("kind", ["kfold", "stratified"])
def test_each_fold_hides_labels_of_its_own_training_rows(kind):
    rule = dataclasses.replace(protocol(Hide("rows", 0.5)), splits=Splits(kind, 3))
    first, second, third = given(rule)
    for labels in (first, second, third):
        assert np.isnan(labels).all(axis=1).sum() == round(0.5 * len(labels))
    assert not np.array_equal(np.isnan(first[:500]), np.isnan(second[:500]))


def test_test_rows_are_never_hidden():
    rule = protocol(Hide("rows", 0.95), Hide("cells", 0.9))
    complete = protocol()
    plain = run_cell(complete, next(complete.cells())).metrics
    for cell in rule.cells():
        # The spy ignores the labels, so equal measures prove equal, complete test labels.
        assert run_cell(rule, cell).metrics == plain


def test_values_of_hidden_cells_never_reach_the_learner(tmp_path):
    """Change every hidden value in the file: all methods get the same labels as before."""
    digits = load_digit_tags()
    Y = digits.Y.copy()
    train, _ = halves()
    hidden = np.isnan(Hide("cells", 0.6).apply(Y[train], seed=(0,)))
    poisoned = Y.copy()
    poisoned[train] = np.where(hidden, 1 - Y[train], Y[train])
    seen = []
    for number, labels in enumerate((Y, poisoned)):
        file = tmp_path / f"{number}.npz"
        write_npz(Dataset(X=digits.X, Y=labels), file)
        rule = dataclasses.replace(
            protocol(
                Hide("cells", 0.6),
                methods=("Spy", MethodSpec("Spy", "zero", unobserved="zero")),
                tuning=Tuning(folds=2, grids={"Spy": {"weight": (1.0, 2.0)}}),
            ),
            datasets=(make_source(str(file)),),
        )
        SEEN.clear()
        seen.append(given(rule))
    for before, after in zip(*seen, strict=True):
        np.testing.assert_array_equal(before, after)


def test_zero_gives_the_same_known_labels_and_zeros_for_the_others():
    skip, zero = given(
        protocol(Hide("cells", 0.6), methods=("Spy", MethodSpec("Spy", "zero", unobserved="zero")))
    )
    assert np.array_equal(zero, np.nan_to_num(skip, nan=0.0))
    assert zero.dtype.kind == "i"


def test_zero_also_reads_unknown_labels_of_the_file(tmp_path):
    digits = load_digit_tags()
    Y = digits.Y.astype(float)
    Y[::2, 0] = np.nan
    write_npz(Dataset(X=digits.X, Y=Y), tmp_path / "partial.npz")
    rule = protocol(methods=(MethodSpec("Spy", unobserved="zero"),))
    (labels,) = given(
        dataclasses.replace(rule, datasets=(make_source(str(tmp_path / "partial.npz")),))
    )
    assert not np.isnan(labels).any()


def test_tuning_scores_only_known_cells_and_zeros_where_they_are_read_as_zeros(monkeypatch):
    truths = []
    original = searches.make_search

    def watched(estimator, grid, tuning, folds, decisions):
        search = original(estimator, grid, tuning, folds, decisions)
        scorer = search.scoring

        def scoring(model, X, y):
            truths.append(np.array(y, dtype=float))
            return scorer(model, X, y)

        return search.set_params(scoring=scoring)

    monkeypatch.setattr(searches, "make_search", watched)
    grids = {"Spy": {"weight": (1.0,)}, "zero": {"weight": (1.0,)}}
    given(
        protocol(
            Hide("cells", 0.6),
            methods=("Spy", MethodSpec("Spy", "zero", unobserved="zero")),
            tuning=Tuning(folds=2, grids=grids),
        )
    )
    of_skip, of_zero = np.vstack(truths[:2]), np.vstack(truths[2:])
    assert np.isnan(of_skip).mean() == pytest.approx(0.6, abs=1e-3)
    np.testing.assert_array_equal(of_zero, np.nan_to_num(of_skip, nan=0.0))


def test_scaled_features_have_the_mean_and_deviation_of_the_training_rows():
    given(protocol(methods=(MethodSpec("Spy", features="scaled"), MethodSpec("Spy", "given"))))
    (scaled, _), (plain, _) = SEEN
    varying = plain.std(axis=0) > 0
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(scaled.std(axis=0)[varying], 1.0)


def test_sparse_features_are_divided_by_their_largest_value_and_stay_sparse(tmp_path, monkeypatch):
    from scipy import sparse

    digits = load_digit_tags()
    file = tmp_path / "sparse.npz"
    write_npz(Dataset(X=sparse.csr_array(digits.X), Y=digits.Y), file)
    found = []
    monkeypatch.setattr(
        Spy,
        "fit",
        lambda self, X, y: found.append(X) or setattr(self, "n_labels_", y.shape[1]) or self,
    )
    monkeypatch.setattr(Spy, "decision_function", lambda self, X: X.toarray()[:, : self.n_labels_])
    rule = protocol(methods=(MethodSpec("Spy", features="scaled"),))
    rule = dataclasses.replace(rule, datasets=(make_source(str(file)),))
    assert run_cell(rule, next(rule.cells())).status == "done"
    assert sparse.issparse(found[0])
    assert np.isin(abs(found[0]).max(axis=0).toarray(), (0.0, 1.0)).all()


def test_stores_do_not_mix_hidden_and_complete_cells(tmp_path):
    methods = ("Spy", MethodSpec("Spy", "zero", unobserved="zero"))
    rules = [
        protocol(methods=methods),
        protocol(Hide("cells", 0.6), methods=methods),
        protocol(Hide("rows", 0.6), methods=methods),
        protocol(Hide("cells", 0.9), methods=methods),
    ]
    ids = [cell.id for rule in rules for cell in rule.cells()]
    assert len(set(ids)) == len(ids) == 8
    store = Store(tmp_path / "store")
    run(rules[0], store, backend="sequential")
    for rule in rules[1:]:
        overview = store.overview(rule.cells())
        assert (len(overview.pending), len(overview.stale), overview.unrelated) == (2, 0, 2)


def test_complete_cells_keep_the_work_they_had_before_labels_could_be_hidden():
    """Results in stores and committed tables are found by this hash."""
    (cell,) = plan("ML-kNN", splits=1).cells()
    assert cell.setting.key == ["halves", 0]
    assert cell.parameters.keys() == {"n_neighbors", "scale", "smoothing", "thresholds"}


def test_a_table_has_one_panel_per_rule_without_the_figures_of_complete_labels(tmp_path):
    rule = protocol(
        Hide("cells", 0.3), Hide("rows", 0.95), splits=2, metrics=("average_precision",)
    )
    store = ran(rule, tmp_path / "store")
    table = ComparisonTable.from_store(rule, store)
    assert [panel.title for panel in table.panels] == [
        "Average precision ↑, 30 % of the cells hidden",
        "Average precision ↑, 95 % of the rows hidden",
    ]
    assert all(
        entry.complete and len(entry.values) == 2 and not entry.published
        for panel in table.panels
        for entry in panel.entries.values()
    )
    lines = table.to_csv().splitlines()
    assert lines[0].endswith(",published_std,hidden")
    assert lines[-1].endswith(",95 % of the rows hidden")
    assert verify(rule, store).problems == ()
    record = next(iter(store.records()))
    assert re.search(r"halves [01], (cells 0\.3|rows 0\.95) hidden$", str(record))


TOML = """
experiment = "prediction"
datasets = ["digit-tags"]
methods = ["Spy"]
"""


def read(tmp_path: Path, text: str) -> Protocol:
    (tmp_path / "p.toml").write_text(TOML + text, encoding="utf-8")
    return Protocol.from_toml(tmp_path / "p.toml")


def test_toml_names_one_rule_a_list_of_shares_or_several_rules(tmp_path):
    one = read(tmp_path, '[hide]\nkind = "positives"\nshare = 0.5')
    assert one.hide == (Hide("positives", 0.5),)
    several = read(
        tmp_path,
        '[[hide]]\nkind = "cells"\nshare = [0.3, 0.9]\n[[hide]]\nkind = "rows"\nshare = 0.8',
    )
    assert several.hide == (Hide("cells", 0.3), Hide("cells", 0.9), Hide("rows", 0.8))
    assert [str(cell.setting) for cell in several.cells()][:4] == [
        "halves 0, 30 % of the cells hidden",
        "halves 0, 90 % of the cells hidden",
        "halves 0, 80 % of the rows hidden",
        "halves 1, 30 % of the cells hidden",
    ]


def test_toml_gives_variants_of_a_method(tmp_path):
    text = TOML.replace('methods = ["Spy"]', "")
    (tmp_path / "p.toml").write_text(
        f'{text}[methods."Spy (hidden as 0)"]\nmethod = "Spy"\nunobserved = "zero"\n'
        'features = "scaled"\nweight = 2.0',
        encoding="utf-8",
    )
    (spec,) = Protocol.from_toml(tmp_path / "p.toml").methods
    assert spec == MethodSpec("Spy", "Spy (hidden as 0)", {"weight": 2.0}, "zero", "scaled")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hide = 0.5", r"hide must be a table, \[hide\], or tables, \[\[hide\]\], got 0\.5\."),
        ('[hide]\nkind = "cells"', r"\[hide\] has no 'share'; give a kind and a share\."),
        ("[hide]\nshare = 0.5", r"\[hide\] has no 'kind'; give a kind and a share\."),
        ('[hide]\nkind = "cell"\nshare = 0.5', "'cell'; did you mean 'cells'. Known: cells, p"),
        ('[hide]\nkind = "cells"\nshare = 0.5\nseed = 1', r"unknown key of \[hide\] 'seed'; Known"),
        *(
            (
                f'[hide]\nkind = "cells"\nshare = {share}',
                "share of hide must be a number between 0 and 1, got .*; leave hide out to keep "
                "all labels",
            )
            for share in ("0", "1.0", "-0.5", "true", '"half"', "nan")
        ),
        ('[hide]\nkind = "cells"\nshare = [0.5, 0.5]', "rules of hide must differ, got 50 % of"),
    ],
)
def test_wrong_rules_are_refused(tmp_path, text, message):
    with pytest.raises(ProtocolError, match=message):
        read(tmp_path, text)


def test_a_reconstruction_cannot_hide_labels():
    with pytest.raises(ValueError, match="hide belongs to a prediction, which has training rows; "):
        plan(
            "KM", experiment="reconstruction", datasets=("artificial",), hide=(Hide("cells", 0.5),)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unobserved": "none"}, "unknown value of unobserved of method 'Spy' 'none'; .*skip"),
        ({"features": "scale"}, "unknown value of features of method 'Spy' 'scale'; .*'scaled'"),
    ],
)
def test_unknown_options_of_a_method_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MethodSpec("Spy", **options)


def test_a_share_that_leaves_nothing_is_refused():
    message = "95 % of the rows hidden leaves none of 4 rows in the training rows; lower the share"
    with pytest.raises(ValueError, match=message):
        Hide("rows", 0.95).apply(np.ones((4, 2)), seed=(0,))


def test_a_learner_that_needs_all_labels_says_which_learners_do_not():
    rule = protocol(Hide("cells", 0.5), methods=("MLFE",))
    outcome = run_cell(rule, next(rule.cells()))
    assert outcome.status == "failed"
    assert "use a learner that can learn from such labels (LEMLL," in outcome.error["message"]
