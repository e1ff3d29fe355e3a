"""A classifier in two stages: any enhancer, followed by any regressor."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_memory

from lemll._types import (
    Estimator,
    Features,
    FloatArray,
    KernelLike,
    LabelArray,
    MatrixLike,
    Settings,
)
from lemll._validation import check_magnitude, check_number, check_settings, check_whole
from lemll.enhancers.lemll import LEMLLEnhancer
from lemll.fitting.equation9 import (
    KERNEL_SETTINGS,
    check_fits,
    choose_kernel,
    model_outputs,
    store_solution,
)
from lemll.fitting.kernels import Kernel
from lemll.predictors.base import MultilabelClassifier
from lemll.predictors.msvr import MSVR
from lemll.rivals.distances import gamma_of_distance, mean_distance, upper_distances
from lemll.rivals.sign_msvr import solve_sign_msvr


def fit_enhancer(
    enhancer: Estimator,
    X: Features,
    Y: LabelArray,
    memory: Estimator,
    weight: FloatArray | None = None,
) -> tuple[Features, FloatArray]:
    """Fit a clone of an enhancer, or load it from a cache.

    Parameters
    ----------
    enhancer : BaseEnhancer
        The enhancer. A clone is fitted; this object is not changed.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1; -1 in unknown cells.
    memory : None, str or object with the interface of joblib.Memory
        The cache of fits of the same enhancer to the same rows.
    weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1. They are 0 in unknown cells.

    Returns
    -------
    enhancer : BaseEnhancer
        Fitted.
    numerical_labels : ndarray of shape (n_samples, n_labels)
        U.
    """
    # Enhancers need at least two labels. Add the complement of a single label as the other one.
    labels: MatrixLike = Y
    if Y.shape[1] == 1:
        labels = np.column_stack([1 - Y, Y])
        weight = None if weight is None else np.column_stack([weight, weight])
    if weight is not None:
        labels = np.where(weight > 0, labels, np.nan)
    # Without a cache, do not go through joblib: then warnings point at the line of the user.
    run = _fit if memory is None else check_memory(memory).cache(_fit)
    fitted = run(clone(enhancer), X, labels, weight)
    return fitted, fitted.numerical_labels_[:, -Y.shape[1] :]


def _fit(enhancer: Estimator, X: Features, Y: MatrixLike, weight: FloatArray | None) -> Features:
    with warnings.catch_warnings():
        # The classifier has already named the labels that nobody observed, and it does not show
        # the degrees of labels without a relevant row.
        warnings.filterwarnings("ignore", "labels without an observed cell")
        warnings.filterwarnings("ignore", "no row has the labels")
        # Without weights, an enhancer of the user need not know them.
        if weight is None:
            return enhancer.fit(X, Y)
        return enhancer.fit(X, Y, label_weight=weight)


# Quotients and squares of weights in this range do not overflow.
WEIGHTS = (1e-40, 1e40)


def check_weight(name: str, value: object, *, inclusive: bool = False) -> float:
    """Return the weight of a term; refuse values that would overflow, and 0 unless `inclusive`."""
    weight = check_number(name, value, above=0, inclusive=inclusive)
    if weight > 0 and not WEIGHTS[0] <= weight <= WEIGHTS[1]:
        raise ValueError(
            f"{name} must lie between {WEIGHTS[0]:.0e} and {WEIGHTS[1]:.0e}"
            f"{' or be 0' if inclusive else ''}, got {value!r}; bring the weights closer to 1."
        )
    return weight


@dataclass(eq=False, repr=False, kw_only=True)
class SignKeepingClassifier(MultilabelClassifier):
    """Base of two-stage classifiers with a kernel, a tube and a cache of the first stage."""

    epsilon: float = 0.001
    kernel: KernelLike = "linear"
    kernel_params: Settings | None = None
    memory: Estimator = None
    tol: float = 1e-6
    max_iter: int = 1000

    def _fit_stages(
        self,
        X: Features,
        Y: LabelArray,
        enhancer: Estimator,
        *,
        C1: float,
        C2: float,
        gain: FloatArray | None = None,
    ) -> None:
        """Enhance the labels, fit the regression to them, and store the model."""
        epsilon = check_number("epsilon", self.epsilon, above=0, inclusive=True)
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        check_magnitude(X)
        kernel = self._chosen_kernel(X)
        check_fits(X, Y.shape[1], kernel)
        self.enhancer_, self.numerical_labels_ = fit_enhancer(enhancer, X, Y, self.memory)
        solution = solve_sign_msvr(
            X if kernel is None else kernel.of_training(X, Y.shape[1]),
            self.numerical_labels_,
            C1=C1,
            C2=C2,
            gain=gain,
            epsilon=epsilon,
            tol=tol,
            max_iter=max_iter,
        )
        # The tube loss max(0, r - epsilon)^2 has the weight C1, and the sign term the slope C2.
        options = {"scale": "the features", "curvature": C1, "slope": C2}
        store_solution(self, kernel, X, solution, tol=tol, **options)

    def _chosen_kernel(self, X: Features) -> Kernel | None:
        if self._pairwise:
            raise ValueError(
                f"{type(self).__name__} cannot use kernel='precomputed': its first stage needs the "
                "features; pass them with a function of two arrays of rows as kernel."
            )
        settings = check_settings(
            "kernel_params", self.kernel_params, {**KERNEL_SETTINGS, "gamma": "distance"}
        )
        gamma = settings["gamma"]
        # `choose_kernel` knows only "variance", so compute the mean distance here. A linear kernel
        # has no width, and the distances of all pairs of rows would be wasted work.
        if isinstance(gamma, str) and gamma == "distance" and self.kernel != "linear":
            settings["gamma"] = gamma_of_distance(mean_distance(upper_distances(X)))
        elif isinstance(gamma, str) and gamma not in ("distance", "variance"):
            raise ValueError(
                f"gamma={gamma!r} in kernel_params must be 'distance', 'variance' or a number > 0."
            )
        return choose_kernel(self.kernel, settings, X)

    def _score(self, X: Features) -> FloatArray:
        return model_outputs(self, X)


@dataclass(eq=False, repr=False)
class TwoStage(MultilabelClassifier):
    r"""Enhance the labels, then fit a regressor to them: any enhancer with any regressor.

    The enhancer turns the logical labels of the training rows into numerical labels U. The
    regressor learns to predict U from the features. A label is predicted if its output is
    positive. Each stage minimises the objective of its own estimator. If the enhancer can use
    labels with unknown cells, as `LEMLLEnhancer` can, it estimates U in these cells also, and the
    regressor learns from all of U.

    Parameters
    ----------
    enhancer : BaseEnhancer, optional
        The first stage. By default `LEMLLEnhancer`.
    regressor : regressor, optional
        The second stage. It must support several outputs, as many regressors of scikit-learn do;
        if not, put it into a `sklearn.multioutput.MultiOutputRegressor`. By default `MSVR`.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its score is above its threshold. "zero" uses 0 for all labels.
        "f1" and "hamming" choose one threshold per label: the one with the best F1, or with the
        most correct decisions. To choose it, 5-fold cross-validation scores every training row
        with a model that was not fitted on that row.
    memory : None, str or object with the interface of joblib.Memory, default=None
        Cache of the first stage. With it, a grid search over the parameters of the regressor
        computes the first stage only once per fold.

    Attributes
    ----------
    enhancer_, regressor_ : estimator
        The fitted clones of `enhancer` and `regressor`.
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U of the training rows.
    origin_ : ndarray of shape (n_labels,)
        Subtracted from the outputs of the regressor. Zero if the sign of U has a meaning; see the
        notes.
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.LEMLL`.

    Notes
    -----
    Some enhancers (`FCMEnhancer`, `KMEnhancer`, `LabelPropagationEnhancer`, `GLLEEnhancer`) give
    memberships or degrees, whose sign has no meaning. An enhancer says so by its attribute
    `signed_labels`; if that is None, they are recognised by the mean of the irrelevant entries of
    U, which is then not negative. In this case the origin of a label is the
    middle between two means: the mean of U over the rows that have the label, and the mean over
    the rows that do not. For a label with the same value in all rows, the origin is placed so that
    the label is always predicted with that value.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from lemll.rivals import TwoStage
    >>> from lemll.datasets import load_digit_tags
    >>> from lemll.rivals import KMEnhancer
    >>> digits = load_digit_tags()
    >>> model = TwoStage(KMEnhancer(), Ridge()).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    >>> model.set_params(regressor__alpha=10.0).get_params()["regressor__alpha"]
    10.0
    """

    enhancer: Estimator = None
    regressor: Estimator = None
    _: KW_ONLY
    memory: Estimator = None

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        enhancer = LEMLLEnhancer() if self.enhancer is None else self.enhancer
        if not hasattr(enhancer, "fit_enhance"):
            raise TypeError(
                f"enhancer must be one of lemll.enhancers, got {type(enhancer).__name__}."
            )
        regressor = MSVR() if self.regressor is None else self.regressor
        if not hasattr(regressor, "fit") or is_classifier(regressor):
            raise TypeError(
                f"regressor={regressor!r} must be a regressor, as scikit-learn has them, or None."
            )
        self.enhancer_, U = fit_enhancer(enhancer, X, Y, self.memory, weight)
        self.numerical_labels_ = U
        signed = getattr(self.enhancer_, "signed_labels", None)
        self.origin_ = _origin(U, Y, signed)
        self.regressor_ = _fitted(clone(regressor), X, U)

    # An enhancer that cannot use such labels refuses them.
    _fit_partial = _fit

    def _outputs(self, X: Features) -> FloatArray:
        outputs = np.asarray(self.regressor_.predict(X), dtype=np.float64)
        return outputs.reshape(X.shape[0], -1)

    def _uses_untagged_rows(self) -> bool:
        return True

    def _score(self, X: Features) -> FloatArray:
        return self._outputs(X) - self.origin_

    def predict_distribution(self, X: MatrixLike) -> FloatArray:
        """Estimate how much each label matters in new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The outputs of the regressor, normalised in the same way as the enhancer normalises its
            numerical labels.
        """
        outputs = self._validated_scores(X) + self.origin_
        distribution: FloatArray = self.enhancer_.distribution(outputs)
        return distribution

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.regressor, "fit"):
            tags.input_tags.sparse = get_tags(self.regressor).input_tags.sparse
        return tags


def _fitted(regressor: Estimator, X: Features, U: FloatArray) -> Features:
    try:
        return regressor.fit(X, U[:, 0] if U.shape[1] == 1 else U)
    except ValueError as error:
        if U.shape[1] > 1:
            error.add_note(
                f"TwoStage gave {type(regressor).__name__} one target for each of {U.shape[1]} "
                "labels; put what takes only one in a sklearn.multioutput.MultiOutputRegressor."
            )
        raise


def _origin(U: FloatArray, Y: LabelArray, signed: bool | None) -> FloatArray:
    """Return the numerical value of each label above which it counts as relevant.

    Only the known cells of Y count.
    """
    having, lacking = (Y == 1).sum(axis=0), (Y == 0).sum(axis=0)
    sums = np.array([(U * part).sum(axis=0) for part in (Y == 1, Y == 0)])
    # Enhancers with signed labels make irrelevant entries negative: then 0 is the right origin. U
    # is 0 for a label that nobody observed, and it is never predicted.
    if sums[1].sum() < 0 if signed is None else signed:
        return np.where(having + lacking == 0, 1.0, 0.0)
    relevant, irrelevant = sums / np.maximum(np.array([having, lacking]), 1)
    # A constant label has only one mean, so there is no middle. Put the origin far enough on one
    # side of it that the regressor always predicts the constant value.
    away = max(float(np.abs(U).max()), np.finfo(np.float64).tiny) / 2
    return np.select(
        [having == 0, lacking == 0],
        [irrelevant + away, relevant - away],
        (relevant + irrelevant) / 2,
    )
