"""The game of choosing agents: meta-games from matches, their equilibria, and mediators."""

from .certification import CertificationMediator
from .commitment import CommitmentMediator
from .comparison import compare_mediators, subsidy_frontier
from .correlated import CorrelatedMediator
from .delegation import DelegationMediator
from .disclosure import DisclosureMediator
from .market import MarketChoiceMediator, technology_audit
from .meta_game import AgentDesignGame
from .pareto import ParetoMediator
from .solver import MetaGameSolver
from .splitter import MatchSplitter
from .subsidy import SubsidyMediator
from .transfer import TransferMediator

__all__ = [
    "AgentDesignGame",
    "CertificationMediator",
    "CommitmentMediator",
    "CorrelatedMediator",
    "DelegationMediator",
    "DisclosureMediator",
    "MarketChoiceMediator",
    "MatchSplitter",
    "MetaGameSolver",
    "ParetoMediator",
    "SubsidyMediator",
    "TransferMediator",
    "compare_mediators",
    "subsidy_frontier",
    "technology_audit",
]
