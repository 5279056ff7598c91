"""FTRL+: follow the regularised leader with an extrapolation step and steps that tune themselves,
in self-play.

Each player sees only his own payoff vectors. In a harmonic game every player's regret stays bounded
and play goes to a Nash equilibrium; against arbitrary opponents the regret is O(sqrt(T)). The rule
is in `rule`.
"""

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .ftrl_report import learning_report
from .ftrl_run import play_and_record, stack_payoffs
from .ftrl_setup import (
    RULE_CONSTRAINTS,
    SCHEDULES,
    check_games,
    constant_steps,
    make_rule,
    start_strategies,
)
from .ftrl_state import LARGEST_COMPILED, SelfPlay
from .game import NormalFormGame, as_game

__all__ = ["FTRLPlus"]


class FTRLPlus(BaseEstimator):
    """Learn to play a game by self-play of FTRL+ from each player's own payoffs alone.

    Parameters
    ----------
    regularizer : {"entropic", "euclidean", "tsallis", "log_barrier"}, default="entropic"
        The regulariser h of every player.
    step_size : str, float or array-like of shape (n,), default="adaptive"
        "adaptive" is ``1 / sqrt(tau + S)``, with S the sum of squared prediction errors of past
        rounds; "scale_free" the same with tau = 0, which doesn't change when a player's payoffs are
        multiplied by a positive number; "theory" the constant step that a proof allows, for which
        the game's harmonic measure must be known; numbers are constant steps.
    extrapolation : {"optimistic", "mirror-prox", "none"} or float in [0, 1], default="optimistic"
        How the next payoff vector is predicted: by the last one (0, one oracle call a round), by an
        extra call at the base states (1, two calls), by a mixture, or not at all (plain FTRL, which
        doesn't converge in general).
    tau : float, default=1.0
        Of the adaptive step.
    tsallis_power : float, default=0.5
        Power of the Tsallis entropy, between 0 and 1.
    max_iter : int, default=10_000
        Largest number of rounds.
    tol : float, default=1e-8
        NashConv of the played strategies at which play stops; 0 plays all rounds.
    check_every : int, default=10
        Rounds between two checks of the gap.
    init : {"uniform", "center", "random"} or list of array-like, default="uniform"
        Start of play. The uniform start is the equilibrium of a game that is harmonic for the
        uniform measure.
    record : int, "all" or None, default=200
        Number of log-spaced snapshots; None keeps the last round only.
    backend : {"auto", "numpy", "numba", "torch"}, default="auto"
        "auto" takes torch if `device` is given, else numba up to 100,000 profiles, else numpy.
    device : str or torch.device, optional
        Where the torch backend runs, in float64; None is the CPU.
    random_state : int, RandomState or None, default=None
        For the random start.
    n_jobs : int, optional
        Threads over the games of a batch (numba backend).
    callback : callable, optional
        Called after each snapshot with a dict of "n_iter", "nash_gap" and "strategies"; play ends
        where it returns True.
    verbose : bool or int, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    strategies_ : list of ndarray of shape (d_i,)
        Strategies of the last round.
    averaged_strategies_ : list of ndarray of shape (d_i,)
        Mean of the played strategies.
    trajectory_ : list of ndarray of shape (n_records, d_i)
        Played strategies at the recorded rounds.
    rounds_ : ndarray of shape (n_records,)
        The recorded rounds.
    regret_, regret_bound_ : ndarray of shape (n_records, n)
        Each player's regret and the certificate: a bound that holds whatever the others did.
    nash_gap_ : ndarray of shape (n_records,)
        NashConv of the played strategies.
    best_nash_gap_ : float
        Least NashConv of any round.
    step_sizes_ : ndarray of shape (n_records, n)
        Step sizes.
    energy_ : ndarray of shape (n_records,) or None
        Weighted Fenchel coupling between the centre and the base states; None unless the game is a
        `HarmonicGame`.
    n_iter_ : int
        Rounds played.
    n_oracle_calls_ : int
        Joint evaluations of the payoff vectors.
    converged_ : bool
        Whether the gap came down to `tol`.
    diagnostics_ : dict
        "prediction_error" S (n,), "largest_prediction_error" (n,), "movement" (largest change of a
        probability in the last round), "backend".

    See Also
    --------
    FTRLPlusLearner : One player, online.
    EquilibriumVariety : All equilibria round the centre.

    Notes
    -----
    For a list of B games of one shape, arrays gain an axis of length B: strategies and their means
    (B, d_i), `trajectory_` (n_records, B, d_i), `regret_` (n_records, B, n), and so on; a game that
    has converged stays as it was in later records.

    References
    ----------
    .. [1] D. Legacci, P. Mertikopoulos, C. Papadimitriou, G. Piliouras, B. Pradelski, "No-regret
       learning in harmonic games", 2024.
    .. [2] Y.-G. Hsieh, K. Antonakopoulos, P. Mertikopoulos, "Adaptive learning in continuous games:
       optimal regret bounds and convergence to Nash equilibrium", 2021.

    Examples
    --------
    >>> from equipoise.games import FTRLPlus, NormalFormGame
    >>> pennies = NormalFormGame.from_bimatrix([[1, -1], [-1, 1]])
    >>> solver = FTRLPlus(init=[[0.7, 0.3], [0.4, 0.6]]).fit(pennies)
    >>> [x.round(6).tolist() for x in solver.strategies_]
    [[0.5, 0.5], [0.5, 0.5]]
    >>> bool((solver.regret_ <= solver.regret_bound_).all())
    True
    """

    _parameter_constraints: dict = {
        **RULE_CONSTRAINTS,
        "step_size": [StrOptions({*SCHEDULES, "theory"}), Real, "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "check_every": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"uniform", "center", "random"}), list, tuple],
        "record": [Interval(Integral, 1, None, closed="left"), StrOptions({"all"}), None],
        "backend": [StrOptions({"auto", "numpy", "numba", "torch"})],
        "device": "no_validation",
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        regularizer: str = "entropic",
        *,
        step_size: Any = "adaptive",
        extrapolation: str | float = "optimistic",
        tau: float = 1.0,
        tsallis_power: float = 0.5,
        max_iter: int = 10_000,
        tol: float = 1e-8,
        check_every: int = 10,
        init: Any = "uniform",
        record: int | str | None = 200,
        backend: str = "auto",
        device: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.regularizer = regularizer
        self.step_size = step_size
        self.extrapolation = extrapolation
        self.tau = tau
        self.tsallis_power = tsallis_power
        self.max_iter = max_iter
        self.tol = tol
        self.check_every = check_every
        self.init = init
        self.record = record
        self.backend = backend
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, game: Any, y: Any = None) -> Self:
        """Play from the start until the gap is small or `max_iter` rounds are over.

        Parameters
        ----------
        game : NormalFormGame, ndarray of shape (n, d_0, ..., d_{n-1}), or list of games of one
        shape
            What is played; a list is played as a batch.
        y : None
            Ignored; there for scikit-learn's tools.

        Returns
        -------
        FTRLPlus
            The fitted solver.

        Raises
        ------
        ValueError
            If a parameter isn't valid, the start lies on the boundary where the regulariser forbids
            it, or ``step_size="theory"`` or ``init="center"`` meets a game without a harmonic
            measure.
        TypeError
            If `game` isn't a game.
        """
        games = check_games(game)
        play = self._start(games)
        records = self._play(play, games, self.max_iter, self.tol)
        self._keep(play, games, records, single=not isinstance(game, list | tuple))
        if self.tol > 0 and not play.stopped.all():
            left = play.gap[~play.stopped]
            what = f"{len(left)} of {len(games)} games" if len(games) > 1 else "play"
            warnings.warn(
                f"FTRLPlus stopped {what} after {int(play.rounds.max())} rounds with a Nash gap of "
                f"{float(left.max()):.3g}, above tol={self.tol:g}; more rounds (max_iter) may "
                "close it",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, game: Any, n_rounds: int) -> Self:
        """Play some more rounds, from where the last call ended.

        Parameters
        ----------
        game : NormalFormGame, ndarray or list of games
            As for `fit`. It may be another game than before, of the same shape.
        n_rounds : int
            Rounds to play, whatever the gap.

        Returns
        -------
        FTRLPlus
            The solver; its records go on.
        """
        if not isinstance(n_rounds, Integral) or n_rounds < 1:
            raise ValueError(f"n_rounds must be a positive integer, got {n_rounds!r}")
        games = check_games(game)
        single = not isinstance(game, list | tuple)
        records: list[dict[str, Any]] = []
        if hasattr(self, "_state"):
            play = self._state.copy()
            if (
                play.n_actions != games[0].shape
                or len(play.rounds) != len(games)
                or single != self._single
            ):
                raise ValueError(
                    f"play goes on with {len(play.rounds)} game(s) of shape {play.n_actions}, "
                    f"got {len(games)} of "
                    f"shape {games[0].shape}; fit starts anew"
                )
            play.payoffs = stack_payoffs(games)
            if len(np.unique(play.rounds)) > 1:
                raise ValueError(
                    "the games of this batch stopped at different rounds; fit with tol=0 to go "
                    "on later"
                )
            play.stopped[:] = False
            records = list(self._records)
        else:
            play = self._start(games)
        records += self._play(play, games, int(play.rounds.max()) + int(n_rounds), 0.0)
        self._keep(play, games, records, single)
        return self

    def predict(self, X: Any = None) -> list[np.ndarray]:
        """Return the strategies of the last round.

        Parameters
        ----------
        X : None
            Ignored.

        Returns
        -------
        list of ndarray of shape (d_i,)
            `strategies_`.
        """
        check_is_fitted(self)
        return self.strategies_

    def score(self, game: Any, y: Any = None) -> float:
        """Return minus NashConv.

        Parameters
        ----------
        game : NormalFormGame, ndarray or list of games
            One game scores the fitted strategies in it. A list is played anew by a clone, since
            strategies belong to their game; the score is the mean.
        y : None
            Ignored.

        Returns
        -------
        float
            0 at an equilibrium, negative elsewhere.
        """
        check_is_fitted(self)
        if isinstance(game, list | tuple):
            return -float(clone(self).fit(game)._state.gap.mean())
        return -as_game(game).nash_gap(self.strategies_)

    def explain(self) -> Explanation:
        """Say why the result can be trusted: regret against its bound, the gap, the step sizes.

        Returns
        -------
        Explanation
            A row for each recorded round, player (and game of a batch); plots "regret", "gap",
            "step_size".
        """
        check_is_fitted(self)
        return learning_report(self, self._state)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags

    def _start(self, games: Sequence[NormalFormGame]) -> SelfPlay:
        """Return the state before the first round."""
        rule = make_rule(
            self.regularizer, self.step_size, self.extrapolation, self.tau, self.tsallis_power
        )
        rng = check_random_state(self.random_state)
        starts = [start_strategies(self.init, g, rule.regularizer, rng) for g in games]
        steps = constant_steps(self.step_size, games, rule)
        x1 = np.stack([np.concatenate(x) for x in starts])
        return SelfPlay.start(stack_payoffs(games), games[0].shape, rule, x1, steps)

    def _play(
        self, play: SelfPlay, games: Sequence[NormalFormGame], last: int, tol: float
    ) -> list[dict[str, Any]]:
        backend, device = self._backend(games[0].n_profiles)
        return play_and_record(
            play,
            games,
            last,
            record=self.record,
            callback=self.callback,
            verbose=self.verbose,
            tol=tol,
            check_every=self.check_every,
            backend=backend,
            device=device,
            n_jobs=self.n_jobs,
        )

    def _backend(self, n_profiles: int) -> tuple[str, Any]:
        """Return the backend's name and the torch device."""
        backend = self.backend
        if backend == "auto":
            backend = "torch" if self.device is not None else "numba"
            if backend == "numba" and n_profiles > LARGEST_COMPILED:
                backend = "numpy"
        if backend != "torch":
            if self.device is not None:
                raise ValueError(
                    f"device={self.device!r} needs backend='torch', got backend={backend!r}"
                )
            return backend, None
        from equipoise.devices import resolve_device

        return backend, resolve_device("cpu" if self.device is None else self.device)

    def _keep(
        self,
        play: SelfPlay,
        games: Sequence[NormalFormGame],
        records: list[dict[str, Any]],
        single: bool,
    ) -> None:
        """Set the learned state, all at once."""

        def stacked(name: str) -> np.ndarray:
            values = np.stack([record[name] for record in records])
            return values[:, 0] if single else values

        def unbatched(array: np.ndarray) -> Any:
            return array[0].copy() if single else array.copy()

        parts = play.split(stacked("x").reshape(-1, play.x.shape[1]))
        lead = (len(records),) if single else (len(records), len(games))
        calls = play.rounds * (2 if play.rule.queries else 1)
        self._state, self._records, self._single = play, records, single
        self.rounds_ = np.array([record["round"] for record in records])
        self.trajectory_ = [part.reshape(*lead, -1) for part in parts]
        self.regret_, self.regret_bound_ = stacked("regret"), stacked("bound")
        self.nash_gap_, self.step_sizes_ = stacked("gap"), stacked("eta")
        self.energy_ = stacked("energy") if records[-1]["energy"] is not None else None
        self.strategies_ = [unbatched(x) for x in play.split(play.x)]
        self.averaged_strategies_ = [
            unbatched(x) for x in play.split(play.total / play.rounds[:, None])
        ]
        self.best_nash_gap_ = float(play.best_gap[0]) if single else play.best_gap.copy()
        self.n_iter_ = int(play.rounds[0]) if single else play.rounds.copy()
        self.n_oracle_calls_ = int(calls[0]) if single else calls
        converged = play.gap <= self.tol
        self.converged_ = bool(converged[0]) if single else converged
        self.diagnostics_ = {
            "prediction_error": unbatched(play.S),
            "largest_prediction_error": unbatched(play.largest),
            "movement": unbatched(play.movement),
            "backend": self._backend(games[0].n_profiles)[0],
        }
