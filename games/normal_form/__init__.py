"""Normal-form games, their decomposition, harmonic games and learning in them."""

from .decomposition import GameDecomposition, decompose, harmonic_dimension
from .flow import FTRLFlow
from .ftrl import FTRLPlus
from .game import NormalFormGame
from .harmonic import HarmonicGame
from .learner import FTRLPlusLearner
from .matches import play_against, self_play
from .measure import HarmonicMeasure, find_harmonic_measure
from .plots import plot_cube, plot_decomposition, plot_regret, plot_simplex
from .sensitivity import estimate_potentialness
from .variety import EquilibriumVariety

__all__ = [
    "EquilibriumVariety",
    "FTRLFlow",
    "FTRLPlus",
    "FTRLPlusLearner",
    "GameDecomposition",
    "HarmonicGame",
    "HarmonicMeasure",
    "NormalFormGame",
    "decompose",
    "estimate_potentialness",
    "find_harmonic_measure",
    "harmonic_dimension",
    "play_against",
    "plot_cube",
    "plot_decomposition",
    "plot_regret",
    "plot_simplex",
    "self_play",
]
