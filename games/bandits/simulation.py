"""Many learners, many runs, the same worlds: simulation, and what comes out of it.

Run r of learner j uses the seed of child (j, r) of the simulation's seed, and the world of run r
that of child (r,): results don't depend on `n_jobs`, and learners are compared on common tables.
"""

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.parallel import Parallel, delayed
from tqdm.auto import tqdm

from .environments import BanditEnvironment
from .results import SimulationResult
from .runs import Run, as_environment, benchmarks, is_compiled, run_adaptive, run_table, unit_table
from .streams import run_seed
from .units import Units, units_of

__all__ = ["simulate"]

Array = np.ndarray


class Plan(NamedTuple):
    """What all runs share."""

    learners: list[Any]
    env: BanditEnvironment
    units: Units
    marks: Array
    entropy: int
    store_arms: bool
    table: Array | None
    shared: tuple[Array, Array] | None


def log_spaced(horizon: int, n_checkpoints: int) -> Array:
    """Rounds from 1 to the horizon, evenly spaced in the logarithm, without repetitions."""
    return np.unique(np.geomspace(1, horizon, n_checkpoints).round().astype(np.int64))


def check_marks(checkpoints: Any, horizon: int) -> Array:
    """The rounds at which cumulative losses are kept; the last is the horizon."""
    if isinstance(checkpoints, int | np.integer) and not isinstance(checkpoints, bool):
        if checkpoints < 1:
            raise ValueError(f"checkpoints={checkpoints}; allowed: at least 1")
        return log_spaced(horizon, int(checkpoints)) if checkpoints > 1 else np.array([horizon])
    marks = np.unique(np.asarray(checkpoints))
    if marks.ndim != 1 or not np.issubdtype(marks.dtype, np.integer):
        raise ValueError(f"checkpoints={checkpoints!r:.60}; allowed: a number, or rounds")
    if not marks.size or marks[0] < 1 or marks[-1] > horizon:
        raise ValueError(f"checkpoints must lie in 1 to {horizon}, got {marks.tolist()!s:.60}")
    return np.append(marks[marks < horizon], horizon).astype(np.int64)


def name_learners(learners: Any, env: BanditEnvironment) -> dict[str, Any]:
    """Names to learners; checked against the environment and each other."""
    if isinstance(learners, Mapping):
        named = dict(learners)
    else:
        listed = list(learners) if isinstance(learners, Sequence) else [learners]
        named = {}
        for learner in listed:
            name, k = type(learner).__name__, 2
            while name in named:
                name, k = f"{type(learner).__name__} {k}", k + 1
            named[name] = learner
    if not named:
        raise ValueError("learners is empty; allowed: at least one")
    for name, learner in named.items():
        if not hasattr(learner, "select_arm") or not hasattr(learner, "update"):
            raise TypeError(f"learners: {name} has no select_arm and update")
        n_arms = getattr(learner, "n_arms", env.n_arms)
        if n_arms != env.n_arms:
            raise ValueError(f"learners: {name} has {n_arms} arms, and env {env.n_arms}")
    units = {units_of(learner)[:3] for learner in named.values()}
    if len(units) > 1:
        raise ValueError("learners must have one mode and one loss_range, to be comparable")
    return named


def fresh_copy(learner: Any, seed: int) -> Any:
    """A clone with the run's seed, ready to play."""
    copy = clone(learner)
    if "random_state" in copy.get_params():
        copy.set_params(random_state=seed)
    return copy


def play_run(plan: Plan, r: int) -> list[tuple[Run, int]]:
    """Run r of all learners, on one table where the world is oblivious."""
    world = run_seed(plan.entropy, r)
    table, sums = plan.table, plan.shared
    if not plan.env.is_adaptive and plan.env.is_random:
        table = unit_table(plan.env, plan.units, world)
        sums = benchmarks(table, plan.marks)
    runs = []
    for j, learner in enumerate(plan.learners):
        seed = run_seed(plan.entropy, j, r)
        player = fresh_copy(learner, seed)
        if table is None or sums is None:
            run = run_adaptive(player, plan.env, plan.units, plan.marks, plan.store_arms, world)
        else:
            cumulative, arms = run_table(player, table, plan.units, plan.marks, plan.store_arms)
            own = table if plan.store_arms and plan.env.is_random else np.empty((0, 0))
            run = Run(cumulative, *sums, arms, own)
        runs.append((run, seed))
    return runs


def play_all(plan: Plan, n_runs: int, n_jobs: int | None, verbose: bool) -> list[list]:
    """All runs; whoever stops them keeps those that are done."""
    done: list[list] = []
    runs = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(play_run)(plan, r) for r in range(n_runs)
    )
    with tqdm(total=n_runs, disable=not verbose, unit="run") as bar:
        try:
            for run in runs:
                done.append(run)
                bar.update()
        except KeyboardInterrupt:
            if not done:
                raise
            warnings.warn(f"interrupted: {len(done)} of {n_runs} runs are done", stacklevel=3)
    return done


@validate_params(
    {
        "n_runs": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "store_arms": ["boolean"],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=True,
)
def simulate(
    learners: Any,
    env: BanditEnvironment | ArrayLike,
    n_runs: int = 32,
    checkpoints: int | ArrayLike = 200,
    n_jobs: int | None = None,
    random_state: Any = None,
    store_arms: bool = False,
    verbose: bool = False,
) -> SimulationResult:
    """Play learners in an environment, many times each.

    Parameters
    ----------
    learners : list or dict of learners
        What to compare, by name or in a list; each is cloned for every run. Other objects than
        ours need `select_arm`, `update(arm, loss)` and what `sklearn.base.clone` needs.
    env : environment or array-like of shape (n_rounds, n_arms)
        Where to play; a table holds the losses of all arms. An adversary makes each learner and
        run a table of its own.
    n_runs : int, default=32
        Runs of each learner.
    checkpoints : int or array-like of int, default=200
        Number of rounds, evenly spaced in the logarithm, or the rounds, after which cumulative
        losses are kept; the last round is always among them.
    n_jobs : int, optional
        Threads, as in scikit-learn; results don't depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all seeds.
    store_arms : bool, default=False
        Whether to keep every arm, two bytes a round.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    SimulationResult
        Losses, regrets, intervals and plots. After Ctrl-C it holds the runs that were done, with a
        warning.

    Raises
    ------
    ValueError, TypeError
        If learners and environment don't fit together, or losses are out of range.

    Examples
    --------
    >>> from equipoise.games import Exp3, PiecewiseEnv, StaticDynamicBandit, simulate
    >>> env = PiecewiseEnv([[0.5, 0.8, 0.2], [0.5, 0.2, 0.8]] * 4, lengths=[500] * 8)
    >>> learners = [StaticDynamicBandit(3, horizon=4000), Exp3(3, horizon=4000)]
    >>> result = simulate(learners, env, n_runs=4, random_state=0)
    >>> ours, exp3 = result.regret("dynamic")[:, :, -1].mean(axis=1)
    >>> bool(ours < exp3)
    True
    """
    world = as_environment(env)
    named = name_learners(learners, world)
    units = units_of(next(iter(named.values())))
    for learner in named.values():
        if is_compiled(learner):
            clone(learner).reset()  # its parameters are checked before the first run
    entropy = random_state
    if not isinstance(random_state, Integral):
        entropy = check_random_state(random_state).randint(2**32, dtype=np.uint64)
    marks = check_marks(checkpoints, world.horizon)
    fixed = not world.is_adaptive and not world.is_random
    table = unit_table(world, units, None) if fixed else None
    shared = benchmarks(table, marks) if table is not None else None
    plan = Plan(
        list(named.values()), world, units, marks, int(entropy), bool(store_arms), table, shared
    )
    done = play_all(plan, n_runs, n_jobs, bool(verbose))
    return SimulationResult.of_runs(
        list(named), done, marks, units.span, world.n_arms, table, n_segments_of(world)
    )


def n_segments_of(env: BanditEnvironment) -> int | None:
    """Segments of a world whose runs share them; None where the tables tell."""
    return env.n_switches_ if env.is_random and not env.is_adaptive else None
