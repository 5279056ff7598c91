"""Games: problems as immutable values, and the solvers fitted to them."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {})
