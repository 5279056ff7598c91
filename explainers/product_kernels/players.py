"""Players: features, or groups of features that act as one."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["feature_names_of", "player_groups"]


def feature_names_of(X: Any, n_features: int) -> list[str]:
    """Return the names of a frame's columns, x0, x1, ... for anything else."""
    names = getattr(X, "columns", None)
    return [f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names]


def index_of(member: Any) -> int:
    """Check a feature's position."""
    if isinstance(member, bool) or not isinstance(member, Integral):
        raise ValueError(f"groups holds {member!r}; a feature is given by its position or name")
    return int(member)


def player_groups(
    groups: Any, n_features: int, feature_names: Sequence[str]
) -> tuple[np.ndarray, list[str]]:
    """Number the players.

    Parameters
    ----------
    groups : None, list of lists, or dict of name to list
        Features of each player, by position or by name; None makes each feature a player.
    n_features : int
        Number of features.
    feature_names : sequence of str
        Their names.

    Returns
    -------
    player : ndarray of shape (n_features,)
        Which player a feature belongs to.
    names : list of str
        The players' names.

    Raises
    ------
    ValueError
        If the groups aren't a partition of the features, each named by position or name.
    """
    if groups is None:
        return np.arange(n_features), list(feature_names)
    position = {name: j for j, name in enumerate(feature_names)}
    members = groups.values() if isinstance(groups, dict) else groups
    player = np.full(n_features, -1)
    labels: list[str] = []
    for g, group in enumerate(members):
        columns = [position.get(c, -1) if isinstance(c, str) else index_of(c) for c in group]
        if not columns:
            raise ValueError("groups holds an empty group; every player needs a feature")
        for name, j in zip(group, columns, strict=True):
            if not 0 <= j < n_features:
                raise ValueError(f"groups holds {name!r}, none of the {n_features} features")
            if player[j] >= 0:
                raise ValueError(f"groups holds feature {feature_names[j]!r} twice")
            player[j] = g
        labels.append("+".join(str(feature_names[j]) for j in columns))
    left = [str(feature_names[j]) for j in np.flatnonzero(player < 0).tolist()]
    if left:
        raise ValueError(f"groups must hold every feature once; missing: {left}")
    return player, [str(name) for name in groups] if isinstance(groups, dict) else labels
