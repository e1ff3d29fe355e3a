"""Label propagation: observed labels spread over the graph of similar rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll._types import Features, FloatArray, IndexArray, LabelArray
from lemll._validation import check_magnitude, check_number, check_whole, warn_caller
from lemll.fitting.scaling import fit_scaling
from lemll.predictors.calibrated import ProbabilityClassifier, TiesAreRelevant, log_odds
from lemll.rivals.mlknn import nearest_training_rows, neighbour_graph
from lemll.topology.neighbors import nearest_neighbors


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothingSolution:
    """The smoothed labels.

    Attributes
    ----------
    labels : ndarray of shape (n_samples, n_labels)
        F.
    gradient_norm : float
        Length of the gradient of each label, divided by its length at F = 0; the largest of them.
        It is computed for `labels`, not carried along.
    n_iter : int
        Number of steps of conjugate gradients.
    """

    labels: FloatArray
    gradient_norm: float
    n_iter: int


def solve_smoothing(
    graph: Features,
    target: FloatArray,
    weight: FloatArray,
    *,
    smoothness: float = 1.0,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> SmoothingSolution:
    r"""Minimise the distance from given labels plus the roughness on a graph.

    It minimises, for each label j,

    .. math::
        \sum_iw_{ij}(F_{ij}-t_{ij})^2+\frac\mu2\sum_{ik}A_{ik}(F_{ij}-F_{kj})^2

    by conjugate gradients, for all labels together. The system of each label has its own diagonal.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_samples)
        A, symmetric and not negative.
    target : ndarray of shape (n_samples, n_labels)
        t.
    weight : ndarray of shape (n_samples, n_labels)
        w, > 0.
    smoothness : float, default=1.0
        :math:`\mu\ge0`.
    tol : float, default=1e-6
        The solver stops when the gradients of all labels have at most this relative length.
    max_iter : int, default=1000
        Largest number of steps.

    Returns
    -------
    SmoothingSolution
        The minimiser. Its entries lie between the smallest and the largest target of the label.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.rivals.propagation import solve_smoothing
    >>> chain = sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> target, weight = np.array([[0.0], [0.0], [1.0]]), np.array([[1.0], [1e-9], [1.0]])
    >>> solve_smoothing(chain, target, weight).labels.ravel().round(3)
    array([0.25, 0.5 , 0.75])
    """
    degree = np.asarray(graph.sum(axis=1)).ravel()
    laplacian = smoothness * (sparse.diags_array(degree) - graph).tocsr()
    # The diagonal is a good preconditioner: the weights of the cells differ much, and the rest of
    # the matrix has rows of similar size.
    inverse = 1 / (weight + smoothness * degree[:, None])
    right = weight * target
    length = np.sqrt(_inner(right, right))
    length[length == 0] = 1
    # Start at the mean of each label. It has no roughness, and it is the solution in parts of the
    # graph that only a tiny weight ties to their targets; from 0 they would not be reached, because
    # their share of the gradient is below the tolerance.
    F = np.tile(right.sum(axis=0) / weight.sum(axis=0), (len(right), 1))
    residual = right - weight * F
    step = inverse * residual
    along = _inner(residual, step)
    for n_iter in range(max_iter + 1):
        if _relative_norm(residual, length) <= tol or n_iter == max_iter:
            break
        image = weight * step + laplacian @ step
        bend = _inner(step, image)
        # A label that is solved exactly has no direction left.
        size = np.divide(along, bend, out=np.zeros_like(bend), where=bend > 0)
        F += size * step
        residual -= size * image
        scaled = inverse * residual
        fresh = _inner(residual, scaled)
        step *= np.divide(fresh, along, out=np.zeros_like(along), where=along > 0)
        step += scaled
        along = fresh
    # The exact minimiser is a mean of the targets; only rounding leaves their range.
    F = np.clip(F, target.min(axis=0, initial=np.inf), target.max(axis=0, initial=-np.inf))
    residual = right - weight * F - laplacian @ F
    return SmoothingSolution(
        labels=F, gradient_norm=_relative_norm(residual, length), n_iter=n_iter
    )


def _relative_norm(residual: FloatArray, length: FloatArray) -> float:
    return float((np.sqrt(_inner(residual, residual)) / length).max(initial=0))


def _inner(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", first, second))


@dataclass(eq=False, repr=False)
class LabelPropagation(TiesAreRelevant, ProbabilityClassifier):
    r"""Labels of similar rows are similar: spread the observed ones over a graph of the rows.

    The method is made for labels that are mostly unknown. Rows without any observed label take
    part, because labels pass through them. It minimises

    .. math::
        \sum_{ij}w_{ij}(F_{ij}-y_{ij})^2+\frac\mu2\sum_{ikj}A_{ik}(F_{ij}-F_{kj})^2
        +\lambda\sum_{ij}(F_{ij}-p_j)^2

    over F, where :math:`w_{ij}` is 1 in observed cells (or the confidence) and 0 in the others,
    :math:`p_j` is the frequency of the label in its observed cells, and A is the symmetric graph
    of the k nearest rows: :math:`A_{ik}` is 1/(2k) for each of the two rows that has the other
    one among its neighbours. This is the harmonic function of [1]_ with soft labels. The last
    term makes the minimum unique; it decides only where no observed label is near. The probability
    of a label in a new row is the mean of F over its k nearest training rows, and a label is
    predicted if it is at least 1/2.

    Parameters
    ----------
    n_neighbors : int, default=10
        k. If there are fewer other rows, all of them are used.
    smoothness : float, default=1.0
        :math:`\mu\ge0`. With 0, rows do not exchange labels before the prediction.
    prior : float, default=0.01
        :math:`\lambda>0`, from 1e-6: the weight of the frequency of the label.
    scale : {"none", "auto", "standard", "maxabs"}, default="none"
        Scaling of the columns, as in :class:`LEMLL`.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its log-odds reach its threshold. "zero" uses 0 for all labels.
        "f1" and "hamming" choose one threshold per label: the one with the best F1, or with the
        most correct decisions. To choose it, 5-fold cross-validation scores every training row
        with a model that was not fitted on that row.
    tol : float, default=1e-6
        The solver stops when the relative length of the gradient is at most this.
    max_iter : int, default=1000
        Largest number of steps of conjugate gradients.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        F, between 0 and 1: how probable each label is in each training row.
    completed_labels_ : ndarray of shape (n_samples, n_labels), int8
        The observed labels, and in unknown cells whether F is at least 1/2.
    gradient_norm_ : float
        Relative length of the gradient at the end.
    n_iter_ : int
        Number of steps.
    n_neighbors_ : int
        Number of neighbours used.
    X_fit_ : ndarray or csr_array
        The training rows, scaled.
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.BinaryRelevance`.

    See Also
    --------
    lemll.rivals.LabelPropagationEnhancer : The first stage of RELIAB, for complete labels.
    lemll.solvers.solve_smoothing : The solver.

    References
    ----------
    .. [1] X. Zhu, Z. Ghahramani and J. Lafferty, "Semi-supervised learning using Gaussian fields
       and harmonic functions", International Conference on Machine Learning, 2003.

    Examples
    --------
    >>> from lemll.rivals import LabelPropagation
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> Y = digits.Y[:900].astype(float)
    >>> Y[100:] = float("nan")  # only the first 100 rows have tags
    >>> model = LabelPropagation().fit(digits.X[:900], Y)
    >>> float((model.completed_labels_ == digits.Y[:900]).mean().round(2))
    0.87
    """

    n_neighbors: int = 10
    smoothness: float = 1.0
    _: KW_ONLY
    prior: float = 0.01
    scale: str = "none"
    tol: float = 1e-6
    max_iter: int = 1000

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        weight = np.ones(Y.shape) if weight is None else weight
        prior = check_number("prior", self.prior, above=0)
        if prior < 1e-6:
            raise ValueError(
                f"prior must be at least 1e-06, got {prior!r}; below that, labels of rows far from "
                "all observed labels are rounding errors."
            )
        wanted = check_whole("n_neighbors", self.n_neighbors, least=1)
        n_samples = X.shape[0]
        if n_samples < 2:
            raise ValueError(
                f"LabelPropagation needs a row and a neighbour of it, got n_samples={n_samples}; "
                "add rows."
            )
        check_magnitude(X)
        check_number("smoothness", self.smoothness, above=0, inclusive=True)
        check_number("tol", self.tol, above=0)
        check_whole("max_iter", self.max_iter, least=1)
        self._scaling: Callable[[Features], Features] = fit_scaling(self.scale, X)
        self.X_fit_ = self._scaling(X).copy()
        self.n_neighbors_ = min(wanted, n_samples - 1)
        near = nearest_neighbors(self.X_fit_, self.n_neighbors_)
        observed = np.where(weight > 0, Y, 0)
        total = weight.sum(axis=0)
        frequency = np.divide(
            (weight * observed).sum(axis=0), total, out=np.zeros_like(total), where=total > 0
        )
        # The last term of the objective is a second label of each cell; join it with the first.
        joined = weight + prior
        solution = solve_smoothing(
            _graph(near),
            (weight * observed + prior * frequency) / joined,
            joined,
            smoothness=self.smoothness,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self.numerical_labels_ = solution.labels
        self.gradient_norm_, self.n_iter_ = solution.gradient_norm, solution.n_iter
        self.completed_labels_ = np.where(weight > 0, Y, solution.labels >= 0.5).astype(np.int8)
        if solution.gradient_norm > self.tol:
            warn_caller(
                f"LabelPropagation stopped after max_iter={self.max_iter} steps with a relative "
                f"gradient of {solution.gradient_norm:.2e}, wanted tol={self.tol:.2e}; raise "
                "max_iter or prior, or lower smoothness.",
                ConvergenceWarning,
            )

    _fit_partial = _fit

    def _uses_untagged_rows(self) -> bool:
        return True

    def _score(self, X: Features) -> FloatArray:
        rows = self._scaling(X)
        check_magnitude(rows)
        near = nearest_training_rows(self.X_fit_, rows, self.n_neighbors_)
        # Divide the sum at the end: the mean of equal numbers is then exact, and a tie is a tie.
        total = neighbour_graph(near, len(self.numerical_labels_)) @ self.numerical_labels_
        return log_odds(np.asarray(total) / self.n_neighbors_)


def _graph(near: IndexArray) -> Features:
    """Return the symmetric graph of neighbours; the weights that a row gives sum to 1/2."""
    given = neighbour_graph(near, len(near))
    return (given + given.T).tocsr() / (2 * near.shape[1])
