"""Trials of humans who decide with an AI's advice: a generator with the truth, and readers.

The readers take a file that the user has obtained; they check its columns, turn answers that are
signed by correctness into answers signed by label, and return what `HumanAITeamModel` and
`RelianceReport` read, with the file's SHA-256.
"""

import hashlib
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions, validate_params

from ..games.human_ai.binary import decision_odds
from ..games.human_ai.choices import option_accuracy

__all__ = [
    "fetch_chatbench",
    "load_bansal2021",
    "load_haiid",
    "load_imagenet16h",
    "make_human_ai_trials",
]

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


def read_table(path: str | Path, needed: Sequence[str], sha256: str | None) -> pd.DataFrame:
    """A CSV file with its columns and, if given, its checksum checked."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path: {str(path)!r} isn't a file")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if sha256 is not None and digest != sha256.lower():
        raise ValueError(f"sha256: {path.name} has {digest}, not {sha256}")
    table = pd.read_csv(path)
    if missing := [name for name in needed if name not in table.columns]:
        raise ValueError(
            f"path: {path.name} lacks the columns {missing}; it has {list(table.columns)[:20]}"
        )
    table.attrs["sha256"] = digest
    return table


def log_odds(p: Array, epsilon: float) -> tuple[Array, float]:
    """Log-odds of a probability, clipped, and the share that was clipped."""
    clipped = np.clip(p, epsilon, 1 - epsilon)
    return logit(clipped), float(np.mean(clipped != p))


def load_haiid(
    path: str | Path, *, task: str | None = None, sha256: str | None = None, epsilon: float = 0.005
) -> Bunch:
    """Read the Human-AI Interactions data set (``haiid_dataset.csv``) from a file.

    Answers and advice lie in [-1, 1], positive for the correct label. They are turned into
    log-odds toward the label that sorts last, by p = (1 + answer) / 2.

    Parameters
    ----------
    path : str or Path
        The file.
    task : str, optional
        Keep only this task; None keeps all (then classes are 0 and 1, the second label of each pair
        being 1).
    sha256 : str, optional
        Expected checksum.
    epsilon : float, default=0.005
        Probabilities are kept inside [epsilon, 1 - epsilon].

    Returns
    -------
    Bunch
        ``X``, ``y``, ``y_true``, ``groups``, ``initial``, ``advice`` as in
        `make_human_ai_trials`; ``clipped_share``, ``frame`` (the rows used) and ``sha256``.
        Rows with an answer of exactly 0 after the advice have no decision and are left out.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If columns are missing, answers lie outside [-1, 1], the checksum differs, or there is no
        such task.

    References
    ----------
    .. [1] K. Vodrahalli, R. Daneshjou, T. Gerstenberg, J. Zou (2022). "Do Humans Trust Advice More
       if It Comes from AI?". AIES 2022.

    Examples
    --------
    >>> from equipoise.datasets import load_haiid
    >>> load_haiid("haiid_dataset.csv")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileNotFoundError: path: 'haiid_dataset.csv' isn't a file
    """
    answers = ["response_1", "advice", "response_2"]
    needed = ["task_name", "correct_label", "incorrect_label", "participant_id", *answers]
    table = read_table(path, needed, sha256)
    digest = table.attrs["sha256"]
    if task is not None:
        if task not in set(table["task_name"]):
            raise ValueError(f"task: got {task!r}; the file has {sorted(set(table['task_name']))}")
        table = table[table["task_name"] == task]
    table = table.dropna(subset=answers)
    values = table[answers].to_numpy(dtype=float)
    if (np.abs(values) > 1).any():
        raise ValueError("path: answers outside [-1, 1]")
    decided = values[:, 2] != 0
    table, values = table[decided], values[decided]
    correct = table["correct_label"].astype(str).to_numpy()
    y_true = (correct > table["incorrect_label"].astype(str).to_numpy()).astype(int)
    signed = values * (2 * y_true - 1)[:, None]
    human, share_h = log_odds((1 + signed[:, 0]) / 2, epsilon)
    ai, share_a = log_odds((1 + signed[:, 1]) / 2, epsilon)
    return Bunch(
        X=np.column_stack([human, ai]),
        y=(signed[:, 2] > 0).astype(int),
        y_true=y_true,
        groups=table["participant_id"].to_numpy(),
        initial=(signed[:, 0] > 0).astype(int),
        advice=(signed[:, 1] > 0).astype(int),
        clipped_share=(share_h + share_a) / 2,
        feature_names=["human_log_odds", "ai_log_odds"],
        frame=table.reset_index(drop=True),
        sha256=digest,
    )


def load_bansal2021(
    path: str | Path, *, sha256: str | None = None, epsilon: float = 0.005
) -> Bunch:
    """Read trials of Bansal et al. (2021) from a CSV file.

    Parameters
    ----------
    path : str or Path
        A file with the columns ``worker``, ``decision``, ``y``, ``pred`` (0 or 1) and ``conf``
        (the AI's confidence in its prediction, in [0.5, 1]).
    sha256 : str, optional
        Expected checksum.
    epsilon : float, default=0.005
        Probabilities are kept inside [epsilon, 1 - epsilon].

    Returns
    -------
    Bunch
        ``X`` (the human's column is 0: no evidence before the advice was recorded), ``y``,
        ``y_true``, ``groups``, ``initial`` (None), ``advice``, ``clipped_share``, ``frame``,
        ``sha256``. Use it with `RelianceReport`, or with trials decided alone in latent mode.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If columns are missing, values lie outside their range, or the checksum differs.

    References
    ----------
    .. [1] G. Bansal et al. (2021). "Does the Whole Exceed its Parts? The Effect of AI Explanations
       on Complementary Team Performance". CHI 2021.

    Examples
    --------
    >>> from equipoise.datasets import load_bansal2021
    >>> load_bansal2021("beer.csv")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileNotFoundError: path: 'beer.csv' isn't a file
    """
    table = read_table(path, ["worker", "decision", "y", "pred", "conf"], sha256)
    labels = table[["decision", "y", "pred"]].to_numpy()
    confidence = table["conf"].to_numpy(dtype=float)
    if not np.isin(labels, (0, 1)).all():
        raise ValueError("path: decision, y and pred must be 0 or 1")
    if not ((confidence >= 0.5) & (confidence <= 1)).all():
        raise ValueError("path: conf must lie in [0.5, 1]")
    odds, share = log_odds(confidence, epsilon)
    advice = labels[:, 2].astype(int)
    return Bunch(
        X=np.column_stack([np.zeros(len(table)), np.where(advice == 1, odds, -odds)]),
        y=labels[:, 0].astype(int),
        y_true=labels[:, 1].astype(int),
        groups=table["worker"].to_numpy(),
        initial=None,
        advice=advice,
        clipped_share=share,
        feature_names=["human_log_odds", "ai_log_odds"],
        frame=table,
        sha256=table.attrs["sha256"],
    )


def load_imagenet16h(path: str | Path, *, sha256: str | None = None) -> Bunch:
    """Read human classifications of ImageNet-16H from a CSV file.

    Parameters
    ----------
    path : str or Path
        A file with the columns ``participant_id``, ``image_name``, ``image_category``,
        ``participant_classification`` and ``confidence``.
    sha256 : str, optional
        Expected checksum.

    Returns
    -------
    Bunch
        ``y`` (the human's class), ``y_true``, ``groups``, ``confidence``, ``item``, ``n_choices``
        (number of categories), ``frame``, ``sha256``. There is no advice in these trials: they
        give the human's accuracy alone.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If columns are missing or the checksum differs.

    References
    ----------
    .. [1] M. Steyvers, H. Tejeda, G. Kerrigan, P. Smyth (2022). "Bayesian modeling of human-AI
       complementarity". PNAS 119(11).

    Examples
    --------
    >>> from equipoise.datasets import load_imagenet16h
    >>> load_imagenet16h("human.csv")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileNotFoundError: path: 'human.csv' isn't a file
    """
    names = ["participant_id", "image_name", "image_category", "participant_classification"]
    table = read_table(path, [*names, "confidence"], sha256)
    table = table.dropna(subset=names)
    return Bunch(
        y=table["participant_classification"].to_numpy(),
        y_true=table["image_category"].to_numpy(),
        groups=table["participant_id"].to_numpy(),
        confidence=table["confidence"].to_numpy(),
        item=table["image_name"].to_numpy(),
        n_choices=int(table["image_category"].nunique()),
        frame=table.reset_index(drop=True),
        sha256=table.attrs["sha256"],
    )


def fetch_chatbench(
    path: str | Path | None = None,
    *,
    data_home: str | Path | None = None,
    sha256: str | None = None,
) -> Bunch:
    """Read ChatBench's clean table of user answers from a file.

    Parameters
    ----------
    path : str or Path, optional
        The CSV file; None looks for ``chatbench.csv`` in the data home. Nothing is downloaded.
    data_home : str or Path, optional
        Folder of scikit-learn's kind; None takes `sklearn.datasets.get_data_home`.
    sha256 : str, optional
        Expected checksum.

    Returns
    -------
    Bunch
        ``frame`` (the table), ``human_alone`` = (right, n) of answers given alone, ``assisted``
        (frame: model, answer_first, right, n), ``n_choices`` (4), ``sha256``. The AI's own answer
        to the same question isn't in this table: cells (team, AI) need it from elsewhere.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If columns are missing, ``correct`` isn't 0 or 1, or the checksum differs.

    References
    ----------
    .. [1] S. Chang, A. Anderson, J. M. Hofman (2025). "ChatBench: From Static Benchmarks to
       Human-AI Evaluation". ACL 2025, arXiv:2504.07114.

    Examples
    --------
    >>> from equipoise.datasets import fetch_chatbench
    >>> fetch_chatbench("chatbench.csv")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    FileNotFoundError: path: 'chatbench.csv' isn't a file
    """
    where = Path(get_data_home(data_home)) / "chatbench.csv" if path is None else Path(path)
    needed = ["correct", "userAI", "userAI_answerFirst", "worker_id", "questionID", "model"]
    table = read_table(where, needed, sha256)
    if not np.isin(table["correct"], (0, 1)).all():
        raise ValueError("path: the column 'correct' must hold 0 and 1")
    with_ai = table["userAI"] == 1
    alone = table.loc[~with_ai, "correct"]
    assisted = (
        table[with_ai]
        .groupby(["model", "userAI_answerFirst"])["correct"]
        .agg(right="sum", n="count")
        .reset_index()
        .rename(columns={"userAI_answerFirst": "answer_first"})
    )
    return Bunch(
        frame=table,
        human_alone=(int(alone.sum()), len(alone)),
        assisted=assisted,
        n_choices=4,
        sha256=table.attrs["sha256"],
    )
