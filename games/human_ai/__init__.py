"""When an AI's advice helps a human decision: closed forms, regions, phase diagrams, policies."""

from .accuracy import ai_accuracy, human_accuracy, team_accuracy
from .advisors import advisors_accuracy
from .bivariate import bvn_cdf
from .boundaries import complementarity_threshold, regime_boundaries
from .decomposition import decompose_effect
from .fusion import optimal_accuracy, optimal_trust
from .phase import PhaseDiagram, phase_diagram
from .planning import boundary_trust, trials_needed
from .policies import policy_accuracy
from .population import population_effect
from .regimes import REGIME_NAMES, Regime, locate, regime

__all__ = [
    "REGIME_NAMES",
    "PhaseDiagram",
    "Regime",
    "advisors_accuracy",
    "ai_accuracy",
    "boundary_trust",
    "bvn_cdf",
    "complementarity_threshold",
    "decompose_effect",
    "human_accuracy",
    "locate",
    "optimal_accuracy",
    "optimal_trust",
    "phase_diagram",
    "policy_accuracy",
    "population_effect",
    "regime",
    "regime_boundaries",
    "team_accuracy",
    "trials_needed",
]
