"""The types that a model file may contain, besides those that skops trusts by itself."""

from __future__ import annotations

__all__ = ["TRUSTED"]

# skops trusts the estimators of scikit-learn, arrays and plain containers. Everything else that a
# file names is loaded only if it is in this list. A test fails if a learner needs more.
TRUSTED: frozenset[str] = frozenset(
    {
        "lemll._labels.FrameKind",
        "lemll._labels.LabelCoding",
        "lemll.enhancers.label_propagation.LabelPropagationEnhancer",
        "lemll.enhancers.lemll.LEMLLEnhancer",
        "lemll.enhancers.ml2.ML2Enhancer",
        "lemll.enhancers.mlfe.MLFEEnhancer",
        "lemll.fitting.approximations.FourierFeatures",
        "lemll.fitting.first_order.FirstOrderKernel",
        "lemll.fitting.kernels.Kernel",
        "lemll.fitting.low_order.LowOrderWaves",
        "lemll.fitting.scaling._Scaling",
        "lemll.fitting.scaling._unchanged",
        "lemll.predictors.binary_relevance.BinaryRelevance",
        "lemll.predictors.binary_relevance.BinaryRelevance._score",
        "lemll.predictors.blend.calibration.Calibration",
        "lemll.predictors.blend.members._Bounded",
        "lemll.predictors.blend.members._Prepared",
        "lemll.predictors.blend.order.ContentOrder",
        "lemll.predictors.clr.CLR",
        "lemll.predictors.ecc.ECC",
        "lemll.predictors.ecc.LabelChain",
        "lemll.predictors.forest.GrownForest",
        "lemll.predictors.forest.MultilabelForest",
        "lemll.predictors.forest.MultilabelForest._score",
        "lemll.predictors.lemll.LEMLL",
        "lemll.predictors.lemll.LEMLL._score",
        "lemll.predictors.lemll_cv.LEMLLCV",
        "lemll.predictors.logistic.chains.Chain",
        "lemll.predictors.logistic.members.BuiltIn",
        "lemll.predictors.logistic.pairs.LinearPairs",
        "lemll.predictors.ml2.ML2",
        "lemll.predictors.mlfe.MLFE",
        "lemll.predictors.mlknn.MLkNN",
        "lemll.predictors.msvr.MSVR",
        "lemll.predictors.msvr.MSVRClassifier",
        "lemll.predictors.msvr_cv.MSVRCV",
        "lemll.predictors.propagation.LabelPropagation",
        "lemll.predictors.reliab.RELIAB",
        "lemll.predictors.search.folds.Space",
        "lemll.predictors.search.folds.SpaceRows",
        "lemll.predictors.tag_predictor.TagPredictor",
        "lemll.predictors.tag_predictor._BlendPart",
        "lemll.predictors.two_stage.TwoStage",
        "lemll.solvers.joint.path.GridPoint",
        "lemll.tables.columns.Column",
        "lemll.tables.encoder.TableEncoder",
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        "sklearn.tree._tree.Tree",
    }
)
