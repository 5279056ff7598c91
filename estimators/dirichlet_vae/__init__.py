"""Dirichlet beta-VAE: mixture proportions with a collapse that is known before training."""

from .abundances import FCLSUnmixer, fcls
from .collapse_path import collapse_path, plot_collapse_path
from .dirichlet_vae import DirichletBetaVAE
from .distillation import distill_encoder
from .divergence import dirichlet_kl
from .efficiency import dirichlet_efficiency
from .matching import EndmemberMatch, abundance_rmse, match_endmembers, spectral_angle
from .plots import plot_abundance_maps, plot_endmembers, plot_simplex
from .pure_pixels import nfindr, vca
from .report import CollapseReport
from .selection import component_table
from .threshold import collapse_threshold

__all__ = [
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
]
