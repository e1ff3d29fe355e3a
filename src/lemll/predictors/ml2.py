"""ML2: multi-label manifold learning, in two stages."""

from __future__ import annotations

from lemll._types import Estimator, Features, KernelLike, LabelArray, Thresholds
from lemll.enhancers import ML2Enhancer
from lemll.predictors.stages.sign_keeping import SignKeepingClassifier, check_weight

__all__ = ["ML2"]


class ML2(SignKeepingClassifier):
    r"""Multi-label manifold learning [1]_: numerical labels on a manifold, then a regression.

    The first stage (`ML2Enhancer`) computes numerical labels :math:`\mu` that have the same signs
    as the logical labels. The second stage learns outputs :math:`f_i=\Theta x_i+b` that are close
    to :math:`\mu` and have the same signs,

    .. math::
        \min \tfrac12\|\Theta\|_F^2+C_1\sum_iL_\varepsilon(\|\mu_i-f_i\|)
        +C_2\sum_{ij}\max(0,-\operatorname{sgn}(\mu_{ij})f_{ij}),
        \qquad L_\varepsilon(r)=\max(0,r-\varepsilon)^2,

    This problem is convex. It is solved to a certified duality gap.

    Parameters
    ----------
    C1 : float, default=1.0
        Weight of the regression, > 0. The LEMLL paper [2]_ chooses it among 1 to 10.
    C2 : float, default=1.0
        Weight of outputs with the wrong sign, >= 0. [2]_ chooses it among 1 to 10.
    n_neighbors : int, optional
        Number of neighbours that rebuild a row in the first stage. By default n_labels + 1.
    lower : float, default=1.0
        :math:`\lambda`, the smallest magnitude of a numerical label, > 0.
    ridge : float, default=1e-3
        :math:`\rho` of the first stage, >= 0: the weight of :math:`\|u\|^2`. With few features,
        neighbours can rebuild a row in many ways, and only this term keeps the numerical labels
        small. The published reconstructions were computed with 1e-5.
    epsilon : float, default=0.001
        Radius of the tube, >= 0. Residuals inside the tube cost nothing. The default is the value
        of the authors' programs.
    kernel : str or callable, default="linear"
        Inner product of two rows in the feature space of the model: "linear", "rbf", "poly",
        "sigmoid", "cosine", or a function of two arrays of rows. [2]_ uses "linear".
    kernel_gamma : "distance", "variance" or float, default="distance"
        Factor g of the kernel, for example :math:`\exp(-g\|x-x'\|^2)` for "rbf". "distance" means
        :math:`1/(2\sigma^2)`, where :math:`\sigma` is the mean distance between two training rows;
        the authors' programs use it. "variance" means one divided by the sum of the variances of
        the features.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant that the polynomial and the sigmoid kernel add to the inner product.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its score is above its threshold. "zero" uses 0 for all labels.
        "f1" and "hamming" choose one threshold per label: the one with the best F1, or with the
        most correct decisions. To choose it, 5-fold cross-validation scores every training row
        with a model that was not fitted on that row.
    memory : None, str or object with the interface of joblib.Memory, default=None
        Cache of the first stage, which does not depend on C1, C2, the tube and the kernel. With
        it, a grid search over these parameters computes the first stage only once per fold.
    tol : float, default=1e-6
        The solver stops when the certified relative duality gap is at most this.
    max_iter : int, default=1000
        Largest number of Newton steps.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        :math:`\mu` of the training rows.
    enhancer_ : ML2Enhancer
        The first stage, fitted.
    coef_, intercept_ : ndarray of shape (n_labels, n_features) and (n_labels,)
        :math:`\Theta` and b. With a kernel, `dual_coef_`, `X_fit_` and `kernel_` replace `coef_`.
    objective_, optimality_ : float
        The objective of the second stage, and its certified relative duality gap.
    n_iter_ : int
        Number of Newton steps.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its score is above it.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    MLFE : Another first stage, and the same second stage with one more term.
    lemll.solvers.solve_sign_msvr : The solver.

    References
    ----------
    .. [1] P. Hou, X. Geng and M.-L. Zhang, "Multi-label manifold learning", AAAI Conference on
       Artificial Intelligence, 2016.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll import ML2
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = ML2().fit(digits.X[:300], digits.Y[:300])
    >>> model.predict(digits.X[300:]).shape, model.optimality_ <= 1e-6
    ((1497, 8), True)
    """

    def __init__(
        self,
        C1: float = 1.0,
        C2: float = 1.0,
        *,
        n_neighbors: int | None = None,
        lower: float = 1.0,
        ridge: float = 1e-3,
        epsilon: float = 0.001,
        kernel: KernelLike = "linear",
        kernel_gamma: str | float = "distance",
        degree: int = 3,
        coef0: float = 1.0,
        thresholds: Thresholds = "zero",
        memory: Estimator = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.n_neighbors = n_neighbors
        self.lower = lower
        self.ridge = ridge
        self.epsilon = epsilon
        self.kernel = kernel
        self.kernel_gamma = kernel_gamma
        self.degree = degree
        self.coef0 = coef0
        self.thresholds = thresholds
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self._fit_stages(
            X,
            Y,
            ML2Enhancer(self.n_neighbors, lower=self.lower, ridge=self.ridge),
            C1=check_weight("C1", self.C1),
            C2=check_weight("C2", self.C2, inclusive=True),
        )
