"""Schedulers of their own processes: encrypted ones, and ones that are lost."""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import trustme
from engine_methods import make_protocol, with_helpers

from lemll.exceptions import LemllError
from lemll.lab import workers as _dask
from lemll.lab.runner import run
from lemll.lab.store import Store
from lemll.lab.workers import dask_client

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")


@pytest.fixture(autouse=True)
def _no_failed_clients():
    """Delete clients that could not connect, so that they do not block those of other tests."""
    yield
    gc.collect()


@contextmanager
def cluster(folder: Path, *options: object):
    """Start a scheduler and a worker; give the address and the scheduler's process."""
    described = folder / "scheduler.json"
    commands = {
        "scheduler": ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        "worker": ["--nthreads", "2", "--no-dashboard", "--no-nanny", "--death-timeout", "20"],
    }
    started = []
    for name, own in commands.items():
        command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *own]
        started.append(
            subprocess.Popen(
                [*command, "--scheduler-file", described, *options],
                env=with_helpers(),
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    try:
        deadline = time.monotonic() + 60
        while not described.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        yield json.loads(described.read_text(encoding="utf-8"))["address"], started[0]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture
def certificates(tmp_path) -> dict[str, str]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    own = authority.issue_cert("127.0.0.1")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    return {name: str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")}


def configured(ca: str | None, cert: str | None, key: str | None):
    settings = {"ca-file": ca, "client.cert": cert, "client.key": key}
    return dask.config.set({f"distributed.comm.tls.{name}": v for name, v in settings.items()})


def test_an_encrypted_cluster_runs_cells(tmp_path, certificates, log):
    options = ("--tls-ca-file", certificates["ca"], "--tls-cert", certificates["cert"],
               "--tls-key", certificates["key"])  # fmt: skip
    with (
        cluster(tmp_path, *options) as (address, _),
        configured(**certificates),
        dask_client(address) as client,
    ):
        assert address.startswith("tls://127.0.0.1:")
        end = run(make_protocol(2), Store(tmp_path / "store"), client=client)
    assert (end.done, end.failed) == (4, 0)


@pytest.mark.parametrize("given", [(), ("ca",), ("cert", "key")])
def test_certificates_that_are_missing_are_named_at_once(certificates, given):
    known = {name: certificates[name] if name in given else None for name in certificates}
    start = time.monotonic()
    with (
        configured(**known),
        pytest.raises(LemllError, match=r"needs certificates, but DASK_.* is not set; set DASK_"),
        dask_client("tls://127.0.0.1:1"),
    ):
        pass
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("name", ["ca", "cert", "key"])
@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_used_are_said_so_at_once(certificates, name, content):
    if content is None:
        os.unlink(certificates[name])
    else:
        Path(certificates[name]).write_text(content, encoding="ascii")
    with (
        configured(**certificates),
        pytest.raises(LemllError, match="cannot be used: .*; set DASK_DISTRIBUTED__COMM__TLS__CA"),
        dask_client("tls://127.0.0.1:1"),
    ):
        pass


def test_encryption_that_dask_demands_is_not_left_out():
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(LemllError, match="no Dask scheduler answers at 'tcp://.*encryption"),
        dask_client("tcp://127.0.0.1:1"),
    ):
        pass


def test_a_client_that_failed_does_not_block_the_next(monkeypatch):
    class Failed:
        """Like a client of Dask that could not connect: closing it needs the lock."""

        def __init__(self):
            self.itself = self  # only the garbage collector can delete it

        def __del__(self):
            assert not lock.locked()

    lock = threading.Lock()

    def start(*_, **__):
        with lock:
            garbage = [[] for _ in range(100_000)]  # enough to start a collection
            return nullcontext(len(garbage))

    monkeypatch.setattr("distributed.Client", start)
    Failed()
    with dask_client("tcp://127.0.0.1:1") as client:
        assert client == 100_000
    assert gc.isenabled()


def test_a_lost_scheduler_is_one_sentence_and_no_cell_fails(tmp_path, monkeypatch, capfd, log):
    monkeypatch.setattr(_dask, "_CONNECT_SECONDS", 3)
    levels = {name: logging.getLogger(name).level for name in ("distributed", "tornado", "asyncio")}
    protocol, store = make_protocol(20, seconds=0.3), Store(tmp_path / "store")
    with cluster(tmp_path) as (address, scheduler):

        def kill(progress):
            if progress.done >= 2:
                scheduler.kill()

        with (
            pytest.raises(LemllError, match="scheduler at 'tcp://.* was lost and does not answer"),
            dask_client(address) as client,
        ):
            run(protocol, store, client=client, callback=kill)
    assert capfd.readouterr().err == ""
    assert {name: logging.getLogger(name).level for name in levels} == levels
    assert {record.status for record in store.records()} == {"done"}
    assert list((store.folder / "claims").iterdir()) == []
