"""Layers and losses that carry displacements, optimiser, monitor, and copies of networks."""

import copy
import pickle
import threading
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from equipoise.estimators import (
    MarginLoss,
    ProjAdd,
    ProjAvgPool2d,
    ProjConv2d,
    ProjDropout,
    ProjectionOptimizer,
    ProjHardtanh,
    ProjLeakyReLU,
    ProjLinear,
    ProjMaxPool2d,
    ProjQuantize,
    ProjReLU,
    ProjSign,
    ProjStep,
    ProxAbsoluteLoss,
    ProxCrossEntropyLoss,
    ProxHingeLoss,
    ProxHuberLoss,
    ProxMSELoss,
    TargetSignalMonitor,
    branch,
    consensus_weights,
    gradient_mode,
    project,
    project_box,
    project_linear_batch,
    project_max,
    project_piecewise_linear,
    project_relu,
    project_sparse,
    project_sum,
    projection_mode,
    prox_cross_entropy,
)
from equipoise.estimators.projection.muon import Muon, orthogonalize
from equipoise.estimators.projection.networks import layer_bound, signal_bounds

FEW = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 10**6)


def double(seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, dtype=torch.float64, generator=generator) for s in shapes]


def chain(dtype=torch.float64, **options):
    torch.manual_seed(0)
    layers = [nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3)]
    return project(nn.Sequential(*layers).to(dtype), **options)


# Displacements


@FEW
@given(seeds, st.booleans(), st.sampled_from(["l2", "linf"]), st.sampled_from(["mean", "sum"]))
def test_linear_layer_carries_the_projection(seed, bias, norm, reduction):
    layer = ProjLinear(3, 4, bias, gamma=0.7, norm=norm, reduction=reduction, dtype=torch.float64)
    x, d = double(seed, (2, 5, 3), (2, 5, 4))
    x.requires_grad_()
    y = layer(x)
    y.backward(d)
    expected = project_linear_batch(
        x.detach().reshape(10, 3), layer.weight.detach(), (y - d).detach().reshape(10, 4),
        None if layer.bias is None else layer.bias.detach(), 1.0, 0.7, reduction, norm,
    )  # fmt: skip
    torch.testing.assert_close(x.detach() - x.grad, expected.H.reshape(2, 5, 3))
    torch.testing.assert_close(layer.weight - layer.weight.grad, expected.W)
    if bias:
        torch.testing.assert_close(layer.bias - layer.bias.grad, expected.bias)


def targets_backwards(model, x, z):
    """The published form: a sweep that hands targets down, and leaves projected weights."""
    layers = list(model)
    values = [x]
    for layer in layers:
        values.append(layer(values[-1]).detach())
    projected = {}
    for layer, h in zip(layers[::-1], values[-2::-1], strict=True):
        if isinstance(layer, nn.Linear):
            bias = layer.bias.detach()
            found = project_linear_batch(h, layer.weight.detach(), z, bias, reduction="mean")
            projected[layer.weight], projected[layer.bias], z = found.W, found.bias, found.H
        else:
            z = project_relu(h, z)[0]
    return projected


def test_displacements_and_targets_give_the_same_weights():
    model = chain()
    (x,), y = double(1, (6, 4)), torch.tensor([0, 1, 2, 0, 1, 2])
    u = model(x)
    expected = targets_backwards(model, x, prox_cross_entropy(u.detach(), y))
    optimizer = ProjectionOptimizer(model.parameters(), base="sgd")  # lr=1: the projection
    ProxCrossEntropyLoss()(u, y).backward()
    optimizer.step()
    assert len(expected) == 6
    for parameter, target in expected.items():
        torch.testing.assert_close(parameter.detach(), target, atol=1e-9, rtol=0)


def test_no_displacement_where_nothing_is_wrong():
    model = chain()
    (x,) = double(2, (6, 4))
    u = model(x)
    ProxMSELoss()(u, u.detach()).backward()
    assert all(bool((p.grad == 0).all()) for p in model.parameters())


@FEW
@given(seeds, st.integers(1, 5))
def test_one_unit_and_sample_reach_the_target(seed, n):
    """With gamma = 1000 the projected weights applied to the projected input give the target."""
    layer = ProjLinear(n, 1, bias=False, gamma=1e3, dtype=torch.float64)
    x, z = double(seed, (1, n), (1, 1))
    x.requires_grad_()
    y = layer(x)
    y.backward(y.detach() - z)
    with torch.no_grad():
        reached = (layer.weight - layer.weight.grad) @ (x - x.grad).T
    assert abs(reached - z) < 1e-3 * abs(z - y)


@FEW
@given(seeds, st.sampled_from([0.5, 1.0, 3.0]))
def test_activations_carry_their_projections(seed, weight):
    x, d = double(seed, (4, 5), (4, 5))
    x, d = 2 * x, 3 * d
    for layer in (
        ProjReLU(weight), ProjLeakyReLU(0.1, weight), ProjHardtanh(-1, 0.5, weight),
        ProjSign(weight), ProjStep(weight), ProjQuantize(4, weight),
    ):  # fmt: skip
        at = x.clone().requires_grad_()
        y = layer(at)
        y.backward(d)
        target = (y - d).detach()
        if isinstance(layer, ProjReLU):
            expected = project_relu(x, target, weight)[0]
        else:
            expected = project_piecewise_linear(x, target, *layer.pieces, weight=weight)[0]
        torch.testing.assert_close(x - at.grad, expected, atol=1e-10, rtol=0)


def test_values_are_those_of_torch_to_the_bit():
    x = torch.randn(7, 6, 8, 8)
    for ours, theirs in (
        (ProjReLU(), nn.ReLU()),
        (ProjLeakyReLU(0.2), nn.LeakyReLU(0.2)),
        (ProjHardtanh(-0.5, 2), nn.Hardtanh(-0.5, 2)),
        (ProjMaxPool2d(3, 2, 1), nn.MaxPool2d(3, 2, 1)),
        (ProjAvgPool2d(3, 2, 1), nn.AvgPool2d(3, 2, 1)),
        (ProjSign(), lambda v: torch.where(v >= 0, 1.0, -1.0)),
        (ProjStep(), lambda v: (v >= 0).to(v)),
        (ProjQuantize([-1, 0, 3]),
         lambda v: torch.where(v < -0.5, -1.0, torch.where(v < 1.5, 0.0, 3.0))),
    ):  # fmt: skip
        assert torch.equal(ours(x), theirs(x)), ours
        with torch.no_grad():
            assert torch.equal(ours(x), theirs(x))
    assert torch.equal(ProjSign()(torch.zeros(3)), torch.ones(3))


def test_a_dead_unit_comes_back():
    """Closed for the whole batch, with targets above (1 + sqrt 2) |x|: a gradient would be zero."""
    layer = nn.Sequential(ProjLinear(2, 1, bias=False, gamma=10.0), ProjReLU())
    layer[0].weight.data = torch.tensor([[-0.1, -0.1]])
    x = torch.rand(8, 2) + 0.5
    optimizer = ProjectionOptimizer(layer.parameters(), base="sgd")
    assert bool((layer(x) == 0).all())
    for _ in range(50):
        optimizer.zero_grad()
        ProxMSELoss()(layer(x), torch.full((8, 1), 5.0)).backward()
        optimizer.step()
    assert bool((layer(x) > 0).all())


def test_tiny_displacements_pass_through_a_chain_in_float32():
    model = chain(torch.float32)
    x = torch.rand(6, 4) + 1
    monitor = TargetSignalMonitor(model)
    u = model(x)
    u.backward(1e-20 * torch.ones_like(u))
    signals = monitor.to_frame()["signal"].to_numpy()
    assert signals[-1] == pytest.approx(1e-20 * 3**0.5, rel=1e-5)
    assert 0 < signals[0] < 1e-22


@pytest.mark.parametrize("solver", ["exact", "one_step"])
def test_fading_signal_keeps_to_its_bound(solver):
    torch.manual_seed(0)
    for reduction in ("mean", "sum"):
        model = project(
            nn.Sequential(*[nn.Linear(16, 16, bias=False) for _ in range(5)]),
            reduction=reduction, solver=solver, gamma=0.9,
        )  # fmt: skip
        x, y = torch.randn(8, 16), torch.randn(8, 16)
        with TargetSignalMonitor(model) as monitor:
            ProxMSELoss()(model(x), 10 * y).backward()
        signals = monitor.to_frame()["signal"].to_numpy()
        bounds = np.array(signal_bounds(model))
        assert (signals <= signals[-1] * bounds * (1 + 1e-5)).all()
        assert bounds[0] == pytest.approx(layer_bound(model[0]) ** 4)
        assert (np.diff(signals) > 0).all()  # fades towards the input


# Consensus


def test_sample_weights_are_removal_and_repetition():
    x, d = double(3, (4, 3), (4, 2))
    omega = torch.tensor([2.0, 0.0, 1.0, 3.0], dtype=torch.float64)
    rows = torch.repeat_interleave(torch.arange(4), omega.long())
    grads = []
    for inputs, displacement, weights in ((x, d, omega), (x[rows], d[rows], None)):
        torch.manual_seed(0)
        layer = ProjLinear(3, 2, dtype=torch.float64)
        with consensus_weights(weights):
            y = layer(inputs)
        y.backward(displacement)  # outside: the forward pass has read them
        grads.append([p.grad for p in layer.parameters()])
    for first, second in zip(*grads, strict=True):
        torch.testing.assert_close(first, second)


def test_wrong_consensus_weights_are_refused():
    layer = ProjLinear(3, 2)
    with consensus_weights(torch.ones(3)):
        y = layer(torch.ones(4, 3))
    with pytest.raises(ValueError, match="3 weights, but the batch has 4"):
        y.sum().backward()
    with pytest.raises(ValueError, match="weights"), consensus_weights(torch.tensor([-1.0])):
        pass


def test_fan_out_adds_and_branch_averages():
    (x,) = double(4, (3, 2))
    layer = ProjAdd()
    for split, factor in ((lambda v: (v, v), 1.0), (lambda v: branch(v, 2), 0.5)):
        at = x.clone().requires_grad_()
        y = layer(*split(at))
        y.backward(torch.ones_like(y))
        expected = project_sum(torch.stack([x, x]), 2 * x - 1, dim=0)[0]
        each = x - expected[0]
        torch.testing.assert_close(at.grad, 2 * factor * each)
    with pytest.raises(ValueError, match="shapes"):
        layer(torch.ones(2), torch.ones(3))
    with pytest.raises(ValueError, match="n=0"):
        branch(x, 0)


# Modes


def test_gradient_mode_is_torchs_own_gradient():
    model, plain = chain(torch.float64), nn.Sequential(
        nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3)
    ).double()  # fmt: skip
    plain.load_state_dict(model.state_dict())
    (x,), y = double(5, (6, 4)), torch.tensor([0, 1, 2, 0, 1, 2])
    with gradient_mode():
        ProxCrossEntropyLoss()(model(x), y).backward()
    F.cross_entropy(plain(x), y).backward()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (ProxMSELoss(), lambda u, y: ((u - y) ** 2).sum(1).mean() / 2),
        (ProxAbsoluteLoss(), lambda u, y: (u - y).abs().sum(1).mean()),
        (ProxHuberLoss(), lambda u, y: F.huber_loss(u, y, reduction="none").sum(1).mean()),
    ],
)
def test_losses_have_their_ordinary_values_and_gradients(loss, plain):
    u, y = double(6, (4, 3), (4, 3))
    u.requires_grad_()
    torch.testing.assert_close(loss(u, y), plain(u, y))
    with gradient_mode():
        (ours,) = torch.autograd.grad(loss(u, y), u)
    torch.testing.assert_close(ours, torch.autograd.grad(plain(u, y), u)[0])


def test_modes_belong_to_threads_and_nest():
    seen = []

    def gradient():
        x = torch.tensor([2.0], requires_grad=True)
        ProjReLU()(x).backward()
        seen.append(float(x.grad))

    with gradient_mode():
        gradient()
        thread = threading.Thread(target=gradient)
        thread.start()
        thread.join()
        with projection_mode():
            gradient()
        gradient()
    gradient()
    assert seen == [1.0, 0.5, 0.5, 1.0, 0.5]


def test_mode_is_read_in_the_forward_pass():
    x = torch.tensor([2.0], requires_grad=True)
    with gradient_mode():
        y = ProjReLU()(x)
    y.backward()
    assert float(x.grad) == 1


# Losses


def test_loss_scaling_is_detected():
    u, y = torch.zeros(2, 3, requires_grad=True), torch.tensor([0, 1])
    scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(RuntimeError, match="GradScaler"):
        scaler.scale(ProxCrossEntropyLoss()(u, y)).backward()
    with pytest.raises(RuntimeError, match="multiplied by -1"):
        (-ProxCrossEntropyLoss()(u, y)).backward()
    (ProxCrossEntropyLoss()(u, y) / 4).backward()  # accumulation: the size is ignored
    torch.testing.assert_close(u - u.grad, prox_cross_entropy(u.detach(), y))
    u.grad = None
    (0 * ProxCrossEntropyLoss()(u, y)).backward()
    assert bool((u.grad == 0).all())


def test_a_grad_scaler_that_steps_is_refused():
    layer = ProjLinear(2, 1)
    optimizer = ProjectionOptimizer(layer.parameters(), base="sgd")
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
    with pytest.raises(RuntimeError, match="GradScaler"):
        scaler.step(optimizer)


def test_losses_refuse_wrong_targets():
    u = torch.zeros(2, 3)
    for loss in (ProxCrossEntropyLoss(), ProxHingeLoss(), MarginLoss()):
        with pytest.raises(TypeError, match="dtype"):
            loss(u, torch.tensor([0.0, 1.0]))
        with pytest.raises(ValueError, match="labels from 0 to 3"):
            loss(u, torch.tensor([0, 3]))
        with pytest.raises(ValueError, match="y has shape"):
            loss(u, torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match=r"target has shape \(2,\)"):
        ProxMSELoss()(u, torch.zeros(2))
    for kind in (ProxCrossEntropyLoss, ProxMSELoss, ProxHingeLoss, ProxAbsoluteLoss, ProxHuberLoss):
        with pytest.raises(ValueError, match="lam=0"):
            kind(lam=0)
    with pytest.raises(ValueError, match="delta=-1"):
        MarginLoss(-1)


def test_half_precision_is_solved_in_float32():
    layer = ProjLinear(3, 2, dtype=torch.bfloat16)
    x = torch.randn(4, 3, dtype=torch.bfloat16, requires_grad=True)
    y = layer(x)
    d = 0.1 * torch.randn(4, 2)
    y.backward(d.bfloat16())
    d = d.bfloat16().float()
    H, W, b = (v.detach().float() for v in (x, layer.weight, layer.bias))
    expected = project_linear_batch(H, W, F.linear(H, W, b) - d, b)
    assert x.grad.dtype == torch.bfloat16
    torch.testing.assert_close(x.grad.float(), H - expected.H, atol=1e-4, rtol=2e-2)


# Convolution and pooling


def conv_reference(layer, x, d):
    """Patch by patch: a linear layer over (sample, position), then the mean over the patches."""
    options = layer.options
    settings_ = {"stride": layer.stride, "padding": layer.padding, "dilation": layer.dilation}
    G, B = layer.groups, len(x)
    N = layer.out_channels // G
    patches = F.unfold(x, layer.kernel_size, **settings_).reshape(B, G, -1, d[0, 0].numel())
    y = layer(x).detach()
    moved, dW, db = [], [], []
    for g in range(G):
        H = patches[:, g].transpose(1, 2).reshape(-1, patches.shape[2])
        units = slice(g * N, (g + 1) * N)
        W, bias = layer.weight[units].detach().flatten(1), layer.bias[units].detach()
        Z = (y - d)[:, units].flatten(2).transpose(1, 2).reshape(-1, N)
        new = project_linear_batch(
            H, W, Z, bias, options.alpha, options.gamma, options.reduction, options.norm
        )
        moved.append((H - new.H).reshape(B, -1, H.shape[1]).transpose(1, 2))
        dW.append(W - new.W)
        db.append(bias - new.bias)
    dx = F.fold(torch.cat(moved, 1), x.shape[2:], layer.kernel_size, **settings_)
    if options.reduction == "mean":
        ones = F.unfold(torch.ones_like(x), layer.kernel_size, **settings_)
        dx = dx / F.fold(ones, x.shape[2:], layer.kernel_size, **settings_).clamp(min=1)
    return dx, torch.cat(dW).reshape(layer.weight.shape), torch.cat(db)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(
    "shape",
    [
        {"kernel_size": 3},
        {"kernel_size": (2, 3), "stride": 2, "padding": 1},
        {"kernel_size": 3, "dilation": 2, "padding": 2, "groups": 2},
        {"kernel_size": 2, "stride": 3},  # pixels that no window holds
    ],
)
def test_convolution_is_a_linear_layer_over_patches(norm, reduction, shape):
    torch.manual_seed(0)
    layer = ProjConv2d(4, 6, **shape, gamma=0.8, norm=norm, reduction=reduction,
                       alpha=1.0 if norm == "linf" else 2.0, dtype=torch.float64)  # fmt: skip
    x = torch.randn(2, 4, 7, 8, dtype=torch.float64, requires_grad=True)
    y = layer(x)
    d = torch.randn_like(y)
    y.backward(d)
    dx, dW, db = conv_reference(layer, x.detach(), d)
    torch.testing.assert_close(x.grad, dx)
    torch.testing.assert_close(layer.weight.grad, dW)
    torch.testing.assert_close(layer.bias.grad, db)
    assert torch.equal(y, F.conv2d(x, layer.weight, layer.bias, layer.stride, layer.padding,
                                   layer.dilation, layer.groups))  # fmt: skip


def test_convolution_with_sample_weights():
    torch.manual_seed(0)
    x, omega = torch.randn(3, 2, 5, 5, dtype=torch.float64), torch.tensor([2.0, 0.0, 1.0])
    rows = torch.tensor([0, 0, 2])
    layer = ProjConv2d(2, 3, 3, dtype=torch.float64)
    grads = []
    for inputs, weights in ((x, omega), (x[rows], None)):
        layer.zero_grad()
        with consensus_weights(weights):
            y = layer(inputs)
        y.backward(y.detach())
        grads.append([p.grad.clone() for p in layer.parameters()])
    for first, second in zip(*grads, strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", [(2, None, 0), (3, 2, 1), (3, 1, 1)])
def test_pooling_projects_each_window(reduction, shape):
    torch.manual_seed(0)
    kernel, stride, padding = shape
    stride = stride or kernel
    for layer in (
        ProjMaxPool2d(kernel, stride, padding, weight=2.0, reduction=reduction),
        ProjAvgPool2d(kernel, stride, padding, weight=2.0, reduction=reduction),
    ):
        x = torch.randn(2, 3, 6, 6, dtype=torch.float64, requires_grad=True)
        y = layer(x)
        d = torch.randn_like(y)
        y.backward(d)
        largest = isinstance(layer, ProjMaxPool2d)
        padded = F.pad(x.detach(), [padding] * 4, value=-1e9 if largest else 0.0)
        moved, count = torch.zeros_like(padded), torch.zeros_like(padded)
        for i in range(y.shape[2]):
            for j in range(y.shape[3]):
                box = (
                    ...,
                    slice(i * stride, i * stride + kernel),
                    slice(j * stride, j * stride + kernel),
                )
                window = padded[box].flatten(2)
                z = (y - d).detach()[:, :, i, j]
                new = (
                    project_max(window, z, weight=2.0)
                    if largest
                    else project_sum(window, z, weight=2.0, mean=True)
                )[0]
                moved[box] += (window - new).reshape(padded[box].shape)
                count[box] += 1
        if reduction == "mean":
            moved = moved / count.clamp(min=1)
        inner = slice(padding, padding + 6)
        torch.testing.assert_close(x.grad, moved[:, :, inner, inner])


def test_dropout_passes_kept_units_as_they_are():
    layer = ProjDropout(0.5)
    x = torch.ones(2000, requires_grad=True)
    y = layer(x)
    y.backward(torch.full((2000,), 3.0))
    kept = y.detach() > 0
    assert 800 < int(kept.sum()) < 1200
    assert torch.equal(y.detach()[kept], torch.full((int(kept.sum()),), 2.0))
    assert torch.equal(x.grad, torch.where(kept, 3.0, 0.0))
    assert torch.equal(layer.eval()(x), x)
    with pytest.raises(ValueError, match="p=1"):
        ProjDropout(1)


# Memory


class PeakMemory(TorchDispatchMode):
    """Bytes of all storages that were made inside and are alive, and their largest sum."""

    def __init__(self):
        super().__init__()
        self.alive, self.now, self.peak = {}, 0, 0

    def _gone(self, key):
        self.now -= self.alive.pop(key)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self.alive and storage.nbytes():
                    self.alive[key] = storage.nbytes()
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self._gone, key)
        return result


def test_backward_memory_is_that_of_an_ordinary_layer():
    """Below 6 (B n + B N + n N) floats: weights for each sample would be 70 times that."""
    B, n, N = 256, 1024, 1024
    layer = ProjLinear(n, N)
    x = torch.randn(B, n, requires_grad=True)
    with PeakMemory() as memory:
        y = layer(x)
        y.backward(torch.randn_like(y))
    floats = memory.peak / 4
    assert B * N < floats < 6 * (B * n + B * N + n * N)


# The optimiser and the monitor


def test_bases_take_displacements_for_gradients():
    for base, plain in (("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)):
        models = [chain(), chain()]
        ours = ProjectionOptimizer(models[0].parameters(), base=base, lr=0.1)
        theirs = plain(models[1].parameters(), lr=0.1)
        (x,) = double(7, (6, 4))
        for model, optimizer in zip(models, (ours, theirs), strict=True):
            for _ in range(3):
                optimizer.zero_grad()
                ProxMSELoss()(model(x), torch.ones(6, 3, dtype=torch.float64)).backward()
                optimizer.step()
        for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
            assert torch.equal(a, b)


def test_muon_steps_are_orthogonal_whatever_the_size():
    for scale in (1.0, 1e-25):
        G = scale * torch.randn(6, 4)
        singular = torch.linalg.svdvals(orthogonalize(G))
        assert 0.6 < float(singular.min()) <= float(singular.max()) < 1.3
    assert bool((orthogonalize(torch.zeros(3, 2)) == 0).all())
    weight = nn.Parameter(torch.zeros(6, 2, 2, 2))
    weight.grad = torch.randn(6, 2, 2, 2)
    Muon([weight], lr=0.5).step()
    singular = torch.linalg.svdvals(weight.detach().flatten(1))
    assert 0.3 < float(singular.min()) <= float(singular.max()) < 0.65
    with pytest.raises(ValueError, match="vector"):
        Muon([nn.Parameter(torch.zeros(3))])


def test_muon_agrees_with_torch():
    """Up to torch's bfloat16."""
    weights = [nn.Parameter(torch.zeros(12, 8)) for _ in range(2)]
    ours, theirs = (
        Muon([weights[0]], lr=0.1),
        torch.optim.Muon([weights[1]], lr=0.1, weight_decay=0),
    )
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        G = torch.randn(12, 8, generator=generator)
        for weight, optimizer in zip(weights, (ours, theirs), strict=True):
            weight.grad = G.clone()
            optimizer.step()
    torch.testing.assert_close(weights[0], weights[1], atol=0.01, rtol=0.05)


def test_muon_leaves_vectors_to_adam_at_a_tenth():
    layer = ProjLinear(3, 2)
    optimizer = ProjectionOptimizer(layer.parameters(), base="muon")
    assert [type(base).__name__ for base in optimizer.bases] == ["Muon", "Adam"]
    assert [group["lr"] for group in optimizer.param_groups] == [1e-2, 1e-3]
    before = layer.bias.detach().clone()
    layer(torch.ones(4, 3)).backward(torch.ones(4, 2))
    optimizer.step()
    torch.testing.assert_close((before - layer.bias).abs(), torch.full((2,), 1e-3))


def test_schedulers_reach_the_bases():
    layer = ProjLinear(3, 2, bias=False)
    optimizer = ProjectionOptimizer(layer.parameters(), base="sgd")
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    layer(torch.ones(4, 3)).backward(torch.ones(4, 2))
    optimizer.step()
    scheduler.step()
    before, moved = layer.weight.detach().clone(), layer.weight.grad
    optimizer.step()
    torch.testing.assert_close(before - layer.weight, 0.5 * moved)


def test_relaxation_takes_a_share_of_the_step():
    steps = []
    for relaxation in (1.0, 0.25, 1.5):
        torch.manual_seed(0)
        layer = ProjLinear(3, 2)
        optimizer = ProjectionOptimizer(layer.parameters(), lr=0.1, relaxation=relaxation)
        before = layer.weight.detach().clone()
        layer(torch.ones(4, 3)).backward(torch.ones(4, 2))
        optimizer.step()
        steps.append((layer.weight - before).detach())
    torch.testing.assert_close(steps[1], 0.25 * steps[0])
    torch.testing.assert_close(steps[2], 1.5 * steps[0])


def test_constraints_hold_after_every_step():
    model = chain(torch.float32)
    last = model[-1].weight
    optimizer = ProjectionOptimizer(
        model.parameters(),
        constraints=[
            (model[0].weight, lambda w: project_box(w, 0.0, 1.0)),
            ([last], lambda w: project_sparse(w, 2)),
        ],
    )
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    for _ in range(5):
        optimizer.zero_grad()
        ProxCrossEntropyLoss()(model(x), y).backward()
        optimizer.step()
        assert bool(((model[0].weight >= 0) & (model[0].weight <= 1)).all())
        assert bool(((last != 0).sum(1) <= 2).all())
    everywhere = ProjectionOptimizer(
        model.parameters(), constraints=lambda w: project_box(w, -0.125, 0.125)
    )
    everywhere.step()
    assert all(float(p.detach().abs().max()) <= 0.125 for p in model.parameters() if p.ndim > 1)


def test_optimizer_saves_loads_copies_and_pickles():
    model = chain(torch.float32)
    optimizer = ProjectionOptimizer(model.parameters())
    x, y = torch.randn(8, 4), torch.randint(3, (8,))

    def step(model, optimizer):
        optimizer.zero_grad()
        ProxCrossEntropyLoss()(model(x), y).backward()
        optimizer.step()

    step(model, optimizer)
    copied, copied_optimizer = copy.deepcopy((model, optimizer))
    pickled, pickled_optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    loaded = copy.deepcopy(model)
    loaded_optimizer = ProjectionOptimizer(loaded.parameters())
    loaded_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    pairs = [(model, optimizer), (copied, copied_optimizer), (pickled, pickled_optimizer),
             (loaded, loaded_optimizer)]  # fmt: skip
    for pair in pairs:
        step(*pair)
    for twin, _ in pairs[1:]:
        for a, b in zip(model.parameters(), twin.parameters(), strict=True):
            assert torch.equal(a, b)
    with pytest.raises(ValueError, match="same base"):
        ProjectionOptimizer(model.parameters(), base="sgd").load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": "lbfgs"}, "base='lbfgs'"),
        ({"base": torch.optim.SGD}, "lr=None"),
        ({"lr": 0}, "lr=0"),
        ({"lr": -1.0}, "lr=-1.0"),
        ({"relaxation": 2}, "relaxation=2"),
        ({"relaxation": 0}, "relaxation=0"),
        ({"constraints": [1]}, "constraints holds"),
        ({"constraints": [(torch.zeros(1), abs)]}, "isn't in params"),
    ],
)
def test_optimizer_refuses(options, words):
    with pytest.raises(ValueError, match=words):
        ProjectionOptimizer(ProjLinear(2, 2).parameters(), **options)


def test_optimizer_takes_a_callable_and_refuses_late_groups():
    layer = ProjLinear(2, 2)
    optimizer = ProjectionOptimizer(
        layer.parameters(), base=lambda groups, lr: torch.optim.RMSprop(groups, lr), lr=0.1
    )
    assert isinstance(optimizer.bases[0], torch.optim.RMSprop)
    with pytest.raises(NotImplementedError, match="takes all parameters"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    bad = ProjectionOptimizer(layer.parameters(), base="sgd", constraints=lambda w: w[:1])
    with pytest.raises(ValueError, match="expected a tensor of shape"):
        bad.step()


def test_monitor_records_steps_and_lets_go():
    model = chain(torch.float32)
    x = torch.randn(9, 4, requires_grad=True)
    with TargetSignalMonitor(model) as monitor:
        for _ in range(2):
            u = model(x)
            u.backward(torch.ones_like(u))
        with torch.no_grad():
            model(x)
    frame = monitor.to_frame()
    assert frame["layer"].tolist() == ["input", "0", "2", "4"] * 2
    assert frame["step"].tolist() == [1] * 4 + [2] * 4
    assert frame["signal"][3] == pytest.approx(3**0.5)  # three outputs, each displaced by 1
    assert frame["signal"][0] == pytest.approx(float(x.grad.norm()) / 2 / 3, rel=1e-4)
    model(x).sum().backward()
    assert len(monitor.to_frame()) == 8
    assert not model._forward_pre_hooks
    with pytest.raises(ValueError, match="no Linear or Conv2d"):
        TargetSignalMonitor(nn.ReLU())


# project()


class Residual(nn.Module):
    def __init__(self, width, shared=None):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.again = shared or nn.Linear(width, width)
        self.add = ProjAdd()

    def forward(self, x):
        a, b = branch(x, 2)
        return self.add(a, self.again(self.inner(b)))


def image_network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=2),
        nn.LeakyReLU(0.1), nn.AvgPool2d(2), nn.Dropout(0.3), nn.Flatten(), nn.Identity(),
        nn.Linear(4 * 3 * 3, 8), nn.Hardtanh(), nn.Linear(8, 3),
    )  # fmt: skip


def test_a_copy_shares_parameters_and_computes_the_same():
    net = image_network()
    twin = project(net)
    x = torch.randn(2, 1, 16, 16)
    assert torch.equal(net.eval()(x), project(net)(x))
    assert all(a is b for a, b in zip(net.parameters(), twin.parameters(), strict=True))
    assert list(net.state_dict()) == list(twin.state_dict())
    torch.manual_seed(1)
    first = net.train()(x)
    torch.manual_seed(1)
    assert torch.equal(first, twin.train()(x))
    assert type(net[0]) is nn.Conv2d  # the original stays as it was
    with torch.no_grad():
        net[0].weight.zero_()
    assert bool((twin[0].weight == 0).all())
    for other in (copy.deepcopy(twin.eval()), pickle.loads(pickle.dumps(twin))):
        assert torch.equal(other(x), twin(x))
        other.load_state_dict(net.state_dict())
    assert type(project(nn.Linear(2, 2))) is ProjLinear


def test_an_image_network_learns():
    net = project(image_network())
    torch.manual_seed(0)
    y = torch.arange(60) % 3
    x = 0.3 * torch.randn(60, 1, 16, 16)
    for k in range(3):
        x[y == k, 0, 5 * k : 5 * k + 4] += 1
    optimizer = ProjectionOptimizer(net.parameters(), lr=2e-2)
    for _ in range(40):
        optimizer.zero_grad()
        ProxCrossEntropyLoss()(net(x), y).backward()
        optimizer.step()
    assert float((net.eval()(x).argmax(1) == y).float().mean()) > 0.95


def test_residual_blocks_and_shared_layers():
    shared = nn.Linear(4, 4)
    net = nn.Sequential(Residual(4, shared), Residual(4, shared), nn.Linear(4, 2))
    twin = project(net)
    assert twin[0].again is twin[1].again
    assert type(twin[0].again) is ProjLinear
    assert twin[0].again.weight is shared.weight
    x = torch.randn(5, 4)
    assert torch.equal(net(x), twin(x))
    with gradient_mode():
        expected = torch.autograd.grad(twin(x).sum(), shared.weight)[0]
    plain = torch.autograd.grad(net[2](sum_of_blocks(net, x)).sum(), shared.weight)[0]
    torch.testing.assert_close(expected, plain)
    y = twin(x)
    y.backward(torch.ones_like(y))
    both = shared.weight.grad.clone()
    assert bool((both != 0).any())


def sum_of_blocks(net, x):
    """The residual blocks by plain functions."""
    for block in (net[0], net[1]):
        x = x + F.linear(F.relu(block.inner[0](x)), block.again.weight, block.again.bias)
    return x


class OwnLeaf(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


class OwnWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.scale * self.inner(x)


@pytest.mark.parametrize(
    "leaf",
    [nn.BatchNorm1d(2), nn.LayerNorm(2), nn.Softmax(-1), nn.GELU(), OwnLeaf(), OwnWeights(),
     nn.MultiheadAttention(2, 1)],
    ids=lambda leaf: type(leaf).__name__,
)  # fmt: skip
def test_layers_without_a_projection_are_named(leaf):
    net = nn.Sequential(nn.Linear(2, 2), leaf)
    with pytest.raises(NotImplementedError, match=f"1: {type(leaf).__name__}"):
        project(net)
    left = project(net, unsupported="gradient")
    assert type(left[0]) is ProjLinear
    assert type(left[1]) is type(leaf)


def test_a_mixed_network_carries_both():
    net = project(
        nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 2)), unsupported="gradient"
    )
    ProxMSELoss()(net(torch.randn(4, 3)), torch.ones(4, 2)).backward()
    assert all(bool((p.grad != 0).any()) for p in net.parameters())


@pytest.mark.parametrize(
    ("module", "options", "error", "words"),
    [
        (nn.ReLU(inplace=True), {}, ValueError, "in place"),
        (nn.Conv2d(1, 1, 3, padding="same"), {}, NotImplementedError, "padding='same'"),
        (nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect"), {}, NotImplementedError, "reflect"),
        (nn.MaxPool2d(2, ceil_mode=True), {}, NotImplementedError, "ceil_mode"),
        (nn.AvgPool2d(3, padding=1, count_include_pad=False), {}, NotImplementedError, "uncounted"),
        (nn.Linear(1, 1), {"alpha": 0}, ValueError, "alpha=0"),
        (nn.Linear(1, 1), {"norm": "l1"}, ValueError, "norm='l1'"),
        (nn.Linear(1, 1), {"norm": "linf", "alpha": 2.0}, ValueError, "norm='linf'"),
        (nn.Linear(1, 1), {"norm": "linf", "solver": "one_step"}, ValueError, "norm='linf'"),
        (nn.Linear(1, 1), {"alpha": "balanced"}, ValueError, "alpha='balanced'"),
        (nn.Linear(1, 1), {"activation_weight": 0}, ValueError, "activation_weight=0"),
        (nn.Linear(1, 1), {"unsupported": "skip"}, ValueError, "unsupported='skip'"),
        ("net", {}, TypeError, "module is a str"),
    ],
)
def test_project_refuses(module, options, error, words):
    with pytest.raises(error, match=words):
        project(module, **options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ProjReLU(0), "weight=0"),
        (lambda: ProjHardtanh(1, -1), "min_val=1"),
        (lambda: ProjQuantize(1), "levels=1"),
        (lambda: ProjQuantize([0.0, 0.0]), "levels="),
        (lambda: ProjLinear(2, 2, gamma=0), "gamma=0"),
        (lambda: ProjConv2d(1, 1, 3, padding="same"), "padding='same'"),
        (lambda: ProjConv2d(1, 1, 3)(torch.zeros(1, 5, 5)), "input has shape"),
        (lambda: ProjMaxPool2d(2, reduction="max"), "reduction='max'"),
    ],
)
def test_layers_refuse(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_balanced_alpha_is_the_ratio_of_norms():
    torch.manual_seed(0)
    layer = ProjLinear(3, 2, bias=False, alpha="auto", dtype=torch.float64)
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    alpha = float((x**2).sum(1).mean() / (layer.weight**2).sum(1).mean())
    y = layer(x)
    d = torch.randn_like(y)
    y.backward(d)
    expected = project_linear_batch(
        x.detach(), layer.weight.detach(), (y - d).detach(), alpha=alpha
    )
    torch.testing.assert_close(x.detach() - x.grad, expected.H)
    torch.testing.assert_close(layer.weight - layer.weight.grad, expected.W)


def test_frozen_parts_get_nothing():
    layer = ProjLinear(3, 2)
    layer.weight.requires_grad_(False)
    y = layer(torch.ones(4, 3))
    y.backward(torch.ones_like(y))
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
