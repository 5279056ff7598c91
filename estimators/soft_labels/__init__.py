"""A classifier trained on human soft labels, with its splits and scorers."""

from .classifier import SoftLabelClassifier
from .networks import SoftLabelMLP, SoftTargetLoss
from .scorers import get_soft_scorer
from .splitting import SoftStratifiedKFold, soft_train_test_split

__all__ = [
    "SoftLabelClassifier",
    "SoftLabelMLP",
    "SoftStratifiedKFold",
    "SoftTargetLoss",
    "get_soft_scorer",
    "soft_train_test_split",
]
