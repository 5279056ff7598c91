"""
Where policy iteration cycles, value iteration diverges, and what still works
=============================================================================

A system of equations ``x = max(...)``, ``y = min(...)`` is what a Markov decision process, a
two-player game or an American option comes down to. With non-negative coefficients the classic
methods solve it. With signed ones policy iteration may run in circles and value iteration may
blow up. This example looks at three small systems where that happens, and at the rules that solve
all of them; then it prices an option and plays a game on a grid.
"""

# %%
# Three systems
# -------------
#
# The first is absolutely halting: in a weighted norm every sweep shrinks the error. The second is
# halting, so its solution is unique, but a sweep may enlarge the error. The third is a game.

import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from equipoise.datasets import (
    make_american_option_lemm,
    make_gridworld_game,
    make_lemm,
    make_pi_cycle_lemm,
    make_ssg_newton_cycle,
    make_vi_divergent_lemm,
)
from equipoise.games import (
    PolicyIteration,
    SimplePolicyIteration,
    ValueIteration,
    plot_convergence,
    plot_policy,
    solve_lemm,
)
from equipoise.plotting import COLORS

cycling = make_pi_cycle_lemm().problem
diverging = make_vi_divergent_lemm().problem
game = make_ssg_newton_cycle().problem
for problem in (cycling, diverging, game):
    print(problem.classify().label)
    print(problem, "\n")

# %%
# What each method does with them
# -------------------------------
#
# ``status_`` says how a solver ended; a solver that stops short also warns. Only the simple rules,
# which switch one node at a time, reach the solution everywhere.

methods = {
    "value iteration": lambda: ValueIteration(),
    "policy iteration": lambda: PolicyIteration("simultaneous", on_cycle="return"),
    "least-index rule": lambda: SimplePolicyIteration("least_index"),
    "parametric rule": lambda: SimplePolicyIteration(random_state=0),
}
names = {"cycling": cycling, "diverging": diverging, "game": game}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, problem in names.items():
        ends = {method: make().fit(problem).status_ for method, make in methods.items()}
        print(name, ends)

# %%
# The cube of policies
# --------------------
#
# The cycling system has eight policies, the corners of a cube. Along each edge one direction
# improves. Policy iteration jumps across all improving edges of a corner at once, and comes round
# to where it was (red); the least-index rule walks along edges to the sink (green).


def corner(policy):
    """A corner of the cube, drawn in the plane."""
    a, b, c = policy
    return np.array([a + 0.45 * c, b + 0.3 * c])


corners = [(a, b, c) for c in (0, 1) for b in (0, 1) for a in (0, 1)]
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for policy in corners:
    gains = cycling.violations(cycling.evaluate(policy))
    for i in range(3):
        other = list(policy)
        other[i] = 1 - other[i]
        if gains[2 * i + other[i]] > 0:
            left.annotate(
                "",
                corner(other),
                corner(policy),
                arrowprops={"arrowstyle": "->", "color": "0.6", "shrinkA": 9, "shrinkB": 9},
            )
    left.text(*corner(policy), "".join(map(str, policy)), ha="center", va="center", fontsize=9)


def jump(start, stop, color, bend):
    arrow = {"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 11, "shrinkB": 11}
    arrow["connectionstyle"] = f"arc3,rad={bend}"
    left.annotate("", corner(stop), corner(start), arrowprops=arrow)


cycle = [tuple(policy) for policy in make_pi_cycle_lemm().cycle]
for start, stop in zip(cycle, cycle[1:] + cycle[:1], strict=True):
    jump(start, stop, COLORS[1], 0.25)
walk = [(1, 0, 0)]
while walk[-1] != (1, 1, 0):
    step = SimplePolicyIteration("least_index", max_switches=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        walk.append(tuple(step.fit(cycling, policy_init=walk[-1]).policy_.tolist()))
for start, stop in pairwise(walk):
    jump(start, stop, COLORS[2], -0.25)
left.set(
    xlim=(-0.25, 1.75),
    ylim=(-0.2, 1.5),
    title="All switch at once (red); least index (green)",
)
left.set_axis_off()

# Value iteration on an absolutely halting system is fine, and its proved error bound with it; on
# the second system the residual grows.
signed = make_lemm(60, 3, kind="absolutely_halting", random_state=0).problem
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    solvers = {
        "random signed system": ValueIteration("jacobi", check_every=1, store_history=True).fit(
            signed
        ),
        "second system": ValueIteration(
            "jacobi", check_every=1, store_history=True, max_iter=60
        ).fit(diverging),
    }
right.spines[["top", "right"]].set_visible(False)
plot_convergence(solvers, right)
right.set_title("Value iteration: one converges, one diverges")
plt.show()

# %%
# An American put
# ---------------
#
# At each price the holder takes the larger of exercising and waiting: an obstacle problem, one
# max equation a grid point. The perpetual put has a closed form to compare with.

option = make_american_option_lemm(500)
answer = solve_lemm(option.problem, exact=False)
print(answer.message, f"(error bound {answer.error_bound:.1e})")
print(f"largest distance to the closed form: {np.abs(answer.x - option.closed_form).max():.4f}")

# %%
# A game on a grid
# ----------------
#
# A token moves on a grid; the owner of its cell picks the direction, which may slip. One player
# wants it in the last corner, the other in a pit. The value of each cell and the direction chosen.

world = make_gridworld_game((24, 24), 0.1, random_state=4)
solver = PolicyIteration().fit(world.problem)
print(solver.explain())

fig, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
axes[0].plot(option.price, option.payoff, color="0.6", label="exercise now")
axes[0].plot(option.price, answer.x, color=COLORS[0], label="solution")
axes[0].plot(option.price, option.closed_form, "--", color=COLORS[1], label="closed form")
axes[0].axvline(option.boundary, color="0.8", lw=1)
axes[0].set(xlim=(30, 250), ylim=(0, 70), xlabel="price", ylabel="value", title="American put")
axes[0].legend(frameon=False)
axes[0].spines[["top", "right"]].set_visible(False)
image = axes[1].imshow(solver.value_.reshape(24, 24), cmap="PuOr", vmin=-1, vmax=1)
fig.colorbar(image, ax=axes[1], label="value for the maximiser")
axes[1].scatter(*np.nonzero(world.pits)[::-1], marker="x", s=18, color="black", label="pit")
axes[1].scatter([23], [23], marker="*", s=90, color="black", label="goal")
axes[1].set(title="Values of the grid game", xticks=[], yticks=[])
axes[1].legend(loc="lower left", fontsize=8)
plot_policy(solver, (24, 24), axes[2])
axes[2].set_title("Directions: 0 right, 1 down, 2 left, 3 up")
plt.show()
