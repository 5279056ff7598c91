"""The house stands as drawn: floors, packaging, import costs, and a clean sys.path."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Room to the floor it stands on; an import only ever points to a lower floor.
FLOORS = {"equipoise": 0, "games": 1, "explainers": 2, "datasets": 2, "estimators": 3}
GROUND_FLOOR = {
    "__init__",
    "blocks",
    "devices",
    "explanation",
    "imports",
    "inference",
    "language_models",
    "plotting",
    "testing",
    "training",
}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def sources():
    return [(room, path) for room in FLOORS for path in sorted((ROOT / room).rglob("*.py"))]


def package_of(room, path):
    """Import name of the package that holds the file."""
    parts = path.relative_to(ROOT).parts[:-1]
    return ".".join(parts if room == "equipoise" else ("equipoise", *parts))


def imported_modules(room, path):
    """Absolute names of the modules a file imports, with whether it does so relatively."""
    package = package_of(room, path)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module, False
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            if node.module:
                yield ".".join([*base, node.module]), True
            else:
                yield from ((".".join([*base, alias.name]), True) for alias in node.names)


def room_of(module):
    parts = module.split(".")
    if parts[0] != "equipoise":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "equipoise"


@pytest.mark.parametrize(
    ("room", "path"), sources(), ids=lambda v: str(v).removeprefix(str(ROOT) + "/")
)
def test_imports_point_down(room, path):
    for module, relative in imported_modules(room, path):
        other = room_of(module)
        if other is None or other == room:
            continue
        assert FLOORS[other] < FLOORS[room], f"{path} imports {module}"
        assert relative == (other != "equipoise"), (
            f"{path}: the ground floor absolutely, another room relatively"
        )


def test_walker_sees_an_upward_import(tmp_path):
    """The test above can fail: a relative import from games to estimators is recognised as such."""
    path = ROOT / "games" / "equations" / "imaginary.py"
    package = package_of("games", path)
    assert package == "equipoise.games.equations"
    node = ast.parse("from ...estimators.ads import X").body[0]
    base = package.split(".")[: len(package.split(".")) - node.level + 1]
    assert room_of(".".join([*base, node.module])) == "estimators"


def test_ground_floor_is_no_larger_than_planned():
    modules = {path.stem for path in (ROOT / "equipoise").glob("*.py")}
    packages = {path.parent.name for path in (ROOT / "equipoise").glob("*/__init__.py")}
    assert modules | packages == GROUND_FLOOR


def test_rooms_list_what_exists():
    script = (
        "import importlib\n"
        "for room in ('datasets', 'estimators', 'explainers', 'games', 'testing'):\n"
        "    module = importlib.import_module(f'equipoise.{room}')\n"
        "    assert module.__all__ == sorted(module.__all__)\n"
        "    [getattr(module, name) for name in module.__all__]\n"
    )
    run(script)


def test_every_package_is_listed():
    found = {package_of(room, path) for room, path in sources() if path.name == "__init__.py"}
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == found
    folders = {package_of(room, path) for room, path in sources()}
    assert folders == found, "a folder with modules lacks __init__.py"


def test_version_stands_in_one_place():
    import equipoise

    assert PYPROJECT["project"]["dynamic"] == ["version"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {equipoise.__version__}" in citation
    assert f"## {equipoise.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_nothing_puts_the_root_on_the_path():
    assert not (ROOT / "conftest.py").exists()
    options = PYPROJECT["tool"]["pytest"]["ini_options"]
    assert "--import-mode=importlib" in options["addopts"]
    assert "pythonpath" not in options
    folders = ("tests", "examples", "benchmarks", "docs", *FLOORS)
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            if "_build" in path.parts or path == Path(__file__):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                touches = isinstance(node, ast.Attribute) and node.attr == "path"
                assert not (touches and getattr(node.value, "id", "") == "sys"), (
                    f"{path} touches sys.path"
                )
    assert "PYTHONPATH" not in (ROOT / "Makefile").read_text()


def run(script, **environment):
    """Run a script in a fresh interpreter from an empty place; return what it prints."""
    result = subprocess.run(
        [sys.executable, "-P", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=os.path.sep,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_is_cheap():
    script = (
        "import time; start = time.perf_counter(); import equipoise\n"
        "print(time.perf_counter() - start)\n"
        "import sys; assert not {'torch', 'shap', 'sklearn', 'numpy'} & set(sys.modules)"
    )
    assert min(float(run(script)) for _ in range(3)) < 0.1


@pytest.mark.parametrize("room", ["datasets", "estimators", "explainers", "games", "testing"])
def test_room_imports_nothing_heavy(room):
    heavy = {
        "torch",
        "shap",
        "skorch",
        "matplotlib",
        "numba",
        "hypothesis",
        "pytest",
        "transformers",
    }
    run(
        f"import sys, equipoise.{room}\n"
        f"loaded = {heavy!r} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )


def test_hugging_face_datasets_side_by_side():
    script = (
        "import datasets, equipoise.datasets\n"
        "assert datasets.Dataset.from_dict({'a': [1, 2]}).num_rows == 2\n"
        "assert equipoise.datasets.__name__ == 'equipoise.datasets'\n"
    )
    run(script, HF_HUB_OFFLINE="1")


IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import equipoise
assert {checkout!r} not in equipoise.__file__, equipoise.__file__
names = [m.name for m in pkgutil.walk_packages(equipoise.__path__, "equipoise.")]
for name in names:
    importlib.import_module(name)
for name in {packages!r}:
    assert name == "equipoise" or name in names, name
from importlib.resources import files
for package, name in {data!r}:
    assert files(package).joinpath(name).read_bytes() is not None, (package, name)
print(len(names))
"""


def shipped_files():
    """(package, file) for every file in the rooms that isn't Python."""
    for room in FLOORS:
        for path in (ROOT / room).rglob("*"):
            if (
                path.is_file()
                and path.suffix not in {".py", ".pyc"}
                and "__pycache__" not in path.parts
            ):
                yield package_of(room, path), path.name


def build_wheel(folder):
    """Build the wheel from a copy of the tracked files, so that nothing untracked slips in."""
    copy = folder / "source"
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    for name in filter(None, tracked.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    command = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-q",
    ]
    subprocess.run([*command, "-w", folder, copy], check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("equipoise-*.whl")
    return wheel


def import_everything(python):
    packages = PYPROJECT["tool"]["setuptools"]["packages"]
    script = IMPORT_EVERYTHING.format(
        checkout=str(ROOT), packages=packages, data=list(shipped_files())
    )
    result = subprocess.run(
        [python, "-P", "-c", script], capture_output=True, text=True, cwd=os.path.sep, check=False
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) >= len(packages) - 1


def test_wheel_alone_imports_every_module(tmp_path):
    """The wheel in a clean environment, beside the dependencies but not the checkout."""
    wheel = build_wheel(tmp_path)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    subprocess.run(
        [sys.executable, "-P", "-m", "pip", "install", "-q", "--no-deps", "--target", site, wheel],
        check=True,
    )
    # A plain path in a .pth file: dependencies are seen, the editable install's hook isn't run.
    (dependencies,) = {
        str(Path(p)) for p in map(str, Path(pytest.__file__).parents) if p.endswith("site-packages")
    }
    (site / "dependencies.pth").write_text(dependencies + "\n")
    import_everything(environment / "bin" / "python")


@pytest.mark.slow
def test_wheel_installs_with_its_dependencies(tmp_path):
    """The same with every dependency installed anew, as a user's pip does it."""
    wheel = build_wheel(tmp_path)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel], check=True
    )
    import_everything(python)
