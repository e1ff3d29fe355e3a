"""Check which parameter values a protocol file may contain.

A file may come from another person. Therefore it must not name paths, modules or objects: a text is
accepted only if the method lists it as a choice. A protocol made in Python may contain any value
that its estimators accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lemll.experiments.protocols.names import unknown_name

__all__ = ["CHOICES", "check_from_file"]

CHOICES: Mapping[str, tuple[str, ...]] = {
    "approximation": ("nystroem", "fourier"),
    "coding": ("admm", "lasso"),
    "combine": ("confidences", "votes"),
    "composition": ("product", "minimum"),
    "connection": ("minmax", "label", "none"),
    "emp": ("virtual", "pairwise"),
    "estimator": ("weka",),
    "feature_scale": ("auto", "standard", "maxabs", "none"),
    "kernel": ("auto", "linear", "rbf", "poly", "sigmoid", "cosine", "precomputed"),
    "kernel_gamma": ("variance", "distance"),
    "max_features": ("sqrt", "log2"),
    "measure": ("jaccard", "cosine"),
    "n_components": ("auto",),
    "neighbors": ("exact", "approximate", "auto"),
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
    "precision": ("float64", "float32"),
    "radius": ("positives", "all"),
    "reg_policy": ("always", "auto", "absolute"),
    "sampling": ("bootstrap", "subset"),
    "scale": ("auto", "standard", "maxabs", "minmax", "none"),
    "scoring": (
        "average_precision",
        "coverage",
        "hamming_loss",
        "one_error",
        "ranking_loss",
    ),
    "search": ("auto", "grid", "coarse", "halving"),
    "stop": ("memberships", "objective"),
    "thresholds": ("zero", "f1", "hamming"),
    "transition": ("column", "row", "symmetric"),
    "trees": ("extra", "random"),
    "voting": ("hard", "soft"),
}
"""The texts that parameters of lemll's own methods take, by parameter."""

# Parameters that take Python objects, except for the texts above.
_OBJECTS = ("estimator", "graph", "memory")


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
    known = tuple(choices.get(parameter, ()))
    where = f"parameter {parameter!r} of {method!r}"
    if isinstance(value, list | tuple):
        for item in value:
            check_from_file(method, parameter, item, choices)
    elif isinstance(value, str) and value in known:
        return
    elif parameter in _OBJECTS:
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
