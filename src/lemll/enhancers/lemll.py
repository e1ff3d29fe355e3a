"""LEMLL as a label enhancer."""

from __future__ import annotations

from lemll._types import Features, FloatArray, KernelLike, LabelArray, SparseMatrix
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization, fit_equation9, make_graph, model_outputs

__all__ = ["LEMLLEnhancer"]


class LEMLLEnhancer(BaseEnhancer):
    r"""Recover label distributions by LEMLL, the joint optimum of Eq. (9) of [1]_.

    The numerical labels U minimise, together with a linear model,

    .. math::
        \sum_i L_\varepsilon(\|u_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2
        +\beta\|U-Y\|_F^2+\gamma\,\mathrm{tr}(U^\top MU),

    with the logical labels Y in -1/+1, :math:`L_\varepsilon(r)=\max(0,r-\varepsilon)^2` and
    :math:`M=(I-W)^\top(I-W)` from the LLE weights W. The distribution is the logistic function of
    U, divided by the row's sum.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of :math:`\|\Theta\|_F^2`, > 0.
    beta : float, default=1.0
        Weight of the closeness to the logical labels, > 0.
    gamma : float, default=1.0
        Weight of the local linear structure, >= 0.
    epsilon : float, default=0.1
        Radius of the tube inside which residuals cost nothing, >= 0.
    kernel : str or callable, default="linear"
        Inner product of two rows, in the feature space that the model is linear in: "linear",
        "rbf", "poly", "sigmoid", "cosine" or "precomputed". In this order it is :math:`x^\top x'`,
        :math:`\exp(-g\|x-x'\|^2)`, :math:`(g\,x^\top x'+c)^{degree}`,
        :math:`\tanh(g\,x^\top x'+c)`, that of rows of length 1, or X itself holds the values. Or a
        function of two arrays of rows. It must be positive semi-definite. The
        neighbourhoods are those of X, or of a precomputed kernel's feature space.
    kernel_gamma : "variance" or float, default="variance"
        g of the kernel, > 0; by default one over the sum of the features' variances, so that the
        mean squared distance of two rows has the exponent -2.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        c of the polynomial and the sigmoid kernel.
    n_neighbors : int, default=10
        Neighbours from which a row is rebuilt; with fewer rows, all others.
    reg_policy : {"always", "auto"}, default="always"
        Whether the local Gram matrices of LLE are always regularised, or only where they are
        singular. The latter is what the published figures rest on; the solution then takes some
        twenty times longer where neighbours nearly coincide, and predicts no better.
    graph : csr_array of shape (n_samples, n_samples), optional
        Precomputed LLE weights W, as `lemll.topology.reconstruction_weights` gives them.
    normalization : {"sigmoid", "softmax", "sum"}, default="sigmoid"
        How U becomes a distribution.
    scale : float, default=1.0
        Factor on U before normalising, > 0.
    tol : float, default=1e-6
        Certified relative duality gap at which to stop.
    max_iter : int, default=1000
        Cap on the solver's iterations.
    precision : {"float64", "float32"}, default="float64"
        Of the iterates; the certificate is always float64.
    verbose : int, default=0
        If positive, a progress line on standard error.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        Non-negative, rows summing to one.
    coef_, intercept_ : ndarray of shape (n_labels, n_features), (n_labels,)
        The model found along with U.
    dual_coef_ : ndarray of shape (n_labels, n_samples)
        With a kernel, instead of `coef_`: the coefficients a of the outputs
        :math:`\sum_j a_j k(x_j, x)+b`; their rows sum to zero.
    X_fit_ : ndarray or csr_array
        With a kernel that is not precomputed: a copy of the training rows.
    kernel_ : object
        With a kernel: its name and the parameters it was used with. Of dense rows "poly" and
        "cosine" are taken about the mean of the training rows, so that features far from the
        origin lose no digits; this changes `intercept_` and nothing else.
    objective_ : float
        Eq. (9) at the solution.
    objective_trace_ : ndarray
        Eq. (9) at the start and after each iteration.
    optimality_ : float
        Certified relative duality gap.
    n_iter_ : int
        Iterations done.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.

    See Also
    --------
    lemll.LEMLL : The same optimum as a classifier.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.enhancers import LEMLLEnhancer
    >>> from lemll.metrics import chebyshev
    >>> data = make_artificial(200, random_state=0)
    >>> Y = binarize_distribution(data.D, 0.5)
    >>> recovered = LEMLLEnhancer().fit_enhance(data.X, Y)
    >>> bool(chebyshev(data.D, recovered) < chebyshev(data.D, Y / Y.sum(axis=1, keepdims=True)))
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        gamma: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: KernelLike = "linear",
        kernel_gamma: str | float = "variance",
        degree: int = 3,
        coef0: float = 1.0,
        n_neighbors: int = 10,
        reg_policy: str = "always",
        graph: SparseMatrix = None,
        normalization: Normalization = "sigmoid",
        scale: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        precision: str = "float64",
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.epsilon = epsilon
        self.kernel = kernel
        self.kernel_gamma = kernel_gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_neighbors = n_neighbors
        self.reg_policy = reg_policy
        self.graph = graph
        self.normalization = normalization
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.precision = precision
        self.verbose = verbose

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        return fit_equation9(self, X, Y)

    def make_graph(self, X: Features, n_labels: int) -> Features:  # noqa: D102, in the base
        return make_graph(self, X)

    def _model_outputs(self, X: Features) -> FloatArray:
        return model_outputs(self, X)
