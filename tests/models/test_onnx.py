"""ONNX: the outputs of an ONNX runtime are those of the model."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, StandardScaler
from typer.testing import CliRunner

import lemll
from lemll import LEMLL, LEMLLCV, MSVRCV, BinaryRelevance, MSVRClassifier, TagPredictor
from lemll.cli.app import app
from lemll.datasets import load_digit_tags
from lemll.exceptions import LemllError, MissingExtraError
from lemll.models import fit_table, to_onnx
from lemll.tables import LabelSpec, Table

onnxruntime = pytest.importorskip("onnxruntime")

ONE = {"alphas": (1.0,), "cv": 2}
LEARNERS = [
    LEMLL(),
    LEMLL(thresholds="f1", scale="auto", probability=True),
    LEMLL(kernel="rbf", scale="standard"),
    LEMLL(kernel="poly", scale="maxabs"),
    LEMLL(kernel="poly", kernel_params={"degree": 2, "coef0": 0.0}, scale="standard"),
    LEMLL(kernel="cosine"),
    LEMLL(kernel="rbf", scale="standard",
          kernel_params={"approximation": "nystroem", "n_components": 20}),
    MSVRClassifier(1e-6, kernel="sigmoid", kernel_params={"gamma": 1e-6, "coef0": 0.0},
                   scale="standard"),
    MSVRClassifier(probability=True, scale="auto"),
    LEMLLCV(**ONE, betas=(1.0,), gammas=(1.0,), kernel="rbf", normalize_rows=True,
            estimator=LEMLL(scale="standard", probability=True)),
    MSVRCV(**ONE, kernel="poly", estimator=MSVRClassifier(kernel_params={"degree": 1})),
    BinaryRelevance(thresholds="hamming"),
    make_pipeline(StandardScaler(), LEMLL(kernel="rbf")),
    make_pipeline(MinMaxScaler((-1, 1)), MaxAbsScaler(), MSVRClassifier()),
]  # fmt: skip


def sets():
    digits = load_digit_tags()
    yield "digits", digits.X[:150], digits.Y[:150], digits.X[150:400]
    for seed, shift in enumerate((0.0, 5.0, -3.0)):
        X, Y = make_multilabel_classification(300, 12, n_classes=4, random_state=seed)
        yield f"made {seed}", X[:150] + shift, Y[:150], X[150:] + shift
    rng = np.random.RandomState(0)
    X = rng.randn(250, 6) * [1, 10, 100, 0.1, 1, 3]
    Y = (X @ rng.randn(6, 3) + rng.randn(250, 3) > 0).astype(int)
    yield "units", X[:150], Y[:150], X[150:]


SETS = list(sets())


def outputs(content, X):
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


@pytest.mark.filterwarnings("ignore")  # some settings do not suit some of the sets
@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_the_runtime_says_what_the_model_says(learner, nightly):
    for name, X, Y, new in SETS if nightly else SETS[::4]:
        learner.fit(X, Y)
        found = outputs(to_onnx(learner), new)
        scores = learner.decision_function(new)
        np.testing.assert_allclose(found["scores"], scores, atol=1e-5, err_msg=name)
        sure = np.abs(scores - (learner[-1] if hasattr(learner, "steps") else learner).thresholds_)
        wrong = (found["labels"] != learner.predict(new)) & (sure > 1e-7)
        assert not wrong.any(), name
        assert ("probabilities" in found) == hasattr(learner, "predict_proba")
        if "probabilities" in found:
            np.testing.assert_allclose(found["probabilities"], learner.predict_proba(new),
                                       atol=1e-5, err_msg=name)  # fmt: skip


def test_sparse_training_rows_are_written_too():
    _, X, Y, new = SETS[0]
    for kernel in ("linear", "rbf", "poly"):
        model = LEMLL(kernel=kernel, scale="auto").fit(sparse.csr_array(X), Y)
        found = outputs(to_onnx(model), new)["scores"]
        expected = model.decision_function(sparse.csr_array(new))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def table(n=120, seed=0):
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(rng.randn(n, 3), columns=["hue", "light", "zoom"])
    frame["sea"], frame["night"] = (frame["hue"] > 0).astype(int), (frame["light"] < 0).astype(int)
    frame.loc[rng.rand(n) < 0.2, "zoom"] = np.nan
    return frame


def test_a_table_of_numbers_with_gaps(tmp_path):
    spec = LabelSpec(labels=("sea", "night"))
    model, _ = fit_table(Table(table(), "t"), spec, learner=LEMLL(kernel="rbf", probability=True))
    lemll.save(model, tmp_path / "m.lemll")
    done = CliRunner().invoke(app, ["export", str(tmp_path / "m.lemll"), "-o",
                                    str(tmp_path / "m.onnx")])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "columns: hue, light, zoom" in done.output
    new = table(seed=1)
    found = outputs((tmp_path / "m.onnx").read_bytes(), new[["hue", "light", "zoom"]].to_numpy())
    expected = model.predict(Table(new, "new"))
    np.testing.assert_allclose(found["probabilities"], expected.probabilities, atol=1e-8)
    np.testing.assert_array_equal(found["labels"] == 1, expected.labels)


def test_a_model_is_refused_before_a_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    digits = load_digit_tags()
    model = TagPredictor(cv=2, n_estimators=5).fit(digits.X[:60], digits.Y[:60])
    with pytest.raises(LemllError, match="TagPredictor cannot be written as ONNX"):
        to_onnx(model)
    with pytest.raises(MissingExtraError, match="onnx"):
        to_onnx(LEMLL().fit(digits.X[:60], digits.Y[:60]))


def test_refusals():
    _, X, Y, _ = SETS[1]
    with pytest.raises(LemllError, match="TagPredictor cannot be written as ONNX; use LEMLL"):
        to_onnx(TagPredictor(n_estimators=2, cv=2).fit(X, Y))
    with pytest.raises(LemllError, match="PolynomialFeatures cannot be written as ONNX"):
        to_onnx(make_pipeline(PolynomialFeatures(1), LEMLL()).fit(X, Y))
    with pytest.raises(LemllError, match="the kernel 'precomputed' cannot be written as ONNX"):
        to_onnx(LEMLL(kernel="precomputed").fit(X @ X.T, Y))
    with pytest.raises(LemllError, match="only models of a label matrix"):
        to_onnx(LEMLL().fit(X, Y[:, 0]))
    with pytest.raises(LemllError, match="MinMaxScaler\\(clip=True\\)"):
        to_onnx(make_pipeline(MinMaxScaler(clip=True), LEMLL()).fit(X, Y))
    frame = table()
    frame["camera"] = np.where(np.arange(120) % 3 == 0, "Nikon", "Leica")
    model, _ = fit_table(Table(frame, "t"), LabelSpec(labels=("sea",)), learner=LEMLL())
    with pytest.raises(LemllError, match="column 'camera' is encoded as category"):
        to_onnx(model)
