"""The schema of a model file: the JSON text in which skops describes the objects of a model.

`canonical` makes the schema and the arrays of a fitted model equal in every process. `check_schema`
refuses a schema that skops must not see, before skops makes an object of it.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np
from scipy import sparse

from lemll._types import Settings

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
