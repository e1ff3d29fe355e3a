"""A Dask cluster gives what processes give, also where workers die."""

import os
import signal
import threading
import time

import pytest
from engine_methods import make_protocol, texts, with_fault

from lemll.exceptions import LemllError
from lemll.lab import workers as _dask
from lemll.lab.runner import run
from lemll.lab.store import Store
from lemll.lab.workers import DaskCells, dask_client

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")


@pytest.fixture(name="client", scope="module")
def _client(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    # Workers inherit where the methods for tests are, and where they write their log.
    helpers = os.path.join(os.path.dirname(__file__), "helpers")
    patch.setenv("PYTHONPATH", os.pathsep.join([helpers, os.environ.get("PYTHONPATH", "")]))
    folder = tmp_path_factory.mktemp("dask")
    patch.setenv("LEMLL_TEST_LOG", str(folder / "executions.log"))
    patch.setenv("LEMLL_TEST_ONCE", str(folder / "once"))
    with dask_client("local:2") as client:
        yield client
    patch.undo()


def test_one_process_two_processes_and_a_cluster_give_the_same_tables(client, tmp_path, log):
    protocol = make_protocol(6)
    tables = []
    for name, options in (("one", {}), ("two", {"n_jobs": 2}), ("dask", {"client": client})):
        store = Store(tmp_path / name)
        end = run(protocol, store, **options)
        assert end.done == end.total
        tables.append(texts(protocol, store))
    assert tables[0] == tables[1] == tables[2]


def test_a_worker_killed_in_the_middle_costs_nothing(client, tmp_path, log):
    protocol = make_protocol(10)
    expected = Store(tmp_path / "expected")
    run(protocol, expected)
    store = Store(tmp_path / "killed")
    killed = []

    def kill_once(progress):
        if progress.done >= 3 and not killed:
            pids = client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            threading.Timer(0, os.kill, (killed[0], signal.SIGKILL)).start()

    end = run(protocol, store, client=client, callback=kill_once)
    assert killed
    assert (end.done, end.failed) == (end.total, 0)
    assert texts(protocol, store) == texts(protocol, expected)


def test_a_cell_that_kills_its_workers_fails_alone(client, tmp_path, log):
    protocol = with_fault("die", 1)
    store = Store(tmp_path / "store")
    end = run(protocol, store, client=client)
    assert (end.done, end.failed) == (1, 1)
    (record,) = [r for r in store.records() if r.status == "failed"]
    assert record.error["type"] == "KilledWorker"
    assert "the workers that ran this cell died" in record.error["message"]


@pytest.mark.nightly(when=lambda fault: fault != "exit")
@pytest.mark.parametrize("fault", ["raise", "exit", "interrupt"])
def test_a_method_that_fails_or_ends_its_worker_fails_alone(client, tmp_path, log, fault):
    end = run(with_fault(fault, 1), Store(tmp_path / "store"), client=client)
    assert (end.done, end.failed) == (1, 1)


def test_data_are_sent_once_and_again_if_they_were_lost(client, tmp_path, log, monkeypatch):
    sent = []
    send = DaskCells._send
    monkeypatch.setattr(
        DaskCells, "_send", lambda self, data: sent.append(data) or send(self, data)
    )
    end = run(make_protocol(6), Store(tmp_path / "store"), client=client)
    assert end.done == end.total > 6
    assert len(sent) == len({id(data) for data in sent}) == 1
    cells = DaskCells(client)
    monkeypatch.setattr("lemll.lab.runner.DaskCells", lambda _: cells)
    lost = []

    def lose(progress):
        if progress.done == 2 and not lost:
            lost.append(next(iter(cells._data.values())))
            lost[0].cancel(force=True)

    again = run(make_protocol(6), Store(tmp_path / "again"), client=client, callback=lose)
    assert lost
    assert (again.done, again.failed) == (again.total, 0)
    # Once for each run, and once more.
    assert len(sent) >= 3


def test_a_run_that_is_stopped_cancels_what_is_under_way(client, tmp_path, log):
    protocol = make_protocol(4, seconds=0.3)
    store = Store(tmp_path / "store")

    def stop(progress):
        if progress.done >= 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(protocol, store, client=client, callback=stop)
    time.sleep(0.1)
    end = run(protocol, store, client=client)
    assert end.done == end.total


@pytest.mark.parametrize("address", ["local:", "local:0", "local:two"])
def test_a_wrong_number_of_workers_is_refused(address):
    with (
        pytest.raises(ValueError, match="'local:' needs a number of workers, at least 1"),
        dask_client(address),
    ):
        pass


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(_dask, "_CONNECT_SECONDS", 1)
    with (
        pytest.raises(LemllError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:1'.*local"),
        dask_client("tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.parametrize("address", ["", "host", "tcp://host", "http://host:8786"])
def test_what_is_no_address_is_refused_at_once(address):
    with (
        pytest.raises(ValueError, match=r"is not the address of a Dask .*tcp://host:8786"),
        dask_client(address),
    ):
        pass


def test_a_cluster_without_workers_is_named(monkeypatch):
    monkeypatch.setattr(_dask, "_CONNECT_SECONDS", 0.5)
    cluster = distributed.LocalCluster(
        n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    with (
        cluster,
        dask_client(cluster.scheduler_address) as connected,
        pytest.raises(LemllError, match=r"has no worker after 0.5 s; start some with `dask worker"),
    ):
        _ = DaskCells(connected).n_slots


@pytest.mark.parametrize("limit", ["time_limit", "memory_limit"])
def test_limits_need_processes_of_this_machine(client, tmp_path, limit):
    with pytest.raises(ValueError, match=f"{limit} needs backend='loky', got a Dask client"):
        run(make_protocol(1), Store(tmp_path / "store"), client=client, **{limit: 1.0})
