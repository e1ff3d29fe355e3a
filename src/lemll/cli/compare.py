"""``lemll compare``: learners on one's own table, with significance, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as RichTable

from lemll.cli.console import make_console
from lemll.cli.tables import (
    AsJson,
    Data,
    Source,
    expand,
    interruptible,
    names_of,
    print_json,
    say,
    say_labels,
)
from lemll.exceptions import LemllError
from lemll.metrics.table import METRICS
from lemll.models.compare import LearnerScores, compare_learners
from lemll.models.training import LEARNERS
from lemll.report.learners import LearnerVerdict, judge_learners, write_learners
from lemll.report.page import template_environment

# What is printed; the page shows all measures.
_PRINTED = ("average_precision", "hamming_loss", "macro_f1", "macro_auc", "log_loss")


@expand
def compare(
    data: Data,
    *,
    source: Source,
    learners: Annotated[
        str | None,
        typer.Option(
            "--learners",
            help=f"Some of {', '.join(LEARNERS)}; by default all.",
            metavar="A,B,C",
        ),
    ] = None,
    splits: Annotated[int, typer.Option("--splits", help="Number of folds.", min=2)] = 5,
    measure: Annotated[
        str, typer.Option("--measure", help="The measure that decides which learner is best.")
    ] = "average_precision",
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            help="Time budget, about, but at least three splits are made; 0 means no limit.",
            min=0,
        ),
    ] = 45.0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "compare.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Compare learners on a table: the same splits for all, significance, and a page.

    Figures come from rows that the learners have not seen. Ctrl-C ends the comparison and reports
    the splits that are done.

    Examples: lemll compare photos.csv --tags tags --id file;
    lemll compare plants.csv --labels red,tall --learners LEMLL,BinaryRelevance --splits 10
    """
    template_environment()  # report a missing library now, not after the work
    table, spec = source.labelled(data)
    say_labels(table, spec, source)
    with interruptible("nothing was written: fewer than two splits are done"):
        found = compare_learners(
            table,
            spec,
            names_of(learners) or tuple(LEARNERS),
            n_splits=splits,
            ids=source.ids,
            ignore=source.ignored,
            seconds=seconds or None,
            progress=say,
        )
    if measure not in found.measures:
        raise LemllError(f"--measure must be one of {', '.join(found.measures)}, got {measure!r}")
    verdict = judge_learners(found, measure)
    write_learners(output, found, verdict)
    if as_json:
        print_json({**found.to_json(), **verdict.to_json(), "page": str(output)})
        return
    console = make_console()
    _print(console, found, verdict)
    console.print(verdict.sentence, soft_wrap=True)
    if found.stopped:
        console.print(f"stopped after {len(found.values)} of {splits} splits")
    console.print(f"open {output}", soft_wrap=True)


def _print(console: Console, found: LearnerScores, verdict: LearnerVerdict) -> None:
    measures = dict.fromkeys((verdict.measure, *_PRINTED))
    titles = [f"{METRICS[name].title} {METRICS[name].arrow}" for name in measures]
    table = RichTable(
        "learner",
        *titles,
        f"{verdict.best} minus it",
        "p, Holm",
        title=f"{len(found.values)} splits, {found.n_test} rows each that no learner has seen",
    )
    against = {verdict.names[pair.other]: pair for pair in verdict.against}
    means = found.values.mean(axis=0)
    for i, name in enumerate(found.learners):
        cells = [means[i, found.measures.index(measure)] for measure in measures]
        pair = against.get(name)
        table.add_row(
            name,
            *("" if np.isnan(cell) else f"{cell:.3f}" for cell in cells),
            "" if pair is None else f"{pair.difference:+.3f}",
            "" if pair is None else f"{pair.adjusted:.2g}",
        )
    console.print(table)
