"""Learning by projections: closed-form projections, torch layers that carry them, estimators."""

from .activations import (
    ProjDropout,
    ProjHardtanh,
    ProjLeakyReLU,
    ProjQuantize,
    ProjReLU,
    ProjSign,
    ProjStep,
)
from .bilinear import BilinearProjection, project_bilinear
from .conversion import project
from .convolution import ProjAvgPool2d, ProjConv2d, ProjMaxPool2d
from .graphs import (
    project_consensus,
    project_max,
    project_piecewise_linear,
    project_relu,
    project_sum,
)
from .layers import ProjAdd, ProjLinear, branch
from .linear import LinearProjection, project_linear_batch
from .losses import (
    MarginLoss,
    ProxAbsoluteLoss,
    ProxCrossEntropyLoss,
    ProxHingeLoss,
    ProxHuberLoss,
    ProxMSELoss,
)
from .mlp import ProjectionMLPClassifier, ProjectionMLPRegressor
from .modes import consensus_weights, gradient_mode, projection_mode
from .monitor import TargetSignalMonitor
from .optimizer import ProjectionOptimizer
from .proximal import prox_absolute, prox_cross_entropy, prox_hinge, prox_huber, prox_squared
from .sets import project_ball, project_box, project_margin, project_simplex, project_sparse

__all__ = [
    "BilinearProjection",
    "LinearProjection",
    "MarginLoss",
    "ProjAdd",
    "ProjAvgPool2d",
    "ProjConv2d",
    "ProjDropout",
    "ProjHardtanh",
    "ProjLeakyReLU",
    "ProjLinear",
    "ProjMaxPool2d",
    "ProjQuantize",
    "ProjReLU",
    "ProjSign",
    "ProjStep",
    "ProjectionMLPClassifier",
    "ProjectionMLPRegressor",
    "ProjectionOptimizer",
    "ProxAbsoluteLoss",
    "ProxCrossEntropyLoss",
    "ProxHingeLoss",
    "ProxHuberLoss",
    "ProxMSELoss",
    "TargetSignalMonitor",
    "branch",
    "consensus_weights",
    "gradient_mode",
    "project",
    "project_ball",
    "project_bilinear",
    "project_box",
    "project_consensus",
    "project_linear_batch",
    "project_margin",
    "project_max",
    "project_piecewise_linear",
    "project_relu",
    "project_simplex",
    "project_sparse",
    "project_sum",
    "projection_mode",
    "prox_absolute",
    "prox_cross_entropy",
    "prox_hinge",
    "prox_huber",
    "prox_squared",
]
