"""Fit Eq. (9) to validated arrays, for the LEMLL classifier and the LEMLL enhancer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lemll._types import Estimator, Features, FloatArray, LabelArray, Settings
from lemll._validation import check_magnitude, check_memory, check_number, check_whole
from lemll.fitting.approximations import MappedRows, approximate, kernel_excess
from lemll.fitting.kernels import Kernel, choose_kernel, store_model
from lemll.fitting.problem import LabelProblem, label_blocks
from lemll.objective import duality_gap
from lemll.solvers import LemllSolution, solver_bytes
from lemll.topology import (
    NeighborGraph,
    check_graph,
    check_rows,
    kernel_reconstruction_weights,
    load_graph,
    neighbor_graph,
)

__all__ = ["check_fits", "fit_bytes", "fit_equation9", "local_graph", "make_graph"]


def fit_equation9(
    estimator: Estimator,
    X: Features,
    Y: LabelArray | FloatArray,
    cell_weight: FloatArray | None = None,
) -> FloatArray:
    """Minimise Eq. (9) with the parameters of an estimator and store the solution in it.

    Parameters
    ----------
    estimator : estimator
        It has alpha, beta, gamma, epsilon, n_neighbors, reg_policy, graph, tol, max_iter,
        precision, verbose and the parameters of the kernel. It may have those for many rows:
        neighbors, approximation, n_components, label_block and random_state. This function sets
        coef_ (or dual_coef_), intercept_, numerical_labels_, objective_, objective_trace_,
        optimality_, n_iter_ and neighbor_search_; with Nystroem features also kernel_gap_.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1, or degrees in [0, 1].
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The numerical labels.
    """
    kernel = choose_kernel(estimator, X)
    options = _checked_options(estimator)
    blocks = label_blocks(getattr(estimator, "label_block", None), Y.shape[1])
    widest = max(block.stop - block.start for block in blocks)
    mapped = None
    estimator.__dict__.pop("kernel_gap_", None)
    if getattr(estimator, "approximation", None) is not None:
        seed = check_whole("random_state", estimator.random_state, least=0)
        mapped = approximate(
            kernel,
            X,
            approximation=estimator.approximation,
            n_components=estimator.n_components,
            n_labels=widest,
            seed=seed,
            precision=estimator.precision,
        )
    features = X if mapped is None else mapped.features
    linear = kernel is None or mapped is not None
    check_fits(features, widest, None if linear else kernel, kept_labels=Y.shape[1],
               precision=estimator.precision)  # fmt: skip
    if not linear:
        assert kernel is not None
        features = kernel.of_training(X, widest)
    W, estimator.neighbor_search_ = _graph_for(estimator, X, kernel)
    problem = LabelProblem(X, features, W, None if linear else kernel, options, estimator.verbose)
    solution = problem.solve(Y, cell_weight, blocks)
    if mapped is None:
        store_model(estimator, kernel, X, solution.coef, solution.intercept)
    else:
        if mapped.landmarks is not None and len(blocks) == 1 and cell_weight is None:
            estimator.kernel_gap_ = _gap_to_kernel(problem, mapped, Y, solution)
        coef = mapped.coefficients(solution.coef)
        store_model(estimator, mapped.kernel, mapped.landmarks, coef, solution.intercept)
    estimator.numerical_labels_ = solution.numerical_labels
    estimator.objective_ = solution.objective
    estimator.objective_trace_ = solution.objective_trace
    estimator.optimality_ = solution.optimality
    estimator.n_iter_ = solution.n_iter
    return solution.numerical_labels


def _checked_options(estimator: Estimator) -> Settings:
    """Return the options of the solver, checked."""
    if estimator.precision not in ("float64", "float32"):
        raise ValueError(f"precision={estimator.precision!r} must be 'float64' or 'float32'.")
    return {
        "alpha": check_number("alpha", estimator.alpha, above=0),
        "beta": check_number("beta", estimator.beta, above=0),
        "gamma": check_number("gamma", estimator.gamma, above=0, inclusive=True),
        "epsilon": check_number("epsilon", estimator.epsilon, above=0, inclusive=True),
        "tol": check_number("tol", estimator.tol, above=0),
        "max_iter": check_whole("max_iter", estimator.max_iter, least=1),
        "precision": estimator.precision,
    }


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
    estimator: Estimator, X: Features, kernel: Kernel | None
) -> tuple[Features, Settings]:
    """Return the graph of an estimator, and a record of how its neighbours were found."""
    graph = estimator.graph
    if isinstance(graph, (str, Path)):
        graph = load_graph(graph)
    if isinstance(graph, NeighborGraph):
        check_rows(graph, X)
    elif graph is not None:
        return check_graph(graph, X.shape[0]), {"search": "given"}
    else:
        neighbors = getattr(estimator, "neighbors", "exact")
        wanted = estimator.n_neighbors, estimator.reg_policy
        graph = local_graph(X, kernel, *wanted, neighbors=neighbors)
    return graph.W, {
        "search": graph.search,
        "recall": graph.recall,
        "checked_rows": graph.checked_rows,
    }


def make_graph(estimator: Estimator, X: Features) -> Features:
    """Build the graph for the parameters of an estimator.

    Parameters
    ----------
    estimator : estimator
        It has n_neighbors, reg_policy and the parameters of the kernel.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        The LLE weights W.
    """
    kernel = choose_kernel(estimator, X)
    return local_graph(X, kernel, estimator.n_neighbors, estimator.reg_policy).W


def local_graph(
    X: Features,
    kernel: Kernel | None,
    n_neighbors: int,
    reg_policy: str,
    *,
    neighbors: str = "exact",
) -> NeighborGraph:
    """Build the graph of near rows in X, or in the feature space of a precomputed kernel.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features, or values of a precomputed kernel.
    kernel : Kernel or None
        The kernel.
    n_neighbors, reg_policy, neighbors
        As in `lemll.LEMLL`.

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
        remedy = f"set label_block below {n_labels} to solve fewer labels at a time, or {remedy}"
    if kept_labels and precision == "float64":
        remedy = f"use precision='float32', {remedy}"
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
