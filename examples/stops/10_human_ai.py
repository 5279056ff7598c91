"""Tour stop: does an AI's advice help, and how much is it trusted?"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel
from equipoise.games import phase_diagram


def visit() -> dict[str, Any]:
    """Estimate trust from 6000 decisions with a known truth, and place the team on the map."""
    data = make_human_ai_trials(
        120, 50, h=0.52, ai_capabilities=1.1, overlap=0.35, trust=0.25, random_state=0
    )
    model = HumanAITeamModel(cov="cluster", random_state=0, n_boot=200)
    model.fit(data.X, data.y, y_true=data.y_true, groups=data.groups)
    low, high = model.trust_ci_
    place = model.phase_point()
    few, many = (phase_diagram(0.52, trust=t).area() for t in (0.25, 1.5))
    claims = few["impairment"] < many["impairment"] and few["automation"] > many["automation"]

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    explanation = model.explain()
    explanation.plot("phase", axes[0])
    explanation.plot("accuracy", axes[1])
    return {
        "system": "HumanAITeamModel",
        "question": "120 people decide with an AI's advice: does it help, and what do they make of it?",
        "answer": f"They trust it at {model.trust_:.2f} of its worth ({low:.2f} to {high:.2f}): "
        f"accuracy {place.human:.2f} alone, {place.team:.2f} together, {place.ai:.2f} for the AI, "
        f"so the team is in the region of {place.name}.",
        "check": "the interval holds the true trust of 0.25; under-trust shrinks impairment and "
        "widens automation on the grid, as the closed forms say",
        "passed": bool(low < 0.25 < high and claims and np.isfinite(place.team)),
        "figure": figure,
    }
