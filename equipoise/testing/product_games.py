"""Product games and kernels for hypothesis, and the Shapley value's axioms as a check."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["check_shapley_axioms", "product_form_kernels", "product_game_arrays", "shapley_values"]


def product_game_arrays(
    max_players: int = 8,
    max_terms: int = 6,
    largest_factor: float = 1.0,
    two_sided: bool = True,
    largest_weight: float = 5.0,
) -> Any:
    """Make a hypothesis strategy for the arrays of a weighted sum of product games.

    Parameters
    ----------
    max_players, max_terms : int
        Largest number of players and of terms; there is at least one of each.
    largest_factor : float, default=1.0
        Factors lie between 0 and this; exact zeros and ones are common.
    two_sided : bool, default=True
        Whether absence factors differ from 1.
    largest_weight : float, default=5.0
        Weights lie between minus this and this.

    Returns
    -------
    SearchStrategy
        Of tuples (weights, presence, absence) of shapes (n_terms,), (n_terms, n_players) and
        (n_terms, n_players).

    Examples
    --------
    >>> from hypothesis import find
    >>> from equipoise.testing import product_game_arrays
    >>> weights, presence, absence = find(product_game_arrays(), lambda game: True)
    >>> presence.shape == absence.shape
    True
    """
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp

    factor = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, largest_factor, width=32))
    weight = st.floats(-largest_weight, largest_weight, width=32)

    @st.composite
    def games(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = (draw(st.integers(1, max_terms)), draw(st.integers(1, max_players)))
        weights = draw(hnp.arrays(np.float64, shape[0], elements=weight))
        presence = draw(hnp.arrays(np.float64, shape, elements=factor))
        absence = np.ones(shape)
        if two_sided:
            absence = draw(hnp.arrays(np.float64, shape, elements=factor))
        return weights, presence, absence

    return games()


def product_form_kernels(n_features: int) -> Any:
    """Make a hypothesis strategy for Gaussian-process kernels that factorise over features.

    Parameters
    ----------
    n_features : int
        Number of features.

    Returns
    -------
    SearchStrategy
        Of sums, products and powers of RBF and constant kernels of scikit-learn.

    Examples
    --------
    >>> from hypothesis import find
    >>> from equipoise.testing import product_form_kernels
    >>> find(product_form_kernels(2), lambda kernel: True)([[0.0, 0.0]]).shape
    (1, 1)
    """
    from hypothesis import strategies as st
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Exponentiation

    width = st.floats(0.25, 4.0, width=32)
    constants = st.builds(ConstantKernel, st.floats(0.125, 8.0, width=32))
    isotropic = st.builds(RBF, width)
    scaled = st.builds(RBF, st.lists(width, min_size=n_features, max_size=n_features))
    leaves = st.one_of(isotropic, scaled, constants)
    products = st.builds(lambda a, b: a * b, leaves, leaves)
    powers = st.builds(Exponentiation, isotropic, st.sampled_from([2, 3]))
    summands = st.one_of(leaves, products, powers)
    return st.one_of(summands, st.builds(lambda a, b: a + b, summands, summands))


def all_coalitions(n_players: int) -> np.ndarray:
    """Return the masks of all coalitions, row k holding the bits of k."""
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players) & 1).astype(bool)


def shapley_values(values: np.ndarray) -> np.ndarray:
    """Compute Shapley values from the values of all coalitions, by their definition.

    Parameters
    ----------
    values : ndarray of shape (2 ** n_players, ...)
        Row k holds the value of the coalition whose members are the bits set in k.

    Returns
    -------
    ndarray of shape (n_players, ...)
        Shapley values.

    Raises
    ------
    ValueError
        If the number of rows is no power of two.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.testing import shapley_values
    >>> shapley_values(np.array([0.0, 1.0, 2.0, 6.0]))
    array([2.5, 3.5])
    """
    values = np.asarray(values, dtype=np.float64)
    d = len(values).bit_length() - 1
    if len(values) != 2**d or d == 0:
        raise ValueError(f"values must hold 2**n_players rows, got {len(values)}")
    rows = np.arange(2**d)
    size = all_coalitions(d).sum(axis=1)
    weight = np.array([1 / (d * math.comb(d - 1, s)) for s in range(d)])
    phi = []
    for j in range(d):
        without = rows[(rows >> j & 1) == 0]
        gains = values[without | 1 << j] - values[without]
        phi.append(np.tensordot(weight[size[without]], gains, axes=1))
    return np.array(phi)


def check_shapley_axioms(
    explainer: Any,
    X: Any,
    value_function: Callable[[Any, np.ndarray], Any] | None = None,
    *,
    atol: float = 1e-8,
) -> None:
    """Check that attributions are the Shapley values of the game they claim to explain.

    The values of all coalitions are computed, and four things are checked for every row:
    efficiency (the attributions sum to v(all) - v(none)), symmetry (players who are
    interchangeable in all coalitions get the same), the null player (who changes no coalition's
    value gets 0), and equality with the definition.

    Parameters
    ----------
    explainer : object
        Anything with ``explain(X)`` that returns a `shap.Explanation`, or is callable like that.
    X : array-like of shape (n_samples, n_features)
        Rows to explain; at most 14 players.
    value_function : callable, optional
        ``value_function(X, coalitions)`` returns values of shape (n_samples, n_coalitions) or
        (n_samples, n_coalitions, n_outputs); default the explainer's own.
    atol : float, default=1e-8
        Tolerance, relative to 1 plus the largest absolute value of a coalition.

    Raises
    ------
    AssertionError
        If an axiom fails; the message names it, the row and the player.
    ValueError
        If there are more than 14 players.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> from equipoise.explainers import PKeXShapleyExplainer
    >>> from equipoise.testing import check_shapley_axioms
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> check_shapley_axioms(PKeXShapleyExplainer(SVR()).fit(X, X[:, 0]), X[:2])
    """
    explanation = explainer.explain(X) if hasattr(explainer, "explain") else explainer(X)
    phi = np.asarray(explanation.values, dtype=np.float64)
    d = phi.shape[1]
    if d > 14:
        raise ValueError(f"All coalitions of {d} players are too many; at most 14 players")
    masks = all_coalitions(d)
    value = explainer.value_function if value_function is None else value_function
    v = np.asarray(value(X, masks), dtype=np.float64)
    phi, v = phi.reshape(*phi.shape[:2], -1), v.reshape(*v.shape[:2], -1)
    rows = np.arange(2**d)
    for i in range(len(phi)):
        allowed = atol * (1 + np.abs(v[i]).max())
        gap = np.abs(phi[i].sum(axis=0) - (v[i, -1] - v[i, 0])).max()
        assert gap <= allowed, f"efficiency fails in row {i}: the sum is off by {gap:.3g}"
        for j in range(d):
            without = rows[(rows >> j & 1) == 0]
            if np.abs(v[i, without] - v[i, without | 1 << j]).max() <= allowed / 10:
                size = np.abs(phi[i, j]).max()
                assert size <= allowed, f"null player fails in row {i}: player {j} gets {size:.3g}"
            for k in range(j):
                neither = without[(without >> k & 1) == 0]
                if np.abs(v[i, neither | 1 << j] - v[i, neither | 1 << k]).max() <= allowed / 10:
                    gap = np.abs(phi[i, j] - phi[i, k]).max()
                    assert gap <= allowed, (
                        f"symmetry fails in row {i}: players {k} and {j} differ by {gap:.3g}"
                    )
        gap = np.abs(phi[i] - shapley_values(v[i]))
        j = int(gap.max(axis=1).argmax())
        assert gap.max() <= allowed, (
            f"the definition fails in row {i}: player {j} is off by {gap.max():.3g}"
        )
