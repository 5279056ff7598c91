"""Human-aligned AI, interpretability, games and learning, in scikit-learn's conventions.

Four rooms, each loaded when it is first used:

- `equipoise.estimators`: fit, predict, score, explain
- `equipoise.explainers`: fit, explain
- `equipoise.games`: problems (games, equations, bandits, networks) and solvers fitted to them
- `equipoise.datasets`: generators, shipped data, fetchers
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = ("datasets", "estimators", "explainers", "games")

__all__ = [
    "Explanation",
    "__version__",
    "datasets",
    "estimators",
    "explainers",
    "games",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name == "Explanation":
        return import_module(f"{__name__}.explanation").Explanation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS, "Explanation"])


def show_versions() -> None:
    """Print the versions of Python, equipoise and its dependencies, for bug reports.

    Returns
    -------
    None
        The table is printed. A package that isn't installed is shown as ``None``.

    Examples
    --------
    >>> import equipoise
    >>> equipoise.show_versions()  # doctest: +ELLIPSIS
    python: ...
    """
    import platform
    import sys
    from importlib.metadata import PackageNotFoundError, version

    print(f"python: {sys.version.split()[0]} ({sys.executable})")  # noqa: T201
    print(f"machine: {platform.platform()}")  # noqa: T201
    packages = (
        "equipoise numpy scipy scikit-learn pandas joblib torch skorch shap imodels numba "
        "matplotlib tqdm hypothesis"
    )
    for package in packages.split():
        try:
            found: str | None = version(package)
        except PackageNotFoundError:
            found = None
        print(f"{package}: {found}")  # noqa: T201
