"""The artificial distributions and the digit tags."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from lemll.datasets.generators import load_digit_tags, make_artificial, make_artificial_surface


def slow_distribution(x):
    t1, t2, t3 = (v + 0.5 * v**2 + 0.2 * v**3 + 1 for v in x)
    psi1 = (4 * t1 + 2 * t2 + t3) ** 2
    psi2 = (t1 + 2 * t2 + 4 * t3 + 0.01 * psi1) ** 2
    psi3 = (t1 + 4 * t2 + 2 * t3 + 0.01 * psi2) ** 2
    total = psi1 + psi2 + psi3
    return [psi1 / total, psi2 / total, psi3 / total]


# --- Artificial -------------------------------------------------------------------------------


def test_artificial_points_and_distribution():
    data = make_artificial(1000, random_state=0)
    assert data.X.shape == data.D.shape == (1000, 3)
    assert data.Y is None
    assert np.abs(data.X).max() <= 1
    assert_allclose(data.X.mean(axis=0), 0, atol=0.08)  # uniform on the cube
    assert_allclose(data.X.var(axis=0), 1 / 3, rtol=0.1)
    assert_allclose(data.D, [slow_distribution(x) for x in data.X], rtol=1e-12)
    assert data.feature_names == ("x1", "x2", "x3")
    assert data.label_names == ("y1", "y2", "y3")
    assert data.name == "artificial"


def test_artificial_at_the_origin_by_hand():
    # x = 0 gives t = (1, 1, 1), psi = 7^2, (7 + .49)^2, (7 + .561001)^2
    surface = make_artificial_surface(step=1)
    psi = np.array([49, 7.49**2, 7.561001**2])
    middle = np.flatnonzero((surface.X == 0).all(axis=1))
    assert len(middle) == 1
    assert_allclose(surface.D[middle[0]], psi / psi.sum(), rtol=1e-12)


def test_the_seed_decides():
    first, again = make_artificial(5, random_state=3), make_artificial(5, random_state=3)
    assert_array_equal(first.X, again.X)
    assert_array_equal(make_artificial(5, random_state=np.random.RandomState(3)).X, first.X)
    assert not np.array_equal(make_artificial(5, random_state=4).X, first.X)
    assert len(make_artificial().X) == 500


def test_no_global_seed_is_touched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state is what is tested
    make_artificial(5, random_state=0)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_the_surface():
    data = make_artificial_surface()
    assert data.X.shape == (51 * 51, 3)
    x1, x2, x3 = data.X.T
    assert_allclose(np.unique(x1), np.arange(-25, 26) * 0.04, atol=1e-15)
    assert_allclose(x3, [math.sin((a + b) * math.pi) for a, b in zip(x1, x2, strict=True)])
    assert_allclose(data.D, [slow_distribution(x) for x in data.X], rtol=1e-12)
    image = data.X.reshape(51, 51, 3)
    assert (np.diff(image[:, :, 0], axis=1) == 0).all()  # the second feature runs faster
    assert (np.diff(image[:, :, 1], axis=0) == 0).all()
    assert data.name == "artificial-surface"


@pytest.mark.parametrize("n_samples", [0, -3, 2.5, "ten", None])
def test_bad_n_samples(n_samples):
    with pytest.raises(ValueError, match="n_samples must be a positive integer, got"):
        make_artificial(n_samples)


@pytest.mark.parametrize("step", [0, -0.1, 3, math.nan, "0.04", None])
def test_bad_step(step):
    with pytest.raises(ValueError, match=r"step must be a number in \(0, 2\], got"):
        make_artificial_surface(step)


def test_a_step_that_does_not_divide_the_side():
    with pytest.raises(ValueError, match=r"must divide 2, .* got 0\.3; the nearest .* 0\.2857"):
        make_artificial_surface(0.3)


# --- Digit tags -------------------------------------------------------------------------------


def test_digit_tags_are_what_the_table_says():
    data = load_digit_tags()
    digits = load_digits()
    assert_array_equal(data.X, digits.data)
    assert data.Y.dtype == np.int8
    tags = dict(zip(data.label_names, data.Y.T, strict=True))
    for row in range(0, len(digits.data), 50):
        digit, image = int(digits.target[row]), digits.images[row]
        assert tags["even"][row] == (digit % 2 == 0)
        assert tags["prime"][row] == (digit > 1 and all(digit % k for k in range(2, digit)))
        assert tags["loop"][row] == (digit in {0, 6, 8, 9})
        assert tags["large"][row] == (digit >= 5)
        assert tags["straight"][row] == (digit in {1, 4, 7})
        assert tags["high"][row] == (image[:4].sum() > image[4:].sum())
        assert tags["left"][row] == (image[:, :4].sum() > image[:, 4:].sum())
    ink = digits.data.sum(axis=1)
    assert ink[tags["heavy"] == 1].min() > np.median(ink) >= ink[tags["heavy"] == 0].max()


def test_digit_tags_make_a_fair_multilabel_set():
    data = load_digit_tags()
    assert data.X.shape == (1797, 64)
    assert data.Y.shape == (1797, 8)
    sizes = data.Y.sum(axis=1)
    assert sizes.min() >= 1
    assert sizes.max() <= 7
    assert ((data.Y.mean(axis=0) > 0.25) & (data.Y.mean(axis=0) < 0.6)).all()
    assert data.Y.sum(axis=1).mean() == pytest.approx(3.623, abs=5e-4)
    assert len(np.unique(data.Y, axis=0)) == 70
    assert data.feature_names[9] == "pixel_1_1"
    assert data.name == "digit-tags"
