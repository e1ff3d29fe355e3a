"""Solve thousands of logistic regressions together, on shared rows or on different subsets."""

from lemll.solvers.logistic.solve import LogisticSolution, solve_logistic
from lemll.solvers.logistic.subsets import SubsetsSolution, solve_logistic_subsets

__all__ = ["LogisticSolution", "SubsetsSolution", "solve_logistic", "solve_logistic_subsets"]
