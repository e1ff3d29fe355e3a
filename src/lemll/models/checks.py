"""The contents of a model: nothing reads outside of an array, opens a file or never ends.

The types of a model are known (`lemll.models.trusted`), but a file can give them any content.
Python and NumPy check every index. The compiled code of scikit-learn and SciPy does not, so what it
relies on is checked here: trees, sparse arrays, and what encoders count with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree._tree import Tree

from lemll._types import Array, SparseMatrix
from lemll.predictors import LEMLL, GrownForest
from lemll.tables import Column

_LEAF = -1
# A regular expression can take forever: these are the default of scikit-learn and ours.
_WORDS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b")
_DATE = re.compile(r"(ISO8601)?|[-%YmdHMS/.: ]{1,40}")
_MOST_JOBS = 1024
_STATE_OF_RANDOM = 624


def check_content(model: object) -> None:
    """Check all objects of a model.

    Parameters
    ----------
    model : object
        An estimator that skops made.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    seen: set[int] = set()
    stack: list[object] = [model]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        for kind, check in _CHECKS.items():
            if isinstance(part, kind):
                check(part)
        stack += _inside(part)


def _inside(part: object) -> Iterable[object]:
    """Return the objects that an object consists of."""
    if isinstance(part, Mapping):
        return part.values()
    if isinstance(part, (list, tuple)):
        return part
    if isinstance(part, MethodType):
        return [part.__self__]
    if type(part).__module__.startswith(("lemll.", "sklearn.")) and not isinstance(part, Tree):
        # Dataclasses may have slots instead of a dictionary.
        slots = (getattr(part, name, None) for name in getattr(type(part), "__slots__", ()))
        return [*getattr(part, "__dict__", {}).values(), *slots]
    return ()


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _check_array(array: Array) -> None:
    if array.dtype != object:
        _need(array.dtype.kind in "biufU", f"an array of type {array.dtype}")
        return
    plain = (str, int, float, np.generic, type(None))
    _need(all(isinstance(cell, plain) for cell in array.ravel()), "an array of objects")


def _check_sparse(matrix: SparseMatrix) -> None:
    _need(matrix.format == "csr", f"a sparse array in the format {matrix.format}")
    # SciPy looks at the order of the pointers only if the last one is above 0.
    _need(bool((matrix.indptr >= 0).all()), "a sparse array with a negative pointer")
    matrix.check_format(full_check=True)
    _need(bool((np.diff(matrix.indptr) >= 0).all()), "a sparse array with pointers out of order")


def _check_tree(tree: Tree) -> None:
    # The arrays below are views of memory that has room for `capacity` nodes.
    _need(1 <= tree.node_count <= tree.capacity, "a tree without its nodes")
    left, right = tree.children_left, tree.children_right
    inner = np.flatnonzero(left != _LEAF)
    children = np.concatenate([left[inner], right[inner]])
    # Every node except the first is the child of one node, which comes before it.
    _need(np.array_equal(np.sort(children), np.arange(1, tree.node_count)), "a child of two nodes")
    _need(bool((children > np.tile(inner, 2)).all()), "a node before its parent")
    feature = tree.feature[inner]
    _need(bool(((0 <= feature) & (feature < tree.n_features)).all()), "a feature that is not there")
    depth, level = 0, np.array([0])
    while len(level := level[left[level] != _LEAF]):
        depth, level = depth + 1, np.concatenate([left[level], right[level]])
    # scikit-learn makes room for paths of this length.
    _need(depth == tree.max_depth, f"a tree of depth {depth} that says {tree.max_depth}")


def _check_forest(forest: GrownForest) -> None:
    _need(isinstance(forest.trees, list) and len(forest.trees) > 0, "a forest without trees")
    _need(sparse.issparse(forest.shares), "a forest without shares")
    for tree in forest.trees:
        _need(isinstance(tree, Tree), "a tree without nodes")
        _need(tree.n_outputs == 1 and tree.value.shape[1:] == (1, 1), "a tree of other labels")
        # The leaves hold their places in the shares.
        places = tree.value[tree.children_left == _LEAF, 0, 0]
        _need(bool((places % 1 == 0).all()), "a leaf without a place")
        inside = (0 <= places) & (places < forest.shares.shape[0])
        _need(bool(inside.all()), "a leaf that is not there")


def _check_words(model: TfidfVectorizer) -> None:
    _need(model.input == "content", "words that are read from files")
    _need(isinstance(model.analyzer, str), "words of a function")
    _need(model.tokenizer is None and model.preprocessor is None, "words of a function")
    _need(
        model.token_pattern in _WORDS,
        f"words by the pattern {str(model.token_pattern)[:40]!r} instead of {_WORDS[0]!r}",
    )
    vocabulary = getattr(model, "vocabulary_", {})
    _need(isinstance(vocabulary, dict), "words without numbers")
    places = list(vocabulary.values())
    _need(
        all(type(place) in (int, np.int64, np.int32) for place in places), "words without numbers"
    )
    _need(sorted(places) == list(range(len(places))), "words with the numbers of others")


def _check_one_hot(model: OneHotEncoder) -> None:
    categories = getattr(model, "categories_", [])
    # scikit-learn has these only if there are rare categories, or categories to leave out.
    rare = getattr(model, "_default_to_infrequent_mappings", None) or [None] * len(categories)
    dropped = getattr(model, "drop_idx_", None)
    dropped = [None] * len(categories) if dropped is None else list(dropped)
    counts = getattr(model, "_n_features_outs", [])
    _need(len(categories) == len(rare) == len(dropped) == len(counts), "categories of two tables")
    for values, mapping, left_out, count in zip(categories, rare, dropped, counts, strict=True):
        _need(isinstance(values, np.ndarray) and values.ndim == 1, "categories of something else")
        # A search finds the place of a number, so the numbers must be sorted. NaN comes last.
        steps = np.diff(values) if values.dtype != object and values.dtype.kind in "iuf" else []
        _need(not np.any(np.asarray(steps) <= 0), "categories that are not sorted")
        places = len(values)
        if mapping is not None:
            _need(
                isinstance(mapping, np.ndarray)
                and mapping.shape == values.shape
                and mapping.dtype.kind in "iu"
                and bool((mapping >= 0).all()),
                "rare categories of something else",
            )
            places = int(mapping.max(initial=-1)) + 1
        if left_out is not None:
            _need(0 <= int(left_out) < places, "a category that is not there")
            places -= 1
        _need(count == places, f"{places} categories that say {count}")


def _check_columns(model: ColumnTransformer) -> None:
    # Every job is a process.
    _need(model.n_jobs in (None, 1, -1), f"n_jobs={model.n_jobs!r}; use None, 1 or -1")


def _check_jobs(model: BaseEstimator) -> None:
    jobs = getattr(model, "n_jobs", None)
    _need(
        jobs is None or (isinstance(jobs, int) and abs(jobs) <= _MOST_JOBS),
        f"n_jobs={jobs!r}; use at most {_MOST_JOBS}",
    )


def _check_model(model: BaseEstimator) -> None:
    _check_jobs(model)
    _check_neighbours(model)


def _check_neighbours(model: BaseEstimator) -> None:
    if isinstance(model, LEMLL):
        return  # its rows may be landmarks, and it looks up no labels
    for name in ("Y_fit_", "numerical_labels_"):
        labels = getattr(model, name, None)
        if labels is not None and hasattr(model, "X_fit_"):
            # The numbers of the nearest rows are used to look up labels.
            _need(model.X_fit_.shape[0] == len(labels), "rows with the labels of others")


def _check_column(column: Column) -> None:
    _need(isinstance(column.name, str) and isinstance(column.format, str), "a column without name")
    _need(_DATE.fullmatch(column.format) is not None, f"dates as {column.format[:40]!r}")


def _check_random(state: RandomState) -> None:
    place = state.get_state(legacy=False)["state"]["pos"]
    _need(0 <= place <= _STATE_OF_RANDOM, "a random state that is outside of its numbers")


_CHECKS: dict[type, Callable[[Any], None]] = {
    np.ndarray: _check_array,
    sparse.sparray: _check_sparse,
    sparse.spmatrix: _check_sparse,
    RandomState: _check_random,
    Tree: _check_tree,
    GrownForest: _check_forest,
    TfidfVectorizer: _check_words,
    OneHotEncoder: _check_one_hot,
    ColumnTransformer: _check_columns,
    BaseEstimator: _check_model,
    Column: _check_column,
}
