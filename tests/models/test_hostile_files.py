"""Model files with valid checksums that were made to do harm: each is refused."""

import json
import zipfile
import zlib

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

import lemll
from lemll import BinaryRelevance, MultilabelForest
from lemll.exceptions import ModelFileError
from lemll.models.trusted import check_content
from lemll.rivals import MLkNN

RNG = np.random.RandomState(0)
X = RNG.rand(30, 4).round(1)
Y = (RNG.rand(30, 2) < 0.5).astype(int)
WORDS = [f"a{int(a * 10)} b{int(b * 10)}" for a, b in X[:, :2]]


def forest():
    return MultilabelForest(2, random_state=0).fit(X, Y)


def with_nodes(change, **other):
    """Return a forest whose first tree has other nodes."""
    model = forest()
    tree = model.forests_[0].trees[0]
    state = tree.__getstate__() | other
    change(state["nodes"])
    _, arguments, _ = tree.__reduce__()
    model.forests_[0].trees[0] = type(tree)(*arguments)
    model.forests_[0].trees[0].__setstate__(state)
    return model


def put(field, value, node=0):
    def change(nodes):
        nodes[field][node] = value

    return lambda: with_nodes(change)


def other_depth():
    return with_nodes(lambda nodes: None, max_depth=1)


def leaves(value):
    """Return a function that makes a forest whose leaves all have this place."""

    def make():
        number = forest().forests_[0].trees[0].node_count
        return with_nodes(lambda nodes: None, values=np.full((number, 1, 1), value))

    return make


def neighbours(change):
    def make():
        model = MLkNN(3).fit(sparse.csr_array(X), Y)
        change(model)
        return model

    return make


def indices(value):
    def change(model):
        model.X_fit_.indices[0] = value

    return neighbours(change)


def pointers(place, value):
    def change(model):
        model.X_fit_.indptr[place] = value

    return neighbours(change)


def fewer_labels(model):
    model.Y_fit_ = model.Y_fit_[:3]


def words(**changes):
    def make():
        model = make_pipeline(TfidfVectorizer(), BinaryRelevance()).fit(WORDS, Y)
        for name, value in changes.items():
            setattr(model[0], name, value)
        return model

    return make


def categories(change):
    def make():
        encoder = OneHotEncoder(max_categories=4, handle_unknown="infrequent_if_exist")
        model = make_pipeline(encoder, BinaryRelevance()).fit(X, Y)
        change(model[0])
        return model

    return make


def rare(encoder):
    encoder._default_to_infrequent_mappings[0][0] = 10**6


def unsorted(encoder):
    encoder.categories_[0][:] = encoder.categories_[0][::-1].copy()


def more(encoder):
    encoder._n_features_outs[0] = 1


def jobs():
    model = forest()
    model.n_jobs = 10**6
    return model


def objects():
    model = forest()
    model.classes_ = np.array([[1], "a"], dtype=object)
    return model


def outside():
    state = np.random.RandomState(0)
    inner = state.get_state(legacy=False)
    inner["state"]["pos"] = 10**6
    state.set_state(inner)
    return forest().set_params(random_state=state)


CONTENTS = {
    "left child far away": (put("left_child", 2**40), "a child of two nodes"),
    "child of itself": (put("right_child", 0), "a child of two nodes"),
    "negative child": (put("right_child", -5), "a child of two nodes"),
    "feature far away": (put("feature", 2**31), "a feature that is not there"),
    "feature 5000": (put("feature", 5000), "a feature that is not there"),
    "negative feature": (put("feature", -3), "a feature that is not there"),
    "depth": (other_depth, "a tree of depth"),
    "leaf outside": (leaves(1e6), "a leaf that is not there"),
    "leaf below": (leaves(-1.0), "a leaf that is not there"),
    "leaf between": (leaves(0.5), "a leaf without a place"),
    "leaf nowhere": (leaves(np.nan), "a leaf without a place"),
    "sparse index": (indices(10**6), "indices must be"),
    "negative sparse index": (indices(-7), "indices must be"),
    "sparse pointer": (pointers(1, 10**6), "[Ii]nd"),
    "negative last pointer": (pointers(-1, -2), "a negative pointer"),
    "last pointer of nothing": (pointers(-1, 0), "pointers out of order"),
    "labels of others": (neighbours(fewer_labels), "rows with the labels of others"),
    "file names": (words(input="filename"), "words that are read from files"),
    "pattern": (words(token_pattern="(a+)+$"), "words by the pattern"),
    "vocabulary": (words(vocabulary_={"a1": 10**9}), "words with the numbers of others"),
    "rare categories": (categories(rare), "categories that say"),
    "unsorted categories": (categories(unsorted), "categories that are not sorted"),
    "number of categories": (categories(more), "categories that say"),
    "jobs": (jobs, "n_jobs=1000000; use at most"),
    "objects": (objects, "an array of objects"),
    "random state": (outside, "a random state that is outside"),
}  # fmt: skip


def test_attributes_have_texts_as_names():
    model = forest()
    vars(model)[False] = 1.0
    with pytest.raises(ValueError, match="an attribute whose name is not a text"):
        check_content(model)


def test_trees_of_other_features_do_not_predict():
    model = forest()
    model.n_features_in_ = 2
    with pytest.raises(ValueError, match="the trees divide 4 features, but X has 2"):
        model.predict(X[:, :2])


@pytest.mark.parametrize("name", CONTENTS)
def test_contents_that_do_harm_are_neither_written_nor_loaded(name, tmp_path, monkeypatch):
    make, message = CONTENTS[name]
    path = tmp_path / "m.lemll"
    with monkeypatch.context() as unchecked:
        unchecked.setattr("lemll.models.files.check_content", lambda model: None, raising=False)
        lemll.save(make(), path)
    with pytest.raises(ModelFileError, match=f"holds .*{message}.*do not use it"):
        lemll.load(path)
    with pytest.raises(ModelFileError, match=f"cannot be saved: it holds .*{message}"):
        lemll.save(make(), tmp_path / "other.lemll")


def test_a_class_that_no_model_needs_is_neither_written_nor_loaded(tmp_path, monkeypatch):
    path = tmp_path / "m.lemll"
    model = make_pipeline(PolynomialFeatures(), BinaryRelevance()).fit(X, Y)
    with monkeypatch.context() as unchecked:
        unchecked.setattr("lemll.models.files.check_schema", lambda *a: None, raising=False)
        lemll.save(model, path)
    with pytest.raises(ModelFileError, match="PolynomialFeatures, which no model of lemll needs"):
        lemll.load(path)
    with pytest.raises(ModelFileError, match="PolynomialFeatures, .* use learners of lemll"):
        lemll.save(model, path)


@pytest.fixture(name="plain", scope="module")
def _plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "plain.lemll"
    lemll.save(MLkNN(3).fit(sparse.csr_array(X), Y), path)
    return path


def schema(change):
    """Return an edit of the schema."""

    def edit(parts):
        described = json.loads(parts["schema.json"])
        described = change(described) or described
        return {**parts, "schema.json": json.dumps(described).encode()}

    return edit


def node(loader, name, **keys):
    module, _, short = name.rpartition(".")
    return {"__class__": short, "__module__": module, "__loader__": loader, **keys}


def doubling(described):
    """Put forty lists into each other, each twice, by their numbers."""
    inner = node("ListNode", "builtins.list", content=[], __id__=10**6)
    for number in range(10**6 + 1, 10**6 + 41):
        again = node("ListNode", "builtins.list", __id__=number - 1)
        inner = node("ListNode", "builtins.list", content=[inner, again], __id__=number)
    described["content"]["content"]["scale"] = inner


def deep(parts):
    text = b"[" * 50_000 + b"]" * 50_000
    return {**parts, "schema.json": b'{"content":' + text + b"}"}


def deep_but_allowed(described):
    inner = node("ListNode", "builtins.list", content=[])
    for _ in range(150):
        inner = node("ListNode", "builtins.list", content=[inner])
    described["content"]["content"]["scale"] = inner


def replaced(**changes):
    def change(described):
        described["content"]["content"]["scale"] = node(**changes)

    return schema(change)


def long_schema(parts):
    return {**parts, "schema.json": b"[" + b"[]," * (2 * 10**6) + b"[]]"}


def zeros(parts):
    return {**parts, "9.npy": bytes(30 * 2**20)}


def array(head):
    def edit(parts):
        text = repr(head).encode().ljust(117) + b"\n"
        content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        return {**parts, "0.npy": content}

    return edit


def packed_twice(parts):
    name = next(name for name in parts if name.endswith(".npz"))
    return {**parts, name: _zip({"data.npy": bytes(1000)}, zipfile.ZIP_DEFLATED)}


def _zip(parts, method):
    import io

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return stream.getvalue()


HEAD = {"descr": "<f8", "fortran_order": False}
ARCHIVES = {
    "a zip of zeros": (zeros, "expands to more than"),
    "a long schema": (long_schema, "schema.json expands to more than"),
    "a deep schema": (deep, "recursion|inside each other"),
    "deep objects": (schema(deep_but_allowed), "inside each other"),
    "lists twice": (schema(doubling), "objects that are used"),
    "itself": (replaced(loader="ListNode", name="builtins.list", content=[
        node("ListNode", "builtins.list", __id__=9)], __id__=9), "two objects with the number 9"),
    "a foreign class": (replaced(loader="ObjectNode", name="subprocess.Popen"), "subprocess.Popen"),
    "a foreign estimator": (replaced(loader="ObjectNode", name="sklearn.svm._classes.SVC"), "SVC"),
    "a function": (replaced(loader="FunctionNode", name="numpy.load"), "numpy.load"),
    "a ufunc": (replaced(loader="FunctionNode", name="numpy.sin"), "numpy.sin"),
    "a method": (replaced(loader="MethodNode", name="lemll.predictors.lemll.LEMLL", content={
        "func": "fit", "obj": {}}), "a method of lemll"),
    "another loader": (replaced(loader="DictNode", name="lemll.predictors.lemll.LEMLL"), "LEMLL"),
    "an old function": (replaced(loader="FunctionNode", name="lemll.fitting.scaling._unchanged",
        content={"module_path": "os", "function": "system"}), "with 'content'"),
    "a nested text": (replaced(loader="JsonNode", name="builtins.str", content="[[]]"), "a value"),
    "an array twice": (replaced(loader="NdArrayNode", name="numpy.ndarray", type="numpy",
        file="0.npy"), "the array '0.npy' twice"),
    "an array of nothing": (array({**HEAD, "shape": (2**33,)}), "an array of shape"),
    "an array of objects": (array({**HEAD, "descr": "|O", "shape": (0,)}), "an array of shape"),
    "an array of empty texts": (array({**HEAD, "descr": "<U0", "shape": (2**40,)}), "an array of"),
    "a sparse array packed twice": (packed_twice, "a sparse array is packed"),
    "another part": (lambda parts: {**parts, "a.pkl": b"x"}, "not 'a.pkl'"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_do_harm_are_refused(name, plain, tmp_path, rewrite):
    edit, message = ARCHIVES[name]
    path = rewrite(plain, tmp_path / "m.lemll", edit)
    with pytest.raises(ModelFileError, match=message):
        lemll.load(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_only_stored_and_deflated_parts_are_read(method, plain, tmp_path, rewrite):
    path = rewrite(plain, tmp_path / "m.lemll", lambda parts: parts, compression=method)
    with pytest.raises(ModelFileError, match="is packed by method"):
        lemll.load(path)


def test_what_comes_out_counts_and_not_what_the_directory_says(plain, tmp_path, rewrite):
    path = rewrite(plain, tmp_path / "m.lemll", lambda parts: {**parts, "9.npy": bytes(10**6)})
    data = path.read_bytes()
    true, lie = (10**6).to_bytes(4, "little"), (10).to_bytes(4, "little")
    assert data.count(true) == 2
    data = data.replace(true, lie)
    checksum = zlib.crc32(bytes(10**6)).to_bytes(4, "little")
    path.write_bytes(data.replace(checksum, zlib.crc32(bytes(10)).to_bytes(4, "little")))
    with pytest.raises(ModelFileError, match="Bad CRC|expands to more than it says"):
        lemll.load(path)
