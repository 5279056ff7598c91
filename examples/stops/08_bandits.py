"""Tour stop: a camera that is half blind, another half each time. Which classifier to ask?"""

from typing import Any

import numpy as np

from equipoise.datasets import load_digits_bandit
from equipoise.games import Exp3, StaticDynamicBandit, TrackAndExplore, simulate
from equipoise.plotting import new_axes

T, S = 20_000, 10


def visit() -> dict[str, Any]:
    """Choose among five classifiers of digits while what is hidden of the images jumps."""
    stream = load_digits_bandit(horizon=T, n_switches=S, random_state=0)
    A = stream.n_arms
    learners = {
        "static-dynamic (not told S)": StaticDynamicBandit(A, horizon=T),
        "track-and-explore (told S)": TrackAndExplore(A, horizon=T, n_switches=S),
        "Exp3": Exp3(A, horizon=T),
    }
    result = simulate(learners, stream.losses, n_runs=16, random_state=0)
    static, dynamic = (result.final(kind).mean(axis=1) for kind in ("static", "dynamic"))
    ratio = dynamic[0] / np.sqrt(S * A * T)
    ax = result.plot("dynamic", log=False, ax=new_axes())
    for cut in stream.cuts[1:-1]:
        ax.axvline(cut, color="0.85", linewidth=0.8, zorder=0)
    return {
        "system": "StaticDynamicBandit",
        "question": "Which of five classifiers should read digits, when half of the image may be "
        "hidden, another half each time, and nobody says when?",
        "answer": f"{100 * dynamic[0] / T:.1f} more errors in 100 digits than a choice that knows "
        f"everything ({ratio:.2f} sqrt(S A T)), {-100 * static[0] / T:.1f} fewer than the best fixed "
        f"classifier; Exp3 {100 * dynamic[2] / T:.1f} more",
        "check": "16 runs; dynamic regret below sqrt(S A T), static regret negative, less than a "
        "third of Exp3's regret",
        "passed": bool(ratio < 1 and static[0] < 0 and dynamic[0] < dynamic[2] / 3),
        "figure": ax.figure,
    }
