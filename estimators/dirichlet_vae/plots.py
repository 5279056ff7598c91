"""Pictures of a mixture: abundance maps, endmembers, and the simplex."""

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.plotting import COLORS, new_axes

from .abundances import check_simplex

__all__ = ["plot_abundance_maps", "plot_endmembers", "plot_simplex"]


def component_names(names: npt.ArrayLike | None, K: int) -> list[str]:
    """K labels, "component 1" ... where none are given."""
    if names is None:
        return [f"component {k + 1}" for k in range(K)]
    labels = [str(name) for name in np.asarray(names).ravel()]
    if len(labels) != K:
        raise ValueError(f"names has {len(labels)} entries; allowed: {K}")
    return labels


def plot_abundance_maps(
    Z: npt.ArrayLike,
    shape: tuple[int, int],
    *,
    names: npt.ArrayLike | None = None,
    ax: Any = None,
) -> np.ndarray:
    """Draw each component's proportions as an image.

    Parameters
    ----------
    Z : array-like of shape (n_pixels, n_components)
        Proportions, pixels in row-major order.
    shape : tuple of (height, width)
        Of the image; height * width = n_pixels.
    names : array-like of shape (n_components,), optional
        Titles.
    ax : sequence of matplotlib.axes.Axes, optional
        One for each component; None makes a figure.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each component.

    Raises
    ------
    ValueError
        If the shape doesn't hold the pixels, or there are not n_components axes or names.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import plot_abundance_maps
    >>> axes = plot_abundance_maps(np.full((6, 2), 0.5), (2, 3))
    >>> len(axes)
    2
    """
    Z = np.asarray(Z, dtype=np.float64)
    if Z.ndim != 2 or len(shape) != 2 or len(Z) != shape[0] * shape[1]:
        raise ValueError(f"Z has shape {Z.shape} and shape={shape!r}; allowed: height * width rows")
    K = Z.shape[1]
    labels = component_names(names, K)
    if ax is None:
        import matplotlib.pyplot as plt

        height = 2.6 * min(shape[0] / shape[1], 2) + 0.4
        ax = plt.subplots(1, K, figsize=(2.6 * K, height), layout="constrained", squeeze=False)[1][
            0
        ]
    axes = np.atleast_1d(np.asarray(ax, dtype=object))
    if len(axes) != K:
        raise ValueError(f"ax holds {len(axes)} axes; allowed: n_components={K}")
    for k, one in enumerate(axes):
        image = one.imshow(Z[:, k].reshape(shape), vmin=0, vmax=1, cmap="cividis")
        one.set_title(labels[k], fontsize=10)
        one.set_xticks([])
        one.set_yticks([])
    axes[-1].figure.colorbar(image, ax=list(axes), shrink=0.8, label="proportion")
    return axes


def plot_endmembers(
    components: npt.ArrayLike,
    *,
    bands: npt.ArrayLike | None = None,
    true: npt.ArrayLike | None = None,
    names: npt.ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """Draw endmembers as lines over the features.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        Endmembers, such as `DirichletBetaVAE.components_`.
    bands : array-like of shape (n_features,), optional
        Position of each feature; None numbers them.
    true : array-like of shape (n_components, n_features), optional
        The truth in the same order, drawn dashed.
    names : array-like of shape (n_components,), optional
        Labels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If shapes don't fit together.

    Examples
    --------
    >>> from equipoise.estimators import plot_endmembers
    >>> len(plot_endmembers([[0.0, 1.0, 0.5], [1.0, 0.0, 0.2]]).lines)
    2
    """
    W = np.atleast_2d(np.asarray(components, dtype=np.float64))
    x = np.arange(W.shape[1]) if bands is None else np.asarray(bands, dtype=np.float64)
    truth = None if true is None else np.atleast_2d(np.asarray(true, dtype=np.float64))
    if x.shape != (W.shape[1],) or (truth is not None and truth.shape != W.shape):
        raise ValueError(
            f"components has shape {W.shape}, bands {x.shape}"
            + ("" if truth is None else f", true {truth.shape}")
            + "; allowed: n_features bands, and a truth of the components' shape"
        )
    labels = component_names(names, len(W))
    ax = new_axes() if ax is None else ax
    for k, spectrum in enumerate(W):
        color = COLORS[k % len(COLORS)]
        ax.plot(x, spectrum, color=color, label=labels[k])
        if truth is not None:
            ax.plot(x, truth[k], color=color, ls="--", lw=1)
    ax.set_xlabel("feature" if bands is None else "band")
    ax.set_ylabel("value")
    ax.legend(frameon=False, title=None if truth is None else "dashed: truth")
    return ax


def plot_simplex(
    Z: npt.ArrayLike,
    *,
    c: npt.ArrayLike | None = None,
    names: npt.ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """Draw codes of three components in a triangle.

    Parameters
    ----------
    Z : array-like of shape (n_samples, 3)
        Rows on the simplex.
    c : array-like of shape (n_samples,), optional
        Colours of the points, as in `matplotlib.axes.Axes.scatter`.
    names : array-like of shape (3,), optional
        Labels of the corners.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If Z hasn't three columns, or a row isn't on the simplex.

    Examples
    --------
    >>> from equipoise.estimators import plot_simplex
    >>> plot_simplex([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]).get_aspect()
    1.0
    """
    Z = check_simplex(Z, 3)
    labels = component_names(names, 3)
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    ax = new_axes(4.6, 4.2) if ax is None else ax
    ax.plot(*np.vstack([corners, corners[:1]]).T, color="0.3", lw=1)
    points = Z @ corners
    size = float(np.clip(4000 / len(Z), 3, 30))
    color = COLORS[0] if c is None else c
    ax.scatter(*points.T, c=color, s=size, alpha=0.7, linewidths=0)
    for corner, label, (dx, dy), align in zip(
        corners,
        labels,
        [(-0.02, -0.05), (0.02, -0.05), (0, 0.03)],
        ["left", "right", "center"],
        strict=True,
    ):
        ax.text(corner[0] + dx, corner[1] + dy, label, ha=align, va="center", fontsize=9)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax
