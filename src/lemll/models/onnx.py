"""Write linear and kernel models as ONNX, so that they can be served without Python.

The graph computes in float64, as lemll does. Its input is ``X``; its outputs are ``labels`` (0/1),
``scores``, and ``probabilities`` if the learner has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from lemll._types import Estimator, FloatArray
from lemll._validation import is_sparse
from lemll.exceptions import LemllError, import_extra
from lemll.models.training import TableModel
from lemll.predictors import LEMLL, LEMLLCV, MSVRCV, BinaryRelevance, MSVRClassifier
from lemll.tables import TableEncoder

_OPSET = 17
_LEARNERS = (LEMLL, MSVRClassifier, LEMLLCV, MSVRCV, BinaryRelevance)
_KERNELS = ("rbf", "poly", "sigmoid", "cosine")


def to_onnx(model: Estimator, path: str | Path | None = None) -> bytes:
    """Convert a fitted model to ONNX.

    Parameters
    ----------
    model : estimator or TableModel
        LEMLL, MSVRClassifier, LEMLLCV, MSVRCV or BinaryRelevance, linear or with a built-in kernel,
        fitted to a label matrix. Or a pipeline of one of them behind StandardScaler, MinMaxScaler
        or MaxAbsScaler. Or a model of a table whose features are all numbers.
    path : str or Path, optional
        A file to write, usually ``*.onnx``.

    Returns
    -------
    bytes
        The model. Its input ``X`` has the type double and the shape (n_rows, n_features). Its
        outputs are ``labels`` (int64, 0/1, by the thresholds of the model), ``scores`` (double)
        and, if the model has `predict_proba`, ``probabilities`` (double), all of shape
        (n_rows, n_labels). The names of the labels, and for a table those of its columns, are in
        the metadata, separated by line feeds. Gaps of a table are NaN.

    Examples
    --------
    >>> from lemll import LEMLL
    >>> from lemll.datasets import load_digit_tags
    >>> from lemll.models import to_onnx
    >>> digits = load_digit_tags()
    >>> model = LEMLL(kernel="rbf").fit(digits.X[:200], digits.Y[:200])
    >>> len(to_onnx(model)) > 10_000  # the training rows are in the file
    True
    """
    steps = _steps(model)
    columns = _number_columns(steps[0]) if isinstance(steps[0], TableEncoder) else None
    onnx = import_extra("onnx", "onnx", "Writing ONNX")
    learner = steps[-1]
    graph = _Graph(onnx)
    rows = "X"
    for step in steps[:-1]:
        encodes = isinstance(step, TableEncoder)
        rows = _encoded(graph, step, rows) if encodes else graph.affine(rows, *_affine(step))
    scores = _scores(graph, learner, rows)
    graph.named("Identity", [scores], "scores")
    above = graph.add("Greater", scores, graph.constant(learner.thresholds_[None]))
    graph.named("Cast", [above], "labels", to=onnx.TensorProto.INT64)
    n_labels = len(learner.label_names_)
    outputs = {"labels": onnx.TensorProto.INT64, "scores": onnx.TensorProto.DOUBLE}
    if hasattr(learner, "predict_proba"):
        graph.named("Sigmoid", [_log_odds(graph, learner, scores)], "probabilities")
        outputs["probabilities"] = onnx.TensorProto.DOUBLE
    names = list(model.label_names if isinstance(model, TableModel) else learner.label_names_)
    properties = {"labels": "\n".join(map(str, names))}
    if columns is not None:
        properties["columns"] = "\n".join(columns)
    n_features = steps[0].n_features_in_ if columns is None else len(columns)
    content = graph.build(n_features, n_labels, outputs, properties)
    if path is not None:
        Path(path).write_bytes(content)
    return content


def _steps(model: Estimator) -> list[Estimator]:
    """Return scalers and learner, or refuse what cannot be expressed in ONNX here."""
    whole = model.pipeline if isinstance(model, TableModel) else model
    check_is_fitted(whole)
    steps = [step for _, step in whole.steps] if hasattr(whole, "steps") else [whole]
    *scalers, learner = steps
    allowed = (StandardScaler, MinMaxScaler, MaxAbsScaler)
    odd = next((s for s in scalers if not isinstance(s, (*allowed, TableEncoder))), None)
    if odd is not None or not isinstance(learner, _LEARNERS):
        raise LemllError(
            f"{type(odd if odd is not None else learner).__name__} cannot be written as ONNX; use "
            f"{', '.join(kind.__name__ for kind in _LEARNERS)}, alone or behind "
            f"{', '.join(kind.__name__ for kind in allowed)}"
        )
    if not learner._coding.multilabel:
        raise LemllError("only models of a label matrix can be written as ONNX; fit 0/1 columns")
    if isinstance(learner, (LEMLLCV, MSVRCV)) and not learner.refit:
        raise LemllError(f"{type(learner).__name__} has no model; fit it with refit=True")
    if isinstance(learner, BinaryRelevance) and not learner._built_in:
        raise LemllError("BinaryRelevance with an estimator of your own cannot be written as ONNX")
    return steps


def _number_columns(encoder: TableEncoder) -> list[str]:
    """Return the columns of an encoder, which must all hold numbers."""
    used = [column for column in encoder.columns_ if column.kind != "ignored"]
    odd = next((column for column in used if column.kind != "number"), None)
    if odd is not None:
        raise LemllError(
            f"column {odd.name!r} is encoded as {odd.kind}, and only numbers can be written as "
            "ONNX; fit the table without it (`ignore`), or serve the model with lemll.load"
        )
    return [column.name for column in used]


def _encoded(graph: _Graph, encoder: TableEncoder, rows: str) -> str:
    """Add what the encoder does to numbers: medians in gaps, marks of gaps, scaling."""
    _number_columns(encoder)
    imputer, scaler = encoder.transformer_.transformers_[0][1]
    gaps = graph.add("IsNaN", rows)
    filled = graph.add("Where", gaps, graph.constant(imputer.statistics_[None]), rows)
    marked = imputer.indicator_.features_
    if len(marked):
        choice = np.zeros((len(imputer.statistics_), len(marked)))
        choice[marked, np.arange(len(marked))] = 1
        marks = graph.add("Where", gaps, graph.constant(np.ones((1, 1))),
                          graph.constant(np.zeros((1, 1))))  # fmt: skip
        chosen = graph.add("MatMul", marks, graph.constant(choice))
        filled = graph.add("Concat", filled, chosen, axis=1)
    return graph.affine(filled, *_affine(scaler))


def _affine(scaler: Estimator) -> tuple[FloatArray, FloatArray]:
    """Return what a scaler subtracts from a row, and what it then multiplies it with."""
    zeros = np.zeros(scaler.n_features_in_)
    if isinstance(scaler, MinMaxScaler):
        if scaler.clip:
            raise LemllError("MinMaxScaler(clip=True) cannot be written as ONNX; leave clip out")
        return np.asarray(-scaler.min_ / scaler.scale_), np.asarray(scaler.scale_)
    factor = np.ones_like(zeros) if scaler.scale_ is None else 1 / scaler.scale_
    centred = isinstance(scaler, StandardScaler) and scaler.with_mean
    return np.asarray(scaler.mean_ if centred else zeros), np.asarray(factor)


def _scores(graph: _Graph, learner: Estimator, rows: str) -> str:
    """Add the scores of the learner."""
    if isinstance(learner, (LEMLLCV, MSVRCV)):
        space = learner._rows
        rows = _scaled(graph, space.scaling, rows)
        if space.normalize:
            rows = graph.unit_rows(rows)
        learner = learner.best_estimator_
    scaling = getattr(learner, "_scaling", None)
    if scaling is not None:
        rows = _scaled(graph, scaling, rows)
    kernel = getattr(learner, "kernel_", None)
    if kernel is None:
        products = graph.add("MatMul", rows, graph.constant(learner.coef_.T))
    else:
        values = _kernel_values(graph, learner, rows)
        products = graph.add("MatMul", values, graph.constant(learner.dual_coef_.T))
    return graph.add("Add", products, graph.constant(learner.intercept_[None]))


def _scaled(graph: _Graph, scaling: Any, rows: str) -> str:
    scaler = getattr(scaling, "_scaler", None)  # None if nothing is scaled
    return rows if scaler is None else graph.affine(rows, *_affine(scaler))


def _log_odds(graph: _Graph, learner: Estimator, scores: str) -> str:
    lines = getattr(learner, "_calibration", None)
    if lines is None:
        return scores  # the scores of logistic regressions are log-odds
    scaled = graph.add("Mul", scores, graph.constant(lines.slope[None]))
    return graph.add("Add", scaled, graph.constant(lines.intercept[None]))


def _kernel_values(graph: _Graph, learner: Estimator, rows: str) -> str:
    """Add the kernel values of the rows with the training rows, as `lemll.fitting` defines them."""
    kernel = learner.kernel_
    first_order = kernel.name == "first-order rbf"
    if not first_order and kernel.name not in _KERNELS:
        raise LemllError(
            f"the kernel {kernel.name!r} cannot be written as ONNX; use {', '.join(_KERNELS)} or "
            "'linear'"
        )
    others = learner.X_fit_.toarray() if is_sparse(learner.X_fit_) else learner.X_fit_
    others = np.asarray(others, dtype=np.float64)
    if first_order:
        return _first_order(graph, kernel, rows, others)
    if kernel.name == "cosine":
        lengths = np.sqrt(np.square(others).sum(axis=1, keepdims=True))
        others = others / np.where(lengths == 0, 1, lengths)
        rows = graph.unit_rows(rows)
    if kernel.centre is not None and kernel.name != "sigmoid":
        rows = graph.add("Sub", rows, graph.constant(kernel.centre[None]))
        others = others - kernel.centre
    products = graph.add("MatMul", rows, graph.constant(others.T))
    if kernel.name == "cosine":
        return products
    if kernel.name == "rbf":
        return _radial(graph, kernel.gamma, rows, products, others)
    if kernel.name == "sigmoid":
        shifted = graph.plus(graph.times(products, kernel.gamma), kernel.coef0)
        return graph.add("Tanh", shifted)
    return _polynomial(graph, kernel, rows, products, others)


def _radial(graph: _Graph, gamma: float, rows: str, products: str, others: FloatArray) -> str:
    """Add the Gaussian kernel of rows and others, from their products."""
    own = graph.add("Add", graph.squares(rows), graph.constant(_squares(others)[None]))
    distance = graph.add("Sub", own, graph.times(products, 2.0))
    positive = graph.add("Max", distance, graph.constant(np.zeros((1, 1))))
    return graph.add("Exp", graph.times(positive, -gamma))


def _first_order(graph: _Graph, kernel: Any, rows: str, others: FloatArray) -> str:
    """Add the first-order features and the remainder, as `FirstOrderKernel.values` does."""
    g = kernel.gamma
    rows = graph.add("Sub", rows, graph.constant(kernel.centre[None]))
    others = others - kernel.centre
    height = graph.add("Exp", graph.times(graph.squares(rows), -g))
    heights = graph.add("Mul", height, graph.constant(np.exp(-g * _squares(others))[None]))
    products = graph.add("MatMul", rows, graph.constant(others.T))
    line = graph.plus(graph.times(products, 2 * g), 1.0)
    remainder = graph.add(
        "Sub", _radial(graph, g, rows, products, others), graph.add("Mul", heights, line)
    )
    scaled = graph.times(graph.add("Mul", rows, height), float(np.sqrt(2 * g)))
    return graph.add("Concat", height, scaled, remainder, axis=1)


def _squares(rows: FloatArray) -> FloatArray:
    return np.asarray(np.square(rows).sum(axis=1))


def _polynomial(graph: _Graph, kernel: Any, rows: str, products: str, others: FloatArray) -> str:
    """Add the polynomial kernel with its origin moved, by sums of powers without cancellation."""
    q = graph.times(products, kernel.gamma)
    base = float(kernel.coef0)
    m = kernel.centre
    if m is not None:
        base += kernel.gamma * float(m @ m)
    line = graph.times(q, kernel.degree * base ** (kernel.degree - 1))
    if m is None:
        return graph.add("Add", line, graph.curved(q, base, kernel.degree))
    a = graph.times(graph.add("MatMul", rows, graph.constant(m[:, None])), kernel.gamma)
    b = graph.constant(kernel.gamma * (others @ m)[None])
    both = graph.add("Add", graph.add("Add", q, a), b)
    values = graph.add(
        "Sub", graph.curved(both, base, kernel.degree), graph.curved(a, base, kernel.degree)
    )
    values = graph.add("Sub", values, graph.curved(b, base, kernel.degree))
    return graph.add("Add", values, line)


class _Graph:
    """Nodes and constants of an ONNX graph in float64."""

    def __init__(self, onnx: ModuleType) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, values: FloatArray) -> str:
        name = f"c{len(self._constants)}"
        array = np.ascontiguousarray(values, dtype=np.float64)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.named(operator, inputs, f"n{len(self._nodes)}", **attributes)

    def named(self, operator: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        node = self._onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        self._nodes.append(node)
        return name

    def times(self, name: str, factor: float) -> str:
        return self.add("Mul", name, self.constant(np.full((1, 1), factor)))

    def plus(self, name: str, number: float) -> str:
        return self.add("Add", name, self.constant(np.full((1, 1), number)))

    def affine(self, rows: str, mean: FloatArray, factor: FloatArray) -> str:
        centred = self.add("Sub", rows, self.constant(mean[None]))
        return self.add("Mul", centred, self.constant(factor[None]))

    def squares(self, rows: str) -> str:
        return self.add("ReduceSumSquare", rows, axes=[1], keepdims=1)

    def unit_rows(self, rows: str) -> str:
        lengths = self.add("Sqrt", self.squares(rows))
        zero = self.add("Equal", lengths, self.constant(np.zeros((1, 1))))
        lengths = self.add("Where", zero, self.constant(np.ones((1, 1))), lengths)
        return self.add("Div", rows, lengths)

    def curved(self, t: str, base: float, degree: int) -> str:
        """Add ``(base + t)^degree - base^degree - degree base^(degree-1) t``."""
        if degree == 1:
            return self.times(t, 0.0)
        # Horner's scheme from the highest power down to t^2.
        value = self.constant(np.full((1, 1), 1.0))
        for k in range(degree - 1, 1, -1):
            value = self.plus(self.add("Mul", value, t), comb(degree, k) * base ** (degree - k))
        return self.add("Mul", self.add("Mul", value, t), t)

    def build(
        self,
        n_features: int,
        n_labels: int,
        outputs: dict[str, int],
        properties: dict[str, str],
    ) -> bytes:
        helper, double = self._onnx.helper, self._onnx.TensorProto.DOUBLE
        graph = helper.make_graph(
            self._nodes,
            "lemll",
            [helper.make_tensor_value_info("X", double, [None, n_features])],
            [
                helper.make_tensor_value_info(name, kind, [None, n_labels])
                for name, kind in outputs.items()
            ],
            self._constants,
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], producer_name="lemll")
        model.ir_version = 8
        helper.set_model_props(model, properties)
        self._onnx.checker.check_model(model)
        return bytes(model.SerializeToString())
