"""A controlled audit of training on human soft labels (after Pavlovic, Paun and Poesio, 2026).

The same estimator is trained on targets that differ in one thing only: hard or soft, at the
original label or at the human mode, and synthetic softness of several kinds. Inputs, split,
initial weights and batches are the same for all arms of a seed, so that contrasts are paired. All
arms are evaluated against all references.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import Memory, Parallel, delayed
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import Bunch, _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .arms import make_label_arms
from .audit_effects import (
    SMALLEST_STRATUM,
    effects_frame,
    metric_values,
    seed_weights,
    stability_frame,
    summary_frame,
)
from .audit_groups import group_gaps_frame
from .audit_metrics import SOFT_ONLY, choose_metrics
from .audit_report import AuditReport
from .audit_runs import (
    REFERENCES,
    Fit,
    Split,
    check_references,
    check_takes_soft_labels,
    draws_votes,
    final_step,
    fit_one,
    out_of_fold,
    read_groups,
    read_items,
    split_by_mode,
    strata_of_items,
    take,
)
from .audit_tables import alignment_frame, describe, dynamics_frame, results_frame, same_length
from .difficulty import MEASURES, check_levels
from .targets import entropy, human_modes, one_hot, tied_modes

__all__ = ["SoftLabelAudit"]


class SoftLabelAudit(BaseEstimator):
    """Audit what training on human soft labels changes, and why.

    Parameters
    ----------
    estimator : object
        A classifier whose ``fit`` takes ``soft_labels``, as `SoftLabelClassifier`, or a pipeline
        that ends in one. Its `random_state` is set to the seed of each run.
    arms : "default", sequence of str or mapping, default="default"
        Target matrices to compare, as for `make_label_arms`; the teacher arms are made from
        out-of-fold predictions of the estimator trained on the modes. "sampled" is a new vote in
        every epoch where `SoftLabelClassifier` trains a network or by `partial_fit`, else one draw.
    seeds : int or sequence of int, default=5
        Number of training seeds, drawn from `random_state`, or the seeds themselves.
    metrics : "default", sequence of str or mapping, default="default"
        Names of metrics, or a mapping from a name to ``function(target, probabilities)`` or to None
        for the built-in of that name. A function's intervals cover the seeds only.
    strata : sequence of float or mapping, default=(0, .5, .8, 1)
        Quantile levels of the difficulty on the test set; or fixed thresholds, from a name to
        (low, high), as ``{"clear": (0, 0.2), "hard": (0.2, 1)}``.
    reference : sequence of {"original", "mode", "soft"}
        Labels to evaluate against.
    n_bootstrap : int, default=2000
        Resamples of seeds and test items; 0 leaves the t intervals over the seeds.
    confidence_level : float, default=0.95
        Level of all intervals.
    track_dynamics : bool, default=True
        For networks outside pipelines: record training dynamics and test losses of every epoch.
    memory : str, path or joblib.Memory, default=None
        Keeps each trained (arm, seed): an interrupted audit goes on where it was.
    keep_models : bool, default=False
        Keep the trained models in `models_`.
    n_jobs : int, default=None
        Trainings at a time, through joblib.
    random_state : int, RandomState or None, default=None
        Seeds the split, the arms, the training seeds and the bootstrap, each apart.
    verbose : int, default=0
        1 shows a progress bar over the trainings.
    difficulty : {"entropy", "top", "margin"}, default="entropy"
        Measure of the difficulty that `strata` cut, see `item_difficulty`.

    Attributes
    ----------
    results_ : pandas.DataFrame
        ``arm``, ``seed``, ``stratum``, ``reference``, ``metric``, ``value``.
    summary_ : pandas.DataFrame
        Mean, deviation over the seeds and interval of each arm.
    effects_ : pandas.DataFrame
        Contrasts with bootstrap and t intervals, p-values, and Holm's correction over the metrics
        of an effect in a stratum.
    group_gaps_ : pandas.DataFrame
        Where groups were given: each contrast in a group minus the contrast over all items, with
        paired bootstrap intervals and Holm's correction over groups and metrics of an effect.
        Empty otherwise.
    stability_ : pandas.DataFrame
        Spread over the seeds, churn, divergence between seeds, volatility, epochs to converge and
        overfit gap.
    dynamics_ : pandas.DataFrame
        Training dynamics of each training and test item in each arm, mean over the seeds; the
        reference class is the human mode. Empty if none were tracked.
    alignment_ : pandas.DataFrame
        Spearman correlations of the dynamics with human entropy, by arm and kind of items.
    mode_shift_ : sklearn.utils.Bunch
        ``rate``, ``matrix`` (original label by mode), ``n_ties``, over all items.
    models_ : dict or None
        From (arm, seed) to the trained model; None unless `keep_models`.
    classes_ : ndarray of shape (n_classes,)
        Label of each column.

    References
    ----------
    .. [1] M. Pavlovic, S. Paun, M. Poesio, "An assessment of human vs. model uncertainty in
           soft-label learning and calibration", arXiv 2605.18648, 2026.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise.datasets import make_ambiguous_digits, simulate_annotators
    >>> from equipoise.estimators import SoftLabelClassifier
    >>> from equipoise.explainers import SoftLabelAudit
    >>> digits = make_ambiguous_digits(400, ambiguity=0.5, random_state=0)
    >>> votes = simulate_annotators(digits.posterior, skill=(1, 1), random_state=0).counts
    >>> model = SoftLabelClassifier(LogisticRegression(C=10, max_iter=500))
    >>> arms = ["hard_orig", "hard_mode", "soft_human", "soft_orig_mode"]
    >>> audit = SoftLabelAudit(
    ...     model, arms=arms, seeds=1, strata=(0, 1), n_bootstrap=50, random_state=0
    ... )
    >>> audit = audit.fit(digits.data / 16, digits.target, votes)
    >>> effects = audit.explain().to_frame()
    >>> kl = effects[(effects["metric"] == "kl") & (effects["stratum"] == "all")]
    >>> bool(kl.set_index("effect").loc["soft main", "high"] < 0)
    True
    """

    _parameter_constraints: dict = {
        "estimator": "no_validation",
        "arms": ["array-like", StrOptions({"default"}), dict],
        "seeds": ["array-like", Interval(Integral, 1, None, closed="left")],
        "metrics": ["array-like", StrOptions({"default"}), dict],
        "strata": ["array-like", dict],
        "reference": ["array-like"],
        "n_bootstrap": [Interval(Integral, 0, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "track_dynamics": ["boolean"],
        "memory": "no_validation",
        "keep_models": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "difficulty": [StrOptions(set(MEASURES))],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        arms: str | Sequence[str] | Mapping[str, Any] = "default",
        seeds: int | Sequence[int] = 5,
        metrics: str | Sequence[str] | Mapping[str, Any] = "default",
        strata: Sequence[float] | Mapping[str, tuple[float, float]] = (0, 0.5, 0.8, 1),
        reference: Sequence[str] = REFERENCES,
        n_bootstrap: int = 2000,
        confidence_level: float = 0.95,
        track_dynamics: bool = True,
        memory: Any = None,
        keep_models: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        difficulty: str = "entropy",
    ) -> None:
        self.estimator = estimator
        self.arms = arms
        self.seeds = seeds
        self.metrics = metrics
        self.strata = strata
        self.reference = reference
        self.n_bootstrap = n_bootstrap
        self.confidence_level = confidence_level
        self.track_dynamics = track_dynamics
        self.memory = memory
        self.keep_models = keep_models
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.difficulty = difficulty

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        counts: npt.ArrayLike,
        X_test: npt.ArrayLike | None = None,
        y_test: npt.ArrayLike | None = None,
        counts_test: npt.ArrayLike | None = None,
        test_size: float = 0.3,
        groups: npt.ArrayLike | None = None,
        groups_test: npt.ArrayLike | None = None,
    ) -> Self:
        """Train every arm with every seed, and evaluate all against all references.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Original hard labels.
        counts : array-like of shape (n_samples, n_classes)
            Votes (or soft labels: then the measures that need votes are NaN).
        X_test, y_test, counts_test : array-like, optional
            Test items; None splits them off `X`, stratified by human mode.
        test_size : float, default=0.3
            Share of the test items where they are split off.
        groups : array-like of shape (n_samples,), optional
            A group of each item, as the source of a text or the region of a person. Each becomes a
            stratum "group NAME" of the test items, and is held against all of them in
            `group_gaps_`. It never enters the training.
        groups_test : array-like of shape (n_test_samples,), optional
            The same for given test items, instead of `groups`.

        Returns
        -------
        self : SoftLabelAudit
            Fitted.

        Raises
        ------
        TypeError
            If the estimator's ``fit`` takes no ``soft_labels``.
        """
        check_takes_soft_labels(self.estimator)
        references = check_references(self.reference)
        levels = check_levels(self.strata)
        chosen = choose_metrics(self.metrics)
        rng = check_random_state(self.random_state)
        split_seed, arm_seed, bootstrap_seed = (int(s) for s in rng.randint(2**31 - 1, size=3))
        drawn = (
            rng.randint(2**31 - 1, size=self.seeds)
            if isinstance(self.seeds, int | Integral)
            else self.seeds
        )
        seeds = [int(s) for s in drawn]

        X, original, humans = read_items(X, y, counts, None)
        classes = humans.classes
        parts = (X_test, y_test, counts_test)
        if any(part is not None for part in parts) and groups is not None:
            raise ValueError("groups are those of the test items: with X_test give groups_test")
        if all(part is None for part in parts):
            if groups_test is not None:
                raise ValueError("groups_test needs X_test; give the groups of all items in groups")
            found = read_groups(groups, len(original), "groups")
            modes = human_modes(humans.P, original)
            train, test = split_by_mode(modes, test_size, split_seed)
            X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
            train_original, test_original = original[train], original[test]
            train_humans, test_humans = take(humans, train), take(humans, test)
            test_groups = None if found is None else found[test]
        elif any(part is None for part in parts):
            raise ValueError("X_test, y_test and counts_test are given together, or none of them")
        else:
            X_train, train_original, train_humans = X, original, humans
            X_test, test_original, test_humans = read_items(X_test, y_test, counts_test, classes)
            test_groups = read_groups(groups_test, len(test_original), "groups_test")
        train_modes = human_modes(train_humans.P, train_original)
        test_modes = human_modes(test_humans.P, test_original)

        names = self.arms if isinstance(self.arms, str) else list(self.arms)
        teacher = None
        if not isinstance(names, str) and any(str(name).startswith("teacher") for name in names):
            teacher = out_of_fold(self.estimator, X_train, train_modes, classes, arm_seed)
        matrices = make_label_arms(
            train_humans.P if train_humans.counts is None else train_humans.counts,
            train_original,
            self.arms,
            random_state=arm_seed,
            teacher=teacher,
        )
        more: dict[str, dict[str, Any]] = {}
        fixed = names if isinstance(names, list) else []
        own = self.arms.get("sampled") if isinstance(self.arms, Mapping) else None
        if "sampled" in fixed and own is None and draws_votes(final_step(self.estimator)[1]):
            # A new vote in every epoch, instead of the one draw that an estimator without has.
            matrices["sampled"] = train_humans.P
            more["sampled"] = {"method": "sampled"}
        arms = list(matrices)
        K = len(classes)
        targets = {
            "original": one_hot(test_original, K),
            "mode": one_hot(test_modes, K),
            "soft": test_humans.P,
        }
        targets = {name: targets[name] for name in references}
        by_reference = {
            name: {m: v for m, v in chosen.items() if name == "soft" or m not in SOFT_ONLY}
            for name in references
        }
        strata = strata_of_items(
            test_humans.P, self.difficulty, levels, test_modes != test_original, test_groups
        )
        small = [name for name, rows in strata.items() if rows.sum() < SMALLEST_STRATUM]
        if small:
            warnings.warn(
                f"strata with fewer than {SMALLEST_STRATUM} test items get no figures: {small}",
                UserWarning,
                stacklevel=2,
            )

        split = Split(
            X_train,
            classes[train_original],
            train_modes,
            train_humans.P,
            X_test,
            test_modes,
            test_humans.P,
            targets,
            classes,
        )
        fits = self._run([(arm, seed) for seed in seeds for arm in arms], split, matrices, more)
        F = np.array([[fits[arm, seed].F for seed in seeds] for arm in arms])
        bootstrap = np.random.RandomState(bootstrap_seed)
        shares = seed_weights(len(seeds), self.n_bootstrap, bootstrap)
        values, resamples = metric_values(
            F, targets, test_humans.counts, strata, by_reference, self.n_bootstrap, bootstrap
        )
        curves = {
            arm: np.array([fits[arm, seed].curves for seed in seeds])
            for arm in arms
            if same_length([fits[arm, seed].curves for seed in seeds])
        }
        level = self.confidence_level
        self.results_ = results_frame(arms, seeds, values)
        self.summary_ = summary_frame(arms, values, resamples, shares, level)
        self.effects_ = effects_frame(arms, values, resamples, shares, level)
        self.group_gaps_ = group_gaps_frame(arms, values, resamples, shares, level)
        self.stability_ = stability_frame(arms, F, values, curves, references)
        self.dynamics_ = dynamics_frame(
            {arm: [fits[arm, seed].dynamics for seed in seeds] for arm in arms},
            {"train": entropy(train_humans.P), "test": entropy(test_humans.P)},
        )
        self.alignment_ = alignment_frame(self.dynamics_)
        all_original = np.concatenate([train_original, test_original])
        all_modes = np.concatenate([train_modes, test_modes])
        matrix = np.zeros((K, K), dtype=np.int64)
        np.add.at(matrix, (all_original, all_modes), 1)
        ties = tied_modes(np.vstack([train_humans.P, test_humans.P]))
        self.mode_shift_ = Bunch(
            rate=float((all_original != all_modes).mean()), matrix=matrix, n_ties=int(ties.sum())
        )
        self.classes_ = classes
        self.models_ = {key: fit.model for key, fit in fits.items()} if self.keep_models else None
        self._report = (arms, F, test_humans.P, curves, references)
        return self

    def _run(
        self,
        jobs: list[tuple[str, int]],
        split: Split,
        matrices: dict[str, np.ndarray],
        more: dict[str, dict[str, Any]],
    ) -> dict[tuple[str, int], Fit]:
        """Train all pairs of arm and seed, as many at a time as `n_jobs` says."""
        from tqdm.auto import tqdm

        memory = self.memory
        if not isinstance(memory, Memory):
            # joblib would put a Path and the same str into different folders.
            memory = Memory(None if memory is None else os.fspath(memory), verbose=0)
        train = memory.cache(fit_one)
        runner = Parallel(n_jobs=self.n_jobs, return_as="generator")
        fits = runner(
            delayed(train)(
                self.estimator,
                split,
                matrices[arm],
                seed,
                self.track_dynamics,
                self.keep_models,
                more.get(arm),
            )
            for arm, seed in jobs
        )
        bar = tqdm(fits, total=len(jobs), unit="fit", disable=not self.verbose)
        return dict(zip(jobs, bar, strict=True))

    def explain(self) -> AuditReport:
        """Say what the soft labels changed.

        Returns
        -------
        AuditReport
            ``to_frame()`` is `effects_`; plots "effects", "reliability", "strata",
            "entropy_alignment", and for networks "data_map" and "convergence"; Markdown and HTML.
        """
        check_is_fitted(self, "effects_")
        arms, F, P, curves, references = self._report
        return AuditReport(
            "What does training on human soft labels change?",
            describe(self),
            self.effects_,
            results=self.results_,
            summary_frame=self.summary_,
            stability=self.stability_,
            group_gaps=self.group_gaps_,
            dynamics=self.dynamics_,
            alignment=self.alignment_,
            mode_shift=self.mode_shift_,
            arms=arms,
            F=F,
            P=P,
            curves=curves,
            references=references,
        )
