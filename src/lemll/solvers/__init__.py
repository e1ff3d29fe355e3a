r"""Solvers: functions that take arrays and return a typed solution with its certificate.

`solve_joint` minimises Eq. (9) for one set of parameters, `solve_path` for many sets, and
`solve_blocks` for rows on several machines. `solve_msvr` minimises Eq. (10), and `solve_logistic`
fits thousands of logistic regressions at once.

The code uses these symbols and words, for n rows, d features and l labels:

=================  ==============================================================================
``X``, ``Xc``      Features (n x d), and the centred features
``Xt``             ``[Xc, 1]``: centred features with a column of ones
``Y``, ``U``       Logical labels in -1/+1, and numerical labels, both (n x l)
``Theta``, ``b``   The model ``Theta x + b``; stored as ``V = [Theta'; b']`` or ``V = [B; b']``
``B``              Coefficients of the samples: ``Theta' = Xc' B``
``W``, ``M``       LLE weights, and ``M = (I - W)'(I - W)``
image              ``Xt V``: the outputs of the model for the training rows
residuals          ``Xi = U - Xt V``, with rows ``xi_i``
tube weights       ``a_i = max(0, 1 - epsilon / |xi_i|)``, Eq. (14)
pull               ``a_i xi_i``: half the gradient of the tube loss by the residual
drive              The part of the pull that comes from the sign term (`solve_sign_msvr`)
label gradient     ``C = beta (U - Y) + gamma M U``: half the gradient of the label terms
rough              ``M U``; roughness is the diagonal of M
half dual          ``Z / 2`` of a dual point Z, whose columns sum to zero
force              ``alpha Theta' - Xc' Z/2``: zero if Z is the dual point of the model
misfit             The squared norm of the force
mismatch           ``C + Z/2``: zero if Z is the dual point of the labels
reconcile          To change Z by ``Xc R`` so that the force becomes small
share              The factor s of the system ``S = s Xc'Xc + alpha I`` that is factorised
settle             To move a point to unknowns whose products are already known
span               The linear combinations of earlier solutions; the next search starts in it
floor              The smallest objective that a relative gap is divided by
=================  ==============================================================================

The certified relative gap of every solution is ``optimality``. It is ``(F - D) / max(F, floor)``,
where F is the objective and D is the value of a dual point, which is at most the minimum.
"""

from lemll.solvers.distributed import BlocksLostError, RowBlock, solve_blocks
from lemll.solvers.equation9 import LemllSolution
from lemll.solvers.joint import kernel_bytes, solve_joint, solver_bytes
from lemll.solvers.log_linear import solve_log_linear
from lemll.solvers.logistic import solve_logistic
from lemll.solvers.msvr import solve_msvr, solve_msvr_path
from lemll.solvers.msvr_search import MsvrSolution
from lemll.solvers.path import GridPoint, LogicalPath, solve_path

__all__ = [
    "BlocksLostError",
    "GridPoint",
    "LemllSolution",
    "LogicalPath",
    "MsvrSolution",
    "RowBlock",
    "kernel_bytes",
    "solve_blocks",
    "solve_joint",
    "solve_log_linear",
    "solve_logistic",
    "solve_msvr",
    "solve_msvr_path",
    "solve_path",
    "solver_bytes",
]
