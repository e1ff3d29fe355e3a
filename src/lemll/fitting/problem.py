"""Eq. (9) without its labels, solved for all labels together or for blocks of labels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lemll._types import Features, FloatArray, LabelArray, Settings
from lemll._validation import check_whole
from lemll.fitting.kernels import Kernel, settle_optimality
from lemll.solvers import LemllSolution, Progress, Status, solve_logical

__all__ = ["LabelProblem", "label_blocks"]


def label_blocks(label_block: Any, n_labels: int) -> list[slice]:
    """Divide the labels into blocks of the size that the user wants, or into one block."""
    if label_block is None:
        return [slice(0, n_labels)]
    step = check_whole("label_block", label_block, least=1)
    return [slice(i, min(i + step, n_labels)) for i in range(0, n_labels, step)]


@dataclass
class LabelProblem:
    """Everything of Eq. (9) but the labels."""

    X: Features
    features: Features
    W: Features
    kernel: Kernel | None
    options: Settings
    verbose: Any

    def solve(
        self,
        Y: LabelArray | FloatArray,
        cell_weight: FloatArray | None,
        blocks: Sequence[slice],
    ) -> LemllSolution:
        """Solve for all labels together, or for one block of labels after the other."""
        if len(blocks) == 1:
            return self._solve_together(Y, cell_weight)
        U = np.empty(Y.shape, dtype=self.options["precision"])
        coef = np.empty((Y.shape[1], self.features.shape[1]))
        parts = [self._solve_block(Y, cell_weight, block, U, coef) for block in blocks]
        return _joined(parts, U, coef)

    def _solve_block(
        self,
        Y: LabelArray | FloatArray,
        cell_weight: FloatArray | None,
        block: slice,
        U: FloatArray,
        coef: FloatArray,
    ) -> LemllSolution:
        """Solve for a block of labels, write U and Theta into the arrays of all labels."""
        labels: Any = np.ascontiguousarray(Y[:, block])
        known = None if cell_weight is None else cell_weight[:, block]
        part = self._solve_together(labels, known, share=labels.shape[1] / Y.shape[1])
        U[:, block], coef[block] = part.numerical_labels, part.coef
        none = np.empty((0, 0))
        # Keep no large array of the block while the next one is solved.
        return replace(part, numerical_labels=none, coef=none, half_dual=None, dual_coef=None)

    def _solve_together(
        self,
        Y: LabelArray | FloatArray,
        cell_weight: FloatArray | None,
        *,
        share: float = 1.0,
    ) -> LemllSolution:
        """Solve for some labels. `share` is their part of all labels.

        Outside the tube, the loss of all labels pulls the residual r of a row by
        (1 - epsilon / |r|) r. The residual r_g of a block is pulled by the same factor if the
        radius of the block is epsilon |r_g| / |r|. If all labels have residuals of the same size,
        |r_g| / |r| is the root of the share.
        """
        options = self.options | {"epsilon": self.options["epsilon"] * np.sqrt(share)}
        tol = options["tol"]
        progress = _ProgressLine(tol) if self.verbose else None
        solution = solve_logical(
            self.features, Y, self.W, **options, callback=progress, cell_weight=cell_weight
        )
        if progress is not None:
            progress.end(solution)
        scale = "alpha, beta, gamma and the features"
        # The certificate holds for the kernel values as computed. Add the effect of their rounding.
        optimality = settle_optimality("LEMLL", self.kernel, self.X, solution, tol=tol, scale=scale)
        U = solution.numerical_labels.astype(self.options["precision"], copy=False)
        return replace(solution, optimality=optimality, numerical_labels=U)


def _joined(parts: Sequence[LemllSolution], U: FloatArray, coef: FloatArray) -> LemllSolution:
    """Join the solutions of blocks of labels. The objectives and the gaps add up."""
    objective = sum(part.objective for part in parts)
    gap = sum(part.optimality * part.objective for part in parts)
    longest = max(len(part.objective_trace) for part in parts)
    # A block that has ended keeps its last objective.
    trace = sum(
        np.pad(part.objective_trace, (0, longest - len(part.objective_trace)), mode="edge")
        for part in parts
    )
    worst: Status = next((part.status for part in parts if not part.converged), "converged")
    return replace(
        parts[0],
        coef=coef,
        intercept=np.concatenate([part.intercept for part in parts]),
        numerical_labels=U,
        objective=objective,
        objective_trace=np.asarray(trace),
        optimality=gap / objective if objective > 0 else 0.0,
        n_iter=max(part.n_iter for part in parts),
        status=worst,
        n_linear_solves=sum(part.n_linear_solves for part in parts),
    )


class _ProgressLine:
    """A progress line on standard error. On a terminal it is rewritten in place."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def __call__(self, progress: Progress) -> None:
        self._show(progress.iteration, progress.objective, progress.optimality, progress.elapsed)

    def end(self, solution: LemllSolution) -> None:
        """Show the final state and end the line."""
        self._show(solution.n_iter, solution.objective, solution.optimality, None)
        if sys.stderr.isatty():
            sys.stderr.write("\n")

    def _show(self, iteration: int, objective: float, gap: float, elapsed: float | None) -> None:
        reached = f"{gap:.1e}" if np.isfinite(gap) else "not yet known"
        when = "done" if elapsed is None else f"{elapsed:.1f} s"
        text = (
            f"LEMLL iteration {iteration}: objective {objective:.6g}, certified gap {reached} "
            f"(wanted {self.tol:.1e}), {when}"
        )
        # "\r\x1b[K" goes to the start of the line and clears it. A file gets one line per report.
        sys.stderr.write(f"\r\x1b[K{text}" if sys.stderr.isatty() else f"{text}\n")
        sys.stderr.flush()
