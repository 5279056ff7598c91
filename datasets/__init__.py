"""Data sets: make_* with the ground truth, load_* from the wheel, fetch_* on demand."""

from equipoise.imports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "agent_design": [
            "load_axelrod_metagame",
            "load_coopeval",
            "load_glee",
            "load_llm_attitudes",
            "make_agent_design_matches",
        ],
        "bandits": ["load_digits_bandit", "make_bandit_losses"],
        "equations": ["make_lemm"],
        "equation_examples": [
            "make_american_option_lemm",
            "make_gridworld_game",
            "make_murty_lemm",
            "make_pi_cycle_lemm",
            "make_ssg_newton_cycle",
            "make_vi_divergent_lemm",
        ],
        "dirichlet_vae": [
            "load_samson_unmixing",
            "load_sugar_raman",
            "make_convex_mixture",
            "make_hyperspectral",
        ],
        "fashion_mnist": ["fetch_fashion_mnist"],
        "human_ai": [
            "fetch_chatbench",
            "load_bansal2021",
            "load_haiid",
            "load_imagenet16h",
            "make_human_ai_trials",
        ],
        "product_kernels": [
            "make_heavy_tail_shift",
            "make_polynomial_regression",
            "make_squared_exponential",
        ],
        "soft_labels": [
            "fetch_fashion_mnist_h",
            "inject_mode_shift",
            "load_cifar10h_counts",
            "make_ambiguous_digits",
            "simulate_annotators",
        ],
        "normal_form": [
            "load_classic_game",
            "make_harmonic_game",
            "make_mixture_game",
            "make_potential_game",
            "make_zero_sum_game",
        ],
    },
)
