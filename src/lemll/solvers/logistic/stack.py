"""Newton's method for a stack of logistic regressions, each with a few rows of its own.

Problems with a similar number of rows are padded to the same number. Then they are solved as a
stack of small dense matrices. If a problem has fewer rows than features, it has one unknown per
row: ``theta = X'a``, and the scores are ``Ka + b`` with the kernel ``K = XX'`` of its rows. The
Newton system is then ``(I + C S K S) z = S t``, where S is the root of the curvature. It is
well-conditioned even if the curvature is very small. The intercept follows from ``sum(a) = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from lemll._types import FloatArray
from lemll.solvers.logistic.newton import (
    ARMIJO,
    LEAST_CURVATURE,
    SHORTEST_STEP,
    log_loss,
    probabilities,
)

__all__ = ["Stack"]

# Solved problems are removed when they are this share of the stack, because removal copies the
# other problems.
LEAVING = 0.1


@dataclass(slots=True)
class _StackState:
    """The arrays of the problems that are not solved yet; the first axis is the problem."""

    place: npt.NDArray[np.intp]
    design: FloatArray
    labels: FloatArray
    there: FloatArray
    unknowns: FloatArray
    intercept: FloatArray
    scores: FloatArray
    value: FloatArray
    scale: FloatArray

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Remove the solved problems."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[kept])


class Stack:
    """Minimise the penalised logistic loss of every problem of a stack.

    Parameters
    ----------
    design : ndarray of shape (n_problems, n_rows, n_columns)
        The kernel of the rows of each problem, or their features.
    labels : ndarray of shape (n_problems, n_rows)
        0/1. Each problem must have both values.
    there : ndarray of shape (n_problems, n_rows)
        The weights of the rows of the problem, usually 1; 0 for padding.
    kernel : bool
        Whether `design` holds kernels (True) or features (False).
    penalty : float
        1 / C.

    Attributes
    ----------
    unknowns : ndarray of shape (n_problems, n_columns)
        Multipliers of the rows, or coefficients of the features.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    gradient_norm : ndarray of shape (n_problems,)
        Relative lengths of the gradients.
    n_iter : ndarray of shape (n_problems,)
        Number of Newton steps.
    """

    def __init__(
        self,
        design: FloatArray,
        labels: FloatArray,
        there: FloatArray,
        *,
        kernel: bool,
        penalty: float,
    ) -> None:
        self.kernel, self.penalty = kernel, penalty
        mean = (labels * there).sum(axis=1) / there.sum(axis=1)
        self.intercept = np.log(mean) - np.log1p(-mean)
        self.unknowns = np.zeros((len(design), design.shape[2]))
        self.gradient_norm = np.zeros(len(design))
        self.n_iter = np.zeros(len(design), dtype=np.intp)
        surprise = (labels - mean[:, None]) * there
        # Squared lengths of the rows. In a kernel they are the diagonal.
        lengths = np.einsum("pii->pi" if kernel else "pij,pij->pi", *([design] * (2 - kernel)))
        scores = np.tile(self.intercept[:, None], (1, labels.shape[1]))
        self.state = _StackState(
            place=np.arange(len(design)),
            design=design,
            labels=labels,
            there=there,
            unknowns=self.unknowns.copy(),
            intercept=self.intercept.copy(),
            scores=scores,
            value=(log_loss(scores, labels) * there).sum(axis=1),
            scale=np.sqrt((surprise**2 * (1 + lengths)).sum(axis=1)),
        )

    def solve(self, tol: float, max_iter: int) -> None:
        """Iterate until every gradient is below `tol` times its scale, or for `max_iter` steps."""
        state = self.state
        stuck = np.zeros(len(state.place), dtype=np.bool_)
        for step in range(max_iter + 1):
            p, curvature = probabilities(state.scores)
            residuals = (p - state.labels) * state.there
            norm = self._gradient_norm(residuals) / state.scale
            self.unknowns[state.place] = state.unknowns
            self.intercept[state.place] = state.intercept
            self.gradient_norm[state.place] = norm
            self.n_iter[state.place] = step
            done = (norm <= tol) | stuck
            if done.all() or step == max_iter:
                return
            if done.sum() >= LEAVING * len(done):
                state.keep(~done)
                residuals, curvature = residuals[~done], curvature[~done]
            # Padding rows have no curvature, so they have no effect on the system.
            curvature = np.maximum(curvature, LEAST_CURVATURE) * state.there
            newton = self._kernel_step if self.kernel else self._feature_step
            stuck = self._search(residuals, *newton(residuals, curvature))

    def _gradient_norm(self, residuals: FloatArray) -> FloatArray:
        state = self.state
        if self.kernel:
            # With theta = X'a, the gradient is X'v, and its squared length is v'Kv.
            v = residuals + self.penalty * state.unknowns
            square = _inner(v, _times(state.design, v))
        else:
            v = _gathered(state.design, residuals) + self.penalty * state.unknowns
            square = _inner(v, v)
        return np.asarray(np.sqrt(np.maximum(square, 0) + residuals.sum(axis=1) ** 2))

    def _kernel_step(
        self, residuals: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        state = self.state
        root = np.sqrt(curvature)
        # S times the working response f - r / s^2 of iteratively reweighted least squares, where r
        # are the residuals and s^2 is the curvature.
        target = root * state.scores - residuals / np.where(root > 0, root, 1)
        system = state.design * (root / self.penalty)[:, :, None]
        system *= root[:, None, :]
        diagonal = np.arange(root.shape[1])
        system[:, diagonal, diagonal] += 1
        # Solve for the target and for the ones (times S). The combination with sum(a) = 0
        # determines the intercept.
        solved = np.linalg.solve(system, np.stack([target, root], axis=2))
        intercept = _inner(root, solved[:, :, 0]) / _inner(root, solved[:, :, 1])
        unknowns = solved[:, :, 0] - intercept[:, None] * solved[:, :, 1]
        unknowns *= root / self.penalty
        return unknowns - state.unknowns, intercept - state.intercept

    def _feature_step(
        self, residuals: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        state = self.state
        weighted = state.design * curvature[:, :, None]
        n_features = state.design.shape[2]
        system = np.empty((len(weighted), n_features + 1, n_features + 1))
        system[:, :-1, :-1] = np.matmul(state.design.transpose(0, 2, 1), weighted)
        diagonal = np.arange(n_features)
        system[:, diagonal, diagonal] += self.penalty
        # The last row and column belong to the intercept, which has no penalty.
        system[:, -1, :-1] = system[:, :-1, -1] = weighted.sum(axis=1)
        system[:, -1, -1] = curvature.sum(axis=1)
        slope = _gathered(state.design, residuals) + self.penalty * state.unknowns
        right = -np.column_stack([slope, residuals.sum(axis=1)])
        found = np.linalg.solve(system, right[:, :, None])[:, :, 0]
        return found[:, :-1], found[:, -1]

    def _search(
        self, residuals: FloatArray, direction: FloatArray, direction0: FloatArray
    ) -> npt.NDArray[np.bool_]:
        """Halve the step of each problem until its value falls enough; return which are stuck."""
        state = self.state
        change = _times(state.design, direction) + direction0[:, None]
        # The penalty is a'Ka with a kernel, and theta'theta without. Ka is known from the scores.
        here, ahead = state.unknowns, direction
        if self.kernel:
            here, ahead = state.scores - state.intercept[:, None], change - direction0[:, None]
        # The penalty is a quadratic function of the step, so trial steps need no further products.
        before = self.penalty / 2 * _inner(state.unknowns, here)
        along = self.penalty * _inner(direction, here)
        across = self.penalty / 2 * _inner(direction, ahead)
        promised = _inner(residuals, change) + along
        # An increase within the rounding error of the sum does not count as a failure.
        slack = 1e-13 * (1 + np.abs(state.value))
        length = np.ones(len(state.place))
        while True:
            scores = state.scores + length[:, None] * change
            loss = (log_loss(scores, state.labels) * state.there).sum(axis=1)
            value = loss + before + length * along + length**2 * across
            short = ~(value <= state.value + ARMIJO * length * promised + slack) & (length > 0)
            if not short.any():
                break
            length[short] /= 2
            length[length < SHORTEST_STEP] = 0
        state.scores, state.value = scores, value
        state.unknowns = state.unknowns + length[:, None] * direction
        state.intercept = state.intercept + length * direction0
        return np.asarray(length == 0)


def _inner(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("pi,pi->p", first, second))


def _times(design: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray(np.matmul(design, vectors[:, :, None])[:, :, 0])


def _gathered(design: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray(np.matmul(vectors[:, None, :], design)[:, 0, :])
