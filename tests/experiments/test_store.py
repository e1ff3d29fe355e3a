"""The store: whole files or none, claims, damage, staleness, export."""

from __future__ import annotations

import csv
import dataclasses
import errno
import os
import subprocess
import sys

import numpy as np
import pytest
from engine_methods import make_protocol, ran

from lemll import _files
from lemll.exceptions import StoreError
from lemll.lab import code
from lemll.lab.runner import run
from lemll.lab.store import Store


@pytest.fixture
def protocol():
    return make_protocol(2)


@pytest.fixture
def store(protocol, tmp_path):
    store = ran(protocol, tmp_path / "store", done=4)
    return store


def files(store: Store, suffix: str):
    return sorted((store.folder / "cells").glob(f"*{suffix}"))


def test_a_record_says_what_was_done_where_and_when(protocol, store):
    cell = next(protocol.cells())
    record = store.read(cell.id)
    assert (record.status, record.attempt, record.error) == ("done", 1, None)
    assert (record.dataset, record.method) == ("digit-tags", "Logged A")
    assert record.parameters == {"shift": 0.0, "seconds": 0.0, "fault": ""}
    assert record.setting == ["halves", 0]
    assert record.metrics.keys() == set(protocol.metrics)
    assert (record.criterion, record.criterion_value) == ("optimality", 1e-9)
    assert record.seconds.keys() == {"fit", "predict"}
    for key in ("python", "numpy", "scipy", "scikit-learn", "lemll", "blas", "cpu", "platform"):
        assert record.environment[key]
    assert record.finished.endswith("+00:00")


def test_the_arrays_are_the_test_rows_with_scores_and_predictions(protocol, store):
    cell = next(protocol.cells())
    arrays = store.arrays(store.read(cell.id))
    order = np.random.RandomState(0).permutation(1797)
    np.testing.assert_array_equal(arrays["test"], order[898:])
    assert arrays["scores"].shape == arrays["predictions"].shape == (899, 8)
    np.testing.assert_array_equal(arrays["scores"] > 0, arrays["predictions"])


def test_a_cell_without_a_record_is_pending(protocol, tmp_path):
    overview = Store(tmp_path).overview(protocol.cells())
    assert (len(overview.pending), len(overview.records), overview.count("done")) == (4, 0, 0)
    assert Store(tmp_path).read("0" * 64) is None


def test_any_changed_byte_of_a_record_is_damage(store):
    path = files(store, ".json")[0]
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in [0, 10, len(content) - 1, *rng.integers(0, len(content), 50)]:
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(StoreError, match="is damaged"):
            store.read(path.stem)
    path.write_bytes(content)
    assert store.read(path.stem).status == "done"


def test_arrays_that_were_changed_are_not_given_out(store):
    path = files(store, ".npz")[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    record = store.read(path.stem)
    with pytest.raises(StoreError, match=r"npz is damaged: .*; its cell must run again"):
        store.arrays(record)
    store.discard(record)
    assert store.read(path.stem) is None
    assert not path.exists()


def test_a_record_of_a_later_format_is_not_guessed_at(store, monkeypatch):
    monkeypatch.setattr("lemll.lab.records._FORMAT", 2)
    with pytest.raises(StoreError, match="another version of lemll, in an unknown format"):
        store.read(files(store, ".json")[0].stem)


def test_results_of_other_code_are_stale_and_run_again(protocol, store, monkeypatch, log):
    monkeypatch.setattr(code, "_file_sha256", lambda _: "another version")
    overview = store.overview(protocol.cells())
    assert (len(overview.records), len(overview.stale), len(overview.pending)) == (0, 4, 4)
    assert run(protocol, store, backend="sequential").done == 4
    assert len(log.read_text().split()) == 4
    overview = store.overview(protocol.cells())
    assert (len(overview.records), len(overview.stale)) == (4, 4)


def test_records_of_other_protocols_are_counted_apart(store):
    overview = store.overview(make_protocol(2, seconds=0.001).cells())
    assert (len(overview.records), overview.unrelated, len(overview.stale)) == (0, 4, 0)


def test_a_claim_is_exclusive_and_can_be_had_again(store):
    held = store.claim("a" * 64)
    assert held is not None
    assert store.claim("a" * 64) is None
    assert store.claim("b" * 64) is not None
    held.release()
    again = store.claim("a" * 64)
    assert again is not None
    again.release()


def test_what_is_claimed_is_running(protocol, store):
    cell = next(protocol.cells())
    held = store.claim(cell.id)
    assert [found.id for found in store.overview(protocol.cells()).running] == [cell.id]
    store.discard(store.read(cell.id))
    assert store.read(cell.id) is not None  # someone is running it: left alone
    held.release()
    assert store.overview(protocol.cells()).running == []


@pytest.mark.slow
def test_a_killed_holder_leaves_no_claim(store):
    code = (
        "import os, signal, sys; from lemll.lab.store import Store; "
        "assert Store(sys.argv[1]).claim('c' * 64); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, store.folder], check=False)
    assert ended.returncode == -9
    assert (store.folder / "claims" / ("c" * 64)).exists()
    held = store.claim("c" * 64)
    assert held is not None
    held.release()
    assert not (store.folder / "claims" / ("c" * 64)).exists()


def test_a_claim_released_between_opening_and_locking_is_tried_again(store, monkeypatch):
    path = store.folder / "claims" / ("d" * 64)
    real, calls = os.open, []

    def open_then_lose(name, *rest):
        descriptor = real(name, *rest)
        if os.fspath(name) == str(path) and not calls:
            calls.append(name)
            os.unlink(path)  # as the holder does when it releases
        return descriptor

    monkeypatch.setattr(_files.os, "open", open_then_lose)
    held = store.claim("d" * 64)
    assert calls
    assert path.exists()
    assert store.claim("d" * 64) is None
    held.release()


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_write_that_fails_changes_nothing(store, monkeypatch, call, number):
    path = files(store, ".json")[0]
    before = path.read_bytes()
    record = store.read(path.stem)

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(_files.os, call, refuse)
    with pytest.raises(StoreError, match=f"{os.strerror(number)}. Results stored before are safe"):
        store.write(dataclasses.replace(record, attempt=2), None)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert not files(store, ".tmp")


def test_export_to_csv_and_parquet(store, tmp_path):
    assert store.export(tmp_path / "out.csv") == 4
    with open(tmp_path / "out.csv", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert sorted(row["method"] for row in rows) == ["Logged A", "Logged A", "Logged B", "Logged B"]
    by_id = {record.id: record for record in store.records()}
    for row in rows:
        assert float(row["one_error"]) == by_id[row["id"]].metrics["one_error"]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert store.export(tmp_path / "out.parquet") == 4
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["id"] for row in table] == [row["id"] for row in rows]


def test_export_says_what_it_cannot_do(store, tmp_path):
    with pytest.raises(ValueError, match=r"cannot export to 'out.xls'; the name must end in .csv"):
        store.export(tmp_path / "out.xls")
    with pytest.raises(ValueError, match="the store has no record to export"):
        Store(tmp_path / "empty").export(tmp_path / "out.csv")


def test_a_store_that_is_not_there_or_cannot_be(tmp_path):
    with pytest.raises(StoreError, match="is not a store of results; run the protocol first"):
        Store(tmp_path / "nowhere", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create a store in .*Not a directory"):
        Store(tmp_path / "file")


def test_a_system_without_file_locks_is_told_so(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(StoreError, match="needs the file locks of a POSIX system; use Linux"):
        store.claim("e" * 64)
