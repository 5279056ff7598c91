"""Estimators: fit, predict, score, explain, in scikit-learn's contract."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "dirichlet_vae": [
            "CollapseReport",
            "DirichletBetaVAE",
            "EndmemberMatch",
            "FCLSUnmixer",
            "abundance_rmse",
            "collapse_path",
            "collapse_threshold",
            "component_table",
            "dirichlet_efficiency",
            "dirichlet_kl",
            "distill_encoder",
            "fcls",
            "match_endmembers",
            "nfindr",
            "plot_abundance_maps",
            "plot_collapse_path",
            "plot_endmembers",
            "plot_simplex",
            "spectral_angle",
            "vca",
        ],
        "human_ai": ["HumanAITeamModel", "PolicyReport", "fit_from_counts"],
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
