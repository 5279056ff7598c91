"""Learners that keep the last seen loss of each arm: changes, and losses seen without a play."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .learner import BanditLearner
from .memory import CHANGES

__all__ = ["LastLossLearner"]

Array = np.ndarray


class LastLossLearner(BanditLearner):
    """A learner whose next choice rests on the last seen loss of each arm.

    A kind sets `_see`, its compiled ``see(params, memory, n_arms, arm, loss)``.
    """

    _keeps_last_losses: ClassVar[bool] = True
    _see: ClassVar[Callable[[Array, Array, int, int, float], None]]

    @property
    def n_changes_(self) -> int:
        check_is_fitted(self)
        return int(self._memory[CHANGES])

    def observe(self, arm: int, loss: float) -> None:
        """Learn the loss of an arm that wasn't played.

        It counts for no regret and no round: only what is known of the arm changes. Call it after
        the round's `update`. Before it is right too, and sharper, where what is revealed doesn't
        depend on the played arm; where it does, estimates of regret would be biased.

        Parameters
        ----------
        arm : int
            The arm.
        loss : float
            Its loss now, or its reward with ``mode="reward"``.

        Raises
        ------
        IndexError
            If there is no such arm.
        ValueError
            If the loss isn't finite, or is out of range without `clip`.
        """
        unit = self._checked_loss(arm, loss)
        type(self)._see(self._constants, self._memory, self.n_arms, arm, unit)
