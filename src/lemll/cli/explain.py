"""``lemll explain``: a page that explains a table and its model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lemll.cli._console import make_console
from lemll.cli._tables import (
    AsJson,
    Data,
    Decimal,
    Delimiter,
    Encoding,
    Model,
    Sheet,
    interruptible,
    load_model,
    print_json,
    read_data,
    say,
)
from lemll.models import explain_table
from lemll.report import template_environment, write_explanation

__all__ = ["explain"]


def explain(
    model: Model,
    data: Data,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "explain.html"
    ),
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """Write a page that explains a table and its model.

    It shows how much each tag matters in each row, which features tell for a tag, which rows are
    near, which tags occur together, and how calibrated the probabilities are.

    Example: lemll explain photos.lemll photos.csv -o explain.html
    """
    template_environment()  # report a missing library now, not after the work
    fitted = load_model(model)
    reading = {"encoding": encoding, "delimiter": delimiter, "decimal": decimal, "sheet": sheet}
    table = read_data(data, fitted.keep, reading)
    with interruptible("nothing was written"):
        found = explain_table(fitted, table, progress=say)
        write_explanation(output, found)
    if as_json:
        print_json(
            {
                "page": str(output),
                "rows": len(found.ids),
                "telling": {
                    name: [feature._asdict() for feature in features]
                    for name, features in zip(found.label_names, found.telling, strict=True)
                },
                "sensitivity": {
                    column: dict(zip(found.label_names, values.tolist(), strict=True))
                    for column, values in zip(found.columns, found.sensitivity, strict=True)
                },
            }
        )
        return
    make_console().print(f"open {output}", soft_wrap=True)
