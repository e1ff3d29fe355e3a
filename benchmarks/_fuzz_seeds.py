"""Small valid files of every format, from which the fuzzing starts."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

X = np.array([[1.5, 0.0, -2.0], [0.0, 0.25, 3.0], [7.0, 0.0, 0.0], [0.0, 5.0, 1.0]])
Y = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=np.uint8)
D = np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


@dataclass(frozen=True)
class Seed:
    """A file: how its name ends, its bytes, and what to pass to the reader."""

    suffix: str
    data: bytes
    options: dict[str, Any] = field(default_factory=dict)


def seeds(name: str) -> list[Seed]:
    """Return the seeds of a format."""
    return _MAKERS[name]()


def _mat5() -> list[Seed]:
    contents: list[dict[str, Any]] = [
        {"X": X, "Y": Y},
        {"X": sparse.csc_array(X), "Y": sparse.csc_array(Y)},
        {"features": X.astype(np.float32), "label_distribution": D},
        {"data": X.astype(np.int64), "target": 2 * Y.T.astype(np.int8) - 1},
        {"X": X, "Y": Y.astype(bool), "Xt": 2 * X, "Yt": Y},
        {"note": "text", "deep": {"a": {"b": [1, 2]}}, "features": X, "labels": Y},
        {"features": X + 1j, "labels": np.array([["a"], [1]], dtype=object)},
    ]
    made = []
    for content in contents:
        for packed in (False, True):
            buffer = io.BytesIO()
            scipy_io.savemat(buffer, content, do_compression=packed)
            made.append(Seed(".mat", buffer.getvalue()))
    return made


def _npz() -> list[Seed]:
    names = {"feature_names": np.array(["a", "ü", "c"]), "label_names": np.array(["s", "t"])}
    matrix = sparse.csr_array(X)
    parts = {"X_data": matrix.data, "X_indices": matrix.indices, "X_indptr": matrix.indptr}
    contents: list[dict[str, Any]] = [
        {"X": X, "Y": Y, **names, "name": np.array("small")},
        {**parts, "X_shape": np.array(X.shape), "D": D},
        {"X": np.asfortranarray(X.astype(np.int16)), "Y": Y.astype(bool), **names},
    ]
    made = []
    for content in contents:
        for save in (np.savez, np.savez_compressed):
            buffer = io.BytesIO()
            save(buffer, **content)
            made.append(Seed(".npz", buffer.getvalue()))
    return made


def _parquet() -> list[Seed]:
    import json

    import pyarrow
    import pyarrow.parquet

    columns = {f"x{j}": X[:, j] for j in range(3)} | {f"y{j}": Y[:, j] for j in range(2)}
    note = {"name": "s", "kind": "logical", "labels": ["y0", "y1"]}
    table = pyarrow.table(columns).replace_schema_metadata({"lemll": json.dumps(note)})
    made = []
    for options in (
        {},
        {"compression": "gzip", "row_group_size": 2},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "none", "use_dictionary": False},
        {"compression": "none", "use_dictionary": False, "store_schema": False,
         "column_encoding": {"x0": "BYTE_STREAM_SPLIT", "y0": "DELTA_BINARY_PACKED"}},
    ):  # fmt: skip
        buffer = io.BytesIO()
        pyarrow.parquet.write_table(table, buffer, **options)
        made.append(Seed(".parquet", buffer.getvalue()))
    return made


_ARFF_HEAD = (
    b"@relation 'r: -C 2'\n@attribute s {0,1}\n@attribute t {0,1}\n% note\n"
    b"@attribute x numeric\n@attribute 'c d' {a,'b c'}\n@data\n"
)
_TEXTS: dict[str, tuple[str, dict[str, Any], list[bytes]]] = {
    "arff": (
        ".arff",
        {},
        [
            _ARFF_HEAD + b"1,0,2.5,a\n0,1,-3e2,'b c'\n",
            _ARFF_HEAD + b"{0 1,2 7}\n{}\n{1 1,3 'b c'}\n",
            b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x real\n@data\n0,1.5\n1,2\n",
            b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x real\n@data\n{1 2}\n{0 1}\n",
        ],
    ),
    "csv": (
        ".csv",
        {"labels": -1, "missing": "nan"},
        [b"a,b,y\n1.5,,0\n2,1e3,1\n", b'"a, b","c""d",y\n1,2,0\n\n-3,.5,1\n'],
    ),
    "svmlight": (
        ".svm",
        {},
        [b"0,2 1:0.5 3:2 # c\n 2:1\n3:4\n1\n", b"2 5 4\n0,1 0:1 4:2\n3 1:1e-3\n"],
    ),
    "xml": (
        ".xml",
        {},
        [
            b"<?xml version='1.0' encoding='utf-8'?>\n<labels xmlns='http://x.y/z'>"
            b"<label name='a'><label name='b &amp; c'></label></label></labels>",
            b"<labels><!-- note --><label name='sky'/><label name='&#233;'/></labels>",
        ],
    ),
}


def _text(name: str) -> list[Seed]:
    suffix, options, contents = _TEXTS[name]
    return [Seed(suffix, content, options) for content in contents]


def _packed() -> list[Seed]:
    return [
        Seed(suffix + packing, pack(content), options)
        for suffix, options, contents in _TEXTS.values()
        for content in contents[:2]
        for packing, pack in PACKERS.items()
    ]


def _model() -> list[Seed]:
    from benchmarks._fuzz_models import model_seeds

    return model_seeds()


_MAKERS: dict[str, Callable[[], list[Seed]]] = {
    "mat5": _mat5,
    "npz": _npz,
    "parquet": _parquet,
    "arff": lambda: _text("arff"),
    "csv": lambda: _text("csv"),
    "svmlight": lambda: _text("svmlight"),
    "xml": lambda: _text("xml"),
    "packed": _packed,
    "model": _model,
}
FORMATS = tuple(_MAKERS)
