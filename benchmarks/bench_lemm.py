"""Markov decision processes, games and complementarity problems against the solvers people use.

Every side solves the same instance, already in its own form, to the same error, on one thread.
Peers that aren't installed are named and left out.
"""

import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.datasets import make_lemm
from equipoise.games import (
    LEMM,
    LemkeSolver,
    SimplePolicyIteration,
    ValueIteration,
    classify_lemm,
    solve_lemm,
)
from equipoise.games.equations.kernels import gauss_seidel, row_values
from equipoise.games.equations.lemke import lemke

EPSILON = 1e-6
DISCOUNT = 0.95


def peer(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        print(f"({module} is not installed: its cases are left out)")
        return None


def process(n: int, pattern: str, k: int = 2, per_row: int = 3) -> tuple[Any, ...]:
    """A random decision process: transitions (n k, n), rewards, and state and action of each row."""
    rng = np.random.default_rng(0)
    if pattern == "random":
        columns = rng.integers(0, n, size=(n * k, per_row))
    else:
        states = np.arange(n).repeat(k)[:, None]
        columns = (states + rng.integers(-20, 20, size=(n * k, per_row))) % n
    chances = rng.dirichlet(np.ones(per_row), n * k)
    pointers = np.arange(0, n * k * per_row + 1, per_row)
    P = sp.csr_array((chances.ravel(), columns.ravel(), pointers), shape=(n * k, n))
    P.sum_duplicates()
    return P, rng.random(n * k), np.repeat(np.arange(n), k), np.tile(np.arange(k), n)


def quantecon_solver(method: str, P: Any, R: Any, states: Any, actions: Any) -> Callable[[], Any]:
    ddp = import_module("quantecon.markov").DiscreteDP(
        R, sp.csr_matrix(P), DISCOUNT, states, actions
    )
    return lambda: ddp.solve(method=method, epsilon=EPSILON, max_iter=10000).v


def mdpsolver_solver(P: Any, R: Any, states: Any, actions: Any) -> Callable[[], Any]:
    n, k = P.shape[1], len(states) // P.shape[1]
    ends = P.indptr.tolist()
    data, columns = P.data.tolist(), P.indices.tolist()
    rows = [[slice(ends[i * k + a], ends[i * k + a + 1]) for a in range(k)] for i in range(n)]
    model = import_module("mdpsolver").model()
    model.mdp(
        discount=DISCOUNT,
        rewards=R.reshape(n, k).tolist(),
        tranMatProbs=[[data[row] for row in node] for node in rows],
        tranMatColumns=[[columns[row] for row in node] for node in rows],
    )

    def solve() -> Any:
        # Every run starts from nothing.
        model.solve(algorithm="mpi", tolerance=EPSILON, parallel=False, initValueVector=[0.0] * n)
        return np.array(model.getValueVector())

    return solve


def toolbox_solver(P: Any, R: Any, states: Any, actions: Any) -> Callable[[], Any]:
    n, k = P.shape[1], len(states) // P.shape[1]
    mdp = import_module("mdptoolbox.mdp")
    matrices = [sp.csr_matrix(P[a::k]) for a in range(k)]
    rewards = R.reshape(n, k)

    def solve() -> Any:
        solver = mdp.PolicyIterationModified(matrices, rewards, DISCOUNT, epsilon=EPSILON)
        solver.run()
        return np.array(solver.V)

    return solve


def write_drn(path: Path, P: Any, R: Any, k: int) -> None:
    """The discount as a way to a sink, in the format that Storm reads."""
    n = P.shape[1]
    ends, data, columns, gains = (array.tolist() for array in (P.indptr, P.data, P.indices, R))
    with path.open("w") as file:
        file.write("@type: MDP\n@parameters\n\n@reward_models\ngain\n")
        file.write(f"@nr_states\n{n + 1}\n@nr_choices\n{n * k + 1}\n@model\n")
        for i in range(n):
            file.write(f"state {i} [0]{' init' if i == 0 else ''}\n")
            for row in range(i * k, i * k + k):
                file.write(f"\taction {row - i * k} [{gains[row]!r}]\n")
                # The last probability makes the row sum to 1 as Storm adds it up.
                left = 1.0
                for e in range(ends[row], ends[row + 1]):
                    file.write(f"\t\t{columns[e]} : {DISCOUNT * data[e]!r}\n")
                    left -= DISCOUNT * data[e]
                file.write(f"\t\t{n} : {left!r}\n")
        file.write(f"state {n} [0] sink\n\taction 0 [0]\n\t\t{n} : 1\n")


def storm_solver(P: Any, R: Any, states: Any, actions: Any) -> Callable[[], Any]:
    """Expected reward until the sink, by optimistic value iteration (with a proved error)."""
    stormpy = import_module("stormpy")
    n = P.shape[1]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "process.drn"
        write_drn(path, P, R, len(states) // n)
        model = stormpy.build_model_from_drn(str(path))
    formula = stormpy.parse_properties('R{"gain"}max=? [F "sink"]')[0]
    environment = stormpy.Environment()
    minmax = environment.solver().min_max()
    minmax.method = import_module("stormpy.environments").MinMaxMethod.OPTIMISTIC_VALUE_ITERATION
    minmax.precision = stormpy.Rational(EPSILON / 20)  # relative; values are about 20

    def solve() -> Any:
        result = stormpy.model_checking(
            model, formula, only_initial_states=False, environment=environment
        )
        return np.array(result.get_value_vector())[:n]

    return solve


PEERS: dict[str, tuple[str, Callable[..., Callable[[], Any]]]] = {
    "quantecon MPI": ("quantecon", lambda *args: quantecon_solver("mpi", *args)),
    "quantecon VI": ("quantecon", lambda *args: quantecon_solver("vi", *args)),
    "mdpsolver MPI": ("mdpsolver", mdpsolver_solver),
    "pymdptoolbox MPI": ("mdptoolbox", toolbox_solver),
    "stormpy OVI": ("stormpy", storm_solver),
}


def process_cases() -> Iterator[dict[str, Any]]:
    available = {module: peer(module) for module, _ in PEERS.values()}
    sizes = ((2000, "random", 5), (10**5, "random", 3), (10**5, "banded", 3), (10**6, "random", 1))
    for n, pattern, repeats in sizes:
        parts = process(n, pattern)
        P, R, states, _ = parts
        problem = LEMM.from_mdp(P, R, DISCOUNT, s_indices=states)
        for name, (module, build) in PEERS.items():
            # Slower than the bar by a factor that the smaller size already shows.
            if available[module] is None or (n == 10**6 and name == "quantecon VI"):
                continue
            if n > 10**4 and name == "pymdptoolbox MPI":
                continue  # its check of the model makes a dense n x n array of sparse input
            yield {
                "name": f"MDP, {pattern}, n = {n:.0e}, error 1e-6, vs {name}",
                "ours": lambda problem=problem: solve_lemm(problem, tol=EPSILON).x,
                "peer": build(*parts),
                "tolerance": 1e-5 if name == "quantecon VI" else 2e-6,
                "repeats": repeats,
                # Its values are off by a constant: it stops on the span of the change.
                "exact": name != "pymdptoolbox MPI",
            }
    parts = process(10**6, "banded")
    problem = LEMM.from_mdp(parts[0], parts[1], DISCOUNT, s_indices=parts[2])
    if available["quantecon"] is not None:
        yield {
            "name": "MDP, banded, n = 1e+06, error 1e-6, vs quantecon MPI",
            "ours": lambda: solve_lemm(problem, tol=EPSILON).x,
            "peer": quantecon_solver("mpi", *parts),
            "tolerance": 2e-6,
            "repeats": 1,
        }
    yield memory_case()


def memory_case() -> dict[str, Any]:
    """The largest memory of a solve beside the problem, relative to the problem's arrays."""
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    P, R, states, _ = process(10**6, "random")
    problem = LEMM.from_mdp(P, R, DISCOUNT, s_indices=states)
    size = sum(a.nbytes for a in (problem.A.data, problem.A.indices, problem.A.indptr, problem.b))
    held = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.reset_peak()
    solve_lemm(problem, tol=1e-8)
    peak = tracemalloc.get_traced_memory()[1] - start - held
    tracemalloc.stop()
    return {
        "name": f"MDP, n = 1e6, error 1e-8 (memory beside the problem: {peak / size:.2g} x input)",
        "ours": lambda: solve_lemm(problem, tol=1e-8).x,
        "repeats": 1,
    }


def checked(x: Any, made: Any, tolerance: float) -> Any:
    error = np.abs(x - made.value).max() / (1 + np.abs(made.value).max())
    if error > tolerance:
        raise AssertionError(f"off the planted solution by {error:.2g}")
    return x


def game_cases() -> Iterator[dict[str, Any]]:
    """No peer solves two players or signed coefficients; the truth is planted instead."""
    for kind in ("ssg", "absolutely_halting", "branching"):
        made = make_lemm(10**5, 2, kind=kind, random_state=0)
        yield {
            "name": f"{kind}, n = 1e5, error 1e-6 (no peer; planted solution checked)",
            "ours": lambda made=made: checked(solve_lemm(made.problem, tol=1e-6).x, made, 1e-6),
            "repeats": 2,
        }
        yield {
            "name": f"classify {kind}, n = 1e5",
            "ours": lambda made=made: classify_lemm(made.problem),
            "repeats": 2,
        }


def pivoting_cases() -> Iterator[dict[str, Any]]:
    made = make_lemm(300, 2, density=1.0, kind="absolutely_halting", random_state=0)
    yield {
        "name": "parametric rule, dense, n = 300 (no peer; planted solution checked)",
        "ours": lambda: checked(
            SimplePolicyIteration(random_state=0).fit_predict(made.problem), made, 1e-9
        ),
    }
    if peer("quantecon") is None:
        return
    lcp = import_module("quantecon.optimize").lcp_lemke
    for n in (150, 600):
        rng = np.random.RandomState(0)
        M = rng.normal(size=(n, n))
        M, q = M @ M.T / n + np.eye(n), rng.normal(size=n)
        problem = LEMM.from_lcp(M, q)
        yield {
            "name": f"complementarity, n = {n}, Lemke's pivots vs quantecon lcp_lemke",
            "ours": lambda M=M, q=q: lemke(M, q)[0],
            "peer": lambda M=M, q=q: lcp(M, q, max_iter=10**5).z,
            "tolerance": 1e-8,
        }
        yield {
            "name": f"complementarity, n = {n}, LemkeSolver with certificate vs quantecon lcp_lemke",
            "ours": lambda problem=problem: LemkeSolver().fit_predict(problem),
            "peer": lambda M=M, q=q: lcp(M, q, max_iter=10**5).z,
            "tolerance": 1e-8,
        }


def sweep_cases() -> Iterator[dict[str, Any]]:
    for pattern in ("banded", "random"):
        P, R, states, _ = process(10**5, pattern)
        problem = LEMM.from_mdp(P, R, DISCOUNT, s_indices=states)
        x, out, order = np.zeros(problem.n), np.empty(problem.m), np.arange(problem.n)
        sweeps = -(-(10**8) // problem.nnz)

        def rows(problem: LEMM = problem, x: Any = x, out: Any = out, sweeps: int = sweeps) -> None:
            for _ in range(sweeps):
                row_values(*problem.arrays[1:5], x, 0, problem.m, out)

        def in_place(
            problem: LEMM = problem, x: Any = x, order: Any = order, sweeps: int = sweeps
        ) -> None:
            gauss_seidel(*problem.arrays, order, 1.0, sweeps, x)

        yield {"name": f"1e8 coefficient updates, rows, {pattern}", "ours": rows, "repeats": 3}
        yield {"name": f"1e8 updates, Gauss-Seidel, {pattern}", "ours": in_place, "repeats": 3}
    yield {
        "name": "Jacobi, n = 1e6, 50 sweeps, 1 thread",
        "ours": jacobi(None),
        "repeats": 2,
    }
    yield {
        "name": "Jacobi, n = 1e6, 50 sweeps, 2 threads vs 1 thread",
        "ours": jacobi(2),
        "peer": jacobi(None),
        "repeats": 2,
    }


def jacobi(n_jobs: int | None) -> Callable[[], Any]:
    P, R, states, _ = process(10**6, "banded")
    problem = LEMM.from_mdp(P, R, DISCOUNT, s_indices=states)
    solver = ValueIteration("jacobi", n_jobs=n_jobs, max_iter=50, tol=1e-12)

    def run() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return solver.fit(problem).value_

    return run


def cases() -> Iterator[dict[str, Any]]:
    yield from process_cases()
    yield from game_cases()
    yield from pivoting_cases()
    yield from sweep_cases()
