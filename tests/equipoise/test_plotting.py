"""One style, and matplotlib only when something is drawn."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from equipoise.plotting import COLORS, new_axes


@pytest.fixture(autouse=True)
def no_windows():
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    mpl.pyplot.close("all")
    mpl.use(before)


def test_house_style():
    ax = new_axes(width=5.0, height=2.5)
    assert tuple(ax.figure.get_size_inches()) == (5.0, 2.5)
    assert [ax.spines[side].get_visible() for side in ("top", "right", "left", "bottom")] == [
        False,
        False,
        True,
        True,
    ]
    drawn = [ax.plot([0, 1])[0].get_color() for _ in range(len(COLORS) + 1)]
    assert drawn == [*COLORS, COLORS[0]]


def test_each_call_is_a_new_figure_and_no_setting_changes():
    before = dict(mpl.rcParams)
    assert new_axes().figure is not new_axes().figure
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    "simulated",
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        # Deuteranopia and protanopia: Machado, Oliveira and Fernandes (2009), severity 1.
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    ],
    ids=["full vision", "deuteranopia", "protanopia"],
)
def test_colours_are_told_apart(simulated):
    seen = np.array([to_rgb(color) for color in COLORS]) @ np.array(simulated).T
    distance = np.linalg.norm(seen[:, None] - seen, axis=-1)
    assert distance[np.triu_indices(len(COLORS), 1)].min() > 0.15


def test_matplotlib_is_loaded_when_the_first_picture_is_drawn():
    script = (
        "import sys, equipoise.plotting, equipoise.explanation\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import os; os.environ['MPLBACKEND'] = 'agg'\n"
        "equipoise.plotting.new_axes()\n"
        "assert 'matplotlib' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-P", "-c", script], check=True)
