"""The Newton systems of Eq. (10), solved by preconditioned conjugate gradients."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from lemll._types import FloatArray

__all__ = ["Curvature", "MsvrDirection", "NewtonPoint", "NewtonSystem"]

# Largest number of conjugate gradient steps per Newton step. If they are stopped early, the result
# is still a descent direction.
MAX_INNER = 300
# More damping would slow down problems with almost all rows inside the tube.
LARGEST_DAMPING = 1e-6
# Conjugate gradients stop when the residual has grown by this factor, if the model can be confined.
# With kernels of full rank, the residual did not grow so much on any data set that was tried.
GROWTH = 10.0


class Curvature(Protocol):
    """Half the Hessian of a loss with respect to the outputs, with one block per row."""

    def times(self, image: FloatArray) -> FloatArray:
        """Apply it to a change of the outputs."""
        ...


class NewtonPoint(Protocol):
    """The interface of the point at which a Newton system is built.

    Its `problem` has alpha, features, the factorised model, `intercept_weight` and `bounded`.
    `bounded` says whether half the curvature of the loss is at most 1; then the preconditioner is
    an upper bound of the Hessian.
    """

    problem: Any
    V: FloatArray
    pull: FloatArray

    def curvature(self, damping: float) -> Curvature:
        """Return the curvature of the loss; rows without curvature get `damping` instead."""
        ...


class MsvrDirection(NamedTuple):
    """A change of V and its image."""

    V: FloatArray
    image: FloatArray


class NewtonSystem:
    """The Newton system at a point, solved by preconditioned conjugate gradients.

    Half the gradient, and every residual of the system, has the form
    ``alpha [Theta'; 0] + Xt' force``. It is stored as the pair ``(V, force)``, because this is all
    that the preconditioner needs. In the form by samples, the product itself would cost products
    with X.

    Attributes
    ----------
    decrement : float
        ``<g, P^-1 g>``, where g is half the gradient. It is at most the distance of the objective
        to its minimum.
    grown : bool
        Whether the residual has large parts that do not change Theta. Then the model should be
        confined (`Model.confine`) before the next system.

    Notes
    -----
    In the form by samples, ``Theta' = Xc' B``, B can have parts with ``Xc' B = 0``: with repeated
    rows, and with more rows than dimensions. Conjugate gradients measure all residuals through the
    kernel, so they do not see these parts, and nothing keeps them small. If the curvature of the
    loss is far below the preconditioner, the steps are long, and each step multiplies the unseen
    part by about its length. It was seen to grow from 1e3 to 1e9 in three Newton steps. Then the
    rounding errors of its products hide the true gradient.
    """

    def __init__(self, point: NewtonPoint) -> None:
        self._point, self._problem = point, point.problem
        # A diagonal preconditioner is not always an upper bound of the Hessian.
        self._bounded = self._problem.bounded and self._problem.model.exact
        self._V, self._force = point.V.copy(), -point.pull
        self._first, self.decrement = self._precondition()
        self._largest = GROWTH**2 * self._square
        # The decrement is a square. Only rounding errors of unseen parts make it negative.
        self.grown = self._problem.model.confinable and self.decrement < 0

    def _precondition(self) -> tuple[MsvrDirection, float]:
        """Return ``P^-1 r`` and ``<r, P^-1 r>`` for the current residual r."""
        problem, model = self._problem, self._problem.model
        V, image, right = model.solve(problem.alpha, self._V, self._force)
        # The features are centred, so P does not couple b with Theta. The block of b in P is the
        # total weight of the rows.
        sums = problem.features.gather(self._force)
        V[-1] = sums / problem.intercept_weight
        decrement = model.force_inner(right, V, image) + float(sums @ V[-1])
        # Unlike the decrement, the plain norm of the residual contains its unseen part.
        self._square = float(np.vdot(right, right))
        return MsvrDirection(V, image + problem.features.spread(V[-1])), decrement

    def solve(self, forcing: float) -> MsvrDirection:
        """Return a direction; stop when the residual is the share `forcing` of the gradient."""
        problem = self._problem
        curvature = self._point.curvature(min(LARGEST_DAMPING, forcing))
        along, last = self._first, self.decrement
        V, image = np.zeros_like(along.V), np.zeros_like(along.image)
        for inner in range(MAX_INNER):
            bent = curvature.times(along.image)
            square = problem.alpha * problem.model.inner(along.V, along.V, along.image)
            square += float(np.vdot(along.image, bent))
            # H is positive definite, so only rounding gives no curvature. This also catches NaN.
            if not square > 0:
                break
            length = last / square
            V += length * along.V
            image += length * along.image
            if inner == 0 and self._bounded and length - 1 <= forcing**2:
                # Because H <= P, `length - 1` bounds the squared share of the gradient that is
                # left. It is small enough, so the residual need not be computed.
                break
            # ``H d = alpha [dTheta'; 0] + Xt' (C image)``, so the residual stays a pair.
            self._V -= length * along.V
            self._force -= length * bent
            towards, decrement = self._precondition()
            if not decrement > forcing**2 * self.decrement:
                break
            if problem.model.confinable and self._square > self._largest:
                self.grown = True
                break
            kept = decrement / last
            along = MsvrDirection(towards.V + kept * along.V, towards.image + kept * along.image)
            last = decrement
        return MsvrDirection(V, image)
