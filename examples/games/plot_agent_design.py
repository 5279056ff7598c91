"""
Which agents will people deploy, and who can make it better?
============================================================

People choose an agent to act for them: a model, a prompt, an attitude. What an agent earns depends on
the agents that others chose, so the choice is itself a game. Its equilibria may be bad for everybody.
A mediator can act on that choice, before any agent meets another.

We look at agents that language models wrote under an aggressive, a cooperative and a neutral attitude
for an iterated prisoner's dilemma, with payoffs as measured in tournaments.
"""

# %%
# Two meta-games
# --------------
# Without noise each attitude is the best reply to itself: three equilibria, one of them bad for both,
# a trap. With noise, and another model, being neutral is best whatever the other does, though both
# would earn more with cooperative agents: a dilemma, if a mild one.

import matplotlib.pyplot as plt

from equipoise.datasets import load_llm_attitudes, make_agent_design_matches
from equipoise.games import (
    AgentDesignGame,
    CertificationMediator,
    CorrelatedMediator,
    DelegationMediator,
    ParetoMediator,
    SubsidyMediator,
    TransferMediator,
    compare_mediators,
    subsidy_frontier,
)
from equipoise.plotting import COLORS

games = load_llm_attitudes().games
trap, dilemma = games["openai_default"], games["anthropic_prose_noise"]
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
for ax, game, name in zip(axes, (trap, dilemma), ("a trap", "a dilemma"), strict=True):
    game.plot_heatmap(ax=ax)
    ax.set_title(f"{name}: welfare per turn; framed: equilibria")
print(trap.explain())

# %%
# What each mediator brings
# -------------------------
# Welfare is the sum of both payoffs per turn. The worst equilibrium is taken for the status quo. One
# ban lifts the trap's worst equilibrium; in the dilemma a subsidy of a fiftieth of a point each makes
# cooperation an equilibrium.

best = ("Cooperative", "Cooperative")
mediators = {
    "recommend": CorrelatedMediator(),
    "delegate": DelegationMediator(),
    "improve (Pareto)": ParetoMediator(),
    "pay": SubsidyMediator(best),
    "contract": TransferMediator(best),
    "ban one": CertificationMediator(max_bans=1),
}
for name, game in [("trap", trap), ("dilemma", dilemma)]:
    table = compare_mediators(game, mediators)
    print(f"\n{name}")
    print(
        table[["mediator", "welfare", "gain", "cost", "certified"]].round(4).to_string(index=False)
    )

# %%
# How sure is that?
# -----------------
# Payoffs come from finitely many matches. Here are 30 matches a profile of a prisoner's dilemma with
# three levels of cooperation, and noise as large as the stakes. The left picture shows what money
# buys; the right one how often the mediators' promises hold when the matches are drawn anew. A
# subsidy that makes people just indifferent holds in part of the replicates only; a margin helps.

matches = make_agent_design_matches("prisoners", n_designs=3, noise=2.0, random_state=0)
estimate = AgentDesignGame(random_state=0).fit(matches)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
left.plot(*subsidy_frontier(estimate)[["cost", "welfare"]].to_numpy().T, "o", color=COLORS[1])
left.plot(*subsidy_frontier(estimate, "correlated").to_numpy().T, color=COLORS[0])
left.set(xlabel="expected payment", ylabel="welfare", title="dots: a profile, line: paid advice")

target = estimate.designs_[0].index("cooperate 100%")
held = {
    str(margin): SubsidyMediator((target, target), margin=margin).fit(estimate)
    for margin in (0.0, 0.25, 0.5, 1.0)
}
held["robust"] = SubsidyMediator((target, target), robust=True).fit(estimate)
shares = [
    m.audit(500, n_refit=0).set_index("quantity").loc["certificate holds", "lower"]
    for m in held.values()
]
bars = right.bar(list(held), shares, color=COLORS[0])
right.bar_label(bars, [f"costs {m.cost_:.2f}" for m in held.values()], fontsize=8)
right.set(xlabel="margin", ylabel="share of replicates", ylim=(0, 1.12))
right.set_title("how often the subsidy suffices")
right.spines[["top", "right"]].set_visible(False)
left.spines[["top", "right"]].set_visible(False)

# %%
# Where should the next matches be played? Where they could change the answer:

print(estimate.suggest_matches(3).round(3).to_string(index=False))
