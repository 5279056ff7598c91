"""The dependency graph of a system: its strongly connected components and good sweep orders.

Node i points to node j when some row of i has a non-zero coefficient in column j. A component
needs only itself and the components it points to, so systems are solved sinks first.
"""

import numpy as np
from numba import njit

__all__ = ["component_levels", "is_acyclic", "strong_components", "sweep_order"]

Array = np.ndarray


@njit(cache=True, nogil=True)
def tarjan(start: Array, cols: Array, label: Array, order: Array) -> int:
    """Tarjan's algorithm without recursion: components come out sinks first.

    ``label[i]`` becomes the component of node i, `order` lists the nodes component by
    component; returns the number of components.
    """
    n = start.shape[0] - 1
    index = np.full(n, -1, np.int64)
    low = np.empty(n, np.int64)
    edge = start[:-1].copy()
    path = np.empty(n, np.int64)
    waiting = np.empty(n, np.int64)
    counter = found = placed = n_waiting = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        index[root] = low[root] = counter
        counter += 1
        waiting[n_waiting] = root
        n_waiting += 1
        label[root] = -1
        while depth >= 0:
            i = path[depth]
            if edge[i] < start[i + 1]:
                j = cols[edge[i]]
                edge[i] += 1
                if index[j] < 0:
                    depth += 1
                    path[depth] = j
                    index[j] = low[j] = counter
                    counter += 1
                    waiting[n_waiting] = j
                    n_waiting += 1
                    label[j] = -1
                elif label[j] < 0:
                    low[i] = min(low[i], index[j])
                continue
            if low[i] == index[i]:
                while True:
                    n_waiting -= 1
                    j = waiting[n_waiting]
                    label[j] = found
                    order[placed] = j
                    placed += 1
                    if j == i:
                        break
                found += 1
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[i])
    return found


def strong_components(start: Array, cols: Array) -> tuple[Array, Array, Array]:
    """Strongly connected components, those that depend on no other first.

    Parameters
    ----------
    start : ndarray of shape (n + 1,)
        Node i's edges are ``cols[start[i]:start[i + 1]]``; duplicates do no harm.
    cols : ndarray of int
        Targets of the edges.

    Returns
    -------
    label : ndarray of shape (n,), int64
        Component of each node; an edge leads to the same or a smaller label.
    order : ndarray of shape (n,), int64
        Nodes by component, ascending in each.
    bounds : ndarray of shape (n_components + 1,), int64
        Component c holds the nodes ``order[bounds[c]:bounds[c + 1]]``.
    """
    n = len(start) - 1
    label, order = np.full(n, -2, dtype=np.int64), np.empty(n, dtype=np.int64)
    count = tarjan(start, cols, label, order)
    sizes = np.bincount(label, minlength=count)
    # Nodes as they are stored inside each component: sweeps then read memory in its order.
    order = np.argsort(label, kind="stable")
    return label, order, np.concatenate([[0], np.cumsum(sizes)])


@njit(cache=True, nogil=True)
def peel(start: Array, cols: Array) -> int:
    """Remove nodes that nothing points to, again and again; return how many could go."""
    n = start.shape[0] - 1
    degree = np.zeros(n, np.int64)
    for k in range(start[0], start[n]):
        degree[cols[k]] += 1
    queue = np.empty(n, np.int64)
    tail = 0
    for i in range(n):
        if degree[i] == 0:
            queue[tail] = i
            tail += 1
    head = 0
    while head < tail:
        i = queue[head]
        head += 1
        for k in range(start[i], start[i + 1]):
            degree[cols[k]] -= 1
            if degree[cols[k]] == 0:
                queue[tail] = cols[k]
                tail += 1
    return tail


def is_acyclic(start: Array, cols: Array) -> bool:
    """Whether no node depends on itself, directly or around a cycle."""
    return bool(peel(start, cols) == len(start) - 1)


def component_levels(label: Array, start: Array, cols: Array, n_components: int) -> Array:
    """Level of each component: 0 where it needs no other, else one above what it needs.

    Components of one level are independent of each other.
    """
    return levels(label, start, cols, np.argsort(label, kind="stable"), n_components)


@njit(cache=True, nogil=True)
def levels(label: Array, start: Array, cols: Array, order: Array, limit: int) -> Array:
    level = np.zeros(limit, np.int64)
    for position in range(order.shape[0]):
        i = order[position]
        for k in range(start[i], start[i + 1]):
            other = label[cols[k]]
            if other != label[i]:
                level[label[i]] = max(level[label[i]], level[other] + 1)
    return level


@njit(cache=True, nogil=True)
def breadth_first(
    label: Array,
    bounds: Array,
    order: Array,
    start: Array,
    cols: Array,
    into: Array,
    sources: Array,
    out: Array,
) -> None:
    """Order each component by distance to its exits, along reversed edges."""
    n = label.shape[0]
    seen = np.zeros(n, np.bool_)
    for c in range(bounds.shape[0] - 1):
        tail = head = bounds[c]
        for position in range(bounds[c], bounds[c + 1]):
            i = order[position]
            leaves = start[i] == start[i + 1]
            for k in range(start[i], start[i + 1]):
                leaves = leaves or label[cols[k]] != c
            if leaves:
                seen[i] = True
                out[tail] = i
                tail += 1
        while head < tail:
            i = out[head]
            head += 1
            for k in range(into[i], into[i + 1]):
                j = sources[k]
                if label[j] == c and not seen[j]:
                    seen[j] = True
                    out[tail] = j
                    tail += 1
        # A component without exits keeps the order in which its nodes are stored.
        for position in range(bounds[c], bounds[c + 1]):
            i = order[position]
            if not seen[i]:
                out[tail] = i
                tail += 1


def sweep_order(label: Array, order: Array, bounds: Array, start: Array, cols: Array) -> Array:
    """Order for Gauss-Seidel sweeps: components sinks first, inside each from its exits back.

    Parameters
    ----------
    label, order, bounds : ndarray
        As `strong_components` returns them.
    start, cols : ndarray
        The graph.

    Returns
    -------
    ndarray of shape (n,), int64
        A permutation of the nodes.
    """
    n = len(start) - 1
    # Reverse the edges by sorting them by target.
    owner = np.repeat(np.arange(n), np.diff(start))
    targets = cols[start[0] : start[n]]
    sources = owner[np.argsort(targets, kind="stable")]
    into = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=n))])
    out = np.empty(n, dtype=np.int64)
    breadth_first(label, bounds, order, start, cols, into, sources, out)
    return out
