"""Three players learn in a harmonic game: where do they settle?"""

from typing import Any

import numpy as np

from equipoise.datasets import make_harmonic_game
from equipoise.games import EquilibriumVariety, FTRLPlus, plot_cube


def visit() -> dict[str, Any]:
    """Run FTRL+ from twenty starts, and trace the equilibria of the same game."""
    game = make_harmonic_game((2, 2, 2), random_state=3)
    variety = EquilibriumVariety(step=0.002).fit(game)
    runs = [FTRLPlus(init="random", random_state=k, tol=1e-12).fit(game) for k in range(20)]
    curve = np.stack([x[:, 0] for x in variety.branches_[0]], axis=1)
    ends = np.array([[x[0] for x in run.strategies_] for run in runs])
    distance = max(distance_to(curve, end) for end in ends)
    regret = max(float(run.regret_[-1].max()) for run in runs)
    bounded = all((run.regret_ <= run.regret_bound_ + 1e-9).all() for run in runs)
    ax = variety.plot()
    for run in runs[:5]:
        plot_cube(run.trajectory_, ax, color="0.6", linewidth=0.7)
    ax.plot(*ends.T, "k.", label="end of learning")
    ax.legend(frameon=False)
    return {
        "system": "FTRLPlus",
        "question": "Where do three players settle who learn from their own payoffs alone?",
        "answer": (
            f"on a curve of equilibria: 20 runs end within {distance:.1e} of it, "
            f"no regret above {regret:.2f}"
        ),
        "check": (
            "the curve is traced without learning; every regret is below its bound; "
            f"largest Nash gap on the curve {variety.nash_gap_:.0e}"
        ),
        "passed": bool(distance < 1e-5 and bounded and variety.nash_gap_ < 1e-9),
        "figure": ax.figure,
    }


def distance_to(curve: np.ndarray, point: np.ndarray) -> float:
    """Distance from a point to the polygon through a curve's points."""
    along = np.diff(curve, axis=0)
    share = ((point - curve[:-1]) * along).sum(axis=1) / np.square(along).sum(axis=1)
    nearest = curve[:-1] + np.clip(share, 0, 1)[:, None] * along
    return float(np.linalg.norm(nearest - point, axis=1).min())
