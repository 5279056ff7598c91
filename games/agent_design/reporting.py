"""What a meta-game, its equilibria and a mediator mean: in words, as tables and as pictures."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS, new_axes

from .comparison import subsidy_frontier
from .deviations import across, implementation_costs, pure_equilibria, regrets
from .meta_game import AgentDesignGame
from .solver import MetaGameSolver, largest_gain, solution_frame, status_quo

__all__ = ["draw_heatmap", "explain_equilibria", "explain_game", "explain_mediator"]

Array = np.ndarray
SHOWN = 5


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
        lines.append(f"{int(game.imputed_.sum())} profiles were never played: additive model")
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


def explain_game(game: AgentDesignGame) -> Explanation:
    """The explanation of `AgentDesignGame`."""
    u, W = game.payoffs_, game.welfare()
    mask = pure_equilibria(u)
    lines = data_lines(game)
    best = np.unravel_index(int(W.argmax()), W.shape)
    places = [tuple(int(a) for a in z) for z in np.argwhere(mask)]
    policy, exact = status_quo(game)
    worst = float((policy * W).sum())
    if places:
        lines.append(
            f"{len(places)} pure equilibria: "
            + ", ".join(f"{named(game, z)} with welfare {W[z]:.4g}" for z in places[:SHOWN])
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
        lines.append(f"price of anarchy {W.max() / worst:.4g}, gap {W.max() - worst:.4g}")
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
    lines.append(f"it becomes an equilibrium by subsidies of {k[best]:.4g}")
    lines += [certificate_line(game, z) for z in places[:SHOWN]]
    if game.counts_.any() and (places or len(u) == 2):
        first = game.suggest_matches(1).iloc[0]
        names = ", ".join(str(first[str(who)]) for who in game.stakeholders_)
        lines.append(f"the next match tells most at ({names})")
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
    frame["matches"] = game.counts_.ravel()
    plots: dict[str, Any] = {"welfare": partial(draw_frontier, game)}
    if len(u) == 2:
        plots = {"heatmap": partial(draw_heatmap, game, None), **plots}
    return Explanation("Which designs will be deployed, and how bad is that?", lines, frame, plots)


def explain_equilibria(solver: MetaGameSolver) -> Explanation:
    """The explanation of `MetaGameSolver`."""
    game = solver.game_
    lines = data_lines(game)
    lines.append(f"{len(solver.solutions_)} solutions ({solver.concept})")
    for policy, welfare in list(zip(solver.distributions_, solver.welfare_, strict=True))[:SHOWN]:
        top = np.unravel_index(int(policy.argmax()), policy.shape)
        gain = largest_gain(game.payoffs_, policy)
        lines.append(
            f"welfare {welfare:.6g}, most often {named(game, top)} ({policy.max():.3g}); "
            f"nobody gains more than {max(gain, 0.0):.2g} by one fixed design"
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


def explain_mediator(mediator: Any) -> Explanation:
    """The explanation of every mediator."""
    game, found = mediator.game_, mediator.certificate_
    lines = data_lines(game)
    if mediator.feasible_:
        lines.append(
            f"welfare {mediator.welfare_:.6g} against {mediator.status_quo_welfare_:.6g} in the "
            f"worst equilibrium without it: {mediator.gain_:+.4g}"
        )
    else:
        lines.append(f"no policy: {mediator.reason_}")
    if mediator.cost_ or mediator.liability_:
        lines.append(
            f"expected payment {mediator.cost_:.4g}, largest promise {mediator.liability_:.4g}"
        )
    lines.append(
        f"certificate {'in order' if found.ok else 'NOT in order'}: the largest gain from "
        f"disobeying is {found.max_violation:.3g} (allowed {found.tolerance:.1e}), recomputed from "
        "payoffs and policy"
    )
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
    return Explanation(f"{name}: what does it bring, and is it obeyed?", lines, frame, plots)


def label_axes(game: AgentDesignGame, ax: Any) -> None:
    rows, columns = ([str(a) for a in own] for own in game.designs_)
    ax.set_xticks(range(len(columns)), columns, rotation=35, ha="right")
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(str(game.stakeholders_[1]))
    ax.set_ylabel(str(game.stakeholders_[0]))
    ax.spines[:].set_visible(False)


def draw_heatmap(game: AgentDesignGame, stakeholder: Any, ax: Any) -> Any:
    """Welfare, or one's payoff, of each pair of designs; equilibria are framed."""
    from matplotlib.patches import Rectangle

    if len(game.stakeholders_) != 2:
        raise ValueError(f"a heat map needs two stakeholders, got {len(game.stakeholders_)}")
    ax = new_axes() if ax is None else ax
    if stakeholder is None:
        values, title = game.welfare(), "welfare"
    else:
        values = game.payoffs_[game.stakeholders_.index(stakeholder)]
        title = f"payoff of {stakeholder}"
    image = ax.imshow(values, cmap="cividis", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label=title)
    if values.size <= 64:
        middle = (values.max() + values.min()) / 2
        for (r, c), value in np.ndenumerate(values):
            color = "black" if value > middle else "white"
            ax.text(c, r, f"{value:.3g}", ha="center", va="center", color=color, fontsize=8)
    for r, c in np.argwhere(pure_equilibria(game.payoffs_)):
        frame = Rectangle((c - 0.47, r - 0.47), 0.94, 0.94, fill=False, lw=2.5, ec=COLORS[1])
        ax.add_patch(frame)
    label_axes(game, ax)
    ax.set_title(f"{title}; framed: equilibria")
    return ax


def draw_policy(game: AgentDesignGame, policy: Array, ax: Any) -> Any:
    image = ax.imshow(policy, cmap="Blues", vmin=0, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="probability")
    label_axes(game, ax)
    ax.set_title("what is deployed")
    return ax


def draw_payoffs(frame: pd.DataFrame, ax: Any) -> Any:
    place = np.arange(len(frame))
    ax.bar(place - 0.2, frame["status_quo"], 0.38, label="status quo", color=COLORS[1])
    ax.bar(place + 0.2, frame["mediated"], 0.38, label="mediated", color=COLORS[0])
    ax.axhline(0.0, color="0.6", lw=0.8)
    ax.set_xticks(place, frame["stakeholder"])
    ax.set_ylabel("expected payoff")
    ax.legend(frameon=False)
    return ax


def draw_frontier(game: AgentDesignGame, ax: Any) -> Any:
    """All profiles by subsidy and welfare, and what paid recommendations reach."""
    cost, W = implementation_costs(game.payoffs_).ravel(), game.welfare().ravel()
    ax.plot(cost, W, "o", ms=5, color="0.7", label="a profile")
    frontier = subsidy_frontier(game, "pure")
    ax.plot(frontier["cost"], frontier["welfare"], "o", ms=7, color=COLORS[1], label="efficient")
    if cost.size <= 400:
        smooth = subsidy_frontier(game, "correlated")
        ax.plot(smooth["cost"], smooth["welfare"], color=COLORS[0], label="paid recommendations")
    ax.set_xlabel("expected payment")
    ax.set_ylabel("welfare")
    ax.legend(frameon=False)
    return ax
