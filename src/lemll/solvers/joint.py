"""The fast solver of Eq. (9): preconditioned conjugate gradients over all unknowns together.

Algorithm 1 of the paper alternates between the model and the labels. It factorises an n x n matrix
for every reweighting of every round. Eq. (9) is jointly convex, so the alternation is not needed.
Here ``U``, ``Theta`` and ``b`` move together along conjugate directions. The preconditioner uses
the coupling between them (see `lemll.solvers.search`), and the step along each direction is
exact. One iteration multiplies once by X, once by X' and twice by I - W.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lemll._types import (
    Array,
    BoolArray,
    Features,
    FloatArray,
    LabelArray,
    MatrixLike,
    Settings,
    SparseMatrix,
)
from lemll._validation import is_sparse
from lemll.solvers import linear as centred
from lemll.solvers import linear as models
from lemll.solvers.certificate import (
    CERTIFICATE_BLOCK_BYTES,
    DualityGap,
    Weights,
    smallest_objective,
)
from lemll.solvers.equation9 import (
    LARGE_LABEL_BYTES,
    Callback,
    Data,
    LemllPoint,
    LemllSolution,
    Precision,
    check_arrays,
    check_cell_weight,
    check_precision,
    check_size,
    check_start,
    check_stopping,
    check_weights,
    duality_gap,
    solution_at,
)
from lemll.solvers.search import JointSearch, Operators, Point
from lemll.topology import ReconstructionOperator

# If rounding stops a float64 search, it recomputes its products and starts again from the same
# point. This is the largest number of runs.
RECHECKS = 2


# An entry of a sparse array: its value and a 32-bit index.
ENTRY = 12
# Bytes per row: I - W, its transpose and its scaled transpose with ten neighbours per row, and
# twenty vectors of norms and weights.
ROW = 3 * 11 * ENTRY + 20 * 8
# Largest number of n_samples x n_labels arrays that exist at the same time in each phase.
LABELS_FACTORISING, LABELS_SEARCHING, LABELS_CERTIFYING = 6, 20, 14
# Bytes per row that a search in float32 adds: its own I - W, transpose and scaled transpose.
ROW_SINGLE = 3 * 11 * (ENTRY - 4)
# Bytes per cell of Y of a small problem in float32, at the certificate.
CELL_SMALL_SINGLE = 120
# Number of n_features x n_labels arrays.
WEIGHTS = 8
# Number of blocks of a kernel that exist at the same time while it is computed and checked.
WORKING_BLOCKS = 2
# A margin for small arrays, and for differences between SciPy releases.
MARGIN = 1.1


def solve_joint(
    X: Features,
    Y: MatrixLike,
    W: SparseMatrix,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float = 0.1,
    tol: float = 1e-4,
    max_iter: int = 1000,
    U0: Array | None = None,
    precision: Precision = "float64",
    callback: Callback | None = None,
    cell_weight: MatrixLike = None,
) -> LemllSolution:
    """Minimise Eq. (9) over the numerical labels and the model together, up to a certified gap.

    Minimises ``sum_i L(|u_i - Theta x_i - b|) + alpha |Theta|_F^2 + beta |U - Y|_F^2
    + gamma tr(U' M U)`` with ``L(r) = max(0, r - epsilon)^2`` and ``M = (I-W)'(I-W)``.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), or CentredKernel
        Features, float64 or float32. Sparse features are converted to dense only in blocks of
        limited size. With a kernel, the rows of `coef` hold one coefficient per sample.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1. For a column of zeros, U, Theta and b are exactly zero.
    W : csr_array of shape (n_samples, n_samples)
        Rebuilding weights (Eq. 6). Each row sums to one.
    alpha, beta, gamma : float
        Weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)``. Alpha and beta must be
        positive.
    epsilon : float, default=0.1
        Radius of the tube.
    tol : float, default=1e-4
        The solver stops when the certified relative gap is at most this.
    max_iter : int, default=1000
        Largest number of iterations.
    U0 : ndarray of shape (n_samples, n_labels), optional
        Initial numerical labels. By default Y. The optimum does not depend on them.
    precision : {"float64", "float32"}, default="float64"
        Precision of the iterates. The certificate is always computed in float64. If float32 cannot
        reach `tol`, the last iterations also use float64.
    callback : callable, optional
        Called with a `Progress` after each iteration.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        Weights c >= 0 of the cells of Y; by default 1. They change the third term to ``beta
        sum_ij c_ij (U_ij - Y_ij)^2``. Where c is 0, Y is ignored. Each label needs a positive
        weight.

    Returns
    -------
    LemllSolution
        The minimiser. ``optimality`` is its certified relative gap.

    See Also
    --------
    lemll.lab.reference.solve_reference : Algorithm 1 of the paper.
    lemll.solvers.equation9.duality_gap : the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.solvers import solve_joint
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Y = np.array([[-1.0], [1.0], [1.0]])
    >>> W = sparse.csr_array(np.array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]))
    >>> solution = solve_joint(X, Y, W, alpha=1.0, beta=1.0, gamma=1.0, tol=1e-8)
    >>> solution.converged, solution.optimality <= 1e-8
    (True, True)
    >>> solution.numerical_labels.shape, solution.coef.shape, solution.intercept.shape
    ((3, 1), (1, 1), (1,))
    """
    return JointProblem(X, Y, W, cell_weight).solve(
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        epsilon=epsilon,
        tol=tol,
        max_iter=max_iter,
        U0=U0,
        precision=precision,
        callback=callback,
    )


class JointProblem:
    """The data of Eq. (9), prepared once and then solved for one or many parameters.

    Parameters
    ----------
    X, Y, W, cell_weight : arrays
        As in `solve_joint`. They are never changed.
    """

    def __init__(
        self, X: Features, Y: MatrixLike, W: SparseMatrix, cell_weight: MatrixLike = None
    ) -> None:
        self.cell_weight = None
        if cell_weight is not None:
            self.cell_weight = check_cell_weight(cell_weight, np.shape(Y))
            Y = np.where(self.cell_weight > 0, Y, 0.0)
        self.X, self.Y, W = check_arrays(X, Y, W)
        self.M = ReconstructionOperator(W)
        self.data = Data(self.X, self.Y, self.M, self.cell_weight)
        self._operators: dict[Precision, Operators] = {}

    def operators(self, precision: Precision) -> Operators:
        """Return the products with X and M in the given precision; built at the first call."""
        if precision not in self._operators:
            check_size(self.X, "X", precision)
            self._operators[precision] = Operators(
                self.X, self.Y, self.M, precision, self.cell_weight
            )
        return self._operators[precision]

    def solve(
        self,
        *,
        alpha: float,
        beta: float,
        gamma: float,
        epsilon: float = 0.1,
        tol: float = 1e-4,
        max_iter: int = 1000,
        U0: Array | None = None,
        start: LemllSolution | None = None,
        precision: Precision = "float64",
        callback: Callback | None = None,
    ) -> LemllSolution:
        """Minimise Eq. (9) for these parameters.

        Parameters
        ----------
        alpha, beta, gamma, epsilon, tol, max_iter, U0, precision, callback
            As in `solve_joint`.
        start : LemllSolution, optional
            A solution for other parameters, used as the initial point instead of `U0`.

        Returns
        -------
        LemllSolution
            The minimiser.
        """
        check_precision(precision)
        check_stopping(tol=tol, max_iter=max_iter)
        weights = Weights(alpha, beta, gamma, epsilon)
        check_weights(**weights._asdict(), precision=precision)
        search = JointSearch(self.data, weights, tol, max_iter, callback)
        unknowns, dual_coef = self.start(U0), None
        if start is not None:
            check_start(start.numerical_labels, self.Y, name="start.numerical_labels")
            unknowns, dual_coef = start.point, start.dual_coef
        # float32 is faster but may stall above `tol`; then float64 continues from its point.
        attempts: list[Precision] = ["float64"] * RECHECKS
        if precision == "float32":
            attempts.insert(0, "float32")
        for attempt in attempts:
            operators = self.operators(attempt)
            operators.model.expect(1)
            point = Point(operators, weights, unknowns, dual_coef)
            status = search.run(point, warm=start is not None)
            unknowns, dual_coef = point.unknowns(), point.dual_coef()
            if status == "max_iter":
                # The search stopped between two certificates, so its dual point may be old.
                point.certified_gap()
            half_dual = point.half_dual
            certificate = self.data.proven_gap(unknowns, weights, half_dual)
            # The search updates its products by addition, and rounding errors accumulate. So the
            # certificate that decides is computed from scratch.
            if certificate.relative <= tol:
                status = "converged"
            elif status == "converged":
                status = "stalled"
            if status != "stalled":
                break
        solution = solution_at(unknowns, certificate, search.trace, status, search.n_linear_solves)
        return replace(solution, dual_coef=dual_coef, half_dual=half_dual)

    def start(self, U0: Array | None = None) -> LemllPoint:
        """Return the initial point: labels Y or `U0`, and a constant model."""
        # U = Y is optimal for a large beta. For Theta = 0, the mean of U is the best intercept
        # without a tube.
        U = self.Y if U0 is None else check_start(U0, self.Y)
        if U0 is None and self.cell_weight is not None:
            # The mean of the observed cells of a label is the best guess of the others.
            means = (self.cell_weight * self.Y).sum(axis=0) / self.cell_weight.sum(axis=0)
            U = np.where(self.cell_weight > 0, self.Y, means)
        return LemllPoint(U, np.zeros((U.shape[1], self.X.shape[1])), U.mean(axis=0))


def code_logical(
    Y: LabelArray | FloatArray, cell_weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Code logical labels as -1/+1, and find the constant ones.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1, or degrees between them.
    cell_weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells.

    Returns
    -------
    coded : ndarray of shape (n_samples, n_labels)
        -1 or +1, or between them for degrees; 0 in cells without a weight.
    constant : ndarray of shape (n_labels,)
        The value of a label that is the same in all observed cells, 0 for a label without such a
        cell, and NaN for all other labels.
    """
    coded = 2.0 * Y.astype(np.float64) - 1.0
    if cell_weight is None:
        low, high = coded.min(axis=0), coded.max(axis=0)
    else:
        coded = np.where(cell_weight > 0, coded, 0.0)
        low = np.where(cell_weight > 0, coded, np.inf).min(axis=0)
        high = np.where(cell_weight > 0, coded, -np.inf).max(axis=0)
    constant = np.where(low == high, low, np.nan)
    return coded, np.where(low > high, 0.0, constant)


def _whole_dual(
    solution: LemllSolution | None, varies: BoolArray, shape: tuple[int, ...]
) -> FloatArray:
    """Return the dual point of all labels. For constant labels it is 0, which is optimal."""
    half_dual = np.zeros(shape)
    if solution is not None and solution.half_dual is not None:
        half_dual[:, varies] = solution.half_dual
    return half_dual


def constant_point(coded: FloatArray, constant: FloatArray, n_features: int) -> LemllPoint:
    """Return the point that is optimal for constant labels; the others are to be filled in."""
    # For a constant label, U = c in all rows, Theta = 0 and b = c make all terms zero.
    values = np.where(np.isnan(constant), 0.0, constant)
    U = np.where(np.isnan(constant), coded, values)
    return LemllPoint(U, np.zeros((coded.shape[1], n_features)), values.copy())


def solve_logical(
    X: Features,
    Y: LabelArray | FloatArray,
    W: SparseMatrix,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float = 0.1,
    tol: float = 1e-4,
    cell_weight: FloatArray | None = None,
    **options: Any,
) -> LemllSolution:
    """Minimise Eq. (9) for logical labels 0/1.

    The labels are converted to -1/+1, and constant labels are solved without the solver. If a
    label has the same value c in every row, then U = c, Theta = 0 and b = c make all its terms
    zero, independent of the other labels. The solver receives the other labels, and the constant
    ones are added afterwards. The virtual label of the paper is such a label with the value 0. Its
    outputs are exactly 0, so "greater than the virtual label" means "positive".

    Parameters
    ----------
    X, W : arrays
        As in `lemll.solvers.solve_joint`.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1, or degrees between them.
    alpha, beta, gamma, epsilon, tol : float
        As in `lemll.solvers.solve_joint`.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1. A label without any weight is a label with
        the value 0, so its outputs are exactly 0.
    **options
        Options of `lemll.solvers.solve_joint`: max_iter, precision, callback.

    Returns
    -------
    LemllSolution
        The solution for all labels. Its certificate also covers all labels.
    """
    coded, constant = code_logical(Y, cell_weight)
    weights: Settings = {"alpha": alpha, "beta": beta, "gamma": gamma, "epsilon": epsilon}
    varies = np.isnan(constant)
    if varies.all():
        return solve_joint(X, coded, W, **weights, tol=tol, cell_weight=cell_weight, **options)
    point = constant_point(coded, constant, X.shape[1])
    solution = None
    if varies.any():
        part = np.ascontiguousarray(coded[:, varies])
        of_part = None if cell_weight is None else np.ascontiguousarray(cell_weight[:, varies])
        solution = solve_joint(X, part, W, **weights, tol=tol, cell_weight=of_part, **options)
        point.numerical_labels[:, varies] = solution.numerical_labels
        point.coef[varies] = solution.coef
        point.intercept[varies] = solution.intercept
    if cell_weight is not None:
        # A label that nobody observed is 0 in all terms. The certificate leaves it out, because
        # its dual point would have to be zero everywhere.
        seen = (cell_weight > 0).any(axis=0)
        part_of_point = LemllPoint(
            point.numerical_labels[:, seen], point.coef[seen], point.intercept[seen]
        )
        certificate = duality_gap(
            X,
            coded[:, seen],
            W,
            part_of_point,
            **weights,
            half_dual=_whole_dual(solution, varies, coded.shape)[:, seen],
            cell_weight=cell_weight[:, seen],
        )
    else:
        certificate = duality_gap(X, coded, W, point, **weights)
        if certificate.relative > tol and (solution is None or solution.converged):
            # If the rows of W sum to one only roughly, for example in float32, tr(U'MU) is not
            # zero for constant labels. Then solve for all labels together.
            return solve_joint(X, coded, W, **weights, tol=tol, **options)
    if solution is None:
        if certificate.objective <= smallest_objective(coded, beta):
            # The remaining objective is only the rounding error of the row sums of W.
            certificate = DualityGap(0.0, 0.0, 0.0)
        return solution_at(point, certificate, [certificate.objective], "converged", 0)
    return replace(
        solution,
        coef=point.coef,
        intercept=point.intercept,
        numerical_labels=point.numerical_labels,
        objective=certificate.objective,
        optimality=certificate.relative,
        # The gap of all labels decides, and not that of the labels that vary.
        status="stalled" if solution.converged and certificate.relative > tol else solution.status,
    )


def solver_bytes(X: Features, n_labels: int, *, precision: str = "float64") -> int:
    """Estimate the peak memory that `solve_joint` allocates, without its arguments.

    The estimate is slightly too large on purpose. It counts one copy of the features (centred, or
    sparse with the transpose), the graph with ten neighbours per row, and the arrays of labels. If
    a matrix is factorised, it also counts two square matrices whose order is the smaller of
    n_samples and n_features. If rounding stops a search in float32, float64 finishes it, which
    needs about twice as much.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features. Only their shape and the number of their entries are used.
    n_labels : int
        Number of columns of Y.
    precision : {"float64", "float32"}, default="float64"
        Precision of the search.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.joint import solver_bytes
    >>> solver_bytes(np.empty((10_000, 100)), n_labels=20) < 80e6
    True
    """
    check_precision(precision)
    n_samples, n_features = (int(size) for size in X.shape)
    order = min(n_samples, n_features)
    square = 8 * order**2 if order <= models.MAX_DENSE_ORDER else 0
    single = precision == "float32"
    real = 4 if single else 8
    labels, weights = 8 * n_samples * n_labels, 8 * n_features * n_labels
    dense = real * n_samples * n_features
    row = ROW
    searching, certifying = LABELS_SEARCHING * labels, LABELS_CERTIFYING * labels
    if single:
        row += ROW_SINGLE
        # One float64 copy of Y beside the search. The certificate of a small problem does not go
        # by blocks, so float64 arrays of all rows come on top.
        searching = searching // 2 + labels
        certifying = searching if labels > LARGE_LABEL_BYTES else CELL_SMALL_SINGLE * labels // 8
    if is_sparse(X):
        features = 2 * (ENTRY if real == 8 else ENTRY - 4) * int(X.nnz)
        block = min(8 * n_samples * n_features, centred.BLOCK_BYTES)
        # A block is dense in float64 and, for a matrix by features, perhaps rounded to float32.
        building = block * (1.0 if n_samples <= n_features else 1.5) if square else 0.0
        converting = 8 * int(X.nnz)
    else:
        features = dense
        building, converting = dense / 2, min(dense, CERTIFICATE_BLOCK_BYTES)
    peak = max(
        2 * square + building,
        2 * square + LABELS_FACTORISING * labels,
        2 * square + searching + WEIGHTS * weights,
        2 * square + certifying + WEIGHTS * weights + converting,
    )
    return int(MARGIN * (features + row * n_samples + peak))


def kernel_bytes(n_samples: int, n_labels: int) -> int:
    """Estimate the peak of what a fit with a kernel allocates in float64, beside its arguments.

    The estimate counts the kernel and its factor, each of order n_samples, the graph, and the
    arrays of labels.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    n_labels : int
        Number of columns of Y.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> from lemll.solvers.joint import kernel_bytes
    >>> round(kernel_bytes(10_000, 10) / 1e9, 1)
    1.8
    """
    square, labels = 8 * n_samples**2, 8 * n_samples * n_labels
    block = min(square, CERTIFICATE_BLOCK_BYTES)
    # The kernel is computed block by block and then factorised, so only one of the two phases
    # needs memory at a time. The model also has one row per sample.
    peak = square + max(WORKING_BLOCKS * block, square + (LABELS_SEARCHING + WEIGHTS) * labels)
    return int(MARGIN * (ROW * n_samples + peak))
