"""Model files: equal to the bit, and nothing that is damaged or foreign is loaded."""

import importlib
import json
import os
import resource
import subprocess
import sys
import time
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from support import in_process

import lemll
from lemll import BinaryRelevance, TagPredictor, rivals
from lemll.datasets import load_digit_tags
from lemll.enhancers import LEMLLEnhancer
from lemll.exceptions import ModelFileError
from lemll.models import TableModel, fit_table, read_metadata
from lemll.models.trusted import TRUSTED
from lemll.predictors.blend import _row_maps
from lemll.tables import Table, read_table

LEARNERS = [
    lemll.BinaryRelevance(), lemll.LEMLL(scale="auto"), lemll.LEMLL(kernel="rbf"),
    lemll.LEMLL(kernel="rbf", kernel_params={"approximation": "nystroem", "n_components": 20}),
    lemll.LEMLLCV(alphas=[1.0], betas=[1.0], gammas=[1.0], kernel="auto"),
    rivals.MLkNN(scale="auto"), lemll.MultilabelForest(5, random_state=0), lemll.MSVRClassifier(),
    lemll.MSVRCV(alphas=[1.0]), rivals.CLR(), rivals.ECC(random_state=0), rivals.LabelChain(),
    rivals.LabelPropagation(3), rivals.ML2(), rivals.MLFE(), rivals.RELIAB(),
    rivals.TwoStage(LEMLLEnhancer()),
    lemll.TagPredictor(n_estimators=5, cv=2),
]  # fmt: skip


@pytest.fixture(name="file", scope="module")
def _file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "photos.lemll"
    lemll.save(model, path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_every_learner_comes_back_to_the_bit(learner, tmp_path):
    digits = load_digit_tags()
    X, Y, new = digits.X[:120], digits.Y[:120], digits.X[120:400]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some learners say that they did not converge
        learner.fit(X, pd.DataFrame(Y, columns=list("abcdefgh")))
    lemll.save(learner, tmp_path / "m.lemll")
    again = lemll.load(tmp_path / "m.lemll")
    np.testing.assert_array_equal(again.decision_function(new), learner.decision_function(new))
    frame = pd.DataFrame(new, index=np.arange(len(new)) + 7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fitted without the names of the features
        pd.testing.assert_frame_equal(again.predict(frame), learner.predict(frame))
    assert read_metadata(tmp_path / "m.lemll")["labels"] == list("abcdefgh")


def test_a_pipeline_comes_back(tmp_path):
    digits = load_digit_tags()
    model = make_pipeline(StandardScaler(), BinaryRelevance()).fit(digits.X[:99], digits.Y[:99])
    lemll.save(model, tmp_path / "m.lemll")
    again = lemll.load(tmp_path / "m.lemll")
    np.testing.assert_array_equal(again.predict_proba(digits.X), model.predict_proba(digits.X))


@pytest.mark.parametrize(
    "learner",
    [
        lemll.LEMLL(kernel="rbf"),
        lemll.MSVRClassifier(kernel="rbf"),
        rivals.MLkNN(),
        rivals.LabelPropagation(),
        BinaryRelevance(),
        TagPredictor(n_estimators=5, cv=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_pipeline_of_texts_comes_back(learner, tmp_path):
    rng = np.random.default_rng(0)
    words = np.array(["sea", "sky", "sand", "snow", "tree", "house", "dog"])
    has = rng.random((80, len(words))) < 0.4
    texts = [" ".join(["a", *words[row]]) for row in has]
    # The vectorizer returns a matrix of SciPy, not an array.
    model = make_pipeline(TfidfVectorizer(), learner).fit(texts, has[:, :3].astype(int))
    lemll.save(model, tmp_path / "m.lemll")
    again = lemll.load(tmp_path / "m.lemll")
    np.testing.assert_array_equal(again.decision_function(texts), model.decision_function(texts))


def test_every_scaling_of_a_blend_comes_back(tmp_path):
    X = sparse.random(30, 5, density=0.5, random_state=0, format="csr")
    for number, rows in enumerate(_row_maps(X)):
        model = BinaryRelevance().fit(X, (X.toarray() > 0)[:, :2].astype(int))
        model.scaling = rows
        lemll.save(model, tmp_path / f"{number}.lemll")
        again = lemll.load(tmp_path / f"{number}.lemll").scaling
        np.testing.assert_array_equal(again(X).toarray(), rows(X).toarray())
    assert number == 1


@pytest.mark.slow
def test_predictions_are_equal_to_the_bit_in_a_new_process(photos, spec, tmp_path):
    learner = TagPredictor(n_estimators=20, cv=2)
    model, _ = fit_table(Table(photos(), "t"), spec, ids="file", learner=learner)
    lemll.save(model, tmp_path / "m.lemll")
    photos(300, seed=2).to_csv(tmp_path / "new.csv", index=False)
    code = (
        "import lemll, sys; from lemll.tables import read_table\n"
        "model = lemll.load(sys.argv[1]); table = read_table(sys.argv[2], keep=model.keep)\n"
        "print(model.predict(table).probabilities.tobytes().hex())"
    )
    ended = in_process(code, tmp_path / "m.lemll", tmp_path / "new.csv")
    ours = model.predict(read_table(tmp_path / "new.csv", keep=model.keep)).probabilities
    assert ended.stdout.strip() == ours.tobytes().hex()


def test_a_table_model_comes_back_whole(model, file, table):
    again = lemll.load(file)
    assert isinstance(again, TableModel)
    assert again.to_json() == model.to_json()
    np.testing.assert_array_equal(
        again.predict(table).probabilities, model.predict(table).probabilities
    )
    metadata = read_metadata(file)
    assert metadata["columns"] == ["taken", "camera", "caption", "hue", "light"]
    assert metadata["learner"] == "BinaryRelevance"


def mutated(data, rng):
    """Return bytes with a few changed, removed, added, repeated or cut."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        i, n = rng.randint(len(data)), rng.randint(1, 40)
        match rng.randint(5):
            case 0:
                data[i] ^= 1 << rng.randint(8)
            case 1:
                del data[i : i + n]
            case 2:
                data[i:i] = rng.bytes(n)
            case 3:
                data[i : i + n] = rng.bytes(len(data[i : i + n]))
            case _:
                del data[i:]
                if not data:
                    data = bytearray(b"x")
    return bytes(data)


@pytest.mark.slow
def test_a_mutated_file_never_loads_wrongly(model, file, table, tmp_path, nightly):
    rng, path = np.random.RandomState(0), tmp_path / "m.lemll"
    data, expected = file.read_bytes(), model.predict(table).probabilities
    refused, slowest = 0, 0.0
    count = 10_000 if nightly else 1_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        path.write_bytes(mutated(data, rng))
        begin = time.perf_counter()
        try:
            found = lemll.load(path)
        except ModelFileError:
            refused += 1
        else:  # a change where the archive holds nothing of importance, such as a time stamp
            assert found.to_json() == model.to_json()
            np.testing.assert_array_equal(found.predict(table).probabilities, expected)
        slowest = max(slowest, time.perf_counter() - begin)
    assert refused > 0.75 * count
    assert slowest < 20  # none hangs
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 1024, f"{grown} KiB"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 3, "lemll": "9.0"}, "has format 3, written by lemll 9.0, and this version"),
        ({"format": "x"}, "is damaged: its metadata have no format"),
        ({"labels": ["b"], "checksum": "0"}, "its checksum is not that of its content"),
        ({"table": 5}, "was written by lemll .* with scikit-learn .*, and cannot be read"),
    ],
)
def test_refused_files(file, tmp_path, change, message, rewrite):
    def edit(parts):
        metadata = json.loads(parts["metadata.json"]) | change
        return {**parts, "metadata.json": json.dumps(metadata).encode()}

    path = rewrite(file, tmp_path / "m.lemll", edit, seal="checksum" not in change)
    with pytest.raises(ModelFileError, match=message):
        lemll.load(path)


def test_other_files_are_no_models(tmp_path):
    path = tmp_path / "m.lemll"
    path.write_bytes(b"not an archive")
    with pytest.raises(ModelFileError, match="is damaged or not a model file"):
        lemll.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(ModelFileError, match="must hold metadata.json and schema.json, not 'a.t"):
        lemll.load(path)


def test_what_cannot_be_saved(tmp_path):
    digits = load_digit_tags()
    X, Y = digits.X[:50], digits.Y[:50]
    with pytest.raises(ModelFileError, match="a model file must end in .lemll, got 'm.pkl'"):
        lemll.save(BinaryRelevance().fit(X, Y), tmp_path / "m.pkl")
    pipeline = make_pipeline(FunctionTransformer(np.sort), BinaryRelevance()).fit(X, Y)
    with pytest.raises(ModelFileError, match="it holds sklearn.preprocessing._function_tran.*use"):
        lemll.save(pipeline, tmp_path / "m.lemll")
    model = make_pipeline(FunctionTransformer(lambda X: X), BinaryRelevance()).fit(X, Y)
    with pytest.raises(ModelFileError, match="Pipeline cannot be saved"):
        lemll.save(model, tmp_path / "m.lemll")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(file, model, tmp_path, monkeypatch):
    path = tmp_path / "m.lemll"
    path.write_bytes(b"old")

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr("lemll.models.files.os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        lemll.save(model, path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.lemll"]


def test_every_trusted_type_exists():
    # A renamed class would make models that cannot be saved; this is found without a fit.
    for name in TRUSTED - {"numpy.bool_", "numpy.bool"}:  # depend on the version of NumPy
        module, _, rest = name.partition(".")
        found, path = importlib.import_module(module), module
        for part in rest.split("."):
            path = f"{path}.{part}"
            if not hasattr(found, part):
                found = importlib.import_module(path)
            else:
                found = getattr(found, part)
        assert callable(found), name


@pytest.mark.slow
def test_a_model_gives_the_same_bytes_twice_and_in_every_process(tmp_path):
    code = (
        "import sys, numpy as np, lemll\n"
        "from sklearn.feature_extraction.text import TfidfVectorizer\n"
        "from sklearn.pipeline import make_pipeline\n"
        "has = np.random.RandomState(0).rand(60, 4) < 0.4\n"
        "words = np.array(['sea', 'sky', 'sand', 'snow'])\n"
        "texts = [' '.join(['a1', *words[row]]) for row in has]\n"
        "learner = lemll.TagPredictor(n_estimators=5, cv=2)\n"
        "model = make_pipeline(TfidfVectorizer(), learner).fit(texts, has[:, :2].astype(int))\n"
        "for path in sys.argv[1:]: lemll.save(model, path)\n"
    )
    paths = [tmp_path / f"{number}.lemll" for number in range(4)]
    for seed, pair in (("1", paths[:2]), ("2", paths[2:])):
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *pair],
            check=True, env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
    assert len({path.read_bytes() for path in paths}) == 1


def test_what_shrinks_very_much_is_stored_and_can_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr("lemll.models.files._ALWAYS", 1000)
    monkeypatch.setattr("lemll.models.files._EXPANSION", 2)
    digits = load_digit_tags()
    model = BinaryRelevance().fit(digits.X[:99], digits.Y[:99])
    model.coef_ = np.zeros((8, 10**5))
    assert lemll.save(model, tmp_path / "m.lemll") > 8 * 8 * 10**5
    assert lemll.load(tmp_path / "m.lemll").coef_.shape == (8, 10**5)


def test_what_cannot_be_read_does_not_replace_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "m.lemll"
    path.write_bytes(b"old")
    monkeypatch.setattr("lemll.models.files._MOST_PARTS", 3)
    with pytest.raises(ModelFileError, match="parts, and at most 3 are read; use fewer trees"):
        lemll.save(model, path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.lemll"]
