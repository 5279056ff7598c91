"""Exact Shapley values of product kernels: games, kernels, expansions, explainers."""

from .expansion import ProductKernelExpansion
from .factors import (
    CallableFactor,
    Chi2Factor,
    HammingFactor,
    LaplacianFactor,
    Matern1DFactor,
    PeriodicFactor,
    RBFFactor,
)
from .hsic import HSICShapleyExplainer
from .hsic_selector import HSICShapleySelector
from .interaction_explanation import InteractionExplanation
from .interactions import product_game_interactions
from .kernels import ProductKernel
from .mmd import MMDShapleyExplainer
from .nodes import gauss_legendre_01, n_quadrature_nodes
from .pkex import PKeXShapleyExplainer
from .product_games import ProductGame, product_game_values

__all__ = [
    "CallableFactor",
    "Chi2Factor",
    "HSICShapleyExplainer",
    "HSICShapleySelector",
    "HammingFactor",
    "InteractionExplanation",
    "LaplacianFactor",
    "MMDShapleyExplainer",
    "Matern1DFactor",
    "PKeXShapleyExplainer",
    "PeriodicFactor",
    "ProductGame",
    "ProductKernel",
    "ProductKernelExpansion",
    "RBFFactor",
    "gauss_legendre_01",
    "n_quadrature_nodes",
    "product_game_interactions",
    "product_game_values",
]
