"""Solvers of the LEMLL objective: arrays in, a typed solution with its certificate out."""

from lemll.objective import CentredKernel
from lemll.solvers.boxqp import BoxQpSolution, solve_box_qp
from lemll.solvers.interface import LemllSolution, Progress
from lemll.solvers.joint import (
    GridPoint,
    JointProblem,
    LogicalPath,
    PathStep,
    kernel_bytes,
    solve_joint,
    solve_logical,
    solve_path,
    solver_bytes,
)
from lemll.solvers.logistic import (
    LogisticSolution,
    SubsetsSolution,
    solve_logistic,
    solve_logistic_subsets,
)
from lemll.solvers.maxent import MaxentSolution, solve_maxent
from lemll.solvers.msvr import (
    MsvrSolution,
    SignMsvrSolution,
    solve_msvr,
    solve_msvr_path,
    solve_sign_msvr,
)
from lemll.solvers.reference import solve_reference

__all__ = [
    "BoxQpSolution",
    "CentredKernel",
    "GridPoint",
    "JointProblem",
    "LemllSolution",
    "LogicalPath",
    "LogisticSolution",
    "MaxentSolution",
    "MsvrSolution",
    "PathStep",
    "Progress",
    "SignMsvrSolution",
    "SubsetsSolution",
    "kernel_bytes",
    "solve_box_qp",
    "solve_joint",
    "solve_logical",
    "solve_logistic",
    "solve_logistic_subsets",
    "solve_maxent",
    "solve_msvr",
    "solve_msvr_path",
    "solve_path",
    "solve_reference",
    "solve_sign_msvr",
    "solver_bytes",
]
