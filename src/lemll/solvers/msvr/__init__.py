"""Minimise Eq. (10), regression with a tube: alone (`solve`) or with a sign term (`sign`)."""

from lemll.solvers.msvr.search import MsvrSolution
from lemll.solvers.msvr.sign import SignMsvrSolution, solve_sign_msvr
from lemll.solvers.msvr.solve import solve_msvr, solve_msvr_path

__all__ = [
    "MsvrSolution",
    "SignMsvrSolution",
    "solve_msvr",
    "solve_msvr_path",
    "solve_sign_msvr",
]
