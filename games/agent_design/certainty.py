"""How sure an estimated meta-game is: certificates, the bootstrap, which matches to play next."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .cells import Cells
from .certificates import Certificate
from .deviations import pure_equilibria, regrets
from .missing import additive_payoffs
from .queries import MetaGameQueries
from .uncertainty import bootstrap_tables, difference_bounds, match_values

__all__ = ["MetaGameCertainty"]

Array = np.ndarray


class MetaGameCertainty(MetaGameQueries):
    """The part of `AgentDesignGame` that knows of standard errors and single matches."""

    confidence: float
    random_state: Any
    prior_: Array
    imputed_: Array
    _cells: Cells | None

    def certify_nash(
        self, profile: Any, eps: float = 0.0, alpha: float | None = None
    ) -> Certificate:
        """Whether a profile is an eps-equilibrium of the true game, at a confidence level.

        Parameters
        ----------
        profile : sequence of length n
            Designs or their indices.
        eps : float, default=0.0
            How much a stakeholder may gain by deviating.
        alpha : float, optional
            Probability of a wrong certificate; None is 1 - `confidence`.

        Returns
        -------
        Certificate
            `max_violation` is the upper bound of the largest gain, by Welch's bounds with
            Bonferroni over all deviations; `ok` if it is at most eps.
        """
        z = self.profile_index(profile)
        level = 1 - self.confidence if alpha is None else alpha
        if not 0 < level < 1:
            raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
        bounds = difference_bounds(self.payoffs_, self.stderr_, self.counts_, z, level)
        found = [
            (float(bound[b]), (i, b))
            for i, bound in enumerate(bounds)
            for b in range(len(bound))
            if b != z[i]
        ]
        worst, deviation = max(found, key=lambda pair: pair[0], default=(0.0, ()))
        return Certificate(bool(worst <= eps), worst, deviation, eps)

    def bootstrap(self, n: int = 500) -> Iterator[Array]:
        """Payoffs estimated from matches drawn anew within each cell.

        Parameters
        ----------
        n : int, default=500
            Number of replicates.

        Yields
        ------
        ndarray of shape (n_replicates, n, d_0, ..., d_{n-1})
            Replicates, as many at a time as fit in memory. Cells with one match stay as they are,
            which a warning says; with states, the mean over them.

        Raises
        ------
        ValueError
            If the game was made of payoffs: there are no matches to draw from.
        """
        check_is_fitted(self, "payoffs_")
        if self._cells is None:
            raise ValueError("this game was made of payoffs; the bootstrap needs matches")
        if (self._cells.sizes == 1).any():
            warnings.warn(
                f"{int((self._cells.sizes == 1).sum())} cells have one match: the bootstrap can't "
                "vary them, and its intervals are too narrow",
                UserWarning,
                stacklevel=2,
            )
        shape = self.counts_.shape
        for table in bootstrap_tables(self._cells, n, self.random_state):
            tensors = self._cells.tensor(table, shape)  # (k, S, n, ...)
            tensors = np.einsum("ks...,s->k...", tensors, self.prior_)
            if self.imputed_.any():
                tensors = np.stack([additive_payoffs(u) for u in tensors])
            yield tensors

    def suggest_matches(self, k: int = 5) -> pd.DataFrame:
        """Which profiles to play next, so that the reported equilibria become surer.

        Parameters
        ----------
        k : int, default=5
            How many.

        Returns
        -------
        pandas.DataFrame
            Designs, matches so far and value (its order is what counts), best first. Without a pure
            equilibrium the profile of least regret is taken for one.
        """
        check_is_fitted(self, "payoffs_")
        if (self.counts_ == 0).all():
            raise ValueError("this game was made of payoffs without counts")
        mask = pure_equilibria(self.payoffs_)
        if not mask.any():
            worst = regrets(self.payoffs_).max(axis=0)
            mask = worst == worst.min()
        value = match_values(
            self.payoffs_, self.stderr_, np.maximum(self.counts_, 0.5), np.argwhere(mask)
        )
        order = np.argsort(-value, axis=None, kind="stable")[:k]
        places = np.stack(np.unravel_index(order, value.shape), axis=1)
        frame = pd.DataFrame(
            [self.profile_names(p) for p in places], columns=[str(s) for s in self.stakeholders_]
        )
        frame["matches"] = self.counts_.ravel()[order]
        frame["value"] = value.ravel()[order]
        return frame
