"""How the contract test builds, fits and questions each public class.

A class that isn't listed is taken as it comes: built with its defaults, fitted to small arrays
(X, y) that suit its tags, asked `explain(X)`, and put through scikit-learn's own checks.
Add a row where that isn't right:

    "ClassName": Case(
        make=lambda cls: cls(max_iter=50), fit=lambda: (problem,), explain=lambda args: ()
    )

`tests/test_contract.py` loads this file by its path.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes
    ----------
    make : callable
        From the class to a configured object; cheap settings, `random_state=0` where there is one.
    fit : callable or None
        To the positional arguments of `fit`; None: arrays (X, y) that suit the estimator's tags.
    explain : callable or None
        From the arguments of `fit` to those of `explain`; None only with `no_explain` saying why.
    no_explain : str
        Why the class has nothing to explain.
    sklearn_checks : bool
        Whether scikit-learn's checks apply: `fit` takes arrays (X, y) or (X).
    expected_failures : mapping
        Name of a scikit-learn check to the reason why it can't pass.
    warns : str
        Beginning of a warning that the checks' small data rightly draw (a regular expression):
        it is kept out of the tests' output.
    rejects : callable
        To a list of arguments of `fit` that must be refused with TypeError or ValueError; where
        `fit` takes arrays, NaN, infinity and wrong lengths are tried besides.
    """

    make: Callable[[type], Any] = lambda cls: cls()
    fit: Callable[[], tuple[Any, ...]] | None = None
    explain: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = lambda args: args[:1]
    no_explain: str = ""
    sklearn_checks: bool = True
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    warns: str = ""
    rejects: Callable[[], list[tuple[Any, ...]]] = lambda: [(None,), ("not a problem",)]


def regression() -> tuple[np.ndarray, np.ndarray]:
    """60 rows, 3 features, a smooth target."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 3))
    return X, np.sin(X[:, 0]) + X[:, 1]


def classification() -> tuple[np.ndarray, np.ndarray]:
    """60 rows, 3 features, three named classes."""
    X, target = regression()
    return X, np.array(["high", "low", "mid"])[np.digitize(target, [-0.5, 0.5]) % 3]


def mixture() -> tuple[np.ndarray]:
    """60 convex mixtures of three components in 3 features."""
    rng = np.random.RandomState(0)
    W = rng.uniform(size=(3, 3))
    return (rng.dirichlet(np.ones(3), size=60) @ W + 0.05 * rng.normal(size=(60, 3)),)


def opinions() -> tuple[np.ndarray, np.ndarray]:
    """A ring of eight users with a chord, and their opinions."""
    A = np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1)
    A[0, 4] = 1.0
    return A, np.linspace(0.2, 0.7, 8)


def nudged_opinions(cls: type) -> Any:
    """Opinions, half of them edited."""
    from equipoise.games import AffineMediator

    return cls(expression=AffineMediator(0.9, 0.05), adoption=0.5, random_state=0)


def equations() -> tuple[Any]:
    """A two-player system of min and max equations, absolutely halting."""
    from equipoise.games import LEMM

    rows = ["x = max(1 + 0.5*y, 2 - 0.25*z)", "y = min(1 - 0.5*x, 0.75*z - 1)", "z = 1 + 0.5*x"]
    return (LEMM.from_equations(rows),)


def decision_process() -> tuple[Any]:
    """A one-player system without negative coefficients."""
    from equipoise.games import LEMM

    return (LEMM.from_equations(["x = max(1 + 0.5*y, 2)", "y = max(0.9*x, 1 + 0.1*y)"]),)


def harmonic_game() -> tuple[Any]:
    """Three players with two actions each, whose equilibria form a curve."""
    from equipoise.datasets import make_harmonic_game

    return (make_harmonic_game((2, 2, 2), random_state=0),)


def chicken() -> tuple[np.ndarray]:
    """A game of two, with two pure equilibria."""
    return (np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.0, 0.0]]]),)


def markets() -> tuple[dict[str, np.ndarray]]:
    """Two environments, or states, with the same designs."""
    easy = np.array([[[4.0, 1.0], [3.0, 0.0]], [[4.0, 3.0], [1.0, 0.0]]])
    return ({"hard": chicken()[0], "easy": easy},)


def agent_matches() -> tuple[Any]:
    """A log of matches between two agents."""
    from equipoise.datasets import make_agent_design_matches

    return (make_agent_design_matches("chicken", n_matches=4, random_state=0),)


def two_samples() -> tuple[np.ndarray, np.ndarray]:
    """Two samples of 3 features with different means."""
    rng = np.random.RandomState(0)
    return rng.normal(size=(20, 3)), rng.normal(size=(25, 3)) + 0.5


def decisions() -> tuple[np.ndarray, np.ndarray]:
    """80 decisions from two columns of evidence and a moderator."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(80, 3))
    follows = X[:, 0] + 0.5 * X[:, 1] + rng.logistic(size=80) > 0
    return X, np.where(follows, "yes", "no")


def advised_trials() -> tuple[np.ndarray, ...]:
    """Initial judgement, advice, final decision, truth and person of 120 trials."""
    rng = np.random.RandomState(0)
    truth = rng.randint(2, size=120)
    initial, advice = (np.where(rng.rand(120) < p, truth, 1 - truth) for p in (0.65, 0.8))
    final = np.where(rng.rand(120) < 0.5, initial, advice)
    return initial, advice, final, truth, np.repeat(np.arange(12), 10)


def crowd() -> tuple[np.ndarray]:
    """Six tasks, four workers, some votes missing."""
    votes = [[0, 0, 1, -1], [1, 1, 1, 1], [0, 0, -1, 0], [2, 2, 1, 2], [0, 2, 0, -1], [1, -1, 1, 0]]
    return (np.array(votes),)


def voted_items() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """60 rows with named classes and nine votes each."""
    X, y = classification()
    votes = 7 * (y[:, None] == np.unique(y)) + np.random.RandomState(0).multinomial(
        2, [1 / 3] * 3, 60
    )
    return X, y, votes


def jumping_losses() -> tuple[np.ndarray]:
    """Losses of three arms in 300 rounds, which jump once."""
    return (np.repeat([[0.5, 0.8, 0.8], [0.5, 0.8, 0.2]], 150, axis=0),)


def voted_probabilities() -> tuple[np.ndarray, np.ndarray]:
    """60 distributions over three classes, and ten votes drawn from each."""
    rng = np.random.RandomState(0)
    proba = rng.dirichlet(np.ones(3), size=60)
    return proba, np.array([rng.multinomial(10, row) for row in proba])


def soft_label_audit(cls: type) -> Any:
    """A cheap audit of a convex model."""
    from sklearn.linear_model import LogisticRegression

    from equipoise.estimators import SoftLabelClassifier

    model = SoftLabelClassifier(LogisticRegression())
    return cls(model, seeds=2, n_bootstrap=20, random_state=0)


CASES: dict[str, Case] = {
    **{
        name: Case(
            make=lambda cls: cls(3, random_state=0),
            fit=jumping_losses,
            explain=lambda args: (),
            sklearn_checks=False,
            rejects=lambda: [
                (None,),
                ("losses",),
                (np.full((10, 3), np.nan),),
                (np.full((10, 3), 1.5),),
                (np.zeros((10, 2)),),
            ],
        )
        for name in (
            "BanditOverBandit",
            "Corral",
            "DetectionAugmented",
            "EpsilonGreedy",
            "Exp3",
            "Exp3IX",
            "Exp3P",
            "Exp3PlusPlus",
            "Exp3S",
            "LogBarrierFTRL",
            "RestartOnDetect",
            "StaticDynamicBandit",
            "ThompsonBeta",
            "TrackAndExplore",
            "TsallisINF",
        )
    },
    **{
        name: Case(
            make=lambda cls: cls(3),
            fit=jumping_losses,
            explain=lambda args: (),
            sklearn_checks=False,
        )
        for name in ("DiscountedUCB", "UCB1")
    },
    "SlidingWindowUCB": Case(
        make=lambda cls: cls(3, horizon=300),
        fit=jumping_losses,
        explain=lambda args: (),
        sklearn_checks=False,
    ),
    "RelianceReport": Case(
        make=lambda cls: cls(n_resamples=50, random_state=0),
        fit=advised_trials,
        explain=lambda args: (),
        sklearn_checks=False,  # fit takes four columns of labels
        rejects=lambda: [(None, [0, 1], [0, 1], None), (None, [0, 1], [0, 1, 1], [0, 1])],
    ),
    "HumanAITeamModel": Case(
        make=lambda cls: cls(alpha=1.0, n_boot=20, random_state=0),
        fit=decisions,
        explain=lambda args: (),
    ),
    **{
        name: Case(fit=chicken, explain=lambda args: (), sklearn_checks=False)
        for name in (
            "CertificationMediator",
            "CommitmentMediator",
            "CorrelatedMediator",
            "DelegationMediator",
            "MetaGameSolver",
            "ParetoMediator",
            "SubsidyMediator",
        )
    },
    **{
        name: Case(fit=markets, explain=lambda args: (), sklearn_checks=False)
        for name in ("DisclosureMediator", "MarketChoiceMediator")
    },
    "TransferMediator": Case(
        make=lambda cls: cls((0, 0)), fit=chicken, explain=lambda args: (), sklearn_checks=False
    ),
    "AgentDesignGame": Case(fit=agent_matches, explain=lambda args: (), sklearn_checks=False),
    "EquilibriumVariety": Case(fit=harmonic_game, explain=lambda args: (), sklearn_checks=False),
    "FTRLFlow": Case(
        make=lambda cls: cls(t_max=5.0, random_state=0),
        fit=harmonic_game,
        explain=lambda args: (),
        sklearn_checks=False,
    ),
    "MediatedOpinionDynamics": Case(
        make=nudged_opinions, fit=opinions, explain=lambda args: (), sklearn_checks=False
    ),
    "FTRLPlus": Case(
        make=lambda cls: cls(init="random", max_iter=200, random_state=0),
        fit=harmonic_game,
        explain=lambda args: (),
        sklearn_checks=False,
    ),
    "DirichletBetaVAE": Case(
        make=lambda cls: cls(random_state=0),
        fit=mixture,
        warns="noise_variance='auto' finds no noise beyond 2 directions",  # of 2 or 3 features
        # tests/estimators/test_dirichlet_vae.py holds the same properties with two components.
        expected_failures=dict.fromkeys(
            (
                "check_dont_overwrite_parameters",
                "check_fit2d_1feature",
                "check_fit2d_1sample",
                "check_fit2d_predict1d",
                "check_methods_sample_order_invariance",
                "check_methods_subset_invariance",
            ),
            "the check sets n_components=1, but a simplex code needs two components",
        ),
    ),
    "FCLSUnmixer": Case(
        make=lambda cls: cls(np.eye(3)),
        fit=mixture,
        explain=None,
        no_explain="the abundances are the exact solution of a convex problem",
        sklearn_checks=False,  # they vary the number of features, which the endmembers fix
    ),
    "DatasetCartography": Case(
        make=lambda cls: cls(epochs=3),
        fit=classification,
        explain=lambda args: (),
        sklearn_checks=False,
        rejects=lambda: [
            (classification()[0], None),
            (classification()[0], np.linspace(0, 1, 60)),
            (classification()[0][:-1], classification()[1]),
        ],
    ),
    **{
        name: Case(
            fit=crowd,
            explain=lambda args: (),
            sklearn_checks=False,
            rejects=lambda: [(None,), ("votes",), (np.full((3, 2), -1),)],
        )
        for name in ("DawidSkene", "MajorityVote", "VoteShare", "WAWA")
    },
    "VoteConformalSets": Case(
        fit=voted_probabilities,
        explain=lambda args: args,
        sklearn_checks=False,  # fit takes probabilities and votes
        rejects=lambda: [
            (voted_probabilities()[0], None),
            (voted_probabilities()[0][:-1], voted_probabilities()[1]),
            (np.full((60, 3), np.nan), voted_probabilities()[1]),
        ],
    ),
    "SoftLabelAudit": Case(
        make=soft_label_audit,
        fit=voted_items,
        explain=lambda args: (),
        sklearn_checks=False,
        rejects=lambda: [
            (voted_items()[0], voted_items()[1], None),
            (voted_items()[0][:-1], *voted_items()[1:]),
            (np.full((60, 3), np.nan), *voted_items()[1:]),
        ],
    ),
    **{
        # One batch of all rows: then weights are the same as repeated rows, to rounding.
        name: Case(
            make=lambda cls: cls(
                (16,), batch_size=1000, max_epochs=40, lr=0.05, dtype="float64", random_state=0
            ),
            explain=lambda args: (),
        )
        for name in ("ProjectionMLPClassifier", "ProjectionMLPRegressor")
    },
    "SoftLabelClassifier": Case(
        make=lambda cls: cls(max_epochs=20, random_state=0),
        explain=lambda args: args[:2],
        expected_failures={
            "check_sample_weight_equivalence_on_dense_data": (
                "the default solver takes minibatches: other rows, other batches; "
                "solver='lbfgs' and convex classifiers pass"
            )
        },
    ),
    "HSICShapleyExplainer": Case(explain=lambda args: ()),
    "HSICShapleySelector": Case(
        explain=None,
        no_explain="its scores_ are the explanation; HSICShapleyExplainer hands it out",
    ),
    "MMDShapleyExplainer": Case(
        fit=two_samples,
        explain=lambda args: (),
        sklearn_checks=False,  # the second argument of fit is a sample, not a target
        rejects=lambda: [(None,), (np.zeros((3, 2)), np.zeros((3, 1)))],
    ),
    "LemkeSolver": Case(fit=equations, explain=lambda args: (), sklearn_checks=False),
    "LinearProgramLEMM": Case(fit=decision_process, explain=lambda args: (), sklearn_checks=False),
    "PolicyIteration": Case(fit=equations, explain=lambda args: (), sklearn_checks=False),
    "SimplePolicyIteration": Case(
        make=lambda cls: cls(random_state=0),
        fit=equations,
        explain=lambda args: (),
        sklearn_checks=False,
    ),
    "ValueIteration": Case(
        make=lambda cls: cls(store_history=True),
        fit=equations,
        explain=lambda args: (),
        sklearn_checks=False,
    ),
}
