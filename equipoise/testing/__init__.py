"""Hypothesis strategies and invariant checks, for users' own classes as for ours.

Nothing here needs pytest; hypothesis is imported only when a strategy is used.
"""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "bandits": ["check_bandit_learner", "loss_tables"],
        "human_ai": ["decision_trials", "deployments"],
        "dirichlet_vae": ["check_simplex_code", "concentration_arrays", "mixture_arrays"],
        "equations": ["check_equation_solver", "equation_systems"],
        "explanations": ["check_explains"],
        "normal_form": [
            "check_no_regret",
            "measures",
            "mixed_profiles",
            "payoff_tensors",
        ],
        "product_games": [
            "check_shapley_axioms",
            "product_form_kernels",
            "product_game_arrays",
            "shapley_values",
        ],
        "soft_labels": ["check_soft_label_classifier", "probability_rows", "vote_counts"],
    },
)
