"""Parameters that are wrong are named, whatever their type."""

import numpy as np
import pytest

from lemll import LEMLL, LEMLLCV, MSVRCV, BinaryRelevance
from lemll.rivals import CLR, ECC, RELIAB

X, Y = np.arange(12.0).reshape(6, 2), np.tile([[1, 0, 1], [0, 1, 1]], (3, 1))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RELIAB(clip="no"), "clip must be True or False, got 'no'"),
        (CLR(mulan_compat=1), "mulan_compat must be True or False, got 1"),
        (LEMLL(thresholds=np.zeros(3)), r"thresholds=array\(.*must be 'zero', 'f1', 'hamming'"),
        (LEMLL(thresholds=None), "thresholds=None must be 'zero', 'f1', 'hamming'"),
        (LEMLL(alpha=10**400), r"alpha must be finite and > 0, got 1000000000.*0\.\.\."),
        (LEMLL(alpha=10**5000), "alpha must be finite and > 0, got an integer of 16610 bits"),
        (LEMLL(max_iter=10**400), r"max_iter must be at most 2\*\*63 - 1, got 1000"),
        (LEMLL(kernel="poly", kernel_params={"degree": 10**9}), "the poly kernel reaches inf"),
        *(
            (
                kind(n_jobs=n_jobs),
                f"n_jobs must be None, a whole number > 0, or -1 .*; got {n_jobs}",
            )
            for kind in (LEMLLCV, MSVRCV, BinaryRelevance, CLR, ECC)
            for n_jobs in (float("inf"), 0, 1.5)
        ),
    ],
)
def test_wrong_kinds_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
