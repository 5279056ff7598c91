"""Estimators: fit, predict, score, explain, in scikit-learn's contract."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "soft_labels": [
            "SoftLabelClassifier",
            "SoftLabelMLP",
            "SoftStratifiedKFold",
            "SoftTargetLoss",
            "get_soft_scorer",
            "soft_train_test_split",
        ],
    },
)
