"""The human-AI team model: trust, believed overlap, and what to do about them."""

from .counts import fit_from_counts
from .model import HumanAITeamModel
from .report import PolicyReport

__all__ = ["HumanAITeamModel", "PolicyReport", "fit_from_counts"]
