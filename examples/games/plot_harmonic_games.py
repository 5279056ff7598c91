"""
Learning in a harmonic game ends on a curve
===========================================

Matching pennies has one equilibrium. What happens with three players? When the dimension of the
space of mixed profiles is odd, a harmonic game has no isolated equilibrium: its totally mixed
equilibria form a curve that reaches the boundary. We trace the curve, let three players learn who
see nothing but their own payoffs, and look at their regret.

Then we take a game from an auction and ask how much of it is conflict.
"""

# %%
# A game with conflict only
# -------------------------
# The game is random and harmonic. :class:`~equipoise.games.EquilibriumVariety` follows the curve
# from the centre, in both directions, to the boundary of the cube.

import matplotlib.pyplot as plt
import numpy as np

from equipoise.datasets import make_harmonic_game
from equipoise.games import (
    EquilibriumVariety,
    FTRLFlow,
    FTRLPlus,
    NormalFormGame,
    plot_cube,
    plot_regret,
)
from equipoise.plotting import COLORS

game = make_harmonic_game((2, 2, 2), random_state=3)
variety = EquilibriumVariety().fit(game)
print(variety.explain())

# %%
# Three ways to learn
# -------------------
# FTRL+ predicts the next payoffs and corrects itself; it settles on the curve. Plain FTRL, without
# the prediction, doesn't settle. In continuous time play goes round for ever: the energy is kept.

figure = plt.figure(figsize=(9.6, 4.4), layout="constrained")
left = figure.add_subplot(1, 2, 1, projection="3d")
variety.plot(ax=left)
for seed in range(12):
    run = FTRLPlus(init="random", random_state=seed).fit(game)
    plot_cube(run.trajectory_, left, color="0.55", linewidth=0.6)
    left.plot(*[[x[0]] for x in run.strategies_], "k.", markersize=5)
left.set_title("FTRL+ from twelve starts")

right = figure.add_subplot(1, 2, 2, projection="3d")
variety.plot(ax=right)
flow = FTRLFlow(t_max=60.0, random_state=1).fit(game)
plot_cube(flow.trajectory_, right, color=COLORS[3], linewidth=0.8)
right.set_title("continuous time: play comes back")
right.get_legend().remove()
left.legend(frameon=False, loc="upper left")

print(flow.explain())

# %%
# Regret stays bounded
# --------------------
# Each player's regret levels off. The broken lines are certificates: they hold whatever the others
# had done.

run = FTRLPlus(init="random", random_state=1, tol=0).fit(game)
plain = FTRLPlus(init="random", random_state=1, tol=0, extrapolation="none").fit(game)
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained", sharey=True)
for ax, solver, title in zip(axes, (run, plain), ("FTRL+", "plain FTRL"), strict=True):
    plot_regret(solver.explain().to_frame(), ax)
    ax.set_title(title)
    ax.set_yscale("symlog", linthresh=1.0)
    ax.spines[["top", "right"]].set_visible(False)

# %%
# How much of an auction is conflict?
# -----------------------------------
# Three bidders value a good at 4, 5 and 6, bid whole numbers up to 5 and pay what they bid if they
# win; ties are split. The decomposition says which part of the incentives a common potential
# explains, and how many players' bids each part involves.

values = np.array([4.0, 5.0, 6.0])


def first_price(bids: tuple[int, ...]) -> np.ndarray:
    """Expected gain of each bidder."""
    wins = np.array(bids) == max(bids)
    return wins * (values - np.array(bids)) / wins.sum()


auction = NormalFormGame.from_function(first_price, (6, 6, 6))
parts = auction.decompose()
print(f"potentialness {parts.potentialness:.3f}, share of variance {parts.potential_share:.3f}")
print("pure equilibria:", auction.pure_nash().tolist())
ax = parts.plot()
ax.set_title("a first-price auction of three bidders")
plt.show()
