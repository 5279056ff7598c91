"""Self-play of FTRL+ in a batch of games: its state, and the three ways to play on.

"numba" runs the compiled loop of `ftrl_kernels` over the games, on threads. "numpy" and "torch" run
one loop over rounds for the whole batch, with `rule.PlayerState` for each player.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.externals.array_api_compat import array_namespace

from equipoise.blocks import iter_blocks, map_blocks

from .contraction import contract_payoffs
from .ftrl_kernels import play_rounds
from .rule import PlayerState, Rule, regret_bound

__all__ = ["SelfPlay", "advance"]

#: Games above this many profiles are played by BLAS instead of the compiled loop.
LARGEST_COMPILED = 100_000

#: The arrays of the state that `play_rounds` takes, in its order.
BATCHED = (
    *("y0", "Y", "last", "x", "total"),
    *("S", "largest", "spread", "constant_step", "eta"),
    *("movement", "gap", "best_gap", "rounds", "stopped"),
)


@dataclass
class SelfPlay:
    """Everything that a self-play needs to go on, for B games of one shape with s = sum d_i
    actions.

    Attributes
    ----------
    payoffs : ndarray of shape (B, n, M)
    n_actions : tuple of int
    rule : Rule
    y0, Y, last, x, total : ndarray of shape (B, s)
        Start's scores, regret of each action, last payoffs, played strategies, their sum over
        rounds.
    S, largest, spread, constant_step, eta : ndarray of shape (B, n)
        As in `PlayerState`, and the step sizes of the last round.
    movement, gap, best_gap : ndarray of shape (B,)
        Largest change of a probability in the last round, NashConv of the played strategies, and
        its least.
    rounds : ndarray of shape (B,)
    stopped : ndarray of shape (B,), bool
    """

    payoffs: np.ndarray
    n_actions: tuple[int, ...]
    rule: Rule
    y0: np.ndarray
    Y: np.ndarray
    last: np.ndarray
    x: np.ndarray
    total: np.ndarray
    S: np.ndarray
    largest: np.ndarray
    spread: np.ndarray
    constant_step: np.ndarray
    eta: np.ndarray
    movement: np.ndarray
    gap: np.ndarray
    best_gap: np.ndarray
    rounds: np.ndarray
    stopped: np.ndarray

    @classmethod
    def start(
        cls,
        payoffs: np.ndarray,
        n_actions: tuple[int, ...],
        rule: Rule,
        x1: np.ndarray,
        constant_step: np.ndarray,
    ) -> "SelfPlay":
        """Return the state before the first round, from the starts x1 (B, s)."""
        B, n, _ = payoffs.shape
        parts = np.split(x1, np.cumsum(n_actions)[:-1], axis=1)
        y0 = np.concatenate([rule.regularizer.scores(x_i) for x_i in parts], axis=1)
        actions, players, games = np.zeros_like(y0), np.zeros((B, n)), np.zeros(B)
        return cls(
            payoffs=payoffs,
            n_actions=n_actions,
            rule=rule,
            y0=y0,
            Y=actions,
            last=actions.copy(),
            x=x1.copy(),
            total=actions.copy(),
            S=players,
            largest=players.copy(),
            spread=players.copy(),
            constant_step=np.broadcast_to(constant_step, (B, n)).copy(),
            eta=players.copy(),
            movement=games,
            gap=games + np.inf,
            best_gap=games + np.inf,
            rounds=np.zeros(B, dtype=np.int64),
            stopped=np.zeros(B, dtype=bool),
        )

    def copy(self) -> "SelfPlay":
        """Return a state that can be played on without changing this one."""
        arrays: dict[str, Any] = {
            name: value.copy()
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name != "payoffs"
        }
        return replace(self, **arrays)

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        """Return the players' parts (B, d_i) of an array (B, s), as views."""
        return np.split(flat, np.cumsum(self.n_actions)[:-1], axis=1)

    def regret(self) -> np.ndarray:
        """Return each player's regret (B, n)."""
        return np.stack([Y_i.max(axis=1) for Y_i in self.split(self.Y)], axis=1)

    def bound(self) -> np.ndarray:
        """Return the bound on each player's regret (B, n)."""
        bounds = np.zeros(self.S.shape)
        for t in np.unique(self.rounds):
            rows = self.rounds == t
            for i, y0 in enumerate(self.split(self.y0[rows])):
                columns = (self.S, self.largest, self.spread, self.constant_step)
                S, largest, spread, step = (column[rows, i] for column in columns)
                bounds[rows, i] = regret_bound(self.rule, y0, S, largest, spread, step, int(t))
        return bounds

    def energy(self, masses: np.ndarray, centers: list[np.ndarray]) -> np.ndarray:
        """Return sum_i m_i (Fenchel coupling of q_i with the scores y0 + eta Y), of shape (B,)."""
        energy = np.zeros(len(self.rounds))
        parts = zip(self.split(self.y0), self.split(self.Y), centers, strict=True)
        for i, (y0, Y, q) in enumerate(parts):
            scores = y0 + self.eta[:, i : i + 1] * Y
            energy += masses[:, i] * self.rule.regularizer.coupling(q, scores)
        return energy


def advance_compiled(
    play: SelfPlay, until: int, tol: float, check_every: int, n_jobs: int | None
) -> None:
    """Play on with the compiled loop, blocks of games on threads."""
    h = play.rule.regularizer
    lam = -1.0 if play.rule.lam is None else play.rule.lam
    n_actions = np.array(play.n_actions, dtype=np.int64)

    def run(games: slice) -> None:
        arguments: list[Any] = [play.payoffs[games], n_actions]
        arguments += [h.code, h.exponent, h.slope, play.rule.schedule, play.rule.tau, lam]
        arguments += [getattr(play, name)[games] for name in BATCHED]
        arguments += [until, tol, check_every]
        play_rounds(*arguments)

    B = len(play.rounds)
    if B == 1:
        run(slice(0, 1))
    else:
        map_blocks(run, list(iter_blocks(B, 1.0, max(1, -(-B // 16)) / 2**20)), n_jobs)


def advance_arrays(
    play: SelfPlay, until: int, tol: float, check_every: int, device: Any = None
) -> None:
    """Play on with one loop over rounds for all games that haven't stopped."""
    payoffs = load(play.payoffs, device)
    while not play.stopped.all() and play.rounds[~play.stopped].min() < until:
        rows = np.flatnonzero(~play.stopped)
        t = int(play.rounds[rows[0]])
        end = min(until, t + check_every - t % check_every) if t else 1
        if tol == 0.0:
            end = until
        chosen = payoffs if len(rows) == len(play.rounds) else payoffs[rows]
        play_chunk(play, chosen, rows, end - t, device)
        if tol > 0.0 and (end % check_every == 0 or end == 1):
            play.stopped[rows] = play.gap[rows] <= tol


def load(array: np.ndarray, device: Any) -> Any:
    """Return an array as it is, or as a tensor on a torch device."""
    if device is None:
        return array
    import torch

    return torch.tensor(array, device=device)


def unload(array: Any) -> np.ndarray:
    """Return a NumPy array again."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def play_chunk(play: SelfPlay, payoffs: Any, rows: np.ndarray, n_rounds: int, device: Any) -> None:
    """Play the same number of rounds in some games of the batch, given their payoffs."""
    rule = play.rule
    states = [
        PlayerState(
            *(load(play.split(array[rows])[i], device) for array in (play.y0, play.Y, play.last)),
            *(
                load(column[rows, i], device)
                for column in (play.S, play.largest, play.spread, play.constant_step)
            ),
        )
        for i in range(len(play.n_actions))
    ]
    total = [load(part, device) for part in play.split(play.total[rows])]
    x = [load(part, device) for part in play.split(play.x[rows])]
    best_gap = load(play.best_gap[rows], device)
    xp = array_namespace(best_gap)
    for _ in range(n_rounds):
        eta = [state.step_size(rule) for state in states]
        queried: list[Any] = [None] * len(states)
        if rule.queries:
            base = [state.base(rule, e) for state, e in zip(states, eta, strict=True)]
            queried = contract_payoffs(payoffs, base, play.n_actions)
        predicted = [state.prediction(rule, q) for state, q in zip(states, queried, strict=True)]
        before = x
        x = [state.play(rule, e, p) for state, e, p in zip(states, eta, predicted, strict=True)]
        g = contract_payoffs(payoffs, x, play.n_actions)
        gaps = []
        for i, state in enumerate(states):
            state.absorb(rule, x[i], g[i], predicted[i])
            total[i] = total[i] + x[i]
            gaps.append(xp.max(g[i], axis=-1) - xp.sum(g[i] * x[i], axis=-1))
        gap = sum(xp.where(own > 0.0, own, 0.0 * own) for own in gaps)
        best_gap = xp.minimum(best_gap, gap)

    play.rounds[rows] += n_rounds
    play.gap[rows], play.best_gap[rows] = unload(gap), unload(best_gap)
    play.movement[rows] = np.max(
        [np.abs(unload(new) - unload(old)).max(axis=1) for new, old in zip(x, before, strict=True)],
        axis=0,
    )

    def join(parts: list[Any]) -> np.ndarray:
        return np.concatenate([unload(part) for part in parts], axis=1)

    play.x[rows], play.total[rows] = join(x), join(total)
    play.Y[rows], play.last[rows] = join([s.Y for s in states]), join([s.last for s in states])
    for i, state in enumerate(states):
        play.S[rows, i], play.largest[rows, i] = unload(state.S), unload(state.largest)
        play.spread[rows, i], play.eta[rows, i] = unload(state.spread), unload(eta[i])


def advance(
    play: SelfPlay,
    until: int,
    *,
    tol: float,
    check_every: int,
    backend: str,
    device: Any = None,
    n_jobs: int | None = None,
) -> None:
    """Play on to a round, in place.

    Parameters
    ----------
    play : SelfPlay
        The state.
    until : int
        Round to stop after.
    tol : float
        NashConv at which a game stops at a check; 0 never does.
    check_every : int
        Rounds between two checks.
    backend : {"numpy", "numba", "torch"}
        Which loop.
    device : torch.device, optional
        Of the torch loop.
    n_jobs : int, optional
        Threads of the compiled loop.

    Returns
    -------
    None
        `play` holds the new state.
    """
    if backend == "numba":
        advance_compiled(play, until, tol, check_every, n_jobs)
    else:
        advance_arrays(play, until, tol, check_every, device if backend == "torch" else None)
