"""Files of a store that are not what was written: one cell is named, no other is affected."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from engine_methods import make_protocol, plan
from support import invoke

from lemll.exceptions import StoreError
from lemll.lab import records as _records
from lemll.lab.runner import run
from lemll.lab.store import Store
from lemll.lab.tables import ComparisonTable
from lemll.lab.verification import verify

pytestmark = pytest.mark.slow

SECRET = "the content of a file outside"
TOML = """
experiment = "prediction"
datasets = ["digit-tags"]
methods = ["Logged A", "Logged B"]
splits = {kind = "halves", n_splits = 2}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Give a store without damage, to be copied."""
    folder = tmp_path_factory.mktemp("whole") / "store"
    store = Store(folder)
    assert run(make_protocol(2), store, backend="sequential").done == 4
    assert run(make_protocol(1, seconds=0.001), store, backend="sequential").done == 2
    return folder


class Place:
    """The files of the cell that is damaged, of another one, and of another protocol's."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.protocol = make_protocol(2)
        self.cells = list(self.protocol.cells())
        self.victim, self.other = self.cells[1], self.cells[2]
        self.foreign = next(make_protocol(1, seconds=0.001).cells())
        outside = folder.parent / "outside"
        outside.write_text(SECRET, encoding="utf-8")
        self.outside = outside

    def path(self, suffix: str, cell=None) -> Path:
        return self.store.folder / "cells" / f"{(cell or self.victim).id}{suffix}"

    def copy(self, cell, *suffixes: str) -> None:
        for suffix in suffixes:
            shutil.copyfile(self.path(suffix, cell), self.path(suffix))

    def replace(self, suffix: str, make: Callable[[Path], object]) -> None:
        self.path(suffix).unlink()
        make(self.path(suffix))

    def link(self, suffix: str, target: Path | str) -> None:
        self.replace(suffix, lambda path: path.symlink_to(target))

    def seal(self, **changes: object) -> None:
        """Write the record with other fields and a hash that fits them."""
        record = dataclasses.asdict(self.store.read(self.victim.id))
        for name, value in changes.items():
            if value is ...:
                del record[name]
            else:
                record[name] = value
        self.path(".json").write_bytes(sealed(record))

    def seal_array(self, name: str, array: np.ndarray) -> None:
        self.seal_arrays(self.arrays() | {name: array})

    def seal_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays)
        content = stream.getvalue()
        outputs = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        self.seal(outputs=outputs)
        self.path(".npz").write_bytes(content)

    def arrays(self) -> dict[str, np.ndarray]:
        return self.store.arrays(self.store.read(self.victim.id))


def sealed(content: object) -> bytes:
    fields = {"format": 1, **content} if isinstance(content, dict) else content
    body = json.dumps(fields, separators=(",", ":")).encode()
    return _records._HEAD % hashlib.sha256(body).hexdigest().encode() + body + b"}\n"


def swap(place: Place, *suffixes: str) -> None:
    place.copy(place.other, *suffixes)


def grow(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(2**40)


def relabelled(place: Place) -> None:
    """Make the record of another cell say that it is this one, as far as its id."""
    record = dataclasses.asdict(place.store.read(place.other.id))
    record |= {"id": place.victim.id}
    place.path(".json").write_bytes(sealed(record))
    place.copy(place.other, ".npz")


def other_method(place: Place) -> None:
    """Make a record wholly of another cell but for what its id is made of."""
    record = dataclasses.asdict(place.store.read(place.other.id))
    record |= {"id": place.victim.id, "work": place.victim.work, "code": place.victim.code}
    place.path(".json").write_bytes(sealed(record))
    place.copy(place.other, ".npz")


def bytes_of_arrays(place: Place, change: Callable[[bytes], bytes]) -> None:
    path = place.path(".npz")
    path.write_bytes(change(path.read_bytes()))


def flip(content: bytes) -> bytes:
    return content[:500] + bytes([content[500] ^ 1]) + content[501:]


def folder(path: Path) -> None:
    (path / "sub").mkdir(parents=True)


ERROR = {"type": "Error", "message": "it failed", "traceback": ""}
DAMAGE: dict[str, Callable[[Place], object]] = {
    "record and arrays of another cell": lambda p: swap(p, ".json", ".npz"),
    "record of another cell": lambda p: swap(p, ".json"),
    "arrays of another cell": lambda p: swap(p, ".npz"),
    "record and arrays of another protocol": lambda p: p.copy(p.foreign, ".json", ".npz"),
    "another cell's record under this id": relabelled,
    "another cell's record under this work": other_method,
    "truncated record": lambda p: p.path(".json").write_bytes(p.path(".json").read_bytes()[:-9]),
    "empty record": lambda p: p.path(".json").write_bytes(b""),
    "record of zeros": lambda p: p.path(".json").write_bytes(bytes(1000)),
    "huge record": lambda p: grow(p.path(".json")),
    "field missing": lambda p: p.seal(seconds=...),
    "field unknown": lambda p: p.seal(extra=1),
    "status unknown": lambda p: p.seal(status="perfect"),
    "metrics not a table": lambda p: p.seal(metrics=[1]),
    "metric a text": lambda p: p.seal(metrics={"one_error": "0.1"}),
    "metric unknown": lambda p: p.seal(metrics={"beauty": 0.5}),
    "metric changed": lambda p: p.seal(metrics={"one_error": 0.5}),
    "seconds infinite": lambda p: p.seal(seconds={"fit": float("inf")}),
    "error without message": lambda p: p.seal(status="failed", error={"type": "x"}),
    "done with an error": lambda p: p.seal(error=ERROR),
    "setting empty": lambda p: p.seal(setting=[]),
    "other split": lambda p: p.seal(setting=["halves", 7]),
    "other parameters": lambda p: p.seal(parameters={"shift": 9.0}),
    "attempt a text": lambda p: p.seal(attempt="1"),
    "not a table": lambda p: p.path(".json").write_bytes(sealed([1])),
    "nested without end": lambda p: p.path(".json").write_bytes(deep()),
    "format unknown": lambda p: p.seal(format=7),
    "directory for a record": lambda p: p.replace(".json", folder),
    "FIFO for a record": lambda p: p.replace(".json", os.mkfifo),
    "link to another record": lambda p: p.link(".json", p.path(".json", p.other)),
    "link to the right content": lambda p: p.link(".json", moved(p)),
    "link to outside": lambda p: p.link(".json", p.outside),
    "link to nothing": lambda p: p.link(".json", "nowhere"),
    "link to /dev/zero": lambda p: p.link(".json", "/dev/zero"),
    "no arrays": lambda p: p.path(".npz").unlink(),
    "truncated arrays": lambda p: bytes_of_arrays(p, lambda content: content[:-1]),
    "a bit of the arrays": lambda p: bytes_of_arrays(p, flip),
    "huge arrays": lambda p: grow(p.path(".npz")),
    "directory for arrays": lambda p: p.replace(".npz", Path.mkdir),
    "FIFO for arrays": lambda p: p.replace(".npz", os.mkfifo),
    "link for arrays": lambda p: p.link(".npz", p.path(".npz", p.other)),
    "arrays at /dev/zero": lambda p: p.link(".npz", "/dev/zero"),
    "arrays of another shape": lambda p: p.seal_arrays({k: v[:5] for k, v in p.arrays().items()}),
    "other test rows": lambda p: p.seal_array("test", p.arrays()["test"][::-1]),
    "rows that do not exist": lambda p: p.seal_array("test", p.arrays()["test"] + 9999),
    "an array missing": lambda p: p.seal_arrays({"scores": p.arrays()["scores"]}),
    "an array of texts": lambda p: p.seal_array("scores", np.full((899, 8), "a")),
    "no archive": lambda p: (p.seal(outputs=named(b"x")), p.path(".npz").write_bytes(b"x")),
    "done without arrays": lambda p: p.seal(outputs=None),
}  # fmt: skip
# What only the arrays' content shows: the record is sound, and the figures in it are printed.
IN_ARRAYS = {"a bit of the arrays", "arrays of another shape", "other test rows",
             "rows that do not exist", "an array missing", "an array of texts", "no archive",
             "done without arrays", "metric unknown", "metric changed"}  # fmt: skip
# What only the protocol's cell shows: the record agrees with its id, and says something else.
BY_PROTOCOL = {"other split", "other parameters", "another cell's record under this work"}


def named(content: bytes) -> dict[str, object]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def deep() -> bytes:
    body = b'{"format":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    return _records._HEAD % hashlib.sha256(body).hexdigest().encode() + body + b"}\n"


def moved(place: Place) -> Path:
    """Put the record back elsewhere: its content is right, but it is not a file of the store."""
    elsewhere = place.store.folder.parent / "elsewhere.json"
    elsewhere.write_bytes(place.kept)
    return elsewhere


@pytest.fixture
def place(whole, tmp_path) -> Place:
    shutil.copytree(whole, tmp_path / "store")
    made = Place(tmp_path / "store")
    made.kept = made.path(".json").read_bytes()
    (tmp_path / "p.toml").write_text(TOML, encoding="utf-8")
    return made


def bench(place: Place, command: str, *arguments: object, code: int = 0) -> str:
    folder = place.store.folder
    words = (command, folder.parent / "p.toml", *arguments, "--store", folder)
    return invoke("bench", *words, code=code).output


@pytest.mark.parametrize("kind", DAMAGE)
def test_one_damaged_cell_is_named_and_no_other_is_affected(place, kind):
    expected = {record.id: record for record in place.store.records()}
    before = {p.name: p.read_bytes() for p in place.path("").parent.iterdir()}
    DAMAGE[kind](place)

    problems = verify(place.protocol, place.store).problems
    assert problems
    assert {problem.partition(": ")[0] for problem in problems} == {str(place.victim)}

    overview = place.store.overview(place.protocol.cells())
    sound = {cell.id for cell in place.cells} - {place.victim.id}
    assert sound <= overview.records.keys()
    assert all(overview.records[cell_id] == expected[cell_id] for cell_id in sound)
    in_arrays = kind in IN_ARRAYS
    assert [cell.id for cell in overview.damaged] == ([] if in_arrays else [place.victim.id])
    assert overview.unrelated == 2

    status = bench(place, "status")
    assert (f"damaged: {place.victim}: {place.victim.id}" in status) is not in_arrays
    table = bench(place, "table")
    assert "Logged A" in table
    assert (f"1 cells are damaged and were left out: {place.victim}." in table) is not in_arrays
    assert f"{place.victim}: " in bench(place, "verify", code=1)
    out = place.store.folder.parent / "out.csv"
    exported = bench(place, "export", out)
    assert ("left out" in exported) is (not in_arrays and kind not in BY_PROTOCOL)
    with out.open(encoding="utf-8") as stream:
        rows = {row["id"] for row in csv.DictReader(stream)}
    assert rows - {place.victim.id} == expected.keys() - {place.victim.id}

    assert place.outside.read_text(encoding="utf-8") == SECRET
    for name, content in before.items():
        if not name.startswith(place.victim.id):
            assert (place.store.folder / "cells" / name).read_bytes() == content


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_cell_runs_again_and_all_is_well(place, kind):
    expected = ComparisonTable.from_store(place.protocol, place.store).to_csv()
    DAMAGE[kind](place)
    if kind in IN_ARRAYS:
        verify(place.protocol, place.store, discard=True)
        if kind.startswith("metric"):  # its files are sound, only a figure is not
            place.store.discard(place.store.read(place.victim.id))
    assert run(place.protocol, place.store, backend="sequential").done == 4
    assert verify(place.protocol, place.store).problems == ()
    assert ComparisonTable.from_store(place.protocol, place.store).to_csv() == expected
    assert place.outside.read_text(encoding="utf-8") == SECRET


def test_a_missing_record_is_named_as_missing(place):
    place.path(".json").unlink()
    found = verify(place.protocol, place.store)
    assert (found.problems, found.missing, found.absent) == ((), 1, (str(place.victim),))
    assert f"{place.victim}: has no record" in bench(place, "verify")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read anything")
def test_a_record_that_may_not_be_read_is_damage(place):
    place.path(".json").chmod(0)
    (problem,) = verify(place.protocol, place.store).problems
    assert "Permission denied" in problem


def test_another_metric_is_computed_from_sound_arrays_alone(place):
    DAMAGE["arrays of another shape"](place)
    place.seal(metrics={})
    table = ComparisonTable.from_store(place.protocol, place.store)
    assert table.notes == (f"1 cells are damaged and were left out: {place.victim}.",)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_no_link_is_followed_when_a_record_is_written(place, suffix):
    for name in (f"{place.victim.id}{suffix}.tmp", f"{place.victim.id}{suffix}"):
        path = place.store.folder / "cells" / name
        path.unlink(missing_ok=True)
        path.symlink_to(place.outside)
    assert run(place.protocol, place.store, backend="sequential").done == 4
    assert place.outside.read_text(encoding="utf-8") == SECRET
    assert not place.path(suffix).is_symlink()


def test_what_a_killed_writer_left_is_swept_but_not_that_of_a_running_one(place):
    cells = place.store.folder / "cells"
    left = [cells / f"{cell.id}.json.{'0' * 16}.tmp" for cell in place.cells[:2]]
    for path in (*left, cells / "mine.tmp"):
        path.write_bytes(b"half")
    held = place.store.claim(place.cells[1].id)
    place.store.sweep()
    assert [path.exists() for path in (*left, cells / "mine.tmp")] == [False, True, True]
    held.release()


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_claim_that_is_not_a_plain_file_is_refused_and_never_waited_for(place, make):
    make(place.store.folder / "claims" / place.victim.id)
    assert place.store.overview(place.cells).running == []
    with pytest.raises(StoreError, match=r"cannot write .*(not a plain file|Is a directory)"):
        place.store.claim(place.victim.id)


def test_names_may_change_and_results_stay(place):
    renamed = plan(
        *tuple(
            dataclasses.replace(spec, label=f"{spec.label}, renamed")
            for spec in place.protocol.methods
        ),
        splits=place.protocol.splits,
    )
    overview = place.store.overview(renamed.cells())
    assert {record.method for record in overview.records.values()} == {
        "Logged A, renamed", "Logged B, renamed"
    }  # fmt: skip
    assert verify(renamed, place.store).problems == ()
