"""ML2: multi-label manifold learning, in two stages."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from lemll._types import Features, LabelArray, SettingsView
from lemll._validation import check_number, check_whole
from lemll.fitting.equation9 import graph_is_given, graph_settings
from lemll.rivals.boxqp import BoxedEnhancer
from lemll.rivals.two_stage import SignKeepingClassifier, check_weight
from lemll.topology.weights import check_graph, reconstruction_weights

_GRAPH_SETTINGS: SettingsView = {"reg": 1e-5, "reg_policy": "absolute"}


@dataclass(eq=False, repr=False)
class ML2Enhancer(BoxedEnhancer):
    r"""Recover label distributions by the label manifold of ML2, its first stages.

    The LLE weights W rebuild the features of each row from its neighbours. The same weights shall
    rebuild the numerical labels, which keep the signs of the logical labels Y in -1/+1. For each
    label k, the numerical labels minimise

    .. math:: \min_u \; u^\top \big((I-W)^\top(I-W) + \rho I\big) u
        \quad \text{s.t.} \quad y_{ik} u_i \ge \lambda .

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours that rebuild a row. By default n_labels + 1, as in [1]_ and [2]_. If
        there are fewer rows, all other rows are used.
    lower : float, default=1.0
        :math:`\lambda`, > 0.
    upper : float, optional
        Largest magnitude of a numerical label, >= `lower`. By default there is no limit.
    ridge : float, default=1e-5
        :math:`\rho`, >= 0. With 0 the optimum may not be unique.
    graph : dict or csr_array of shape (n_samples, n_samples), optional
        Either settings of the graph, any of

        - ``reg``, 1e-5 by default: added to the diagonals of the local Gram matrices of LLE, > 0.
        - ``reg_policy``, "absolute" (default), "always" or "auto": "absolute" adds ``reg`` itself.
          "always" adds it relative to the trace of each Gram matrix. "auto" does the same, but only
          if the Gram matrix is singular. "absolute" reproduces the figures of [2]_.

        Or the weights W, from `lemll.topology.reconstruction_weights`.
    normalization : {"sigmoid", "softmax", "sum"}, default="sigmoid"
        How U becomes a distribution.
    scale : float, default=1.0
        U is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees. A graph that is passed is not changed.
    tol : float, default=1e-8
        The solver stops when the largest violation of the optimality conditions is at most this.
    max_iter : int, default=500
        Largest number of iterations per label.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    kkt_residual_ : float
        The largest violation of the optimality conditions, over all labels.
    n_iter_ : int
        Number of iterations of the slowest label.
    scale_ : float
        The scale in use: the parameter, or the value found by `calibrate`.
    scale_interval_ : tuple of float or None
        The confidence interval of the scale, set by `calibrate`. None before that.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    See Also
    --------
    lemll.solvers.solve_box_qp : The solver.

    References
    ----------
    .. [1] P. Hou, X. Geng and M.-L. Zhang, "Multi-label manifold learning", AAAI Conference on
       Artificial Intelligence, 2016.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.rivals import ML2Enhancer
    >>> data = make_artificial(200, random_state=0)
    >>> enhancer = ML2Enhancer().fit(data.X, binarize_distribution(data.D, 0.5))
    >>> enhancer.label_distribution_.shape, enhancer.kkt_residual_ <= 1e-8
    ((200, 3), True)
    """

    n_neighbors: int | None = None
    _: KW_ONLY
    ridge: float = 1e-5

    def _rebuilding(self, X: Features, n_labels: int) -> Features:
        if graph_is_given(self.graph):
            return check_graph(self.graph, X.shape[0])
        return self._make_graph(X, n_labels)

    def _make_graph(self, X: Features, n_labels: int) -> Features:
        # The authors use one neighbour more than there are labels.
        wanted = n_labels + 1
        if self.n_neighbors is not None:
            wanted = check_whole("n_neighbors", self.n_neighbors, least=1)
        settings = graph_settings(self.graph, _GRAPH_SETTINGS)
        check_number("reg in graph", settings["reg"], above=0)
        # A row cannot have more neighbours than there are other rows.
        return reconstruction_weights(X, min(wanted, X.shape[0] - 1), **settings)


@dataclass(eq=False, repr=False)
class ML2(SignKeepingClassifier):
    r"""Multi-label manifold learning: numerical labels on a manifold, then a regression.

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
    kernel_params : dict, optional
        Any of ``gamma``, ``degree`` and ``coef0``, as in :class:`lemll.LEMLL`, but ``gamma`` is
        "distance" by default: :math:`1/(2\sigma^2)`, where :math:`\sigma` is the mean distance
        between two training rows. The authors' programs use it.
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
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.LEMLL`.

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
    >>> from lemll.rivals import ML2
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = ML2().fit(digits.X[:300], digits.Y[:300])
    >>> model.predict(digits.X[300:]).shape, model.optimality_ <= 1e-6
    ((1497, 8), True)
    """

    C1: float = 1.0
    C2: float = 1.0
    _: KW_ONLY
    n_neighbors: int | None = None
    lower: float = 1.0
    ridge: float = 1e-3

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self._fit_stages(
            X,
            Y,
            ML2Enhancer(self.n_neighbors, lower=self.lower, ridge=self.ridge),
            C1=check_weight("C1", self.C1),
            C2=check_weight("C2", self.C2, inclusive=True),
        )
