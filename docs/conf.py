"""Sphinx configuration: `make docs`. Nothing is fetched while building."""

import importlib.util
import os
import warnings
from pathlib import Path

import equipoise

HERE = Path(__file__).parent
os.environ.setdefault("MPLBACKEND", "agg")


def load(name):
    """A module of this folder, by its path: nothing here stands on the import path."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


load("api_pages").write(HERE / "api")

results = HERE.parent / "benchmarks" / "results.md"
table = "No results are here yet: `make bench` writes them."
if results.exists():
    table = results.read_text().removeprefix("# Benchmarks").strip()
(HERE / "api" / "benchmark_results.md").write_text(table + "\n")

project = "equipoise"
author = "The equipoise developers"
copyright = "the equipoise developers, BSD-3-Clause"
version = release = equipoise.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "**/GALLERY_HEADER.rst",
    "api/benchmark_results.md",
    "sg_execution_times.rst",
]
templates_path = ["templates"]
default_role = "py:obj"
smartquotes = False  # they would curl the quotes of {"identity", "baseline"}
add_module_names = False
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections give types, shapes and defaults
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "equipoise"
html_static_path = ["static"]
html_css_files = ["equipoise.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "install": [], "benchmarks": [], "contributing": [], "changelog": []}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
    "pygments_light_style": "tango",
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"[/\\]plot_",
    # A folder without GALLERY_HEADER.rst (stops, studies) is no part of the gallery either.
    "ignore_pattern": r"^tour\.py$|^__init__\.py$",
    "doc_module": ("equipoise",),
    "backreferences_dir": "api/backreferences",
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "image_scrapers": ("matplotlib",),
}

# Captured into pages otherwise, where a reader takes them for output.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def setup(app):
    load("mathml").setup(app)
    docstrings = load("docstrings")
    app.connect("autodoc-process-docstring", docstrings.escape_mathematics, priority=900)
    app.connect("autodoc-skip-member", docstrings.skip_metadata_requests)
