"""The types that a model file may contain, by the loader of skops that makes them.

skops itself trusts every estimator of scikit-learn, every function of NumPy and more. A model file
may hold what is listed here, and nothing else. A test fails if a learner needs more.
"""

from __future__ import annotations

__all__ = ["LOADERS", "METHOD", "TRUSTED"]

_LEMLL_OBJECTS = (
    "_labels.FrameKind",
    "_labels.LabelCoding",
    "enhancers.label_propagation.LabelPropagationEnhancer",
    "enhancers.lemll.LEMLLEnhancer",
    "enhancers.ml2.ML2Enhancer",
    "enhancers.mlfe.MLFEEnhancer",
    "fitting.approximations.FourierFeatures",
    "fitting.first_order.FirstOrderKernel",
    "fitting.kernels.Kernel",
    "fitting.low_order.LowOrderWaves",
    "fitting.scaling._Scaling",
    "predictors.binary_relevance.BinaryRelevance",
    "predictors.blend.members._Bounded",
    "predictors.blend.members._Prepared",
    "predictors.clr.CLR",
    "predictors.ecc.ECC",
    "predictors.ecc.LabelChain",
    "predictors.forest.MultilabelForest",
    "predictors.lemll.LEMLL",
    "predictors.lemll_cv.LEMLLCV",
    "predictors.logistic.chains.Chain",
    "predictors.logistic.members.BuiltIn",
    "predictors.logistic.pairs.LinearPairs",
    "predictors.ml2.ML2",
    "predictors.mlfe.MLFE",
    "predictors.mlknn.MLkNN",
    "predictors.msvr.MSVR",
    "predictors.msvr.MSVRClassifier",
    "predictors.msvr_cv.MSVRCV",
    "predictors.propagation.LabelPropagation",
    "predictors.reliab.RELIAB",
    "predictors.tag_predictor.TagPredictor",
    "predictors.two_stage.TwoStage",
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
            "lemll.predictors.blend.calibration.Calibration",
            "lemll.predictors.blend.order.ContentOrder",
            "lemll.predictors.forest.GrownForest",
            "lemll.predictors.search.folds.Space",
            "lemll.predictors.search.folds.SpaceRows",
            "lemll.predictors.tag_predictor._BlendPart",
            "lemll.solvers.joint.path.GridPoint",
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
