"""Graphs in files: the same graph comes back, and anything else is refused."""

import numpy as np
import pytest
from scipy import sparse

from lemll import LEMLL
from lemll.exceptions import GraphFileError
from lemll.topology import load_graph, neighbor_graph, reconstruction_weights, save_graph


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((60, 5))


def labels():
    return (np.random.default_rng(1).random((60, 3)) < 0.4).astype(int)


def test_a_graph_comes_back_as_it_was(X, tmp_path):
    graph = neighbor_graph(X, 4)
    path = tmp_path / "graph.npz"
    save_graph(graph, path)
    back = load_graph(path, X)
    assert (back.W != graph.W).nnz == 0
    assert back[1:] == graph[1:]
    assert (graph.W != reconstruction_weights(X, 4)).nnz == 0
    assert [file.name for file in tmp_path.iterdir()] == ["graph.npz"]


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_fit_with_a_stored_graph_is_the_same(X, convert, tmp_path):
    rows, Y = convert(X), labels()
    graph = neighbor_graph(rows, 10)
    save_graph(graph, tmp_path / "graph.npz")
    expected = LEMLL().fit(rows, Y)
    for given in (graph, tmp_path / "graph.npz", str(tmp_path / "graph.npz")):
        model = LEMLL(graph=given).fit(rows, Y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.neighbor_search_ == expected.neighbor_search_
    assert LEMLL(graph=graph.W).fit(rows, Y).neighbor_search_ == {"search": "given"}


def test_a_graph_of_other_rows_is_refused(X, tmp_path):
    save_graph(neighbor_graph(X), tmp_path / "graph.npz")
    other = X.copy()
    other[3, 2] += 1
    with pytest.raises(ValueError, match="was made from other rows"):
        load_graph(tmp_path / "graph.npz", other)
    with pytest.raises(ValueError, match="was made from other rows"):
        LEMLL(graph=tmp_path / "graph.npz").fit(X[::-1], labels())


def test_other_files_are_refused(X, tmp_path):
    with pytest.raises(GraphFileError, match="cannot be read"):
        load_graph(tmp_path / "nothing.npz")
    wrong = tmp_path / "wrong.npz"
    wrong.write_bytes(b"no archive")
    with pytest.raises(GraphFileError, match="is not a graph file of lemll"):
        load_graph(wrong)
    np.savez_compressed(wrong, format=np.array("lemll graph 1"))
    with pytest.raises(GraphFileError, match="compressed"):
        load_graph(wrong)
    np.savez(wrong, format=np.array("other"))
    with pytest.raises(GraphFileError, match="is not a graph file of lemll"):
        load_graph(wrong)
    save_graph(neighbor_graph(X), wrong)
    arrays = dict(np.load(wrong))
    np.savez(wrong, **{**arrays, "indices": arrays["indices"] + 1000})
    with pytest.raises(GraphFileError, match="damaged graph"):
        load_graph(wrong)
    np.savez(wrong, **{**arrays, "format": np.array("lemll graph 0")})
    with pytest.raises(GraphFileError, match="wanted 'lemll graph 1'"):
        load_graph(wrong)
    with pytest.raises(ValueError, match="must be a NeighborGraph, got csr_array"):
        save_graph(neighbor_graph(X).W, wrong)


def test_a_graph_needs_an_existing_folder(tmp_path):
    graph = neighbor_graph(np.arange(6.0)[:, None], n_neighbors=2)
    with pytest.raises(ValueError, match=r"no folder .*absent for g\.npz; create it first"):
        save_graph(graph, tmp_path / "absent" / "g.npz")
