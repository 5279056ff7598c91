"""From a log of matches to arrays: who deployed which design in each match, and what each got.

A log is long (a row a stakeholder and match), wide (a row a match), or a mapping from a profile to
the payoffs of its matches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["MatchLog", "read_matches", "recoded"]

Array = np.ndarray
SHOWN = 10


@dataclass(frozen=True)
class MatchLog:
    """A log as arrays.

    Attributes
    ----------
    choices : ndarray of shape (n_matches, n), int64
        Design of each stakeholder.
    payoffs : ndarray of shape (n_matches, n)
        What each got.
    weights : ndarray of shape (n_matches,)
        How often a match counts.
    states : ndarray of shape (n_matches,), int64
        State of the world.
    designs : tuple of tuple
        Each stakeholder's designs.
    stakeholders, state_names : tuple
        Names.
    """

    choices: Array
    payoffs: Array
    weights: Array
    states: Array
    designs: tuple[tuple[Any, ...], ...]
    stakeholders: tuple[Any, ...]
    state_names: tuple[Any, ...]


def as_frame(matches: Any) -> pd.DataFrame:
    """A pandas frame of a pandas or polars frame."""
    if isinstance(matches, pd.DataFrame):
        return matches
    if hasattr(matches, "to_dict") and hasattr(matches, "columns"):
        return pd.DataFrame({name: matches[name].to_list() for name in matches.columns})
    raise TypeError(
        f"matches must be a DataFrame (long or wide) or a dict, got {type(matches).__name__}"
    )


def finite(values: Any, name: str) -> Array:
    """Numbers as float64, refused where one isn't finite."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array.ravel()))[0])
        raise ValueError(f"{name} holds NaN or infinity (first at position {bad}); allowed: finite")
    return array


def recoded(codes: Array, n_names: int) -> tuple[Array, Array]:
    """The codes that occur, ascending, and each code's place among them (no sorting)."""
    used = np.flatnonzero(np.bincount(codes, minlength=n_names))
    place = np.empty(n_names, dtype=np.int64)
    place[used] = np.arange(len(used))
    return used, place[codes]


def positive(values: Any) -> Array:
    weights = finite(values, "weight")
    if not (weights > 0).all():
        raise ValueError(f"weight={weights.min()!r} must be positive")
    return weights


def factorised(values: Any, name: str) -> tuple[Array, tuple[Any, ...]]:
    """Codes and distinct values in order of first appearance."""
    codes, names = pd.factorize(values)
    if (codes < 0).any():
        raise ValueError(f"{name} holds missing values (first in row {int(codes.argmin())})")
    return codes.astype(np.int64), tuple(names)


def first_of_match(values: Any, match: Array, n_matches: int, name: str) -> Any:
    """The value that all rows of a match share."""
    series = pd.Series(np.asarray(values))
    if series.isna().any():
        raise ValueError(f"{name} holds missing values")
    grouped = series.groupby(match)
    if int(grouped.nunique().max()) > 1:
        raise ValueError(f"{name} differs between the rows of one match")
    return grouped.first().to_numpy()[:n_matches]


def averaged_over_time(frame: pd.DataFrame, who: str, payoffs: Array) -> tuple[pd.DataFrame, Array]:
    """One row a stakeholder and match, with the mean of his payoffs over the match's times.

    Rounds of one match aren't independent, so they count as one observation.
    """
    keys = ["match_id", who]
    frame = frame.reset_index(drop=True)
    for name in (*keys, "time"):
        if frame[name].isna().any():
            raise ValueError(f"{name} holds missing values")
    if frame.duplicated([*keys, "time"]).any():
        k = int(frame.duplicated([*keys, "time"]).to_numpy().argmax())
        found = frame[[*keys, "time"]].iloc[k].tolist()
        raise ValueError(f"a {who} appears twice at one time of a match: {found}")
    same = frame.groupby(keys, sort=False)
    once = ["design", *(name for name in ("weight", "state") if name in frame)]
    for name in once:
        if int(same[name].nunique(dropna=False).max()) > 1:
            raise ValueError(f"{name} differs between the times of one match")
    played = frame.groupby("match_id")["time"].nunique()
    rows = same.size()
    if (rows.to_numpy() != played.loc[rows.index.get_level_values(0)].to_numpy()).any():
        raise ValueError(
            "time numbers the rounds of a match: its stakeholders need payoffs at the same times"
        )
    mean = pd.Series(payoffs).groupby([frame[k] for k in keys], sort=False).mean()
    return same[once].first().reset_index(), mean.to_numpy()


def read_long(frame: pd.DataFrame) -> MatchLog:
    """A row a stakeholder and match."""
    who = "stakeholder" if "stakeholder" in frame else "role"
    payoffs = finite(frame["payoff"], "payoff")
    if "time" in frame:
        frame, payoffs = averaged_over_time(frame, who, payoffs)
    match, match_ids = factorised(frame["match_id"], "match_id")
    player, stakeholders = factorised(frame[who], who)
    n, G = len(stakeholders), len(match_ids)
    place = match * n + player
    seen = np.bincount(place, minlength=G * n)
    if (seen > 1).any():
        ids = [match_ids[k] for k in np.unique(np.flatnonzero(seen > 1) // n)[:SHOWN]]
        raise ValueError(f"a {who} appears twice in the matches {ids}")
    if (seen == 0).any():
        ids = [match_ids[k] for k in np.unique(np.flatnonzero(seen == 0) // n)[:SHOWN]]
        raise ValueError(f"every match needs each of {list(stakeholders)}; not so in {ids}")
    row = np.empty((G, n), dtype=np.int64)
    row.ravel()[place] = np.arange(len(frame))
    codes, names = factorised(frame["design"], "design")
    choices, designs = [], []
    for i in range(n):
        used, own = recoded(codes[row[:, i]], len(names))
        choices.append(own)
        designs.append(tuple(names[k] for k in used))
    weights, states, state_names = np.ones(G), np.zeros(G, dtype=np.int64), ("all",)
    if "weight" in frame:
        weights = positive(first_of_match(frame["weight"], match, G, "weight"))
    if "state" in frame:
        states, state_names = factorised(first_of_match(frame["state"], match, G, "state"), "state")
    return MatchLog(
        np.stack(choices, axis=1),
        payoffs[row],
        weights,
        states,
        tuple(designs),
        stakeholders,
        state_names,
    )


def read_wide(frame: pd.DataFrame) -> MatchLog:
    """A row a match, with columns design_<name> and payoff_<name>."""
    if "time" in frame:
        raise ValueError("a wide log has one row a match: a column 'time' needs the long layout")
    names = [str(c).removeprefix("design_") for c in frame if str(c).startswith("design_")]
    if missing := [f"payoff_{k}" for k in names if f"payoff_{k}" not in frame]:
        raise ValueError(f"matches lack the columns {missing}")
    payoffs = np.stack([finite(frame[f"payoff_{k}"], f"payoff_{k}") for k in names], axis=1)
    everything = pd.concat([frame[f"design_{k}"] for k in names], ignore_index=True)
    codes, design_names = factorised(everything, "design")
    choices, designs = [], []
    for own in codes.reshape(len(names), len(frame)):
        used, place = recoded(own, len(design_names))
        choices.append(place)
        designs.append(tuple(design_names[k] for k in used))
    G = len(frame)
    weights = positive(frame["weight"]) if "weight" in frame else np.ones(G)
    states, state_names = np.zeros(G, dtype=np.int64), ("all",)
    if "state" in frame:
        states, state_names = factorised(frame["state"], "state")
    return MatchLog(
        np.stack(choices, axis=1),
        payoffs,
        weights,
        states,
        tuple(designs),
        tuple(names),
        state_names,
    )


def read_mapping(matches: Mapping[Any, Any]) -> MatchLog:
    """Profiles and the payoffs (c, n) of their matches."""
    profiles, blocks = [], []
    for profile, values in matches.items():
        block = np.atleast_2d(finite(values, f"matches[{profile!r}]"))
        if not isinstance(profile, tuple) or block.ndim != 2 or block.shape[1] != len(profile):
            raise ValueError(
                f"matches[{profile!r}]: the key must be a tuple of n designs, the value an array "
                f"(c, n); got shape {block.shape}"
            )
        profiles.append(profile)
        blocks.append(block)
    if len({len(profile) for profile in profiles}) != 1:
        raise ValueError("matches: all profiles must have one length")
    counts = [len(block) for block in blocks]
    columns = {
        f"design_{i}": np.repeat(np.array([p[i] for p in profiles], dtype=object), counts)
        for i in range(len(profiles[0]))
    }
    payoffs = np.concatenate(blocks)
    columns |= {f"payoff_{i}": payoffs[:, i] for i in range(payoffs.shape[1])}
    return read_wide(pd.DataFrame(columns))


def read_matches(matches: Any, layout: str = "auto") -> MatchLog:
    """Read a log of matches.

    Parameters
    ----------
    matches : DataFrame or dict
        Long: columns match_id, stakeholder (or role), design, payoff; wide: design_<name> and
        payoff_<name>; both may have state and weight, a long one time too (rounds of a match,
        which are averaged). A dict maps profiles to arrays (c, n).
    layout : {"auto", "long", "wide"}, default="auto"
        "auto" takes "long" where there is a column match_id.

    Returns
    -------
    MatchLog
        The log as arrays.

    Raises
    ------
    TypeError
        If it is neither a frame nor a dict.
    ValueError
        If columns or stakeholders are missing or appear twice, or a value isn't finite.
    """
    if isinstance(matches, Mapping):
        if not matches:
            raise ValueError("matches is empty")
        return read_mapping(matches)
    frame = as_frame(matches)
    if frame.empty:
        raise ValueError("matches is empty")
    wide = any(str(column).startswith("design_") for column in frame)
    if layout == "wide" or (layout == "auto" and "match_id" not in frame and wide):
        if not wide:
            raise ValueError("a wide log needs columns design_<stakeholder>, payoff_<stakeholder>")
        return read_wide(frame)
    needed: Sequence[str] = ("match_id", "design", "payoff")
    if absent := [name for name in needed if name not in frame]:
        raise ValueError(f"matches lack the columns {absent}; a long log needs {list(needed)}")
    if "stakeholder" not in frame and "role" not in frame:
        raise ValueError("matches lack a column 'stakeholder' (or 'role')")
    return read_long(frame)
