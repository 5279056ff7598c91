"""The multilayer perceptron of the estimators, and how much signal its layers can get at most."""

import copy
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from .activations import (
    PiecewiseLinear,
    ProjHardtanh,
    ProjLeakyReLU,
    ProjQuantize,
    ProjReLU,
    ProjSign,
    ProjStep,
)
from .layers import LayerOptions, ProjLinear

__all__ = ["ACTIVATIONS", "linear_layers", "make_network", "signal_bounds"]

ACTIVATIONS = {
    "relu": ProjReLU,
    "leaky_relu": ProjLeakyReLU,
    "hardtanh": ProjHardtanh,
    "sign": ProjSign,
    "step": ProjStep,
    "quantize": ProjQuantize,
}


def make_activation(activation: str | nn.Module, weight: float) -> nn.Module:
    """An activation by its name, or a copy of one."""
    if isinstance(activation, nn.Module):
        return copy.deepcopy(activation)
    return ACTIVATIONS[activation](weight=weight)


def make_network(
    n_inputs: int,
    n_outputs: int,
    hidden_layer_sizes: Sequence[int],
    activation: str | nn.Module,
    activation_weight: float,
    options: LayerOptions,
    dtype: torch.dtype,
) -> nn.Sequential:
    """Linear layers with activations between, He's normal weights and zero biases."""
    widths = [n_inputs, *hidden_layer_sizes, n_outputs]
    layers: list[nn.Module] = []
    for n, N in pairwise(widths):
        layer = ProjLinear(n, N, **options._asdict(), dtype=dtype)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        layers += [layer, make_activation(activation, activation_weight)]
    return nn.Sequential(*layers[:-1])


def linear_layers(module: nn.Module) -> list[ProjLinear]:
    """The linear layers, from the input on."""
    return [m for m in module.modules() if isinstance(m, ProjLinear)]


def layer_bound(layer: ProjLinear) -> float:
    """The most that |h - h'| can be, over |d|, for each sample."""
    N, n = layer.weight.shape
    options = layer.options
    pair = options.gamma
    if options.norm == "linf":
        pair = options.gamma**2 * n**0.5
    return pair * (N**-0.5 if options.reduction == "mean" else N**0.5)


def signal_bounds(module: nn.Module) -> list[float]:
    """For each linear layer the most of the output's displacement that can reach its output.

    The point of the forward pass is feasible at the cost of the output's displacement alone, so
    that |h - h'| <= gamma |d_j| for each unit; averaged over N units that is gamma |d| / sqrt(N).
    An activation passes on at most sqrt(weight) |d|.
    """
    bounds, bound = [], 1.0
    for m in reversed(list(module.modules())):
        if isinstance(m, ProjLinear):
            bounds.append(bound)
            bound *= layer_bound(m)
        elif isinstance(m, ProjReLU | PiecewiseLinear):
            bound *= m.weight**0.5
    return bounds[::-1]
