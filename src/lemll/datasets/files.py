"""Read and write data sets in any supported format, chosen by the suffix of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lemll.datasets._streams import plain_suffix
from lemll.datasets.arff import read_arff, write_arff
from lemll.datasets.dataset import Dataset
from lemll.datasets.matlab import read_mat
from lemll.datasets.npz import read_npz, write_npz
from lemll.datasets.svmlight import read_svmlight
from lemll.datasets.tables import read_table, write_csv, write_parquet

_READERS: dict[str, Callable[..., Dataset]] = {
    ".arff": read_arff,
    ".csv": read_table,
    ".mat": read_mat,
    ".npz": read_npz,
    ".parquet": read_table,
    ".svm": read_svmlight,
    ".txt": read_svmlight,
}
_WRITERS: dict[str, Callable[[Dataset, Path], None]] = {
    ".arff": write_arff,
    ".csv": write_csv,
    ".npz": write_npz,
    ".parquet": write_parquet,
}


def looks_like_a_file(path: str | Path) -> bool:
    """Tell whether a name has the suffix of a supported format."""
    return plain_suffix(Path(path)) in _READERS


def find_reader(path: str | Path) -> Callable[..., Dataset]:
    """Return the reader for the suffix of a file."""
    reader = _READERS.get(plain_suffix(Path(path)))
    if reader is None:
        raise ValueError(f"no reader for {str(path)!r}; known suffixes: {', '.join(_READERS)}")
    return reader


def read_dataset(path: str | Path, **options: object) -> Dataset:
    """Read a data set with the reader for its suffix.

    Parameters
    ----------
    path : str or Path
        ``.arff``, ``.csv``, ``.svm`` or ``.txt`` (LIBSVM), each also compressed (``.gz``,
        ``.bz2``, ``.xz``); ``.mat``, ``.npz``, ``.parquet``.
    **options
        Passed to the reader, for example ``labels=``.

    Returns
    -------
    Dataset
        The content of the file.
    """
    return find_reader(path)(path, **options)


def write_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a data set with the writer for the suffix.

    Parameters
    ----------
    dataset : Dataset
        The data set to write.
    path : str or Path
        ``.arff`` (MEKA dialect) or ``.csv``, each also compressed; ``.npz``; ``.parquet``.
    """
    writer = _WRITERS.get(plain_suffix(Path(path)))
    if writer is None:
        raise ValueError(f"no writer for {str(path)!r}; known suffixes: {', '.join(_WRITERS)}")
    writer(dataset, Path(path))
