"""Simulated trials of humans who decide with an AI's advice, with the truth behind them."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions, validate_params

from ...games.human_ai.binary import decision_odds
from ...games.human_ai.choices import option_accuracy

__all__ = ["make_human_ai_trials"]

Array = NDArray[np.float64]


@validate_params(
    {
        "n_workers": [Interval(Integral, 1, None, closed="left")],
        "n_trials": [Interval(Integral, 1, None, closed="left")],
        "h": [Interval(Real, 0, None, closed="neither")],
        "ai_capabilities": ["array-like", Interval(Real, 0, None, closed="neither")],
        "overlap": [Interval(Real, -1, 1, closed="neither")],
        "trust": [Interval(Real, 0, None, closed="left")],
        "trust_sd": [Interval(Real, 0, None, closed="left")],
        "overlap_belief": [Interval(Real, -1, 1, closed="neither")],
        "recommendation": [StrOptions({"probabilistic", "binary"})],
        "n_choices": [Interval(Integral, 2, None, closed="left")],
        "noise_scale": [Interval(Real, 0, None, closed="neither"), Options(Real, {np.inf})],
        "bias": [Real],
        "lapse": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_human_ai_trials(
    n_workers: int = 100,
    n_trials: int = 40,
    h: float = 0.5,
    ai_capabilities: float | Sequence[float] = 0.8,
    overlap: float = 0.3,
    trust: float = 1.0,
    trust_sd: float = 0.0,
    overlap_belief: float = 0.0,
    recommendation: str = "probabilistic",
    n_choices: int = 2,
    *,
    noise_scale: float = 1.0,
    bias: float = 0.0,
    lapse: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Simulate workers who decide with an AI's advice.

    Parameters
    ----------
    n_workers, n_trials : int, default=100, 40
        Workers, and trials of each.
    h : float, default=0.5
        Capability of the workers (d for more than two alternatives).
    ai_capabilities : float or sequence of float, default=0.8
        Capability of each AI system; each trial has one at random.
    overlap : float, default=0.3
        Correlation of the errors (of the noise of each option, for more than two alternatives).
    trust : float, default=1.0
        Median trust of the workers.
    trust_sd : float, default=0.0
        Standard deviation of log trust over workers.
    overlap_belief : float, default=0.0
        The correlation that workers believe in; only for two alternatives.
    recommendation : {"probabilistic", "binary"}, default="probabilistic"
        What the AI shows; more than two alternatives need "binary" (one recommended option).
    n_choices : int, default=2
        Number of alternatives.
    noise_scale : float, default=1.0
        beta: decisions follow sigmoid(beta L + bias); infinity decides by the sign. Only for two
        alternatives.
    bias : float, default=0.0
        Intercept of the decisions; only for two alternatives.
    lapse : float, default=0.0
        Probability of deciding at random.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``X`` (log-odds of human and AI toward class 1, binary advice as +-1; with more
        alternatives the initial choice and the advice, as option numbers), ``y`` (final decision),
        ``y_true``, ``groups``, ``relative_capability``, ``system`` (number of the AI system),
        ``initial`` and ``advice`` (as class labels), ``worker_trust`` (the truth of each worker),
        ``feature_names``.

    Raises
    ------
    ValueError
        If arguments lie outside their range or exclude each other.

    Examples
    --------
    >>> from equipoise.datasets import make_human_ai_trials
    >>> data = make_human_ai_trials(20, 50, ai_capabilities=[0.3, 0.9], random_state=0)
    >>> data.X.shape, data.relative_capability.max()
    ((1000, 2), np.float64(1.8))
    """
    capabilities = np.atleast_1d(np.asarray(ai_capabilities, dtype=float))
    if capabilities.ndim != 1 or not (np.isfinite(capabilities) & (capabilities > 0)).all():
        raise ValueError(f"ai_capabilities: got {ai_capabilities}; allowed: positive numbers")
    if n_choices > 2:
        for name, value, only in (
            ("recommendation", recommendation, "binary"),
            ("overlap_belief", overlap_belief, 0),
            ("bias", bias, 0),
        ):
            if value != only:
                raise ValueError(
                    f"{name}: got {value!r}; allowed with n_choices={n_choices}: {only!r}"
                )
    rng = check_random_state(random_state)
    n = n_workers * n_trials
    groups = np.repeat(np.arange(n_workers), n_trials)
    worker_trust = trust * np.exp(trust_sd * rng.standard_normal(n_workers))
    tau = worker_trust[groups]
    system = rng.randint(len(capabilities), size=n)
    a = capabilities[system]
    common = {
        "groups": groups,
        "relative_capability": a / h,
        "system": system,
        "worker_trust": worker_trust,
    }
    if n_choices > 2:
        trials = option_trials(rng, h, capabilities, system, overlap, tau, n_choices, lapse)
        return Bunch(**trials, **common)

    truth = rng.choice([-1.0, 1.0], size=n)
    e_h, other = rng.standard_normal((2, n))
    e_a = overlap * e_h + np.sqrt((1 - overlap) * (1 + overlap)) * other
    x_h, x_a = truth * h + e_h, truth * a + e_a
    l_h, l_a = 2 * h * x_h, 2 * a * x_a
    r, b = a / h, overlap_belief
    if recommendation == "probabilistic":
        shown = l_a
        odds = ((1 - b * r) * l_h + tau * (1 - b / r) * l_a) / ((1 - b) * (1 + b))
    else:
        shown = np.where(x_a > 0, 1.0, -1.0)
        arguments = (np.full(n, h), a, tau, np.full(n, b), np.zeros(n))
        odds = np.where(
            x_a > 0, decision_odds(x_h, 1, *arguments), decision_odds(x_h, -1, *arguments)
        )
    if np.isinf(noise_scale):
        p = (np.sign(odds + bias) + 1) / 2
    else:
        p = expit(noise_scale * odds + bias)
    p = lapse / 2 + (1 - lapse) * p
    return Bunch(
        X=np.column_stack([l_h, shown]),
        y=(rng.random_sample(n) < p).astype(int),
        y_true=(truth > 0).astype(int),
        initial=(x_h > 0).astype(int),
        advice=(x_a > 0).astype(int),
        feature_names=["human_log_odds", "ai_log_odds"],
        **common,
    )


def option_trials(
    rng: np.random.RandomState,
    d: float,
    capabilities: Array,
    system: NDArray[np.intp],
    overlap: float,
    tau: Array,
    n_choices: int,
    lapse: float,
) -> dict[str, Any]:
    """Trials with K alternatives: the advice adds tau l to the recommended option's log-odds."""
    n = len(system)
    truth = rng.randint(n_choices, size=n)
    noise_h, other = rng.standard_normal((2, n, n_choices))
    noise_a = overlap * noise_h + np.sqrt((1 - overlap) * (1 + overlap)) * other
    correct = np.arange(n_choices) == truth[:, None]
    evidence_h = d * correct + noise_h
    advice = (capabilities[system][:, None] * correct + noise_a).argmax(axis=1)
    p_ai = option_accuracy(capabilities, n_choices)[system]
    weight = np.log(p_ai * (n_choices - 1) / (1 - p_ai))
    odds = d * evidence_h
    odds[np.arange(n), advice] += tau * weight
    final = odds.argmax(axis=1)
    lapsed = rng.random_sample(n) < lapse
    final = np.where(lapsed, rng.randint(n_choices, size=n), final)
    initial = evidence_h.argmax(axis=1)
    return {
        "X": np.column_stack([initial, advice]),
        "y": final,
        "y_true": truth,
        "initial": initial,
        "advice": advice,
        "feature_names": ["initial", "advice"],
    }
