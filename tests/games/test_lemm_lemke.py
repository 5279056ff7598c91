"""Lemke's pivoting: the compiled kernel against a plain tableau, ties, rays, and the peer."""

from itertools import pairwise

import numpy as np
import pytest

from equipoise.games import LEMM, LemkeSolver
from equipoise.games.equations.lemke import lemke


def tableau_lemke(M, q, tol=1e-11):
    """The textbook tableau (w, z, t, right-hand side) with lexicographic ratios: z and pivots."""
    n = len(q)
    if min(q) >= 0:
        return np.zeros(n), 0
    table = np.hstack([np.eye(n), -M, -np.ones((n, 1)), np.reshape(q, (n, 1))])
    basis = list(range(n))
    entering = 2 * n
    row = n - 1 - int(np.argmin(q[::-1]))
    for pivots in range(1, 10**4):
        leaving, basis[row] = basis[row], entering
        table[row] /= table[row, entering]
        for i in set(range(n)) - {row}:
            table[i] -= table[i, entering] * table[row]
        if leaving == 2 * n:
            z = np.zeros(2 * n + 1)
            z[basis] = table[:, -1]
            return z[n : 2 * n], pivots
        entering = (leaving + n) % (2 * n)
        rows = [i for i in range(n) if table[i, entering] > tol]
        if not rows:
            return None, pivots
        for key in (-1, *range(n)):
            ratio = {i: table[i, key] / table[i, entering] for i in rows}
            rows = [i for i in rows if ratio[i] <= min(ratio.values()) + tol]
            if key == -1 and 2 * n in [basis[i] for i in rows]:
                rows = [basis.index(2 * n)]
            if len(rows) == 1:
                break
        row = rows[0]
    raise AssertionError("no end")


def p_matrix(n, rng):
    M = rng.normal(size=(n, n))
    skew = rng.normal(size=(n, n))
    return M @ M.T / n + 0.1 * np.eye(n) + (skew - skew.T) / 2


@pytest.mark.parametrize("seed", range(12))
def test_kernel_against_the_tableau(seed):
    rng = np.random.RandomState(seed)
    n = rng.randint(1, 25)
    M, q = p_matrix(n, rng), rng.normal(size=n)
    expected, pivots = tableau_lemke(M, q)
    z, made, status = lemke(M, q)
    assert status == "optimal"
    assert made == pivots
    np.testing.assert_allclose(z, expected, atol=1e-9)
    np.testing.assert_allclose(np.minimum(z, M @ z + q), 0, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_ties_end(seed):
    """Small integers, so that ratios tie: the same pivots as the tableau, no cycling."""
    rng = np.random.RandomState(seed)
    n = rng.randint(2, 9)
    M = np.tril(rng.randint(0, 3, size=(n, n)), -1) + np.eye(n)
    q = -np.ones(n)
    expected, pivots = tableau_lemke(M, q)
    z, made, status = lemke(M, q)
    assert (made, status) == (pivots, "optimal")
    np.testing.assert_allclose(z, expected, atol=1e-12)


def test_variables_that_left_come_back():
    """More pivots than positive z (and t): some w left the basis and entered it again."""
    rng = np.random.RandomState(0)
    returns = 0
    for _ in range(20):
        M, q = p_matrix(15, rng), rng.normal(size=15)
        expected, pivots = tableau_lemke(M, q)
        z, made, _ = lemke(M, q)
        assert made == pivots
        np.testing.assert_allclose(z, expected, atol=1e-9)
        returns += pivots > (z > 0).sum() + 1
    assert returns > 3


def test_rays_limits_and_callbacks():
    _, pivots, status = lemke(np.array([[-1.0]]), np.array([-1.0]))
    assert (status, pivots) == ("ray", 1)
    assert tableau_lemke(np.array([[-1.0]]), np.array([-1.0])) == (None, 1)
    assert lemke(np.eye(2), np.array([0.0, 1.0])) == (pytest.approx(np.zeros(2)), 0, "optimal")
    rng = np.random.RandomState(0)
    M, q = p_matrix(12, rng), rng.normal(size=12)
    whole = lemke(M, q)
    heights = []
    stepped = lemke(M, q, callback=lambda k, z, t: heights.append(t))
    np.testing.assert_array_equal(stepped[0], whole[0])
    assert stepped[1] == whole[1] == len(heights) + 1
    assert all(a >= b - 1e-12 for a, b in pairwise(heights))
    assert lemke(M, q, max_pivots=2)[1:] == (2, "max_iter")
    assert lemke(M, q, callback=lambda k, z, t: k == 3)[1:] == (3, "max_iter")


def test_many_actions_are_split_into_pairs():
    problem = LEMM.from_equations(
        ["x = max(1, 2 - 0.5*y, 0.5*y, 1.25)", "y = min(x, 3, 0.5*x + 1)"]
    )
    solver = LemkeSolver().fit(problem)
    assert problem.is_solution(solver.value_)
    assert len(solver.z_) == 2 + 2 + 1
    np.testing.assert_array_equal(problem.greedy(solver.value_), solver.policy_)


@pytest.mark.parametrize("n", [5, 40, 150])
def test_agrees_with_quantecon(n):
    optimize = pytest.importorskip("quantecon.optimize", reason="quantecon is not installed")
    rng = np.random.RandomState(n)
    M, q = p_matrix(n, rng), rng.normal(size=n)
    np.testing.assert_allclose(
        lemke(M, q)[0], optimize.lcp_lemke(M, q, max_iter=10**5).z, atol=1e-8
    )
