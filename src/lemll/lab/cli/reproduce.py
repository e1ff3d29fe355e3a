"""``lemll reproduce``: the paper's experiments, with our figures beside the published ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from lemll.datasets.registry import list_datasets, load_dataset
from lemll.exceptions import DatasetNotFoundError, StoreError
from lemll.lab.cells import THRESHOLDS
from lemll.lab.cli import say, show_table
from lemll.lab.cli.bench import run_with_progress
from lemll.lab.protocol import Protocol
from lemll.lab.report import write_comparison, write_table
from lemll.lab.runner import RunProgress
from lemll.lab.significance import conclude
from lemll.lab.store import Store
from lemll.lab.studies.best import BestReport, make_best_report
from lemll.lab.studies.enhancement import run_enhancement
from lemll.lab.studies.enhancement_report import EnhancementReport, make_enhancement_report
from lemll.lab.studies.prediction import (
    N_SPLITS,
    QUICK_PREDICTION,
    paper_prediction,
    printed_prediction,
    read_protocols,
)
from lemll.lab.studies.prediction_report import (
    PredictionReport,
    make_cells_report,
    make_prediction_report,
)
from lemll.lab.studies.prediction_runs import choices, collect, lacking, repeat
from lemll.lab.studies.reconstruction import (
    QUICK_RECONSTRUCTION,
    ReconstructionReport,
    make_reconstruction_report,
    paper_reconstruction,
)
from lemll.lab.studies.sections import Ranks, StudyReport
from lemll.lab.studies.unobserved import UnobservedReport, make_unobserved_report
from lemll.lab.tables import Panel
from lemll.report.page import template_environment

app = typer.Typer(
    help="The paper's experiments, with our figures beside the published ones.",
    no_args_is_help=True,
)

Names = Annotated[
    list[str] | None, typer.Argument(help="Data sets; by default all available ones.")
]
Folder = Annotated[
    Path, typer.Option(help="Folder for the results; a stopped run continues from there.")
]
Source = Annotated[
    Path, typer.Option("--from", help="The folder of the results: protocols and cells.csv.")
]
Output = Annotated[
    Path | None, typer.Option(help="Folder for the tables; by default next to the store.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Number of cells to run at the same time.")]
Collect = Annotated[
    bool, typer.Option("--collect", help="With --from: first add the cells done in --store.")
]
Verify = Annotated[
    int, typer.Option(min=0, help="With --from: run this number of random cells again and compare.")
]

_QUICK_THRESHOLDS = (0.1, 0.5)
_QUICK_SPLITS = 2


@app.command()
def reconstruction(
    datasets: Names = None,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Three small sets, two thresholds: about a minute.")
    ] = False,
    store: Folder = Path("lemll-results/reconstruction"),
    output: Output = None,
    jobs: Jobs = 1,
) -> None:
    """Recover known distributions from 0/1 labels with every method (Tables VI to VIII)."""
    wanted = datasets or (list(QUICK_RECONSTRUCTION) if quick else None)
    names, absent = _at_hand(wanted, "V", download=datasets is not None)
    protocol = paper_reconstruction(names, thresholds=_QUICK_THRESHOLDS if quick else THRESHOLDS)
    report, end = _reproduce(
        protocol, make_reconstruction_report, _print,
        store=store, output=output, absent=absent, jobs=jobs,
    )  # fmt: skip
    reproduced = all(entry.within == entry.cells for entry in report.agreement)
    raise typer.Exit(code=0 if reproduced and not end.failed else 1)


@app.command()
def prediction(
    datasets: Names = None,
    *,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Two sets, two halves, default parameters: about a minute with -j 2."
        ),
    ] = False,
    methods: Annotated[
        str | None, typer.Option(help="Learners, separated by commas; by default all registered.")
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(help=f"Halves; by default {N_SPLITS}, with --quick {_QUICK_SPLITS}."),
    ] = None,
    tune: Annotated[
        bool | None,
        typer.Option(
            "--tune/--no-tune", help="Tune each method's grid; by default yes, with --quick no."
        ),
    ] = None,
    store: Folder = Path("lemll-results/prediction"),
    output: Output = None,
    jobs: Jobs = 1,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A folder of committed results (protocols and cells.csv): write all tables and "
            "the page from it, and run nothing.",
        ),
    ] = None,
    collect_cells: Collect = False,
    verify: Verify = 0,
) -> None:
    """Predict labels with every learner (Tables II and III)."""
    if source is None and (collect_cells or verify):
        raise ValueError("--collect and --verify need --from FOLDER, the folder of the results.")
    if source is not None:
        _collect(source, store if collect_cells else None)
        _print_study(make_cells_report(source), output or source, "The paper's first experiment")
        raise typer.Exit(code=_verify(source, verify))
    wanted = datasets or (list(QUICK_PREDICTION) if quick else None)
    names, absent = _at_hand(wanted, "I", download=datasets is not None)
    chosen = None if methods is None else [name.strip() for name in methods.split(",")]
    protocol = paper_prediction(
        names,
        methods=chosen,
        n_splits=splits or (_QUICK_SPLITS if quick else N_SPLITS),
        tuned=not quick if tune is None else tune,
    )
    _, end = _reproduce(
        protocol, make_prediction_report, _print_prediction,
        store=store, output=output, absent=absent, jobs=jobs,
    )  # fmt: skip
    raise typer.Exit(code=1 if end.failed else 0)


R = TypeVar("R", bound=StudyReport)


def _reproduce(
    protocol: Protocol,
    make: Callable[[Protocol, Store], R],
    show: Callable[[R], None],
    *,
    store: Path,
    output: Path | None,
    absent: list[str],
    jobs: int,
) -> tuple[R, RunProgress]:
    """Run an experiment of the paper, print its tables, and write them and the page."""
    template_environment()  # report a missing library now, not after hours of work
    opened = Store(store)
    end = run_with_progress(protocol, opened, n_jobs=jobs)
    report = make(protocol, opened)
    folder = output or store.with_name(f"{store.name}-tables")
    files = report.write(folder)
    for panel in report.table.panels:
        _print_panel(panel, f"{panel.title}: ours [printed]")
    show(report)
    _print_files(files, absent)
    _print_page(write_comparison(folder / "report.html", protocol, opened))
    return report, end


def _print_prediction(report: PredictionReport) -> None:
    _print_ranks(report.ranks, "measure")
    for entry in report.agreement:
        say(
            f"{entry.method}: {entry.within} of {entry.cells} means within two of the paper's "
            f"standard deviations, {entry.better} better, {entry.worse} worse"
        )
    say(report.settings)


def _ours(
    name: str, make: Callable[[Path], UnobservedReport | BestReport], title: str, summary: str
) -> None:
    """Add the command of an experiment that is not in the paper."""

    def command(
        *,
        source: Source = Path("results") / name,
        store: Folder = Path("lemll-results") / name,
        output: Output = None,
        collect_cells: Collect = False,
        verify: Verify = 0,
    ) -> None:
        _collect(source, store if collect_cells else None)
        _print_study(make(source), output or source, title)
        raise typer.Exit(code=_verify(source, verify))

    app.command(name, help=f"{summary} (lemll bench run runs it).")(command)


_ours(
    "unobserved",
    make_unobserved_report,
    "Incomplete labels",
    "Write the tables of our experiment on incomplete labels",
)
_ours(
    "best",
    make_best_report,
    "The best predictor",
    "Write the tables of TagPredictor beside other learners",
)


@app.command()
def enhancement(
    datasets: Annotated[
        list[str] | None, typer.Argument(help="With --run: run only these data sets.")
    ] = None,
    *,
    source: Source = Path("results/enhancement"),
    output: Output = None,
    run: Annotated[
        bool, typer.Option("--run", help="First run the cells that cells.csv lacks.")
    ] = False,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="With --run: run only this; repeatable.")
    ] = None,
    jobs: Jobs = 1,
) -> None:
    """Compare all enhancers: no truth, a few rated rows, the truth in view."""
    template_environment()
    if (datasets or methods) and not run:
        raise typer.BadParameter("data sets and methods select what runs; add --run.")
    chosen = {"datasets": datasets or (), "methods": methods or ()}
    for cell in run_enhancement(source, **chosen, n_jobs=jobs) if run else ():
        say(f"done: {cell}")
    _print_study(make_enhancement_report(source), output or source, "Label enhancement")


@app.command()
def complete(
    folder: Annotated[Path, typer.Argument(help="A folder of results: protocols and cells.csv.")],
    datasets: Annotated[
        list[str] | None, typer.Argument(help="Data sets; by default those of the protocols.")
    ] = None,
    *,
    methods: Annotated[
        str | None, typer.Option(help="Labels of methods, separated by commas; by default all.")
    ] = None,
    splits: Annotated[
        int | None, typer.Option(help="Only so many halves; by default those of the protocols.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of the run; by default lemll-results/NAME.")
    ] = None,
    jobs: Jobs = 1,
    time_limit: Annotated[
        float | None, typer.Option(help="Largest time of a cell, in seconds.")
    ] = None,
) -> None:
    """Run the cells that the table of a folder of results lacks, and add them to it."""
    path = store or Path("lemll-results") / folder.resolve().name
    opened = Store(path)
    labels = [name.strip() for name in methods.split(",")] if methods else []
    failed = 0
    _collect(folder, path)
    for protocol in read_protocols(folder):
        part = protocol.on_datasets(datasets) if datasets else protocol
        if part is None:
            continue
        end = run_with_progress(
            part,
            opened,
            n_jobs=jobs,
            time_limit=time_limit,
            only=lacking(folder, methods=labels, n_splits=splits),
            chosen=choices(folder),
        )
        failed += end.failed + end.timeout
        _collect(folder, path)
    raise typer.Exit(code=1 if failed else 0)


def _print_study(
    report: PredictionReport | UnobservedReport | BestReport | EnhancementReport,
    folder: Path,
    title: str,
) -> None:
    """Write the tables and the page of committed cells."""
    files = report.write(folder)
    if isinstance(report, PredictionReport):
        _print_prediction(report)
    else:
        say(f"{report.best()}\n{report.settings}")
    _print_files(files, [])
    page = write_table(folder / "report.html", report.table, title=title, source=report.settings)
    _print_page(page)


def _collect(source: Path, store: Path | None) -> None:
    """Add the cells of a store to the table of a folder, if there is a store."""
    template_environment()
    if store is None:
        return
    if not store.is_dir():
        raise StoreError(f"there is no store {store}; give its folder with --store.")
    changed = collect(source, Store(store))
    say(f"{changed} cells are new or changed in {source}")


def _verify(source: Path, number: int) -> int:
    """Run random cells again; return the exit code."""
    repeated = differing = 0
    for done in repeat(source, number) if number else ():
        repeated += 1
        differing += bool(done.differences)
        say(f"{repeated}. {done.key}: {'; '.join(done.differences) or 'the same'}")
    if number:
        say(f"{differing} of {repeated} cells differ")
    return 1 if differing else 0


@app.command()
def statistics(
    output: Annotated[Path, typer.Option(help="The page to write.")] = Path(
        "lemll-results/printed/report.html"
    ),
) -> None:
    """Apply tests that the paper does not use to its printed Tables II and III."""
    template_environment()
    table = printed_prediction()
    rows = []
    for panel in table.panels:
        found = conclude(panel, table.control, ratio=0.0)
        if found is None:
            continue
        beaten = [other.method for other in found.against if other.pair.outcome == "better"]
        figures = (found.nemenyi, found.bonferroni_dunn)
        friedman = (f"{found.friedman.f:.2f}", f"{found.friedman.f_pvalue:.1e}")
        rows.append([panel.title, *friedman, *(f"{f:.3f}" for f in figures), ", ".join(beaten)])
    header = ("measure", "Friedman F", "p", "Nemenyi", "Bonferroni-Dunn")
    show_table((*header, "LEMLL is better than (Holm)"), rows)
    page = write_table(
        output, table, title="Tables II and III as printed", source="the paper's printed means"
    )
    _print_page(page)


def _at_hand(
    wanted: list[str] | None, table: str, *, download: bool
) -> tuple[list[str], list[str]]:
    names, absent = [], []
    for name in wanted or [info.name for info in list_datasets(table=table)]:
        try:
            names.append(load_dataset(name, download_if_missing=download).name)
        except DatasetNotFoundError:
            absent.append(name)
    if not names:
        raise DatasetNotFoundError(
            f"none of the data sets is available ({', '.join(absent)}): set LEMLL_DATA_DIR to the "
            "folder that holds them, or name one to download it"
        )
    return names, absent


def _print_files(files: list[Path], absent: list[str]) -> None:
    if absent:
        say(f"not available: {', '.join(absent)}")
    names = ", ".join(file.name for file in files)
    say(f"tables: {names} in {files[0].parent}")


def _print_page(page: Path) -> None:
    say(f"open {page}")


def _print_panel(panel: Panel, title: str) -> None:
    show_table(("data set", *panel.methods), panel.rows(), title)


def _print_ranks(blocks: list[Ranks], heading: str) -> None:
    if blocks:
        rows = ([block.title, *block.texts] for block in blocks)
        show_table((heading, *blocks[0].methods), rows, "Average ranks: ours [printed]")


def _print(report: ReconstructionReport) -> None:
    _print_ranks(report.ranks, "block")
    _print_panel(report.apart.panels[0], f"Apart: {report.apart.panels[0].title}")
    for entry in report.agreement:
        say(
            f"{entry.method}: {entry.within} of {entry.cells} cells within {entry.tolerance:g} of "
            f"the printed figure, {entry.exact} equal to it; largest difference "
            f"{entry.largest:.3f}"
        )
    for scale in report.calibration:
        say(
            f"LEMLL calibrated by {scale.n_rated} rated rows: better than scale 1 in "
            f"{scale.better_than_plain} of {scale.cells} cells, than uniform in "
            f"{scale.better_than_uniform}; Chebyshev {scale.chebyshev_over_best:.3f} times that of "
            "the best scale"
        )
