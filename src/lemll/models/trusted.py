"""What a model file may describe, and what its objects may contain.

`canonical` makes the schema, the JSON text in which skops describes the objects of a model, and the
arrays equal in every process. `check_schema` refuses a schema that skops must not see, before skops
makes an object of it.

`check_content` checks the objects. Their types are known, but a file can give them any content.
Python and NumPy check every index. The compiled code of scikit-learn and SciPy does not, so what it
relies on is checked here: trees, sparse arrays, and what encoders count with.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MethodType
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree._tree import Tree

from lemll._types import Array, Settings, SparseMatrix
from lemll.predictors import LEMLL, GrownForest
from lemll.tables import Column

_LEMLL_OBJECTS = (
    "_labels.FrameKind",
    "_labels.LabelCoding",
    "enhancers.lemll.LEMLLEnhancer",
    "fitting.kernels.FirstOrderKernel",
    "fitting.kernels.Kernel",
    "fitting.scaling._Scaling",
    "predictors.binary_relevance.BinaryRelevance",
    "predictors.binary_relevance.BuiltIn",
    "predictors.blend._Bounded",
    "predictors.blend._Prepared",
    "predictors.forest.MultilabelForest",
    "predictors.lemll.LEMLL",
    "predictors.lemll.LEMLLCV",
    "predictors.msvr.MSVR",
    "predictors.msvr.MSVRClassifier",
    "predictors.msvr_cv.MSVRCV",
    "predictors.tag_predictor.TagPredictor",
    "rivals.clr.CLR",
    "rivals.clr.LinearPairs",
    "rivals.ecc.Chain",
    "rivals.ecc.ECC",
    "rivals.ecc.LabelChain",
    "rivals.ml2.ML2",
    "rivals.ml2.ML2Enhancer",
    "rivals.mlfe.MLFE",
    "rivals.mlfe.MLFEEnhancer",
    "rivals.mlknn.MLkNN",
    "rivals.propagation.LabelPropagation",
    "rivals.reliab.LabelPropagationEnhancer",
    "rivals.reliab.RELIAB",
    "rivals.two_stage.TwoStage",
    "tables.encoder.TableEncoder",
)
# What our encoder and our learners contain.
_SKLEARN_PARTS = (
    "compose._column_transformer.ColumnTransformer",
    "feature_extraction.text.TfidfTransformer",
    "feature_extraction.text.TfidfVectorizer",
    "impute._base.MissingIndicator",
    "impute._base.SimpleImputer",
    "pipeline.Pipeline",
    "preprocessing._data.MaxAbsScaler",
    "preprocessing._data.Normalizer",
    "preprocessing._data.StandardScaler",
    "preprocessing._encoders.OneHotEncoder",
)
# What users put before a learner or into one. They hold numbers, which only NumPy and SciPy
# multiply, so no content of theirs can do harm.
_SKLEARN_OF_NUMBERS = (
    "decomposition._pca.PCA",
    "decomposition._truncated_svd.TruncatedSVD",
    "feature_selection._variance_threshold.VarianceThreshold",
    "linear_model._logistic.LogisticRegression",
    "preprocessing._data.MinMaxScaler",
    "preprocessing._data.RobustScaler",
)
_WITH_SCORES = (
    "lemll.predictors.binary_relevance.BinaryRelevance",
    "lemll.predictors.forest.MultilabelForest",
    "lemll.predictors.lemll.LEMLL",
    "lemll.predictors.msvr.MSVRClassifier",
)
# The only method that a file may name.
METHOD = "_score"
_SCALARS = tuple(
    f"numpy.{name}"
    for name in ("bool", "bool_", "float32", "float64", "int8", "int32", "int64", "str_")
)

LOADERS: dict[str, frozenset[str]] = {
    "JsonNode": frozenset({"builtins.str"}),
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "TypeNode": frozenset(
        {"builtins.bool", "builtins.float", "builtins.int", "builtins.str", *_SCALARS}
    ),
    "TupleNode": frozenset(
        {
            "builtins.tuple",
            "lemll.predictors.calibrated.Calibration",
            "lemll.predictors.blend.ContentOrder",
            "lemll.predictors.forest.GrownForest",
            "lemll.predictors.folds.Space",
            "lemll.predictors.folds.SpaceRows",
            "lemll.predictors.tag_predictor._BlendPart",
            "lemll.solvers.path.GridPoint",
            "lemll.tables.columns.Column",
        }
    ),
    "NdArrayNode": frozenset({"numpy.ndarray", *_SCALARS}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "SparseMatrixNode": frozenset({"scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"}),
    "FunctionNode": frozenset({"lemll.fitting.scaling._unchanged"}),
    "MethodNode": frozenset(_WITH_SCORES),
    "ObjectNode": frozenset(
        [f"lemll.{name}" for name in _LEMLL_OBJECTS]
        + [f"sklearn.{name}" for name in (*_SKLEARN_PARTS, *_SKLEARN_OF_NUMBERS)]
    ),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
}
# As skops wants to be told.
TRUSTED: frozenset[str] = frozenset().union(
    *LOADERS.values(), (f"{name}.{METHOD}" for name in _WITH_SCORES)
)


SCHEMA = "schema.json"
# The deepest model has about 40 levels.
_DEEPEST = 200
_MOST_VISITS = 100
_HEAD = frozenset({"__class__", "__module__", "__loader__", "__id__"})
_KEYS: dict[str, frozenset[str]] = {
    "JsonNode": frozenset({"content", "is_json"}),
    "DictNode": frozenset({"content", "key_types"}),
    "TypeNode": frozenset(),
    "FunctionNode": frozenset(),
    "NdArrayNode": frozenset({"type", "file", "content", "shape"}),
    "SparseMatrixNode": frozenset({"type", "file"}),
    "TreeNode": frozenset({"content", "__reduce__"}),
}
_CONTENT = frozenset({"content"})
_OF_THE_FILE = frozenset({"protocol", "_skops_version"})
# An address in memory, which scikit-learn keeps in order to warn once.
_ADDRESS = "_stop_words_id"


def canonical(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of an archive of skops, with the schema first, equal in every process.

    skops numbers objects and names arrays by their addresses in memory.

    Parameters
    ----------
    content : bytes
        What ``skops.io.dumps`` returned.

    Yields
    ------
    name : str
        "schema.json" or the name of an array.
    part : bytes
        Its content.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        uses = Counter(node.get("__id__") for node in _nodes(schema))
        numbers: dict[int, int] = {}
        names: dict[str, str] = {}
        for node in _nodes(schema):
            address = node.pop("__id__", None)
            # An object that occurs once, a number or a type needs no number.
            if uses[address] > 1 and node["__loader__"] not in ("JsonNode", "TypeNode"):
                if address in numbers:
                    # skops writes it out again, but reads it once.
                    for key in node.keys() - _HEAD:
                        del node[key]
                node["__id__"] = numbers.setdefault(address, len(numbers) + 1)
            if "file" in node:
                _, _, suffix = node["file"].rpartition(".")
                node["file"] = names.setdefault(node["file"], f"{len(names)}.{suffix}")
            if node["__loader__"] == "DictNode" and _ADDRESS in node.get("content", ()):
                place = list(node["content"]).index(_ADDRESS)
                del node["content"][_ADDRESS], node["key_types"]["content"][place]
        yield SCHEMA, json.dumps(schema, separators=(",", ":")).encode()
        for old, new in names.items():
            yield new, _plain_array(new, archive.read(old))


def _nodes(schema: object) -> Iterator[Settings]:
    """Yield the descriptions of objects in the order of the text. They may change on the way."""
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        for part in schema.values():
            yield from _nodes(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _nodes(part)


def _plain_array(name: str, part: bytes) -> bytes:
    """Return the bytes of an array, not packed, and with zeros between the fields of its cells."""
    written = io.BytesIO()
    if name.endswith(".npz"):
        sparse.save_npz(written, sparse.load_npz(io.BytesIO(part)), compressed=False)
        return written.getvalue()
    array = np.load(io.BytesIO(part), allow_pickle=False) if name.endswith(".npy") else None
    if array is None or array.dtype.names is None:
        return part
    clean = np.zeros(array.shape, array.dtype)
    for field in array.dtype.names:
        clean[field] = array[field]
    np.save(written, clean, allow_pickle=False)
    return written.getvalue()


def check_schema(schema: object, arrays: Collection[str]) -> None:
    """Refuse a schema with anything that a model of lemll does not need.

    Parameters
    ----------
    schema : object
        The content of "schema.json".
    arrays : collection of str
        The names of the arrays of the file.

    Raises
    ------
    ValueError
        With the reason.
    """
    if not isinstance(schema, dict):
        raise ValueError(f"a {type(schema).__name__} instead of an estimator")
    checker = _Checker(arrays)
    visits = checker.visits(schema, 0)
    if visits > _MOST_VISITS * checker.count:
        raise ValueError(f"{checker.count} objects that are used {visits} times")


class _Checker:
    """The objects of a schema that have been seen."""

    def __init__(self, arrays: Collection[str]) -> None:
        self.count = 0
        self._arrays = set(arrays)
        self._visits: dict[int, int | None] = {}

    def visits(self, part: object, depth: int) -> int:
        """Check a part of a schema, and return how many objects skops will visit for it.

        skops visits an object as often as it is referred to, so a few lists, each twice in the
        next one, would take forever.
        """
        if depth > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} objects inside each other")
        if isinstance(part, list):
            return sum(self.visits(value, depth + 1) for value in part)
        if not isinstance(part, dict):
            return 0
        if _HEAD.isdisjoint(part):
            return sum(self.visits(value, depth + 1) for value in part.values())
        _check_node(part, top=depth == 0)
        self.count += 1
        number = part.get("__id__")
        if number in self._visits:
            known = self._visits[number]
            if known is None or not _HEAD.issuperset(part):
                raise ValueError(f"two objects with the number {number}")
            return known
        if number is not None:
            if not isinstance(number, int):
                raise ValueError(f"an object with the number {str(number)[:40]!r}")
            self._visits[number] = None
        if "file" in part:
            if part["file"] not in self._arrays:
                raise ValueError(f"the array {str(part['file'])[:40]!r} twice or in vain")
            self._arrays.remove(part["file"])
        found = 1 + sum(self.visits(value, depth + 1) for value in part.values())
        if number is not None:
            self._visits[number] = found
        return found


def _check_node(node: Settings, *, top: bool) -> None:
    loader = node.get("__loader__")
    name = f"{node.get('__module__')}.{node.get('__class__')}"
    if not isinstance(loader, str) or name not in LOADERS.get(loader, ()):
        raise ValueError(name)
    allowed = _HEAD | _KEYS.get(loader, _CONTENT) | (_OF_THE_FILE if top else frozenset())
    content = node.get("content")
    if not allowed.issuperset(node):
        raise ValueError(f"{name} with {sorted(set(node) - allowed)[0]!r}")
    if loader == "MethodNode" and (not isinstance(content, dict) or content.get("func") != METHOD):
        raise ValueError(f"a method of {name}")
    # A number or a text: lists and dictionaries have nodes of their own.
    if loader == "JsonNode" and (
        not isinstance(content, str) or content.lstrip()[:1] in ("[", "{")
    ):
        raise ValueError("a value that is not a number or a text")


_LEAF = -1
# A regular expression can take forever: these are the default of scikit-learn and ours.
_WORDS = (r"(?u)\b\w\w+\b", r"(?u)[^\W_]+")
_DATE = re.compile(r"(ISO8601)?|[-%YmdHMS/.: ]{1,40}")
_MOST_JOBS = 1024
_STATE_OF_RANDOM = 624
_WIDEST_VECTOR = 2**20


def check_content(model: object) -> None:
    """Check all objects of a model.

    Parameters
    ----------
    model : object
        An estimator that skops made.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    seen: set[int] = set()
    stack: list[object] = [model]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for kind, check in _CHECKS.items():
            if isinstance(part, kind):
                check(part)
        stack += _inside(part)


def _inside(part: object) -> Iterable[object]:
    """Return the objects that an object consists of."""
    if isinstance(part, Mapping):
        return part.values()
    if isinstance(part, (list, tuple)):
        return part
    if isinstance(part, MethodType):
        return [part.__self__]
    if type(part).__module__.startswith(("lemll.", "sklearn.")) and not isinstance(part, Tree):
        # Dataclasses may have slots instead of a dictionary.
        slots = (getattr(part, name, None) for name in getattr(type(part), "__slots__", ()))
        own = getattr(part, "__dict__", {})
        _need(all(isinstance(name, str) for name in own), "an attribute whose name is not a text")
        return [*own.values(), *slots]
    return ()


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _check_array(array: Array) -> None:
    if array.dtype != object:
        _need(array.dtype.kind in "biufU", f"an array of type {array.dtype}")
        return
    plain = (str, int, float, np.generic, type(None))
    _need(all(isinstance(cell, plain) for cell in array.ravel()), "an array of objects")


def _check_sparse(matrix: SparseMatrix) -> None:
    _need(matrix.format == "csr", f"a sparse array in the format {matrix.format}")
    # SciPy looks at the order of the pointers only if the last one is above 0.
    _need(bool((matrix.indptr >= 0).all()), "a sparse array with a negative pointer")
    matrix.check_format(full_check=True)
    _need(bool((np.diff(matrix.indptr) >= 0).all()), "a sparse array with pointers out of order")


def _check_tree(tree: Tree) -> None:
    # The arrays below are views of memory that has room for `capacity` nodes.
    _need(1 <= tree.node_count <= tree.capacity, "a tree without its nodes")
    left, right = tree.children_left, tree.children_right
    inner = np.flatnonzero(left != _LEAF)
    children = np.concatenate([left[inner], right[inner]])
    # Every node except the first is the child of one node, which comes before it.
    _need(np.array_equal(np.sort(children), np.arange(1, tree.node_count)), "a child of two nodes")
    _need(bool((children > np.tile(inner, 2)).all()), "a node before its parent")
    feature = tree.feature[inner]
    _need(bool(((0 <= feature) & (feature < tree.n_features)).all()), "a feature that is not there")
    depth, level = 0, np.array([0])
    while len(level := level[left[level] != _LEAF]):
        depth, level = depth + 1, np.concatenate([left[level], right[level]])
    # scikit-learn makes room for paths of this length.
    _need(depth == tree.max_depth, f"a tree of depth {depth} that says {tree.max_depth}")


def _check_forest(forest: GrownForest) -> None:
    _need(isinstance(forest.trees, list) and len(forest.trees) > 0, "a forest without trees")
    _need(sparse.issparse(forest.shares), "a forest without shares")
    for tree in forest.trees:
        _need(isinstance(tree, Tree), "a tree without nodes")
        _need(tree.n_outputs == 1 and tree.value.shape[1:] == (1, 1), "a tree of other labels")
        # The leaves hold their places in the shares.
        places = tree.value[tree.children_left == _LEAF, 0, 0]
        _need(bool((places % 1 == 0).all()), "a leaf without a place")
        inside = (0 <= places) & (places < forest.shares.shape[0])
        _need(bool(inside.all()), "a leaf that is not there")


def _check_words(model: TfidfVectorizer) -> None:
    _need(model.input == "content", "words that are read from files")
    _need(isinstance(model.analyzer, str), "words of a function")
    _need(model.tokenizer is None and model.preprocessor is None, "words of a function")
    _need(
        model.token_pattern in _WORDS,
        f"words by the pattern {str(model.token_pattern)[:40]!r} instead of {_WORDS[0]!r}",
    )
    vocabulary = getattr(model, "vocabulary_", {})
    _need(isinstance(vocabulary, dict), "words without numbers")
    places = list(vocabulary.values())
    _need(
        all(type(place) in (int, np.int64, np.int32) for place in places), "words without numbers"
    )
    _need(sorted(places) == list(range(len(places))), "words with the numbers of others")


def _check_one_hot(model: OneHotEncoder) -> None:
    categories = getattr(model, "categories_", [])
    # scikit-learn has these only if there are rare categories, or categories to leave out.
    rare = getattr(model, "_default_to_infrequent_mappings", None) or [None] * len(categories)
    dropped = getattr(model, "drop_idx_", None)
    dropped = [None] * len(categories) if dropped is None else list(dropped)
    counts = getattr(model, "_n_features_outs", [])
    _need(len(categories) == len(rare) == len(dropped) == len(counts), "categories of two tables")
    for values, mapping, left_out, count in zip(categories, rare, dropped, counts, strict=True):
        _need(isinstance(values, np.ndarray) and values.ndim == 1, "categories of something else")
        # A search finds the place of a number, so the numbers must be sorted. NaN comes last.
        steps = np.diff(values) if values.dtype != object and values.dtype.kind in "iuf" else []
        _need(not np.any(np.asarray(steps) <= 0), "categories that are not sorted")
        places = len(values)
        if mapping is not None:
            _need(
                isinstance(mapping, np.ndarray)
                and mapping.shape == values.shape
                and mapping.dtype.kind in "iu"
                and bool((mapping >= 0).all()),
                "rare categories of something else",
            )
            places = int(mapping.max(initial=-1)) + 1
        if left_out is not None:
            _need(0 <= int(left_out) < places, "a category that is not there")
            places -= 1
        _need(count == places, f"{places} categories that say {count}")


def _check_columns(model: ColumnTransformer) -> None:
    # Every job is a process.
    _need(model.n_jobs in (None, 1, -1), f"n_jobs={model.n_jobs!r}; use None, 1 or -1")


def _check_jobs(model: BaseEstimator) -> None:
    jobs = getattr(model, "n_jobs", None)
    _need(
        jobs is None or (isinstance(jobs, int) and abs(jobs) <= _MOST_JOBS),
        f"n_jobs={jobs!r}; use at most {_MOST_JOBS}",
    )


def _check_model(model: BaseEstimator) -> None:
    _check_jobs(model)
    _check_neighbours(model)


def _check_neighbours(model: BaseEstimator) -> None:
    if isinstance(model, LEMLL):
        return  # its rows may be landmarks, and it looks up no labels
    for name in ("Y_fit_", "numerical_labels_"):
        labels = getattr(model, name, None)
        if labels is not None and hasattr(model, "X_fit_"):
            # The numbers of the nearest rows are used to look up labels.
            _need(model.X_fit_.shape[0] == len(labels), "rows with the labels of others")


def _check_column(column: Column) -> None:
    _need(isinstance(column.name, str) and isinstance(column.format, str), "a column without name")
    _need(_DATE.fullmatch(column.format) is not None, f"dates as {column.format[:40]!r}")
    _need(isinstance(column.width, int), "a vector without width")
    _need(0 <= column.width <= _WIDEST_VECTOR, f"vectors of {column.width} numbers")


def _check_random(state: RandomState) -> None:
    place = state.get_state(legacy=False)["state"]["pos"]
    _need(0 <= place <= _STATE_OF_RANDOM, "a random state that is outside of its numbers")


_CHECKS: dict[type, Callable[[Any], None]] = {
    np.ndarray: _check_array,
    sparse.sparray: _check_sparse,
    sparse.spmatrix: _check_sparse,
    RandomState: _check_random,
    Tree: _check_tree,
    GrownForest: _check_forest,
    TfidfVectorizer: _check_words,
    OneHotEncoder: _check_one_hot,
    ColumnTransformer: _check_columns,
    BaseEstimator: _check_model,
    Column: _check_column,
}
