"""Sphinx configuration; the pictures of the guide are made by the code they explain."""

from pathlib import Path

import lemll
from lemll.experiments import list_methods
from lemll.report.demo import make_demo

project = "lemll"
copyright = "2026, the lemll developers"
version = release = lemll.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc",
              "myst_parser"]  # fmt: skip
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build", "_generated/methods.md"]
numpydoc_show_class_members = False
autosummary_generate = False
myst_enable_extensions = ["dollarmath"]

generated = Path(__file__).parent / "_generated"
make_demo(generated)
rows = [
    f"| {method.name} | {method.kind} | {', '.join(method.grid) or 'none'} | {method.summary} |"
    for method in list_methods()
]
header = ["| method | kind | tuned | what it does |", "|---|---|---|---|"]
(generated / "methods.md").write_text("\n".join([*header, *rows, ""]), encoding="utf-8")
