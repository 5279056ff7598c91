"""Hypothesis strategies and invariant checks, for users' own classes as for ours.

Nothing here needs pytest; hypothesis is imported only when a strategy is used.
"""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {})
