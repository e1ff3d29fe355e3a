"""The second stage of ML2 and MLFE: a regression on numerical labels that keeps their signs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lemll._types import Estimator, Features, FloatArray, KernelLike, LabelArray
from lemll._validation import check_magnitude, check_number, check_whole
from lemll.fitting import (
    Kernel,
    check_fits,
    choose_kernel,
    gamma_of_distance,
    mean_distance,
    model_outputs,
    settle_optimality,
    store_model,
    upper_distances,
)
from lemll.predictors._base import MultilabelClassifier
from lemll.predictors.stages.first_stage import fit_enhancer
from lemll.solvers import solve_sign_msvr

__all__ = ["SignKeepingClassifier", "check_weight"]

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


class SignKeepingClassifier(MultilabelClassifier):
    """Base of two-stage classifiers with a kernel, a tube and a cache of the first stage."""

    epsilon: float
    kernel: KernelLike
    kernel_gamma: str | float
    degree: Any
    coef0: Any
    memory: Estimator
    tol: float
    max_iter: int

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
        self.optimality_ = settle_optimality(
            type(self).__name__,
            kernel,
            X,
            solution,
            tol=tol,
            scale="the features",
            # The tube loss max(0, r - epsilon)^2 has the weight C1, and the sign term the slope C2.
            curvature=C1,
            slope=C2,
        )
        store_model(self, kernel, X, solution.coef, solution.intercept)
        self.objective_ = solution.objective
        self.n_iter_ = solution.n_iter

    def _chosen_kernel(self, X: Features) -> Kernel | None:
        if self._pairwise:
            raise ValueError(
                f"{type(self).__name__} cannot use kernel='precomputed': its first stage needs the "
                "features; pass them with a function of two arrays of rows as kernel."
            )
        gamma = self.kernel_gamma
        # `choose_kernel` knows only "variance", so compute the mean distance here. A linear kernel
        # has no width, and the distances of all pairs of rows would be wasted work.
        if isinstance(gamma, str) and gamma == "distance" and self.kernel != "linear":
            gamma = gamma_of_distance(mean_distance(upper_distances(X)))
        elif isinstance(gamma, str) and gamma not in ("distance", "variance"):
            raise ValueError(
                f"kernel_gamma={gamma!r} must be 'distance', 'variance' or a number > 0."
            )
        return choose_kernel(
            SimpleNamespace(
                kernel=self.kernel, kernel_gamma=gamma, degree=self.degree, coef0=self.coef0
            ),
            X,
        )

    def _score(self, X: Features) -> FloatArray:
        return model_outputs(self, X)
