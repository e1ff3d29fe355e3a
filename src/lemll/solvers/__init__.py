"""Solvers of the LEMLL objective: arrays in, a typed solution with its certificate out."""

from lemll.solvers._bytes import solver_bytes
from lemll.solvers._solution import LemllSolution, Progress
from lemll.solvers.joint import JointProblem, solve_joint
from lemll.solvers.msvr import MsvrSolution, solve_msvr
from lemll.solvers.reference import solve_reference

__all__ = [
    "JointProblem",
    "LemllSolution",
    "MsvrSolution",
    "Progress",
    "solve_joint",
    "solve_msvr",
    "solve_reference",
    "solver_bytes",
]
