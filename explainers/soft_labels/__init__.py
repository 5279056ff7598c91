"""Human soft labels: targets, arms, aggregation, calibration, alignment, cartography, audit."""

from .aggregation import WAWA, MajorityVote, VoteShare
from .alignment import (
    entropy_error,
    human_alignment_report,
    kl_to_humans,
    soft_cross_entropy,
    total_variation,
)
from .arms import entropy_matched_labels, make_label_arms
from .audit import SoftLabelAudit
from .audit_report import AuditReport
from .bayes_accuracy import BayesAccuracy, bayes_accuracy
from .brier import brier_decomposition, expected_brier, soft_brier
from .budget import annotation_budget_curve
from .calibration import calibration_error, reliability_curve
from .cartography import DatasetCartography
from .concentration import OpinionConcentration, opinion_concentration
from .conformal import VoteConformalSets
from .dawid_skene import DawidSkene
from .difficulty import item_difficulty
from .dynamics import TrainingDynamics
from .rankings import ranking_agreement
from .reannotation import expected_vote_gain
from .targets import as_soft_labels

__all__ = [
    "WAWA",
    "AuditReport",
    "BayesAccuracy",
    "DatasetCartography",
    "DawidSkene",
    "MajorityVote",
    "OpinionConcentration",
    "SoftLabelAudit",
    "TrainingDynamics",
    "VoteConformalSets",
    "VoteShare",
    "annotation_budget_curve",
    "as_soft_labels",
    "bayes_accuracy",
    "brier_decomposition",
    "calibration_error",
    "entropy_error",
    "entropy_matched_labels",
    "expected_brier",
    "expected_vote_gain",
    "human_alignment_report",
    "item_difficulty",
    "kl_to_humans",
    "make_label_arms",
    "opinion_concentration",
    "ranking_agreement",
    "reliability_curve",
    "soft_brier",
    "soft_cross_entropy",
    "total_variation",
]
