"""
Still or moving: a bandit that needn't be told
==============================================

Five classifiers read digits. Each was trained with another part of the image hidden. In the stream,
what is hidden jumps without notice. Only the classifier that is asked shows its error. A learner
against fixed arms follows the jumps too slowly; one that explores enough to follow them pays for it
when the world stands still. Which learner is good at both?
"""

# %%
# The stream
# ----------
# Real digits, real classifiers; a round's loss is the classifier's error rate on what the camera sees
# now. Within a segment it stands still: a noiseless bandit with jumps.

import matplotlib.pyplot as plt
import numpy as np

from equipoise.datasets import load_digits_bandit, make_bandit_losses
from equipoise.games import (
    AdaptiveHideEnv,
    BanditOverBandit,
    Corral,
    Exp3,
    Exp3S,
    StaticDynamicBandit,
    TrackAndExplore,
    TsallisINF,
    best_switching_sequence,
    simulate,
)

T, S = 20_000, 10
stream = load_digits_bandit(horizon=T, n_switches=S, random_state=0)
A = stream.n_arms
print(dict(zip(stream.hidden, stream.cuts[:-1].tolist(), strict=False)))

# %%
# One run
# -------
# The learner estimates its own regrets from what it saw, without counterfactuals; the true ones stand
# beside them.

learner = StaticDynamicBandit(A, horizon=T, random_state=0).fit(stream.losses)
print(learner.explain())

# %%
# Which arm is played when? Below the run, the best sequence with as many segments as the stream has.

total, path = best_switching_sequence(stream.losses, S, return_path=True)
figure, axes = plt.subplots(2, 1, figsize=(8.5, 4.2), sharex=True, layout="constrained")
for ax, arms, title in zip(
    axes, (learner.arms_, path), ("played", "best sequence of ten segments"), strict=True
):
    ax.plot(arms, ",", color="#0072B2", alpha=0.9 if arms is path else 0.6)
    ax.plot(np.arange(0, T, 20), arms[::20], ".", markersize=2, color="#0072B2")
    ax.set(title=title, yticks=range(A))
    ax.set_yticklabels([name.split()[2] for name in stream.arm_names])
    for cut in stream.cuts[1:-1]:
        ax.axvline(cut, color="0.8", linewidth=0.8, zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_xlabel("round")

# %%
# Everyone's regret
# -----------------
# Sixteen runs each. Track-and-explore and Exp3.S are told how many segments there are; the others
# aren't.


def field(n_arms, n_segments):
    return {
        "static-dynamic": StaticDynamicBandit(n_arms, horizon=T),
        "track-and-explore (told S)": TrackAndExplore(n_arms, horizon=T, n_switches=n_segments),
        "Exp3.S (told S)": Exp3S(n_arms, horizon=T, n_switches=n_segments),
        "Exp3": Exp3(n_arms, horizon=T),
        "Tsallis-INF": TsallisINF(n_arms),
        "Corral": Corral(n_arms, horizon=T),
        "bandit-over-bandit": BanditOverBandit(n_arms, horizon=T),
    }


moving = simulate(field(A, S), stream.losses, n_runs=16, random_state=0)
print(moving.summary().round(1).to_string(index=False))

# %%
# The same learners where one arm is always best and the others jump 255 times to no purpose: here the
# price of exploration shows. The lower left of each picture is where one wants to be. Whoever is told
# of the jumps explores too much in the second world; whoever ignores them loses in the first.

losses = make_bandit_losses("decoy", 4, T, 256, random_state=0).losses
still = simulate(field(4, 256), losses, n_runs=16, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, result, title in zip(
    axes, (moving, still), ("the best arm jumps", "one arm is always best"), strict=True
):
    result.plot_pareto(ax)
    ax.set_title(title)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].get_legend().remove()
axes[1].set(xscale="log", yscale="log")  # nobody beats the fixed arm here: all are positive

# %%
# What no learner can do
# ----------------------
# An adversary who sees the arms takes a dropped loss away the round after it is found. The learner
# pays for every search and earns nothing. The same losses, fixed in advance and replayed to a fresh
# learner, are easy.

segments = np.array([8, 32, 128, 512])
against, replayed = np.zeros((2, len(segments)))
for k, seed in np.ndindex(len(segments), 6):
    env = AdaptiveHideEnv(4, T, int(segments[k]), random_state=seed)
    run = StaticDynamicBandit(4, horizon=T, random_state=seed).fit(env)
    again = StaticDynamicBandit(4, horizon=T, random_state=100 + seed).fit(env.losses_)
    scale = 6 * np.sqrt(env.n_switches_ * 4 * T)
    against[k] += run.dynamic_regret_ / scale
    replayed[k] += again.dynamic_regret_ / scale
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(segments, against, "o-", label="adversary sees the arms")
ax.plot(segments, replayed, "o-", label="the same losses, fixed in advance")
ax.set(
    xscale="log",
    xlabel="segments S, at most",
    ylabel="dynamic regret / sqrt(S A T)",
    ylim=(0, None),
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
