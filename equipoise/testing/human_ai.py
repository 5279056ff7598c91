"""Hypothesis strategies for human-AI decisions: deployments and tables of trials."""

from typing import Any

import numpy as np

__all__ = ["decision_trials", "deployments"]


def deployments(
    *, overlap_kind: str = "correlation", max_capability: float = 3.0, max_trust: float = 4.0
) -> Any:
    """Draw deployments of an AI: capabilities, overlap and trust.

    Parameters
    ----------
    overlap_kind : {"correlation", "cue"}, default="correlation"
        Whether overlaps lie in (-1, 1) or in [0, 1].
    max_capability : float, default=3.0
        Largest h and a; the smallest is 0.05.
    max_trust : float, default=4.0
        Largest trust; the smallest is 0.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of tuples (h, a, overlap, trust).

    Examples
    --------
    >>> from hypothesis import find
    >>> from equipoise.testing import deployments
    >>> h, a, overlap, trust = find(deployments(), lambda point: point[1] > point[0])
    >>> bool(a > h)
    True
    """
    from hypothesis import strategies as st

    low, high = (-0.95, 0.95) if overlap_kind == "correlation" else (0.0, 1.0)
    capability = st.floats(0.05, max_capability)
    return st.tuples(capability, capability, st.floats(low, high), st.floats(0.0, max_trust))


def decision_trials(*, min_trials: int = 40, max_trials: int = 120) -> Any:
    """Draw tables of decisions that aren't separated by the evidence.

    Parameters
    ----------
    min_trials, max_trials : int, default=40, 120
        Number of trials.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of tuples (X, y): log-odds of human and AI of shape (n, 2), and decisions 0 or 1, drawn
        from the worker's rule with trust between 0.2 and 2; the first four trials contradict
        each other, so that a finite maximum exists.

    Examples
    --------
    >>> from hypothesis import find
    >>> from equipoise.testing import decision_trials
    >>> X, y = find(decision_trials(min_trials=40), lambda trials: True)
    >>> X.shape[1], sorted(set(y.tolist()))
    (2, [0, 1])
    """
    from hypothesis import strategies as st

    def build(seed: int, n: int, trust: float) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.RandomState(seed)
        X = rng.normal(scale=1.2, size=(n, 2))
        y = (X[:, 0] + trust * X[:, 1] + rng.logistic(size=n) > 0).astype(int)
        X[:4] = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
        y[:4] = [0, 0, 1, 1]
        return X, y

    return st.builds(
        build,
        st.integers(0, 2**31 - 1),
        st.integers(min_trials, max_trials),
        st.floats(0.2, 2.0),
    )
