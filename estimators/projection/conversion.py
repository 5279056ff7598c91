"""A copy of a network whose layers carry displacements, with the same parameters."""

import copy
from collections.abc import Callable
from typing import Any

from torch import nn

from .activations import PiecewiseLinear, ProjDropout, ProjHardtanh, ProjLeakyReLU, ProjReLU
from .arrays import require_option, require_positive
from .convolution import ProjAvgPool2d, ProjConv2d, ProjMaxPool2d, pair
from .layers import LayerOptions, ProjAdd, ProjLinear

__all__ = ["project"]

#: Taken as they are: they only move values about, or carry displacements already.
KEPT = (
    nn.Flatten, nn.Unflatten, nn.Identity, PiecewiseLinear, ProjAdd, ProjAvgPool2d, ProjConv2d,
    ProjDropout, ProjLinear, ProjMaxPool2d, ProjReLU,
)  # fmt: skip
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def with_parameters(new: nn.Module, old: nn.Module) -> nn.Module:
    """The new module with the old one's weight and bias: the same objects."""
    new.weight, new.bias = old.weight, old.bias
    return new


def linear(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.Linear`."""
    shape = old.in_features, old.out_features, old.bias is not None
    return with_parameters(ProjLinear(*shape, **options._asdict(), device="meta"), old)


def conv2d(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.Conv2d`."""
    if old.padding_mode != "zeros" or isinstance(old.padding, str):
        raise NotImplementedError(
            f"Conv2d with padding={old.padding!r}, padding_mode={old.padding_mode!r} has no "
            "projection; allowed: zeros, in pixels"
        )
    new = ProjConv2d(
        old.in_channels, old.out_channels, old.kernel_size, old.stride, old.padding, old.dilation,
        old.groups, old.bias is not None, **options._asdict(), device="meta",
    )  # fmt: skip
    return with_parameters(new, old)


def relu(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.ReLU`."""
    return ProjReLU(weight)


def leaky_relu(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.LeakyReLU`."""
    return ProjLeakyReLU(old.negative_slope, weight)


def hardtanh(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.Hardtanh`."""
    return ProjHardtanh(old.min_val, old.max_val, weight)


def max_pool(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.MaxPool2d`."""
    if old.ceil_mode or old.return_indices:
        raise NotImplementedError("MaxPool2d with ceil_mode or return_indices has no projection")
    shape = old.kernel_size, old.stride, old.padding, old.dilation
    return ProjMaxPool2d(*shape, weight=weight, reduction=options.reduction)


def average_pool(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.AvgPool2d`."""
    counted = old.count_include_pad or pair(old.padding) == (0, 0)
    if old.ceil_mode or old.divisor_override or not counted:
        raise NotImplementedError(
            "AvgPool2d with ceil_mode, divisor_override or uncounted padding has no projection"
        )
    shape = old.kernel_size, old.stride, old.padding
    return ProjAvgPool2d(*shape, weight=weight, reduction=options.reduction)


def dropout(old: Any, options: LayerOptions, weight: float) -> nn.Module:
    """The counterpart of `torch.nn.Dropout`."""
    return ProjDropout(old.p)


COUNTERPARTS: dict[type, Callable[[Any, LayerOptions, float], nn.Module]] = {
    nn.Linear: linear,
    nn.Conv2d: conv2d,
    nn.ReLU: relu,
    nn.LeakyReLU: leaky_relu,
    nn.Hardtanh: hardtanh,
    nn.MaxPool2d: max_pool,
    nn.AvgPool2d: average_pool,
    nn.Dropout: dropout,
}


def is_container(module: nn.Module) -> bool:
    """Whether the module only arranges others: its own code, and no parameters beside theirs."""
    if type(module) in CONTAINERS:
        return True
    foreign = not type(module).__module__.startswith("torch.")
    own = any(True for _ in module.parameters(recurse=False))
    return foreign and not own and any(True for _ in module.children())


def counterpart(
    name: str, module: nn.Module, options: LayerOptions, weight: float, unsupported: str
) -> nn.Module:
    """The module that takes a leaf's place."""
    if getattr(module, "inplace", False):
        raise ValueError(
            f"{name or 'module'}: {module} works in place and overwrites what its projection "
            "needs; allowed: inplace=False"
        )
    if type(module) in COUNTERPARTS:
        new = COUNTERPARTS[type(module)](module, options, weight)
        return new.train(module.training)
    if isinstance(module, KEPT) or unsupported == "gradient":
        return module
    raise NotImplementedError(
        f"{name or 'module'}: {type(module).__name__} has no projection here; "
        "unsupported='gradient' leaves it to autograd"
    )


def replace(name: str, module: nn.Module, done: dict[int, nn.Module], *choices: Any) -> nn.Module:
    """Replace leaves inside a copied module; a module used twice is replaced by one."""
    if id(module) not in done:
        if type(module) not in COUNTERPARTS and is_container(module):
            done[id(module)] = module
            for key, child in list(module._modules.items()):
                if child is not None:
                    path = f"{name}.{key}" if name else key
                    module._modules[key] = replace(path, child, done, *choices)
        else:
            done[id(module)] = counterpart(name, module, *choices)
    return done[id(module)]


def project(
    module: nn.Module,
    *,
    alpha: float | str = 1.0,
    gamma: float = 1.0,
    norm: str = "l2",
    reduction: str = "mean",
    solver: str = "exact",
    activation_weight: float = 1.0,
    unsupported: str = "raise",
) -> nn.Module:
    """Copy a network, with layers that carry displacements in the backward pass.

    The copy holds the same parameters and buffers as the original, not copies of them: training one
    trains both, and keys of `state_dict` stay. Its forward pass is the original's to the bit.

    Parameters
    ----------
    module : torch.nn.Module
        Made of Linear, Conv2d, ReLU, LeakyReLU, Hardtanh, MaxPool2d, AvgPool2d, Dropout, Flatten,
        Unflatten and Identity, in Sequential or in modules of your own. What those compute by
        functions is left to autograd: ``a + b`` hands a displacement to both terms (`ProjAdd`
        projects), a tensor used twice gets the sum (`branch` averages), and a functional ``relu``
        multiplies by its derivative.
    alpha, gamma, norm, reduction, solver : object
        As in `ProjLinear`, for all layers.
    activation_weight : float, default=1.0
        Weight of the outputs of activations and pooling in the distance, > 0.
    unsupported : {"raise", "gradient"}, default="raise"
        What happens to other layers: an error, or autograd takes the displacement for a gradient.
        The `.grad` of their parameters is then a sum over the batch: divide it by the batch size.

    Returns
    -------
    torch.nn.Module
        The copy.

    Raises
    ------
    NotImplementedError
        If a layer has no projection (normalisation, attention, ...); the message names it.
    ValueError
        If an activation works in place, or an option isn't allowed.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from equipoise.estimators import project
    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> copy = project(net)
    >>> (
    ...     copy[0].weight is net[0].weight,
    ...     bool((copy(torch.ones(1, 4)) == net(torch.ones(1, 4))).all()),
    ... )
    (True, True)
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module is a {type(module).__name__}; allowed: torch.nn.Module")
    options = LayerOptions(alpha, gamma, norm, reduction, solver).checked()
    weight = require_positive("activation_weight", activation_weight)
    require_option("unsupported", unsupported, ("raise", "gradient"))
    shared: dict[int, Any] = {id(t): t for t in [*module.parameters(), *module.buffers()]}
    twin = copy.deepcopy(module, shared)
    return replace("", twin, {}, options, weight, unsupported)
