"""Parameters that are wrong are named, whatever their type."""

import numpy as np
import pytest

from lemll import CLR, LEMLL, RELIAB

X, Y = np.arange(12.0).reshape(6, 2), np.tile([[1, 0, 1], [0, 1, 1]], (3, 1))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RELIAB(clip="no"), "clip must be True or False, got 'no'"),
        (CLR(mulan_compat=1), "mulan_compat must be True or False, got 1"),
        (LEMLL(thresholds=np.zeros(3)), r"thresholds=array\(.*must be 'zero', 'f1', 'hamming'"),
        (LEMLL(thresholds=None), "thresholds=None must be 'zero', 'f1', 'hamming'"),
    ],
)
def test_wrong_kinds_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
