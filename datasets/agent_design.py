"""Meta-games of agents: logs with known payoffs, tournaments, measured payoffs of LLM agents."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch, check_random_state

from equipoise.imports import optional_import

from ..games.agent_design import AgentDesignGame

__all__ = [
    "load_axelrod_metagame",
    "load_coopeval",
    "load_glee",
    "load_llm_attitudes",
    "make_agent_design_matches",
]

Array = np.ndarray

TWO_BY_TWO = {
    "prisoners": (("cooperate", "defect"), [[3.0, 0.0], [5.0, 1.0]]),
    "chicken": (("swerve", "dare"), [[6.0, 2.0], [7.0, 0.0]]),
}
KINDS = ("prisoners", "coordination", "chicken", "public_goods", "random")

ATTITUDES = ("Aggressive", "Cooperative", "Neutral")
#: Payoff per turn of the row attitude, as published (see `load_llm_attitudes`).
ATTITUDE_TABLES = {
    "openai_default": [
        [1.814413, 2.092096, 2.260272],
        [1.551088, 2.995904, 2.985418],
        [1.549859, 2.987962, 2.990456],
    ],
    "anthropic_default": [
        [1.561574, 1.418221, 1.440574],
        [1.411954, 2.985736, 2.981508],
        [1.470078, 2.984955, 2.981726],
    ],
    "anthropic_prose_noise": [
        [2.187751, 2.424465, 2.348284],
        [2.191457, 2.511341, 2.458578],
        [2.223556, 2.531519, 2.481476],
    ],
    "openai_prose_noise": [
        [1.939248, 2.532216, 2.447630],
        [2.090323, 2.737428, 2.670277],
        [2.079196, 2.712800, 2.646573],
    ],
}
ATTITUDE_DESCR = """Payoffs of agents written by language models under three attitudes.

Models wrote strategies for an iterated prisoner's dilemma under an aggressive, a cooperative and a
neutral attitude; entry (r, c) is the mean payoff per turn (3, 0, 5, 1) of attitude r against c.
"default" and "prose" are two ways of prompting, "noise" flips 10% of the moves.

Source: R. Willis, Y. Du, J. Leibo, M. Luck, "Will systems of LLM agents cooperate: an investigation
into a social dilemma", 2025 (arXiv 2501.16173), published results. Licence: MIT.
"""


def levels(designs: tuple[str, str], n_designs: int) -> tuple[tuple[str, ...], Array]:
    """Names and shares of the first design, from 1 down to 0."""
    share = np.linspace(1.0, 0.0, n_designs)
    if n_designs == 2:
        return designs, share
    return tuple(f"{designs[0]} {s:.0%}" for s in share), share


def true_payoffs(
    kind: str, n: int, d: int, rng: np.random.RandomState
) -> tuple[tuple[str, ...], Array]:
    """Names of the designs and payoffs of shape (n, d, ..., d)."""
    index = np.indices((d,) * n)
    if kind == "random":
        return tuple(f"design {k}" for k in range(d)), rng.normal(size=(n, *(d,) * n))
    if kind == "coordination":
        same = (index == index[:1]).all(axis=0)
        u = np.where(same, 1.0 + index[0], 0.0)
        return tuple(f"standard {k}" for k in range(d)), np.stack([u] * n)
    if kind == "public_goods":
        names, share = levels(("contribute", "keep"), d)
        given = share[index]
        return names, 1.0 + 2.0 * given.sum(axis=0) / n - given
    designs, table = TWO_BY_TWO[kind]
    names, share = levels(designs, d)
    corner = np.stack([share, 1.0 - share], axis=1)
    M = corner @ np.array(table) @ corner.T
    u = np.stack(
        [np.mean([M[index[i], index[j]] for j in range(n) if j != i], axis=0) for i in range(n)]
    )
    return names, u


def make_agent_design_matches(
    kind: str = "prisoners",
    n_stakeholders: int = 2,
    n_designs: int = 3,
    n_matches: int = 30,
    noise: float = 1.0,
    random_state: Any = None,
) -> pd.DataFrame:
    """Draw a log of matches between agents, with known mean payoffs.

    Parameters
    ----------
    kind : {"prisoners", "coordination", "chicken", "public_goods", "random"}, default="prisoners"
        The first, third and fourth have designs between two extremes; with more than two
        stakeholders a dilemma's payoff is the mean over the others. "random" is Gaussian.
    n_stakeholders, n_designs : int, default=2, 3
        At least 2 stakeholders, with equally many designs, at least 2 each.
    n_matches : int, default=30
        Matches of each profile.
    noise : float, default=1.0
        Standard deviation of a payoff in a match.
    random_state : int, RandomState or None, default=None
        For payoffs of "random" and for the noise.

    Returns
    -------
    pandas.DataFrame
        Long: match_id, stakeholder, design, payoff. ``attrs["payoffs"]`` holds the true payoffs as
        nested lists of shape (n, d, ..., d), ``attrs["designs"]`` the names in that order.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from equipoise.datasets import make_agent_design_matches
    >>> matches = make_agent_design_matches("chicken", n_designs=2, n_matches=1, noise=0.0)
    >>> matches.head(2).values.tolist()
    [[0, 'stakeholder 0', 'swerve', 6.0], [0, 'stakeholder 1', 'swerve', 6.0]]
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known; allowed: {', '.join(map(repr, KINDS))}")
    for name, value, least in [
        ("n_stakeholders", n_stakeholders, 2),
        ("n_designs", n_designs, 2),
        ("n_matches", n_matches, 1),
    ]:
        if not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name}={value!r} must be an integer of at least {least}")
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise={noise!r} must be finite and not negative")
    rng = check_random_state(random_state)
    names, u = true_payoffs(kind, n_stakeholders, n_designs, rng)
    M = n_designs**n_stakeholders
    profiles = np.stack(np.unravel_index(np.arange(M), u.shape[1:]), axis=1)
    choices = np.repeat(profiles, n_matches, axis=0)
    mean = np.repeat(u.reshape(n_stakeholders, M).T, n_matches, axis=0)
    payoffs = mean + noise * rng.normal(size=mean.shape)
    G = len(choices)
    frame = pd.DataFrame(
        {
            "match_id": np.repeat(np.arange(G), n_stakeholders),
            "stakeholder": np.tile([f"stakeholder {i}" for i in range(n_stakeholders)], G),
            "design": np.array(names, dtype=object)[choices.ravel()],
            "payoff": payoffs.ravel(),
        }
    )
    frame.attrs = {"payoffs": u.tolist(), "designs": list(names)}
    return frame


def load_axelrod_metagame(
    strategies: Sequence[str] = (
        "Cooperator",
        "Defector",
        "TitForTat",
        "Grudger",
        "WinStayLoseShift",
    ),
    turns: int = 100,
    repetitions: int = 20,
    noise: float = 0.0,
    seed: int = 0,
) -> AgentDesignGame:
    """Play a tournament of the `axelrod` package and make a meta-game of it.

    Parameters
    ----------
    strategies : sequence of str
        Names of classes of `axelrod`.
    turns, repetitions : int, default=100, 20
        Length of a match, and matches of each ordered pair.
    noise : float, default=0.0
        Probability that a move is flipped.
    seed : int, default=0
        Every match has its own, derived from this one.

    Returns
    -------
    AgentDesignGame
        Fitted, roles pooled, payoffs per turn.

    Raises
    ------
    ImportError
        If `axelrod` isn't installed.
    ValueError
        If a strategy isn't known.

    Examples
    --------
    >>> from equipoise.datasets import load_axelrod_metagame
    >>> game = load_axelrod_metagame(repetitions=1)  # doctest: +SKIP
    """
    axl = optional_import("axelrod", "games")
    if unknown := [name for name in strategies if not hasattr(axl, name)]:
        raise ValueError(f"axelrod has no strategies {unknown[:10]}")
    players = [getattr(axl, name)() for name in strategies]
    return AgentDesignGame.from_axelrod(players, turns, repetitions, noise, seed=seed)


def load_llm_attitudes() -> Bunch:
    """Load payoffs between agents that language models wrote under three attitudes.

    Returns
    -------
    Bunch
        `payoffs`: dict from table to the row's payoffs, (3, 3); `games`: dict from table to the
        symmetric `AgentDesignGame`; `designs`: the attitudes; `DESCR`: source and licence.

    References
    ----------
    .. [1] R. Willis, Y. Du, J. Leibo, M. Luck, "Will systems of LLM agents cooperate: an
       investigation into a social dilemma", 2025.

    Examples
    --------
    >>> from equipoise.datasets import load_llm_attitudes
    >>> game = load_llm_attitudes().games["openai_default"]
    >>> round(game.equilibria("pure").price_of_anarchy_, 4)
    1.6512
    """
    payoffs = {name: np.array(table) for name, table in ATTITUDE_TABLES.items()}
    games = {
        name: AgentDesignGame.from_payoffs(
            np.array([M, M.T]), designs=[ATTITUDES] * 2, stakeholders=["row", "column"]
        )
        for name, M in payoffs.items()
    }
    return Bunch(payoffs=payoffs, games=games, designs=ATTITUDES, DESCR=ATTITUDE_DESCR)


def bargaining_payoffs(folder: Path, settings: dict[str, Any]) -> tuple[float, float]:
    """Discounted gains of a game's accepted offer; nothing without an agreement."""
    log = pd.read_csv(folder / "game.csv")
    decision = log["decision"].astype(str).str.lower()
    if not (decision == "accept").any():
        return 0.0, 0.0
    end = int(np.flatnonzero(decision == "accept")[0])
    offers = log.iloc[: end + 1]
    offers = offers[offers["alice_gain"].notna()]
    if offers.empty:
        raise ValueError(f"{folder / 'game.csv'}: an offer was accepted that isn't in the file")
    offer = offers.iloc[-1]
    rounds = int(offer["round"]) - 1
    return (
        float(offer["alice_gain"]) * float(settings["delta_1"]) ** rounds,
        float(offer["bob_gain"]) * float(settings["delta_2"]) ** rounds,
    )


def load_glee(path: Any) -> Bunch:
    """Read the bargaining games of a local copy of GLEE.

    Parameters
    ----------
    path : str or Path
        A folder; every sub-folder with a file config.json is a game.

    Returns
    -------
    Bunch
        `matches`: a wide log with design_alice, design_bob, payoff_alice, payoff_bob (discounted
        gains; 0 without agreement) and state (the market's setting); `n_skipped`: games without a
        file game.csv, `n_other`: games of other types.

    Raises
    ------
    FileNotFoundError
        If there is no game in the folder.

    References
    ----------
    .. [1] E. Shapira et al., "GLEE: a unified framework and benchmark for language-based economic
       environments", 2024.

    Examples
    --------
    >>> from equipoise.datasets import load_glee
    >>> matches = load_glee("glee").matches  # doctest: +SKIP
    """
    files = sorted(Path(path).rglob("config.json"))
    if not files:
        raise FileNotFoundError(f"path={str(path)!r} holds no game (no file config.json)")
    rows, skipped, other = [], 0, 0
    for file in files:
        config = json.loads(file.read_text())
        settings = config.get("game_args", {})
        if config.get("game_type") != "bargaining":
            other += 1
        elif not (file.parent / "game.csv").exists():
            skipped += 1
        else:
            names = ("delta_1", "delta_2", "max_rounds", "complete_information", "money_to_divide")
            state = ", ".join(f"{name}={settings[name]}" for name in names if name in settings)
            players = [config[f"player_{k}_args"]["model_name"] for k in (1, 2)]
            rows.append((*players, *bargaining_payoffs(file.parent, settings), state))
    columns = ["design_alice", "design_bob", "payoff_alice", "payoff_bob", "state"]
    return Bunch(matches=pd.DataFrame(rows, columns=columns), n_skipped=skipped, n_other=other)


def load_coopeval(path: Any) -> pd.DataFrame:
    """Read the matches of a local copy of one of CoopEval's result files.

    Parameters
    ----------
    path : str or Path
        A file matchup_payoffs.json of a two-player game.

    Returns
    -------
    pandas.DataFrame
        A wide log with design_0, design_1, payoff_0, payoff_1; one row a match, payoffs averaged
        over its rounds.

    Raises
    ------
    ValueError
        If the file doesn't hold two-player matches.

    References
    ----------
    .. [1] E. Tewolde et al., "CoopEval", 2026.

    Examples
    --------
    >>> from equipoise.datasets import load_coopeval
    >>> matches = load_coopeval("matchup_payoffs.json")  # doctest: +SKIP
    """
    content = json.loads(Path(path).read_text())
    if not isinstance(content, dict) or "profile" not in content:
        raise ValueError(f"path={str(path)!r} holds no key 'profile'")
    rows = []
    for entry in content["profile"]:
        designs = [f"{p['llm']['model']} {p['type']}" for p in entry["players"]]
        matches = entry["payoffs"]
        for rounds in matches.values() if isinstance(matches, dict) else matches:
            table = list(rounds.values()) if isinstance(rounds, dict) else list(rounds)
            payoffs = np.array(table, dtype=float)
            if payoffs.ndim != 2 or payoffs.shape[1] != 2 or len(designs) != 2:
                raise ValueError(f"path={str(path)!r}: a match has payoffs {payoffs.shape}")
            rows.append((*designs, *payoffs.mean(axis=0)))
    return pd.DataFrame(rows, columns=["design_0", "design_1", "payoff_0", "payoff_1"])
