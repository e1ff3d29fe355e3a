"""Files and locks of the ground floor."""

import os
from pathlib import Path

import pytest

from lemll._files import take_lock, write_output, write_texts, write_whole
from lemll.lab.store import is_locked, read_plain


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"1234")
    assert read_plain(path, most=4) == b"1234"
    with pytest.raises(OSError, match="it has 4 bytes, but at most 3 are allowed"):
        read_plain(path, most=3)
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "b", most=3)


def test_only_plain_files_are_read(tmp_path):
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    os.mkfifo(tmp_path / "fifo")
    for path, kind in (
        (tmp_path, "a directory"), (tmp_path / "link", "a symbolic link"),
        (tmp_path / "fifo", "a FIFO"), (Path("/dev/zero"), "a device"),
    ):  # fmt: skip
        with pytest.raises(OSError, match=f"it is {kind}, not a plain file"):
            read_plain(path, most=10)
    assert read_plain(tmp_path / "link", most=10, follow=True) == b"x"


def test_a_written_file_is_whole_and_alone(tmp_path, monkeypatch):
    write_whole(tmp_path / "a", b"old")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_output_goes_through_a_link_and_never_onto_a_device(tmp_path):
    (tmp_path / "real.html").write_text("old", encoding="utf-8")
    (tmp_path / "link.html").symlink_to("real.html")
    write_output(tmp_path / "link.html", "new")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text(encoding="utf-8") == "new"
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/null")):
        with pytest.raises(OSError, match="not a plain file"):
            write_output(path, "x")
    (path,) = write_texts(tmp_path / "new" / "folder", {"a.md": "é"})
    assert path.read_bytes() == "é".encode()


def test_a_lock_is_had_by_one(tmp_path):
    held = take_lock(tmp_path / "lock")
    assert is_locked(tmp_path / "lock")
    assert take_lock(tmp_path / "lock") is None
    held.release()
    assert not is_locked(tmp_path / "lock")
    assert list(tmp_path.iterdir()) == []
