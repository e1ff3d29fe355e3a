"""``lemll export``: write a model as ONNX, to serve it without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lemll.cli._console import make_console
from lemll.cli._tables import Model, load_model
from lemll.models import to_onnx

__all__ = ["export"]


def export(
    model: Model,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.")],
) -> None:
    """Write a linear or kernel model of a table of numbers as ONNX, with scaling and thresholds.

    Example: lemll fit plants.csv --labels red,tall --learner LEMLL -m plants.lemll;
    lemll export plants.lemll -o plants.onnx
    """
    fitted = load_model(model)
    content = to_onnx(fitted, output)
    columns = [c.name for c in fitted.pipeline[0].columns_ if c.kind != "ignored"]
    console = make_console()
    console.print(f"wrote {output}: {len(content)} bytes", soft_wrap=True)
    console.print(f"input X, double, one row per example; columns: {', '.join(columns)}",
                  soft_wrap=True)  # fmt: skip
    console.print(f"outputs of shape (rows, labels); labels: {', '.join(fitted.label_names)}",
                  soft_wrap=True)  # fmt: skip
