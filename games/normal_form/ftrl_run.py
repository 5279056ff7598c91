"""A run of FTRL+: play from record to record, with a progress bar, a callback, and Ctrl-C."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .ftrl_state import SelfPlay, advance
from .game import NormalFormGame
from .harmonic import HarmonicGame

__all__ = ["play_and_record", "stack_payoffs"]


def stack_payoffs(games: Sequence[NormalFormGame]) -> np.ndarray:
    """Return the payoffs of all games, shape (B, n, M)."""
    if len(games) == 1:
        return games[0].payoffs.reshape(1, games[0].n_players, -1)
    return np.stack([g.payoffs.reshape(g.n_players, -1) for g in games])


def snapshot_rounds(first: int, last: int, record: Any) -> list[int]:
    """Return the rounds from `first` to `last` at which play is recorded."""
    if record is None or record == 1:
        return [last]
    if record == "all":
        return list(range(first, last + 1))
    return np.unique(np.geomspace(first, last, int(record)).round().astype(int)).tolist()


def known_centers(
    games: Sequence[NormalFormGame],
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Return the masses (B, n) and centres (B, d_i), or None if a game's measure isn't known."""
    harmonic = [g for g in games if isinstance(g, HarmonicGame)]
    if len(harmonic) < len(games):
        return None
    centers = [g.center for g in harmonic]
    return np.stack([g.masses for g in harmonic]), [np.stack(q) for q in zip(*centers, strict=True)]


def snapshot(play: SelfPlay, centre: tuple[np.ndarray, list[np.ndarray]] | None) -> dict[str, Any]:
    """Return copies of what is recorded of a round."""
    return {
        "round": int(play.rounds.max()),
        "x": play.x.copy(),
        "regret": play.regret(),
        "bound": play.bound(),
        "gap": play.gap.copy(),
        "eta": play.eta.copy(),
        "energy": None if centre is None else play.energy(*centre),
    }


def progress_of(play: SelfPlay) -> dict[str, Any]:
    """Return what a callback is told."""
    single = len(play.rounds) == 1
    return {
        "n_iter": int(play.rounds.max()),
        "nash_gap": float(play.gap.max()),
        "strategies": [x[0].copy() if single else x.copy() for x in play.split(play.x)],
    }


def play_and_record(
    play: SelfPlay,
    games: Sequence[NormalFormGame],
    last: int,
    *,
    record: Any,
    callback: Callable[[dict[str, Any]], Any] | None,
    verbose: Any,
    **options: Any,
) -> list[dict[str, Any]]:
    """Play to round `last` in place, and return the records.

    Parameters
    ----------
    play : SelfPlay
        The state.
    games : sequence of NormalFormGame
        What is played; harmonic ones have an energy.
    last : int
        Round to stop after.
    record, callback, verbose
        As for `FTRLPlus`.
    **options
        For `advance`.

    Returns
    -------
    list of dict
        One for each recorded round. Ctrl-C keeps those there are.
    """
    centre = known_centers(games)
    first = int(play.rounds.max())
    records: list[dict[str, Any]] = []
    bar = None
    if verbose:
        from tqdm.auto import tqdm

        bar = tqdm(total=last, initial=first, desc="FTRLPlus", unit="round")
    try:
        for until in snapshot_rounds(first + 1, last, record):
            advance(play, until, **options)
            records.append(snapshot(play, centre))
            if bar is not None:
                bar.update(int(play.rounds.max()) - bar.n)
                bar.set_postfix(gap=f"{float(play.gap.max()):.2g}")
            if play.stopped.all() or (callback is not None and callback(progress_of(play))):
                break
    except KeyboardInterrupt:
        if not records:
            if int(play.rounds.max()) == first:
                raise
            records.append(snapshot(play, centre))
        warnings.warn("interrupted: the result is that of the rounds played so far", stacklevel=4)
    finally:
        if bar is not None:
            bar.close()
    return records
