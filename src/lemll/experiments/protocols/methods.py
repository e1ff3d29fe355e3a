"""The one registry of methods: being listed here is all a method needs to be run and compared.

Protocols, the command line, tables and documentation read this registry and nothing else. A
learner is a multi-label classifier, fitted on the training rows; an enhancer recovers the label
distribution of the rows it is fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from lemll._types import SettingsView
from lemll.enhancers import (
    FCMEnhancer,
    GLLEEnhancer,
    KMEnhancer,
    LabelPropagationEnhancer,
    LEMLLEnhancer,
    LogicalEnhancer,
    ML2Enhancer,
    MLFEEnhancer,
    UniformEnhancer,
)
from lemll.experiments.protocols.choices import CHOICES
from lemll.experiments.protocols.names import unknown_name
from lemll.predictors import (
    CLR,
    ECC,
    LEMLL,
    ML2,
    MLFE,
    RELIAB,
    BinaryRelevance,
    MLkNN,
    MSVRClassifier,
)

__all__ = ["Kind", "Method", "MethodSpec", "get_method", "list_methods", "register"]

Kind = Literal["learner", "enhancer"]

# "{1/64, 1/16, 1/4, 1, 4, 16, 64}", the values among which the paper tunes its parameters.
PAPER_GRID = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0)


@dataclass(frozen=True, slots=True)
class Method:
    """A method under the name that tables print.

    Attributes
    ----------
    name : str
        As the paper calls it.
    kind : {"learner", "enhancer"}
        Which of the two experiments it takes part in.
    make : callable
        Returns a fresh, unfitted estimator with the paper's parameters.
    grid : mapping of str to tuple
        The values among which the paper tunes each parameter; empty if it tunes none.
    summary : str
        One line on what it does.
    choices : mapping of str to tuple of str
        The texts that its parameters take; no other text may come from a protocol file, where it
        could name a path or a module.
    """

    name: str
    kind: Kind
    make: Callable[[], Any]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    summary: str = ""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for attribute in ("grid", "choices"):
            given = getattr(self, attribute)
            frozen = MappingProxyType({name: tuple(values) for name, values in given.items()})
            object.__setattr__(self, attribute, frozen)


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method of a protocol: a registered one, under a label, perhaps with other parameters.

    Attributes
    ----------
    method : str
        Its name in the registry.
    label : str
        What tables call it; by default the name.
    parameters : mapping
        What differs from the registered defaults.
    """

    method: str
    label: str = ""
    parameters: SettingsView = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.method)


_METHODS: dict[tuple[str, str], Method] = {}


def register(method: Method) -> Method:
    """Make a method known to protocols, command line, tables and documentation.

    Parameters
    ----------
    method : Method
        With a name that is not taken yet among its kind.

    Returns
    -------
    Method
        The same.
    """
    if method.kind not in ("learner", "enhancer"):
        raise ValueError(f"kind must be 'learner' or 'enhancer', got {method.kind!r}.")
    key = (method.kind, method.name)
    if key in _METHODS:
        raise ValueError(
            f"{method.kind} {method.name!r} is registered already; choose another name."
        )
    unknown = method.grid.keys() - method.make().get_params().keys()
    if unknown:
        raise ValueError(
            f"the grid of {method.name!r} names {', '.join(sorted(unknown))}, which the estimator "
            "does not have as a parameter."
        )
    _METHODS[key] = method
    return method


def get_method(kind: Kind, name: str) -> Method:
    """Look a method up.

    Parameters
    ----------
    kind : {"learner", "enhancer"}
        Which of the two is meant; LEMLL is both.
    name : str
        As registered.

    Returns
    -------
    Method
        The entry.

    Examples
    --------
    >>> get_method("learner", "LEMLL").make()
    LEMLL()
    """
    found = _METHODS.get((kind, name))
    if found is None:
        known = [method.name for method in list_methods(kind)]
        raise ValueError(unknown_name(kind, name, known))
    return found


def list_methods(kind: Kind | None = None) -> list[Method]:
    """List the registered methods.

    Parameters
    ----------
    kind : {"learner", "enhancer"}, optional
        Only these.

    Returns
    -------
    list of Method
        Learners first, each kind in the order of registration.
    """
    kinds = ("learner", "enhancer") if kind is None else (kind,)
    return [method for wanted in kinds for method in _METHODS.values() if method.kind == wanted]


_LEMLL_GRID = {"alpha": PAPER_GRID, "beta": PAPER_GRID, "gamma": PAPER_GRID}
# The published reconstructions rest on local Gram matrices regularised only where singular.
_LEMLL = partial(LEMLLEnhancer, reg_policy="auto", max_iter=5000)
# As MATLAB's fcm stops; the start is random, and the published run's unknown.
_FCM = partial(FCMEnhancer, stop="objective", tol=1e-5, max_iter=100, random_state=0)
# The paper states 0.5, but its figures come from this.
_RELIAB = partial(LabelPropagationEnhancer, alpha=0.7)
# The early stop of the authors' code matters: exact codes give other figures.
_MLFE = partial(MLFEEnhancer, coding="admm")
# Mulan's neighbours are those of Weka's normalised distance; its logistic regressions are Weka's.
_MLKNN = partial(MLkNN, normalize="minmax")
# Without regularisation a loose tolerance leaves separable labels undecided.
_CLR = partial(CLR, "weka", tol=1e-6)
_ECC = partial(ECC, "weka", tol=1e-6, random_state=0)
_ECC_L2 = partial(ECC, random_state=0)

_ONE_TO_TEN = tuple(float(weight) for weight in range(1, 11))
_MLFE_GRID = {"beta1": _ONE_TO_TEN, "beta2": (1.0, 10.0, 15.0), "beta3": (1.0, 10.0)}
_RELIAB_GRID = {
    "beta": (0.001, 0.01, 0.1, 1.0, 10.0),
    "tau": tuple(round(0.05 * step, 2) for step in range(2, 11)),
}
# The first stage of the published reconstructions.
_ML2 = partial(ML2, ridge=1e-5)
# Figures of three decimals do not see more, and 45 points of a grid take a third of the time.
_RELIAB_LEARNER = partial(RELIAB, tol=1e-4)

for _method in (
    Method("LEMLL", "learner", LEMLL, _LEMLL_GRID, "numerical labels and their model, jointly"),
    Method("MSVR", "learner", MSVRClassifier, {"alpha": PAPER_GRID}, "LEMLL without enhancement"),
    Method("ML-kNN", "learner", _MLKNN, {}, "Bayes' rule on the neighbours' labels"),
    Method("CLR", "learner", _CLR, {}, "all pairs of labels vote, unregularised as in the paper"),
    Method("ECC", "learner", _ECC, {}, "30 classifier chains, unregularised as in the paper"),
    Method("BR", "learner", BinaryRelevance, {"C": PAPER_GRID}, "a regularised model a label"),
    Method("CLR-L2", "learner", CLR, {"C": PAPER_GRID}, "CLR with regularised models"),
    Method("ECC-L2", "learner", _ECC_L2, {"C": PAPER_GRID}, "ECC with regularised models"),
    Method("MLFE", "learner", MLFE, _MLFE_GRID, "sparse reconstruction, then regression"),
    Method(
        "ML2", "learner", _ML2, {"C1": _ONE_TO_TEN, "C2": _ONE_TO_TEN}, "manifold, then regression"
    ),
    Method("RELIAB", "learner", _RELIAB_LEARNER, _RELIAB_GRID, "propagation, then maximum entropy"),
    Method("LEMLL", "enhancer", _LEMLL, _LEMLL_GRID, "numerical labels of Eq. (9)"),
    Method("FCM", "enhancer", _FCM, {}, "memberships in fuzzy clusters"),
    Method("KM", "enhancer", KMEnhancer, {}, "distances to the labels' centres, by a kernel"),
    Method("RELIAB", "enhancer", _RELIAB, {}, "label propagation over all pairs of rows"),
    Method("ML2", "enhancer", ML2Enhancer, {}, "local linear structure, labels as bounds"),
    Method("MLFE", "enhancer", _MLFE, {}, "sparse reconstruction of rows, labels as bounds"),
    Method("GLLE", "enhancer", GLLEEnhancer, {}, "a kernel model with a graph of similar rows"),
    Method("Uniform", "enhancer", UniformEnhancer, {}, "baseline: all labels alike"),
    Method("Logical", "enhancer", LogicalEnhancer, {}, "baseline: relevant labels alike"),
):
    register(replace(_method, choices=CHOICES))
