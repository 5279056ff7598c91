"""Stop 3: a system of max equations on which the classic methods run in circles."""

import warnings
from fractions import Fraction
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from equipoise.datasets import make_american_option_lemm, make_pi_cycle_lemm
from equipoise.games import PolicyIteration, solve_lemm
from equipoise.plotting import COLORS


def visit() -> dict[str, Any]:
    """Watch policy iteration cycle, solve the system exactly; price an option with a proof."""
    made = make_pi_cycle_lemm()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = PolicyIteration("howard", on_cycle="return").fit(made.problem)
    exact = solve_lemm(made.problem, exact=True)
    solved = exact.x_exact == [Fraction(103, 25), Fraction(3), Fraction(-7, 5)]

    option = make_american_option_lemm(1000)
    answer = solve_lemm(option.problem)
    at_strike = int(np.argmin(np.abs(option.price - 100)))
    distance = float(np.abs(answer.x - option.closed_form).max())

    figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.plot(option.price, option.payoff, color="0.6", label="exercise now")
    ax.plot(option.price, answer.x, color=COLORS[0], lw=2, label="solution of 1,000 max equations")
    ax.plot(option.price, option.closed_form, "--", color=COLORS[1], label="closed form")
    ax.axvline(option.boundary, color="0.8", lw=1)
    ax.text(option.boundary, 8, "exercise below ", color="0.4", ha="right")
    ax.set(xlim=(30, 250), ylim=(0, 70), xlabel="price of the share", ylabel="value of the put")
    ax.legend(frameon=False)
    return {
        "system": "LEMM",
        "question": "When to exercise an American put, and can three max equations beat Howard?",
        "answer": (
            f"a put at the money is worth {answer.x[at_strike]:.2f}, to within "
            f"{answer.error_bound:.0e} on its grid; policy iteration repeats "
            f"{len(plain.cycle_)} policies, solve_lemm finds (103/25, 3, -7/5)"
        ),
        "check": (
            f"closed form of the option within {distance:.1e} everywhere; the small system is "
            "solved in exact fractions"
        ),
        "passed": bool(solved and plain.status_ == "cycle" and answer.success and distance < 0.01),
        "figure": figure,
    }
