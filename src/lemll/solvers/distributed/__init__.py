"""Minimise Eq. (9) with the rows in blocks, which may be on different machines."""

from lemll.solvers.distributed.block import RowBlock
from lemll.solvers.distributed.problem import BlocksLostError, LocalTeam, Team, solve_blocks

__all__ = ["BlocksLostError", "LocalTeam", "RowBlock", "Team", "solve_blocks"]
