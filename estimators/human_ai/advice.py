r"""Advice that is learned for its effect: workers' decisions as a differentiable layer.

What serves a decision isn't the most accurate advice but the one that workers make the most of.
Under a fitted rule a worker with evidence l_H who is shown l_A decides for the second class with
probability

    P(+) = E[ eps / 2 + (1 - eps) sigmoid(bias + beta (E_H + tau E_A)) ]

over the workers' trust and bias, with E_H and E_A as in `evidence`. Maximising the mean P(right)
over the parameters of any network that gives l_A trains it end to end.
"""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .signals import Column

__all__ = ["TeamDecision"]


def check_rate(value: float, name: str, low: float, high: float, open_low: bool = False) -> float:
    """A finite number between two ends."""
    number = float(value)
    if not (low <= number <= high) or not np.isfinite(number) or (open_low and number == low):
        raise ValueError(f"{name}: got {value!r}; allowed: numbers from {low} to {high}")
    return number


class TeamDecision(nn.Module):
    """Probability of workers' decisions, differentiable in the advice that they are shown.

    Parameters
    ----------
    trust : float, default=1.0
        tau, the workers' median.
    noise_scale : float, default=1.0
        beta, positive.
    bias : float, default=0.0
        Log-odds of deciding for the second class without evidence.
    lapse : float, default=0.0
        Probability in [0, 1) of deciding at random.
    overlap_belief : float, default=0.0
        Correlation in (-1, 1) that workers believe in.
    relative_capability : float, default=1.0
        r = a / h, read only with an overlap belief.
    trust_sd, bias_sd : float, default=0.0
        Standard deviations over workers of log trust, and of the bias.
    n_quad : int, default=15
        Nodes of the Gauss-Hermite rule over workers for each of the two.

    Raises
    ------
    ValueError
        If a parameter isn't within its range.

    See Also
    --------
    HumanAITeamModel : Estimates these parameters from decisions.

    References
    ----------
    .. [1] G. Bansal, B. Nushi, E. Kamar, E. Horvitz, D. Weld (2021). "Is the most accurate AI the
       best teammate? Optimizing AI for teamwork". AAAI.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import TeamDecision
    >>> team = TeamDecision(trust=0.25)
    >>> advice = torch.tensor([2.0, -2.0], requires_grad=True)
    >>> right = team.accuracy(torch.tensor([0.5, 0.5]), advice, truth=torch.tensor([1, 0]))
    >>> right.mean().backward()
    >>> bool(advice.grad[0] > 0), bool(advice.grad[1] < 0)  # louder advice would help
    (True, True)
    """

    lift: Tensor
    shift: Tensor
    weight: Tensor

    def __init__(
        self,
        *,
        trust: float = 1.0,
        noise_scale: float = 1.0,
        bias: float = 0.0,
        lapse: float = 0.0,
        overlap_belief: float = 0.0,
        relative_capability: float = 1.0,
        trust_sd: float = 0.0,
        bias_sd: float = 0.0,
        n_quad: int = 15,
    ) -> None:
        super().__init__()
        most = float(np.finfo(float).max)
        self.trust = check_rate(trust, "trust", 0.0, most)
        self.noise_scale = check_rate(noise_scale, "noise_scale", 0.0, most, open_low=True)
        self.bias = check_rate(bias, "bias", -most, most)
        self.lapse = check_rate(lapse, "lapse", 0.0, 1.0 - 1e-12)
        self.overlap_belief = check_rate(overlap_belief, "overlap_belief", -1 + 1e-12, 1 - 1e-12)
        self.relative_capability = check_rate(
            relative_capability, "relative_capability", 0.0, most, open_low=True
        )
        self.trust_sd = check_rate(trust_sd, "trust_sd", 0.0, most)
        self.bias_sd = check_rate(bias_sd, "bias_sd", 0.0, most)
        if not isinstance(n_quad, int | np.integer) or n_quad < 1:
            raise ValueError(f"n_quad: got {n_quad!r}; allowed: positive integers")
        x, weight = np.polynomial.hermite.hermgauss(int(n_quad))
        nothing = np.zeros(1), np.ones(1)
        rule = np.sqrt(2) * x, weight / np.sqrt(np.pi)
        u, weight_u = rule if self.trust_sd > 0 else nothing
        v, weight_v = rule if self.bias_sd > 0 else nothing
        lift, shift = np.meshgrid(np.exp(self.trust_sd * u), self.bias_sd * v, indexing="ij")
        for name, values in (
            ("lift", lift.ravel()),
            ("shift", shift.ravel()),
            ("weight", np.outer(weight_u, weight_v).ravel()),
        ):
            self.register_buffer(name, torch.from_numpy(values), persistent=False)
        self._columns: tuple[Column, Column] | None = None

    @classmethod
    def from_model(cls, model: Any, relative_capability: float | None = None) -> "TeamDecision":
        """Take the behaviour that a `HumanAITeamModel` has learned, its calibrations included.

        Parameters
        ----------
        model : HumanAITeamModel
            Fitted to two-stage data with log-odds advice; moderators are held at their averages.
        relative_capability : float, optional
            r; needed only with an overlap belief and several AI systems.

        Returns
        -------
        TeamDecision
            `forward` then takes both columns as they were reported.

        Raises
        ------
        ValueError
            If the model is of latent data or of binary advice, which has no gradient, or `r` is
            missing.
        """
        check_is_fitted(model)
        found = model._found
        if found is None or model.recommendation == "binary" or found.columns[1].sides_only:
            raise ValueError(
                "model: learned advice needs a two-stage fit with log-odds advice; a side has no "
                "gradient"
            )
        fitted_r = np.unique(found.trials.r)
        if relative_capability is None and len(fitted_r) > 1 and model.overlap_belief_ != 0:
            raise ValueError("relative_capability: got None; the model was fitted to several")
        r = float(fitted_r[0]) if relative_capability is None else relative_capability
        team = cls(
            trust=model.trust_,
            noise_scale=model.noise_scale_,
            bias=model.bias_,
            lapse=model.lapse_,
            overlap_belief=model.overlap_belief_,
            relative_capability=r,
            trust_sd=model.trust_sd_,
            bias_sd=model.bias_sd_,
            n_quad=31,
        )
        team._columns = found.columns
        return team

    def forward(self, human: Tensor, advice: Tensor) -> Tensor:
        """Probability of deciding for the second class.

        Parameters
        ----------
        human, advice : Tensor
            Log-odds toward the second class, of one shape or broadcast; floating.

        Returns
        -------
        Tensor
            In (0, 1), averaged over workers.
        """
        if self._columns is not None:
            human, advice = (
                calibrated(column, values)
                for column, values in zip(self._columns, (human, advice), strict=True)
            )
        b, r = self.overlap_belief, self.relative_capability
        scale = (1 - b) * (1 + b)
        human, advice = (1 - b * r) / scale * human, (1 - b / r) / scale * advice
        lift, shift, weight = (
            part.to(advice.dtype) for part in (self.lift, self.shift, self.weight)
        )
        odds = human[..., None] + self.trust * lift * advice[..., None]
        p = torch.sigmoid(self.bias + shift + self.noise_scale * odds) @ weight
        return self.lapse / 2 + (1 - self.lapse) * p

    def accuracy(self, human: Tensor, advice: Tensor, truth: Tensor) -> Tensor:
        """Probability that each decision is right; its mean is what to maximise.

        Parameters
        ----------
        human, advice : Tensor
            As in `forward`.
        truth : Tensor
            Positive where the second class is right (1 or True against 0, -1 or False).

        Returns
        -------
        Tensor
            Of the broadcast shape.
        """
        p = self(human, advice)
        return torch.where(truth > 0, p, 1 - p)


def calibrated(column: Column, values: Tensor) -> Tensor:
    """`Column.transform` for tensors."""
    if column.sides_only:
        return torch.sign(values) * column.odds
    return torch.clamp(column.offset + column.slope * values, -column.limit, column.limit)
