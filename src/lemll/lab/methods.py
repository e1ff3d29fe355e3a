"""The registry of methods, which is the only place where a method must be listed.

Protocols, the command line, tables and documentation read only this registry. A learner is a
multi-label classifier that is fitted on the training rows. An enhancer recovers the label
distribution of the rows on which it is fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from lemll._types import Estimator, Grid, SettingsView
from lemll._validation import unknown_name
from lemll.enhancers.base import BaseEnhancer
from lemll.enhancers.baselines import LogicalEnhancer, UniformEnhancer
from lemll.enhancers.blend import BlendEnhancer
from lemll.enhancers.label_graph import LabelGraphEnhancer
from lemll.enhancers.lemll import LEMLLEnhancer
from lemll.predictors.binary_relevance import BinaryRelevance
from lemll.predictors.forest import MultilabelForest
from lemll.predictors.lemll import LEMLL, LEMLLCV
from lemll.predictors.msvr import MSVR, MSVRClassifier
from lemll.predictors.msvr_cv import MSVRCV
from lemll.predictors.tag_predictor import TagPredictor
from lemll.rivals.clr import CLR
from lemll.rivals.ecc import ECC
from lemll.rivals.fcm import FCMEnhancer
from lemll.rivals.glle import GLLEEnhancer
from lemll.rivals.km import KMEnhancer
from lemll.rivals.lesc import LESCEnhancer
from lemll.rivals.ml2 import ML2, ML2Enhancer
from lemll.rivals.mlfe import MLFE, MLFEEnhancer
from lemll.rivals.mlknn import MLkNN
from lemll.rivals.propagation import LabelPropagation
from lemll.rivals.reliab import RELIAB, LabelPropagationEnhancer
from lemll.rivals.two_stage import TwoStage


def plain(value: object) -> Any:
    """Give a parameter a form fit for ids and records.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"alpha": np.float64(0.5), "beta": float("inf"), "norm": np.mean, "grid": (1, 2)})
    {'alpha': 0.5, 'beta': 'inf', 'norm': 'numpy.mean', 'grid': [1, 2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    # The repr of a function contains its address, which differs between processes.
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{value.__module__}.{name}"


CHOICES: Mapping[str, tuple[str, ...]] = {
    "coding": ("admm", "lasso"),
    "combine": ("confidences", "votes"),
    "composition": ("product", "minimum"),
    "connection": ("minmax", "label", "none"),
    "emp": ("virtual", "pairwise"),
    "estimator": ("weka",),
    "feature_scale": ("auto", "standard", "maxabs", "none"),
    "kernel": ("auto", "linear", "rbf", "poly", "sigmoid", "cosine", "precomputed"),
    "kernel_gamma": ("distance",),
    "max_features": ("sqrt", "log2"),
    "measure": ("jaccard", "cosine"),
    "noise": ("squared", "rows"),
    "normalization": ("sum", "sigmoid", "softmax"),
    "normalize_rows": ("auto",),
    "optimize": (
        "average_precision",
        "ranking_loss",
        "one_error",
        "coverage",
        "hamming",
        "f1",
        "micro_f1",
        "log_loss",
    ),
    "radius": ("positives", "all"),
    "sampling": ("bootstrap", "subset"),
    "scale": ("auto", "standard", "maxabs", "minmax", "none"),
    "scoring": ("average_precision", "coverage", "hamming_loss", "one_error", "ranking_loss"),
    "search": ("auto", "grid", "coarse", "halving"),
    "stop": ("memberships", "objective"),
    "thresholds": ("zero", "f1", "hamming"),
    "transition": ("column", "row", "symmetric"),
    "trees": ("extra", "random"),
    "voting": ("hard", "soft"),
}
"""The texts that parameters of lemll's own methods take, by parameter."""

# The same for the settings in parameters that hold several.
_SETTINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "graph": {
        "neighbors": ("exact", "approximate", "auto"),
        "reg_policy": ("always", "auto", "absolute"),
    },
    "kernel_params": {
        "approximation": ("nystroem",),
        "gamma": ("variance", "distance"),
        "n_components": ("auto",),
    },
    "solver_params": {"precision": ("float64", "float32")},
}

# Parameters that take Python objects, except for the texts above.
_OBJECTS = ("estimator", "graph", "memory")


def check_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that are unknown, and suggest the nearest known one."""
    for name in names:
        if name not in known:
            raise ValueError(unknown_name(what, name, known))


def check_from_file(
    method: str, parameter: str, value: object, choices: Mapping[str, Iterable[str]]
) -> None:
    """Refuse a value that is not plain data.

    Parameters
    ----------
    method, parameter : str
        The method and the parameter, for the error message.
    value : object
        As tomllib reads it.
    choices : mapping of str to iterable of str
        The texts that the method's parameters take.

    Raises
    ------
    ValueError
        If a file may not give this value.
    """
    own = parameter.rpartition("__")[2]
    known = tuple(choices.get(parameter, choices.get(own, ())))
    where = f"parameter {parameter!r} of {method!r}"
    if isinstance(value, Mapping) and own in _SETTINGS:
        for key, item in value.items():
            name = f"{parameter}.{key}"
            check_from_file(method, name, item, {name: _SETTINGS[own].get(key, ())})
        return
    if isinstance(value, list | tuple):
        for item in value:
            check_from_file(method, parameter, item, choices)
    elif isinstance(value, str) and value in known:
        return
    elif own in _OBJECTS:
        raise ValueError(
            f"{where} is an object, which a protocol file cannot give, got {value!r}; leave it "
            f"out{f', say one of {known}' if known else ''}, or build the Protocol in Python."
        )
    elif isinstance(value, str) and known:
        raise ValueError(unknown_name(f"value of {where}", value, known))
    elif isinstance(value, str):
        raise ValueError(
            f"{where} takes no text from a protocol file, got {value!r}: a text could name a file "
            "or a module; register the method with the texts that it takes, "
            f"choices={{{parameter!r}: (...)}}, or build the Protocol in Python."
        )
    elif not isinstance(value, bool | int | float):
        raise ValueError(
            f"{where} must be a number, true, false, a known text or a list of these, "
            f"got {value!r}."
        )


Kind = Literal["learner", "enhancer"]

# {1/64, 1/16, 1/4, 1, 4, 16, 64}: the values that the paper tries for each parameter.
PAPER_GRID = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0)


@dataclass(frozen=True, slots=True)
class Method:
    """A method under the name that tables print.

    Attributes
    ----------
    name : str
        Its name in the paper.
    kind : {"learner", "enhancer"}
        The kind of experiment: a learner predicts, an enhancer reconstructs.
    make : callable
        Returns a new, unfitted estimator with the parameters of the paper.
    grid : mapping of str to tuple
        The values that the paper tries for each parameter. Empty if it does not tune the method.
    summary : str
        One line that says what the method does.
    choices : mapping of str to tuple of str
        The texts that its parameters accept. A protocol file may contain no other text, because a
        text could name a path or a module.
    decisions : tuple of str
        Parameters of the grid that change which labels are predicted, but hardly their order. They
        are chosen by the Hamming loss, after all others. The learner must have `fit_grid`.
    """

    name: str
    kind: Kind
    make: Callable[[], Estimator]
    grid: Grid = field(default_factory=dict)
    summary: str = ""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    decisions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for attribute in ("grid", "choices"):
            given = getattr(self, attribute)
            frozen = MappingProxyType({name: tuple(values) for name, values in given.items()})
            object.__setattr__(self, attribute, frozen)


# What the engine does to the data before a method gets them; the first value is the default.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "unobserved": ("skip", "zero"),
    "features": ("given", "scaled"),
}


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method of a protocol: a registered method with a label and optional parameters.

    Attributes
    ----------
    method : str
        Its name in the registry.
    label : str
        Its name in tables. By default the registered name.
    parameters : mapping
        Parameters that differ from the registered defaults.
    unobserved : {"skip", "zero"}
        What the method gets in place of unknown labels of the training rows. "skip" leaves them
        unknown. "zero" replaces them by 0, as a user does who reads "not observed" as "not
        relevant"; the folds of the tuning then also count them as 0.
    features : {"given", "scaled"}
        "scaled" subtracts the mean of each feature and divides by its standard deviation; sparse
        features are divided by their largest absolute value instead. Both are those of the
        training rows.
    """

    method: str
    label: str = ""
    parameters: SettingsView = field(default_factory=dict)
    unobserved: Literal["skip", "zero"] = "skip"
    features: Literal["given", "scaled"] = "given"

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.method)
        for name, choices in OPTIONS.items():
            check_known(f"value of {name} of method {self.label!r}", [getattr(self, name)], choices)

    @property
    def options(self) -> dict[str, str]:
        """The options that differ from their defaults; they are part of the id of a cell."""
        given = {name: str(getattr(self, name)) for name in OPTIONS}
        return {name: value for name, value in given.items() if value != OPTIONS[name][0]}


_METHODS: dict[tuple[str, str], Method] = {}


def register(method: Method) -> Method:
    """Register a method for protocols, the command line, tables and documentation.

    Parameters
    ----------
    method : Method
        The method. Its name must be new among the methods of its kind.

    Returns
    -------
    Method
        The same object.
    """
    if method.kind not in ("learner", "enhancer"):
        raise ValueError(f"kind must be 'learner' or 'enhancer', got {method.kind!r}.")
    key = (method.kind, method.name)
    if key in _METHODS:
        raise ValueError(
            f"{method.kind} {method.name!r} is registered already; choose another name."
        )
    unknown = method.grid.keys() - _made(method).get_params().keys()
    if unknown:
        raise ValueError(
            f"the grid of {method.name!r} names {', '.join(sorted(unknown))}, which the estimator "
            "does not have as a parameter."
        )
    _METHODS[key] = method
    return method


def _made(method: Method) -> Estimator:
    """Make an estimator of a method, and say what is wrong with its class if it is not one."""
    what = f"{method.kind} {method.name!r}"
    try:
        estimator = method.make()
        estimator.get_params()
    except Exception as error:  # the code of a user can raise anything
        raise ValueError(
            f"{what} cannot be made: {type(error).__name__}: {error}; `make` must be a class, or a "
            "function without arguments, that returns an estimator of scikit-learn's kind: a "
            "subclass of sklearn.base.BaseEstimator whose parameters all have defaults."
        ) from error
    needed = ("fit", "predict") if method.kind == "learner" else ("fit_enhance",)
    missing = [name for name in needed if not callable(getattr(estimator, name, None))]
    if missing:
        raise ValueError(
            f"{what} has no method {missing[0]}; write it into {type(estimator).__name__}."
        )
    return estimator


def get_method(kind: Kind, name: str) -> Method:
    """Return a registered method.

    Parameters
    ----------
    kind : {"learner", "enhancer"}
        The kind of method. LEMLL is registered as both.
    name : str
        The registered name.

    Returns
    -------
    Method
        The registered method.

    Examples
    --------
    >>> get_method("learner", "LEMLL").make()
    LEMLL()
    """
    check_known(kind, [name], [method.name for method in list_methods(kind)])
    return _METHODS[kind, name]


def list_methods(kind: Kind | None = None) -> list[Method]:
    """List the registered methods.

    Parameters
    ----------
    kind : {"learner", "enhancer"}, optional
        List only methods of this kind. By default all methods.

    Returns
    -------
    list of Method
        Learners first, each kind in the order of registration.
    """
    kinds = ("learner", "enhancer") if kind is None else (kind,)
    return [method for wanted in kinds for method in _METHODS.values() if method.kind == wanted]


_LEMLL_GRID = {"alpha": PAPER_GRID, "beta": PAPER_GRID, "gamma": PAPER_GRID}
# The published reconstructions regularise local Gram matrices only if they are singular.
_LEMLL = partial(LEMLLEnhancer, graph={"reg_policy": "auto"}, tol=1e-6, max_iter=5000)
# The stopping rule of fcm in MATLAB. The start is random, and that of the published run is unknown.
_FCM = partial(FCMEnhancer, stop="objective", tol=1e-5, max_iter=100, random_state=0)
# The paper states 0.5, but this value reproduces its figures.
_RELIAB = partial(LabelPropagationEnhancer, alpha=0.7)
# The code of the authors stops early, and this matters: exact codes give other figures.
_MLFE = partial(MLFEEnhancer, coding="admm")
# Mulan uses the normalised distance and the logistic regression of Weka.
_MLKNN = partial(MLkNN, scale="minmax")
# Without regularisation, a loose tolerance gives inaccurate models of separable labels.
_CLR = partial(CLR, "weka", tol=1e-6)
_ECC = partial(ECC, "weka", tol=1e-6, random_state=0)
_ECC_L2 = partial(ECC, random_state=0)
_EXTRA_TREES = partial(MultilabelForest, random_state=0)


# These search by themselves, in their own folds, so they have no grid here.
def _lemll_auto() -> LEMLLCV:
    return LEMLLCV(estimator=LEMLL(scale="auto"), kernel="auto", normalize_rows="auto")


def _msvr_auto() -> MSVRCV:
    template = MSVRClassifier(scale="auto", tol=1e-4)
    return MSVRCV(estimator=template, kernel="auto", normalize_rows="auto")


_BOOSTING = partial(BinaryRelevance, HistGradientBoostingClassifier(random_state=0))

_ONE_TO_TEN = tuple(float(weight) for weight in range(1, 11))
_MLFE_GRID = {"beta1": _ONE_TO_TEN, "beta2": (1.0, 10.0, 15.0), "beta3": (1.0, 10.0)}
# The paper does not have a ridge, so it does not say which values to try.
_RELIAB_GRID = {
    "beta": (0.001, 0.01, 0.1, 1.0, 10.0),
    "ridge": (0.01, 0.1, 1.0, 10.0),
    "tau": tuple(round(0.05 * step, 2) for step in range(2, 11)),
}
# The first stage of the published reconstructions.
_ML2 = partial(ML2, ridge=1e-5)
# Enhancers whose numerical labels a regressor learns, to see whether better degrees predict better.
_FIRST_STAGES: Mapping[str, BaseEnhancer] = {
    "LEMLL": LEMLLEnhancer(feature_scale="auto"),
    "GLLE": GLLEEnhancer(),
    "LESC": LESCEnhancer(),
    "LabelGraph": LabelGraphEnhancer(),
    "Blend": BlendEnhancer(),
}
# More accuracy does not change figures with three decimals, and a grid takes a third of the time.
_RELIAB_LEARNER = partial(RELIAB, tol=1e-4)

for _method in (
    Method("LEMLL", "learner", LEMLL, _LEMLL_GRID, "numerical labels and their model, jointly"),
    Method("MSVR", "learner", MSVRClassifier, {"alpha": PAPER_GRID}, "LEMLL without enhancement"),
    Method("ML-kNN", "learner", _MLKNN, {}, "Bayes' rule on the neighbours' labels"),
    Method(
        "LabelPropagation",
        "learner",
        LabelPropagation,
        {"n_neighbors": (5, 10, 20, 40), "smoothness": (0.1, 1.0, 10.0)},
        "observed labels spread over the graph of the rows",
    ),
    Method("CLR", "learner", _CLR, {}, "all pairs of labels vote, unregularised as in the paper"),
    Method("ECC", "learner", _ECC, {}, "30 classifier chains, unregularised as in the paper"),
    Method("BR", "learner", BinaryRelevance, {"C": PAPER_GRID}, "one regularised model per label"),
    Method("CLR-L2", "learner", CLR, {"C": PAPER_GRID}, "CLR with regularised models"),
    Method("ECC-L2", "learner", _ECC_L2, {"C": PAPER_GRID}, "ECC with regularised models"),
    Method("Extra trees", "learner", _EXTRA_TREES, {}, "a forest that all labels share"),
    Method("LEMLL-auto", "learner", _lemll_auto, {}, "LEMLL with a searched kernel and scaling"),
    Method("MSVR-auto", "learner", _msvr_auto, {}, "MSVR with a searched kernel and scaling"),
    Method("TagPredictor", "learner", TagPredictor, {}, "LEMLL, BR and forests, blended"),
    Method("Boosting", "learner", _BOOSTING, {}, "boosted trees for each label, dense features"),
    Method("MLFE", "learner", MLFE, _MLFE_GRID, "sparse reconstruction, then regression"),
    Method(
        "ML2", "learner", _ML2, {"C1": _ONE_TO_TEN, "C2": _ONE_TO_TEN}, "manifold, then regression"
    ),
    Method(
        "RELIAB",
        "learner",
        _RELIAB_LEARNER,
        _RELIAB_GRID,
        "propagation, then maximum entropy",
        # The average precision does not see tau, which decides how many labels are predicted.
        decisions=("tau",),
    ),
    *(
        Method(
            f"{name} + MSVR",
            "learner",
            partial(TwoStage, enhancer, MSVR(tol=1e-4)),
            {"regressor__alpha": PAPER_GRID},
            f"labels enhanced by {name}, then regression",
        )
        for name, enhancer in _FIRST_STAGES.items()
    ),
    Method("LEMLL", "enhancer", _LEMLL, _LEMLL_GRID, "numerical labels of Eq. (9)"),
    Method("FCM", "enhancer", _FCM, {}, "memberships in fuzzy clusters"),
    Method("KM", "enhancer", KMEnhancer, {}, "distances to the labels' centres, by a kernel"),
    Method("RELIAB", "enhancer", _RELIAB, {}, "label propagation over all pairs of rows"),
    Method("ML2", "enhancer", ML2Enhancer, {}, "local linear structure, labels as bounds"),
    Method("MLFE", "enhancer", _MLFE, {}, "sparse reconstruction of rows, labels as bounds"),
    Method("GLLE", "enhancer", GLLEEnhancer, {}, "a kernel model with a graph of similar rows"),
    Method("LESC", "enhancer", LESCEnhancer, {}, "labels made smooth by rows of low rank"),
    Method("LabelGraph", "enhancer", LabelGraphEnhancer, {}, "propagation over the labels' graph"),
    Method("Blend", "enhancer", BlendEnhancer, {}, "label graph and features, by rated rows"),
    Method("Uniform", "enhancer", UniformEnhancer, {}, "baseline: all labels equal"),
    Method("Logical", "enhancer", LogicalEnhancer, {}, "baseline: relevant labels equal"),
):
    register(replace(_method, choices=CHOICES))
