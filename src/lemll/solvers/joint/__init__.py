"""Minimise Eq. (9) over all unknowns together: one problem (`problem`) or a grid (`path`)."""

from lemll.solvers.joint.path import GridPoint, LogicalPath, PathStep, path_order, solve_path
from lemll.solvers.joint.problem import (
    JointProblem,
    kernel_bytes,
    solve_joint,
    solve_logical,
    solver_bytes,
)

__all__ = [
    "GridPoint",
    "JointProblem",
    "LogicalPath",
    "PathStep",
    "kernel_bytes",
    "path_order",
    "solve_joint",
    "solve_logical",
    "solve_path",
    "solver_bytes",
]
