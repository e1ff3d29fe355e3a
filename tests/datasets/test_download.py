"""The downloader, against a server of our own on loopback, over TLS."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import multiprocessing
import os
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import trustme
from scipy import io as scipy_io

from lemll._files import take_lock
from lemll.datasets import registry
from lemll.datasets import registry as downloads
from lemll.datasets.registry import UpstreamFile, download
from lemll.exceptions import ChecksumError, DatasetNotFoundError, DownloadError, MissingExtraError

pytestmark = pytest.mark.slow

CONTENT = b"some bytes of a data set\n" * 100


class _Handler(http.server.BaseHTTPRequestHandler):
    files: dict[str, bytes]
    requests: list[str]
    plain: str
    redirects: dict[str, str]

    def do_GET(self):
        self.requests.append(self.path)
        if self.path in self.redirects:
            self.send_response(302)
            self.send_header("Location", self.redirects[self.path])
            self.end_headers()
            return
        if self.path.startswith("/drip"):
            self.drip()
            return
        if self.path == "/slow.txt":
            time.sleep(0.5)
        if self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT[:50])
            return
        content = self.files.get(self.path)
        self.send_response(404 if content is None else 200)
        self.end_headers()
        # A client that stops reading an endless answer closes the connection.
        with contextlib.suppress(OSError):
            self.wfile.write(content or b"")

    def drip(self):
        """Send a byte at a time: of the head, or of the body; ends by itself after a while."""
        head = b"HTTP/1.0 200 OK\r\nX-Long: "
        if self.path == "/drip-body":
            head += b"x\r\n\r\n"
        with contextlib.suppress(OSError):
            self.wfile.write(head)
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.1)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    _Handler.files = {"/data.txt": CONTENT, "/slow.txt": CONTENT, "/long.txt": CONTENT * 50}
    _Handler.requests = []
    _Handler.plain = f"http://127.0.0.1:{plain.server_port}/data.txt"
    _Handler.redirects = {
        "/to-plain": _Handler.plain,
        "/twice": "/once",
        "/once": "data.txt",
        "/round": "/round",
        "/broken": "https://[::1/data.txt",
    }
    threads = [threading.Thread(target=each.serve_forever) for each in (plain, secure)]
    for thread in threads:
        thread.start()
    yield f"https://127.0.0.1:{secure.server_port}"
    for each in (plain, secure):
        each.shutdown()
        each.server_close()
    for thread in threads:
        thread.join()


def upstream(url: str, content: bytes = CONTENT) -> UpstreamFile:
    return UpstreamFile(url=url, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def test_download_verify_and_reuse(server, tmp_path):
    file = upstream(f"{server}/data.txt")
    path = download(file, tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert download(file, tmp_path / "cache") == path
    assert _Handler.requests == ["/data.txt"]
    path.write_bytes(b"damaged")
    assert download(file, tmp_path / "cache").read_bytes() == CONTENT
    assert _Handler.requests == ["/data.txt"] * 2


def nothing_kept(folder) -> bool:
    return not folder.exists() or list(folder.iterdir()) == []


def test_another_file_than_the_registered_one_is_refused(server, tmp_path):
    file = upstream(f"{server}/data.txt", CONTENT[::-1])
    with pytest.raises(ChecksumError, match="is not the registered one"):
        download(file, tmp_path / "cache")
    assert nothing_kept(tmp_path / "cache")


def test_more_bytes_than_registered_stop_the_download(server, tmp_path):
    with pytest.raises(DownloadError, match=f"more than the registered {len(CONTENT)} bytes"):
        download(upstream(f"{server}/long.txt"), tmp_path / "cache")
    assert nothing_kept(tmp_path / "cache")


@pytest.mark.parametrize("path", ["/nowhere.txt", "/cut"])
def test_failures_name_the_remedy(server, tmp_path, path):
    with pytest.raises(DownloadError, match="check the connection, or set LEMLL_DATA_DIR"):
        download(upstream(f"{server}{path}"), tmp_path / "cache")
    assert nothing_kept(tmp_path / "cache")


def test_only_https_even_behind_a_redirect(server, tmp_path):
    with pytest.raises(DownloadError, match="only https addresses are downloaded"):
        download(upstream(_Handler.plain), tmp_path / "cache")
    with pytest.raises(DownloadError, match="only https addresses are downloaded"):
        download(upstream(f"{server}/to-plain"), tmp_path / "cache")
    assert _Handler.requests == ["/to-plain"]  # nothing was asked for in the clear
    assert nothing_kept(tmp_path / "cache")


def test_redirects_are_followed_but_not_for_ever(server, tmp_path):
    path = download(upstream(f"{server}/twice"), tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert _Handler.requests == ["/twice", "/once", "/data.txt"]
    with pytest.raises(DownloadError, match="redirects more than 5 times; stopped"):
        download(upstream(f"{server}/round"), tmp_path / "other")
    assert _Handler.requests[3:] == ["/round"] * 6
    with pytest.raises(DownloadError, match="redirects to an invalid address"):
        download(upstream(f"{server}/broken"), tmp_path / "other")
    assert nothing_kept(tmp_path / "other")


def test_what_is_at_hand_needs_no_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    file = upstream("https://127.0.0.1:9/data.txt")
    with pytest.raises(DatasetNotFoundError, match="download_if_missing=False forbids"):
        download(file, tmp_path, download_if_missing=False)
    with pytest.raises(MissingExtraError, match="Downloading a data set needs the library 'pooch'"):
        download(file, tmp_path)
    (tmp_path / "data.txt").write_bytes(CONTENT)
    assert download(file, tmp_path) == tmp_path / "data.txt"


def test_an_untrusted_certificate_is_refused(server, tmp_path, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with pytest.raises(DownloadError, match="failed"):
        download(upstream(f"{server}/data.txt"), tmp_path / "cache")


def test_no_download_on_request(tmp_path):
    with pytest.raises(DatasetNotFoundError, match="download_if_missing=False forbids"):
        download(upstream("https://127.0.0.1:9/x"), tmp_path, download_if_missing=False)


def test_two_processes_racing_for_one_file_both_get_it_whole(server, tmp_path):
    file = upstream(f"{server}/data.txt")
    # Forked children inherit the certificate authority of this test.
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        paths = pool.starmap(download, [(file, tmp_path / "cache")] * 6)
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert _Handler.requests == ["/data.txt"]
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["data.txt"]


def test_load_dataset_downloads_what_is_registered(server, tmp_path, monkeypatch):
    monkeypatch.delenv("LEMLL_DATA_DIR", raising=False)
    arff = b"@relation r\n@attribute x numeric\n@attribute Beach {0,1}\n@data\n2,1\n"
    parts = {"/a-train.arff": arff, "/a-test.arff": arff,
             "/a.xml": b"<labels><label name='Beach'/></labels>"}  # fmt: skip
    scipy_io.savemat(tmp_path / "b.mat", {"features": np.eye(2), "labels": [[0.5, 0.5], [1, 0]]})
    parts["/b.mat"] = (tmp_path / "b.mat").read_bytes()
    _Handler.files = parts
    real = registry._registry()
    fake = {}
    for name, files in {"scene": list(parts)[:3], "SJAFFE": ["/b.mat"]}.items():
        values = {field: getattr(real[name], field) for field in real[name].__slots__}
        values["upstream"] = tuple(upstream(server + file, parts[file]) for file in files)
        fake[name] = registry.DatasetInfo(**values)
    monkeypatch.setattr(registry, "_registry", lambda: {**real, **fake})
    scene = registry.load_dataset("scene", cache_dir=tmp_path / "cache")
    assert scene.name == "scene"
    np.testing.assert_array_equal(scene.X, [[2], [2]])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    np.testing.assert_array_equal(registry.load_dataset("SJA").D, [[0.5, 0.5], [1, 0]])
    assert (tmp_path / "xdg" / "lemll" / "SJAFFE" / "b.mat").is_file()


@pytest.mark.parametrize("path", ["/drip-body", "/drip-head"])
def test_a_server_that_drips_ends_at_the_deadline(server, tmp_path, monkeypatch, path):
    monkeypatch.setattr(downloads, "_LEAST_SECONDS", 1, raising=False)
    start = time.monotonic()
    with pytest.raises(DownloadError, match="took longer than 1 s in total.*check the connection"):
        download(upstream(f"{server}{path}"), tmp_path / "cache")
    assert time.monotonic() - start < 5
    assert nothing_kept(tmp_path / "cache")


def test_one_request_serves_all_threads_that_wait(server, tmp_path):
    file = upstream(f"{server}/slow.txt")
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: download(file, tmp_path / "cache"), range(4)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert _Handler.requests == ["/slow.txt"]
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["slow.txt"]


def test_waiting_for_another_process_ends_too_and_its_death_does_no_harm(
    server, tmp_path, monkeypatch
):
    file = upstream(f"{server}/data.txt")
    (tmp_path / ".data.txt.lock").touch()  # of one that was killed
    held = take_lock(tmp_path / ".data.txt.lock")
    monkeypatch.setattr(downloads, "_LEAST_SECONDS", 0.5)
    with pytest.raises(DownloadError, match="in total, including the wait for others"):
        download(file, tmp_path)
    assert _Handler.requests == []
    held.release()
    monkeypatch.undo()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    (tmp_path / ".data.txt.lock").touch()
    assert download(file, tmp_path).read_bytes() == CONTENT


def link_to(target):
    return lambda path: path.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a FIFO"),
        (Path.mkdir, "a directory"),
        (link_to("/dev/zero"), "a device"),
        (link_to("other.fifo"), "a FIFO"),
    ],
    ids=["FIFO", "directory", "device", "link to a FIFO"],
)
@pytest.mark.parametrize("allowed", [True, False])
def test_what_is_not_a_plain_file_in_the_cache_is_named(server, tmp_path, make, kind, allowed):
    os.mkfifo(tmp_path / "other.fifo")
    make(tmp_path / "data.txt")
    file = upstream(f"{server}/data.txt")
    with pytest.raises(DownloadError, match=f"data.txt cannot be read: it is {kind}, .*remove"):
        download(file, tmp_path, download_if_missing=allowed)
    assert _Handler.requests == []


@pytest.mark.parametrize("content", [b"precious", None], ids=["to a file", "to nothing"])
def test_a_link_in_the_cache_is_replaced_and_not_written_through(server, tmp_path, content):
    victim = tmp_path / "victim"
    if content is not None:
        victim.write_bytes(content)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "data.txt").symlink_to(victim)
    path = download(upstream(f"{server}/data.txt"), tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert not path.is_symlink()
    assert (victim.read_bytes() if victim.exists() else None) == content


def test_a_lock_that_is_not_a_plain_file_is_not_waited_for(server, tmp_path):
    os.mkfifo(tmp_path / ".data.txt.lock")
    with pytest.raises(DownloadError, match="failed: .*it is a FIFO, not a plain file"):
        download(upstream(f"{server}/data.txt"), tmp_path)


def test_a_system_without_locks_downloads_all_the_same(server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert download(upstream(f"{server}/data.txt"), tmp_path / "cache").read_bytes() == CONTENT
