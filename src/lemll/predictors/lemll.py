"""LEMLL, the classifier."""

from __future__ import annotations

from lemll._types import (
    Features,
    FloatArray,
    KernelLike,
    LabelArray,
    Settings,
    SparseMatrix,
    Thresholds,
)
from lemll.fitting import fit_equation9, model_outputs, normalize
from lemll.predictors._base import MultilabelClassifier

__all__ = ["LEMLL"]


class LEMLL(MultilabelClassifier):
    r"""Multi-label learning with label enhancement, solved to a certified global optimum.

    Learns a model, linear in the features or in those of a kernel, and with it numerical labels U
    that say how much each label matters in each training row. Both jointly minimise Eq. (9) of
    [1]_,

    .. math::
        \sum_i L_\varepsilon(\|u_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2
        +\beta\|U-Y\|_F^2+\gamma\,\mathrm{tr}(U^\top MU),

    with the logical labels Y in -1/+1, :math:`L_\varepsilon(r)=\max(0,r-\varepsilon)^2` and
    :math:`M=(I-W)^\top(I-W)` from the LLE weights W (Eq. 6-8). The problem is convex; the solver
    stops on a duality gap, so `optimality_` bounds how far `objective_` is from the minimum.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of :math:`\|\Theta\|_F^2`, > 0.
    beta : float, default=1.0
        Weight of the closeness of U to the logical labels, > 0.
    gamma : float, default=1.0
        Weight of the agreement of U with the rows' local linear structure, >= 0.
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
        Precomputed LLE weights W of the training rows, as
        `lemll.topology.reconstruction_weights` gives them; `n_neighbors` and `reg_policy` are
        then not used. It belongs to these rows, so it cannot be cross-validated.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        Above which score a label is predicted: 0 for all labels, as in the paper; or for each
        label the one that is best, by its F1 or by the number of correct decisions, on the
        training rows, scored by models that have not seen them (5 folds).
    tol : float, default=1e-4
        Certified relative duality gap at which to stop.
    max_iter : int, default=1000
        Cap on the solver's iterations.
    precision : {"float64", "float32"}, default="float64"
        Of the iterates; the certificate is always float64.
    verbose : int, default=0
        If positive, a progress line on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        :math:`\Theta`.
    intercept_ : ndarray of shape (n_labels,)
        b.
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U of the training rows.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        U through the logistic function, divided by its row sum.
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
        Certified relative duality gap of the solution; with a kernel, what the rounding of its
        values adds is estimated and included.
    n_iter_ : int
        Iterations done.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names: columns of a frame, else ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its score exceeds this.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    lemll.enhancers.LEMLLEnhancer : The same optimum, for the sake of the distribution alone.

    Notes
    -----
    The paper adds a virtual label with logical value 0 and predicts the labels that score above
    it. Its scores are exactly 0, so a label is predicted where its score is positive. Labels that
    are the same in all training rows are always predicted so.

    There is no ``sample_weight``: repeating a row would change the neighbourhoods, so weights
    could not mean what they mean elsewhere.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll import LEMLL
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = LEMLL().fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    >>> bool(model.optimality_ <= 1e-4)
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
        thresholds: Thresholds = "zero",
        tol: float = 1e-4,
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
        self.thresholds = thresholds
        self.tol = tol
        self.max_iter = max_iter
        self.precision = precision
        self.verbose = verbose

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self.label_distribution_ = normalize(fit_equation9(self, X, Y))

    def _score(self, X: Features) -> FloatArray:
        return model_outputs(self, X)

    def _fold_parameters(self) -> Settings:
        if self.graph is not None:
            raise ValueError(
                "thresholds are tuned on parts of the rows, for which the given graph does not "
                "hold; leave graph=None, or use thresholds='zero'."
            )
        return {}
