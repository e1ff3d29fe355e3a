"""Model files that were changed inside, with valid checksums, and what is done with each.

`tests/models/test_hostile_files.py` makes the files that aim at one place each; the bombs here are
larger than a test should be.
"""

from __future__ import annotations

import importlib.util
import io
import json
import random
import struct
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks._fuzz_mutate import damage
from benchmarks._fuzz_seeds import Seed

_TESTS = Path(__file__).resolve().parents[1] / "tests" / "models"
_RNG = np.random.RandomState(0)
ROWS = _RNG.rand(40, 5).round(1)
_LABELS = (ROWS[:, :3] + 0.3 * _RNG.rand(40, 3) > 0.6).astype(int)
TEXTS = [" ".join(f"w{j}{int(10 * value)}" for j, value in enumerate(row)) for row in ROWS]
_NUMBERS = (0, 1, -1, -2, 2, 7, 255, 5000, 2**15, 2**31 - 1, 2**31, 2**40, -(2**62), 2**63 - 1)
_VALUES = (
    "null", "true", "0", "-1", "1", "3", "1000000", "4294967296", "1e308", "NaN", "-Infinity",
    "0.5",
    '""', '"filename"', '"/etc/passwd"', '"content"', '"char"', '"rbf"', '"linear"', '"(a+)+$"',
    '"drop"', '"passthrough"', '"csr"', '"sqrt"', '"first"', '"error"', '"ISO8601"', '"pandas"',
)  # fmt: skip
_FOREIGN = (
    ("sklearn.svm._classes", "SVC"), ("sklearn.neighbors._unsupervised", "NearestNeighbors"),
    ("sklearn.neighbors._kd_tree", "KDTree"), ("builtins", "eval"), ("os", "system"),
    ("sklearn.preprocessing._polynomial", "PolynomialFeatures"),
    ("sklearn.feature_extraction.text", "HashingVectorizer"),
    ("sklearn.ensemble._forest", "RandomForestClassifier"), ("pathlib", "Path"),
)  # fmt: skip
_EVENTS = ("os.system", "os.exec", "os.posix_spawn", "os.remove", "os.rename", "os.mkdir",
           "subprocess.Popen", "socket.connect", "shutil.", "os.rmdir", "os.listdir")  # fmt: skip


def model_seeds() -> list[Seed]:
    """Return small model files of learners that differ inside."""
    import pandas as pd
    from scipy import sparse
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import lemll
    from lemll import rivals
    from lemll.models import fit_table
    from lemll.tables import LabelSpec, Table

    thin = sparse.csr_array(np.where(ROWS > 0.5, ROWS, 0))
    models: list[tuple[Any, str]] = [
        (lemll.MultilabelForest(3, random_state=0).fit(ROWS, _LABELS), "dense"),
        (lemll.MultilabelForest(2, trees="random", per_label=True).fit(thin, _LABELS), "sparse"),
        (rivals.MLkNN(3).fit(thin, _LABELS), "sparse"),
        (rivals.LabelPropagation(3).fit(ROWS, _LABELS), "dense"),
        (lemll.LEMLL(kernel="rbf", scale="auto").fit(thin, _LABELS), "sparse"),
        (make_pipeline(StandardScaler(), rivals.ECC(random_state=0)).fit(ROWS, _LABELS), "dense"),
        (make_pipeline(TfidfVectorizer(), lemll.BinaryRelevance()).fit(TEXTS, _LABELS), "text"),
        (make_pipeline(TfidfVectorizer(), rivals.MLkNN(3)).fit(TEXTS, _LABELS), "text"),
        (lemll.TagPredictor(n_estimators=2, cv=2).fit(ROWS, _LABELS), "dense"),
    ]
    tags = [";".join(f"t{j}" for j in np.flatnonzero(row)) for row in _LABELS]
    frame = table_frame().assign(tags=pd.Series(tags, dtype=object))
    for learner in (lemll.BinaryRelevance(), lemll.MultilabelForest(2, random_state=0)):
        spec = LabelSpec(tags="tags", untagged="none")
        models.append((fit_table(Table(frame, "t"), spec, learner=learner)[0], "table"))
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for model, rows in models:
            lemll.save(model, Path(folder) / "m.lemll")
            made.append(Seed(".lemll", (Path(folder) / "m.lemll").read_bytes(), {"rows": rows}))
    return made


def table_frame() -> Any:
    """Return a table with numbers, gaps, categories, dates and texts."""
    import pandas as pd

    return pd.DataFrame(
        {
            "a": np.where(ROWS[:, 0] > 0.8, np.nan, ROWS[:, 0]),
            "b": [f"k{int(5 * value)}" for value in ROWS[:, 1]],
            "c": [f"2024-0{1 + int(8 * value)}-1{i % 10}" for i, value in enumerate(ROWS[:, 2])],
            "d": [f"{text} number {i}" for i, text in enumerate(TEXTS)],
        }
    )


def use_model(path: Path, *, rows: str) -> bool:
    """Load a model and predict with it; return whether it predicted.

    An index outside of its array is an OutsideError.
    """
    from scipy import sparse

    import lemll
    from lemll.models import TableModel
    from lemll.tables import Table

    model = lemll.load(path)
    _look_inside(model, set())
    given: Any = {"dense": ROWS, "sparse": sparse.csr_array(ROWS), "text": TEXTS}.get(rows)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if isinstance(model, TableModel):
                _look_inside(model.pipeline[0].transform(table_frame()), set())
                model.predict(Table(table_frame(), "t"))
            else:
                if hasattr(model, "steps"):
                    _look_inside(model[:-1].transform(given), set())
                model.decision_function(given)
                model.predict(given)
        except OutsideError:
            raise
        except Exception:  # a model with odd numbers may fail, but must not do harm
            return False
    return True


class OutsideError(Exception):
    """An index lies outside of its array."""


def _look_inside(part: Any, seen: set[int]) -> None:
    """Look for indices outside of arrays, in Python and without the checks of lemll."""
    from scipy import sparse
    from sklearn.tree._tree import Tree

    if id(part) in seen:
        return
    seen.add(id(part))
    inner: list[Any] = []
    if isinstance(part, Tree):
        sound = all(
            i < part.children_left[i] < part.node_count
            and i < part.children_right[i] < part.node_count
            and 0 <= part.feature[i] < part.n_features
            for i in range(part.node_count)
            if part.children_left[i] != -1
        )
    elif sparse.issparse(part):
        start, stop = part.indptr[:-1].tolist(), part.indptr[1:].tolist()
        sound = len(part.indptr) == part.shape[0] + 1
        sound &= all(0 <= a <= b <= len(part.indices) for a, b in zip(start, stop, strict=True))
        sound &= all(0 <= j < part.shape[1] for j in part.indices.tolist())
        sound &= len(part.data) >= len(part.indices)
    else:
        sound = True
        if isinstance(part, (dict, list, tuple)):
            inner = list(part.values() if isinstance(part, dict) else part)
        elif type(part).__module__.startswith(("lemll", "sklearn")):
            names = [*getattr(part, "__dict__", {}), *getattr(type(part), "__slots__", ())]
            inner = [getattr(part, name, None) for name in names]
    if not sound:
        raise OutsideError(type(part).__name__)
    for value in inner:
        _look_inside(value, seen)


class Opened:
    """The files that were opened outside of Python's own folders, and other deeds."""

    def __init__(self, allowed: Path) -> None:
        own = {
            sys.prefix,
            sys.base_prefix,
            str(Path(__file__).resolve().parents[1]),
            "/proc",
            "/sys",
        }
        own |= {str(Path(folder).resolve()) for folder in sys.path if folder}
        self._allowed = (*own, str(allowed.resolve()))
        self.on = False
        self.deeds: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            name = arguments[0] if isinstance(arguments[0], str) else arguments[0].decode("latin-1")
            if not name.startswith(self._allowed):
                self.deeds.append(f"open {name[:80]!r}")
        elif event.startswith(_EVENTS):
            self.deeds.append(event)


def mutate_model(seed: Seed, chance: random.Random) -> bytes:
    """Return a changed model file; three in four have valid checksums."""
    if chance.random() < 0.25:
        return damage(seed.data, chance)
    with zipfile.ZipFile(io.BytesIO(seed.data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        chance.choice((_bytes, _array, _array, _array, _schema, _schema, _metadata))(parts, chance)
    return seal(parts, chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def seal(parts: dict[str, bytes], method: int) -> bytes:
    """Return a model file of these parts, with valid checksums if its metadata can be read."""
    from lemll.models.files import _checksum, checksum_of

    try:
        metadata = json.loads(parts["metadata.json"])
        metadata["checksum"] = _checksum(metadata, checksum_of(parts))
        parts = {**parts, "metadata.json": json.dumps(metadata).encode()}
    except (ValueError, TypeError, AttributeError):
        pass
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return stream.getvalue()


def _bytes(parts: dict[str, bytes], chance: random.Random) -> None:
    name = chance.choice(sorted(parts))
    parts[name] = damage(parts[name], chance)


def _metadata(parts: dict[str, bytes], chance: random.Random) -> None:
    try:
        metadata = json.loads(parts["metadata.json"])
        place = metadata["table"] if metadata["table"] and chance.random() < 0.8 else metadata
        place[chance.choice(sorted(place))] = json.loads(chance.choice(_VALUES))
    except (ValueError, TypeError, AttributeError, KeyError):
        return
    parts["metadata.json"] = json.dumps(metadata).encode()


def _array(parts: dict[str, bytes], chance: random.Random) -> None:
    """Change cells, shape or type of an array, or of an array in a sparse one."""
    names = sorted(name for name in parts if name.endswith((".npy", ".npz")))
    name = chance.choice(names)
    try:
        if name.endswith(".npy"):
            parts[name] = _npy(_changed(np.load(io.BytesIO(parts[name])), chance))
            return
        with np.load(io.BytesIO(parts[name])) as loaded:
            arrays = {key: loaded[key] for key in loaded.files}
        key = chance.choice(sorted(arrays))
        arrays[key] = _changed(arrays[key], chance)
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        parts[name] = stream.getvalue()
    except Exception:  # damaged by an earlier change
        return


def _npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _changed(array: Any, chance: random.Random) -> Any:
    array = np.array(array)
    kind = chance.randrange(6)
    if kind < 3 and array.size:
        view = array if array.dtype.names is None else array[chance.choice(array.dtype.names)]
        for _ in range(chance.choice((1, 1, 3, 20))):
            place = np.unravel_index(chance.randrange(array.size), array.shape)
            with np.errstate(all="ignore"):
                if view.dtype.kind in "iub":
                    value = chance.choice(_NUMBERS)
                    view[place] = np.array(value).astype(view.dtype)
                elif view.dtype.kind == "f":
                    view[place] = chance.choice((np.nan, np.inf, -1e300, 0.0, 1e-300, 7.5))
        return array
    if kind == 3:
        return array.ravel()[: chance.randrange(array.size + 1)]
    if kind == 4:
        return np.concatenate([array.ravel()] * chance.choice((2, 3)))
    if array.dtype.names is None and array.dtype.kind in "iufb" and chance.random() < 0.6:
        return array.astype(chance.choice(("i1", "i4", "i8", "u4", "f4", "f8", "?", "U3", "c16")))
    return array.reshape(chance.choice(((-1, 1), (1, -1), (-1,), (1, 1, -1))))


def _schema(parts: dict[str, bytes], chance: random.Random) -> None:
    """Change the description of one object."""
    from lemll.models.trusted import LOADERS

    try:
        schema = json.loads(parts["schema.json"])
    except ValueError:
        return
    nodes = list(_nodes(schema))
    if not nodes:
        return
    values = [node for node in nodes if node.get("__loader__") == "JsonNode"]
    node, other = chance.choice(nodes), chance.choice(nodes)
    match chance.randrange(10):
        case 0 | 1 | 2 if values:
            chance.choice(values)["content"] = chance.choice(_VALUES)
        case 3:
            node["__module__"], node["__class__"] = chance.choice(_FOREIGN)
        case 4:
            loader = chance.choice(sorted(LOADERS))
            node["__loader__"] = loader
            name = chance.choice(sorted(LOADERS[loader]))
            node["__module__"], _, node["__class__"] = name.rpartition(".")
        case 5:
            node.pop(chance.choice(sorted(node)))
        case 6:
            copied = json.loads(json.dumps(other))
            node.clear()
            node.update(copied)
        case 7:
            node["__id__"] = chance.choice((1, 2, 3, 10**6, "a", None))
        case 8:
            files = [node for node in nodes if "file" in node]
            if len(files) > 1:
                a, b = chance.sample(files, 2)
                a["file"], b["file"] = b["file"], a["file"]
        case _:
            _shorten(node.get("content"), chance)
    parts["schema.json"] = json.dumps(schema).encode()


def _shorten(content: Any, chance: random.Random) -> None:
    if isinstance(content, list) and content:
        del content[chance.randrange(len(content)) :]
    elif isinstance(content, dict) and content and "__loader__" not in content:
        del content[chance.choice(sorted(content))]


def _nodes(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if "__loader__" in part:
            yield part
        for value in part.values():
            yield from _nodes(value)
    elif isinstance(part, list):
        for value in part:
            yield from _nodes(value)


def crafted() -> dict[str, Callable[[Path], None]]:
    """Return the crafted files by name: those of the tests, and bombs."""
    tests, conftest = _module("test_hostile_files"), _module("conftest")

    def content(make: Callable[[], Any]) -> Callable[[Path], None]:
        def write(path: Path) -> None:
            import lemll

            with mock.patch("lemll.models.files.check_content"):
                lemll.save(make(), path)

        return write

    def archive(edit: Callable[[Any], Any]) -> Callable[[Path], None]:
        return lambda path: conftest.rewrite(_plain(tests, path), path, edit)

    made = {f"{name}.lemll": content(make) for name, (make, _) in tests.CONTENTS.items()}
    made |= {f"{name}.lemll": archive(edit) for name, (edit, _) in tests.ARCHIVES.items()}
    made["schema of 4 MB.lemll"] = archive(
        lambda parts: {**parts, "schema.json": b"[" + b"[]," * 1_300_000 + b"[]]"}
    )
    return made | {f"{name}.lemll": _bomb(tests, write) for name, write in _BOMBS.items()}


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"lemll_tests_{name}", _TESTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _plain(tests: Any, path: Path) -> Path:
    import lemll
    from lemll import rivals

    lemll.save(rivals.MLkNN(3).fit(tests.sparse.csr_array(tests.X), tests.Y), path)
    return path


def _bomb(tests: Any, write: Callable[[Path], None]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        _plain(tests, path)
        write(path)

    return make


def _appended(name: str, size: int, method: int, fill: bytes = b"\0") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            parts = {other: archive.read(other) for other in archive.namelist() if other != name}
        with zipfile.ZipFile(path, "w", method) as archive:
            for other, part in parts.items():
                archive.writestr(other, part)
            with archive.open(name, "w", force_zip64=True) as member:
                piece = (fill * 2**20)[: 2**20]
                for _ in range(size // 2**20):
                    member.write(piece)

    return write


def _lie(path: Path) -> None:
    """Let two gigabytes be sixteen bytes in the directory."""
    size = 2**31 - 2**20
    _appended("9.npy", size, zipfile.ZIP_DEFLATED)(path)
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", size), struct.pack("<I", 16)))


def _many(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(1000, 151_000):
            archive.writestr(f"{number}.npy", b"")


def _hole(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(20 * 2**30)


_BOMBS: dict[str, Callable[[Path], None]] = {
    "bzip2 of 3 GB": _appended("9.npy", 3 * 10**9, zipfile.ZIP_BZIP2),
    "lzma of 1 GB": _appended("9.npy", 10**9, zipfile.ZIP_LZMA),
    "deflate of 2 GB": _appended("9.npy", 2 * 10**9, zipfile.ZIP_DEFLATED),
    "schema of 2 GB": _appended("schema.json", 2 * 10**9, zipfile.ZIP_DEFLATED, b"[],"),
    "metadata of 2 GB": _appended("metadata.json", 2 * 10**9, zipfile.ZIP_DEFLATED, b"[],"),
    "directory that lies": _lie,
    "many parts": _many,
    "file of 20 GB that is empty": _hole,
}
