"""Meta-games from other places: Axelrod tournaments and simulators of one's own."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from equipoise.blocks import map_blocks
from equipoise.imports import optional_import

__all__ = ["axelrod_matches", "simulated_matches"]


def axelrod_matches(
    players: Sequence[Any], turns: int, repetitions: int, noise: float, game: Any, seed: int
) -> pd.DataFrame:
    """Play every ordered pair of strategies; a wide log with payoffs per turn.

    Match k of the pair (i, j) has the seed `seed` + 1,000,000 k + 1000 i + j.
    """
    axl = optional_import("axelrod", "games")
    rows = []
    for i, j in product(range(len(players)), repeat=2):
        for k in range(repetitions):
            pair = (players[i].clone(), players[j].clone())
            match = axl.Match(
                pair, turns=turns, noise=noise, game=game, seed=seed + 1_000_000 * k + 1000 * i + j
            )
            match.play()
            rows.append((str(players[i]), str(players[j]), *match.final_score_per_turn()))
    return pd.DataFrame(
        rows, columns=["design_row", "design_column", "payoff_row", "payoff_column"]
    )


def simulated_matches(
    f: Callable[..., Any],
    designs: Sequence[Sequence[Any]],
    repetitions: int,
    n_jobs: int | None,
    seed: int,
) -> dict[tuple[Any, ...], np.ndarray]:
    """Payoffs (repetitions, n) of f(profile, rng) for each profile, in any order of work."""
    profiles = list(product(*designs))
    seeds = np.random.SeedSequence(seed).spawn(len(profiles))

    def play(k: int) -> np.ndarray:
        rng = np.random.default_rng(seeds[k])
        return np.array([f(profiles[k], rng) for _ in range(repetitions)], dtype=float)

    blocks = map_blocks(play, range(len(profiles)), n_jobs)
    return dict(zip(profiles, blocks, strict=True))
