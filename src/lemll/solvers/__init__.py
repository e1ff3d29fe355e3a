"""Solvers of the LEMLL objective: arrays in, a typed solution with its certificate out."""

from lemll._kernel import CentredKernel
from lemll.solvers._bytes import kernel_bytes, solver_bytes
from lemll.solvers._solution import LemllSolution, Progress
from lemll.solvers.boxqp import BoxQpSolution, solve_box_qp
from lemll.solvers.joint import JointProblem, solve_joint
from lemll.solvers.logistic import LogisticSolution, solve_logistic
from lemll.solvers.logistic_subsets import SubsetsSolution, solve_logistic_subsets
from lemll.solvers.maxent import MaxentSolution, solve_maxent
from lemll.solvers.msvr import MsvrSolution, solve_msvr, solve_msvr_path
from lemll.solvers.path import GridPoint, PathStep, solve_path
from lemll.solvers.reference import solve_reference
from lemll.solvers.sign_msvr import SignMsvrSolution, solve_sign_msvr

__all__ = [
    "BoxQpSolution",
    "CentredKernel",
    "GridPoint",
    "JointProblem",
    "LemllSolution",
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
