"""The latent model fitted to a table of counts, without trials."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .attributes import counted_attributes
from .latent import fit_cells
from .model import HumanAITeamModel

__all__ = ["fit_from_counts"]


def fit_from_counts(
    human_alone: Sequence[float],
    team_by_ai: ArrayLike,
    *,
    n_choices: int = 2,
    overlap: str | float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> HumanAITeamModel:
    """Fit the latent model to counts of right and wrong decisions.

    Parameters
    ----------
    human_alone : (right, n)
        Decisions without the AI: how many were right, of how many.
    team_by_ai : array-like of shape (n_systems, 4)
        For each AI system the counts [n11, n10, n01, n00] of decisions with its advice; the first
        digit says whether the team was right, the second whether the AI was.
    n_choices : int, default=2
        Number K of alternatives. With more than two, the capabilities are d of each side.
    overlap : "fit" or float in (-1, 1), optional
        Correlation of the noises of human and AI for one alternative: estimated, or known. None is
        "fit" for two alternatives and 0 for more, where estimating it takes seconds (sums over
        Sobol points, to about 1e-4).
    random_state : int, RandomState or None, default=None
        Seed of the draws behind `recommend_policy`.

    Returns
    -------
    HumanAITeamModel
        Fitted in latent mode with binary advice; `goodness_of_fit_` tests it where there are more
        counts than parameters: more than one system, or a known overlap.

    Raises
    ------
    ValueError
        If counts are negative or empty, the human alone isn't above chance, or `overlap` isn't
        allowed.

    Notes
    -----
    Items that differ in difficulty make human and AI err together, which raises the overlap and
    biases trust. With two alternatives and a human near chance every positive trust means
    following the AI; use the true number of alternatives.

    Examples
    --------
    >>> from equipoise.estimators import fit_from_counts
    >>> model = fit_from_counts((6554, 10000), [[6874, 504, 1286, 1336]])
    >>> print(f"{model.trust_:.2f} {model.overlap_:.2f}")
    0.25 0.35
    """
    model = HumanAITeamModel(
        mode="latent",
        recommendation="binary",
        n_choices=n_choices,
        random_state=random_state,
    )
    model._validate_params()
    fixed = (None if n_choices == 2 else 0.0) if overlap is None else overlap
    if isinstance(fixed, str):
        if fixed != "fit":
            raise ValueError(f"overlap: got {overlap!r}; allowed: 'fit', a number in (-1, 1), None")
        fixed = None
    elif fixed is not None and not -1 < fixed < 1:
        raise ValueError(f"overlap: got {overlap!r}; allowed: 'fit', a number in (-1, 1), None")
    latent = fit_cells(human_alone, team_by_ai, n_choices, overlap=fixed)
    if overlap is None and n_choices > 2:
        latent = replace(latent, overlap=np.nan)  # taken as zero, not learned
    total = float(human_alone[1]) + float(np.sum(np.asarray(team_by_ai, dtype=float)))
    systems = np.full(len(latent.ai), np.nan)
    learned = counted_attributes(latent, systems, total, random_state, model.n_boot)
    model.__dict__.update(learned)
    model.classes_ = np.array([0, 1])
    model.n_features_in_ = 2
    model._columns = (0, 1, [])
    return model
