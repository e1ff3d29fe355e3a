"""Fit Eq. (9) to validated arrays; choose kernels, and store and evaluate fitted models."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lemll._types import (
    Estimator,
    Features,
    FloatArray,
    KernelLike,
    LabelArray,
    MatrixLike,
    Settings,
    SettingsView,
    SparseMatrix,
)
from lemll._validation import (
    check_magnitude,
    check_memory,
    check_number,
    check_settings,
    check_whole,
    is_sparse,
    warn_gap,
    warn_rounded_kernel,
)
from lemll.fitting.kernels import (
    KERNELS,
    Kernel,
    MappedRows,
    approximate,
    inverse_variance,
    kernel_excess,
    row_parts,
    unit_rows,
)
from lemll.solvers import LemllSolution, solver_bytes
from lemll.solvers.equation9 import Progress, Status, duality_gap
from lemll.solvers.joint import solve_logical
from lemll.topology import NeighborGraph, check_graph, load_graph, neighbor_graph
from lemll.topology.graphs import check_rows, kernel_reconstruction_weights

# What `graph`, `solver_params` and, beside the settings of the kernel, `kernel_params` may hold.
GRAPH_SETTINGS: SettingsView = {"neighbors": "auto", "reg_policy": "always"}
# The same for enhancers, which search exactly also among many rows.
EXACT_GRAPH: SettingsView = {**GRAPH_SETTINGS, "neighbors": "exact"}
SOLVER_SETTINGS: SettingsView = {"label_block": None, "precision": "float64"}
FEATURE_SETTINGS: SettingsView = {"approximation": None, "n_components": "auto", "random_state": 0}


def graph_is_given(graph: object) -> bool:
    """Return whether the parameter `graph` holds a graph, and not settings to build one."""
    return graph is not None and not isinstance(graph, Mapping)


def graph_settings(graph: object, defaults: SettingsView = GRAPH_SETTINGS) -> Settings:
    """Return the settings in the parameter `graph`, the defaults if it holds a graph."""
    return check_settings("graph", None if graph_is_given(graph) else graph, defaults)


def label_blocks(label_block: object, n_labels: int) -> list[slice]:
    """Divide the labels into blocks of the size that the user wants, or into one block."""
    if label_block is None:
        return [slice(0, n_labels)]
    step = check_whole("label_block in solver_params", label_block, least=1)
    return [slice(i, min(i + step, n_labels)) for i in range(0, n_labels, step)]


@dataclass(eq=False, repr=False)
class Equation9:
    """The parameters of estimators that minimise Eq. (9)."""

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    _: KW_ONLY
    epsilon: float = 0.1
    kernel: KernelLike = "linear"
    kernel_params: Settings | None = None
    n_neighbors: int = 10
    graph: SparseMatrix = None
    tol: float = 1e-4
    max_iter: int = 1000
    solver_params: Settings | None = None
    verbose: int = 0


@dataclass
class LabelProblem:
    """Everything of Eq. (9) but the labels."""

    X: Features
    features: Features
    W: Features
    kernel: Kernel | None
    options: Settings
    verbose: int

    def solve(
        self, Y: LabelArray | FloatArray, cell_weight: FloatArray | None, blocks: Sequence[slice]
    ) -> LemllSolution:
        """Solve for all labels together, or for one block of labels after the other."""
        if len(blocks) == 1:
            return self._solve_together(Y, cell_weight)
        U = np.empty(Y.shape, dtype=self.options["precision"])
        coef = np.empty((Y.shape[1], self.features.shape[1]))
        parts = [self._solve_block(Y, cell_weight, block, U, coef) for block in blocks]
        return _joined(parts, U, coef)

    def _solve_block(
        self,
        Y: LabelArray | FloatArray,
        cell_weight: FloatArray | None,
        block: slice,
        U: FloatArray,
        coef: FloatArray,
    ) -> LemllSolution:
        """Solve for a block of labels, write U and Theta into the arrays of all labels."""
        labels: Any = np.ascontiguousarray(Y[:, block])
        known = None if cell_weight is None else cell_weight[:, block]
        part = self._solve_together(labels, known, share=labels.shape[1] / Y.shape[1])
        U[:, block], coef[block] = part.numerical_labels, part.coef
        none = np.empty((0, 0))
        # Keep no large array of the block while the next one is solved.
        return replace(part, numerical_labels=none, coef=none, half_dual=None, dual_coef=None)

    def _solve_together(
        self, Y: LabelArray | FloatArray, cell_weight: FloatArray | None, *, share: float = 1.0
    ) -> LemllSolution:
        """Solve for some labels. `share` is their part of all labels.

        Outside the tube, the loss of all labels pulls the residual r of a row by
        (1 - epsilon / |r|) r. The residual r_g of a block is pulled by the same factor if the
        radius of the block is epsilon |r_g| / |r|. If all labels have residuals of the same size,
        |r_g| / |r| is the root of the share.
        """
        options = self.options | {"epsilon": self.options["epsilon"] * np.sqrt(share)}
        tol = options["tol"]
        progress = _ProgressLine(tol) if self.verbose else None
        solution = solve_logical(
            self.features, Y, self.W, **options, callback=progress, cell_weight=cell_weight
        )
        if progress is not None:
            progress.end(solution)
        scale = "alpha, beta, gamma and the features"
        # The certificate holds for the kernel values as computed. Add the effect of their rounding.
        optimality = settle_optimality("LEMLL", self.kernel, self.X, solution, tol=tol, scale=scale)
        U = solution.numerical_labels.astype(self.options["precision"], copy=False)
        return replace(solution, optimality=optimality, numerical_labels=U)


def _joined(parts: Sequence[LemllSolution], U: FloatArray, coef: FloatArray) -> LemllSolution:
    """Join the solutions of blocks of labels. The objectives and the gaps add up."""
    objective = sum(part.objective for part in parts)
    gap = sum(part.optimality * part.objective for part in parts)
    longest = max(len(part.objective_trace) for part in parts)
    # A block that has ended keeps its last objective.
    trace = sum(
        np.pad(part.objective_trace, (0, longest - len(part.objective_trace)), mode="edge")
        for part in parts
    )
    worst: Status = next((part.status for part in parts if not part.converged), "converged")
    return replace(
        parts[0],
        coef=coef,
        intercept=np.concatenate([part.intercept for part in parts]),
        numerical_labels=U,
        objective=objective,
        objective_trace=np.asarray(trace),
        optimality=gap / objective if objective > 0 else 0.0,
        n_iter=max(part.n_iter for part in parts),
        status=worst,
        n_linear_solves=sum(part.n_linear_solves for part in parts),
    )


class _ProgressLine:
    """A progress line on standard error. On a terminal it is rewritten in place."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def __call__(self, progress: Progress) -> None:
        self._show(progress.iteration, progress.objective, progress.optimality, progress.elapsed)

    def end(self, solution: LemllSolution) -> None:
        """Show the final state and end the line."""
        self._show(solution.n_iter, solution.objective, solution.optimality, None)
        if sys.stderr.isatty():
            sys.stderr.write("\n")

    def _show(self, iteration: int, objective: float, gap: float, elapsed: float | None) -> None:
        reached = f"{gap:.1e}" if np.isfinite(gap) else "not yet known"
        when = "done" if elapsed is None else f"{elapsed:.1f} s"
        text = (
            f"LEMLL iteration {iteration}: objective {objective:.6g}, certified gap {reached} "
            f"(wanted {self.tol:.1e}), {when}"
        )
        # "\r\x1b[K" goes to the start of the line and clears it. A file gets one line per report.
        sys.stderr.write(f"\r\x1b[K{text}" if sys.stderr.isatty() else f"{text}\n")
        sys.stderr.flush()


def fit_equation9(
    estimator: Estimator,
    X: Features,
    Y: LabelArray | FloatArray,
    cell_weight: FloatArray | None = None,
    *,
    graph_defaults: SettingsView = GRAPH_SETTINGS,
) -> FloatArray:
    """Minimise Eq. (9) with the parameters of an estimator and store the solution in it.

    Parameters
    ----------
    estimator : estimator
        It has alpha, beta, gamma, epsilon, kernel, kernel_params, n_neighbors, graph, tol,
        max_iter, solver_params and verbose. This function sets coef_ (or dual_coef_), intercept_,
        numerical_labels_, objective_, objective_trace_, optimality_, n_iter_ and neighbor_search_;
        with Nystroem features also kernel_gap_.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1, or degrees in [0, 1].
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.
    graph_defaults : mapping, optional
        The settings that `graph` leaves out.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The numerical labels.
    """
    kernel, features_of_kernel = _kernel_of(estimator, X)
    options, label_block = _checked_options(estimator)
    precision = options["precision"]
    blocks = label_blocks(label_block, Y.shape[1])
    widest = max(block.stop - block.start for block in blocks)
    mapped = None
    estimator.__dict__.pop("kernel_gap_", None)
    if features_of_kernel["approximation"] is not None:
        mapped = approximate(
            kernel,
            X,
            approximation=features_of_kernel["approximation"],
            n_components=features_of_kernel["n_components"],
            n_labels=widest,
            seed=check_whole(
                "random_state in kernel_params", features_of_kernel["random_state"], least=0
            ),
            precision=precision,
        )
    features = X if mapped is None else mapped.features
    linear = kernel is None or mapped is not None
    check_fits(features, widest, None if linear else kernel, kept_labels=Y.shape[1],
               precision=precision)  # fmt: skip
    if not linear:
        assert kernel is not None
        features = kernel.of_training(X, widest)
    W, estimator.neighbor_search_ = _graph_for(estimator, X, kernel, graph_defaults)
    problem = LabelProblem(X, features, W, None if linear else kernel, options, estimator.verbose)
    solution = problem.solve(Y, cell_weight, blocks)
    if mapped is None:
        store_model(estimator, kernel, X, solution.coef, solution.intercept)
    else:
        if len(blocks) == 1 and cell_weight is None:
            estimator.kernel_gap_ = _gap_to_kernel(problem, mapped, Y, solution)
        coef = mapped.coefficients(solution.coef)
        store_model(estimator, mapped.kernel, mapped.landmarks, coef, solution.intercept)
    estimator.numerical_labels_ = solution.numerical_labels
    estimator.objective_ = solution.objective
    estimator.objective_trace_ = solution.objective_trace
    estimator.optimality_ = solution.optimality
    estimator.n_iter_ = solution.n_iter
    return solution.numerical_labels


def _kernel_of(estimator: Estimator, X: Features) -> tuple[Kernel | None, Settings]:
    """Return the kernel of an estimator, and the settings of features that replace it."""
    defaults = {**KERNEL_SETTINGS, **FEATURE_SETTINGS}
    settings = check_settings("kernel_params", estimator.kernel_params, defaults)
    of_features = {name: settings.pop(name) for name in FEATURE_SETTINGS}
    return choose_kernel(estimator.kernel, settings, X), of_features


def _checked_options(estimator: Estimator) -> tuple[Settings, Any]:
    """Return the options of the solver, checked, and the number of labels of a block."""
    settings = check_settings("solver_params", estimator.solver_params, SOLVER_SETTINGS)
    precision = settings["precision"]
    if precision not in ("float64", "float32"):
        raise ValueError(
            f"precision={precision!r} in solver_params must be 'float64' or 'float32'."
        )
    options = {
        "alpha": check_number("alpha", estimator.alpha, above=0),
        "beta": check_number("beta", estimator.beta, above=0),
        "gamma": check_number("gamma", estimator.gamma, above=0, inclusive=True),
        "epsilon": check_number("epsilon", estimator.epsilon, above=0, inclusive=True),
        "tol": check_number("tol", estimator.tol, above=0),
        "max_iter": check_whole("max_iter", estimator.max_iter, least=1),
        "precision": precision,
    }
    return options, settings["label_block"]


def _gap_to_kernel(
    problem: LabelProblem, mapped: MappedRows, Y: LabelArray | FloatArray, solution: LemllSolution
) -> float:
    """Return the certified relative gap of a Nystroem solution to the exact kernel's optimum."""
    coded = 2.0 * Y - 1.0
    # The dual point of constant labels is zero, which is optimal.
    half_dual = np.zeros(Y.shape)
    if solution.half_dual is not None:
        half_dual[:, coded.min(axis=0) < coded.max(axis=0)] = solution.half_dual
    half_dual -= half_dual.mean(axis=0)
    weights = {name: problem.options[name] for name in ("alpha", "beta", "gamma", "epsilon")}
    certificate = duality_gap(
        mapped.features, coded, problem.W, solution.point, **weights, half_dual=half_dual
    )
    excess = kernel_excess(mapped, problem.X, half_dual) / weights["alpha"]
    scale = max(certificate.objective, np.finfo(np.float64).tiny)
    return float(certificate.relative + excess / scale)


def _graph_for(
    estimator: Estimator, X: Features, kernel: Kernel | None, defaults: SettingsView
) -> tuple[Features, Settings]:
    """Return the graph of an estimator, and a record of how its neighbours were found."""
    graph = estimator.graph
    if isinstance(graph, (str, Path)):
        graph = load_graph(graph)
    if isinstance(graph, NeighborGraph):
        check_rows(graph, X)
    elif graph_is_given(graph):
        return check_graph(graph, X.shape[0]), {"search": "given"}
    else:
        settings = graph_settings(graph, defaults)
        graph = local_graph(X, kernel, estimator.n_neighbors, **settings)
    return graph.W, {
        "search": graph.search,
        "recall": graph.recall,
        "checked_rows": graph.checked_rows,
    }


def make_graph(
    estimator: Estimator, X: Features, defaults: SettingsView = GRAPH_SETTINGS
) -> Features:
    """Build the graph for the parameters of an estimator.

    Parameters
    ----------
    estimator : estimator
        It has n_neighbors, graph, kernel and kernel_params.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    defaults : mapping, optional
        The settings that `graph` leaves out.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        The LLE weights W.
    """
    kernel, _ = _kernel_of(estimator, X)
    settings = graph_settings(estimator.graph, defaults)
    return local_graph(X, kernel, estimator.n_neighbors, **settings).W


def local_graph(
    X: Features, kernel: Kernel | None, n_neighbors: int, *, neighbors: str, reg_policy: str
) -> NeighborGraph:
    """Build the graph of near rows in X, or in the feature space of a precomputed kernel.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features, or values of a precomputed kernel.
    kernel : Kernel or None
        The kernel.
    n_neighbors, neighbors, reg_policy
        As in `lemll.LEMLL`, where the last two are settings of `graph`.

    Returns
    -------
    NeighborGraph
        The LLE weights W, and how the neighbours were found.
    """
    n_samples = X.shape[0]
    wanted = check_whole("n_neighbors", n_neighbors, least=1)
    if n_samples < 2:
        raise ValueError(
            "LEMLL needs at least 2 rows, because each is rebuilt from others; "
            f"got n_samples={n_samples}."
        )
    # A row cannot have more neighbours than there are other rows.
    wanted = min(wanted, n_samples - 1)
    # With a precomputed kernel the features are unknown, so distances come from the kernel.
    if kernel is not None and kernel.name == "precomputed":
        W = kernel_reconstruction_weights(X, wanted, reg_policy=reg_policy)
        return NeighborGraph(W, "exact", 1.0, 0, "")
    return neighbor_graph(X, wanted, neighbors=neighbors, reg_policy=reg_policy)


def check_fits(
    X: Features,
    n_labels: int,
    kernel: Kernel | None,
    *,
    kept_labels: int = 0,
    precision: str = "float64",
) -> None:
    """Refuse features whose squares overflow, and problems that do not fit into memory.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    n_labels : int
        Number of labels or outputs that are solved together.
    kernel : Kernel or None
        None for a linear model. A kernel checks its memory itself.
    kept_labels : int, default=0
        Number of all labels, if they are solved in blocks.
    precision : {"float64", "float32"}, default="float64"
        Precision of the search.
    """
    check_magnitude(X)
    if kernel is not None:
        return
    needed = fit_bytes(X, n_labels, kept_labels=kept_labels, precision=precision)
    remedy = "fit fewer rows, features or labels at a time, or use a machine with more memory"
    if 1 < kept_labels <= n_labels:
        remedy = (
            f"set label_block in solver_params below {n_labels} to solve fewer labels at a time, "
            f"or {remedy}"
        )
    if kept_labels and precision == "float64":
        remedy = f"use solver_params={{'precision': 'float32'}}, {remedy}"
    check_memory(needed, f"Fitting {X.shape[0]} rows with {n_labels} labels", remedy)


def fit_bytes(
    X: Features, n_labels: int, *, kept_labels: int = 0, precision: str = "float64"
) -> int:
    """Estimate the peak memory of a linear fit, without X, the 0/1 labels and the graph.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    n_labels : int
        Number of labels that are solved together.
    kept_labels : int, default=0
        Number of all labels, if they are solved in blocks.
    precision : {"float64", "float32"}, default="float64"
        Precision of the search.

    Returns
    -------
    int
        Bytes.
    """
    needed = solver_bytes(X, n_labels, precision=precision)
    if kept_labels > n_labels:
        # U and Theta of all labels stay in memory while a block is solved.
        needed += kept_labels * (np.dtype(precision).itemsize * X.shape[0] + 8 * X.shape[1])
    return needed


# What `kernel_params` may hold, with its defaults.
KERNEL_SETTINGS: SettingsView = {"gamma": "variance", "degree": 3, "coef0": 1.0}


# Rows that are not checked may have larger rounding errors than the checked rows.
ROUNDING_MARGIN = 2.0


def choose_kernel(
    kernel: KernelLike, params: SettingsView | None, X: Features, sample_weight: MatrixLike = None
) -> Kernel | None:
    """Return the kernel for the parameters of an estimator, or None for the linear kernel.

    Parameters
    ----------
    kernel : str or callable
        The parameter `kernel`.
    params : mapping or None
        The parameter `kernel_params`, with any of gamma, degree and coef0.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows. They determine the width if gamma is "variance".
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows. The solver checks them later.

    Returns
    -------
    Kernel or None
        The kernel.
    """
    settings = check_settings("kernel_params", params, KERNEL_SETTINGS)
    function = kernel if callable(kernel) else None
    if function is None and (not isinstance(kernel, str) or kernel not in KERNELS):
        raise ValueError(
            f"kernel={kernel!r} must be one of {', '.join(map(repr, KERNELS))} or a function of "
            "two arrays of rows."
        )
    if kernel == "linear":
        return None
    gamma = settings["gamma"]
    if isinstance(gamma, str):
        if gamma != "variance":
            raise ValueError(
                f"gamma={gamma!r} in kernel_params must be 'variance' or a number > 0."
            )
        known = kernel == "precomputed" or function is not None
        gamma = 1.0 if known else inverse_variance(X, sample_weight)
    centre = None
    if kernel in ("rbf", "poly", "cosine") and not is_sparse(X):
        rows = unit_rows(X) if kernel == "cosine" else X
        centre = rows.mean(axis=0, dtype=np.float64)
    return Kernel(
        name="callable" if function else str(kernel),
        gamma=check_number("gamma in kernel_params", gamma, above=0),
        degree=check_whole("degree in kernel_params", settings["degree"], least=1),
        coef0=check_number("coef0 in kernel_params", settings["coef0"]),
        function=function,
        centre=centre,
    )


def settle_optimality(
    name: str,
    kernel: Kernel | None,
    X: Features,
    solution: Any,
    *,
    tol: float,
    scale: str,
    curvature: float = 1.0,
    slope: float = 0.0,
    weights: MatrixLike = None,
) -> float:
    """Return the relative gap of a solution with the rounding of the kernel; warn above `tol`.

    The certificate of a solver holds for the rounded kernel matrix that it was given. With exact
    kernel values, the outputs of the training rows change by ``e_i``. To first order, the gap to
    the same dual point is then at most
    ``(sqrt(gap) + sqrt(curvature sum_i |e_i|^2))^2 + slope sum_ij |e_ij|``. The objective F that
    was computed differs from the exact one by at most ``3 sqrt(F sum_i |e_i|^2)``: the loss by
    its gradient, whose square is at most 4 F, and the penalty by half as much.

    Parameters
    ----------
    name : str
        Name of the method, for the warning.
    kernel : Kernel or None
        The kernel. None for the linear kernel, whose certificate is not changed.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows.
    solution : object
        A solution of a solver, with `coef`, `objective`, `optimality`, `n_iter` and `status`.
    tol : float
        The requested gap.
    scale : str
        For the warning: what the user should bring closer to 1 if rounding stopped the solver.
    curvature : float, default=1.0
        Half the largest second derivative of the loss of a row.
    slope : float, default=0.0
        The largest slope of the part of the loss that is not smooth.
    weights : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    float
        At least `solution.optimality`.
    """
    if not solution.converged:
        warn_gap(name, solution, tol, scale=scale)
    claimed = float(solution.optimality)
    if kernel is None or not np.isfinite(claimed):
        return claimed
    squares = ROUNDING_MARGIN**2 * kernel.rounding(X, solution.coef, weights)
    objective = max(abs(solution.objective), np.finfo(np.float64).tiny)
    gap = (np.sqrt(claimed) + np.sqrt(curvature * squares / objective)) ** 2
    gap += 3 * np.sqrt(squares / objective)
    # By the inequality of Cauchy and Schwarz, the sum of all |e_ij| is at most the root of their
    # number times the sum of their squares. There are as many outputs as coefficients.
    gap += slope * np.sqrt(solution.coef.size * squares) / objective
    if solution.converged and gap > tol:
        warn_rounded_kernel(name, claimed=claimed, optimality=gap, tol=tol)
    return float(gap)


def store_solution(
    estimator: Estimator, kernel: Kernel | None, X: Features, solution: Any, **options: Any
) -> None:
    """Store a model with its certificate; `options` are those of `settle_optimality`."""
    name = type(estimator).__name__
    estimator.optimality_ = settle_optimality(name, kernel, X, solution, **options)
    store_model(estimator, kernel, X, solution.coef, solution.intercept)
    estimator.objective_, estimator.n_iter_ = solution.objective, solution.n_iter


def store_model(
    estimator: Estimator, kernel: Any, X: Features, coef: FloatArray, intercept: FloatArray
) -> None:
    """Store a model in its estimator: the weights, or the coefficients and their rows.

    Parameters
    ----------
    estimator : estimator
        This function sets `intercept_`, and either `coef_` or `dual_coef_`, `X_fit_` and
        `kernel_`.
    kernel : Kernel, FirstOrderKernel or None
        The kernel, or the features that replace it.
    X : ndarray or csr_array of shape (n_samples, n_features)
        The rows with which a new row is compared: training rows or landmarks.
    coef : ndarray of shape (n_labels, n_features) or (n_labels, n_samples)
        Coefficients of the features or of the samples.
    intercept : ndarray of shape (n_labels,)
        b.
    """
    # A second fit with another kernel must not leave attributes of the first one.
    for name in ("coef_", "dual_coef_", "X_fit_", "kernel_"):
        estimator.__dict__.pop(name, None)
    estimator.intercept_ = intercept
    if kernel is None:
        estimator.coef_ = coef
        return
    estimator.dual_coef_ = coef
    estimator.kernel_ = kernel
    if kernel.name != "precomputed":
        # Copy the rows: if the caller changes X later, the model must not change.
        estimator.X_fit_ = X.copy()


def model_outputs(estimator: Estimator, X: Features) -> FloatArray:
    """Return the outputs of the model of a fitted estimator for validated rows.

    Parameters
    ----------
    estimator : estimator
        It has the attributes that `store_model` sets.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        ``Theta x + b``, or ``sum_j a_j k(x_j, x) + b``.
    """
    kernel = getattr(estimator, "kernel_", None)
    if kernel is None:
        return np.asarray(X @ estimator.coef_.T + estimator.intercept_, dtype=np.float64)
    outputs = np.tile(estimator.intercept_, (X.shape[0], 1))
    others = getattr(estimator, "X_fit_", None)
    for part in row_parts(X.shape[0], estimator.dual_coef_.shape[1]):
        outputs[part] += kernel.values(X[part], others) @ estimator.dual_coef_.T
    return outputs
