"""Sphinx configuration; the pictures of the guide are made by the code they explain."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import command_reference
import findings_pictures

import lemll
from lemll.lab import list_methods
from lemll.lab.demo_pictures import draw_demo_pictures

project = "lemll"
copyright = "2026, the lemll developers"
version = release = lemll.__version__
# The formulas are drawn by a MathJax in the pages' own folder, so that they need no network.
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax",
              "sphinx-mathjax-offline", "numpydoc", "myst_parser",
              "sphinx_gallery.gen_gallery", "sphinx_design"]  # fmt: skip
# The version beside it would not fit on a phone.
html_title = "lemll"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["names.js"]
exclude_patterns = ["_build", "_generated/methods.md", "_generated/commands.md"]
numpydoc_show_class_members = False
autosummary_generate = True
autosummary_imported_members = True
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 2

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "_generated/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    # What is printed is shown, what an expression returns is not.
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
}

generated = Path(__file__).parent / "_generated"
generated.mkdir(exist_ok=True)
draw_demo_pictures(generated)
findings_pictures.draw_all(generated)
rows = [
    f"| {method.name} | {method.kind} | {', '.join(method.grid) or 'none'} | {method.summary} |"
    for method in list_methods()
]
header = ["| method | kind | tuned | what it does |", "|---|---|---|---|"]
(generated / "methods.md").write_text("\n".join([*header, *rows, ""]), encoding="utf-8")
(generated / "commands.md").write_text(command_reference.write(), encoding="utf-8")


def _plain_references(*event):
    """Turn links into scikit-learn's own pages, which inherited docstrings have, into text."""
    lines = event[-1]  # the other arguments are the application, the object and options
    for number, line in enumerate(lines):
        lines[number] = re.sub(r":ref:`([^`<]*?)\s*<[^`>]*>`", r"\1", line)


def setup(app):
    """Connect what changes docstrings."""
    app.connect("autodoc-process-docstring", _plain_references)
