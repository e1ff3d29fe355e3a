"""MATLAB 7.3 files that would read other files, ask for much, or end the process."""

from __future__ import annotations

import json
import struct
import zlib

import h5py
import numpy as np
import pytest
from scipy import sparse

from lemll.datasets import read_mat
from lemll.exceptions import DatasetFormatError

X = np.array([[1.5, 0.0], [0.0, 2.0], [3.0, 1.0]])
Y = np.array([[1, 0], [1, 1], [0, 1]], dtype=np.uint8)


PACKED = {"compression": "gzip", "shuffle": True, "fletcher32": True}


def written(folder, create):
    with h5py.File(folder / "a.mat", "w") as file:
        create(file)
        if "Y" not in file:
            file["Y"] = Y.T
    return folder / "a.mat"


def of_type(dtype, shape=(2, 3)):
    return lambda file: file.create_dataset("X", shape, dtype)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (of_type(np.dtype(("f8", (2, 2)))), "2-D, array of 32 bytes"),
        (of_type("S9"), "2-D, text of 9 bytes"),
        (of_type("S700000000"), "2-D, text of 700000000 bytes"),
        (of_type(np.dtype(("f8", (10_000, 9_000)))), "2-D, array of 720000000 bytes"),
        (of_type(h5py.string_dtype()), "2-D, text of 8 bytes"),
        (of_type(h5py.vlen_dtype("i4")), "2-D, variable length of"),
        (of_type(h5py.ref_dtype), "2-D, reference of"),
        (of_type(h5py.opaque_dtype("M8[s]")), "2-D, opaque of 8 bytes"),
        (of_type(h5py.enum_dtype({"a": 1, "b": 2})), "2-D, enumeration of"),
        (of_type(np.dtype([("real", "f8"), ("imag", "f8")])), "2-D, compound of 16 bytes"),
        (of_type("f8", (2, 3, 4)), "3-D, float64"),
        (of_type("f8", ()), "0-D, float64"),
        (lambda file: file.create_dataset("X", data=h5py.Empty("f8")), "0-D, float64"),
    ],
)
def test_only_matrices_of_plain_numbers_are_read(tmp_path, create, message):
    path = written(tmp_path, create)
    with pytest.raises(
        DatasetFormatError, match=f"'X' must be a matrix of real numbers.*{message}"
    ):
        read_mat(path)


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8", ">f8", ">i2"])
@pytest.mark.parametrize("options", [{}, PACKED])
def test_every_plain_number_is_read(tmp_path, dtype, options):
    cells = np.array([[1, 0], [0, 1], [1, 1]], dtype)
    path = written(tmp_path, lambda file: file.create_dataset("X", data=cells.T, **options))
    np.testing.assert_array_equal(read_mat(path).X, cells)


def test_large_and_chunked_cells_arrive_whole(tmp_path):
    cells = np.random.RandomState(0).rand(700, 1300)
    labels = np.ones((700, 1))
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file.create_dataset("X", data=cells.T, chunks=(7, 33), compression="gzip")
        file["Y"] = labels.T
    np.testing.assert_array_equal(read_mat(tmp_path / "a.mat").X, cells)


def external_storage(file):
    file.create_dataset("X", (2, 3), "f8", external=[("secret.bin", 0, 48)])


def virtual(file):
    with h5py.File("other.h5", "w") as other:
        other["data"] = X.T
    layout = h5py.VirtualLayout((2, 3), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "data", (2, 3))
    file.create_virtual_dataset("X", layout)


def external_link(file):
    virtual(file)
    del file["X"]
    file["X"] = h5py.ExternalLink("other.h5", "data")


def soft_link(file):
    file["elsewhere"] = X.T
    file["X"] = h5py.SoftLink("/elsewhere")


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (
            external_storage,
            "'/X' keeps its cells in other files; only data inside",
        ),
        (virtual, "'/X' keeps its cells in other files"),
        (external_link, "'X' is a ExternalLink; only data inside the file are read"),
        (soft_link, "'X' is a SoftLink; only data inside the file are read"),
    ],
)
def test_no_file_reads_the_bytes_of_another(tmp_path, monkeypatch, create, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.bin").write_bytes(X.tobytes())
    path = written(tmp_path, create)
    with pytest.raises(DatasetFormatError, match=f"not a readable MATLAB 7.3 file: {message}"):
        read_mat(path)


@pytest.mark.parametrize("options", [{"compression": "lzf"}, {"scaleoffset": 2}])
def test_other_filters_are_refused(tmp_path, options):
    path = written(tmp_path, lambda file: file.create_dataset("X", data=X.T, **options))
    with pytest.raises(DatasetFormatError, match="filters .* only gzip, shuffle and fletcher32"):
        read_mat(path)


def group_x(file, *, n_rows=3, data=(1.5, 3.0, 2.0), rows=(0, 2, 1), starts=(0, 2, 3)):
    group = file.create_group("X")
    if n_rows is not None:
        group.attrs["MATLAB_sparse"] = n_rows
    for key, value in (("data", data), ("ir", rows), ("jc", starts)):
        if value is not None:
            group[key] = np.asarray(value)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"rows": (0, 3, 1)}, r"'X' is broken: an index is outside of 0 \.\.\. 2"),
        ({"starts": (0, 2, 9)}, "announce 9 cells, but there are 3 indices and 3 values"),
        ({"starts": (0, 3, 2)}, "must not decrease"),
        ({"rows": (0, 0, 1)}, "'X' contains a cell twice"),
        ({"rows": (0.0, 2.0, 1.0)}, "indices and starts must be whole numbers"),
        ({"rows": None}, "'/X' has no data set 'ir'"),
        ({"data": np.array([b"a", b"b", b"c"])}, "'data' of '/X' must be a vector of numbers"),
        ({"data": np.ones((3, 1))}, "must be a vector of numbers, got 2-D, float64"),
        ({"n_rows": None}, "a group without the attribute MATLAB_sparse"),
        ({"n_rows": "3"}, "MATLAB_sparse of 'X' is not a whole number"),
        ({"n_rows": np.arange(9)}, "MATLAB_sparse of 'X' is not a whole number"),
        ({"n_rows": -3}, r"'X' is broken: the shape \(-3, 2\) is negative"),
    ],
)
def test_sparse_parts_are_checked(tmp_path, parts, message):
    with pytest.raises(DatasetFormatError, match=message):
        read_mat(written(tmp_path, lambda file: group_x(file, **parts)))


def test_a_named_type_is_no_variable(tmp_path):
    def create(file):
        file["X"] = np.dtype("f8")

    with pytest.raises(DatasetFormatError, match="'X' is neither a data set nor a sparse matrix"):
        read_mat(written(tmp_path, create))


def test_a_sparse_group_is_read(tmp_path):
    expected = sparse.csc_array(([1.5, 3.0, 2.0], [0, 2, 1], [0, 2, 3]), shape=(3, 2))
    data = read_mat(written(tmp_path, group_x))
    np.testing.assert_array_equal(data.X.toarray(), expected.toarray())


def test_chunks_are_counted(tmp_path):
    def create(file):
        shape = (2**13, 2**13)
        file.create_dataset("X", (2, 3), "f8", chunks=shape, maxshape=shape, compression="gzip")

    with pytest.raises(DatasetFormatError, match="its arrays would take 536870"):
        read_mat(written(tmp_path, create))


def test_a_chunk_that_unpacks_to_more_than_it_should_is_contained(tmp_path):
    count = 1100
    packer = zlib.compressobj(1, wbits=-15)
    megabyte = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    check_sum = struct.pack(">HH", count * 2**20 % 65521, 1)  # Adler's, of zeros
    stream = b"\x78\x01" + megabyte * count + packer.flush() + check_sum

    def create(file):
        one = file.create_dataset("X", (2, 3), "f8", chunks=(2, 3), compression="gzip")
        one.id.write_direct_chunk((0, 0), stream)

    with pytest.raises(DatasetFormatError, match=r"not a readable MATLAB 7\.3 file"):
        read_mat(written(tmp_path, create))


def described(**changes) -> str:
    part = {"shape": [2, 2], "dtype": "<f8", "chunk": 0}
    one = {"name": "X", "odd": None, "n_rows": None, "parts": [part | changes]}
    return f"print({json.dumps([one])!r})"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os.kill(os.getpid(), 11)", "the HDF5 library ended with code -11 while"),
        ("print('no description')", "the HDF5 library ended with code 0 while"),
        (described(), "the HDF5 library ended with code 0 while"),
        (described(shape=[-2, 2]), "the HDF5 library ended with code 0 while"),
        (described(shape=[2, 2, 2]), "the HDF5 library ended with code 0 while"),
        (described(dtype="O"), "the HDF5 library ended with code 0 while"),
        ("import sys; sys.stderr.write('bad tree'); sys.exit(1)", r"7\.3 file: bad tree"),
    ],
)
def test_a_death_of_the_library_is_an_error_of_ours(tmp_path, monkeypatch, code, message):
    from lemll.datasets import matlab as _hdf5

    (tmp_path / "child.py").write_text(code)
    monkeypatch.setattr(_hdf5, "_CHILD", tmp_path / "child.py")
    with pytest.raises(DatasetFormatError, match=message):
        read_mat(written(tmp_path, of_type("f8")))
