"""Opinions step by step: many runs in one pass, each with its own adopters and accidents."""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from equipoise.plotting import COLORS, new_axes

from .channel import AffineChannel, CurvedChannel, Side, first_topic
from .inputs import check_vector
from .network import OpinionNetwork, check_choice

__all__ = ["Simulation", "SimulationMixin", "run_steps"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Simulation:
    """Opinions over time; made by `MediatedOpinionDynamics.simulate`.

    Attributes
    ----------
    mean, std : ndarray of shape (n_steps + 1, n_seeds)
        Mean and standard deviation over the users, from the start on.
    max_change, mean_change : ndarray of shape (n_steps, n_seeds)
        Largest and mean change of an opinion in each step.
    final : ndarray of shape (n, n_seeds)
        Opinions after the last step.
    adopters : ndarray of shape (n, n_seeds), bool
        Who used the AI in writing, in each run.
    trajectory : ndarray of shape (n_steps + 1, n, n_seeds) or None
        All opinions, with ``record="full"``.

    Examples
    --------
    >>> from equipoise.games import AffineMediator, MediatedOpinionDynamics
    >>> dynamics = MediatedOpinionDynamics(expression=AffineMediator(bias=0.02))
    >>> run = dynamics.fit([[0, 1], [1, 0]], [0.2, 0.4]).simulate(50)
    >>> run.mean[[0, -1], 0].round(4).tolist()
    [0.3, 0.3467]
    """

    mean: Array
    std: Array
    max_change: Array
    mean_change: Array
    final: Array
    adopters: Array
    trajectory: Array | None = None

    @property
    def n_steps(self) -> int:
        """Steps made."""
        return len(self.max_change)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each run and step: seed, step, mean, std, max_change, mean_change."""
        steps, seeds = self.mean.shape
        first = np.full((1, seeds), np.nan)
        return pd.DataFrame(
            {
                "seed": np.tile(np.arange(seeds), steps),
                "step": np.repeat(np.arange(steps), seeds),
                "mean": self.mean.ravel(),
                "std": self.std.ravel(),
                "max_change": np.vstack([first, self.max_change]).ravel(),
                "mean_change": np.vstack([first, self.mean_change]).ravel(),
            }
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean over time, a line a run, and a band of one standard deviation.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        ax = new_axes() if ax is None else ax
        steps = np.arange(len(self.mean))
        low, high = self.mean - self.std, self.mean + self.std
        ax.fill_between(steps, low.mean(axis=1), high.mean(axis=1), color=COLORS[0], alpha=0.15)
        ax.plot(steps, self.mean, color=COLORS[0], lw=1)
        ax.set_xlabel("step")
        ax.set_ylabel("mean opinion, and one standard deviation of users")
        return ax


def run_steps(
    channel: AffineChannel | CurvedChannel,
    stubborn: Array,
    x0: Array,
    n_steps: int,
    adopters: Array,
    full: bool,
    noise: float,
    rng: np.random.RandomState,
) -> Simulation:
    """Make the steps ``x <- lambda s + heard(x) + noise`` of all users at once, for all runs.

    `stubborn` (n,) is lambda s, `x0` (n, n_seeds) the start; noise is normal with that standard
    deviation.
    """
    x = x0.copy()
    single = x.shape[1] == 1 and isinstance(channel, AffineChannel)
    out = np.empty(len(x)) if single else None
    mean, std, most, change = [x.mean(axis=0)], [x.std(axis=0)], [], []
    states = [x.copy()] if full else None
    for _ in range(n_steps):
        if single and isinstance(channel, AffineChannel) and out is not None:
            channel.step(x[:, 0], stubborn + channel.constant, out)
            fresh = out[:, None].copy()
        else:
            fresh = stubborn[:, None] + channel.heard(x)
        if noise:
            fresh += noise * rng.normal(size=fresh.shape)
        moved = np.abs(fresh - x)
        most.append(moved.max(axis=0))
        change.append(moved.mean(axis=0))
        x = fresh
        mean.append(x.mean(axis=0))
        std.append(x.std(axis=0))
        if states is not None:
            states.append(x.copy())
    runs = x.shape[1]
    return Simulation(
        mean=np.array(mean),
        std=np.array(std),
        max_change=np.array(most).reshape(-1, runs),
        mean_change=np.array(change).reshape(-1, runs),
        final=x,
        adopters=np.broadcast_to(adopters.reshape(len(x), -1), x.shape).copy(),
        trajectory=None if states is None else np.array(states),
    )


class SimulationMixin:
    """Following a fitted `MediatedOpinionDynamics` step by step."""

    network_: OpinionNetwork
    _channel: AffineChannel | CurvedChannel
    _linear: AffineChannel
    _on_edges: bool
    _expression: Side
    _perception: Side
    _drawn: tuple[bool, bool]
    adoption: float
    perception_adoption: float
    random_state: Any
    stubbornness_: Array
    innate_: Array
    adopters_: Array
    perceivers_: Array

    def simulate(
        self,
        n_steps: int = 100,
        *,
        x0: ArrayLike | None = None,
        n_seeds: int = 1,
        record: str = "summary",
        noise: float = 0.0,
    ) -> Simulation:
        """Follow opinions step by step, all users at once; for several topics, the first.

        Parameters
        ----------
        n_steps : int, default=100
            Steps.
        x0 : array-like of shape (n,), optional
            Where to start; default: the innate opinions.
        n_seeds : int, default=1
            Runs. The first has the fitted adopters; the others draw their own from
            `random_state`, unless `fit` was given them.
        record : str, default="summary"
            "full" keeps all opinions of all steps.
        noise : float, default=0.0
            Standard deviation of a normal disturbance of each opinion in each step.

        Returns
        -------
        Simulation
            Means, spreads, changes, final opinions.

        Raises
        ------
        ValueError
            For numbers below 1, a negative noise, or a start of another shape.
        """
        check_is_fitted(self)
        check_choice("record", record, ("summary", "full"))
        for name, value in (("n_steps", n_steps), ("n_seeds", n_seeds)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name}={value!r}; allowed: whole numbers from 1 on")
        if not noise >= 0:
            raise ValueError(f"noise={noise!r} must not be negative")
        s = first_topic(self.innate_)
        start = s if x0 is None else check_vector(x0, len(s), "x0")
        rng = check_random_state(self.random_state)
        rng.uniform(size=2 * len(s))  # what `fit` drew: the runs go on from there
        channel, adopters = self._channel, self.adopters_
        if n_seeds > 1 and not self._on_edges and any(self._drawn):
            masks = []
            for mask, share, drawn in zip(
                (self.adopters_, self.perceivers_),
                (self.adoption, self.perception_adoption),
                self._drawn,
                strict=True,
            ):
                others = rng.uniform(size=(len(s), n_seeds - 1)) < share
                others = others if drawn else np.repeat(mask[:, None], n_seeds - 1, axis=1)
                masks.append(np.column_stack([mask, others]))
            adopters = masks[0]
            sides = (
                replace(self._expression, mask=masks[0]),
                replace(self._perception, mask=masks[1]),
            )
            uniform = self._linear.uniform
            channel = CurvedChannel(self.network_, *sides, 1 - self.stubbornness_, uniform)
        return run_steps(
            channel,
            self.stubbornness_ * s,
            np.repeat(start[:, None], n_seeds, axis=1),
            int(n_steps),
            adopters,
            record == "full",
            float(noise),
            rng,
        )
