"""How sure an estimated meta-game is: certificates, the bootstrap, which matches to play next."""

import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .cells import Cells
from .certificates import Certificate
from .deviations import implementation_costs, pure_equilibria, regrets
from .missing import filled_payoffs
from .queries import MetaGameQueries
from .uncertainty import bootstrap_tables, difference_bounds, match_values

__all__ = ["MetaGameCertainty", "percentile_row"]

Array = np.ndarray


def percentile_row(
    name: str, estimate: float, values: Array, confidence: float
) -> tuple[str, float, float, float, float]:
    """Name, estimate, ends of the percentile interval, and the share of values that are known."""
    known = values[~np.isnan(values)]
    tail = 50 * (1 - confidence)
    low, high = np.percentile(known, [tail, 100 - tail]) if known.size else (np.nan, np.nan)
    return name, float(estimate), float(low), float(high), known.size / len(values)


def price_rows(payoffs: Array, weights: Array, target: Any) -> tuple[Array, Array]:
    """Pure equilibria of a table, and six figures of it; NaN where one isn't defined.

    The best welfare, the worst and the best pure equilibrium's, prices of anarchy and stability,
    and the least subsidy for the profile `target`.
    """
    W = np.tensordot(weights, payoffs, axes=1)
    mask, top = pure_equilibria(payoffs), float(W.max())
    k = float(implementation_costs(payoffs)[target])
    if not mask.any():
        return mask, np.array([top, np.nan, np.nan, np.nan, np.nan, k])
    low, high = float(W[mask].min()), float(W[mask].max())
    prices = [top / low, top / high] if low > 0 else [np.nan, np.nan]
    return mask, np.array([top, low, high, *prices, k])


class MetaGameCertainty(MetaGameQueries):
    """The part of `AgentDesignGame` that knows of standard errors and single matches."""

    confidence: float
    random_state: Any
    missing: str
    payoff_bounds: Any
    prior_: Array
    imputed_: Array
    payoff_ends_: Array | None
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
            Bonferroni over all deviations; `ok` if it is at most eps. With missing="bounds" a
            profile without a match counts with the worse end.
        """
        z = self.profile_index(profile)
        level = self._level(alpha)
        bounds = difference_bounds(
            self.payoffs_, self.stderr_, self.counts_, z, level, self.payoff_ends_
        )
        found = [
            (float(bound[b]), (i, b))
            for i, bound in enumerate(bounds)
            for b in range(len(bound))
            if b != z[i]
        ]
        worst, deviation = max(found, key=lambda pair: pair[0], default=(0.0, ()))
        return Certificate(bool(worst <= eps), worst, deviation, eps)

    def _level(self, alpha: float | None) -> float:
        level = 1 - self.confidence if alpha is None else alpha
        if not 0 < level < 1:
            raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
        return level

    def uniform_error(self, payoff_range: float, alpha: float | None = None) -> float:
        """How far any estimated payoff may be off, by Hoeffding's inequality for all at once.

        With |u - U| <= eps everywhere, an e-equilibrium of the estimate is an (e + 2 eps)-
        equilibrium of the true game. No shape of distribution is assumed, so it is wide.

        Parameters
        ----------
        payoff_range : float
            Largest minus smallest payoff that a match can bring.
        alpha : float, optional
            Probability that one payoff is farther off; None is 1 - `confidence`.

        Returns
        -------
        float
            eps = R sqrt(log(2 n M / alpha) / (2 c_min)), with M profiles and at least c_min matches
            each; infinite where a profile has none.
        """
        check_is_fitted(self, "payoffs_")
        if not (np.isfinite(payoff_range) and payoff_range > 0):
            raise ValueError(f"payoff_range={payoff_range!r} must be a positive number")
        c = float(self.counts_.min())
        if c == 0:
            return float("inf")
        return float(
            payoff_range * np.sqrt(np.log(2 * self.payoffs_.size / self._level(alpha)) / (2 * c))
        )

    def bootstrap(
        self, n: int = 500, *, single: str = "keep", by_state: bool = False
    ) -> Iterator[Array]:
        """Payoffs estimated from matches drawn anew within each cell.

        Parameters
        ----------
        n : int, default=500
            Number of replicates.
        single : {"keep", "pooled"}, default="keep"
            Cells with one match stay as they are, which a warning says; or they vary by residuals
            drawn from all other cells.
        by_state : bool, default=False
            Whether each state's payoffs come, instead of their mean.

        Yields
        ------
        ndarray of shape (n_replicates, n, d_0, ..., d_{n-1})
            Replicates, as many at a time as fit in memory; with `by_state` an axis of states
            follows the first. Profiles without a match are filled as in the fit.

        Raises
        ------
        ValueError
            If the game was made of payoffs: there are no matches to draw from. If residuals are to
            be pooled, and no cell has two matches.
        """
        check_is_fitted(self, "payoffs_")
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n={n!r} must be a positive integer")
        if single not in ("keep", "pooled"):
            raise ValueError(f"single={single!r} is not known; allowed: 'keep', 'pooled'")
        if self._cells is None:
            raise ValueError("this game was made of payoffs; the bootstrap needs matches")
        if single == "keep" and (self._cells.sizes == 1).any():
            warnings.warn(
                f"{int((self._cells.sizes == 1).sum())} cells have one match: the bootstrap can't "
                "vary them, and its intervals are too narrow; single='pooled' lends them the "
                "others' residuals",
                UserWarning,
                stacklevel=2,
            )
        return self._replicates(self._cells, int(n), single == "pooled", by_state)

    def _replicates(self, cells: Cells, n: int, pooled: bool, by_state: bool) -> Iterator[Array]:
        shape = self.counts_.shape
        for table in bootstrap_tables(cells, n, self.random_state, pooled):
            tensors = cells.tensor(table, shape)  # (k, S, n, ...)
            if self.imputed_.any():
                k, S = tensors.shape[:2]
                flat = tensors.reshape(k * S, *tensors.shape[2:])
                filled = filled_payoffs(self.missing, flat, self.payoff_bounds)
                tensors = filled.reshape(tensors.shape)
            yield tensors if by_state else np.einsum("ks...,s->k...", tensors, self.prior_)

    def equilibrium_probabilities(self, n: int = 500, *, single: str = "keep") -> Array:
        """How often each profile is a pure equilibrium when the matches are drawn anew.

        Parameters
        ----------
        n : int, default=500
            Number of replicates.
        single : {"keep", "pooled"}, default="keep"
            See `bootstrap`.

        Returns
        -------
        ndarray of shape (d_0, ..., d_{n-1})
            Shares of the replicates.
        """
        hits = np.zeros(self.counts_.shape)
        for block in self.bootstrap(n, single=single):
            for u in block:
                hits += pure_equilibria(u)
        return hits / n

    def bootstrap_summary(self, n: int = 500, *, single: str = "keep") -> pd.DataFrame:
        """Intervals of welfare, prices and the subsidy, from matches drawn anew.

        Parameters
        ----------
        n : int, default=500
            Number of replicates.
        single : {"keep", "pooled"}, default="keep"
            See `bootstrap`.

        Returns
        -------
        pandas.DataFrame
            One row a quantity: best welfare, worst and best equilibrium (pure), price of anarchy,
            price of stability, subsidy (the least for the profile of the best estimated welfare),
            same equilibria (the share of replicates with just the estimated set). Columns quantity,
            estimate, lower, upper (percentiles at the game's confidence) and share, the part of the
            replicates in which the quantity is defined.
        """
        return self._summary(n, single)[0]

    def _summary(self, n: int, single: str) -> tuple[pd.DataFrame, Array]:
        """The summary, and each profile's share of replicates in which it is an equilibrium."""
        check_is_fitted(self, "payoffs_")
        W = self.welfare()
        target = np.unravel_index(int(W.argmax()), W.shape)
        mask, estimate = price_rows(self.payoffs_, self.weights_, target)
        rows, hits, same = [], np.zeros(W.shape), 0
        for block in self.bootstrap(n, single=single):
            for u in block:
                found, row = price_rows(u, self.weights_, target)
                rows.append(row)
                hits += found
                same += bool((found == mask).all())
        names = (
            "best welfare",
            "worst equilibrium",
            "best equilibrium",
            "price of anarchy",
            "price of stability",
            "subsidy",
        )
        summary = [
            percentile_row(name, value, values, self.confidence)
            for name, value, values in zip(names, estimate, np.array(rows).T, strict=True)
        ]
        summary.append(("same equilibria", 1.0, same / n, same / n, 1.0))
        columns = ["quantity", "estimate", "lower", "upper", "share"]
        return pd.DataFrame(summary, columns=columns), hits / n

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
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k={k!r} must be a positive integer")
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
