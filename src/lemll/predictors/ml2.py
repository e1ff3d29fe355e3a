"""ML2: multi-label manifold learning."""

from __future__ import annotations

from lemll._types import Estimator, Features, KernelLike, LabelArray, Thresholds
from lemll.enhancers import ML2Enhancer
from lemll.predictors.stages.sign_keeping import SignKeepingClassifier, check_weight

__all__ = ["ML2"]


class ML2(SignKeepingClassifier):
    r"""Multi-label manifold learning [1]_: numerical labels on a manifold, then their regression.

    The first stage (`ML2Enhancer`) gives numerical labels :math:`\mu` with the signs of the logical
    ones. The second learns outputs :math:`f_i=\Theta x_i+b` that come near them and keep their
    signs,

    .. math::
        \min \tfrac12\|\Theta\|_F^2+C_1\sum_iL_\varepsilon(\|\mu_i-f_i\|)
        +C_2\sum_{ij}\max(0,-\operatorname{sgn}(\mu_{ij})f_{ij}),
        \qquad L_\varepsilon(r)=\max(0,r-\varepsilon)^2,

    which is convex and solved to a certified duality gap.

    Parameters
    ----------
    C1 : float, default=1.0
        Weight of the regression, > 0. The LEMLL paper [2]_ chooses it among 1 to 10.
    C2 : float, default=1.0
        Weight of outputs of the wrong sign, >= 0. [2]_ chooses it among 1 to 10.
    n_neighbors : int, optional
        Neighbours from which a row is rebuilt in the first stage; by default n_labels + 1.
    lower : float, default=1.0
        :math:`\lambda`, the smallest magnitude of a numerical label, > 0.
    ridge : float, default=1e-3
        :math:`\rho` of the first stage, >= 0: what large numerical labels cost by themselves. In
        few features, where neighbours rebuild a row in many ways, nothing else keeps them small;
        the published reconstructions come from 1e-5.
    epsilon : float, default=0.001
        Radius of the tube inside which residuals cost nothing, >= 0; as in the authors' programs.
    kernel : str or callable, default="linear"
        Inner product of two rows, in the feature space that the outputs are linear in: "linear",
        "rbf", "poly", "sigmoid", "cosine", or a function of two arrays of rows. [2]_ uses "linear".
    kernel_gamma : "distance", "variance" or float, default="distance"
        Factor g of the kernel, :math:`\exp(-g\|x-x'\|^2)` for "rbf". "distance" is
        :math:`1/(2\sigma^2)` with the mean distance :math:`\sigma` of two training rows, as in the
        authors' programs; "variance" one over the sum of the features' variances.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Added to the inner product in the polynomial and the sigmoid kernel.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        Above which score a label is predicted: 0 for all labels; or for each label the one that is
        best, by its F1 or by the number of correct decisions, on the training rows, scored by
        models that have not seen them (5 folds).
    memory : None, str or object with the interface of joblib.Memory, default=None
        Where to keep first stages, which do not depend on C1, C2, the tube and the kernel: a grid
        search over these then computes one for each part of the rows.
    tol : float, default=1e-6
        Certified relative duality gap at which to stop.
    max_iter : int, default=1000
        Cap on the Newton steps.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        :math:`\mu` of the training rows.
    enhancer_ : ML2Enhancer
        The first stage, fitted.
    coef_, intercept_ : ndarray of shape (n_labels, n_features) and (n_labels,)
        :math:`\Theta` and b. With a kernel `dual_coef_`, `X_fit_` and `kernel_` instead of `coef_`.
    objective_, optimality_ : float
        Of the second stage, and its certified relative duality gap.
    n_iter_ : int
        Newton steps done.
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
    MLFE : The same second stage with one more term, after another first one.
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
