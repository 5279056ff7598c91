"""What a simulation found: losses, regrets, intervals, slopes, pictures."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from equipoise.inference import cluster_bootstrap

from .regret import check_segments, count_switches, segment_costs

__all__ = ["SimulationResult", "scaling_exponent"]

Array = np.ndarray
KINDS = ("static", "dynamic", "switching")


def check_kind(kind: Any) -> str:
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r}; allowed: {list(KINDS)}")
    return kind


class SimulationResult:
    """Losses of learners over runs and rounds; made by `simulate`.

    Attributes
    ----------
    names : list of str
        The learners.
    rounds : ndarray of int of shape (n_check,)
        The rounds after which losses were kept.
    n_arms, n_runs, horizon : int
        Sizes.
    n_switches : float
        Segments S of the world; where they depend on the run, their mean.
    cum_loss : ndarray of shape (n_learners, n_runs, n_check)
        Loss up to each of the rounds, in the given units, counted from the best end of the range.
    arms : ndarray of int16 of shape (n_learners, n_runs, horizon) or None
        The played arms, with ``store_arms=True``.
    seeds : ndarray of shape (n_learners, n_runs)
        ``random_state`` of each run's learner.

    Examples
    --------
    >>> from equipoise.games import TsallisINF, simulate
    >>> result = simulate([TsallisINF(2)], [[0.2, 0.8]] * 300, n_runs=3, random_state=0)
    >>> result.cum_loss.shape[:2], bool((result.regret("static") >= 0).all())
    ((1, 3), True)
    """

    names: list[str]
    rounds: Array
    cum_loss: Array
    seeds: Array
    arms: Array | None
    n_arms: int

    @classmethod
    def of_runs(
        cls,
        names: list[str],
        done: list[list],
        marks: Array,
        span: float,
        n_arms: int,
        table: Array | None,
        n_segments: float | None,
    ) -> Self:
        """Collect runs of losses between 0 and 1; `done` holds for each run the learners' parts."""
        result = cls()
        by_learner = list(zip(*done, strict=True))

        def stack(part: str) -> Array:
            return np.array([[getattr(run, part) for run, _ in runs] for runs in by_learner])

        result.names, result.rounds, result.n_arms = names, marks, n_arms
        result.span = span
        result.cum_loss = span * stack("cumulative")
        result._best_fixed = span * stack("arm_sums").min(axis=3)
        result._best_sequence = span * stack("least_sums")
        result.seeds = np.array([[seed for _, seed in runs] for runs in by_learner])
        stored = by_learner[0][0][0].arms.size > 0
        result.arms = stack("arms") if stored else None
        result._tables = [table] if table is not None else []
        if table is None and stored:
            result._tables = [run.table for runs in by_learner for run, _ in runs]
        result._n_segments = n_segments
        return result

    _best_fixed: Array
    _best_sequence: Array
    _tables: list[Array]
    _n_segments: float | None
    span: float

    @property
    def n_runs(self) -> int:
        return self.cum_loss.shape[1]

    @property
    def horizon(self) -> int:
        return int(self.rounds[-1])

    @property
    def n_switches(self) -> float:
        if self._n_segments is None:
            if not self._tables:
                raise ValueError(
                    "the number of segments depends on the run here, and runs weren't kept: "
                    "simulate with store_arms=True"
                )
            self._n_segments = float(np.mean([count_switches(own) for own in self._tables]))
        return self._n_segments

    def regret(self, kind: str = "static", S: int | None = None) -> Array:
        """Regret up to each of the kept rounds.

        Parameters
        ----------
        kind : {"static", "dynamic", "switching"}, default="static"
            Against the best fixed arm, the best arm of each round, or the best sequence of at most
            S segments; each for the rounds so far.
        S : int, optional
            Number of segments; only with "switching".

        Returns
        -------
        ndarray of shape (n_learners, n_runs, n_check)
            The regrets, in the given units.

        Raises
        ------
        ValueError
            If S is missing or superfluous, or the tables weren't kept (``store_arms=True`` keeps
            those of adversaries and noisy worlds).
        """
        if check_kind(kind) != "switching":
            if S is not None:
                raise ValueError(f"S={S} needs kind='switching', got kind={kind!r}")
            best = self._best_fixed if kind == "static" else self._best_sequence
            return self.cum_loss - best
        if S is None:
            raise ValueError("kind='switching' needs S, the number of segments")
        if not self._tables:
            raise ValueError(
                "kind='switching' needs the tables of all runs: simulate with store_arms=True"
            )
        n_segments = check_segments(S, self.horizon)
        costs = np.empty((len(self._tables), len(self.rounds), n_segments))
        for table, out in zip(self._tables, costs, strict=True):
            segment_costs(table, n_segments, self.rounds, out)
        least = self.span * costs[:, :, -1]
        shape = self.cum_loss.shape if len(least) > 1 else (1, 1, len(self.rounds))
        return self.cum_loss - least.reshape(shape)

    def final(self, kind: str = "static", S: int | None = None) -> Array:
        """Regret at the end, of shape (n_learners, n_runs)."""
        return self.regret(kind, S)[:, :, -1]

    def summary(self, confidence_level: float = 0.95, random_state: Any = 0) -> pd.DataFrame:
        """Final static and dynamic regret of each learner, with bootstrap intervals over runs.

        Parameters
        ----------
        confidence_level : float, default=0.95
            Coverage of the intervals.
        random_state : int, RandomState or None, default=0
            Seed of the bootstrap.

        Returns
        -------
        pandas.DataFrame
            A row a learner and kind: mean, sd, and ends of the percentile interval of the mean
            (equal to the mean for a single run).
        """
        rows = []
        for kind in ("static", "dynamic"):
            for name, values in zip(self.names, self.final(kind), strict=True):
                low = high = values[0]
                if len(values) > 1:
                    found = cluster_bootstrap(
                        np.mean,
                        values,
                        n_resamples=1000,
                        confidence_level=confidence_level,
                        random_state=random_state,
                    )
                    low, high = found.low, found.high
                sd = values.std(ddof=1) if len(values) > 1 else 0.0
                row = {"learner": name, "kind": kind, "mean": values.mean(), "sd": sd}
                rows.append({**row, "low": low, "high": high})
        return pd.DataFrame(rows)

    def compare(self, first: str, second: str, kind: str = "dynamic") -> dict[str, float]:
        """Mean difference of two learners' final regrets, paired by run.

        Parameters
        ----------
        first, second : str
            Names; the difference is first minus second.
        kind : {"static", "dynamic"}, default="dynamic"
            Which regret.

        Returns
        -------
        dict
            "mean", and "low", "high" of its normal 95 % interval.
        """
        for name in (first, second):
            if name not in self.names:
                raise ValueError(f"{name!r} isn't a learner here; allowed: {self.names}")
        i, j = self.names.index(first), self.names.index(second)
        gap = self.final(kind)[i] - self.final(kind)[j]
        half = 1.96 * gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        mean = float(gap.mean())
        return {"mean": mean, "low": mean - half, "high": mean + half}

    def plot(
        self, kind: str = "dynamic", log: bool = True, S: int | None = None, ax: Any = None
    ) -> Any:
        """Draw mean regrets over the rounds, with bands of two standard errors.

        Parameters
        ----------
        kind : {"static", "dynamic", "switching"}, default="dynamic"
            Which regret.
        log : bool, default=True
            Logarithmic axes; where a regret is negative the axis is symmetric-logarithmic.
        S : int, optional
            Number of segments for "switching".
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from equipoise.plotting import new_axes

        ax = new_axes() if ax is None else ax
        values = self.regret(kind, S)
        for name, runs in zip(self.names, values, strict=True):
            mean = runs.mean(axis=0)
            half = 2 * runs.std(axis=0) / np.sqrt(max(self.n_runs - 1, 1))
            (line,) = ax.plot(self.rounds, mean, label=name)
            ax.fill_between(
                self.rounds, mean - half, mean + half, color=line.get_color(), alpha=0.2, lw=0
            )
        if log:
            ax.set_xscale("log")
            if values.min() > 0:
                ax.set_yscale("log")
            else:
                ax.set_yscale("symlog", linthresh=max(1.0, self.span * np.sqrt(self.n_arms)))
        ax.set(xlabel="round", ylabel=f"{kind} regret")
        ax.legend(frameon=False)
        return ax

    def plot_pareto(self, ax: Any = None) -> Any:
        """Draw each learner's static over its dynamic regret, both divided by their scales.

        A learner in the lower left is good at both. The scales are sqrt(A T) and sqrt(S A T).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from equipoise.plotting import new_axes

        ax = new_axes() if ax is None else ax
        scale = self.span * np.sqrt(self.n_arms * self.horizon)
        x = self.final("dynamic") / (scale * np.sqrt(self.n_switches))
        y = self.final("static") / scale
        for name, across, up in zip(self.names, x, y, strict=True):
            ax.errorbar(
                across.mean(), up.mean(), xerr=across.std(), yerr=up.std(), fmt="o", label=name
            )
        ax.axhline(0.0, color="0.7", linewidth=0.8)
        ax.set(xlabel="dynamic regret / sqrt(S A T)", ylabel="static regret / sqrt(A T)")
        ax.legend(frameon=False)
        return ax

    def __repr__(self) -> str:
        return (
            f"SimulationResult({len(self.names)} learners, {self.n_runs} runs, "
            f"{self.horizon} rounds)"
        )


def scaling_exponent(
    results: Sequence[SimulationResult], axis: str = "T", kind: str = "dynamic"
) -> pd.Series:
    """Slope of log mean regret over log T or log S, across simulations.

    Parameters
    ----------
    results : sequence of SimulationResult
        Simulations of the same learners at two or more horizons, or numbers of segments.
    axis : {"T", "S"}, default="T"
        What varies.
    kind : {"static", "dynamic"}, default="dynamic"
        Which regret; its mean must be positive.

    Returns
    -------
    pandas.Series
        The slope of each learner; 0.5 is the square root law.

    Raises
    ------
    ValueError
        If learners differ, `axis` doesn't vary, or a mean regret isn't positive.

    Examples
    --------
    >>> from equipoise.datasets import make_bandit_losses
    >>> from equipoise.games import TrackAndExplore, scaling_exponent, simulate
    >>> results = []
    >>> for T in (1000, 4000, 16000):
    ...     losses = make_bandit_losses("hidden", 3, T, n_switches=4, random_state=0).losses
    ...     learner = TrackAndExplore(3, horizon=T, n_switches=4)
    ...     results.append(simulate([learner], losses, n_runs=16, random_state=0))
    >>> bool(0.4 < scaling_exponent(results)["TrackAndExplore"] < 0.6)
    True
    """
    if axis not in ("T", "S"):
        raise ValueError(f"axis={axis!r}; allowed: 'T', 'S'")
    if kind not in ("static", "dynamic"):
        raise ValueError(f"kind={kind!r}; allowed: 'static', 'dynamic'")
    if len(results) < 2 or any(result.names != results[0].names for result in results):
        raise ValueError("results must be two or more simulations of the same learners")
    x = np.log([result.horizon if axis == "T" else result.n_switches for result in results])
    if np.ptp(x) == 0:
        raise ValueError(f"axis={axis!r} is the same in all results")
    means = np.array([result.final(kind).mean(axis=1) for result in results])
    if (means <= 0).any():
        name = results[0].names[int(np.argwhere(means <= 0)[0, 1])]
        raise ValueError(f"the mean {kind} regret of {name} isn't positive: it has no logarithm")
    slopes = np.polyfit(x, np.log(means), 1)[0]
    return pd.Series(slopes, index=results[0].names, name=f"slope in {axis}")
