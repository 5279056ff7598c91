"""Write the API pages: one a room, grouped by wing, with exactly what its `__all__` lists.

`conf.py` calls `write` before each build; the pages stand in docs/api, which isn't kept.
"""

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

__all__ = ["ROOMS", "listing", "pages", "write"]

#: Rooms in the order of the pages.
ROOMS = ("estimators", "explainers", "games", "datasets", "testing")


def first_paragraph(module: str) -> str:
    """The first paragraph of a module's docstring."""
    text = inspect.getdoc(import_module(module)) or ""
    return " ".join(text.split("\n\n")[0].split())


def listing(room: str) -> dict[str, list[str]]:
    """The public names of a room by the wing (or single module) that provides them, both sorted."""
    package = import_module(f"equipoise.{room}")
    unplaced = set(package.__all__)
    wings: dict[str, list[str]] = {}
    # Wings first; then the modules in them, from which a room may take a name directly.
    modules = pkgutil.walk_packages(package.__path__, f"equipoise.{room}.")
    for module in sorted((m.name for m in modules), key=lambda name: (name.count("."), name)):
        if not unplaced:
            break
        if names := unplaced & set(getattr(import_module(module), "__all__", ())):
            wings.setdefault(module.split(".")[2], []).extend(names)
            unplaced -= names
    if unplaced:
        raise ValueError(f"equipoise.{room}: no module's __all__ holds {sorted(unplaced)}")
    return {wing: sorted(wings[wing]) for wing in sorted(wings)}


def ground_floor() -> dict[str, list[str]]:
    """The public names of each ground-floor module."""
    package = import_module("equipoise")
    modules = {"": ["show_versions"]}
    for module in pkgutil.iter_modules([str(Path(package.__file__).parent)]):
        if module.name not in ROOMS:
            modules[module.name] = sorted(import_module(f"equipoise.{module.name}").__all__)
    return modules


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def title(name: str) -> str:
    """A module's name as a heading."""
    words = name.replace("_", " ").replace("human ai", "human-AI")
    return words[:1].upper() + words[1:]


def table(module: str, names: list[str]) -> str:
    """An autosummary of names as users import them."""
    rows = "\n".join(f"   {name}" for name in names)
    return (
        f".. currentmodule:: {module}\n\n"
        f".. autosummary::\n   :toctree: generated/\n   :nosignatures:\n\n{rows}\n"
    )


def room_page(room: str) -> str:
    module = f"equipoise.{room}"
    parts = [heading(module, "="), first_paragraph(module) + "\n"]
    for wing, names in listing(room).items():
        about = f"{module}.{wing}"
        parts += [heading(title(wing), "-"), first_paragraph(about) + "\n", table(module, names)]
    return "\n".join(parts)


def ground_floor_page() -> str:
    parts = [
        heading("equipoise", "="),
        "What every room uses, and what users may use too.\n",
    ]
    for module, names in ground_floor().items():
        full = f"equipoise.{module}".rstrip(".")
        if module:
            parts += [heading(full, "-"), first_paragraph(full) + "\n"]
        parts.append(table(full, names))
    return "\n".join(parts)


def index_page() -> str:
    entries = "\n".join(f"   {room}" for room in (*ROOMS, "equipoise"))
    rooms = "\n".join(
        f"- :doc:`equipoise.{room} <{room}>`: {first_paragraph(f'equipoise.{room}')}"
        for room in ROOMS
    )
    return (
        heading("API reference", "=")
        + f"\n{rooms}\n- :doc:`equipoise <equipoise>`: what every room uses.\n\n"
        + f".. toctree::\n   :hidden:\n\n{entries}\n"
    )


def pages() -> dict[str, str]:
    """File name to text of every page."""
    rooms = {f"{room}.rst": room_page(room) for room in ROOMS}
    return {"index.rst": index_page(), "equipoise.rst": ground_floor_page(), **rooms}


def write(folder: Path) -> None:
    """Write the pages; those that are as they should be stay untouched, so builds are quick."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
