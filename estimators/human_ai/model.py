r"""HumanAITeamModel: how much a worker trusts an AI's advice, estimated from decisions.

Two-stage data hold the human's log-odds before the advice, the AI's, and the final decision:
z = bias + beta [ (1 - rho_hat r) l_H + tau (1 - rho_hat / r) l_A ] / (1 - rho_hat^2). Latent data
hold only advice, final decision and truth, with human-alone trials of the same population.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from equipoise.explanation import Explanation

from ...games.human_ai import Regime, locate
from .answers import deployment_of, explanation_of, policies_of, profile_of
from .attributes import decision_odds, latent_attributes, two_stage_attributes
from .estimation import Options, Raw
from .inputs import (
    check_configuration,
    check_finite,
    column_index,
    relative_capability_rows,
    truth_signs,
    two_classes,
    worker_codes,
)
from .report import PolicyReport

__all__ = ["HumanAITeamModel"]

Array = NDArray[np.float64]

#: What only a latent fit learns, and a later two-stage fit must not keep.
LATENT_ONLY = ("goodness_of_fit_",)


class HumanAITeamModel(ClassifierMixin, BaseEstimator):
    """Trust in AI advice and believed overlap, estimated from decisions.

    `y` holds the workers' decisions, not the truth; the truth goes to `fit` as `y_true` and adds
    calibration, both capabilities, the overlap and with them the region of the deployment.

    Parameters
    ----------
    mode : {"two_stage", "latent"}, default="two_stage"
        "two_stage" reads the human's log-odds before the advice. "latent" reads final decisions
        only: a trial with 0 in `ai_col` was decided alone, `human_col` isn't read, and `y_true` is
        needed.
    recommendation : {"probabilistic", "binary"}, default="probabilistic"
        Whether the workers saw the AI's log-odds or only its side (the sign of `ai_col`).
    overlap_belief : {"neglect", "fit"} or float, default="neglect"
        The correlation that workers believe in: zero, estimated, or a number in (-1, 1). "fit"
        needs at least two relative capabilities. Binary advice and latent data allow only
        "neglect": they hold no trace of it.
    human_col, ai_col : int or str, default=0, 1
        Columns of `X` with the log-odds toward ``classes_[1]``, by position or name. All other
        columns moderate trust.
    relative_capability : float, optional
        r = a / h; None: from `fit`, or estimated from `y_true`.
    calibrate : bool, default=True
        Calibrate both columns against `y_true`, where given.
    lapse : float or "fit", default=0.0
        Probability in [0, 1) of deciding at random.
    fit_bias : bool, default=True
        Whether the log-odds of deciding for ``classes_[1]`` have an intercept.
    random_effects : {"trust", "trust+bias"}, optional
        Give each worker in `groups` a log-normal trust, and a normal bias.
    n_quad : int, default=15
        Nodes of the adaptive Gauss-Hermite rule for each random effect.
    alpha : float, default=0.0
        Ridge penalty on log trust and the moderators' coefficients.
    cov : {"information", "cluster", "bootstrap"}, default="information"
        Covariance: observed information, sandwich clustered by `groups`, or a bootstrap of the
        whole estimation (calibration included) that resamples `groups`, or rows without them.
    n_boot : int, default=500
        Resamples of the bootstrap, and draws behind `recommend_policy`.
    n_choices : int, default=2
        Number of alternatives; more than two only through `fit_from_counts`.
    max_iter : int, default=200
        Most iterations of the optimiser.
    tol : float, default=1e-8
        Largest step of the last iteration, on the internal scale.
    random_state : int, RandomState or None, default=None
        Seed of the bootstrap and of the draws behind `recommend_policy`.
    n_jobs : int, optional
        Threads over blocks of 65536 rows.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The decisions.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns; only if `X` has them.
    trust_ : float
        tau, at the average of the moderators; the median over workers with random effects. Under
        "neglect" it is tau (1 - rho_hat / r) / (1 - rho_hat r), whatever the workers believe.
    trust_ci_ : tuple of float
        95 % interval, from the standard error of log tau; NaN where trust isn't identified.
    undertrust_factor_ : float
        1 / tau.
    overlap_belief_ : float
        rho_hat.
    noise_scale_ : float
        beta; NaN for latent data.
    bias_ : float
        Intercept; NaN for latent data.
    lapse_ : float
        eps.
    moderator_coef_ : ndarray of shape (n_features_in_ - 2,)
        Change of log trust with each moderator.
    moderator_mean_ : ndarray of shape (n_features_in_ - 2,)
        Average of each moderator.
    trust_sd_ : float
        omega, standard deviation of log trust over workers; 0 without random effects.
    bias_sd_ : float
        Standard deviation of the workers' bias; 0 without it.
    worker_trust_ : DataFrame
        Empirical-Bayes trust of each worker: worker, n_trials, trust, low, high, log_trust,
        log_trust_sd; empty without random effects.
    human_capability_ : float
        h; NaN without `y_true`.
    ai_capability_ : float or ndarray of shape (n_systems,)
        a of each AI system (each distinct relative capability); NaN without `y_true`.
    overlap_ : float or ndarray of shape (n_systems,)
        Correlation of the errors of human and AI; NaN without `y_true`.
    relative_capability_ : ndarray of shape (n_systems,)
        The distinct r that `fit` was given; NaN if none.
    clipped_share_ : float
        Share of calibrated log-odds that were clipped at logit(1 - 1 / 2n).
    loglik_, aic_, bic_ : float
        Maximal log-likelihood and information criteria.
    cov_ : ndarray of shape (n_parameters, n_parameters)
        Covariance of the parameters in `parameter_names_`.
    parameter_names_ : tuple of str
        The free parameters; positive ones are on the log scale, correlations on the atanh scale,
        the lapse on the logit scale.
    identified_ : dict of str to bool
        Which parameters the data determine; "beta_confounded" says that only the human's side was
        recorded, so that beta also carries the human's accuracy.
    goodness_of_fit_ : dict
        Only for latent data: G2, Pearson's statistic, df and pvalue.
    n_iter_ : int
        Iterations of the optimiser.

    References
    ----------
    .. [1] S. Amin, A. Bennouna, D. Huttenlocher, D. Kong, L. Lyu, A. Ozdaglar (2026). "A Bayesian
       Framework for Human-AI Collaboration: Complementarity and Correlation Neglect".
       arXiv:2602.14331.
    .. [2] J. C. Pinheiro and D. M. Bates (1995). "Approximations to the log-likelihood function in
       the nonlinear mixed-effects model". Journal of Computational and Graphical Statistics 4(1),
       12-35.

    Examples
    --------
    >>> from equipoise.datasets import make_human_ai_trials
    >>> from equipoise.estimators import HumanAITeamModel
    >>> data = make_human_ai_trials(
    ...     100, 40, h=0.5, ai_capabilities=0.8, overlap=0.3, trust=0.25, random_state=0
    ... )
    >>> model = HumanAITeamModel(cov="cluster")
    >>> model = model.fit(data.X, data.y, y_true=data.y_true, groups=data.groups)
    >>> low, high = model.trust_ci_
    >>> bool(low < 0.25 < high)
    True
    >>> model.phase_point().name
    'automation'
    """

    _parameter_constraints: dict = {
        "mode": [StrOptions({"two_stage", "latent"})],
        "recommendation": [StrOptions({"probabilistic", "binary"})],
        "overlap_belief": [StrOptions({"neglect", "fit"}), Interval(Real, -1, 1, closed="neither")],
        "human_col": [Interval(Integral, 0, None, closed="left"), str],
        "ai_col": [Interval(Integral, 0, None, closed="left"), str],
        "relative_capability": [Interval(Real, 0, None, closed="neither"), None],
        "calibrate": ["boolean"],
        "lapse": [StrOptions({"fit"}), Interval(Real, 0, 1, closed="left")],
        "fit_bias": ["boolean"],
        "random_effects": [StrOptions({"trust", "trust+bias"}), None],
        "n_quad": [Interval(Integral, 1, 100, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "cov": [StrOptions({"information", "cluster", "bootstrap"})],
        "n_boot": [Interval(Integral, 2, None, closed="left")],
        "n_choices": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        *,
        mode: str = "two_stage",
        recommendation: str = "probabilistic",
        overlap_belief: str | float = "neglect",
        human_col: int | str = 0,
        ai_col: int | str = 1,
        relative_capability: float | None = None,
        calibrate: bool = True,
        lapse: str | float = 0.0,
        fit_bias: bool = True,
        random_effects: str | None = None,
        n_quad: int = 15,
        alpha: float = 0.0,
        cov: str = "information",
        n_boot: int = 500,
        n_choices: int = 2,
        max_iter: int = 200,
        tol: float = 1e-8,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.mode = mode
        self.recommendation = recommendation
        self.overlap_belief = overlap_belief
        self.human_col = human_col
        self.ai_col = ai_col
        self.relative_capability = relative_capability
        self.calibrate = calibrate
        self.lapse = lapse
        self.fit_bias = fit_bias
        self.random_effects = random_effects
        self.n_quad = n_quad
        self.alpha = alpha
        self.cov = cov
        self.n_boot = n_boot
        self.n_choices = n_choices
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Both weights are positive by construction; arbitrary columns need not be evidence.
        tags.classifier_tags.poor_score = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        y_true: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        relative_capability: float | ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "HumanAITeamModel":
        """Estimate trust from decisions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Log-odds of human and AI toward ``classes_[1]`` in `human_col` and `ai_col`; all other
            columns moderate trust.
        y : array-like of shape (n_samples,)
            Final decisions, two classes.
        y_true : array-like of shape (n_samples,), optional
            The right decisions.
        groups : array-like of shape (n_samples,), optional
            The worker of each trial.
        relative_capability : float or array-like of shape (n_samples,), optional
            r = a / h of each trial; overrides the constructor's. Each distinct value is one AI
            system (up to 20).
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        HumanAITeamModel
            The fitted model.

        Raises
        ------
        ValueError
            If `X` has fewer than two columns or holds NaN or infinity, `y` hasn't two classes, or
            something that the configuration needs is missing or isn't identified.
        """
        before = dict(self.__dict__)
        try:
            learned = self._learn(X, y, y_true, groups, relative_capability, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        for name in LATENT_ONLY:
            self.__dict__.pop(name, None)
        self.__dict__.update(learned)
        return self

    def _learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        y_true: ArrayLike | None,
        groups: ArrayLike | None,
        relative_capability: float | ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> dict[str, Any]:
        """Check everything, estimate, and return what is to be learned."""
        data, target = validate_data(
            self, X, y, dtype=np.float64, ensure_min_features=2, ensure_all_finite=False
        )
        names = getattr(self, "feature_names_in_", None) if hasattr(data, "dtype") else None
        human_col = column_index(self.human_col, "human_col", names, data.shape[1])
        ai_col = column_index(self.ai_col, "ai_col", names, data.shape[1])
        if human_col == ai_col:
            raise ValueError(f"ai_col: got {self.ai_col!r}, the same column as human_col")
        check_finite(data, {human_col: "human_col", ai_col: "ai_col"}, names)
        classes, y_code = two_classes(target)
        w = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
        truth = truth_signs(y_true, target, classes)
        r = relative_capability_rows(relative_capability, self.relative_capability, len(target))
        codes, workers = worker_codes(groups, target)
        keep = w > 0
        if len(np.unique(y_code[keep])) < 2:
            raise ValueError("sample_weight: only one class of y has positive weight")
        if codes is not None and not keep.all():
            kept, fresh = np.unique(codes[keep], return_inverse=True)
            workers, codes = workers[kept], np.full(len(codes), -1)
            codes[keep] = fresh
        others = [j for j in range(data.shape[1]) if j not in (human_col, ai_col)]
        raw = Raw(
            data[:, human_col],
            data[:, ai_col],
            data[:, others],
            y_code.astype(float),
            w,
            truth,
            r,
            codes,
        ).part(np.flatnonzero(keep))
        check_configuration(self, raw)
        options = Options(
            **{f.name: getattr(self, f.name) for f in fields(Options)}  # same names
        )
        if self.mode == "latent":
            learned = latent_attributes(raw, options, self.random_state)
        else:
            learned = two_stage_attributes(raw, workers, options, self.random_state)
        return {"classes_": classes, "_columns": (human_col, ai_col, others), **learned}

    def _odds(self, X: ArrayLike, relative_capability: float | ArrayLike | None) -> Array:
        """Log-odds of deciding for the second class."""
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False)
        human_col, ai_col, _ = self._columns
        roles = {human_col: "human_col", ai_col: "ai_col"}
        check_finite(data, roles, getattr(self, "feature_names_in_", None))
        if self._found is None:
            # Without the human's evidence all that is known is how often advice is followed.
            return np.sign(data[:, ai_col]) * logit(self._follow)
        default = self.relative_capability
        if default is None:
            fitted_r = np.unique(self._found.trials.r)
            default = float(fitted_r[0])
            if relative_capability is None and self.overlap_belief_ != 0 and len(fitted_r) > 1:
                raise ValueError(
                    "relative_capability: got None; the model was fitted to several, and its "
                    "overlap belief reads them: give one per sample"
                )
        r = relative_capability_rows(relative_capability, default, len(data))
        assert r is not None  # there is a default
        return decision_odds(self._found, data, r, self._columns)

    def decision_function(
        self, X: ArrayLike, relative_capability: float | ArrayLike | None = None
    ) -> Array:
        """Log-odds of deciding for the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Evidence, as in `fit`.
        relative_capability : float or array-like of shape (n_samples,), optional
            r of each trial; read only with an overlap belief, and needed only where `fit` saw
            several.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-odds; averaged over workers with random effects.
        """
        return self._odds(X, relative_capability)

    def predict_proba(
        self, X: ArrayLike, relative_capability: float | ArrayLike | None = None
    ) -> Array:
        """Probability of each decision.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Evidence, as in `fit`.
        relative_capability : float or array-like of shape (n_samples,), optional
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        odds = self._odds(X, relative_capability)
        return np.column_stack([expit(-odds), expit(odds)])

    def predict(
        self, X: ArrayLike, relative_capability: float | ArrayLike | None = None
    ) -> NDArray:
        """Predict the more probable decision.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Evidence, as in `fit`.
        relative_capability : float or array-like of shape (n_samples,), optional
            As in `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decisions.
        """
        positive = self._odds(X, relative_capability) > 0
        return self.classes_[positive.astype(int)]

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        relative_capability: float | ArrayLike | None = None,
    ) -> float:
        """Accuracy of the predicted decisions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Evidence, as in `fit`.
        y : array-like of shape (n_samples,)
            Decisions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        relative_capability : float or array-like of shape (n_samples,), optional
            As in `decision_function`.

        Returns
        -------
        float
            Share of decisions predicted.
        """
        predicted = self.predict(X, relative_capability)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def phase_point(self, system: int = 0) -> Regime:
        """Place the deployment in the phase diagram.

        Parameters
        ----------
        system : int, default=0
            Which AI system, in the order of `relative_capability_`.

        Returns
        -------
        Regime
            Region, accuracies, and distances to both boundaries, for an even prior.

        Raises
        ------
        ValueError
            If capabilities aren't known.
        """
        check_is_fitted(self)
        point = deployment_of(self, system)
        if self.n_choices > 2:
            raise ValueError("phase_point: two alternatives only; use equipoise.games.regime")
        return locate(
            point["h"],
            point["a"],
            point["overlap"],
            trust=point["trust"],
            overlap_belief=0.0 if self.recommendation == "binary" else point["belief"],
            recommendation=self.recommendation,
        )

    def recommend_policy(
        self,
        costs: Mapping[str, float] | None = None,
        policies: Sequence[str] | None = None,
        system: int = 0,
    ) -> PolicyReport:
        """Compare ways to deploy the AI, thresholds optimised.

        Parameters
        ----------
        costs : mapping, optional
            Cost of a decision in units of accuracy: "human" for the human's time, "ai" for a
            call of the AI; each counts where a policy uses that side.
        policies : sequence of str, optional
            Some of the policies of `equipoise.games.policy_accuracy`; None takes all.
        system : int, default=0
            Which AI system.

        Returns
        -------
        PolicyReport
            Policies by utility, with the probability that each is the best.

        Raises
        ------
        ValueError
            If capabilities aren't known, or a cost or policy isn't.
        """
        check_is_fitted(self)
        return policies_of(self, costs, policies, system)

    def profile(self, param: str, n_points: int = 21) -> pd.DataFrame:
        """Profile the likelihood over one parameter.

        Parameters
        ----------
        param : {"trust", "noise_scale", "bias", "overlap_belief"}
            The parameter to hold, on its own scale; the others are maximised again.
        n_points : int, default=21
            Number of values, over three standard errors to both sides of the estimate (belief:
            -0.6 to 0.6 where it wasn't fitted).

        Returns
        -------
        DataFrame
            value, loglik, deviance (twice the fall from the maximum), inside (deviance below the
            95 % point of chi-squared with one degree of freedom). A flat profile is a parameter
            that the data don't identify.

        Raises
        ------
        ValueError
            If the parameter has no profile here.
        """
        check_is_fitted(self)
        return profile_of(self, param, n_points)

    def explain(self) -> Explanation:
        """Say in which region the deployment lies, why, and what the data identify.

        Returns
        -------
        Explanation
            Table of quantity, value, low and high. Plots: "phase", "accuracy" (both only where
            `y_true` was given), "reliance", and "worker_trust" with random effects.
        """
        check_is_fitted(self)
        return explanation_of(self)
