"""Solvers of the LEMLL objective: arrays in, a typed solution with its certificate out."""

from lemll.solvers._solution import LemllSolution, Progress
from lemll.solvers.joint import solve_joint
from lemll.solvers.reference import solve_reference

__all__ = ["LemllSolution", "Progress", "solve_joint", "solve_reference"]
