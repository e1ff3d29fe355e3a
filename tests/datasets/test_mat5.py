"""The own reader of MATLAB's version 5: against SciPy's on honest files, and on dishonest ones."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import io as scipy_io
from scipy import sparse
from support import in_process

from lemll._files import Budget
from lemll.datasets import read_mat
from lemll.exceptions import DatasetFormatError

X = np.array([[1.5, 0.0], [0.0, 2.0], [3.0, 1.0]])
Y = np.array([[1, 0], [1, 1], [0, 1]], dtype=np.uint8)
STORAGE = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "bool"]


def load(data: bytes, *wanted: str):
    from lemll.datasets.matlab import read_mat5

    return read_mat5(io.BufferedReader(io.BytesIO(data)), wanted, Budget("a.mat", 2**30, None))


# By hand


def header(order: str = "<") -> bytes:
    mark = b"IM" if order == "<" else b"MI"
    return b"MATLAB 5.0".ljust(124) + struct.pack(order + "H", 0x0100) + mark


def part(kind: int, data: bytes, order: str = "<", *, small: bool = False) -> bytes:
    if small:
        return struct.pack(order + "I", len(data) << 16 | kind) + data.ljust(4, b"\0")
    return struct.pack(order + "II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(name, parts, *, shape=(3, 2), kind=6, flags=0, order="<", small=False) -> bytes:
    body = part(6, struct.pack(order + "II", kind | flags, 0), order)
    body += part(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
    body += part(1, name.encode(), order, small=small) + b"".join(parts)
    return struct.pack(order + "II", 14, len(body)) + body


def packed(element: bytes) -> bytes:
    data = zlib.compress(element)
    return struct.pack("<II", 15, len(data)) + data


def ints(*numbers: int) -> bytes:
    return part(5, struct.pack(f"<{len(numbers)}i", *numbers))


def sparse_x(rows, starts, values, shape=(3, 2)) -> bytes:
    parts = [ints(*rows), ints(*starts), part(9, struct.pack(f"<{len(values)}d", *values))]
    return matrix("X", parts, kind=5, shape=shape)


CELLS = part(9, X.tobytes(order="F"))
LABELS = matrix("Y", [part(2, Y.tobytes(order="F"))], kind=9)
GOOD_X = matrix("X", [CELLS])


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", STORAGE)
def test_every_storage_type_in_both_byte_orders(order, kind):
    cells = np.array([[1, 2, 3], [4, 5, 6]], dtype=order + STORAGE[kind])
    parts = [part(kind, cells.tobytes(order="F"), order)]
    data = header(order) + matrix("v", parts, shape=(2, 3), order=order, small=True)
    found = load(data, "v")["v"]
    np.testing.assert_array_equal(found, cells)
    assert found.dtype == cells.dtype.newbyteorder("=")
    assert found.dtype.isnative


def test_small_elements_and_a_last_padding_left_away():
    parts = [part(2, b"\1\2\3", small=True)]
    assert load(header() + matrix("v", parts, shape=(3, 1)), "v")["v"].tolist() == [[1], [2], [3]]
    element = bytearray(matrix("v", [part(2, b"\1\2\3\4\5")], shape=(5, 1))[:-3])
    element[4:8] = struct.pack("<I", len(element) - 8)
    assert load(header() + bytes(element), "v")["v"].sum() == 15


# Against SciPy


@st.composite
def variables(draw):
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.tuples(st.integers(0, 6), st.integers(0, 6)))
    elements = st.floats(width=16, allow_nan=False) if dtype.kind == "f" else None
    dense = draw(hnp.arrays(dtype, shape, elements=elements))
    if draw(st.booleans()) and min(shape) > 0:
        return sparse.csc_array(dense)
    return dense if draw(st.booleans()) else np.asfortranarray(dense)


@settings(max_examples=max(200, settings().max_examples), deadline=None)
@given(
    values=st.dictionaries(st.sampled_from(["X", "features", "a" * 31]), variables(), min_size=1),
    compressed=st.booleans(),
)
@pytest.mark.slow
def test_what_scipy_writes_is_read_as_scipy_reads_it(values, compressed):
    buffer = io.BytesIO()
    scipy_io.savemat(buffer, {**values, "text": "left alone"}, do_compression=compressed)
    found = load(buffer.getvalue(), *values)
    theirs = scipy_io.loadmat(io.BytesIO(buffer.getvalue()))
    assert found.keys() == values.keys()
    for name, mine in found.items():
        assert sparse.issparse(mine) == sparse.issparse(theirs[name])
        assert mine.shape == theirs[name].shape
        if sparse.issparse(mine):
            np.testing.assert_array_equal(mine.toarray(), theirs[name].toarray())
        else:
            np.testing.assert_array_equal(mine, theirs[name])
            assert mine.dtype == theirs[name].dtype


def test_real_files_are_read_as_scipy_reads_them(data_dir):
    paths = sorted(data_dir.rglob("*.mat"))
    assert paths
    for path in paths:
        theirs = scipy_io.loadmat(path)
        names = [name for name in theirs if not name.startswith("__")]
        for name, mine in load(path.read_bytes(), *names).items():
            if sparse.issparse(mine):
                assert abs(mine - theirs[name]).nnz == 0
            elif isinstance(mine, np.ndarray):
                np.testing.assert_array_equal(mine, theirs[name])


# Dishonest files


@pytest.mark.parametrize("pack", [bytes, packed])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 3], [0, 1, 2], [1, 1]), r"an index is outside of 0 \.\.\. 2"),
        (([0, -1], [0, 1, 2], [1, 1]), "an index is outside"),
        (([0, 2**30], [0, 1, 2], [1, 1]), "an index is outside"),
        (([0, 1], [0, 2, 1], [1, 1]), "the starts must begin at 0 and must not decrease"),
        (([0, 1], [1, 1, 2], [1, 1]), "the starts must begin at 0"),
        (([0, 1], [0, -1, 2], [1, 1]), "must not decrease"),
        (([0], [0, 1, 2], [1, 1]), "announce 2 cells, but there are 1 indices and 2 values"),
        (([0, 1], [0, 1, 2], [1]), "announce 2 cells, but there are 2 indices and 1 values"),
        (([0, 1], [0, 1, 2**31 - 1], [1, 1]), "announce 2147483647 cells"),
        (([1, 1], [0, 2, 2], [1, 1]), "'X' contains a cell twice"),
        (([0, 1], [0, 2], [1, 1]), "8 bytes of int32 do not fit their variable"),
    ],
)
def test_a_sparse_matrix_is_checked_before_it_is_made(tmp_path, pack, parts, message):
    (tmp_path / "a.mat").write_bytes(header() + pack(sparse_x(*parts)) + LABELS)
    with pytest.raises(DatasetFormatError, match=message):
        read_mat(tmp_path / "a.mat")


def test_a_sparse_matrix_may_be_unsorted_and_have_room_to_spare(tmp_path):
    element = sparse_x([2, 0, 1, 9], [0, 2, 3], [3.0, 1.5, 2.0, 0.0])
    (tmp_path / "a.mat").write_bytes(header() + element + LABELS)
    expected = [[1.5, 0], [0, 2], [3, 0]]
    np.testing.assert_array_equal(read_mat(tmp_path / "a.mat").X.toarray(), expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (struct.pack("<II", 14, 10**6) + GOOD_X, "an element has 1000000 bytes, but only "),
        (struct.pack("<II", 7, 0), "an element of type 7, expected a matrix"),
        (GOOD_X[:6], "it is cut short"),
        (GOOD_X + LABELS + GOOD_X, "the variable 'X' occurs twice"),
        (matrix("X", [CELLS], shape=(3, 3)), "48 bytes of float64 do not"),
        (matrix("X", [CELLS], shape=(-3, -2)), r"'X' has the dimensions \(-3, -2\)"),
        (matrix("X", [CELLS], shape=(6,)), r"'X' has the dimensions \(6,\)"),
        (matrix("X", [part(100, X.tobytes())]), "numbers are stored as type 100"),
        (matrix("X", [struct.pack("<II", 9, 48) + bytes(8)]), "a part of 48 bytes is in a matrix"),
        (matrix("X", [struct.pack("<I", 5 << 16 | 2) + bytes(12)]), "a small element has 5 bytes"),
        (matrix("X", [], shape=(1,) * 65), "260 bytes of int32 do not fit"),
        (packed(GOOD_X[:60]), "a compressed variable is cut short"),
        (packed(GOOD_X)[:-4] + b"oops", "a compressed variable is damaged"),
        (packed(GOOD_X + bytes(99)), "does not end where its matrix does"),
        (packed(packed(GOOD_X)), "an element of type 15, expected a matrix"),
    ],
)
def test_broken_files(tmp_path, content, message):
    (tmp_path / "a.mat").write_bytes(header() + content)
    with pytest.raises(DatasetFormatError, match=f"not a readable .* 5 file.*{message}"):
        read_mat(tmp_path / "a.mat")


def test_the_old_version_4_is_refused_with_advice(tmp_path):
    scipy_io.savemat(tmp_path / "a.mat", {"X": X, "Y": Y}, format="4")
    with pytest.raises(DatasetFormatError, match="looks like version 4; .* save it with -v7"):
        read_mat(tmp_path / "a.mat")


def test_variables_that_nobody_wants_are_not_unpacked(tmp_path):
    unwanted = packed(matrix("other", [part(9, np.random.RandomState(0).bytes(10**5))]))
    broken = unwanted[: len(unwanted) // 2] + bytes(len(unwanted) - len(unwanted) // 2)
    (tmp_path / "a.mat").write_bytes(header() + broken + GOOD_X + LABELS)
    np.testing.assert_array_equal(read_mat(tmp_path / "a.mat").X, X)


def test_names_and_classes_that_nobody_wants_are_stepped_over(tmp_path):
    long_name = matrix("n" * 300, [CELLS])
    handle = matrix("X", [CELLS], kind=16)
    (tmp_path / "a.mat").write_bytes(header() + long_name + handle + GOOD_X + LABELS)
    np.testing.assert_array_equal(read_mat(tmp_path / "a.mat").X, X)


def in_a_process(path) -> str:
    """Read in another process, as the file may end it; return what was said at the end."""
    code = f"from lemll.datasets import read_mat\ntry: read_mat({str(path)!r})\n"
    code += "except Exception as error: print(type(error).__name__, error)"
    result = in_process(code, check=False)
    assert result.returncode == 0, f"the process ended with {result.returncode}"
    return result.stdout


@pytest.mark.slow
def test_one_flipped_byte_does_not_end_the_process(tmp_path):
    scipy_io.savemat(tmp_path / "a.mat", {"X": X, "Y": Y})
    data = bytearray((tmp_path / "a.mat").read_bytes())
    data[176] = 100
    (tmp_path / "a.mat").write_bytes(data)
    assert in_a_process(tmp_path / "a.mat").startswith("DatasetFormatError")


@pytest.mark.slow
def test_deeply_nested_cells_do_not_end_the_process(tmp_path):
    depth = 10_000
    head = matrix("X", [], shape=(1, 1), kind=1)[8:]
    sizes = range(depth * (8 + len(head)) - 8, 0, -8 - len(head))
    cells = b"".join(struct.pack("<II", 14, size) + head for size in sizes)
    (tmp_path / "a.mat").write_bytes(header() + cells + LABELS)
    assert "must be a matrix of real numbers" in in_a_process(tmp_path / "a.mat")


def test_sparse_cells_are_counted_by_what_is_stored_not_by_what_is_announced(tmp_path):
    count = 30_000_000
    parts = [part(5, bytes(4 * count)), ints(0, count // 2, count), part(2, bytes(count))]
    (tmp_path / "a.mat").write_bytes(header() + packed(matrix("X", parts, kind=5)) + LABELS)
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_mat(tmp_path / "a.mat")
