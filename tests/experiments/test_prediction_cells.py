"""Committed cells: collected from a store, read back, tabulated, repeated."""

import dataclasses

import pytest
from committed import change, keep, reproduce

from lemll.exceptions import ProtocolError, StoreError
from lemll.lab import Store, run
from lemll.lab.studies.prediction import (
    CellKey,
    cells_table,
    planned_cells,
    read_cells,
    read_protocols,
    write_cells,
)
from lemll.lab.studies.prediction_report import make_cells_report
from lemll.lab.studies.prediction_runs import choices, collect, repeat

pytestmark = pytest.mark.slow

FIRST = """
experiment = "prediction"
datasets = ["digit-tags"]
[splits]
n_splits = 3
[methods.LEMLL]
alpha = 1.0
[methods."MSVR, 1"]
method = "MSVR"
alpha = 1.0
"""
SECOND = """
experiment = "prediction"
datasets = ["digit-tags"]
methods = ["BR"]
[splits]
n_splits = 2
[tuning]
folds = 2
[tuning.grids.BR]
C = [0.1, 1.0]
"""


@pytest.fixture(name="ran", scope="module")
def _ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "a.toml").write_text(FIRST, encoding="utf-8")
    (folder / "b.toml").write_text(SECOND, encoding="utf-8")
    store = Store(tmp_path_factory.mktemp("run") / "store")
    for protocol in read_protocols(folder):
        run(protocol, store, backend="sequential")
    assert collect(folder, store) == 8
    return folder, store


@pytest.fixture(name="folder")
def _folder(ran, tmp_path):
    for file in ran[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_the_table_holds_what_the_store_holds(ran, folder):
    cells = {cell.key: cell for cell in read_cells(folder)}
    assert len(cells) == 8
    for record in ran[1].records():
        cell = cells[CellKey(record.dataset, record.method, record.setting[-1])]
        assert cell.status == record.status == "done"
        assert record.code.startswith(cell.code)
        for name, value in record.metrics.items():
            assert cell.metrics[name] == pytest.approx(value, abs=1e-6)
    chosen = cells[CellKey("digit-tags", "BR", 0)].chosen
    assert chosen in ('{"C": 0.1}', '{"C": 1.0}')


def test_writing_and_reading_are_inverse_and_collecting_twice_adds_nothing(ran, folder):
    before = (folder / "cells.csv").read_bytes()
    write_cells(folder, reversed(read_cells(folder)))
    assert (folder / "cells.csv").read_bytes() == before
    assert collect(folder, ran[1]) == 0


def test_a_table_has_different_numbers_of_splits(folder):
    cells = read_cells(folder)
    table = cells_table(cells, planned_cells(read_protocols(folder)))
    panel = table.panels[0]
    assert panel.methods == ("LEMLL", "MSVR, 1", "BR")
    assert [panel.entries["digit-tags", m].wanted for m in panel.methods] == [3, 3, 2]
    assert panel.ranked == ("digit-tags",)
    without = [cell for cell in cells if cell.key != CellKey("digit-tags", "BR", 1)]
    entry = cells_table(without, planned_cells(read_protocols(folder))).panels[0]
    assert not entry.entries["digit-tags", "BR"].complete


def test_repeated_cells_are_the_same_and_altered_ones_are_found(folder):
    assert not any(found.differences for found in repeat(folder, 3))
    cells = read_cells(folder)
    wrong = [
        dataclasses.replace(c, metrics={**c.metrics, "one_error": c.metrics["one_error"] + 0.001})
        for c in cells
    ]
    write_cells(folder, wrong)
    (found,) = repeat(folder, 1, random_state=1)
    (difference,) = found.differences
    assert difference.startswith("one_error: ")


def test_the_report_counts_and_times_the_cells(folder):
    summary = make_cells_report(folder).summary()
    assert "8 of 8 planned cells are done" in summary
    assert "Mean seconds of a cell" in summary
    assert "Data sets on which these methods are complete: digit-tags." in summary


def test_the_command_writes_the_same_tables_twice_and_verifies(folder, tmp_path):
    command = ["prediction", "--from", folder, "--output"]
    for name in ("one", "two"):
        made = reproduce(*command, tmp_path / name, "--verify", 2)
        assert "0 of 2 cells differ" in made
    for file in ("summary.md", "tables.md", "tables.tex", "tables.csv", "report.html"):
        one, two = ((tmp_path / name / file).read_bytes() for name in ("one", "two"))
        assert one == two, file


def test_complete_runs_only_the_cells_that_the_table_lacks(folder, tmp_path):
    before = {cell.key: cell for cell in read_cells(folder)}
    lost = [CellKey("digit-tags", "LEMLL", 2), CellKey("digit-tags", "MSVR, 1", 0)]
    keep(folder, lambda key: key not in lost)
    store = tmp_path / "store"
    command = ["complete", folder, "digit-tags", "--store", store]
    reproduce(*command, "--splits", 2)
    assert [record.method for record in Store(store).records()] == ["MSVR, 1"]
    reproduce(*command, "--methods", "LEMLL, BR")
    assert len(list(Store(store).records())) == 2
    after = {cell.key: cell for cell in read_cells(folder)}
    assert after.keys() == before.keys()
    for key, cell in after.items():
        assert cell.metrics == pytest.approx(before[key].metrics, abs=1e-6)


def test_complete_takes_the_choice_of_the_first_split_from_the_table(folder, tmp_path):
    first = 'folds = 2\nsplits = "first"'
    (folder / "b.toml").write_text(SECOND.replace("folds = 2", first), "utf-8")
    cells = {cell.key: cell for cell in read_cells(folder)}
    key = CellKey("digit-tags", "BR", 0)
    # A value that a search would not select shows where the parameters come from.
    other = {'{"C": 0.1}': '{"C": 1.0}', '{"C": 1.0}': '{"C": 0.1}'}[cells[key].chosen]
    first_half = cells.pop(key)
    del cells[key._replace(split=1)]
    searched = first_half.chosen
    tries = ((other, other), ('{"C": 5.0}', searched), ("[1]", searched))
    for number, (shown, expected) in enumerate(tries):
        write_cells(folder, [*cells.values(), dataclasses.replace(first_half, chosen=shown)])
        reproduce("complete", folder, "--methods", "BR", "--store", tmp_path / f"store{number}")
        found = {cell.key: cell for cell in read_cells(folder)}
        assert found[key._replace(split=1)].chosen == expected


def test_choices_of_several_measures_that_are_damaged(folder):
    several = 'folds = 2\nsplits = "first"\nmetric = ["average_precision", "hamming_loss"]'
    (folder / "b.toml").write_text(SECOND.replace("folds = 2", several), "utf-8")
    key = CellKey("digit-tags", "BR", 0)
    later = next(c for c in read_protocols(folder)[1].cells() if c.setting.number == 1)
    sound = '{"average_precision": {"C": 0.1}, "hamming_loss": {"C": 1.0}}'
    for shown, accepted in ((sound, True), ("[1]", False), ('{"C": 0.1}', False), ("7", False)):
        change(folder, lambda one: one == key, chosen=shown)
        assert (choices(folder)(later) is not None) == accepted
    change(folder, lambda one: one == key, chosen="{")
    with pytest.raises(StoreError, match="half 0 are not JSON"):
        choices(folder)(later)


def test_an_empty_store_leaves_a_new_folder_without_a_table(tmp_path):
    (tmp_path / "a.toml").write_text(FIRST, encoding="utf-8")
    assert collect(tmp_path, Store(tmp_path / "store")) == 0
    assert not (tmp_path / "cells.csv").exists()
    assert read_cells(tmp_path) == []


def test_complete_ignores_protocols_without_the_data_set(folder, tmp_path):
    (protocol, _) = read_protocols(folder)
    assert protocol.on_datasets(["another"]) is None
    assert protocol.on_datasets(["digit-tags", "another"]) == protocol


def test_an_experiment_without_lemll_has_its_own_control(folder):
    (folder / "a.toml").write_text(FIRST.replace("[methods.LEMLL]\nalpha = 1.0", ""), "utf-8")
    keep(folder, lambda key: key.method != "LEMLL")
    assert make_cells_report(folder).table.control == "MSVR, 1"


def test_refusals(folder, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ProtocolError, match="has no protocol"):
        read_protocols(empty)
    (empty / "a.toml").write_text(FIRST, encoding="utf-8")
    with pytest.raises(StoreError, match="has no finished cell of the protocols"):
        make_cells_report(empty)
    path = folder / "cells.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(",done,", ",done,x", 1).replace(",0.", ",x.", 1), encoding="utf-8")
    with pytest.raises(StoreError, match="cells.csv, line 2: could not convert"):
        read_cells(folder)
    path.write_text("a,b\n", encoding="utf-8")
    with pytest.raises(StoreError, match="the first line must be dataset,method,split"):
        read_cells(folder)
