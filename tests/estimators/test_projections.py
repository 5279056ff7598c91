"""Projections and proximal maps: reference values, and the nearest point found another way."""

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from equipoise.estimators import (
    project_ball,
    project_bilinear,
    project_box,
    project_consensus,
    project_linear_batch,
    project_margin,
    project_max,
    project_piecewise_linear,
    project_relu,
    project_simplex,
    project_sparse,
    project_sum,
    prox_absolute,
    prox_cross_entropy,
    prox_hinge,
    prox_huber,
    prox_squared,
)
from equipoise.estimators.projection.bilinear import multiplier
from equipoise.estimators.projection.kernels import layer_multipliers
from equipoise.estimators.projection.linear import squared_norms
from equipoise.estimators.projection.proximal import (
    cross_entropy_displacement,
    cross_entropy_steps,
)

FEW = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 10**6)
weights = st.sampled_from([0.01, 0.25, 1.0, 4.0, 100.0])


def drawn(seed, *shapes, scale=1.0):
    rng = np.random.default_rng(seed)
    return [scale * rng.normal(size=shape) for shape in shapes]


def cost(h, w, z, h0, w0, z0, alpha=1.0, gamma=1.0):
    h, w, z, h0, w0, z0 = map(np.asarray, (h, w, z, h0, w0, z0))
    return (
        ((h - h0) ** 2).sum(-1)
        + alpha * ((w - w0) ** 2).sum(-1)
        + gamma**2 * np.asarray(z - z0) ** 2
    )


# Reference values


@pytest.mark.parametrize(
    ("h", "w", "z", "alpha", "gamma", "expected"),
    [
        ((1, 2), (3, -1), 4, 1, 1,
         ((1.5613018347, 1.8838193754), (3.2681520252, -0.6764559104), 3.8282510023)),
        ((1, 2), (3, -1), 4, 4, 0.5,
         ((1.5913577956, 1.8246348605), (3.0764724734, -0.9123174303), 3.2311222665)),
        ((0.5,), (0.5,), -1, 1, 1, ((0.5,), (0.0,), 0.0)),
        ((0, 0), (0, 0), 3, 1, 1, ((1, 1), (1, 1), 2)),
        ((0, 0), (0, 0), 0.5, 1, 1, ((0, 0), (0, 0), 0)),
        ((2, 0), (-1, 0), 6, 4, 1, ((4, 0), (1, 0), 4)),
        ((1, 1), (1, 1), -5, 1, 1, ((2, 2), (-1, -1), -4)),
    ],
)  # fmt: skip
def test_bilinear_reference(h, w, z, alpha, gamma, expected):
    found = project_bilinear(np.array(h, float), np.array(w, float), float(z), alpha, gamma)
    for value, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, reference, atol=2e-10)


def test_bilinear_reference_multiplier():
    for alpha, gamma, t in ((1, 1, 0.1717489977), (4, 0.5, 0.1922194334)):
        z = project_bilinear([1.0, 2.0], [3.0, -1.0], 4.0, alpha, gamma).z
        assert gamma**2 * (4 - z) == pytest.approx(t, abs=1e-10)  # z' = z - t / gamma^2


@pytest.mark.parametrize(
    ("h", "w", "z", "expected"),
    [
        ((1, 2), (3, -1), 4, ((1.375, 1.625), (3.375, -0.625), 3.625)),
        ((1, 2), (3, -1), -4, ((0.375, 2.625), (2.375, -1.625), -3.375)),
        ((1, 0.1), (-1, 0.2), 1, ((0.4, 0.7), (-0.4, 0.8), 0.4)),
    ],
)
def test_bilinear_reference_linf(h, w, z, expected):
    found = project_bilinear(np.array(h, float), np.array(w, float), float(z), norm="linf")
    for value, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, reference, atol=1e-10)


def test_relu_reference():
    x = [-1, -1, 1, 2, -0.5, -1]
    z = [0.5, 3, -0.5, 1, 0.5, 2.5]
    new_x, new_z = project_relu(x, z)
    np.testing.assert_allclose(new_x, [-1, 1, 0.25, 1.5, -0.5, 0.75], atol=1e-12)
    np.testing.assert_allclose(new_z, [0, 1, 0.25, 1.5, 0, 0.75], atol=1e-12)
    switch = 1 + np.sqrt(2)
    assert project_relu(-1.0, switch - 1e-9)[1] == 0
    assert project_relu(-1.0, switch + 1e-9)[1] > 0.5


def test_cross_entropy_reference():
    np.testing.assert_allclose(
        prox_cross_entropy([0.0, 0, 0], 0), [0.48966419, -0.2448321, -0.2448321], atol=1e-8
    )
    for lam, expected in (
        (1.0, [1.36015168, -0.14240492, 0.28225324]),
        (0.1, [0.24240608, 1.6703835, -0.41278959]),
    ):
        np.testing.assert_allclose(prox_cross_entropy([2, -1, 0.5], 1, lam), expected, atol=1e-8)


def test_margin_and_max_reference():
    np.testing.assert_allclose(
        project_margin([[1, 0.5, 0, 2, -1]], [2])[0],
        [2 / 3, 0.5, 5 / 3, 2 / 3, -1],
        atol=1e-8,
    )
    for v, a, z in ((5, (1, 4, 2), 4), (1, (1, 2, 2), 2), (0, (1, 5 / 3, 5 / 3), 5 / 3)):
        found = project_max([1.0, 3, 2], float(v))
        np.testing.assert_allclose(found[0], a, atol=1e-8)
        assert found[1] == pytest.approx(z)


H0 = np.array([[1.0, 2.0], [0.0, -1.0]])
W0 = np.array([[1.0, 0.0], [0.5, -0.5]])
Z0 = np.array([[2.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("alpha", "gamma", "dH", "dW"),
    [
        (1, 1, [[-0.0980780327, -0.0040826427], [-0.2060408205, 0.1079834716]],
         [[-0.1229826577, 0.0275550850], [-0.0483332669, 0.0211578926]]),
        (4, 1, [[-0.2041819055, 0.0178075998], [-0.2885609839, 0.0999937920]],
         [[-0.0691975389, -0.0164330625], [-0.0299070647, -0.0060320237]]),
        (1, 0.5, [[-0.0678283376, 0.0011339233], [-0.1063293790, 0.0399566278]],
         [[-0.0669168130, -0.0129387923], [-0.0291952898, -0.0058495647]]),
    ],
)  # fmt: skip
def test_layer_reference(alpha, gamma, dH, dW):
    found = project_linear_batch(H0, W0, Z0, alpha=alpha, gamma=gamma)
    np.testing.assert_allclose(H0 - found.H, dH, atol=2e-10)
    np.testing.assert_allclose(W0 - found.W, dW, atol=2e-10)


# The bilinear projection


@FEW
@given(seeds, st.integers(1, 6), weights, weights, st.sampled_from([1e-6, 0.1, 1.0, 30.0, 1e4]))
def test_bilinear_is_feasible_idempotent_and_nearest(seed, n, alpha, gamma, size):
    h, w, z = drawn(seed, n, n, ())
    z = float(w @ h + size * z)
    new = project_bilinear(h, w, z, alpha, gamma)
    scale = max(1.0, abs(z), float(h @ h), float(w @ w))
    assert abs(new.w @ new.h - new.z) < 1e-10 * scale
    again = project_bilinear(*new, alpha, gamma)
    for first, second in zip(new, again, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-9 * scale)
    best = cost(*new, h, w, z, alpha, gamma)
    # The point of the forward pass is feasible, so the optimum costs no more.
    assert best <= gamma**2 * (z - w @ h) ** 2 * (1 + 1e-9)
    rng = np.random.default_rng(seed + 1)
    for spread in (1e-3, 0.1, 1.0, 10.0):
        H, W = (v + spread * rng.normal(size=(50, n)) for v in (new.h, new.w))
        others = cost(H, W, (H * W).sum(1), h, w, z, alpha, gamma)
        assert (others >= best * (1 - 1e-9) - 1e-12).all()


@pytest.mark.parametrize("seed", range(8))
def test_bilinear_against_a_general_optimiser(seed):
    """From twelve starts, without the constraint: z is w.h."""
    n = 1 + seed % 3
    h, w, z = drawn(seed, n, n, ())
    z, alpha, gamma = 5 * float(z), (0.3, 1.0, 5.0)[seed % 3], (0.5, 2.0)[seed % 2]
    best = cost(*project_bilinear(h, w, z, alpha, gamma), h, w, z, alpha, gamma)

    def objective(v):
        return cost(v[:n], v[n:], v[:n] @ v[n:], h, w, z, alpha, gamma)

    rng = np.random.default_rng(seed)
    starts = rng.normal(size=(12, 2 * n)) * 2
    found = min(minimize(objective, s, method="BFGS").fun for s in starts)
    assert best <= found * (1 + 1e-8) + 1e-12
    assert found <= best * (1 + 1e-5) + 1e-9  # the optimiser does reach it


@pytest.mark.parametrize("seed", range(12))
def test_degenerate_bilinear_against_a_general_optimiser(seed):
    """h = -sign sqrt(alpha) w, with targets on both sides of where the root vanishes."""
    n, sign = 1 + seed % 3, (-1.0, 1.0)[seed % 2]
    (w,) = drawn(seed, n)
    alpha, gamma = (1.0, 4.0)[seed % 2], (1.0, 0.7)[seed % 3 == 0]
    h = -sign * np.sqrt(alpha) * w
    z = sign * np.array([0.2, 2.0, 20.0])[seed % 3]
    new = project_bilinear(h, w, z, alpha, gamma)
    assert abs(new.w @ new.h - new.z) < 1e-9 * max(1, abs(z))

    def objective(v):
        return cost(v[:n], v[n:], v[:n] @ v[n:], h, w, z, alpha, gamma)

    starts = np.random.default_rng(seed).normal(size=(20, 2 * n)) * 3
    found = min(minimize(objective, s, method="BFGS").fun for s in starts)
    assert cost(*new, h, w, z, alpha, gamma) == pytest.approx(found, rel=1e-6, abs=1e-9)


def test_degenerate_case_is_continuous():
    """Close to h = -w both formulas give almost the same cost."""
    h = np.array([1.0, 1.0])
    exact = cost(*project_bilinear(h, h, -5.0), h, h, -5.0)
    close = h + np.array([1e-5, 0.0])
    near = cost(*project_bilinear(h, close, -5.0), h, close, -5.0)
    assert near == pytest.approx(exact, rel=1e-3)


@FEW
@given(seeds, st.integers(2, 6))
def test_bilinear_symmetries(seed, n):
    h, w, z = drawn(seed, n, n, ())
    z = 3 * float(z)
    new = project_bilinear(h, w, z)
    swapped = project_bilinear(w, h, z)
    np.testing.assert_allclose(swapped.h, new.w, atol=1e-10)
    np.testing.assert_allclose(swapped.w, new.h, atol=1e-10)
    negated = project_bilinear(h, -w, -z)
    np.testing.assert_allclose(negated.w, -new.w, atol=1e-10)
    np.testing.assert_allclose(negated.h, new.h, atol=1e-10)
    R = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    rotated = project_bilinear(R @ h, R @ w, z)
    np.testing.assert_allclose(rotated.h, R @ new.h, atol=1e-9)
    np.testing.assert_allclose(rotated.w, R @ new.w, atol=1e-9)


@FEW
@given(seeds, st.integers(1, 5))
def test_feasible_points_stay(seed, n):
    h, w = drawn(seed, n, n)
    for norm in ("l2", "linf"):
        new = project_bilinear(h, w, float(w @ h), norm=norm)
        np.testing.assert_allclose(new.h, h, atol=1e-12)
        np.testing.assert_allclose(new.w, w, atol=1e-12)


@FEW
@given(seeds, st.integers(1, 4), st.sampled_from([0.5, 1.0, 3.0]))
def test_linf_radius_is_the_least(seed, n, gamma):
    h, w, z = drawn(seed, n, n, ())
    z = 4 * float(z)
    new = project_bilinear(h, w, z, gamma=gamma, norm="linf")
    assert abs(new.w @ new.h - new.z) < 1e-10 * max(1, abs(z))
    steps = [*np.abs(new.h - h), *np.abs(new.w - w), gamma**2 * abs(new.z - z)]
    eps = max(steps)
    assert max(steps) == pytest.approx(min(steps), abs=1e-9)  # everything moves as far as it may
    # With a smaller radius no corner of the box reaches the target: the product of a pair is
    # extreme at a corner.
    small = eps * (1 - 1e-6)
    if eps < 1e-9:
        return
    corners = [((h + a * small) * (w + b * small)) for a in (-1, 1) for b in (-1, 1)]
    high, low = np.max(corners, 0).sum(), np.min(corners, 0).sum()
    reach = small / gamma**2
    assert not low - reach <= z <= high + reach


@FEW
@given(seeds, st.sampled_from([1e-8, 1e-3, 1.0, 1e3]), st.sampled_from([1.0, 1e-3, 1e-6]))
def test_float32_multipliers_keep_their_digits(seed, size, near):
    """Far and near, also with h almost parallel to w, against float64."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(200, 3))
    h = -w + near * rng.normal(size=w.shape)
    h, w = (torch.tensor(v, dtype=torch.float32) for v in (h, w))
    h64, w64 = h.double(), w.double()
    p, h2, w2 = (h64 * w64).sum(1), (h64**2).sum(1), (w64**2).sum(1)
    d = torch.tensor(size * rng.normal(size=200), dtype=torch.float32)
    # The inputs of both are the float32 ones: only the equation is solved in two precisions.
    p32, h32, w32 = p.float(), h2.float(), w2.float()
    one = multiplier(p32, d, h32, w32, 1.0, 1.0)
    two = multiplier(p32.double(), d.double(), h32.double(), w32.double(), 1.0, 1.0)
    regular = (h32.double() + w32.double() - 2 * p32.double().abs()) > 1e-4 * (h32 + w32).double()
    for a, b in zip((one.mix, one.u), (two.mix, two.u), strict=True):
        np.testing.assert_allclose(a[regular], b[regular], rtol=2e-3 if near < 1 else 2e-5)


def test_tiny_displacements_are_not_lost():
    """A displacement of 1e-20 reaches the inputs in float32."""
    h, w = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0])
    m = multiplier((h * w).sum(), torch.tensor(1e-20), (h**2).sum(), (w**2).sum(), 1.0, 1.0)
    # t = -d / (|w|^2 + |h|^2 + 1)
    assert float(m.mix) == pytest.approx(-1e-20 / 16, rel=1e-5)


# The layer


@FEW
@given(
    seeds,
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["l2", "linf"]),
    st.sampled_from(["mean", "sum"]),
    weights,
    st.sampled_from([np.float32, np.float64]),
)
def test_layer_is_the_loop_over_pairs(seed, B, n, N, has_bias, norm, reduction, alpha, dtype):
    H, W, Z, b = drawn(seed, (B, n), (N, n), (B, N), N)
    alpha = 1.0 if norm == "linf" else alpha
    omega = np.random.default_rng(seed).integers(0, 3, size=B).astype(float)
    assume(omega.sum() > 0)
    bias = b if has_bias else None
    given_arrays = [v.astype(dtype) for v in (H, W, Z)]
    found = project_linear_batch(
        *given_arrays, None if bias is None else bias.astype(dtype), alpha, 0.8,
        reduction=reduction, norm=norm, sample_weight=omega.astype(dtype),
    )  # fmt: skip
    assert found.H.dtype == dtype
    extended = np.hstack([H, np.ones((B, 1))]) if has_bias else H
    weights_ = np.hstack([W, b[:, None]]) if has_bias else W
    new = project_bilinear(extended[:, None], weights_[None], Z, alpha, 0.8, norm=norm)
    dH = (new.h - extended[:, None]).sum(1) / (N if reduction == "mean" else 1)
    W_bar = np.einsum("b,bjk->jk", omega, new.w) / omega.sum()
    # float32: its rounding, of numbers of the size of the pairs' displacements.
    size = max(1.0, np.abs(new.h).max(), np.abs(new.w).max(), np.abs(new.z).max())
    tolerance = {"atol": 1e-10 if dtype == np.float64 else 1e-5 * size * N, "rtol": 0}
    np.testing.assert_allclose(found.H - given_arrays[0], dH[:, :n], **tolerance)
    np.testing.assert_allclose(found.W, W_bar[:, :n], **tolerance)
    np.testing.assert_allclose(found.Z, new.z, **tolerance)
    if has_bias:
        np.testing.assert_allclose(found.bias, W_bar[:, n], **tolerance)


@pytest.mark.parametrize("solver", ["exact", "one_step"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernel_is_its_reference(solver, dtype):
    """The numba kernel against `bilinear.multiplier`, with rows that have no root."""
    torch.manual_seed(0)
    H, W = torch.randn(7, 3, dtype=dtype), torch.randn(5, 3, dtype=dtype)
    H[0], W[0], W[1] = 0, 0, -H[1]
    d = 20 * torch.randn(7, 5, dtype=dtype)
    omega = torch.rand(7, dtype=dtype)
    P, (h2, w2) = H @ W.T, squared_norms(H, W, None)
    m = multiplier(P, d, h2[:, None], w2[None], 2.0, 0.7, solver)
    expected = (
        m.mix, m.grow_h.sum(1), omega @ m.grow_w, m.spread.sum(1),
        omega @ (m.sign * m.spread) / 2**0.5,
    )  # fmt: skip
    mix = torch.empty_like(P)
    sums = [torch.zeros_like(v) for v in (h2, w2, h2, w2)]
    layer_multipliers(
        *(v.numpy() for v in (P, d, h2, w2, omega)), 2.0, 0.7, solver == "one_step",
        *(v.numpy() for v in (mix, *sums)),
    )  # fmt: skip
    if solver == "exact":
        assert bool((expected[3] > 0).any()), "no degenerate pair: the test doesn't reach it"
    for found, reference in zip((mix, *sums), expected, strict=True):
        np.testing.assert_allclose(
            found, reference, rtol=2e-4 if dtype == torch.float32 else 1e-10, atol=1e-6
        )


@FEW
@given(seeds, st.integers(1, 6), st.integers(1, 6), st.sampled_from([0.3, 1.0, 2.0]), weights,
       st.sampled_from(["exact", "one_step"]))  # fmt: skip
def test_signal_bound(seed, n, N, gamma, alpha, solver):
    """|dH_b| <= gamma |d_b| / sqrt(N), for both solvers."""
    H, W, d = drawn(seed, (4, n), (N, n), (4, N))
    found = project_linear_batch(H, W, H @ W.T - d, None, alpha, gamma, solver=solver)
    moved = np.linalg.norm(found.H - H, axis=1)
    assert (moved <= gamma * np.linalg.norm(d, axis=1) / np.sqrt(N) * (1 + 1e-5)).all()


def test_sample_order_and_repetition_change_nothing():
    H, W, Z = drawn(0, (6, 4), (3, 4), (6, 3))
    plain = project_linear_batch(H, W, Z).W
    order = np.random.default_rng(0).permutation(6)
    np.testing.assert_allclose(project_linear_batch(H[order], W, Z[order]).W, plain, atol=1e-12)
    twice = project_linear_batch(np.vstack([H, H]), W, np.vstack([Z, Z])).W
    np.testing.assert_allclose(twice, plain, atol=1e-12)


# Graphs


def grid_cost(function, x, z, g, low=-12.0, high=12.0):
    """The least cost over a fine grid of points of the graph, and the error of the grid."""
    at = np.linspace(low, high, 48_001)
    costs = (at - x) ** 2 + g * (function(at) - z) ** 2
    return costs.min()


PIECES = {
    "relu": ([0.0], [0.0, 1.0], [0.0, 0.0]),
    "leaky": ([0.0], [0.1, 1.0], [0.0, 0.0]),
    "hardtanh": ([-1.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 1.0]),
    "abs": ([0.0], [-1.0, 1.0], [0.0, 0.0]),
    "sign": ([0.0], [0.0, 0.0], [-1.0, 1.0]),
    "three levels": ([-0.5, 0.5], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]),
}


def evaluate(pieces, x):
    knots, slopes, intercepts = map(np.array, pieces)
    k = np.searchsorted(knots, x, side="right")
    return slopes[k] * x + intercepts[k]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PIECES)), st.floats(-4, 4), st.floats(-4, 4), weights)
def test_piecewise_projection_is_nearest(name, x, z, g):
    pieces = PIECES[name]
    new_x, new_z = (float(v) for v in project_piecewise_linear(x, z, *pieces, weight=g))
    # On the graph; at a knot either piece's end belongs to it.
    heights = [
        m * new_x + c
        for m, c, low, high in zip(
            pieces[1], pieces[2], [-np.inf, *pieces[0]], [*pieces[0], np.inf], strict=True
        )
        if low - 1e-12 <= new_x <= high + 1e-12
    ]
    assert min(abs(new_z - v) for v in heights) < 1e-10
    best = (new_x - x) ** 2 + g * (new_z - z) ** 2
    least = grid_cost(lambda at: evaluate(pieces, at), x, z, g)
    assert best <= least + 1e-9
    assert least <= best + 1e-2 * (1 + g)  # spacing 5e-4: the grid is nearly as near
    if name == "relu":
        other = [float(v) for v in project_relu(x, z, weight=g)]
        assert (other[0] - x) ** 2 + g * (other[1] - z) ** 2 == pytest.approx(best, abs=1e-9)
        assert other[1] == max(other[0], 0)


@FEW
@given(seeds, st.integers(1, 6), weights, st.floats(-3, 3))
def test_max_projection(seed, n, g, v):
    (a,) = drawn(seed, n)
    new, z = project_max(a, v, weight=g)
    assert z == pytest.approx(new.max(), abs=1e-12)
    best = ((new - a) ** 2).sum() + g * (z - v) ** 2

    def least(s):  # all entries above s fall to s, or the largest rises to s
        moved = np.minimum(a, s)
        if s > a.max():
            moved[a.argmax()] = s
        return ((moved - a) ** 2).sum() + g * (s - v) ** 2

    grid = np.linspace(-5, 5, 20_001)
    assert best <= min(least(s) for s in grid[::20]) + 1e-9
    order = np.random.default_rng(seed).permutation(n)
    np.testing.assert_allclose(project_max(a[order], v, weight=g)[0], new[order], atol=1e-12)
    both = project_max(np.stack([a, a[order]], 1), [v, v], dim=0, weight=g)
    np.testing.assert_allclose(both[0][:, 0], new, atol=1e-12)


@FEW
@given(seeds, st.integers(1, 6), weights, st.booleans())
def test_sum_projection_against_least_squares(seed, n, g, mean):
    x, z = drawn(seed, n, ())
    new, value = project_sum(x, float(z), weight=g, mean=mean)
    row = np.full(n, 1 / n if mean else 1.0)
    assert value == pytest.approx(row @ new, abs=1e-12)
    A = np.vstack([np.eye(n), np.sqrt(g) * row])
    expected = np.linalg.lstsq(A, np.append(x, np.sqrt(g) * z), rcond=None)[0]
    np.testing.assert_allclose(new, expected, atol=1e-10)


def test_consensus_is_the_mean():
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(project_consensus(x, 0), np.tile(x.mean(0), (3, 1)))
    np.testing.assert_allclose(project_consensus(x, 1), np.tile(x.mean(1)[:, None], (1, 4)))
    np.testing.assert_allclose(project_consensus(x, 0, [1, 0, 3])[0], (x[0] + 3 * x[2]) / 4)


# Sets


def nearest_feasible(x, inside, seed, tries=4000):
    """The least distance from x to random feasible points near its projection."""
    rng = np.random.default_rng(seed)
    candidates = inside(rng, tries)
    return np.linalg.norm(candidates - x, axis=1).min()


@FEW
@given(seeds, st.integers(1, 6), st.sampled_from([0.3, 1.0, 4.0]))
def test_simplex_and_ball_projections(seed, n, radius):
    (x,) = drawn(seed, n, scale=2.0)
    on_simplex = project_simplex(x, radius)
    assert on_simplex.sum() == pytest.approx(radius)
    assert (on_simplex >= 0).all()
    rng = np.random.default_rng(seed)
    points = radius * rng.dirichlet(np.ones(n), 2000)
    # Of a convex set the projection is the point that sees no other one in the direction of x.
    assert ((points - on_simplex) @ (x - on_simplex) <= 1e-9).all()
    for norm in (1, 2, np.inf):
        new = project_ball(x, radius, norm)
        assert np.linalg.norm(new, norm) <= radius * (1 + 1e-12)
        directions = rng.normal(size=(2000, n))
        points = radius * directions / np.linalg.norm(directions, norm, axis=1)[:, None]
        assert ((points - new) @ (x - new) <= 1e-9).all()
        np.testing.assert_allclose(project_ball(new, radius, norm), new, atol=1e-12)


@FEW
@given(seeds, st.integers(1, 6), st.integers(0, 7))
def test_sparse_projection(seed, n, k):
    from itertools import combinations

    (x,) = drawn(seed, n)
    new = project_sparse(x, k)
    assert np.count_nonzero(new) <= k
    least = min(
        ((np.where(np.isin(np.arange(n), kept), x, 0) - x) ** 2).sum()
        for kept in combinations(range(n), min(k, n))
    )
    assert ((new - x) ** 2).sum() == pytest.approx(least)
    everything = project_sparse(np.stack([x, 2 * x]), k, dim=None)
    assert np.count_nonzero(everything) <= k


def test_box_projection_and_dimensions():
    np.testing.assert_array_equal(project_box([-2.0, 0.5, 3.0], -1, np.inf), [-1, 0.5, 3])
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(project_simplex(x, dim=0).sum(0), 1)
    assert np.linalg.norm(project_ball(x, dim=None)) == pytest.approx(1)


@FEW
@given(seeds, st.integers(2, 6), st.sampled_from([0.1, 1.0, 3.0]),
       st.sampled_from(["multiclass", "one_vs_rest"]))  # fmt: skip
def test_margin_projection(seed, K, delta, kind):
    (u,) = drawn(seed, (1, K))
    y = seed % K
    new = project_margin(u, [y], delta, kind)[0]
    others = np.delete(new, y)
    if kind == "multiclass":
        assert (new[y] - others >= delta - 1e-12).all()
    else:
        assert new[y] >= delta - 1e-12
        assert (others <= 0).all()
    rng = np.random.default_rng(seed)
    points = new + rng.normal(size=(2000, K)) * rng.choice([0.01, 0.3, 2.0], size=(2000, 1))
    gap = points[:, [y]] - np.delete(points, y, axis=1)
    if kind == "multiclass":
        points = points[(gap >= delta).all(1)]
    else:
        points = points[(points[:, y] >= delta) & (np.delete(points, y, axis=1) <= 0).all(1)]
    assert ((points - new) @ (u[0] - new) <= 1e-9).all()
    np.testing.assert_allclose(project_margin(new[None], [y], delta, kind)[0], new, atol=1e-12)


# Proximal maps


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 20), st.sampled_from([1e-3, 0.01, 0.1, 1.0, 10.0]),
       st.sampled_from([0.1, 1.0, 30.0, 1000.0]),
       st.sampled_from([np.float32, np.float64]))  # fmt: skip
@example(0, 2, 1e-3, 1000.0, np.float64)
def test_cross_entropy_prox(seed, K, lam, scale, dtype):
    (u0,) = drawn(seed, K, scale=scale)
    u0, y = u0.astype(dtype), seed % K
    u = prox_cross_entropy(u0, y, lam)
    assert u.dtype == dtype
    fine = dtype == np.float64
    size = max(1.0, np.abs(u0).max(), 1 / lam)
    residual = softmax(u.astype(float)) - np.eye(K)[y] + lam * (u.astype(float) - u0)
    assert np.abs(residual).max() < (1e-6 if fine else 3e-6 * max(1, size * (1 + lam)))
    assert abs(float(u.sum()) - float(u0.sum())) < (1e-9 if fine else 1e-5) * size * K
    rounding = 1e-14 if fine else 4e-7  # of u itself, which is as large as u0
    assert np.linalg.norm(u.astype(float) - u0) <= np.sqrt(2) / lam * (1 + 1e-5) + rounding * size
    loss = [-log_softmax(v.astype(float))[y] for v in (u, u0)]
    assert loss[0] <= loss[1] + (1e-9 if fine else 1e-4 * size)
    shifted = prox_cross_entropy(u0 + dtype(3), y, lam)
    np.testing.assert_allclose(shifted, u + dtype(3), atol=(1e-9 if fine else 2e-6) * size * 10)


@FEW
@given(seeds, st.sampled_from([1e-3, 1.0, 10.0]), st.sampled_from([1.0, 300.0]))
def test_cross_entropy_kernel_is_its_reference(seed, lam, scale):
    """The numba loop against the torch steps that accelerators take."""
    (u0,) = drawn(seed, (6, 5), scale=scale)
    u0, y = torch.as_tensor(u0), torch.arange(6) % 5
    fast, slow = cross_entropy_displacement(u0, y, lam), cross_entropy_steps(u0, y, lam)
    np.testing.assert_allclose(fast, slow, atol=1e-10 * scale / lam, rtol=1e-8)


def test_cross_entropy_prox_far_out():
    u0 = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(prox_cross_entropy(u0, 1, 1e9), u0, atol=2e-9)
    small = prox_cross_entropy(np.array([40.0, 0.0]), 0)  # p_y is 1 to rounding
    assert 0 < small[0] - 40 < 1e-16 or small[0] == 40


CONVEX = {
    "cross_entropy": (lambda u, y: -log_softmax(u)[y], prox_cross_entropy, True),
    "squared": (lambda u, y: ((u - y) ** 2).sum() / 2, prox_squared, False),
    "absolute": (lambda u, y: np.abs(u - y).sum(), prox_absolute, False),
    "huber": (
        lambda u, y: np.where(np.abs(u - y) <= 1, (u - y) ** 2 / 2, np.abs(u - y) - 0.5).sum(),
        prox_huber,
        False,
    ),
    "hinge": (
        lambda u, y: np.maximum(0, 1 - np.where(np.arange(len(u)) == y, 1, -1) * u).sum(),
        prox_hinge,
        True,
    ),
}


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(sorted(CONVEX)), st.sampled_from([0.1, 1.0, 10.0]))
def test_displacement_is_the_gradient_of_the_envelope(seed, name, lam):
    loss, prox, labels = CONVEX[name]
    (u0,), (target,) = drawn(seed, 4), drawn(seed + 1, 4)
    y = seed % 4 if labels else target

    def envelope(at):
        u = prox(at, y, lam)
        return loss(u, y) + lam / 2 * ((u - at) ** 2).sum()

    gradient = np.array([(envelope(u0 + h) - envelope(u0 - h)) / 2e-5 for h in 1e-5 * np.eye(4)])
    np.testing.assert_allclose(lam * (u0 - prox(u0, y, lam)), gradient, atol=1e-4)


# What is refused, and what is given back


def test_tensors_come_back_as_tensors():
    h, w = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.float16)
    new = project_bilinear(h, w, torch.tensor(3.0))
    assert new.h.dtype == torch.float16
    assert float((new.h.float() * new.w.float()).sum() - new.z) == pytest.approx(0, abs=5e-3)
    assert isinstance(project_relu(torch.zeros(2), 1.0)[0], torch.Tensor)
    assert project_relu(np.zeros(2, np.float32), np.ones(2, np.float32))[0].dtype == np.float32


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: project_bilinear([1.0], [1.0], 0.0, alpha=0), "alpha=0"),
        (lambda: project_bilinear([1.0], [1.0], 0.0, gamma=-1), "gamma=-1"),
        (lambda: project_bilinear([1.0], [1.0], 0.0, gamma=np.nan), "gamma=nan"),
        (lambda: project_bilinear([1.0], [1.0], 0.0, norm="l3"), "norm='l3'"),
        (lambda: project_bilinear([1.0], [1.0], 0.0, solver="fast"), "solver='fast'"),
        (lambda: project_bilinear([1.0], [1.0], 0.0, alpha=2, norm="linf"), "alpha=2"),
        (lambda: project_bilinear([np.nan], [1.0], 0.0), "h holds NaN"),
        (lambda: project_bilinear([1.0], [1.0], np.inf), "z holds NaN or infinity"),
        (lambda: project_linear_batch(H0, W0, Z0, reduction="max"), "reduction='max'"),
        (lambda: project_linear_batch(H0, W0, Z0[:1]), "shape"),
        (lambda: project_linear_batch(H0, W0, Z0, bias=[1.0]), "bias has shape"),
        (lambda: project_linear_batch(H0, W0, Z0, sample_weight=[1, -1]), "sample_weight"),
        (lambda: project_piecewise_linear(0.0, 0.0, [1.0, 0.0], [0] * 3, [0] * 3), "knots"),
        (lambda: project_piecewise_linear(0.0, 0.0, [0.0], [0.0], [0.0]), "slopes"),
        (lambda: project_max([1.0, 2.0], [1.0, 2.0]), "z has shape"),
        (lambda: project_sum([1.0, 2.0], [1.0, 2.0]), "z has shape"),
        (lambda: project_relu(0.0, 0.0, weight=0), "weight=0"),
        (lambda: project_consensus([1.0, 2.0], weights=[0, 0]), "weights"),
        (lambda: project_box([0.0], 1, 0), "low=1"),
        (lambda: project_simplex([0.0], total=0), "total=0"),
        (lambda: project_ball([0.0], radius=-1), "radius=-1"),
        (lambda: project_ball([0.0], norm=3), "norm=3"),
        (lambda: project_sparse([0.0], k=-1), "k=-1"),
        (lambda: project_margin([[0.0, 1.0]], [2]), "labels from 2 to 2"),
        (lambda: project_margin([[0.0, 1.0]], [0], delta=0), "delta=0"),
        (lambda: project_margin([[0.0, 1.0]], [0], kind="both"), "kind='both'"),
        (lambda: project_margin([0.0, 1.0], 0), "u has shape"),
        (lambda: prox_cross_entropy([0.0, 1.0], 0, lam=0), "lam=0"),
        (lambda: prox_cross_entropy([0.0, 1.0], [0, 1]), "y has shape"),
        (lambda: prox_squared([0.0], [1.0], lam=-2), "lam=-2"),
        (lambda: prox_huber([0.0], [1.0], delta=0), "delta=0"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        call()


def test_wrong_types_are_named():
    with pytest.raises(TypeError, match="y has dtype"):
        prox_cross_entropy([0.0, 1.0], 0.0)
    with pytest.raises(TypeError, match="h must be an array of numbers"):
        project_bilinear(["a"], [1.0], 0.0)
    with pytest.raises(TypeError, match="h must hold real numbers"):
        project_bilinear([1j], [1.0], 0.0)
