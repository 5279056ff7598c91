"""Who moves the outcome: all first derivatives of a linear target from one adjoint solve.

With ``pi = (I - M)^-T g``, the target g.x* has the derivatives ``pi_i lambda_i`` in s_i,
``pi_i (1 - lambda_i) W_ij`` in the bias of an edge, and v_j in the bias of author j's messages.
"""

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from .channel import AffineChannel, column
from .network import OpinionNetwork

__all__ = ["gain_bounds", "leverage", "sensitivities"]

Array = np.ndarray


def leverage(
    network: OpinionNetwork, listening: Array, reader_shrink: Array, pi: Array, uniform: Array
) -> Array:
    """Return v = W^T diag((1 - lambda) aP) pi: the target's response to each author's bias.

    pi has shape (n,) or (n, m).
    """
    w = column(listening * reader_shrink, pi) * pi
    v = network.weights.T @ w
    if len(uniform):
        v = v + w[uniform].sum(axis=0) / network.n_nodes
    return v


def sensitivities(
    network: OpinionNetwork,
    channel: AffineChannel,
    stubbornness: Array,
    reader_shrink: Array,
    innate: Array,
    equilibrium: Array,
    pi: Array,
) -> Bunch:
    """Return the derivatives of the target by innate opinions, biases and stubbornness.

    `innate` and `equilibrium` have one axis; `channel` is the linear response at the equilibrium.
    """
    W, listening = network.weights, 1 - stubbornness
    # x = lambda s + (1 - lambda) input, so input = (x - lambda s) / (1 - lambda).
    with np.errstate(invalid="ignore", divide="ignore"):
        heard = np.where(
            listening > 0, (equilibrium - stubbornness * innate) / listening, equilibrium
        )
    spread = np.repeat(pi * listening, np.diff(W.indptr)) * W.data
    some = np.diff(W.indptr) > 0
    some[channel.uniform] = True
    return Bunch(
        adjoint=pi,
        innate=stubbornness * pi,
        author=leverage(network, listening, reader_shrink, pi, channel.uniform),
        reader=listening * pi * some,
        stubbornness=pi * (innate - heard),
        edges=sparse.csr_array((spread, W.indices, W.indptr), shape=W.shape),
    )


def gain_bounds(
    network: OpinionNetwork, linear: AffineChannel, stubbornness: Array, on_edges: bool
) -> tuple[float, float]:
    """Return bounds of each user's response to a unit of bias in all authors' messages.

    With slopes of edges in [a0, a1] and stubbornness in [l, u], a bias that passes readers by at
    least p0 and at most p1 moves everybody by at least ``p0 (1 - u) / (1 - (1 - u) a0)`` and at
    most ``p1 (1 - l) / (1 - (1 - l) a1)``: constants are sub- and super-solutions. For edits on
    edges, the unit of bias is on each edge.
    """
    W, listening = network.weights, 1 - stubbornness
    some = np.diff(W.indptr) > 0
    some[linear.uniform] = True
    if not some.any():
        return 0.0, 0.0
    author = np.ones(linear.n) if linear.author is None else linear.author
    if linear.weights is not W:  # a slope for each edge
        passed = linear.weights.data / W.data
        if len(linear.uniform):
            passed = np.append(passed, 1.0)
    else:  # the reader's shrink is the scale without the listening
        free = some & (listening > 0)
        passed = linear.scale[free] / listening[free] if free.any() else np.ones(1)
    slopes = np.outer([author.min(), author.max()], [passed.min(), passed.max()])
    if on_edges:
        passed = np.ones(1)
    least, most = float(slopes.min()), float(np.abs(slopes).max())
    low_own = float(stubbornness.min())
    high_own = float(stubbornness.max()) if some.all() else 1.0
    kept = (1 - low_own) * most
    high = float(np.abs(passed).max()) * (1 - low_own) / (1 - kept) if kept < 1 else np.inf
    if least < 0 or passed.min() < 0:
        return -high, high
    return float(passed.min()) * (1 - high_own) / (1 - (1 - high_own) * least), high
