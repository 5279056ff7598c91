"""Loading on first use: the names a room exports, and the packages that are optional."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_exports", "optional_import"]


def lazy_exports(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make a package's names load the module they live in when they are first used.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    modules : mapping of str to sequence of str
        For each module or sub-package (also a dotted one), the public names it provides.

    Returns
    -------
    getattr, dir, all : tuple
        What the package assigns to ``__getattr__``, ``__dir__`` and ``__all__`` (PEP 562).

    Raises
    ------
    ValueError
        If two modules provide one name, or a module is called like a name.

    Examples
    --------
    >>> get, names, public = lazy_exports("collections", {"abc": ["Mapping"]})
    >>> public
    ['Mapping']
    >>> get("Mapping").__name__
    'Mapping'
    """
    listed = [name for names in modules.values() for name in names]
    if clashes := sorted({name for name in listed if listed.count(name) > 1 or name in modules}):
        raise ValueError(f"{package}: {clashes} would name two things")
    home = {name: module for module, names in modules.items() for name in names}
    public = sorted(home)

    def getattribute(name: str) -> Any:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def directory() -> list[str]:
        return sorted({*public, *(module.split(".")[0] for module in modules)})

    return getattribute, directory, public


def optional_import(module: str, extra: str) -> Any:
    """Import an optional package, or say which extra installs it.

    Parameters
    ----------
    module : str
        Name of the module to import.
    extra : str
        The extra of equipoise that brings it.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    ImportError
        If it isn't installed; the message holds the pip command.

    Examples
    --------
    >>> optional_import("math", "graphs").sqrt(4.0)
    2.0
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is installed, and lacks something itself
        raise ImportError(
            f"{module!r} is needed here and isn't installed: pip install 'equipoise[{extra}]'"
        ) from error
