"""Other ways to weigh the models of Blend with few rated rows, on the sets it was developed on.

    python -m benchmarks.enhancement_variants [DATA_SET ...] [--rated N] [--draws N]

With five rated rows, Blend is more than 1 % behind the best method in a few places. This script
shows what simple changes would do: larger or smaller ridges, models that count more or less alike,
models with many parameters that count less, one more model. It uses other draws than the tables
(seeds from 3000) and no other data sets, so that the tables stay a test. Nothing is written.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from benchmarks._measure import data_dir
from benchmarks.enhancement_draws import FOLDER, METHODS, WITHIN, distances
from lemll.datasets import binarize_distribution, load_dataset
from lemll.enhancers import BlendEnhancer
from lemll.enhancers.calibrate import (
    PRIOR_SCALE,
    _divergences,
    _fit,
    _ladder,
    _losses,
    _Rung,
    _shares,
    _unseen,
)
from lemll.lab.studies.enhancement import enhancement_protocol
from lemll.lab.studies.enhancement_report import DEVELOPED_ON
from lemll.metrics import chebyshev

FIRST_SEED = 3000


class Variant(NamedTuple):
    """A change of Blend.

    Attributes
    ----------
    title : str
        For a reader.
    models : callable
        Takes the names of the sources and the models; returns other models.
    losses : callable
        Takes the rated rows and the logarithms of their degrees by models of the others.
    power : float
        The shares are raised to this.
    many : float
        Shares of models with more than two parameters are multiplied by this.
    """

    title: str
    models: Callable[[Sequence[str], list[_Rung]], list[_Rung]] = lambda _, ladder: ladder
    losses: Callable[[Any, Any], Any] = _losses
    power: float = 1.0
    many: float = 1.0


def ridges(title: str, factor: float) -> Callable[[Sequence[str], list[_Rung]], list[_Rung]]:
    """Return a change of the ridge of one model."""

    def change(_: Sequence[str], ladder: list[_Rung]) -> list[_Rung]:
        return [
            rung._replace(ridge=factor * rung.ridge) if rung.title == title else rung
            for rung in ladder
        ]

    return change


def with_logical(names: Sequence[str], ladder: list[_Rung]) -> list[_Rung]:
    """Add the logical labels alone."""
    mix = np.eye(len(names))[[names.index("logical labels")]]
    return [*ladder, _Rung("logical labels alone", mix, 0.03, None)]


def divergences(D: Any, unseen: Any) -> Any:
    """Return the divergences alone."""
    return np.stack([_divergences(D, softmax(log, axis=1)) for log in unseen])


ALL, SMALL = "all sources", "all sources and small biases"
VARIANTS = (
    Variant("as it is"),
    *(Variant(f"ridge of {name!r} times {factor:.2g}", ridges(name, factor))
      for name in (ALL, SMALL) for factor in (1 / 3, 10 / 3, 10)),
    Variant("logical labels as a model", with_logical),
    Variant("models count by divergences alone", losses=divergences),
    Variant("models count more alike", power=0.5),
    Variant("models count less alike", power=2.0),
    Variant("models of many parameters count half", many=0.5),
    Variant("models of many parameters count nothing", many=0.0),
)  # fmt: skip


def of_draw(enhancer: BlendEnhancer, variant: Variant, rows: Any, D: Any) -> float:
    """Return the Chebyshev distance of the rows that are not rated."""
    sources = enhancer.sources_
    every = np.stack(list(sources.values()), axis=-1)
    Z, known = every[rows], D[rows] / D[rows].sum(axis=1, keepdims=True)
    ladder = variant.models(list(sources), _ladder(list(sources), len(rows)))
    unseen = np.stack([_unseen(rung, Z, known, PRIOR_SCALE) for rung in ladder])
    losses = variant.losses(known, unseen)
    shares = _shares(ladder, losses) ** variant.power
    parameters = [len(rung.mixes) + (rung.bias_ridge is not None) * D.shape[1] for rung in ladder]
    shares *= np.where(np.array(parameters) > 2, variant.many, 1.0)
    shares /= shares.sum()
    fits = [_fit(rung, Z, known, PRIOR_SCALE) for rung in ladder]
    weights, bias = (
        sum(share * part for share, part in zip(shares, parts, strict=True))
        for parts in ([fit.weights for fit in fits], [fit.bias for fit in fits])
    )
    others = np.setdiff1d(np.arange(len(D)), rows)
    return float(chebyshev(D[others], softmax(every[others] @ weights + bias, axis=1)))


def main() -> None:
    """Measure all variants, and print how they compare with the best other method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", default=DEVELOPED_ON)
    parser.add_argument("--rated", type=int, default=5)
    parser.add_argument("--draws", type=int, default=24)
    given = parser.parse_args()
    data_dir()
    protocol = enhancement_protocol(FOLDER)
    specs = [spec for spec in protocol.methods if spec.label in METHODS and spec.label != "Blend"]
    ratios: dict[str, dict[tuple[str, float], float]] = {variant.title: {} for variant in VARIANTS}
    with threadpool_limits(1), warnings.catch_warnings():
        # Scales at the end of the range are results here.
        warnings.simplefilter("ignore", UserWarning)
        for name in given.datasets:
            data = load_dataset(name)
            D = np.asarray(data.D)
            for threshold in protocol.thresholds:
                Y = binarize_distribution(D, threshold)
                fitted = [protocol.estimator(spec).fit(data.X, Y) for spec in specs]
                best = min(
                    np.mean(distances(enhancer, D, given.rated, given.draws, FIRST_SEED))
                    for enhancer in fitted
                )
                blend = BlendEnhancer().fit(data.X, Y)
                for variant in VARIANTS:
                    found = [
                        of_draw(blend, variant, np.sort(np.random.RandomState(seed).choice(
                            len(D), given.rated, replace=False)), D)
                        for seed in range(FIRST_SEED, FIRST_SEED + given.draws)
                    ]  # fmt: skip
                    ratios[variant.title][name, threshold] = float(np.mean(found) / best)
            print(f"{name} done", flush=True)
    for title, places in ratios.items():
        values = np.array(list(places.values()))
        worst = max(places, key=lambda place: places[place])
        print(
            f"{title:54s} within 1 % in {np.sum(values <= WITHIN)} of {len(values)}, mean ratio "
            f"{values.mean():.4f}, worst {values.max():.4f} ({worst[0]}, {worst[1]:g})"
        )


if __name__ == "__main__":
    main()
