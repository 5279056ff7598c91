"""Explainers: fit on a model or on data, then explain."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "product_kernels": [
            "CallableFactor",
            "Chi2Factor",
            "HSICShapleyExplainer",
            "HSICShapleySelector",
            "HammingFactor",
            "LaplacianFactor",
            "MMDShapleyExplainer",
            "Matern1DFactor",
            "PKeXShapleyExplainer",
            "PeriodicFactor",
            "ProductKernel",
            "RBFFactor",
            "gauss_legendre_01",
            "n_quadrature_nodes",
            "product_game_interactions",
            "product_game_values",
        ],
        "reliance": [
            "RelianceReport",
        ],
        "soft_labels": [
            "AuditReport",
            "DatasetCartography",
            "DawidSkene",
            "MajorityVote",
            "SoftLabelAudit",
            "TrainingDynamics",
            "VoteShare",
            "WAWA",
            "annotation_budget_curve",
            "as_soft_labels",
            "brier_decomposition",
            "calibration_error",
            "entropy_error",
            "entropy_matched_labels",
            "expected_brier",
            "expected_vote_gain",
            "human_alignment_report",
            "kl_to_humans",
            "make_label_arms",
            "ranking_agreement",
            "reliability_curve",
            "soft_brier",
            "soft_cross_entropy",
            "total_variation",
        ],
        "soft_labels.callback": [
            "CartographyCallback",
        ],
    },
)
