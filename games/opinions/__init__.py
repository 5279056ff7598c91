"""Opinions with an AI in the channel: equilibria, amplification, influence."""

from .control import Correction
from .dynamics import MediatedOpinionDynamics
from .indices import amplification_factor, friedkin_johnsen, opinion_metrics
from .mediators import (
    AffineMediator,
    AnchoredMediator,
    ClippedMediator,
    ComposeMediator,
    CurveMediator,
    Mediator,
)
from .network import OpinionNetwork
from .simulation import Simulation

__all__ = [
    "AffineMediator",
    "AnchoredMediator",
    "ClippedMediator",
    "ComposeMediator",
    "Correction",
    "CurveMediator",
    "MediatedOpinionDynamics",
    "Mediator",
    "OpinionNetwork",
    "Simulation",
    "amplification_factor",
    "friedkin_johnsen",
    "opinion_metrics",
]
