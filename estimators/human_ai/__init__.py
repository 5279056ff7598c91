"""The human-AI team model: trust, believed overlap, and what to do about them."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "advice": ["TeamDecision"],
        "counts": ["fit_from_counts"],
        "model": ["HumanAITeamModel"],
        "report": ["PolicyReport"],
    },
)
