"""A table of photos that are made up, with the truth beside it: mistakes and degrees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lemll._types import FloatArray, Frame
from lemll.exceptions import import_extra

# What a photo can show: words of captions, and blue, green, brightness and number of edges.
_SHOWN: dict[str, tuple[str, tuple[float, float, float, float]]] = {
    "sea": ("waves water surf blue salt boat", (0.9, 0.3, 0.6, 0.4)),
    "beach": ("sand shore towel coast shells waves", (0.4, 0.3, 0.9, 0.3)),
    "sky": ("clouds blue wide air horizon light", (0.8, 0.2, 0.8, 0.1)),
    "sunset": ("red evening glow horizon light warm", (0.2, 0.1, 0.5, 0.2)),
    "mountain": ("peak rock hike climb summit high", (0.4, 0.3, 0.5, 0.7)),
    "snow": ("white cold winter ski frozen peak", (0.6, 0.2, 1.0, 0.3)),
    "forest": ("trees green path leaves hike moss", (0.1, 0.9, 0.3, 0.9)),
    "lake": ("water still reflection boat shore calm", (0.7, 0.5, 0.5, 0.3)),
    "city": ("street tower windows traffic square bridge", (0.3, 0.1, 0.5, 1.0)),
    "night": ("dark stars lamps moon late glow", (0.2, 0.0, 0.0, 0.3)),
    "people": ("friends smile group family crowd walking", (0.3, 0.2, 0.6, 0.6)),
    "bird": ("wings feathers flight nest gull song", (0.5, 0.4, 0.7, 0.4)),
}
_PLACES = (
    ("sea", "beach", "sky", "sunset", "people", "bird"),
    ("mountain", "snow", "sky", "forest", "lake", "people"),
    ("city", "night", "people", "sky", "sunset"),
    ("lake", "forest", "bird", "sky", "sunset"),
)
_OTHER_WORDS = "a the with our from this day one more trip camera picture".split()
_CAMERAS = ("phone", "compact", "reflex")
# A person gives a tag to what takes up so much of a photo.
_SEEN = 0.12
_WORDS = 24
# The share of words in a caption that have to do with the photo.
_TELLING = 0.75
_NOISE = 0.03


class PhotoTable(NamedTuple):
    """The table, and what a user would not know.

    Attributes
    ----------
    frame : pandas.DataFrame
        Columns ``file`` (id), ``caption``, ``camera``, numbers, and ``tags``.
    label_names : tuple of str
        The tags.
    truth : ndarray of shape (n_rows, n_tags)
        The right tags, 0/1.
    given : ndarray of shape (n_rows, n_tags)
        The tags in the table: those of `truth` with the planted mistakes.
    degrees : ndarray of shape (n_rows, n_tags)
        How much of each photo shows what a tag says; rows sum to 1.
    """

    frame: Frame
    label_names: tuple[str, ...]
    truth: FloatArray
    given: FloatArray
    degrees: FloatArray


def make_photos(
    n_rows: int = 400, *, n_wrong: int = 25, n_missing: int = 25, seed: int = 0
) -> PhotoTable:
    """Make photos of four kinds of places; each shows two to five things to known degrees.

    Parameters
    ----------
    n_rows : int, default=400
        Number of photos.
    n_wrong, n_missing : int, default=25
        Number of photos in which a tag is added, and left out, at random.
    seed : int, default=0
        The seed.

    Returns
    -------
    PhotoTable
        The table and its truth.
    """
    pandas = import_extra("pandas", "tables", "A table")
    rng = np.random.default_rng(seed)
    names = tuple(_SHOWN)
    degrees = np.zeros((n_rows, len(names)))
    for row in degrees:
        place = _PLACES[rng.integers(len(_PLACES))]
        things = rng.choice(place, size=rng.integers(2, 6), replace=False)
        row[[names.index(thing) for thing in things]] = rng.dirichlet(np.full(len(things), 1.5))
    truth = (degrees >= _SEEN).astype(float)
    looks = degrees @ np.array([look for _, look in _SHOWN.values()])
    looks += _NOISE * rng.standard_normal(looks.shape)
    columns = dict(zip(("blue", "green", "brightness", "edges"), looks.T.round(3), strict=True))
    frame = pandas.DataFrame(
        {
            "file": [f"photo{i:04}.jpg" for i in range(n_rows)],
            "caption": [_caption(row, names, rng) for row in degrees],
            "camera": rng.choice(_CAMERAS, size=n_rows),
            **columns,
        }
    )
    given = truth.copy()
    for value, count in ((0, n_wrong), (1, n_missing)):
        # At most one tag of a photo is left out, so every photo keeps one.
        several = np.flatnonzero(truth.sum(axis=1) > 1)
        for row in rng.choice(several, size=count, replace=False):
            label = rng.choice(np.flatnonzero(truth[row] == value))
            given[row, label] = 1 - value
    frame["tags"] = [";".join(np.array(names)[row == 1]) for row in given]
    return PhotoTable(frame, names, truth, given, degrees)


def _caption(degrees: FloatArray, names: tuple[str, ...], rng: np.random.Generator) -> str:
    words = []
    for thing in rng.choice(len(names), size=_WORDS, p=degrees):
        of = _SHOWN[names[thing]][0].split() if rng.random() < _TELLING else _OTHER_WORDS
        words.append(of[rng.integers(len(of))])
    return " ".join(words)
