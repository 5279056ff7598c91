"""Bandits: learners against still and moving targets, their worlds, simulation and regret."""

from .adversaries import AdaptiveHideEnv, CallableAdversary
from .barrier import LogBarrierFTRL, TsallisINF
from .detection import DetectionAugmented
from .environments import ObliviousEnv, PiecewiseEnv, StochasticSwitchingEnv
from .exp3 import Exp3, Exp3IX, Exp3P
from .exp3_adaptive import Exp3PlusPlus, Exp3S
from .indices import UCB1, DiscountedUCB, EpsilonGreedy, SlidingWindowUCB
from .masters import BanditOverBandit, Corral
from .meta import SwitchingMeta
from .regret import (
    best_switching_sequence,
    count_switches,
    dynamic_regret,
    regret_profile,
    static_regret,
    switching_regret,
)
from .replay import ReplayEnv
from .results import SimulationResult, scaling_exponent
from .simulation import simulate
from .static_dynamic import StaticDynamicBandit
from .thompson import ThompsonBeta
from .tracking import RestartOnDetect, TrackAndExplore

__all__ = [
    "UCB1",
    "AdaptiveHideEnv",
    "BanditOverBandit",
    "CallableAdversary",
    "Corral",
    "DetectionAugmented",
    "DiscountedUCB",
    "EpsilonGreedy",
    "Exp3",
    "Exp3IX",
    "Exp3P",
    "Exp3PlusPlus",
    "Exp3S",
    "LogBarrierFTRL",
    "ObliviousEnv",
    "PiecewiseEnv",
    "ReplayEnv",
    "RestartOnDetect",
    "SimulationResult",
    "SlidingWindowUCB",
    "StaticDynamicBandit",
    "StochasticSwitchingEnv",
    "SwitchingMeta",
    "ThompsonBeta",
    "TrackAndExplore",
    "TsallisINF",
    "best_switching_sequence",
    "count_switches",
    "dynamic_regret",
    "regret_profile",
    "scaling_exponent",
    "simulate",
    "static_regret",
    "switching_regret",
]
