"""Sphinx configuration; the pictures of the guide are made by the code they explain."""

from pathlib import Path

import lemll
from lemll.report.demo import make_demo

project = "lemll"
copyright = "2026, the lemll developers"
version = release = lemll.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc",
              "myst_parser"]  # fmt: skip
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build"]
numpydoc_show_class_members = False
autosummary_generate = False
myst_enable_extensions = ["dollarmath"]

make_demo(Path(__file__).parent / "_generated")
