"""Data sets: make_* with the ground truth, load_* from the wheel, fetch_* on demand."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {})
