"""The paper's Tables VI to VIII, LEMLL's column, cell by cell."""

from __future__ import annotations

import pytest

from lemll.datasets import list_datasets, load_dataset, load_digit_tags
from lemll.experiments import published_reconstruction, recover_with_lemll


def test_the_published_cells_are_complete():
    cells = published_reconstruction()
    assert len(cells) == 6 * 15 * 5 * 3
    assert len({(c.measure, c.threshold, c.dataset, c.method) for c in cells}) == len(cells)


@pytest.mark.parametrize("name", [info.name for info in list_datasets(table="V") if info.path])
def test_lemll_reproduces_its_published_cells(data_dir, name):
    published = {
        (cell.measure, cell.threshold): cell.value
        for cell in published_reconstruction()
        if cell.method == "LEMLL" and cell.dataset == name
    }
    dataset = load_dataset(name, download_if_missing=False)
    ours = {(cell.measure, cell.threshold): cell for cell in recover_with_lemll(dataset)}
    assert ours.keys() == published.keys()
    assert len(ours) == 15
    for key, cell in ours.items():
        assert cell.optimality <= 1e-6
        assert abs(round(cell.value, 3) - published[key]) <= 0.001 + 1e-9, key


def test_logical_labels_cannot_be_recovered():
    with pytest.raises(ValueError, match="has logical labels, not a distribution"):
        next(recover_with_lemll(load_digit_tags()))
