"""One style for all pictures. matplotlib is imported when the first one is drawn."""

from typing import Any

__all__ = ["COLORS", "new_axes"]

#: Okabe and Ito's palette: told apart by colour-blind readers too.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def new_axes(width: float = 6.4, height: float = 4.0) -> Any:
    """Make one pair of axes in the house style.

    Parameters
    ----------
    width, height : float
        Size of the figure in inches.

    Returns
    -------
    matplotlib.axes.Axes
        Empty axes of a new pyplot figure, without top and right spines.

    Examples
    --------
    >>> from equipoise.plotting import new_axes
    >>> ax = new_axes()
    >>> bool(ax.spines["top"].get_visible())
    False
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_prop_cycle(color=list(COLORS))
    return ax
