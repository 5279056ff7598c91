"""Names load on first use, and optional packages say how to get them."""

import subprocess
import sys

import pytest

import equipoise
from equipoise.imports import lazy_exports, optional_import


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on disk with two modules, one of which records that it was loaded."""
    folder = tmp_path / "lazy_house"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from equipoise.imports import lazy_exports\n"
        "__getattr__, __dir__, __all__ = lazy_exports(\n"
        "    __name__, {'attic': ['Trunk', 'Lamp'], 'cellar': ['barrel']})\n"
    )
    (folder / "attic.py").write_text("class Trunk: pass\nclass Lamp: pass\nhidden = 1\n")
    (folder / "cellar.py").write_text("def barrel(): return 'full'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "lazy_house"
    for name in [name for name in sys.modules if name.split(".")[0] == "lazy_house"]:
        del sys.modules[name]


def test_names_load_their_own_module_only(package):
    house = __import__(package)
    assert house.__all__ == ["Lamp", "Trunk", "barrel"]
    assert dir(house) == ["Lamp", "Trunk", "attic", "barrel", "cellar"]
    assert not {"lazy_house.attic", "lazy_house.cellar"} & set(sys.modules)
    assert house.barrel() == "full"
    assert "lazy_house.attic" not in sys.modules
    assert house.Trunk.__module__ == "lazy_house.attic"
    assert house.attic.hidden == 1


def test_star_import_brings_what_is_listed(package):
    space = {}
    exec(f"from {package} import *", space)
    assert {"Trunk", "Lamp", "barrel"} <= set(space)
    assert "hidden" not in space


def test_a_module_inside_a_wing_is_named_with_a_dot():
    get, directory, public = lazy_exports("xml", {"etree.ElementTree": ["ElementTree", "XML"]})
    assert public == ["ElementTree", "XML"]
    assert directory() == ["ElementTree", "XML", "etree"]
    assert get("XML")("<a/>").tag == "a"


def test_unlisted_names_are_no_attributes(package):
    house = __import__(package)
    with pytest.raises(AttributeError, match="module 'lazy_house' has no attribute 'hidden'"):
        _ = house.hidden
    assert not hasattr(house, "Trunks")


def test_listed_names_that_do_not_exist_are_errors(package):
    get, _, _ = lazy_exports(package, {"attic": ["Chest"]})
    with pytest.raises(AttributeError, match="Chest"):
        get("Chest")


@pytest.mark.parametrize(
    "modules", [{"a": ["x"], "b": ["x"]}, {"a": ["x", "x"]}, {"x": ["x"]}, {"a": ["b"], "b": []}]
)
def test_a_name_for_two_things_is_an_error(modules):
    with pytest.raises(ValueError, match=r"house: \['[bx]'\] would name two things"):
        lazy_exports("house", modules)


def test_optional_package_that_lacks_names_the_extra():
    with pytest.raises(ImportError, match=r"'no_such_package'.*pip install 'equipoise\[graphs\]'"):
        optional_import("no_such_package", "graphs")
    with pytest.raises(ImportError, match=r"equipoise\[graphs\]"):
        optional_import("json.no_such_module", "graphs")


def test_optional_package_that_is_there_is_returned():
    assert optional_import("xml.etree.ElementTree", "data").__name__ == "xml.etree.ElementTree"


@pytest.mark.parametrize("line", ["import no_such_dependency", "raise ImportError('bad build')"])
def test_a_package_that_is_there_and_broken_says_so_itself(tmp_path, monkeypatch, line):
    (tmp_path / "broken_package.py").write_text(line + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as caught:
        optional_import("broken_package", "graphs")
    assert "equipoise[" not in str(caught.value)


def test_front_door():
    assert equipoise.games.__name__ == "equipoise.games"
    assert set(equipoise.__all__) <= set(dir(equipoise))
    for name in equipoise.__all__:
        assert getattr(equipoise, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'kitchen'"):
        _ = equipoise.kitchen


def test_versions_are_shown(capsys):
    equipoise.show_versions()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["equipoise"] == equipoise.__version__
    assert lines["python"].startswith(sys.version.split()[0])
    assert "None" not in (lines["numpy"], lines["scikit-learn"], lines["torch"])


def test_versions_of_missing_packages_are_none():
    script = (
        "import importlib.metadata as m, equipoise\n"
        "def version(name): raise m.PackageNotFoundError(name)\n"
        "m.version = version\n"
        "equipoise.show_versions()\n"
    )
    shown = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert "numba: None" in shown
