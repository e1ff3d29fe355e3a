"""Graphs shared between the cells of a process: fewer computations, the same figures."""

import numpy as np
import pytest
from engine_methods import plan

from lemll.datasets import make_artificial
from lemll.enhancers import ENHANCERS, LEMLLEnhancer
from lemll.lab import Store, run
from lemll.lab.searches import Graphs
from lemll.rivals import RIVAL_ENHANCERS, ML2Enhancer, MLFEEnhancer


@pytest.mark.parametrize(
    "enhancer", [*ENHANCERS, *RIVAL_ENHANCERS], ids=lambda enhancer: enhancer.__name__
)
def test_a_graph_made_beforehand_changes_nothing(enhancer):
    data = make_artificial(60, random_state=0)
    Y = (data.D > 0.3).astype(int)
    graph = enhancer().make_graph(data.X, 3)
    assert (graph is None) == ("graph" not in enhancer().get_params())
    if graph is not None:
        with_graph = enhancer(graph=graph).fit_enhance(data.X, Y)
        np.testing.assert_allclose(with_graph, enhancer().fit_enhance(data.X, Y), atol=1e-9)


def test_a_graph_is_made_once_for_the_same_features_and_settings(monkeypatch):
    made = []
    monkeypatch.setattr(LEMLLEnhancer, "make_graph", lambda self, X, n: made.append(1) or object())
    graphs, data = Graphs(), make_artificial(30, random_state=0)
    first = graphs.of(LEMLLEnhancer(), data)
    assert graphs.of(LEMLLEnhancer(), data) is first
    assert len(made) == 1
    graphs.of(LEMLLEnhancer(n_neighbors=3), data)
    graphs.of(LEMLLEnhancer(), make_artificial(30, random_state=1))
    assert len(made) == 3
    assert graphs.of(LEMLLEnhancer(graph=np.eye(30)), data) is None


def test_old_graphs_make_room(monkeypatch):
    monkeypatch.setattr(LEMLLEnhancer, "make_graph", lambda self, X, n: object())
    graphs, data = Graphs(), make_artificial(30, random_state=0)
    for n_neighbors in range(1, 8):
        graphs.of(LEMLLEnhancer(n_neighbors=n_neighbors), data)
    assert len(graphs._kept) == 3


def test_one_computation_serves_all_thresholds(tmp_path, monkeypatch):
    made = []
    for enhancer in (ML2Enhancer, MLFEEnhancer):
        original = enhancer.make_graph

        def counted(self, X, n_labels, original=original):
            made.append(type(self).__name__)
            return original(self, X, n_labels)

        monkeypatch.setattr(enhancer, "make_graph", counted)
    protocol = plan(
        "ML2", "MLFE", experiment="reconstruction", datasets=("artificial",), thresholds=(0.2, 0.5)
    )
    assert run(protocol, Store(tmp_path / "store"), backend="sequential").done == 4
    assert sorted(made) == ["ML2Enhancer", "MLFEEnhancer"]
