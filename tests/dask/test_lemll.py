"""LEMLL on a Dask cluster: the result of one machine, also if workers are lost."""

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import lemll
from lemll import dask as team
from lemll.dask import LEMLL
from lemll.datasets import load_digit_tags
from lemll.exceptions import LemllError
from lemll.topology import reconstruction_weights

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow
CHUNK = 150


@pytest.fixture(autouse=True)
def _no_leftovers():
    """Delete what lost clusters leave behind here, and not in the middle of another test.

    Dask prints a traceback when it deletes such an object, and in Python 3.11 a traceback that is
    formatted while `ast.parse` runs makes the latter fail.
    """
    yield
    gc.collect()


@pytest.fixture(name="digits", scope="module")
def _digits():
    data = load_digit_tags()
    return data.X[:450], data.Y[:450]


@pytest.fixture(name="client", scope="module")
def _client():
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as client:
        yield client


def arrays(X, Y, chunk=CHUNK):
    return da.from_array(X, chunks=(chunk, -1)), da.from_array(Y, chunks=(chunk, -1))


def block_graph(X, chunk):
    parts = [reconstruction_weights(X[i : i + chunk]) for i in range(0, len(X), chunk)]
    return sparse.csr_array(sparse.block_diag(parts, format="csr"))


@pytest.mark.parametrize("chunk", [450, CHUNK, 130])
def test_the_result_is_that_of_one_machine(client, digits, chunk):
    X, Y = digits
    model = LEMLL(tol=1e-12, client=client).fit(*arrays(X, Y, chunk))
    graph = None if chunk == len(X) else block_graph(X, chunk)
    expected = lemll.LEMLL(tol=1e-12, graph=graph).fit(X, Y)
    assert model.n_blocks_ == -(-len(X) // chunk)
    assert model.optimality_ <= 1e-12
    assert abs(model.objective_ - expected.objective_) <= 1e-8 * expected.objective_
    scores = model.decision_function(da.from_array(X, chunks=(100, -1))).compute()
    np.testing.assert_allclose(scores, expected.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(model.predict(arrays(X, Y)[0]).compute(), expected.predict(X))
    np.testing.assert_allclose(
        model.numerical_labels_.compute(), expected.numerical_labels_, atol=1e-5
    )
    np.testing.assert_allclose(
        model.label_distribution_.compute(), expected.label_distribution_, atol=1e-5
    )
    np.testing.assert_allclose(
        model.predict_distribution(arrays(X, Y)[0]).compute(),
        expected.predict_distribution(X),
        atol=1e-5,
    )


@pytest.mark.filterwarnings("ignore:labels whose known cells are all relevant:UserWarning")
def test_unknown_cells_constant_labels_and_sparse_blocks(client, digits):
    X, Y = digits
    Y = Y.astype(float)
    Y[:, 2] = 1
    Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
    graph = block_graph(X, CHUNK)
    expected = lemll.LEMLL(tol=1e-10, graph=graph, max_iter=5000).fit(X, Y)
    rows, labels = arrays(X, Y)
    rows = rows.map_blocks(sparse.csr_array)
    model = LEMLL(tol=1e-10, client=client, max_iter=5000).fit(rows, labels)
    assert abs(model.objective_ - expected.objective_) <= 1e-8 * expected.objective_
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
    assert (model.predict(rows).compute()[:, 2] == 1).all()


def test_frames_give_names(client, digits):
    X, Y = digits
    frame = pd.DataFrame(X).add_prefix("x")
    labels = pd.DataFrame(Y, columns=[f"tag {j}" for j in range(8)])
    model = LEMLL(client=client).fit(
        dd.from_pandas(frame, npartitions=2), dd.from_pandas(labels, npartitions=3)
    )
    assert list(model.label_names_) == list(labels.columns)
    assert model.predict(dd.from_pandas(frame, npartitions=1)).compute().shape == Y.shape
    turned = dd.from_pandas(frame[frame.columns[::-1]], npartitions=1)
    with pytest.raises(ValueError, match="column 0 of X is 'x63', but it was 'x0' in fit; give"):
        model.predict(turned)
    model.fit(*arrays(X, Y))
    assert not hasattr(model, "feature_names_in_")


def test_frames_with_missing_values_of_pandas_and_empty_parts(client, digits):
    X, Y = digits
    frame = pd.DataFrame(X).add_prefix("x")
    labels = pd.DataFrame(Y).add_prefix("y")
    hidden = np.random.default_rng(0).random(Y.shape) < 0.1
    table = pd.concat([frame, labels.astype("Int64").mask(hidden)], axis=1)
    table["day"] = np.arange(450)
    table = dd.from_pandas(table, npartitions=3)
    table = table[table.day < 300]  # the last part has no row left
    model = LEMLL(client=client).fit(table[list(frame)], table[list(labels)])
    expected = LEMLL(client=client).fit(
        *arrays(X[:300], np.where(hidden, np.nan, Y.astype(float))[:300])
    )
    assert model.n_blocks_ == 2
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-10)


def test_rows_in_memory_are_predicted_at_once(client, digits):
    X, Y = digits
    model = LEMLL(client=client).fit(*arrays(X, Y))
    expected = model.predict(arrays(X, Y)[0]).compute()
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), expected)
    with pytest.raises(ValueError, match="X has 3 features, but LEMLL was fitted with 64"):
        model.predict(X[:, :3])


def test_labels_that_do_not_vary(client, digits):
    X, Y = digits
    only = np.where(Y == 1, 1.0, np.nan)
    with pytest.warns(UserWarning, match="known cells are all relevant look relevant in every row"):
        model = LEMLL(client=client).fit(*arrays(X, only))
    assert (model.numerical_labels_.compute() == 1).all()
    with pytest.raises(ValueError, match="no cell of y is observed"):
        LEMLL(client=client).fit(*arrays(X, np.full(Y.shape, np.nan)))
    only = Y.astype(float)
    only[:, 3] = np.nan
    with pytest.warns(UserWarning, match="without an observed cell are never predicted: y3"):
        LEMLL(client=client).fit(*arrays(X, only))


def test_copies_share_the_client(client):
    assert clone(LEMLL(client=client)).client is client
    with pytest.raises(TypeError, match="client must be a dask.distributed.Client, got 'tcp://a'"):
        LEMLL(client="tcp://a").fit(*arrays(np.eye(4), np.eye(4)))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X, Y: (X.compute(), Y), TypeError, "X must be a Dask array or frame, got ndarray"),
        (lambda X, Y: (X, Y[:, 0]), ValueError, "y must have 2 dimensions, got 1"),
        (lambda X, Y: (X, Y[:-1]), ValueError, "X has 450 rows and y has 449"),
        (lambda X, Y: (X, Y * 3), ValueError, "has the label 3; labels must be 0 or 1, or NaN"),
        (lambda X, Y: (X.rechunk({0: (449, 1)}), Y), ValueError, "has 1 rows, .*rechunk X"),
        (lambda X, Y: (da.where(X > 15, np.nan, X), Y), ValueError, "X in block .* must be finite"),
    ],
    ids=["array", "one column", "rows", "values", "small block", "missing"],
)
def test_refusals(client, digits, change, error, message):
    X, Y = change(*arrays(*digits))
    with pytest.raises(error, match=message):
        LEMLL(client=client).fit(X, Y)


def test_more_refusals(client, digits):
    X, Y = arrays(*digits)
    with pytest.raises(ValueError, match="alpha must be"):
        LEMLL(alpha=-1, client=client).fit(X, Y)
    model = LEMLL(client=client, max_iter=1, tol=1e-12)
    with pytest.warns(UserWarning, match=r"stopped \(max_iter\) after 1 iterations.*increase"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but LEMLL was fitted with 64"):
        model.predict(X[:, :3])


def test_without_a_client_it_says_what_to_do(digits, monkeypatch):
    def none():
        raise ValueError

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match="there is no Dask client; create one before fit"):
        LEMLL().fit(*arrays(*digits))


def test_a_cluster_without_workers_is_said_so(digits, monkeypatch):
    monkeypatch.setattr(team, "POLL_SECONDS", 0.2)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(LemllError, match="cluster has no worker, or has lost all .*fit again"),
    ):
        LEMLL(client=client).fit(*arrays(*digits))


def test_numerical_labels_that_are_lost_after_the_search_are_said_so():
    class Here:
        _address = "tcp://127.0.0.1:1"

    class Waiting:
        def done(self):
            return False

    lost = object.__new__(team.ActorTeam)
    lost.actors, lost._workers = [Here()], set
    with pytest.raises(LemllError, match="worker tcp://.* was lost after the search.*fit again"):
        lost.wait([Waiting()])


def start_killer(condition, process):
    """Kill a process as soon as a condition holds; return the thread."""

    def wait():
        deadline = time.monotonic() + 120
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process, signal.SIGKILL)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.fixture(name="counted")
def _counted(monkeypatch):
    """Count the calls of the solver, so that something can happen in the middle."""
    calls = []
    whole = team.ActorTeam.call

    def call(self, method, *arguments, **options):
        calls.append(method)
        time.sleep(0.02)  # time for the killer
        return whole(self, method, *arguments, **options)

    monkeypatch.setattr(team.ActorTeam, "call", call)
    return calls


def test_a_worker_that_is_killed_costs_only_time(digits, counted):
    X, Y = digits
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        victim = next(iter(cluster.workers.values())).pid
        killer = start_killer(lambda: counted.count("move") >= 3, victim)
        model = LEMLL(tol=1e-10, client=client).fit(*arrays(X, Y, 50))
        killer.join()
        assert model.n_losses_ >= 1
        expected = lemll.LEMLL(tol=1e-10, graph=block_graph(X, 50)).fit(X, Y)
        assert abs(model.objective_ - expected.objective_) <= 1e-8 * expected.objective_
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)


_SILENT = "it does not answer after 3 s; start it again, and fit again"
# A client that has lost its scheduler tries to connect again before it gives up. Which of the two
# the fit sees first depends on the load of the machine.
_LOST = f"(it has closed the connection; start it again, and fit again|{_SILENT})"


@pytest.mark.nightly(when=lambda moment: moment != "call")
@pytest.mark.parametrize(
    ("moment", "number", "message"),
    [
        ("build", "SIGKILL", _LOST),
        ("call", "SIGKILL", _LOST),
        ("labels", "SIGKILL", _LOST),
        ("call", "SIGSTOP", _SILENT),
    ],
)
def test_a_lost_scheduler_ends_in_an_error(tmp_path, moment, number, message):
    script = Path(__file__).with_name("lost_scheduler.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), moment, number],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    expected = f"the Dask scheduler was lost during the fit: {message}\n"
    assert re.fullmatch(expected, done.stdout), done.stderr
