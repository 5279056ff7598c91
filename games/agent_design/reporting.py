"""What a meta-game, its equilibria and a mediator mean: reports as text, tables and HTML."""

import warnings
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation

from .certification import CertificationMediator
from .comparison import compare_mediators
from .correlated import CorrelatedMediator
from .delegation import DelegationMediator
from .deviations import across, implementation_costs, pure_equilibria, regrets
from .meta_game import AgentDesignGame
from .pareto import ParetoMediator
from .pictures import draw_frontier, draw_heatmap, draw_payoffs, draw_policy
from .solver import MetaGameSolver, solution_frame, status_quo
from .subsidy import SubsidyMediator

__all__ = ["MediationReport", "explain_equilibria", "explain_game", "explain_mediator"]

Array = np.ndarray
SHOWN = 5
REPLICATES = 200
#: Above so many drawn matches, or profiles, a report leaves out what would take it many seconds.
LARGEST_DRAW = 20_000_000
LARGEST_TABLE = 400


class MediationReport(Explanation):
    """An explanation whose HTML also holds further tables, and the pictures.

    Parameters
    ----------
    title, summary, frame, plots
        As for `Explanation`.
    tables : mapping of str to DataFrame
        Further tables by heading.
    """

    def __init__(
        self,
        title: str,
        summary: Sequence[str],
        frame: pd.DataFrame,
        plots: Mapping[str, Callable[..., Any]],
        tables: Mapping[str, pd.DataFrame] | None = None,
    ) -> None:
        super().__init__(title, summary, frame, plots)
        self.tables = dict(tables or {})

    def _repr_html_(self) -> str:
        from matplotlib.figure import Figure

        parts = [super()._repr_html_()]
        for heading, table in self.tables.items():
            rows = table.to_html(index=False, escape=True, border=0, float_format="{:.4g}".format)
            parts.append(f"<p><strong>{escape(heading)}</strong></p>{rows}")
        for kind, draw in self._plots.items():
            figure = Figure(figsize=(5.6, 3.8), layout="constrained")
            draw(figure.subplots())
            file = BytesIO()
            figure.savefig(file, format="png", dpi=90)
            code = b64encode(file.getvalue()).decode()
            parts.append(f'<img alt="{escape(kind)}" src="data:image/png;base64,{code}">')
        return f"<div>{''.join(parts)}</div>"


def named(game: AgentDesignGame, index: Any) -> str:
    return "(" + ", ".join(str(a) for a in game.profile_names(index)) + ")"


def data_lines(game: AgentDesignGame) -> list[str]:
    counts = game.counts_
    lines = [
        f"{len(game.stakeholders_)} stakeholders, "
        + " x ".join(str(d) for d in counts.shape)
        + f" designs, {counts.size} profiles"
    ]
    if counts.any():
        lines.append(
            f"{game.n_matches_} matches, {counts.min():g} to {counts.max():g} a profile"
            + (", roles pooled" if game.symmetric_ else "")
        )
    if game.imputed_.any():
        filled = (
            "additive model"
            if game.payoff_ends_ is None
            else "anything within payoff_bounds, certificates take the worst"
        )
        lines.append(f"{int(game.imputed_.sum())} profiles were never played: {filled}")
    return lines


def certificate_line(game: AgentDesignGame, z: tuple[int, ...]) -> str:
    try:
        found = game.certify_nash(z)
    except ValueError:
        return f"{named(game, z)}: no standard errors, so its certainty is unknown"
    level = f"{game.confidence:.0%}"
    if found.ok:
        return f"{named(game, z)} is an equilibrium of the true game at {level} confidence"
    i, b = found.worst_deviation
    return (
        f"{named(game, z)}: at {level} confidence {game.stakeholders_[i]} might gain up to "
        f"{found.max_violation:.3g} by {game.designs_[i][b]}"
    )


def repeatable(game: AgentDesignGame) -> AgentDesignGame:
    """The game, with a seed if it has none: a report reads the same each time."""
    if game.random_state is not None:
        return game
    twin = copy(game)
    twin.random_state = 0
    return twin


def drawn_summary(game: AgentDesignGame) -> tuple[pd.DataFrame, Array] | None:
    """Bootstrap intervals, and each profile's share of equilibria; None without enough matches."""
    cells = game._cells
    if cells is None or len(cells.values) * REPLICATES > LARGEST_DRAW or (cells.sizes == 1).any():
        return None
    summary, shares = repeatable(game)._summary(REPLICATES, "keep")
    return summary.set_index("quantity"), shares


def interval(summary: pd.DataFrame, quantity: str) -> str:
    row = summary.loc[quantity]
    if not np.isfinite(row["lower"]):
        return ""
    share = "" if row["share"] == 1 else f", where defined ({row['share']:.0%})"
    return f" ({row['lower']:.4g} to {row['upper']:.4g} in the bootstrap{share})"


def mediator_table(game: AgentDesignGame) -> pd.DataFrame | None:
    """What the common mediators bring; None where that would take long."""
    shape, mask = game.counts_.shape, pure_equilibria(game.payoffs_)
    if game.counts_.size > LARGEST_TABLE or (not mask.any() and max(shape) > 6):
        return None
    mediators: dict[str, Any] = {
        "recommend": CorrelatedMediator(),
        "recommend, before it is known": CorrelatedMediator("cce"),
        "delegate": DelegationMediator(),
        "pay for the best": SubsidyMediator(),
    }
    if len(shape) <= 4 and max(shape) <= 12:
        mediators["improve without threats"] = ParetoMediator()
    if np.prod([2.0**d for d in shape]) <= 2**16:
        mediators["ban one design"] = CertificationMediator(max_bans=1)
    table = compare_mediators(game, mediators)
    shown = ["mediator", "welfare", "gain", "cost", "liability", "participation", "certified"]
    return table.loc[table["feasible"], shown]


def explain_game(game: AgentDesignGame) -> Explanation:
    """The explanation of `AgentDesignGame`."""
    u, W = game.payoffs_, game.welfare()
    mask = pure_equilibria(u)
    lines = data_lines(game)
    best = np.unravel_index(int(W.argmax()), W.shape)
    places = [tuple(int(a) for a in z) for z in np.argwhere(mask)]
    policy, exact = status_quo(game)
    worst = float((policy * W).sum())
    drawn = drawn_summary(game)
    tables = {}
    if drawn is not None:
        tables["Intervals, from matches drawn anew"] = drawn[0].reset_index()
    if places:
        lines.append(
            f"{len(places)} pure equilibria: "
            + ", ".join(
                f"{named(game, z)} with welfare {W[z]:.4g}"
                + ("" if drawn is None else f" (in {drawn[1][z]:.0%} of bootstrap replicates)")
                for z in places[:SHOWN]
            )
            + (" ..." if len(places) > SHOWN else "")
        )
    else:
        lines.append(
            "no pure equilibrium; the worst "
            + ("mixed equilibrium" if exact else "coarse correlated equilibrium")
            + f" has welfare {worst:.4g}"
        )
    lines.append(f"the best profile is {named(game, best)} with welfare {W.max():.4g}")
    if min(worst, W.max()) > 0:
        range_ = "" if drawn is None or not places else interval(drawn[0], "price of anarchy")
        lines.append(f"price of anarchy {W.max() / worst:.4g}{range_}, gap {W.max() - worst:.4g}")
    else:
        lines.append(
            f"gap {W.max() - worst:.4g}; a price of anarchy needs positive welfare throughout"
        )
    payoffs = u.reshape(len(u), -1) @ policy.ravel()
    change = u[across(best)] - payoffs
    lines.append(
        "against the worst equilibrium the best profile would bring "
        + ", ".join(f"{who} {c:+.4g}" for who, c in zip(game.stakeholders_, change, strict=True))
    )
    k = implementation_costs(u)
    range_ = "" if drawn is None else interval(drawn[0], "subsidy")
    lines.append(f"it becomes an equilibrium by subsidies of {k[best]:.4g}{range_}")
    table = mediator_table(game)
    if table is not None:
        tables["Mediators"] = table
        for _, row in table.iterrows():
            paid = f", paying {row['cost']:.4g}" if row["cost"] else ""
            lines.append(f"{row['mediator']}: welfare {row['welfare']:.4g}{paid}")
    lines += [certificate_line(game, z) for z in places[:SHOWN]]
    if game.counts_.any() and (places or len(u) == 2):
        first = game.suggest_matches(1).iloc[0]
        names = ", ".join(str(first[str(who)]) for who in game.stakeholders_)
        lines.append(f"the next match tells most at ({names})")
        tables["Matches to play next"] = game.suggest_matches(SHOWN)
    lines.append(
        "assumed: matches of a profile are independent, and which profile was played didn't "
        "depend on how it would go"
    )
    profiles = np.stack(np.unravel_index(np.arange(W.size), W.shape), axis=1)
    frame = pd.DataFrame(
        [game.profile_names(p) for p in profiles], columns=[str(s) for s in game.stakeholders_]
    )
    for i, who in enumerate(game.stakeholders_):
        frame[f"payoff of {who}"] = u[i].ravel()
    frame["welfare"] = W.ravel()
    frame["largest_gain"] = regrets(u).max(axis=0).ravel()
    frame["subsidy"] = k.ravel()
    frame["equilibrium"] = mask.ravel()
    if drawn is not None:
        frame["equilibrium_share"] = drawn[1].ravel()
    frame["matches"] = game.counts_.ravel()
    plots: dict[str, Any] = {"welfare": partial(draw_frontier, game)}
    if len(u) == 2:
        plots = {"heatmap": partial(draw_heatmap, game, None), **plots}
    title = "Which designs will be deployed, and how bad is that?"
    return MediationReport(title, lines, frame, plots, tables)


def explain_equilibria(solver: MetaGameSolver) -> Explanation:
    """The explanation of `MetaGameSolver`."""
    game = solver.game_
    lines = data_lines(game)
    lines.append(f"{len(solver.solutions_)} solutions ({solver.concept})")
    found = list(zip(solver.distributions_, solver.welfare_, solver.regrets_, strict=True))
    way = "disobeying" if solver.concept == "ce" else "one fixed design"
    for policy, welfare, gain in found[:SHOWN]:
        top = np.unravel_index(int(policy.argmax()), policy.shape)
        lines.append(
            f"welfare {welfare:.6g}, most often {named(game, top)} ({policy.max():.3g}); "
            f"nobody gains more than {max(gain, 0.0):.2g} by {way}"
        )
    if np.isfinite(solver.price_of_anarchy_):
        lines.append(
            f"price of anarchy {solver.price_of_anarchy_:.4g}, "
            f"of stability {solver.price_of_stability_:.4g}"
        )
    else:
        lines.append("prices need equilibria, and positive welfare throughout")
    lines.append(
        f"gap to the best profile {solver.welfare_gap_[0]:.4g} (worst), "
        f"{solver.welfare_gap_[1]:.4g} (best)"
    )
    if not solver.exact_:
        lines.append("a search found these; there may be others")
    if getattr(solver, "reducible_", False):
        lines.append("several closed classes in floating point: rare jumps decide between them")
    return Explanation(
        f"Which designs are in equilibrium ({solver.concept})?",
        lines,
        solution_frame(solver),
        {"welfare": partial(draw_frontier, game)},
    )


def worst_words(mediator: Any) -> str:
    """Who gains most by disobeying, and how, where the certificate names single stakeholders."""
    deviation, game = mediator.certificate_.worst_deviation, mediator.game_
    if not deviation or isinstance(deviation[0], tuple):
        return ""
    designs = getattr(mediator, "mediated_game_", None)
    own = game.designs_[deviation[0]]
    if isinstance(mediator, ParetoMediator) and designs is not None:
        own = designs.designs_[deviation[0]]
    return f", by {game.stakeholders_[deviation[0]]} with {own[deviation[-1]]}"


def drawn_line(mediator: Any) -> str | None:
    """How often the certificate holds when the matches are drawn anew."""
    sources = getattr(mediator, "_sources", [mediator.game_])
    sizes = [0 if game._cells is None else len(game._cells.values) for game in sources]
    if not mediator.feasible_ or not all(sizes) or sum(sizes) * REPLICATES > LARGEST_DRAW:
        return None
    twin = copy(mediator)
    twin.game_, twin._sources = repeatable(mediator.game_), [repeatable(game) for game in sources]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of single matches: data_lines tells counts
        table = twin.audit(REPLICATES, n_refit=0).set_index("quantity")
    gain = table.loc["gain"]
    line = f"the certificate holds in {table.loc['certificate holds', 'lower']:.0%} of replicates"
    if np.isfinite(gain["lower"]):
        line += f"; the gain lies between {gain['lower']:.4g} and {gain['upper']:.4g}"
    return line


def explain_mediator(mediator: Any) -> Explanation:
    """The explanation of every mediator."""
    game, found = mediator.game_, mediator.certificate_
    lines = data_lines(game)
    if mediator.feasible_:
        lines.append(
            f"welfare {mediator.welfare_:.6g} against {mediator.status_quo_welfare_:.6g} in the "
            + ("worst equilibrium" if mediator.status_quo_exact_ else "worst case (a lower bound)")
            + f" without it: {mediator.gain_:+.4g}"
        )
    else:
        lines.append(f"no policy: {mediator.reason_}")
    if mediator.cost_ or mediator.liability_:
        lines.append(
            f"expected payment {mediator.cost_:.4g}, largest promise {mediator.liability_:.4g}"
        )
    lines.append(
        f"certificate {'in order' if found.ok else 'NOT in order'}: the largest gain from "
        f"disobeying is {found.max_violation:.3g} (allowed {found.tolerance:.1e})"
        f"{worst_words(mediator)}; recomputed from payoffs and policy"
    )
    if (line := drawn_line(mediator)) is not None:
        lines.append(line)
    if not mediator.exact_:
        lines.append("not proved to be the best of its kind")
    for name, words in [
        ("bans_", "bans"),
        ("target_", "target"),
        ("environment_", "environment"),
        ("least_cap_", "least cap of a transfer"),
        ("punishment_welfare_", "welfare when one stays out"),
        ("full_information_", "welfare if all learn the state"),
    ]:
        value = getattr(mediator, name, None)
        if value is not None:
            shown = np.round(value, 4).tolist() if isinstance(value, np.ndarray) else value
            lines.append(f"{words}: {shown}")
    before = game.payoffs_.reshape(len(game.payoffs_), -1) @ mediator.status_quo_.ravel()
    frame = pd.DataFrame(
        {
            "stakeholder": [str(who) for who in game.stakeholders_],
            "status_quo": before,
            "mediated": mediator.payoffs_,
            "change": mediator.payoffs_ - before,
        }
    )
    plots: dict[str, Any] = {"payoffs": partial(draw_payoffs, frame)}
    if mediator.feasible_ and mediator.policy_.ndim == 2 and len(game.payoffs_) == 2:
        plots["policy"] = partial(draw_policy, game, mediator.policy_)
    name = type(mediator).__name__
    return MediationReport(f"{name}: what does it bring, and is it obeyed?", lines, frame, plots)
