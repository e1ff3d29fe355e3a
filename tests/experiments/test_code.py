"""Results go stale for the right reason: what they depend on, and nothing else."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest

import lemll
from lemll import LEMLL, MSVRClassifier
from lemll.lab import code
from lemll.rivals import CLR, ML2, KMEnhancer, MLkNN

pytestmark = pytest.mark.slow

METHODS = {kind.__name__: kind() for kind in (LEMLL, MSVRClassifier, MLkNN, CLR, ML2, KMEnhancer)}


@pytest.fixture(name="copied", scope="module")
def _copied(tmp_path_factory):
    """Copy the package, and make the fingerprints of the copy."""
    copy = tmp_path_factory.mktemp("code") / "lemll"
    shutil.copytree(Path(lemll.__file__).parent, copy, ignore=shutil.ignore_patterns("*.pyc"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code.lemll, "__file__", str(copy / "__init__.py"))
        yield copy, versions()
    forget()


@pytest.fixture(name="before")
def _before(copied):
    """Give the fingerprints of the copy, unchanged."""
    return copied[1]


@pytest.fixture(name="tree")
def _tree(copied):
    """Give the copy, and write back what a test changes."""
    texts = {path: path.read_bytes() for path in copied[0].rglob("*.py")}
    forget()
    yield copied[0]
    for path, text in texts.items():
        if path.read_bytes() != text:
            path.write_bytes(text)
    forget()


def forget():
    """Forget the content of files. No test changes what a file imports."""
    code._file_sha256.cache_clear()


def versions():
    forget()
    return {name: code.code_version(estimator) for name, estimator in METHODS.items()}


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("rivals/mlknn.py", {"MLkNN"}),
        ("predictors/lemll.py", {"LEMLL"}),
        ("predictors/folds.py", {"LEMLL", "MSVRClassifier"}),
        ("solvers/search.py", set(METHODS)),
        ("solvers/logistic.py", {"CLR"}),
        ("rivals/boxqp.py", {"ML2"}),
        ("rivals/km.py", {"KMEnhancer"}),
        ("metrics/multilabel.py", set(METHODS)),
        ("model_selection.py", set(METHODS)),
        ("lab/execute.py", set(METHODS)),
        ("lab/cells.py", set(METHODS)),
        ("lab/store.py", set()),
        ("lab/tables.py", set()),
        ("lab/studies/prediction.py", set()),
        ("report/comparison.py", set()),
        ("cli/bench.py", set()),
    ],
)
def test_a_change_concerns_what_depends_on_it(tree, before, file, stale):
    assert len(set(before.values())) == len(METHODS)
    with (tree / file).open("a", encoding="utf-8") as stream:
        stream.write("\nCHANGED = True\n")
    after = versions()
    assert {name for name in METHODS if after[name] != before[name]} == stale


def test_parameters_that_are_estimators_count(tree):
    from sklearn.linear_model import LogisticRegression

    from lemll.rivals import TwoStage

    pair = TwoStage(KMEnhancer(), LogisticRegression())
    before = code.code_version(pair)
    with (tree / "rivals" / "km.py").open("a", encoding="utf-8") as stream:
        stream.write("\nCHANGED = True\n")
    forget()
    assert code.code_version(pair) != before


OUTSIDE = """
from lemll import LEMLL
from lemll.topology import reconstruction_weights


class Mine(LEMLL):
    pass
"""


@pytest.mark.parametrize(
    ("file", "stale"),
    [("solvers/search.py", True), ("topology/weights.py", True), ("rivals/km.py", False)],
)
def test_a_class_outside_depends_on_what_it_inherits_and_imports(
    tree, tmp_path, monkeypatch, file, stale
):
    (tmp_path / "mine_outside.py").write_text(OUTSIDE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    mine = importlib.import_module("mine_outside").Mine()
    before = code.code_version(mine)
    with (tree / file).open("a", encoding="utf-8") as stream:
        stream.write("\nCHANGED = True\n")
    forget()
    assert (code.code_version(mine) != before) == stale
    monkeypatch.delitem(sys.modules, "mine_outside")
