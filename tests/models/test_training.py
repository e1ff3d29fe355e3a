"""Fitting a table: held-out figures, predictions, honesty on noise."""

import numpy as np
import pandas as pd
import pytest

from lemll import BinaryRelevance, MultilabelForest, TagPredictor
from lemll.exceptions import LemllError
from lemll.metrics import average_precision, micro_f1
from lemll.models import assess, compare_learners, fit_table, make_learner, training
from lemll.models.assess import label_shares
from lemll.tables import LabelSpec, Table, TableEncoder, inspect_columns

pytestmark = pytest.mark.slow


def test_it_learns_and_predicts_a_table(photos, model):
    new = Table(photos(seed=1), "new")
    found = model.predict(new)
    assert found.ids[0] == "IMG_1_00000"
    assert found.are_probabilities
    assert found.labels.shape == found.probabilities.shape == (120, 3)
    assert model.label_names == ("night", "sea", "sky")
    assessment, unknown, n_seen = model.evaluate(new)
    assert n_seen == 0
    assert assessment.learned
    assert unknown == ()
    assert assessment.scores[0].value > 0.85
    assert "better than the frequencies" in assessment.verdict


def test_no_choice_has_seen_the_rows_that_are_measured(table, spec, monkeypatch):
    seen = spied_encoders(monkeypatch)
    lines = []
    fit_table(table, spec, ids="file", learner=BinaryRelevance(), progress=lines.append)
    (_, compared), (_, first), (_, last) = seen
    assert len(compared) == 120  # to find equal rows
    assert len(first) == 96
    assert len(last) == 120
    assert lines == ["fitting 96 rows; 24 rows are held out", "fitting all 120 rows"]


def spied_encoders(monkeypatch):
    """Collect the encoders of a command, and the indices of the rows that they were fitted to."""
    fitted = []
    fit = TableEncoder.fit_transform

    def spying(self, X, y=None):
        fitted.append((self, list(X.index)))
        return fit(self, X, y)

    monkeypatch.setattr(TableEncoder, "fit_transform", spying)
    return fitted


def test_a_row_that_is_held_out_does_not_change_what_a_column_holds(photos, spec, monkeypatch):
    fitted = spied_encoders(monkeypatch)
    learner = BinaryRelevance()
    frame = photos().assign(code=[str(7 + i % 50) for i in range(120)])
    fit_table(Table(frame, "t"), spec, ids="file", learner=learner)
    train = fitted[1][1]
    held_out = min(set(frame.index) - set(train))
    frame.loc[held_out, "code"] = "007"  # a code is no number
    assert inspect_columns(frame.loc[train, ["code"]])[0].kind == "number"
    fit_table(Table(frame, "t"), spec, ids="file", learner=learner)
    (measured, rows), (final, _) = fitted[4:]
    assert rows == train
    assert measured.columns_ == final.columns_
    assert {column.name: column.kind for column in measured.columns_}["code"] == "category"
    # What is learned from the cells is still that of the training rows.
    assert "code 007" not in measured.get_feature_names_out()
    fitted.clear()
    compare_learners(Table(frame, "t"), spec, ["BinaryRelevance"], ids="file", n_splits=3)
    assert [encoder.columns_ for encoder, _ in fitted] == [final.columns_] * 4


@pytest.mark.filterwarnings("ignore:.* does not learn from:UserWarning")
@pytest.mark.parametrize("learner", [MultilabelForest(10, random_state=0), BinaryRelevance()])
def test_unknown_cells_are_learned_from(photos, learner):
    frame = photos().drop(columns="tags")
    frame["sea"] = np.where(frame.index % 5 == 0, None, frame["caption"].str.contains("water"))
    spec = LabelSpec(labels=("sea",))
    model, found = fit_table(Table(frame, "t"), spec, learner=learner, ignore=["file"])
    assert found.learned
    # With one label no row has two labels to rank, so the measures that rank labels are left out.
    measured = {score.measure for score in found.scores}
    assert not measured & {"average_precision", "ranking_loss", "one_error"}
    assert {"hamming_loss", "micro_f1", "macro_auc", "log_loss"} <= measured
    assert model.label_names == ("sea",)


def test_tag_predictor_reports_its_steps_and_keeps_no_callback(table, spec):
    lines = []
    learner = TagPredictor(n_estimators=5, cv=2, max_seconds=1e-3)
    model, _ = fit_table(table, spec, learner=learner, ids="file", progress=lines.append)
    assert any("logistic: out-of-fold scores (1 of 10" in line for line in lines)
    assert model.learner.callback is None


def noise(n, seed):
    rng = np.random.RandomState(seed)
    columns = {f"x{j}": rng.randn(n) for j in range(4)}
    labels = {f"y{j}": rng.randint(0, 2, n) for j in range(4)}
    return Table(pd.DataFrame({**columns, **labels}), "noise")


def test_noise_is_reported_as_noise(nightly):
    """The reported score is that of fresh rows, and noise is not called learning."""
    spec = LabelSpec(labels=("y0", "y1", "y2", "y3"))
    gaps, learned = [], 0
    for seed in range(20 if nightly else 8):
        learner = TagPredictor(n_estimators=10, cv=2, max_seconds=0.2)
        model, found = fit_table(noise(200, seed), spec, learner=learner, seed=seed)
        fresh, *_ = model.evaluate(noise(400, 1000 + seed))
        gaps.append(found.scores[0].value - fresh.scores[0].value)
        learned += found.learned
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 2 * error
    assert learned <= 0.15 * len(gaps)


def test_few_rows_are_refused(photos, spec):
    with pytest.raises(LemllError, match="t has 19 rows, and at least 20 are needed to hold some"):
        fit_table(Table(photos(19), "t"), spec)


def test_learners_by_name():
    assert make_learner("tagpredictor", seconds=100).max_seconds == 25
    assert isinstance(make_learner("BinaryRelevance", seconds=1), BinaryRelevance)
    with pytest.raises(LemllError, match="`learner` must be one of TagPredictor, LEMLL, .*'xgb'"):
        make_learner("xgb")
    with pytest.raises(LemllError, match="`seconds` must be above 0, got -1"):
        make_learner(seconds=-1)


def random_rows(n=80, hidden=0.2):
    rng = np.random.RandomState(0)
    Y = (rng.rand(n, 4) < 0.4).astype(float)
    scores = Y + rng.randn(n, 4)
    Y[rng.rand(n, 4) < hidden] = np.nan
    return Y, scores


def test_values_are_those_of_the_metrics():
    Y, scores = random_rows()
    found = {s.measure: s for s in assess(Y, scores, scores > 0.5, label_shares(Y)).scores}
    assert found["average_precision"].value == average_precision(Y, scores)
    assert found["micro_f1"].value == micro_f1(Y, (scores > 0.5).astype(int))
    for score in found.values():
        assert score.interval[0] < score.value < score.interval[1]


def test_scores_without_information_are_no_evidence():
    Y, _ = random_rows()
    found = assess(Y, np.random.RandomState(3).randn(*Y.shape), Y > 2, label_shares(Y))
    assert not found.learned
    assert found.verdict.startswith("No evidence of learning")
    assert found.n_untagged == len(Y)
    assert found.to_json()["learned"] is False


def test_ctrl_c_in_the_last_fit_keeps_the_measured_model(table, spec):
    calls = []

    class Stopped(BinaryRelevance):
        def fit(self, X, y):
            calls.append(len(y))
            if len(calls) == 2:
                raise KeyboardInterrupt
            return super().fit(X, y)

    lines = []
    model, found = fit_table(table, spec, ids="file", learner=Stopped(), progress=lines.append)
    assert model.n_rows == 120 - found.n_rows == calls[0]
    assert "is kept" in lines[-1]


def test_predictions_as_a_frame_have_ids_and_labels(model, table):
    found = model.predict(table)
    frame = found.to_frame()
    assert list(frame.columns) == list(model.label_names)
    assert frame.index[0] == "IMG_0_00000"
    np.testing.assert_array_equal(frame.to_numpy(), found.probabilities)


@pytest.mark.parametrize("name", ["LEMLL", "MSVR", "TagPredictor"])
def test_thresholds_can_be_chosen_by_name(name):
    learner = make_learner(name, thresholds="f1")
    assert "f1" in (getattr(learner, "optimize", ""), learner.thresholds)
    with pytest.raises(LemllError, match="`thresholds` must be zero, f1 or hamming, got 'best'"):
        make_learner(name, thresholds="best")


def test_a_measure_that_frequencies_satisfy_does_not_decide():
    rng = np.random.RandomState(0)
    truth = (rng.uniform(size=(200, 2)) < 0.5).astype(float)
    # The second label is relevant only where the first is: its order never changes.
    truth[:, 1] = np.minimum(truth[:, 0], truth[:, 1])
    scores = truth - 0.5 + rng.normal(scale=0.2, size=truth.shape)
    scores[:, 0] += 2
    found = assess(truth, scores, truth == 1, truth.mean(axis=0))
    (precision,) = (score for score in found.scores if score.measure == "average_precision")
    assert precision.baseline == 1
    assert found.learned


def test_the_verdict_does_not_rest_on_few_rows():
    rng = np.random.RandomState(0)
    Y = (rng.rand(200, 4) < 0.5).astype(float)
    scores = Y + 0.5 * rng.randn(*Y.shape)
    Y[rng.rand(*Y.shape) < 0.8] = np.nan
    shares = np.nanmean(Y, axis=0)
    found = assess(Y, scores, scores > 0.5, shares)
    tagged = (Y == 1).any(axis=1)
    assert found.n_ranked == (tagged & (Y == 0).any(axis=1)).sum() < tagged.sum() / 2
    by_name = {score.measure: score for score in found.scores}
    assert by_name["macro_auc"].difference[0] > 0
    assert found.learned
    assert found.to_json()["rows_with_an_average_precision"] == found.n_ranked
    # With complete labels the average precision decides, also if few rows have a label.
    Y = np.zeros((200, 6))
    Y[np.arange(60), rng.randint(6, size=60)] = 1
    noise = rng.rand(200, 1)
    found = assess(Y, Y + 10 * noise, Y > 0.5, Y.mean(axis=0))
    assert found.n_ranked == 60
    assert found.learned


def test_the_three_best_of_three_labels_are_not_a_measure():
    Y = np.eye(4)[np.arange(40) % 4]
    found = [assess(y, y, y == 1, y.mean(axis=0)) for y in (Y, Y[:, :3])]
    four, three = ({score.measure for score in one.scores} for one in found)
    assert four - three == {"precision_at_3"}


def twice(n, seed, n_labels=4):
    """Return rows with random labels, each of them twice, with different ids."""
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(rng.randn(n, 5).round(3), columns=list("abcde"))
    Y = rng.rand(n, n_labels) < 0.4
    frame["tags"] = [";".join(f"t{j}" for j in np.flatnonzero(row)) for row in Y]
    frame = pd.concat([frame, frame], ignore_index=True).sample(frac=1, random_state=seed)
    return frame.assign(id=[f"row {i}" for i in range(2 * n)]).reset_index(drop=True)


@pytest.mark.parametrize(
    "learner",
    [
        MultilabelForest(50, random_state=0),
        TagPredictor(cv=3, n_estimators=30, members=["logistic", "random forest"]),
    ],
)
def test_copies_of_rows_are_not_held_out_alone(learner):
    """With each row twice, a model knows every held-out row unless its copy is held out too."""
    lines = []
    table = Table(twice(150, 0), "twice")
    spec = LabelSpec(tags="tags", untagged="none")
    model, found = fit_table(table, spec, ids="id", learner=learner, progress=lines.append)
    assert lines[0].startswith("150 of 300 rows have the features of an earlier row")
    assert not found.learned
    assert found.scores[0].value < 0.75
    with pytest.raises(LemllError, match="every row of twice has the features of a training row"):
        model.evaluate(table)
    once, _, _ = model.evaluate(Table(twice(30, 1).drop_duplicates(list("abcde")), "once"))
    mixed = Table(pd.concat([table.frame.head(40), twice(30, 1)]), "mixed")
    again, _, n_seen = model.evaluate(mixed)
    assert n_seen == 40
    assert again.n_rows == 60
    np.testing.assert_allclose(again.scores[0].interval, once.scores[0].interval)


def test_compare_holds_copies_out_together():
    lines = []
    found = compare_learners(
        Table(twice(100, 0), "twice"), LabelSpec(tags="tags", untagged="none"),
        ["BinaryRelevance", "MultilabelForest"], ids="id", n_splits=3, progress=lines.append,
    )  # fmt: skip
    assert "100 of 200 rows have the features of an earlier row" in lines[0]
    means = found.values[:, :, found.measures.index("macro_auc")].mean(axis=0)
    assert (means < 0.6).all()


@pytest.mark.parametrize("seconds", [1e-3, 2.0])
def test_the_final_model_has_the_members_that_were_measured(table, spec, monkeypatch, seconds):
    fits = spied_fits(monkeypatch)
    learner = TagPredictor(max_seconds=seconds, n_estimators=10, cv=3)
    fit_table(table, spec, ids="file", learner=learner)
    measured, final = (fitted[-1].contributions_ for fitted, _ in fits)
    assert {name for name, share in measured.items() if share > 0} == set(final)
    assert min(final.values()) > 0


def spied_fits(monkeypatch):
    """Collect the fitted pipelines of a command, and their rows."""
    fits = []
    fit = training.fit_rows

    def spying(pipeline, data, rows, say):
        fits.append((fit(pipeline, data, rows, say), rows))
        return fits[-1][0]

    monkeypatch.setattr(training, "fit_rows", spying)
    return fits


def test_rows_that_are_held_out_do_not_change_the_measured_model(photos, spec, monkeypatch):
    """Neither the features nor the labels of these rows reach it, to the bit."""
    fits = spied_fits(monkeypatch)
    frame = photos()
    rows = np.arange(len(frame))
    split = (rows[rows % 5 > 0], rows[rows % 5 == 0])
    monkeypatch.setattr(training, "stratified_splits", lambda *_, **__: iter([split]))
    learner = TagPredictor("f1", n_estimators=10, cv=3)
    fit_table(Table(frame, "t"), spec, ids="file", learner=learner)
    changed = photos(seed=9)
    frame.loc[split[1], :] = changed.loc[split[1], :]
    fit_table(Table(frame, "t"), spec, ids="file", learner=learner)
    (first, _), _, (second, _), _ = fits
    new = photos(seed=5)
    X, X_again = first[0].transform(new), second[0].transform(new)
    np.testing.assert_array_equal(X.toarray(), X_again.toarray())
    before, after = first[-1], second[-1]
    assert before.contributions_ == after.contributions_
    np.testing.assert_array_equal(before.thresholds_, after.thresholds_)
    np.testing.assert_array_equal(before.out_of_fold_proba_, after.out_of_fold_proba_)
    np.testing.assert_array_equal(before.predict_proba(X), after.predict_proba(X))
    for one, other in zip(before._total_calibration, after._total_calibration, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_time_that_a_fit_took_is_not_in_the_model(table, spec):
    learner = TagPredictor(max_seconds=0.01, n_estimators=5, cv=2)
    model, _ = fit_table(table, spec, ids="file", learner=learner)
    assert model.pipeline[-1].max_seconds == 0.01
