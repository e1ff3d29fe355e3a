"""A small table of photos with tags, and a model of it."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from lemll import BinaryRelevance
from lemll.models import fit_table
from lemll.models.files import _checksum, checksum_of
from lemll.tables import LabelSpec, Table

TAGS = ("night", "sea", "sky")


def photos(n=120, seed=0):
    """Return a frame with ids, dates, categories, text, gaps and tags that depend on them."""
    rng = np.random.RandomState(seed)
    hue, light = rng.randn(n), rng.randn(n)
    camera = rng.choice(["Nikon", "Canon", "Leica"], n)
    day = rng.randint(0, 700, n)
    Y = np.column_stack([light < -0.3, hue > 0, hue + light > 0.2])
    caption = [
        " ".join(["photo", "of", rng.choice(["home", "town", "trip"]), "water" * bool(row[1])])
        + f" {i}"
        for i, row in enumerate(Y)
    ]
    return pd.DataFrame(
        {
            "file": [f"IMG_{seed}_{i:05d}" for i in range(n)],
            "taken": (pd.Timestamp("2023-01-01") + pd.to_timedelta(day, "D")).strftime("%Y-%m-%d"),
            "camera": np.where(rng.rand(n) < 0.1, None, camera),
            "caption": caption,
            "hue": np.where(rng.rand(n) < 0.1, np.nan, hue.round(4)),
            "light": light.round(4),
            "tags": [";".join(np.array(TAGS)[row]) for row in Y],
        }
    )


@pytest.fixture(name="photos", scope="session")
def _photos():
    return photos


@pytest.fixture(name="table", scope="session")
def _table():
    return Table(photos(), "photos")


@pytest.fixture(name="spec", scope="session")
def _spec():
    return LabelSpec(tags="tags", untagged="none")


@pytest.fixture(name="model", scope="session")
def _model(table, spec):
    return fit_table(table, spec, ids="file", learner=BinaryRelevance())[0]


def rewrite(file, path, edit, *, seal=True, compression=zipfile.ZIP_DEFLATED):
    """Write a model file with other parts, and a checksum that is right if `seal`."""
    with zipfile.ZipFile(file) as archive:
        parts = edit({name: archive.read(name) for name in archive.namelist()})
    if seal:
        metadata = json.loads(parts["metadata.json"])
        metadata["checksum"] = _checksum(metadata, checksum_of(parts))
        parts["metadata.json"] = json.dumps(metadata).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return path


@pytest.fixture(name="rewrite", scope="session")
def _rewrite():
    return rewrite
