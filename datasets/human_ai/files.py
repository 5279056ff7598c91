"""Readers of public data sets of humans who decide with an AI's advice.

Each takes a file that the user has obtained, checks its columns, turns answers that are signed by
correctness into answers signed by label, and returns what `HumanAITeamModel` and `RelianceReport`
read, with the file's SHA-256.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

__all__ = ["fetch_chatbench", "load_bansal2021", "load_haiid", "load_imagenet16h"]

Array = NDArray[np.float64]


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
        Rows in which an answer or the advice is exactly 0, or missing, take no side and are left
        out.

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
    decided = (values != 0).all(axis=1)
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
    path: str | Path, *, task: str | None = None, sha256: str | None = None, epsilon: float = 0.005
) -> Bunch:
    """Read the team decisions of Bansal et al. (2021) from a CSV file.

    Parameters
    ----------
    path : str or Path
        A file with the columns ``assignmentId`` (the worker), ``questionId``, ``task``,
        ``condition``, ``choice`` (the final decision), ``y``, ``pred`` and ``conf`` (the AI's
        confidence in its prediction, in [0.5, 1]).
    task : str, optional
        Keep only this task; needed where the file holds several. Two labels only: the LSAT
        questions have four.
    sha256 : str, optional
        Expected checksum.
    epsilon : float, default=0.005
        Probabilities are kept inside [epsilon, 1 - epsilon].

    Returns
    -------
    Bunch
        ``X`` (the human's column is 0: no evidence before the advice was recorded), ``y``,
        ``y_true``, ``groups``, ``initial`` (None), ``advice``, ``condition`` and ``item`` of each
        trial, ``classes`` (the two labels, coded 0 and 1), ``clipped_share``, ``frame``,
        ``sha256``. A condition without AI shows no advice, whatever the columns say: take it out
        for `RelianceReport`, and set its advice to 0 for latent mode.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If columns or values are missing, values lie outside their range, there are more than two
        labels or several tasks, or the checksum differs.

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
    labels = ["choice", "y", "pred"]
    needed = ["assignmentId", "questionId", "task", "condition", *labels, "conf"]
    table = read_table(path, needed, sha256)
    digest = table.attrs["sha256"]
    tasks = sorted(set(table["task"].astype(str)))
    if task is not None and task not in tasks:
        raise ValueError(f"task: got {task!r}; the file has {tasks}")
    if task is None and len(tasks) > 1:
        raise ValueError(f"task: got None; the file has several, allowed: one of {tasks}")
    if task is not None:
        table = table[table["task"] == task]
    if (missing := table[[*labels, "conf"]].isna().any(axis=1)).any():
        raise ValueError(f"path: choice, y, pred or conf missing in {missing.sum()} rows")
    classes, codes = np.unique(
        table[labels].to_numpy(dtype=object).astype(str), return_inverse=True
    )
    if len(classes) != 2:
        raise ValueError(
            f"path: choice, y and pred hold the labels {classes.tolist()[:8]}; allowed: two "
            "(the LSAT questions have four)"
        )
    choice, y, pred = codes.reshape(-1, 3).T
    confidence = table["conf"].to_numpy(dtype=float)
    if not ((confidence >= 0.5) & (confidence <= 1)).all():
        raise ValueError("path: conf must lie in [0.5, 1]")
    odds, share = log_odds(confidence, epsilon)
    return Bunch(
        X=np.column_stack([np.zeros(len(table)), np.where(pred == 1, odds, -odds)]),
        y=choice,
        y_true=y,
        groups=table["assignmentId"].to_numpy(),
        initial=None,
        advice=pred,
        condition=table["condition"].to_numpy(),
        item=table["questionId"].to_numpy(),
        classes=classes,
        clipped_share=share,
        feature_names=["human_log_odds", "ai_log_odds"],
        frame=table.reset_index(drop=True),
        sha256=digest,
    )


def load_imagenet16h(
    path: str | Path, *, noise_level: int | None = None, sha256: str | None = None
) -> Bunch:
    """Read human classifications of ImageNet-16H from a CSV file.

    Parameters
    ----------
    path : str or Path
        A file with the columns ``participant_id``, ``image_name``, ``noise_level``,
        ``image_category``, ``participant_classification`` and ``confidence``.
    noise_level : int, optional
        Keep only this level of phase noise (80, 95, 110 or 125); None keeps all.
    sha256 : str, optional
        Expected checksum.

    Returns
    -------
    Bunch
        ``y`` (the human's class), ``y_true``, ``groups``, ``confidence``, ``item`` (image and
        level: the same image at another level is another item), ``n_choices`` (number of
        categories in the file), ``human_alone`` = (right, n), ``frame``, ``sha256``. There is no
        advice in these trials: they give the human's accuracy alone.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If columns are missing, there is no such noise level, or the checksum differs.

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
    table = read_table(path, [*names, "noise_level", "confidence"], sha256)
    digest, n_choices = table.attrs["sha256"], int(table["image_category"].nunique())
    levels = sorted(set(table["noise_level"].tolist()))
    if noise_level is not None and noise_level not in levels:
        raise ValueError(f"noise_level: got {noise_level}; the file has {levels}")
    if noise_level is not None:
        table = table[table["noise_level"] == noise_level]
    table = table.dropna(subset=names)
    y, y_true = (table[name].to_numpy() for name in (names[3], names[2]))
    return Bunch(
        y=y,
        y_true=y_true,
        groups=table["participant_id"].to_numpy(),
        confidence=table["confidence"].to_numpy(),
        item=(table["image_name"].astype(str) + "/" + table["noise_level"].astype(str)).to_numpy(),
        n_choices=n_choices,
        human_alone=(int(np.sum(y == y_true)), len(table)),
        frame=table.reset_index(drop=True),
        sha256=digest,
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
        The CSV file, with the columns ``correct``, ``userAI``, ``userAI_answerFirst``,
        ``userAI_allowCopy``, ``phase``, ``question_position``, ``worker_id``, ``questionID``,
        ``model`` and ``confidence``; None looks for ``chatbench.csv`` in the data home. Nothing
        is downloaded.
    data_home : str or Path, optional
        Folder of scikit-learn's kind; None takes `sklearn.datasets.get_data_home`.
    sha256 : str, optional
        Expected checksum.

    Returns
    -------
    Bunch
        ``frame`` (the table), ``human_alone`` = (right, n) of answers given alone, ``alone``
        (frame: phase, right, n; in phase 2 they are the first answers of the answer-first
        condition), ``assisted`` (frame: model, answer_first, right, n), ``paired`` (frame:
        worker_id, questionID, model, correct_alone, correct_assisted; the same worker's first and
        final answer to a question), ``corrected`` and ``misled`` (shares of these pairs that end
        right from wrong, and wrong from right; NaN without such pairs), ``n_choices`` (4),
        ``sha256``. The AI's own answer to the same question isn't in this table: cells (team, AI)
        need it from elsewhere.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If columns are missing, a flag isn't 0 or 1, a worker's answer to a question is there
        twice, or the checksum differs.

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
    flags = ["correct", "userAI", "userAI_answerFirst", "userAI_allowCopy"]
    key = ["worker_id", "questionID", "model"]
    table = read_table(where, [*flags, "phase", "question_position", *key, "confidence"], sha256)
    for flag in flags:
        if not np.isin(table[flag], (0, 1)).all():
            raise ValueError(f"path: the column {flag!r} must hold 0 and 1")
    if not np.isin(table["phase"], (1, 2)).all():
        raise ValueError("path: the column 'phase' must hold 1 and 2")
    if (repeated := table.duplicated([*key, "userAI"])).any():
        raise ValueError(
            f"path: {repeated.sum()} rows repeat a worker's answer to a question; allowed: the "
            "clean table, duplicates dropped"
        )
    with_ai = table["userAI"] == 1
    alone = table.loc[~with_ai, "correct"]
    assisted = (
        table[with_ai]
        .groupby(["model", "userAI_answerFirst"])["correct"]
        .agg(right="sum", n="count")
        .reset_index()
        .rename(columns={"userAI_answerFirst": "answer_first"})
    )
    first, final = (
        table.loc[rows, [*key, "correct"]]
        for rows in (~with_ai & (table["phase"] == 2), with_ai & (table["userAI_answerFirst"] == 1))
    )
    paired = first.merge(final, on=key, suffixes=("_alone", "_assisted"))
    right_first = paired["correct_alone"] == 1
    return Bunch(
        frame=table,
        human_alone=(int(alone.sum()), len(alone)),
        alone=table[~with_ai].groupby("phase")["correct"].agg(right="sum", n="count").reset_index(),
        assisted=assisted,
        paired=paired,
        corrected=float(paired.loc[~right_first, "correct_assisted"].mean()),
        misled=float(1 - paired.loc[right_first, "correct_assisted"].mean()),
        n_choices=4,
        sha256=table.attrs["sha256"],
    )
