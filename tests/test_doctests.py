"""Every docstring's example runs, against the installed package; so does the README's."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import equipoise

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROOMS = ("datasets", "estimators", "explainers", "games", "testing")


def module_names():
    yield "equipoise"
    for info in pkgutil.walk_packages(equipoise.__path__, "equipoise."):
        yield info.name
    for room in ROOMS[:-1]:
        package = importlib.import_module(f"equipoise.{room}")
        yield package.__name__
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield info.name


@pytest.mark.parametrize("name", sorted(set(module_names())))
def test_module(name):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=FLAGS, report=True)
    plt.close("all")
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples of {name} failed"


def test_readme():
    readme = Path(__file__).parents[1] / "README.md"
    result = doctest.testfile(str(readme), module_relative=False, optionflags=FLAGS)
    assert result.attempted > 0, "the README has no example"
    assert result.failed == 0
