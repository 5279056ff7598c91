"""What `explain()` returns everywhere, unless it is a `shap.Explanation`."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

__all__ = ["Explanation"]

#: Rows of the table that a notebook shows.
SHOWN_ROWS = 20


class Explanation:
    """An answer in words, as a table and as pictures.

    Parameters
    ----------
    title : str
        One line: what was asked.
    summary : sequence of str
        The answer, a sentence or figure a line; `str()` shows title and summary.
    frame : pandas.DataFrame
        The tidy table behind the answer, one row an observation.
    plots : mapping of str to callable, optional
        Kind of plot to ``function(ax) -> Axes``; the first is the default kind.
        The functions must be picklable (module level, or `functools.partial` of such).

    Raises
    ------
    TypeError
        If `summary` is one string, or `frame` isn't a DataFrame.

    Examples
    --------
    >>> import pandas as pd
    >>> from equipoise.explanation import Explanation
    >>> table = pd.DataFrame({"item": ["a", "b"], "effect": [0.5, -0.25]})
    >>> answer = Explanation("Which item matters?", ["a raises the mean by 0.5"], table)
    >>> print(answer)
    Which item matters?
      a raises the mean by 0.5
    >>> answer.to_frame().shape
    (2, 2)
    """

    def __init__(
        self,
        title: str,
        summary: Sequence[str],
        frame: pd.DataFrame,
        plots: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        if isinstance(summary, str):
            raise TypeError(f"summary={summary!r:.80} is one string; allowed: a sequence of lines")
        if not isinstance(frame, pd.DataFrame):
            raise TypeError(f"frame is a {type(frame).__name__}; allowed: pandas.DataFrame")
        self.title = title
        self.summary = tuple(summary)
        self._frame = frame.copy()
        self._plots = dict(plots or {})

    def to_frame(self) -> pd.DataFrame:
        """Return the tidy table behind the answer.

        Returns
        -------
        pandas.DataFrame
            A copy; changing it changes nothing here.
        """
        return self._frame.copy()

    def plot(self, kind: str | None = None, ax: Any = None) -> Any:
        """Draw the answer.

        Parameters
        ----------
        kind : str, optional
            Which picture; None takes the first. The error of a wrong kind lists all of them.
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        ValueError
            If there is no plot of that kind.
        """
        from .plotting import new_axes

        if kind is None and self._plots:
            kind = next(iter(self._plots))
        if kind not in self._plots:
            raise ValueError(f"kind={kind!r} is not available here; allowed: {sorted(self._plots)}")
        return self._plots[kind](ax if ax is not None else new_axes())

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line in self.summary)])

    def __repr__(self) -> str:
        rows, columns = self._frame.shape
        return f"<{type(self).__name__}: {self.title} ({rows} rows x {columns} columns)>"

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.summary)
        table = self._frame.head(SHOWN_ROWS).to_html(index=False, escape=True, border=0)
        if (n_rows := len(self._frame)) > SHOWN_ROWS:
            table += f"<p>{SHOWN_ROWS} of {n_rows} rows</p>"
        return f"<div><strong>{escape(self.title)}</strong><ul>{lines}</ul>{table}</div>"
