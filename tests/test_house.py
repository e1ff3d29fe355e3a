"""The figures of the house stay within their limits."""

import importlib.util
import sys
from pathlib import Path

import pytest

import lemll

ROOT = Path(lemll.__file__).parent
FILE = ROOT.parents[1] / "tools" / "house.py"


@pytest.fixture(scope="module")
def house():
    if not FILE.exists():
        pytest.skip("the tools are not beside the package")
    spec = importlib.util.spec_from_file_location("house", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_no_figure_is_above_its_limit(house):
    found = house.survey(ROOT)
    assert {title: figure for title, figure in found.items() if figure > house.LIMITS[title]} == {}
    assert set(found) < set(house.LIMITS)


@pytest.mark.slow
def test_walks_are_short(house):
    found = house.walks(ROOT)
    assert all(figure > 5 for figure in found.values())
    assert {title: figure for title, figure in found.items() if figure > house.LIMITS[title]} == {}


def test_code_lines_leave_out_prose_and_count_imports(house):
    lines = [
        '"""Prose."""',
        "import os",
        "",
        "# why",
        "__all__ = [",
        '    "f",',
        "]",
        "",
        "def f():",
    ]
    text = "\n".join([*lines, '    """Do."""', "    return os"])
    code, imports = house.code_lines(text)
    assert (len(code), len(imports)) == (6, 4)
