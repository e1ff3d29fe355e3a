"""LEMLL on Dask arrays and frames: rows stay on their workers, and only sums travel.

Needs the extra: ``pip install "lemll[dask]"``.
"""

from lemll.dask.estimator import LEMLL

__all__ = ["LEMLL"]
