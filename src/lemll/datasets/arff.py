"""Read and write ARFF files in both multi-label dialects, Mulan and MEKA."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from lemll._types import BoolArray
from lemll._validation import is_sparse
from lemll.datasets._columns import Labels, Missing, check_missing, resolve_labels
from lemll.datasets._streams import COMPRESSIONS, LineBlocks, atomic_write
from lemll.datasets.arff_header import Header, parse_header, quote
from lemll.datasets.arff_rows import RowCollector, RowParser
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

Source = str | Path | bytes

# MEKA writes its options into the relation name, after the actual name and a colon. "-C 3" means
# that the first 3 attributes are labels, and "-C -3" means the last 3.
_MEKA_COUNT = re.compile(r"(?::\s*+|\s|^)-[cC]\s++(-?[0-9]{1,9})(?![0-9])")


def read_arff(
    source: Source | Sequence[Source],
    labels: Labels | None = None,
    *,
    nominal: Literal["codes", "onehot"] = "codes",
    missing: Missing = "error",
    encoding: str | None = None,
    name: str | None = None,
    max_expanded_bytes: int | None = None,
) -> Dataset:
    r"""Read a multi-label data set from one or several ARFF files.

    The header alone gives the numbers of features and labels, so a label that never occurs keeps
    its column. The file is read in small blocks, in time proportional to its size.

    Parameters
    ----------
    source : str, Path, bytes, or a sequence of them
        Plain, ``.gz``, ``.bz2`` or ``.xz`` files, or their content. Several files with the same
        header (for example a training and a test part) become one data set, in the given order.
    labels : str, Path, int or sequence of str, optional
        The label attributes: the path of a Mulan XML file; or their name or names; or a count `n`
        as in MEKA (the first `n` attributes, or the last ``-n`` attributes if `n` is negative). By
        default the XML file with the name of the ARFF file in the same folder, or else ``-C n`` in
        the relation name.
    nominal : {"codes", "onehot"}, default="codes"
        The coding of a nominal feature other than {0, 1}: one column with the position of the value
        in the header, or one indicator column ``name=value`` per value.
    missing : {"error", "nan"}, default="error"
        Whether ``?`` in a feature is an error or becomes NaN. In a label it
        always becomes NaN: nobody observed the cell.
    encoding : str, optional
        By default UTF-8, or latin-1 if the header is not valid UTF-8.
    name : str, optional
        The name of the data set. By default the relation name without the options of MEKA.
    max_expanded_bytes : int, optional
        Largest size of a compressed file after decompression, and of the arrays. By default 200
        times the size of the file, but at least 2 MiB for text and 256 MiB for arrays.

    Returns
    -------
    Dataset
        `X` is a CSR array if any row is sparse, else dense. Labels are in the order of the columns.

    Raises
    ------
    DatasetFormatError
        If the file is not valid. The message names the file, the line, the column and the text.

    Examples
    --------
    >>> header = b"@relation 'r: -C 1'\n@attribute sky {0,1}\n@attribute x numeric\n@data\n"
    >>> read_arff(header + b"1,2.5\n").label_names
    ('sky',)
    """
    if nominal not in ("codes", "onehot"):
        raise ValueError(f"nominal={nominal!r} must be 'codes' or 'onehot'")
    check_missing(missing)
    sources = [source] if isinstance(source, str | Path | bytes) else list(source)
    if not sources:
        raise ValueError("source is an empty sequence; give at least one ARFF file")
    collector: RowCollector | None = None
    for part in sources:
        with LineBlocks(_as_path(part), max_expanded_bytes) as blocks:
            header = parse_header(blocks, encoding)
            if collector is None:
                is_label = _label_columns(header, labels, part, blocks.file)
                collector = RowCollector(header, is_label, blocks.budget)
            else:
                collector.go_on_with(header, blocks.budget)
            parser = RowParser(header, is_label, blocks.file, allow_missing=missing == "nan")
            for block in blocks:
                for rows in parser.parse(block, blocks.line):
                    collector.add(rows, blocks.file)
    assert collector is not None
    files = ";".join(str(part) for part in sources if not isinstance(part, bytes))
    return collector.finish(
        name=_without_options(collector.header.relation) if name is None else name,
        source=files,
        onehot=nominal == "onehot",
        allow_missing=missing == "nan",
    )


def _as_path(source: Source) -> Path | bytes:
    return source if isinstance(source, bytes) else Path(source)


def _without_options(relation: str) -> str:
    """Remove the options of MEKA and all text after them from a relation name."""
    match = _MEKA_COUNT.search(relation)
    return relation if match is None else relation[: match.start()]


def _label_columns(header: Header, labels: Labels | None, source: Source, file: str) -> BoolArray:
    if labels is None:
        labels = _discover_labels(header, source, file)
    return resolve_labels([attribute.name for attribute in header.attributes], labels, file)


def _discover_labels(header: Header, source: Source, file: str) -> Labels:
    if not isinstance(source, bytes):
        path = Path(source)
        bare = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
        if bare.with_suffix(".xml").is_file():
            return bare.with_suffix(".xml")
    counts = {int(count) for count in _MEKA_COUNT.findall(header.relation)}
    if len(counts) == 1:
        return counts.pop()
    if counts:
        raise DatasetFormatError(
            f"the relation name gives several label counts {sorted(counts)}; pass `labels`",
            file=file,
            token=header.relation,
        )
    raise DatasetFormatError(
        "cannot tell which attributes are labels: no XML file of the same name, no '-C n' in the "
        "relation name; pass `labels` (an XML file, names, or a count)",
        file=file,
        token=header.relation,
    )


def write_arff(dataset: Dataset, path: str | Path) -> None:
    """Write logical labels and features as a MEKA ARFF file, labels first.

    Numbers are written with enough digits to read back exactly the same values. The file appears
    only when it is complete. Its suffix selects the compression.

    Parameters
    ----------
    dataset : Dataset
        A data set with logical labels `Y`. This dialect cannot store a distribution. If the name
        contains options of MEKA, ``-C`` and the text after it are replaced.
    path : str or Path
        For example ``tags.arff`` or ``tags.arff.xz``.
    """
    if dataset.Y is None:
        raise ValueError(
            "ARFF in the MEKA dialect stores logical labels, but this data set has a distribution; "
            "binarise it first, or write NPZ, CSV or Parquet"
        )
    n_labels = dataset.Y.shape[1]
    # With two counts, a reader could not know which one is right.
    relation = quote(f"{_without_options(dataset.name)}: -C {n_labels}")
    header = [f"@relation {relation}", ""]
    header += [f"@attribute {quote(name)} {{0,1}}" for name in dataset.label_names]
    header += [f"@attribute {quote(name)} numeric" for name in dataset.feature_names]
    with atomic_write(Path(path)) as file:
        file.write("\n".join([*header, "", "@data", ""]).encode())
        row_text = _sparse_text if is_sparse(dataset.X) else _dense_text
        for i in range(len(dataset)):
            file.write(row_text(dataset, i).encode())


def _number(value: float) -> str:
    # repr of the Python float is the shortest text that reads back to the same float64.
    return "?" if np.isnan(value) else repr(float(value)).removesuffix(".0")


def _sparse_text(dataset: Dataset, i: int) -> str:
    n_labels = dataset.Y.shape[1]
    # A sparse row counts all attributes from 0, and the labels come first.
    cells = [f"{j} {_number(dataset.Y[i, j])}" for j in np.flatnonzero(dataset.Y[i])]
    begin, end = dataset.X.indptr[i], dataset.X.indptr[i + 1]
    indices, data = dataset.X.indices[begin:end], dataset.X.data[begin:end]
    cells += [f"{j + n_labels} {_number(v)}" for j, v in zip(indices, data, strict=True)]
    return f"{{{','.join(cells)}}}\n"


def _dense_text(dataset: Dataset, i: int) -> str:
    return ",".join([*map(_number, dataset.Y[i]), *map(_number, dataset.X[i])]) + "\n"
