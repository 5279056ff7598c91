r"""HumanAITeamModel: how much a worker trusts an AI's advice, estimated from decisions.

Two-stage data hold the human's log-odds before the advice, the AI's, and the final decision:
z = bias + beta [ (1 - rho_hat r) l_H + tau (1 - rho_hat / r) l_A ] / (1 - rho_hat^2). Latent data
hold only advice, final decision and truth, with human-alone trials of the same population.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import Interval, StrOptions

from .answers import TeamAnswers
from .learning import learned_attributes
from .predictions import log_odds_of

__all__ = ["HumanAITeamModel"]

Array = NDArray[np.float64]

#: What only a latent fit learns, and a later two-stage fit must not keep.
LATENT_ONLY = ("goodness_of_fit_", "item_sd_")


class HumanAITeamModel(TeamAnswers, ClassifierMixin, BaseEstimator):
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
        needs at least two relative capabilities. With binary advice a belief also needs `y_true`
        and the human's log-odds, because the advice is read in their light. Latent data allow
        only "neglect": they hold no trace of it.
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
    random_effects : {"trust", "trust+bias", "item"}, optional
        Give each worker in `groups` a log-normal trust, and a normal bias. "item" is for latent
        data: give each case in `items` a difficulty that both capabilities share.
    n_quad : int, default=15
        Nodes of the adaptive Gauss-Hermite rule for each random effect.
    penalty : {"ridge", "firth"}, default="ridge"
        "firth" adds half the log-determinant of the weights' information, which keeps them finite
        where the evidence predicts every decision; not with a fitted belief, lapse or random
        effects.
    alpha : float, default=0.0
        Ridge penalty on log trust and the moderators' coefficients.
    cov : {"information", "cluster", "bootstrap"}, default="information"
        Covariance: observed information, sandwich clustered by `groups`, or a bootstrap of the
        whole estimation (calibration included) that resamples `groups`, or rows without them;
        a worker who is drawn twice counts as two. Item effects allow only "information".
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
        Only for latent data: G2, Pearson's statistic, df and pvalue; NaN with item effects.
    item_sd_ : tuple of float
        Only for ``random_effects="item"``: how much a case moves the capability of the human, and
        of the AI.
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
    .. [3] D. Firth (1993). "Bias reduction of maximum likelihood estimates". Biometrika 80(1),
       27-38.

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
        "random_effects": [StrOptions({"trust", "trust+bias", "item"}), None],
        "n_quad": [Interval(Integral, 1, 100, closed="both")],
        "penalty": [StrOptions({"ridge", "firth"})],
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
        penalty: str = "ridge",
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
        self.penalty = penalty
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
        items: ArrayLike | None = None,
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
        items : array-like of shape (n_samples,), optional
            The case that each trial is about; needed for ``random_effects="item"``, else not read.
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
            learned = learned_attributes(
                self, X, y, y_true, groups, items, relative_capability, sample_weight
            )
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        for name in LATENT_ONLY:
            self.__dict__.pop(name, None)
        self.__dict__.update(learned)
        return self

    def decision_function(
        self, X: ArrayLike, relative_capability: float | ArrayLike | None = None
    ) -> Array:
        """Log-odds of deciding for the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Evidence, as in `fit`.
        relative_capability : float or array-like of shape (n_samples,), optional
            r of each trial; read only with an overlap belief, or with binary advice of several AI
            systems, and needed only where `fit` saw several.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-odds; averaged over workers with random effects.
        """
        return log_odds_of(self, X, relative_capability)

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
        odds = log_odds_of(self, X, relative_capability)
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
        positive = log_odds_of(self, X, relative_capability) > 0
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
