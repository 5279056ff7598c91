"""Explainers: fit on a model or on data, then explain."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {})
