"""Many offsets at once, and the implicit layer: gradients, batches, training, errors."""

import copy
import pickle

import numpy as np
import pytest
import torch

from equipoise.datasets import make_lemm, make_pi_cycle_lemm, make_vi_divergent_lemm
from equipoise.games import LEMM, LEMMLayer, LEMMNotUniqueError, solve_lemm, solve_lemm_batch


def nondegenerate(problem, x):
    """Smallest lead of the best action over the next."""
    leads = []
    for i in range(problem.n):
        rows = -np.sort(-problem.violations(x)[problem.indptr[i] : problem.indptr[i + 1]])
        leads.append(rows[0] - rows[1] if len(rows) > 1 else np.inf)
    return min(leads)


@pytest.mark.parametrize("kind", ["ssg", "absolutely_halting", "halting", "w"])
def test_gradients_against_finite_differences(kind):
    problem = make_lemm(6, 2, kind=kind, random_state=0).problem
    layer = LEMMLayer(problem, random_state=0)
    rng = np.random.RandomState(1)
    b = problem.b + 0.01 * rng.normal(size=(2, problem.m))
    for row in b:
        moved = LEMM(problem.A, row, problem.indptr, problem.op)
        assert nondegenerate(problem=moved, x=solve_lemm(moved, random_state=0).x) > 1e-3

    def solve(coefficients, offsets):
        parts = {"coefficients": coefficients}
        return torch.func.functional_call(layer, parts, (offsets,))

    inputs = (
        layer.coefficients.detach().clone().requires_grad_(),
        torch.tensor(b).requires_grad_(),
    )
    assert torch.autograd.gradcheck(solve, inputs, eps=1e-6, atol=1e-6)


def test_values_and_own_offsets():
    made = make_pi_cycle_lemm()
    layer = LEMMLayer(made.problem)
    x = layer()
    np.testing.assert_allclose(x.detach().numpy(), made.value)
    np.testing.assert_allclose(layer(layer.offsets[None]).detach().numpy(), made.value[None])
    x.sum().backward()
    # By hand: policy (1, 1, 0), x3 = 1 - 0.8 x2, x1 = 3 - 0.8 x3, x2 = 3.
    np.testing.assert_allclose(layer.offsets.grad.numpy(), [0, 1, 0, 1 - 0.8 + 0.64, 0.2, 0])
    divergent = make_vi_divergent_lemm()
    np.testing.assert_allclose(LEMMLayer(divergent.problem)().detach(), divergent.value, atol=1e-9)


def test_batches_share_policies_and_single_precision_works():
    problem = make_lemm(40, 3, kind="absolutely_halting", random_state=0).problem
    layer = LEMMLayer(problem)
    b = torch.tensor(problem.b + np.random.RandomState(0).normal(size=(8, problem.m)))
    x = layer(b)
    x.pow(2).sum().backward()
    whole = layer.coefficients.grad.clone()
    layer.zero_grad()
    for k in range(8):
        layer(b[k]).pow(2).sum().backward()
    torch.testing.assert_close(layer.coefficients.grad, whole)
    single = layer(b.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), x, atol=1e-5, rtol=1e-5)
    assert layer(b[:0]).shape == (0, 40)


def test_large_systems_use_sparse_elimination():
    problem = make_lemm(900, 2, kind="absolutely_halting", random_state=0).problem
    layer = LEMMLayer(problem)
    g = np.random.RandomState(0).normal(size=900)
    (layer() * torch.tensor(g)).sum().backward()
    policy = solve_lemm(problem).policy
    Q = problem.policy_matrix(policy)[0].toarray()
    expected = np.linalg.solve((np.eye(900) - Q).T, g)
    np.testing.assert_allclose(layer.offsets.grad[problem.indptr[:-1] + policy], expected)


def test_training_recovers_a_system():
    """A teacher with a max and a min node; the student starts elsewhere with the same pattern."""
    teacher = LEMM.from_equations(
        ["x = max(0.4*y, 0.3*z - 0.2)", "y = min(0.5*x, 0.6*z)", "z = 0.3*x - 0.4*y"]
    )
    torch.manual_seed(0)
    b = torch.randn(60, teacher.m, dtype=torch.float64)
    target = LEMMLayer(teacher)(b).detach()
    layer = LEMMLayer(teacher, learn_offsets=False)
    with torch.no_grad():
        layer.coefficients.copy_(torch.full_like(layer.coefficients, 0.1))
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(120):
        optimiser.zero_grad()
        loss = (layer(b) - target).pow(2).mean()
        loss.backward()
        optimiser.step()
        layer.contract(0.9)
    assert loss.item() < 1e-6
    np.testing.assert_allclose(layer.coefficients.detach(), teacher.A.data, atol=5e-3)
    assert layer.offsets.grad is None


def test_contract_shrinks_only_long_rows():
    layer = LEMMLayer(LEMM.from_equations(["x = max(3*x - 1*y, 0.2*y)", "y = 0.5*x + 0.4*y"]))
    layer.contract(0.8)
    expected = [0.6, -0.2, 0.2, 0.5 * 8 / 9, 0.4 * 8 / 9]
    np.testing.assert_allclose(layer.coefficients.detach(), expected)
    with pytest.raises(ValueError, match=r"factor=1\.0"):
        layer.contract(1.0)


def test_copies_and_errors():
    problem = make_pi_cycle_lemm().problem
    layer = LEMMLayer(problem)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(again(), layer())
    with pytest.raises(TypeError, match="must be a LEMM"):
        LEMMLayer(np.eye(2))
    with pytest.raises(ValueError, match=r"shape \(n_samples, 6\), got \(2, 5\)"):
        layer(torch.zeros(2, 5))
    with pytest.raises(ValueError, match="finite"):
        layer(torch.full((6,), float("nan"), dtype=torch.float64))
    twisted = LEMMLayer(LEMM.from_equations(["x1 = max(2*x2 - 1, 0)", "x2 = x1"]))
    with pytest.raises(LEMMNotUniqueError):
        twisted()
    assert list(layer.state_dict()) == ["coefficients", "offsets"]


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("mdp", 1),
        ("mdp", 700),
        ("ssg", 9),
        ("absolutely_halting", 9),
        ("absolutely_halting", 700),
        ("halting", 8),
        ("w", 8),
    ],
)
def test_batches_agree_with_single_solves(kind, n):
    problem = make_lemm(n, 3, kind=kind, random_state=0).problem
    rng = np.random.RandomState(0)
    B = problem.b + rng.normal(size=(4, problem.m))
    batch = solve_lemm_batch(problem, B, random_state=0)
    for x, policy, b in zip(batch.x, batch.policies, B, strict=True):
        moved = LEMM(problem.A, b, problem.indptr, problem.op)
        assert moved.is_solution(x, 1e-8)
        np.testing.assert_allclose(moved.evaluate(policy), x, atol=1e-7)
        np.testing.assert_allclose(solve_lemm(moved, random_state=0).x, x, atol=1e-6)


def test_batches_fall_back_where_policies_cycle():
    """All-switch steps run in circles on this system from six of the eight policies."""
    made = make_pi_cycle_lemm()
    b = made.problem.b
    batch = solve_lemm_batch(made.problem, [b, 2 * b], policy_init=[0, 0, 0])
    np.testing.assert_allclose(batch.x, [made.value, 2 * made.value])
    assert batch.policies.tolist() == [made.policy.tolist()] * 2


def test_batch_errors():
    problem = make_pi_cycle_lemm().problem
    with pytest.raises(ValueError, match=r"shape \(k, 6\), got \(6,\)"):
        solve_lemm_batch(problem, problem.b)
    with pytest.raises(ValueError, match="B must be finite"):
        solve_lemm_batch(problem, [[np.nan] * 6])
    with pytest.raises(ValueError, match="policy_init"):
        solve_lemm_batch(problem, [problem.b], policy_init=[5, 5, 5])
    twisted = LEMM.from_equations(["x1 = max(2*x2 - 1, 0)", "x2 = x1"])
    with pytest.raises(LEMMNotUniqueError):
        solve_lemm_batch(twisted, [twisted.b])
