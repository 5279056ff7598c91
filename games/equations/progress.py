"""Watching an iteration: history, callback, progress bar, and the decision to stop."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm.auto import tqdm

__all__ = ["Monitor"]

#: Growth of the residual that is taken for divergence.
BLOWN_UP = 1e3
#: Checks without any progress after which rounding is taken for the limit.
STUCK = 100


class Monitor:
    """Decides after each check whether to go on; afterwards `status` and `message` say why not.

    Parameters
    ----------
    tol : float
        The gap that is small enough.
    callback : callable or None
        Called as ``callback(n_iter, x, gap)``; a true answer stops.
    bounded : bool
        Whether gaps are error bounds; if not, they are residuals.
    store_history : bool
        Whether to keep every check in `history`.
    verbose : bool
        Whether to show a progress bar.
    sweeping : bool, default=True
        Whether to end when the gap blows up or stands still, and on Ctrl-C with what there is;
        policy iteration's residuals may well rise.
    """

    def __init__(
        self,
        tol: float,
        callback: Callable[..., Any] | None,
        bounded: bool,
        store_history: bool,
        verbose: bool,
        sweeping: bool = True,
    ) -> None:
        self.tol, self.callback, self.bounded = tol, callback, bounded
        self.sweeping = sweeping
        self.store_history = store_history
        self.history: list[dict[str, Any]] = []
        self.status, self.message = "max_iter", ""
        self.n_iter = 0
        self.best, self.unchanged = np.inf, 0
        self.scaled = np.inf
        self.bar = tqdm(disable=not verbose, unit="it")

    def goes_on(
        self, n_iter: int, x: np.ndarray, residual: float, gap: float, scaled_gap: float
    ) -> bool:
        """Record a check; False if the iteration is to stop.

        `gap` is reported, `scaled_gap` compared with `tol`.
        """
        self.bar.update(n_iter - self.n_iter)
        self.bar.set_postfix_str(f"gap {gap:.2e}", refresh=False)
        self.n_iter, self.scaled = n_iter, scaled_gap
        if not (np.isfinite(residual) and np.isfinite(gap)):
            self.status = "diverged"
            return False
        if self.store_history:
            bound = gap if self.bounded else float("nan")
            self.history.append({"n_iter": n_iter, "residual": residual, "error_bound": bound})
        stop = self.callback is not None and self.callback(n_iter, x.copy(), gap)
        if scaled_gap <= self.tol:
            self.status = "optimal"
            return False
        if self.sweeping and not self.bounded and gap > BLOWN_UP * self.best:
            self.status = "diverged"
            return False
        self.unchanged = 0 if gap < self.best else self.unchanged + 1
        self.best = min(self.best, gap)
        if stop:
            self.message = f"stopped by the callback after {n_iter} iterations"
            return False
        if self.sweeping and self.unchanged >= STUCK:
            self.message = f"no progress in the last {STUCK} checks of {n_iter} iterations"
            return False
        return True

    def sweeps_left(self, share: float) -> int:
        """About how many more sweeps reach the tolerance if each takes this share off the gap."""
        if share >= 1:
            return 1
        return int(np.ceil(np.log(self.scaled / self.tol) / -np.log1p(-share)))

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, kind: Any, *_: Any) -> bool:
        self.bar.close()
        if kind is KeyboardInterrupt and self.sweeping:
            self.message = f"interrupted after {self.n_iter} iterations"
            return True
        return False
