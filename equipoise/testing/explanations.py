"""What every `explain()` owes its reader, as one check."""

import pickle
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation

__all__ = ["check_explains"]


def is_drawn_on(figure: Any) -> bool:
    """Whether some axes of the figure hold data, an image, a table or a text."""
    return any(ax.has_data() or ax.images or ax.tables or ax.texts for ax in figure.axes)


def check_words_and_table(explanation: Explanation) -> None:
    """Words a person can read, a tidy table, a notebook view, and a pickle that keeps them."""
    said = str(explanation)
    title, *summary = said.split("\n")
    assert title.strip(), "the title is empty"
    assert summary, "the summary is empty"
    assert all(line.strip() for line in summary), f"an empty line in the summary: {said!r}"
    assert len(summary) < 40, f"a summary of {len(summary)} lines is no summary"

    frame = explanation.to_frame()
    assert isinstance(frame, pd.DataFrame), f"to_frame() gives a {type(frame).__name__}"
    assert len(frame), "to_frame() gives no rows"
    assert len(frame.columns), "to_frame() gives no columns"
    assert frame.columns.is_unique, f"to_frame() repeats a column: {list(frame.columns)}"
    numbers = frame.select_dtypes("number").to_numpy(dtype=float)
    assert not np.isinf(numbers).any(), "to_frame() holds infinity"

    html = explanation._repr_html_()
    assert isinstance(html, str), f"_repr_html_() gives a {type(html).__name__}"
    assert "<table" in html, "_repr_html_() shows no table"

    again = pickle.loads(pickle.dumps(explanation))
    assert str(again) == said, "a pickle changes the words"
    pd.testing.assert_frame_equal(again.to_frame(), frame)


def check_plots(explanation: Explanation) -> None:
    """Each kind of plot draws on the axes that it is given; a wrong kind names the right ones."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    kinds = list(explanation._plots)
    for kind in [*kinds, *([None] if kinds else [])]:
        figure = Figure(layout="constrained")
        drawn = explanation.plot(kind, ax=figure.add_subplot())
        assert isinstance(drawn, Axes), f"plot(kind={kind!r}) gives a {type(drawn).__name__}"
        assert drawn.figure is figure, f"plot(kind={kind!r}) draws outside the axes it was given"
        assert is_drawn_on(figure), f"plot(kind={kind!r}) draws nothing"
        figure.canvas.draw()
    wrong = "no such kind"
    try:
        explanation.plot(wrong)
    except ValueError as error:
        missing = [kind for kind in kinds if kind not in str(error)]
        assert not missing, f"the error of a wrong kind doesn't list {missing}"
    else:
        raise AssertionError("plot() takes any kind without an error")


def check_attributions(explanation: Any) -> None:
    """Finite values in the shape of the data, which shap's plots can draw."""
    import shap
    from matplotlib.figure import Figure

    values = np.asarray(explanation.values, dtype=float)
    assert values.size, "there are no attributions"
    assert np.isfinite(values).all(), "an attribution is NaN or infinite"
    base = np.asarray(explanation.base_values, dtype=float)
    assert np.isfinite(base).all(), "a base value is NaN or infinite"
    if explanation.data is not None:
        shape = np.shape(explanation.data)
        assert values.shape[: len(shape)] == shape, (
            f"attributions of shape {values.shape} for data of shape {shape}"
        )
    if values.ndim in (2, 3):
        one_output = explanation if values.ndim == 2 else explanation[..., 0]
        figure = Figure()
        shap.plots.bar(one_output, ax=figure.add_subplot(), show=False)
        assert is_drawn_on(figure), "shap.plots.bar draws nothing"


def check_explains(explainer: Any, *args: Any, **kwargs: Any) -> Any:
    """Check that a fitted object explains itself as all of equipoise does.

    Parameters
    ----------
    explainer : object
        A fitted estimator, explainer or solver.
    *args, **kwargs : object
        Handed to its ``explain``.

    Returns
    -------
    equipoise.Explanation or shap.Explanation
        What ``explain`` returned.

    Raises
    ------
    AssertionError
        If there is no ``explain``, or it returns anything else; if an `equipoise.Explanation`
        lacks words, table, notebook view or pickle, or one of its plots fails, draws nothing or
        draws elsewhere; if a `shap.Explanation` isn't finite, doesn't fit its data or can't be
        plotted by shap.

    Examples
    --------
    >>> import pandas as pd
    >>> from equipoise import Explanation
    >>> from equipoise.testing import check_explains
    >>> class Oracle:
    ...     def explain(self, question):
    ...         return Explanation(question, ["42"], pd.DataFrame({"answer": [42]}))
    >>> print(check_explains(Oracle(), "What is it?"))
    What is it?
      42
    """
    name = type(explainer).__name__
    assert callable(getattr(explainer, "explain", None)), f"{name} has no explain method"
    explanation = explainer.explain(*args, **kwargs)
    if isinstance(explanation, Explanation):
        check_words_and_table(explanation)
        check_plots(explanation)
        return explanation

    import shap

    assert isinstance(explanation, shap.Explanation), (
        f"{name}.explain() gives a {type(explanation).__name__}; "
        "allowed: equipoise.Explanation, shap.Explanation"
    )
    check_attributions(explanation)
    return explanation
