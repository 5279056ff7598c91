"""Agents written by language models: which will be deployed, and which mediator helps?"""

from typing import Any

from equipoise.datasets import load_llm_attitudes
from equipoise.games import (
    CertificationMediator,
    DelegationMediator,
    SubsidyMediator,
    compare_mediators,
    subsidy_frontier,
)
from equipoise.games.agent_design.certificates import certify_profile


def visit() -> dict[str, Any]:
    """Solve the meta-game of measured payoffs, and mediate it in three ways."""
    games = load_llm_attitudes().games
    trap, dilemma = games["openai_default"], games["anthropic_prose_noise"]
    status_quo = trap.equilibria("pure")
    ban = CertificationMediator(max_bans=1).fit(trap)
    subsidy = SubsidyMediator().fit(dilemma)
    table = compare_mediators(trap, [DelegationMediator(), SubsidyMediator(), ban])
    paid = subsidy.mediated_game_.payoffs_
    target = dilemma.profile_index(subsidy.target_)
    obeyed = certify_profile(paid, target).ok
    ((who, what),) = ban.bans_
    ax = trap.plot_heatmap()
    cheap = float(subsidy_frontier(dilemma)["cost"].max())
    return {
        "system": "AgentDesignGame",
        "question": "Which LLM-written agents will two people deploy, and who can make it better?",
        "answer": (
            f"{len(status_quo.solutions_)} equilibria, price of anarchy "
            f"{status_quo.price_of_anarchy_:.2f}; banning the {who}'s {what} agents lifts the worst "
            f"welfare from {ban.status_quo_welfare_:.2f} to {ban.welfare_:.2f}"
        ),
        "check": (
            "each mediator's certificate is recomputed from payoffs and policy; in a noisy game a "
            f"subsidy of {subsidy.cost_:.3f} makes cooperation an equilibrium"
        ),
        "passed": bool(
            table["certified"].all()
            and ban.certificate_.ok
            and obeyed
            and abs(cheap - subsidy.cost_) < 1e-9
            and abs(ban.welfare_ - 5.980912) < 1e-6
        ),
        "figure": ax.figure,
    }
