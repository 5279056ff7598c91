"""The documentation holds what is public, all of it and nothing else, and its examples run."""

import dataclasses
import doctest
import importlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

ROOT = Path(__file__).parents[1]
ROOMS = ("datasets", "estimators", "explainers", "games", "testing")
GROUND_FLOOR = sorted(
    path.stem
    for path in (ROOT / "equipoise").iterdir()
    if (path.suffix == ".py" or (path / "__init__.py").exists())
    and path.stem not in {"__init__", "testing"}
)


def load(name):
    """A module of docs/ by its path: the folder isn't a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api_pages = load("api_pages")
docstrings = load("docstrings")


def summarized(page):
    """(module, name) of every row of the page's autosummaries."""
    module, rows, inside = None, [], False
    for line in page.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.removeprefix(".. currentmodule:: ")
        if line.strip() and not line.startswith("   "):
            inside = line == ".. autosummary::"
        elif inside and line.strip() and not line.strip().startswith(":"):
            rows.append((module, line.strip()))
    return rows


@pytest.mark.parametrize("room", ROOMS)
def test_api_lists_what_the_room_does(room):
    public = importlib.import_module(f"equipoise.{room}").__all__
    listed = [name for names in api_pages.listing(room).values() for name in names]
    assert sorted(listed) == sorted(public)
    page = api_pages.room_page(room)
    assert sorted(summarized(page)) == sorted((f"equipoise.{room}", name) for name in public)


def test_api_lists_the_ground_floor():
    expected = [("equipoise", "show_versions")]
    for module in GROUND_FLOOR:
        full = f"equipoise.{module}"
        expected += [(full, name) for name in importlib.import_module(full).__all__]
    assert {"blocks", "explanation", "language_models"} <= set(GROUND_FLOOR)
    assert sorted(summarized(api_pages.ground_floor_page())) == sorted(expected)


def test_every_page_is_reachable():
    pages = api_pages.pages()
    for name in pages:
        stem = name.removesuffix(".rst")
        assert stem == "index" or f"\n   {stem}\n" in pages["index.rst"] + "\n"


def test_wings_say_what_they_are():
    for room in ROOMS:
        for wing in api_pages.listing(room):
            about = api_pages.first_paragraph(f"equipoise.{room}.{wing}")
            assert len(about) > 10, f"equipoise.{room}.{wing} needs a docstring"


def test_a_name_without_a_wing_is_an_error(monkeypatch):
    import equipoise.testing

    monkeypatch.setattr(equipoise.testing, "__all__", [*equipoise.testing.__all__, "stray"])
    with pytest.raises(ValueError, match=r"no module's __all__ holds \['stray'\]"):
        api_pages.listing("testing")


def public_objects():
    modules = [f"equipoise.{room}" for room in ROOMS]
    modules += [f"equipoise.{module}" for module in GROUND_FLOOR]
    for module in modules:
        found = importlib.import_module(module)
        for name in found.__all__:
            thing = getattr(found, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{module}.{name}", thing


PUBLIC = dict(public_objects())


def names_of(section):
    return {name.strip().lstrip("*") for entry in section for name in entry.name.split(",")}


@pytest.mark.parametrize("thing", PUBLIC.values(), ids=PUBLIC)
def test_public_name_has_its_sections(thing):
    text = inspect.getdoc(thing) or ""
    assert text.strip(), "no docstring"
    assert ">>>" in text, "no Examples that run"
    doc = ClassDoc(thing) if inspect.isclass(thing) else FunctionDoc(thing)
    assert doc["Summary"], "no summary"
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return
    parameters = set(inspect.signature(thing).parameters)
    documented = names_of(doc["Parameters"]) | names_of(doc["Other Parameters"])
    if inspect.isfunction(thing):
        returns_none = inspect.signature(thing).return_annotation in (None, "None")
        assert doc["Returns"] or doc["Yields"] or returns_none, "no Returns"
        assert documented == parameters
    elif dataclasses.is_dataclass(thing):
        # A value that functions return may call its fields attributes.
        assert parameters <= documented | names_of(doc["Attributes"])
    elif "__init__" in vars(thing) and not getattr(thing, "_is_protocol", False):
        assert documented == parameters


def test_readme_example_runs():
    text = (ROOT / "README.md").read_text()
    example = doctest.DocTestParser().get_doctest(text, {}, "README", "README.md", 0)
    assert len(example.examples) >= 5
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report = []
    runner.run(example, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_python_on_pages_compiles():
    blocks = [
        (path.name, block)
        for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")]
        for block in re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)
    ]
    assert blocks
    for name, block in blocks:
        if ">>>" not in block:
            compile(block, name, "exec")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("the norm |x - y| of it", r"the norm \|x - y\| of it"),
        ("shape (n_features_in_,)", r"shape (n_features_in\_,)"),
        ("``|x|`` and `coef_` stay, |y| not", r"``|x|`` and `coef_` stay, \|y\| not"),
        (":math:`|x|_2` stays", ":math:`|x|_2` stays"),
        ("see [R1]_ and `text <page>`_", "see [R1]_ and `text <page>`_"),
        ("snake_case_name and _private", "snake_case_name and _private"),
    ],
)
def test_mathematics_is_escaped(written, shown):
    lines = [written]
    docstrings.escape_mathematics(None, "function", "f", None, None, lines)
    assert lines == [shown]


def test_doctests_and_blocks_are_not_escaped():
    text = """\
|a|
.. math::

    |x|_2

|b|

>>> print("|c|")
|c|

|d|"""
    lines = text.splitlines()
    docstrings.escape_mathematics(None, "function", "f", None, None, lines)
    changed = [line for line in lines if "\\" in line]
    assert changed == [r"\|a\|", r"\|b\|", r"\|d\|"]


@pytest.mark.slow
def test_pages_build_without_a_warning(tmp_path):
    """All pages but the gallery's pictures, which `make docs` draws."""
    unwanted = shutil.ignore_patterns("_build", "gallery", "api", "__pycache__")
    for folder in ("docs", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=unwanted)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-P", "-m", "sphinx", "-W", "--keep-going", "-q"]
    result = subprocess.run(
        [*command, "-D", "plot_gallery=0", tmp_path / "docs", tmp_path / "html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "html" / "index.html").exists()
