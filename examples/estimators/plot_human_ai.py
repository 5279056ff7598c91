"""
When does an AI assistant help a decision?
==========================================

A person judges, sees what an AI says, and decides. Two things decide whether that helps: how much
the person trusts the AI, and whether they see that it often errs on the same cases as they do. This
example draws the map, then finds a team's place on it from its decisions alone.

The trials are simulated, so that the true trust is known: 120 workers who follow the AI's evidence
at a quarter of its worth.
"""

# %%
# The map
# -------
# Neglecting overlap, a worker ends up below their own accuracy when the AI is weak
# (impairment), and below the AI's when it is strong (automation). Under-trust shrinks the first and
# widens the second. Dotted: an AI as capable as the human. The curves are closed forms.
import matplotlib.pyplot as plt
import numpy as np

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel
from equipoise.explainers import RelianceReport
from equipoise.games import phase_diagram

figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
for ax, trust in zip(axes, (0.25, 1.0, 1.5), strict=True):
    diagram = phase_diagram(p_human=0.7, trust=trust, ai_grid=np.linspace(0, 2, 241))
    diagram.plot(ax)
    ax.set_title(
        f"trust {trust:g}: impairment {diagram.area()['impairment']:.0%}, "
        f"automation {diagram.area()['automation']:.0%}",
        fontsize=10,
    )
    if ax is not axes[0]:
        ax.set_ylabel("")

# %%
# One team
# --------
# Each row holds the worker's log-odds before the advice, the AI's log-odds, and the final decision.
# Trust varies between workers; the model estimates its distribution by quadrature.
data = make_human_ai_trials(
    120, 50, h=0.52, ai_capabilities=1.1, overlap=0.35, trust=0.25, trust_sd=0.8, random_state=0
)
model = HumanAITeamModel(random_effects="trust", random_state=0)
model.fit(data.X, data.y, y_true=data.y_true, groups=data.groups)
explanation = model.explain()
print(explanation)

# %%
# Where it lies, and who trusts how much
# --------------------------------------
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
explanation.plot("phase", axes[0])
explanation.plot("worker_trust", axes[1])

# %%
# Reliance rates say the same without a model: the AI is followed too rarely where it is right.
report = RelianceReport(n_resamples=500, random_state=0)
report.fit(data.initial, data.advice, data.y, data.y_true, groups=data.groups)
print(report.explain())

# %%
# What to do
# ----------
# Every way to deploy the AI, with its threshold optimised and the probability that it is the best.
# The machine that fuses both is a ceiling; of what people can do, deferring to a confident AI is best.
policies = model.recommend_policy()
print(policies)
policies.plot()
plt.show()
