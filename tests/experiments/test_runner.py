"""The runner: every cell once, limits kept, faults recorded, nothing lost."""

import dataclasses
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from engine_methods import (
    Logged,
    expected_token,
    make_protocol,
    plan,
    ran,
    texts,
    with_fault,
    with_helpers,
)

from lemll import _files
from lemll.datasets import (
    Dataset,
    binarize_distribution,
    load_digit_tags,
    make_artificial,
    write_dataset,
    write_npz,
)
from lemll.exceptions import StoreError
from lemll.lab import Method, get_method, list_methods, methods, register
from lemll.lab import execute as _execute
from lemll.lab.cells import Setting, Splits, Tuning
from lemll.lab.methods import MethodSpec
from lemll.lab.protocol import Protocol
from lemll.lab.runner import run
from lemll.lab.store import Store
from lemll.metrics import chebyshev
from lemll.predictors import BinaryRelevance

pytestmark = pytest.mark.slow


def records(protocol, store, method):
    found = store.overview(protocol.cells()).records.values()
    return [record for record in found if record.method == method]


def test_one_and_two_processes_give_the_same_tables_as_none(tmp_path, log):
    protocol = make_protocol(6)
    tables = {}
    for name, options in {
        "in place": {"backend": "sequential"},
        "threads": {"backend": "threading", "n_jobs": 2},
        "one": {"n_jobs": 1},
        "two": {"n_jobs": 2},
    }.items():
        store = Store(tmp_path / name)
        assert run(protocol, store, **options).done == 12
        tables[name] = texts(protocol, store)
    assert len(set(tables.values())) == 1
    assert sorted(log.read_text().split()) == sorted(
        4 * [expected_token(cell) for cell in protocol.cells()]
    )


def test_a_second_run_does_nothing(tmp_path, log):
    protocol = make_protocol(3)
    store = ran(protocol, tmp_path / "store")
    end = run(protocol, store, backend="sequential")
    assert (end.done, end.total, end.seconds_left) == (6, 6, None)
    assert len(log.read_text().split()) == 6


def test_two_runners_on_one_store_do_every_cell_once(tmp_path, log):
    code = (
        "import sys; from engine_methods import make_protocol; "
        "from lemll.lab import Store, run; "
        "end = run(make_protocol(12, seconds=0.05), Store(sys.argv[1]), backend='sequential'); "
        "assert end.done == 24, end"
    )
    runners = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path / "store"], env=with_helpers())
        for _ in range(2)
    ]
    assert [runner.wait(timeout=120) for runner in runners] == [0, 0]
    protocol = make_protocol(12, seconds=0.05)
    assert sorted(log.read_text().split()) == sorted(map(expected_token, protocol.cells()))
    assert list((tmp_path / "store" / "claims").iterdir()) == []


def test_cells_of_another_runner_are_waited_for(tmp_path):
    protocol, store = make_protocol(1), Store(tmp_path / "store")
    cell = next(protocol.cells())
    held = store.claim(cell.id)  # flock excludes another opening of the file, in one process too
    seen = []
    thread = threading.Thread(
        target=lambda: seen.append(run(protocol, store, backend="sequential"))
    )
    thread.start()
    time.sleep(0.6)
    assert thread.is_alive()
    assert store.read(cell.id) is None
    held.release()
    thread.join(timeout=30)
    assert seen[0].done == 2


def test_a_failure_is_kept_with_its_traceback_and_retried_on_request(tmp_path, log):
    protocol, store = with_fault("raise-once", 1), Store(tmp_path / "store")
    end = run(protocol, store, backend="sequential")
    assert (end.done, end.failed) == (1, 1)
    (record,) = records(protocol, store, "Logged A")
    assert record.error["type"] == "RuntimeError"
    assert record.error["message"].startswith("RuntimeError: fails the first time (")
    assert "in _fail" in record.error["traceback"]
    assert record.outputs is None
    assert run(protocol, store, backend="sequential").failed == 1  # a run leaves it as it is
    end = run(protocol, store, backend="sequential", retry=["failed"])
    assert (end.done, end.failed) == (2, 0)
    (record,) = records(protocol, store, "Logged A")
    assert (record.status, record.attempt) == ("done", 2)


def test_a_retry_that_fails_again_ends(tmp_path, log):
    protocol = with_fault("raise", 2)
    store = ran(protocol, tmp_path / "store")
    assert run(protocol, store, backend="sequential", retry=["failed"]).failed == 2
    assert [record.attempt for record in records(protocol, store, "Logged A")] == [2, 2]


def test_a_cell_over_its_time_is_ended_within_a_c_call_and_the_others_go_on(tmp_path, log):
    protocol, store = with_fault("endless-c-call", 1), Store(tmp_path / "store")
    end = run(protocol, store, time_limit=0.5)
    assert (end.done, end.timeout) == (1, 1)
    (record,) = records(protocol, store, "Logged A")
    assert record.status == "timeout"
    assert record.error["message"] == "took longer than the time limit of 0.5 s"
    assert [record.status for record in records(protocol, store, "Logged B")] == ["done"]


def test_a_cell_over_its_memory_fails_and_the_others_go_on(tmp_path, log):
    protocol, store = with_fault("memory", 1), Store(tmp_path / "store")
    end = run(protocol, store, memory_limit=1)
    assert (end.done, end.failed) == (1, 1)
    (record,) = records(protocol, store, "Logged A")
    assert "the memory limit was reached: Unable to allocate 16.0 GiB" in record.error["message"]


def test_a_worker_killed_from_outside_loses_nothing(tmp_path, log):
    protocol, store = with_fault("die-once", 3), Store(tmp_path / "store")
    end = run(protocol, store, n_jobs=2)
    assert (end.done, end.failed) == (6, 0)
    executions = log.read_text().split()
    assert sorted(set(executions)) == sorted(map(expected_token, protocol.cells()))
    assert len(executions) == 7  # only the cell of the worker that died ran again


def test_a_cell_that_kills_its_worker_twice_fails(tmp_path, log):
    protocol, store = with_fault("die", 1), Store(tmp_path / "store")
    end = run(protocol, store)
    assert (end.done, end.failed) == (1, 1)
    (record,) = records(protocol, store, "Logged A")
    assert record.error["type"] == "ProcessDied"
    assert "its process died twice" in record.error["message"]
    assert "SIGKILL" in record.error["message"]


@pytest.mark.nightly(when=lambda number: number == errno.EACCES)
@pytest.mark.parametrize("options", [{"backend": "sequential"}, {"n_jobs": 2}], ids=["0", "2"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES], ids=["full", "forbidden"])
def test_a_disk_that_refuses_in_the_middle_stops_the_run_and_resume_works(
    tmp_path, monkeypatch, log, options, number
):
    protocol, store = make_protocol(6), Store(tmp_path / "store")
    real, left = os.fsync, [9]

    def refuse_later(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(_files.os, "fsync", refuse_later)
    start = time.monotonic()
    with pytest.raises(StoreError, match=f"{os.strerror(number)}.*Results stored before are safe"):
        run(protocol, store, **options)
    assert time.monotonic() - start < 30
    monkeypatch.setattr(_files.os, "fsync", real)
    overview = store.overview(protocol.cells())
    assert overview.count("done") >= 2
    assert len(overview.pending) >= 6
    assert not overview.damaged
    assert not overview.running
    assert not list((tmp_path / "store" / "cells").glob("*.tmp"))
    assert run(protocol, store, backend="sequential").done == 12
    reference = ran(protocol, tmp_path / "reference")
    assert texts(protocol, store) == texts(protocol, reference)


@pytest.fixture
def small_disk(tmp_path):
    """Give a folder that is a file system of its own, with room for a few cells."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    if (
        not shutil.which("mount")
        or subprocess.run(command, check=False, capture_output=True).returncode
    ):
        pytest.skip("a file system of a given size can be mounted by the superuser only")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk, tmp_path, log):
    protocol, store = make_protocol(6), Store(small_disk / "store")
    with pytest.raises(StoreError, match="No space left on device.*free some space"):
        run(protocol, store, backend="sequential")
    overview = store.overview(protocol.cells())
    done = overview.count("done")
    assert 1 <= done < 12
    assert len(overview.pending) == 12 - done
    assert not overview.damaged
    # Room is made by moving the store to another disk, as it is.
    moved = Store(shutil.copytree(small_disk / "store", tmp_path / "moved"))
    log.write_text("")
    assert run(protocol, moved, backend="sequential").done == 12
    assert len(log.read_text().split()) == 12 - done


def test_a_claim_that_cannot_be_written_stops_the_run(tmp_path, monkeypatch):
    protocol, store = make_protocol(6), Store(tmp_path / "store")
    real, left = Store.claim, [5]

    def refuse_later(self, cell_id):
        left[0] -= 1
        if left[0] < 0:
            raise StoreError("No space left on device")
        return real(self, cell_id)

    monkeypatch.setattr(Store, "claim", refuse_later)
    with pytest.raises(StoreError, match="No space left on device"):
        run(protocol, store, backend="threading", n_jobs=2)
    monkeypatch.undo()
    assert store.overview(protocol.cells()).count("done") == 5
    assert run(protocol, store, backend="sequential").done == 12


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_became_read_only_stops_the_run(tmp_path):
    protocol, store = make_protocol(2), Store(tmp_path / "store")
    (tmp_path / "store" / "cells").chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        run(protocol, store, backend="sequential")
    (tmp_path / "store" / "cells").chmod(0o700)
    assert run(protocol, store, backend="sequential").done == 4


def test_workers_end_with_a_runner_that_is_killed(tmp_path, log):
    code = (
        "import sys; from engine_methods import make_protocol; "
        "from lemll.lab import Store, run; "
        "run(make_protocol(2, seconds=600), Store(sys.argv[1]))"
    )
    runner = subprocess.Popen([sys.executable, "-c", code, tmp_path / "store"], env=with_helpers())
    deadline = time.monotonic() + 60
    while not log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    children = Path(f"/proc/{runner.pid}/task/{runner.pid}/children")
    if not children.exists():
        runner.kill()
        runner.wait()
        pytest.skip("this system does not list a process's children")
    workers = [int(child) for child in children.read_text().split()]
    assert workers
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline, "a worker outlived its runner"
        time.sleep(0.05)


def test_an_estimator_that_cannot_be_sent_to_a_worker_fails_its_cell(tmp_path):
    protocol = make_protocol(1)
    kept = dict(methods._METHODS)
    try:
        made = methods.get_method("learner", "Logged A").make()
        made.unsendable = threading.Lock()
        methods._METHODS.pop(("learner", "Logged A"))
        register(Method("Logged A", "learner", lambda: made))
        store = Store(tmp_path / "store")
        end = run(protocol, store)
    finally:
        methods._METHODS.clear()
        methods._METHODS.update(kept)
    assert (end.done, end.failed) == (1, 1)
    failed = [record for record in store.records() if record.status == "failed"]
    assert "lock" in failed[0].error["message"] + failed[0].error["traceback"]


def test_a_memory_limit_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ValueError, match="memory_limit needs Linux; leave it out"):
        run(make_protocol(1), Store(tmp_path / "store"), memory_limit=1)


def test_progress_counts_names_and_estimates(tmp_path):
    seen = []
    run(make_protocol(2), Store(tmp_path / "store"), backend="sequential", callback=seen.append)
    assert {progress.total for progress in seen} == {4}
    assert seen[0].running == ()
    assert seen[0].seconds_left is None
    assert seen[1].running == ("Logged A on digit-tags, halves 0",)
    ends = [progress for progress in seen if progress.last is not None]
    assert [progress.ended for progress in ends] == [1, 2, 3, 4]
    assert ends[0].last.method == "Logged A"
    assert ends[1].seconds_left > 0
    assert ends[3].seconds_left == 0
    assert ends[3].running == ()


def test_a_callback_that_raises_ends_the_run(tmp_path):
    def refuse(progress):
        if progress.ended == 2:
            raise RuntimeError("no more")

    protocol, store = make_protocol(4), Store(tmp_path / "store")
    with pytest.raises(RuntimeError, match="no more"):
        run(protocol, store, backend="threading", n_jobs=2, callback=refuse)
    assert not store.overview(protocol.cells()).running
    assert run(protocol, store, backend="sequential").done == 8


def test_a_data_file_changed_under_a_run_fails_its_cells(tmp_path):
    from lemll.lab import cells as _sources

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.integers(0, 2, (40, 4))
    write_dataset(Dataset(X=X, Y=Y), tmp_path / "mine.npz")
    protocol = plan("Logged A", datasets=(str(tmp_path / "mine.npz"),), splits=Splits("kfold", 2))
    list(protocol.cells())  # loaded and remembered in this process, as the runner's first step does
    write_dataset(Dataset(X=X + 1, Y=Y), tmp_path / "mine.npz")
    store = Store(tmp_path / "store")
    assert run(protocol, store).failed == 2
    (record, _) = records(protocol, store, "Logged A")
    assert "'mine' is not the one the protocol was expanded with" in record.error["message"]
    _sources.load_source.cache_clear()


def test_code_changed_under_a_run_stops_it_and_the_next_run_has_all_cells(tmp_path, monkeypatch):
    protocol, store = make_protocol(1), Store(tmp_path / "store")
    with monkeypatch.context() as patched:
        patched.setattr(_execute, "package_sha256", lambda: "another version")
        with pytest.raises(StoreError, match="lemll have changed since the run began"):
            run(protocol, store, backend="sequential")
    assert list(store.records()) == []
    assert run(protocol, store, backend="sequential").done == 2


def test_tuning_chooses_on_the_training_rows_and_says_what(tmp_path, log):
    protocol = plan(
        "MSVR",
        "Logged A",
        splits=1,
        tuning=Tuning("ranking_loss", 3, 0, {"MSVR": {"alpha": (1.0, 1000000.0)}}),
    )
    store = ran(protocol, tmp_path / "store", done=2)
    tuned, untuned = store.overview(protocol.cells()).records.values()
    if tuned.method != "MSVR":
        tuned, untuned = untuned, tuned
    assert tuned.chosen == {"alpha": 1.0}
    assert tuned.criterion == "optimality"
    assert tuned.criterion_value <= 1e-10
    assert untuned.chosen is None


def test_every_registered_learner_runs(tmp_path):
    digits = load_digit_tags()
    write_npz(Dataset(X=digits.X[:80], Y=digits.Y[:80, :3]), tmp_path / "few.npz")
    protocol = Protocol(
        name="p",
        experiment="prediction",
        datasets=(str(tmp_path / "few.npz"),),
        # Those of the helpers need a log to write into.
        methods=tuple(m.name for m in list_methods("learner") if not m.name.startswith("Logged")),
        splits=Splits("halves", 1),
    )
    store = ran(protocol, tmp_path / "store")
    found = {record.method: record for record in store.records()}
    assert {name: record.error for name, record in found.items() if record.error} == {}
    assert len(found) == len(protocol.methods) >= 11
    # One value a label: the worst of them.
    train = np.random.RandomState(0).permutation(80)[:40]
    worst = BinaryRelevance().fit(digits.X[train], digits.Y[train, :3]).gradient_norm_.max()
    assert found["BR"].criterion == "gradient_norm"
    assert found["BR"].criterion_value == pytest.approx(worst, rel=1e-6)


def test_numbers_that_json_does_not_know_are_stored_all_the_same(tmp_path, monkeypatch):
    real = Logged.fit

    def fit(self, X, y):
        real(self, X, y).optimality_ = np.nan
        return self

    monkeypatch.setattr(Logged, "fit", fit)
    protocol = plan(
        MethodSpec("Logged A", "", {"seconds": np.float64(0), "fault": None}),
        splits=1,
        tuning=Tuning("hamming_loss", 2, 0, {"Logged A": {"shift": (np.float32(0.5),)}}),
    )
    store = ran(protocol, tmp_path / "store", done=1)
    (record,) = store.records()
    assert record.criterion is record.criterion_value is None
    assert record.chosen == {"shift": 0.5}
    assert record.parameters == {"shift": 0.0, "seconds": 0.0, "fault": None}


def test_a_reconstruction_is_what_the_enhancer_recovers(tmp_path):
    protocol = plan(
        "LEMLL", experiment="reconstruction", datasets=("artificial",), thresholds=(0.3, 0.5)
    )
    store = ran(protocol, tmp_path / "store", done=2)
    data = make_artificial(random_state=0)
    for cell in protocol.cells():
        record = store.read(cell.id)
        Y = binarize_distribution(data.D, cell.setting.threshold)
        expected = get_method("enhancer", "LEMLL").make().fit_enhance(data.X, Y)
        np.testing.assert_allclose(store.arrays(record)["distribution"], expected, atol=1e-9)
        assert record.metrics["chebyshev"] == pytest.approx(chebyshev(data.D, expected), abs=1e-9)
        assert record.criterion_value <= 1e-6


def test_warnings_and_undefined_metrics_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    # All rows are full: ranking metrics are not defined, Hamming loss is.
    write_dataset(Dataset(X=rng.normal(size=(30, 3)), Y=np.ones((30, 2))), tmp_path / "full.npz")
    protocol = plan(
        MethodSpec("LEMLL", "", {"max_iter": 1}),
        datasets=("digit-tags", str(tmp_path / "full.npz")),
        splits=1,
        metrics=("hamming_loss", "ranking_loss"),
    )
    store = ran(protocol, tmp_path / "store", done=2)
    digits, full = (store.read(cell.id) for cell in protocol.cells())
    assert any(text.startswith("ConvergenceWarning: LEMLL stopped") for text in digits.warnings)
    assert full.metrics["ranking_loss"] is None
    assert full.metrics["hamming_loss"] is not None
    assert any(text.startswith("ranking_loss: ") for text in full.warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": 0}, "n_jobs must be a whole number >= 1, got 0"),
        ({"time_limit": -1}, "time_limit must be finite and > 0, got -1"),
        ({"memory_limit": 1, "backend": "threading"}, "memory_limit needs backend='loky'"),
    ],
)
def test_what_a_run_cannot_do_is_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(make_protocol(1), Store(tmp_path / "store"), **options)


@pytest.mark.parametrize(
    ("cell_of", "setting", "message"),
    [
        ("prediction", Setting(threshold=0.5), "a prediction needs splits"),
        ("reconstruction", Setting(Splits()), "a reconstruction needs a threshold"),
        ("prediction", Setting(Splits(), 0, "0" * 64), "halves 0 has other rows here than where"),
    ],
)
def test_a_cell_that_is_not_what_it_says_fails(cell_of, setting, message):
    data = {"prediction": "digit-tags", "reconstruction": "artificial"}[cell_of]
    protocol = plan("LEMLL", experiment=cell_of, datasets=(data,))
    cell = dataclasses.replace(next(protocol.cells()), setting=setting)
    estimator = protocol.estimator(cell.method)
    outcome = _execute.execute(
        _execute.Task(cell, _execute.package_sha256(), estimator, protocol.metrics)
    )
    assert outcome.status == "failed"
    assert message in outcome.error["message"]


@pytest.mark.nightly(when=lambda fault, options: (fault == "exit") == ("backend" in options))
@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"backend": "threading", "n_jobs": 2}], ids=str)
@pytest.mark.parametrize(
    ("fault", "kind"), [("exit", "SystemExit"), ("interrupt", "KeyboardInterrupt")]
)
def test_a_method_that_ends_its_worker_fails_alone(tmp_path, log, fault, kind, options):
    protocol, store = with_fault(fault), Store(tmp_path / "store")
    end = run(protocol, store, **options)
    assert (end.done, end.failed) == (2, 2)
    assert {r.error["type"] for r in records(protocol, store, "Logged A")} == {kind}


@pytest.mark.parametrize("fault", ["exit", "interrupt"])
def test_what_may_be_the_users_own_signal_ends_a_run_in_place(tmp_path, log, fault, monkeypatch):
    # A shell starts jobs in the background with an ignored Ctrl-C.
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        run(with_fault(fault), Store(tmp_path / "store"), backend="sequential")


def test_messages_and_tracebacks_are_stored_in_part(tmp_path, log):
    protocol, store = with_fault("loud", 1), Store(tmp_path / "store")
    assert run(protocol, store, backend="sequential").failed == 1
    (record,) = records(protocol, store, "Logged A")
    assert re.search(r"\.\.\. \(998\d{3} characters cut\)$", record.error["message"])
    assert len(record.error["message"]) < 3_000
    assert len(record.error["traceback"]) < 21_000
    assert record.error["traceback"].endswith("again and \n")
