"""Store what every estimator and command computes, and compare it later.

``python tools/golden.py --write`` stores the figures in ``tools/golden.json``; ``python
tools/golden.py`` computes them again and lists every difference. A change that moves or merges code
keeps every figure; a change that means to alter figures writes them again and says why.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

STORE = Path(__file__).with_suffix(".json")
# An order of summation may change; nothing else may.
TOLERANCE = 1e-9
_KEPT = 12
_ROOMS = ("lemll", "lemll.rivals", "lemll.enhancers")
_METHODS = ("predict", "decision_function", "predict_proba")
_ATTRIBUTES = (
    "optimality_", "objective_", "numerical_labels_", "label_distribution_", "completed_labels_",
    "thresholds_", "weights_", "best_params_", "contributions_", "out_of_fold_proba_",
)  # fmt: skip


def named(name: str) -> Any:
    """Return a public class of the product or of the rivals."""
    for room in _ROOMS:
        try:
            return getattr(import_module(room), name)
        except (ImportError, AttributeError):
            continue
    raise LookupError(name)


def problems() -> dict[str, tuple[Any, Any]]:
    """Return small data of three kinds: numbers, many rare labels, unknown cells."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 8)) * (1 + np.arange(8))
    Y = (X[:, :5] / (1 + np.arange(5)) + rng.normal(size=(60, 5)) > 0.4).astype(int)
    words = (rng.random((80, 40)) < 0.15).astype(float)
    rare = (words[:, :7] + words[:, 7:14] * rng.random((80, 7)) > 0.7).astype(int)
    rare[:, 6] = 0
    hidden = Y.astype(float)
    hidden[rng.random(Y.shape) < 0.2] = np.nan
    return {"numbers": (X, Y), "words": (words, rare), "unknown": (X, hidden)}


def learners() -> dict[str, Callable[[], Any]]:
    """Return learners that are not at their defaults, or too slow there."""
    return {
        "LEMLL": named("LEMLL"),
        "LEMLL rbf": lambda: named("LEMLL")(kernel="rbf", alpha=0.1, n_neighbors=7),
        "LEMLL probability": lambda: named("LEMLL")(probability=True, thresholds="f1"),
        "MSVRClassifier": lambda: named("MSVRClassifier")(kernel="rbf"),
        "LEMLLCV": lambda: named("LEMLLCV")((0.25, 4.0), (1.0, 4.0), (1.0,), cv=3),
        "LEMLLCV auto": lambda: named("LEMLLCV")((0.25, 4.0), (1.0,), (1.0,), kernel="auto", cv=2),
        "MSVRCV": lambda: named("MSVRCV")((0.25, 4.0), cv=3),
        "BinaryRelevance": named("BinaryRelevance"),
        "MultilabelForest": lambda: named("MultilabelForest")(20, random_state=0),
        "MultilabelForest random": lambda: named("MultilabelForest")(
            20, trees="random", random_state=0
        ),
        "TagPredictor": lambda: named("TagPredictor")(n_estimators=20, cv=3),
        "MLkNN": named("MLkNN"),
        "CLR": named("CLR"),
        "ECC": lambda: named("ECC")(n_estimators=5, random_state=0),
        "LabelChain": lambda: named("LabelChain")(random_state=0),
        "LabelPropagation": named("LabelPropagation"),
        "ML2": named("ML2"),
        "MLFE": named("MLFE"),
        "RELIAB": named("RELIAB"),
        "TwoStage": named("TwoStage"),
    }


def enhancers() -> tuple[str, ...]:
    """Return the names of all enhancers."""
    kinds = "LEMLL FCM KM LabelPropagation ML2 MLFE GLLE LESC LabelGraph Blend Uniform Logical"
    return tuple(f"{kind}Enhancer" for kind in kinds.split())


def digest(values: Any) -> dict[str, Any]:
    """Return a hash of an array, its size, and some of its values."""
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if array.dtype.kind not in "fiub":
        text = json.dumps(values, sort_keys=True, default=str)
        return {"text": text[:2000], "hash": hashlib.sha256(text.encode()).hexdigest()[:16]}
    flat = np.nan_to_num(array.astype(np.float64).ravel(), nan=-999.0)
    chosen = np.linspace(0, flat.size - 1, min(_KEPT, flat.size)).astype(int)
    total = [float(flat.sum()), float(np.abs(flat).sum())] if flat.size else []
    return {
        "shape": list(array.shape),
        "values": [*map(float, flat[chosen]), *total],
        "hash": hashlib.sha256(np.ascontiguousarray(flat).tobytes()).hexdigest()[:16],
    }


def of_learners() -> Iterator[tuple[str, Any]]:
    """Fit every learner to every problem that it accepts."""
    for kind, (X, Y) in problems().items():
        for name, make in learners().items():
            title = f"learner {name} on {kind}"
            try:
                fitted = make().fit(X, Y)
            except ValueError as error:
                yield title, {"text": type(error).__name__}
                continue
            for attribute in _ATTRIBUTES:
                if getattr(fitted, attribute, None) is not None:
                    yield f"{title}: {attribute}", digest(getattr(fitted, attribute))
            for method in _METHODS:
                if hasattr(fitted, method):
                    yield f"{title}: {method}", digest(getattr(fitted, method)(X))


def of_enhancers() -> Iterator[tuple[str, Any]]:
    """Enhance the labels of two problems, without and with rated rows."""
    for kind in ("numbers", "words"):
        X, Y = problems()[kind]
        rng = np.random.default_rng(3)
        rows = np.arange(8)
        ratings = (0.2 + Y[rows]) * rng.random((8, Y.shape[1])) + 0.01
        ratings /= ratings.sum(axis=1, keepdims=True)
        for name in enhancers():
            options = {"random_state": 0} if name == "FCMEnhancer" else {}
            fitted = named(name)(**options).fit(X, Y)
            title = f"enhancer {name} on {kind}"
            yield f"{title}: U", digest(fitted.numerical_labels_)
            yield f"{title}: D", digest(fitted.label_distribution_)
            try:
                rated = fitted.calibrate(rows, ratings)
            except ValueError as error:
                yield f"{title}: rated", {"text": type(error).__name__}
                continue
            yield f"{title}: rated", digest((rated or fitted).label_distribution_)


def of_parts() -> Iterator[tuple[str, Any]]:
    """Compute metrics, splits, neighbours, weights and an audit."""
    from lemll import audit, metrics, model_selection, topology

    X, Y = problems()["numbers"]
    scores = np.random.default_rng(5).normal(size=Y.shape).round(1)
    for name in ("average_precision", "coverage", "one_error", "ranking_loss", "hamming_loss"):
        for convention in ("paper", "mulan", "sklearn"):
            try:
                value = getattr(metrics, name)(
                    Y, scores > 0 if name == "hamming_loss" else scores, convention=convention
                )
            except (TypeError, ValueError):
                continue
            yield f"metric {name} {convention}", digest(value)
    D = np.abs(scores) + 0.1
    D /= D.sum(axis=1, keepdims=True)
    for name in ("chebyshev", "clark", "canberra", "kullback_leibler", "cosine", "intersection"):
        if hasattr(metrics, name):
            yield f"metric {name}", digest(getattr(metrics, name)(D, D[::-1]))
    folds = model_selection.IterativeStratifiedKFold(4).split(X, Y)
    yield "folds", digest(np.concatenate([test for _, test in folds]))
    yield "neighbours", digest(topology.nearest_neighbors(X, 6))
    for mode in ("default", "fast"):
        issues = audit.find_tag_issues(X, Y, mode=mode, limit=None)
        yield f"audit {mode}: score", digest(issues["score"])
        yield f"audit {mode}: probability", digest(issues["probability"])
    yield "audit noise", digest(audit.estimate_noise(X, Y).iloc[:, 1:].to_numpy(float))


def _write_table(path: Path, seed: int) -> None:
    import pandas

    rng = np.random.default_rng(seed)
    n = 90
    sea, sky = rng.random(n) < 0.4, rng.random(n) < 0.6
    words = np.array(["waves", "clouds", "street", "sand", "light"])
    pandas.DataFrame(
        {
            "file": [f"{i:03d}.jpg" for i in range(n)],
            "blue": (sea + sky + 0.4 * rng.normal(size=n)).round(3),
            "taken": pandas.date_range("2024-01-01", periods=n).astype(str),
            "camera": rng.choice(["A", "B", "C"], n),
            "caption": [" ".join(rng.choice(words, 4)) + " waves" * int(s) for s in sea],
            "tags": [
                ";".join(t for t, on in (("sea", a), ("sky", b), ("city", not a)) if on)
                for a, b in zip(sea, sky, strict=True)
            ],
        }
    ).to_csv(path, index=False)


def _without_times(content: Any) -> Any:
    """Leave out of the JSON of a command what differs from run to run."""
    if isinstance(content, dict):
        return {
            key: _without_times(value)
            for key, value in content.items()
            if key not in ("seconds", "bytes")
        }
    return [_without_times(value) for value in content] if isinstance(content, list) else content


_TAGS = "photos.csv --tags tags --id file --untagged none"
# The commands, and the files that they write.
COMMANDS: tuple[tuple[str, str | None], ...] = (
    ("info photos.csv --json", None),
    (f"fit {_TAGS} -m b.lemll --learner BinaryRelevance --json", None),
    (f"fit {_TAGS} -m l.lemll --learner LEMLL --json", None),
    (f"fit {_TAGS} -m t.lemll --seconds 900 --json", None),
    ("predict t.lemll more.csv -o p.csv", "p.csv"),
    ("predict l.lemll more.csv -o q.csv", "q.csv"),
    ("evaluate b.lemll more.csv --json", None),
    (f"compare {_TAGS} --learners LEMLL,BinaryRelevance --splits 2 --seconds 0 --json", None),
    (f"enhance {_TAGS} -o d.csv", "d.csv"),
    (f"enhance {_TAGS} --method LEMLL -o e.csv", "e.csv"),
    (f"audit {_TAGS} -o a.csv --limit 30", "a.csv"),
    (f"audit {_TAGS} --fast -o f.csv --limit 30", "f.csv"),
)  # fmt: skip


def of_commands() -> Iterator[tuple[str, Any]]:
    """Run the commands of the product, and keep what they print as JSON and write as CSV."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_table(folder / "photos.csv", 11)
        _write_table(folder / "more.csv", 12)
        for line, written in COMMANDS:
            done = subprocess.run(
                [sys.executable, "-m", "lemll", *line.split()],
                cwd=folder, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                found = done.stderr
            elif written is not None:
                found = (folder / written).read_text(encoding="utf-8")
            else:
                found = json.dumps(_without_times(json.loads(done.stdout)))
            yield (
                f"command {line}",
                {
                    "exit": done.returncode,
                    "text": found[:3000],
                    "hash": hashlib.sha256(found.encode()).hexdigest()[:16],
                },
            )


def of_studies() -> Iterator[tuple[str, Any]]:
    """Write the tables of the stored results again."""
    root = Path(__file__).parent.parent
    for study in ("prediction", "unobserved", "best", "enhancement"):
        with tempfile.TemporaryDirectory() as name:
            words = [
                "reproduce", study, "--from", str(root / "results" / study), "--output", name
            ]  # fmt: skip
            done = subprocess.run(
                [sys.executable, "-m", "lemll", *words],
                cwd=root, capture_output=True, text=True, check=False,
            )  # fmt: skip
            pages = sorted(Path(name).rglob("*.md")) + sorted(Path(name).rglob("*.csv"))
            yield (
                f"study {study}",
                {
                    "exit": done.returncode,
                    "text": done.stderr[-300:] if done.returncode else "",
                    "files": [
                        f"{page.name} {hashlib.sha256(page.read_bytes()).hexdigest()[:16]}"
                        for page in pages
                    ],
                },
            )


PARTS = (of_learners, of_enhancers, of_parts, of_commands, of_studies)


def compare(stored: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Return one line per difference."""
    lines = [f"missing: {name}" for name in stored if name not in found]
    lines += [f"new: {name}" for name in found if name not in stored]
    for name, old in stored.items():
        new = found.get(name)
        if new is None or new == old:
            continue
        if "values" in old and "values" in new and old["shape"] == new["shape"]:
            a, b = np.array(old["values"]), np.array(new["values"])
            error = float(np.max(np.abs(a - b) / (1 + np.abs(a)), initial=0.0))
            if error > TOLERANCE:
                lines.append(f"differs by {error:.1e}: {name}")
        else:
            lines.append(f"differs: {name}\n   was {str(old)[:600]}\n   is  {str(new)[:600]}")
    return lines


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the figures")
    parser.add_argument("--only", default="", help="a word in the name of the part")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    found = {
        name: figures for part in PARTS if options.only in part.__name__ for name, figures in part()
    }
    if options.write:
        text = json.dumps(found, indent=0, sort_keys=True) + "\n"
        STORE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {len(found)} figures\n")
        return
    stored = json.loads(STORE.read_text(encoding="utf-8"))
    if options.only:
        stored = {name: old for name, old in stored.items() if name in found}
    lines = compare(stored, found)
    equal = sum(stored[name] == found.get(name) for name in stored)
    sys.stdout.write("\n".join([*lines, f"{equal} of {len(stored)} are equal to the bit"]) + "\n")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
