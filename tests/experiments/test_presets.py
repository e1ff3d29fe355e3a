"""The settings behind the published tables, and cells that they reproduce."""

from __future__ import annotations

import pytest

from lemll.datasets import binarize_distribution, load_dataset
from lemll.enhancers import FCMEnhancer, KMEnhancer, LabelPropagationEnhancer
from lemll.experiments import published_reconstruction
from lemll.experiments.presets import RECONSTRUCTION_METHODS, reconstruction_enhancer
from lemll.metrics import METRICS

# How far rounded figures may be from the printed ones.
WITHIN = {"KM": 0.002, "RELIAB": 0.002, "FCM": 0.003, "ML2": 0.003, "MLFE": 0.005}


@pytest.mark.parametrize(
    ("method", "name"),
    # MLFE's codes of the larger set alone would take as long as all the rest.
    [(method, "SJAFFE") for method in WITHIN]
    + [(method, "Yeast_heat") for method in WITHIN if method != "MLFE"],
)
def test_published_cells_come_out(data_dir, method, name):
    data = load_dataset(name, download_if_missing=False)
    cells = [c for c in published_reconstruction() if (c.method, c.dataset) == (method, name)]
    thresholds = {0.1, 0.3, 0.5} if name == "SJAFFE" else {0.3}
    checked = 0
    for threshold in thresholds:
        enhancer = reconstruction_enhancer(method, name, threshold)
        recovered = enhancer.fit_enhance(data.X, binarize_distribution(data.D, threshold))
        for cell in cells:
            if cell.threshold == threshold:
                value = float(METRICS[cell.measure](data.D, recovered))
                assert abs(round(value, 3) - cell.value) <= WITHIN[method] + 1e-9, cell
                checked += 1
    assert checked == 3 * len(thresholds)


@pytest.mark.parametrize("method", ["KM", "RELIAB", "FCM"])
def test_the_exceptional_set_too(data_dir, method):
    data = load_dataset("Natural_Scene", download_if_missing=False)
    enhancer = reconstruction_enhancer(method, "Natural_Scene", 0.3)
    recovered = enhancer.fit_enhance(data.X, binarize_distribution(data.D, 0.3))
    for cell in published_reconstruction():
        if (cell.method, cell.dataset, cell.threshold) == (method, "Natural_Scene", 0.3):
            value = float(METRICS[cell.measure](data.D, recovered))
            assert abs(round(value, 3) - cell.value) <= WITHIN[method] + 1e-9, cell


def test_exceptions_are_settings_of_the_published_run_not_defaults():
    assert reconstruction_enhancer("RELIAB", "SJAFFE", 0.1).alpha == 0.7
    assert reconstruction_enhancer("RELIAB", "Natural_Scene", 0.1).alpha == 0.3
    assert LabelPropagationEnhancer().alpha == 0.5
    assert reconstruction_enhancer("KM", "Natural_Scene", 0.1).normalization == "sigmoid"
    assert KMEnhancer().normalization == "sum"
    assert FCMEnhancer().stop == "memberships"


def test_every_published_method_has_settings():
    published = {cell.method for cell in published_reconstruction()}
    assert published < set(RECONSTRUCTION_METHODS)


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="method='SVM' is not part of the reconstruction"):
        reconstruction_enhancer("SVM", "SJAFFE", 0.5)
