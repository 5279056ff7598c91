"""The checks that users run on their own classes: they pass what is right and stop what is not."""

import pickle
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import pandas as pd
import pytest
import shap

import equipoise.testing
from equipoise import Explanation
from equipoise.testing import check_explains

FRAME = pd.DataFrame({"item": ["a", "b"], "effect": [0.5, -0.25]})


class Says:
    """Explains with whatever it was given."""

    def __init__(self, answer):
        self.answer = answer

    def explain(self, *args, **kwargs):
        return self.answer(*args, **kwargs) if callable(self.answer) else self.answer


def bars(ax, scale=1.0):
    ax.bar(FRAME["item"], FRAME["effect"] * scale)
    return ax


def words(ax):
    ax.text(0.5, 0.5, "nothing to compare")
    return ax


GOOD = {"bars": bars, "large": partial(bars, scale=10.0), "words": words}


def test_a_right_answer_passes_and_comes_back():
    answer = Explanation("Which matters?", ["a"], FRAME, GOOD)
    assert check_explains(Says(answer)) is answer
    assert check_explains(Says(Explanation("Which matters?", ["a"], FRAME))) is not answer


def test_arguments_reach_explain():
    heard = []

    def answer(*args, **kwargs):
        heard.append((args, kwargs))
        return Explanation("?", ["a"], FRAME)

    check_explains(Says(answer), 1, 2, level=3)
    assert heard == [((1, 2), {"level": 3})]


def nothing(ax):
    return ax


def elsewhere(ax):
    from matplotlib.figure import Figure

    return bars(Figure().add_subplot())


def no_axes(ax):
    return bars(ax).figure


class AnyKind(Explanation):
    def plot(self, kind=None, ax=None):
        return bars(ax) if ax is not None else None


class HidesKinds(Explanation):
    def plot(self, kind=None, ax=None):
        if kind == "no such kind":
            raise ValueError("wrong kind")
        return super().plot(kind, ax)


class NoTable(Explanation):
    def to_frame(self):
        return self._frame["item"]


class NoNotebook(Explanation):
    def _repr_html_(self):
        return "<p>see above</p>"


class Forgets(Explanation):
    def __reduce__(self):
        return Explanation, (self.title, ["something else"], self._frame)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "gives a NoneType; allowed"),
        ("text", "gives a str; allowed"),
        (Explanation(" ", ["a"], FRAME), "title is empty"),
        (Explanation("?", [], FRAME), "summary is empty"),
        (Explanation("?", ["a", ""], FRAME), "an empty line"),
        (Explanation("?", ["a"] * 50, FRAME), "50 lines"),
        (Explanation("?", ["a"], FRAME.iloc[:0]), "no rows"),
        (Explanation("?", ["a"], FRAME[[]]), "no columns"),
        (Explanation("?", ["a"], FRAME.set_axis(["x", "x"], axis=1)), "repeats a column"),
        (Explanation("?", ["a"], pd.DataFrame({"x": [1.0, np.inf]})), "infinity"),
        (NoTable("?", ["a"], FRAME), "to_frame.. gives a Series"),
        (NoNotebook("?", ["a"], FRAME), "shows no table"),
        (Forgets("?", ["a"], FRAME), "pickle changes the words"),
        (Explanation("?", ["a"], FRAME, {"bars": bars, "empty": nothing}), "'empty'.*nothing"),
        (Explanation("?", ["a"], FRAME, {"far": elsewhere}), "'far'.*outside"),
        (Explanation("?", ["a"], FRAME, {"figure": no_axes}), "'figure'.*gives a Figure"),
        (AnyKind("?", ["a"], FRAME, {"bars": bars}), "any kind"),
        (HidesKinds("?", ["a"], FRAME, {"bars": bars}), r"doesn't list \['bars'\]"),
    ],
)
def test_each_fault_is_named(answer, message):
    with pytest.raises(AssertionError, match=message):
        check_explains(Says(answer))


def test_no_explain_is_named():
    with pytest.raises(AssertionError, match="object has no explain"):
        check_explains(object())


def test_an_answer_that_cannot_be_pickled_fails():
    answer = Explanation("?", ["a"], FRAME, {"bars": lambda ax: bars(ax)})
    with pytest.raises((AttributeError, pickle.PicklingError), match="pickle"):
        check_explains(Says(answer))


def attributions(shape=(3, 2), data_shape=(3, 2), base=0.0, wrong=None):
    values = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    if wrong is not None:
        values.flat[0] = wrong
    return shap.Explanation(
        values,
        base_values=np.full(shape[0], base),
        data=None if data_shape is None else np.ones(data_shape),
        feature_names=["a", "b"],
    )


@pytest.mark.parametrize(
    "answer", [attributions(), attributions(data_shape=None), attributions(shape=(3, 2, 4))]
)
def test_right_attributions_pass(answer):
    assert check_explains(Says(answer)) is answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (attributions(wrong=np.nan), "attribution is NaN"),
        (attributions(base=np.inf), "base value is NaN"),
        (attributions(data_shape=(4, 2)), r"shape \(3, 2\) for data of shape \(4, 2\)"),
    ],
)
def test_wrong_attributions_are_named(answer, message):
    with pytest.raises(AssertionError, match=message):
        check_explains(Says(answer))


def run_without(blocked, script):
    """Run a script where importing `blocked` fails."""
    block = f"import sys\nfor name in {blocked!r}:\n    sys.modules[name] = None\n"
    result = subprocess.run(
        [sys.executable, "-P", "-c", block + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_everything_is_imported_without_pytest_and_hypothesis():
    run_without(
        ["pytest", "_pytest", "hypothesis"],
        """
        import pandas as pd
        import equipoise.testing
        assert [getattr(equipoise.testing, name) for name in equipoise.testing.__all__]

        class Oracle:
            def explain(self):
                return equipoise.Explanation("?", ["42"], pd.DataFrame({"answer": [42]}))

        equipoise.testing.check_explains(Oracle())
        """,
    )


def test_strategies_need_hypothesis_and_nothing_of_pytest():
    run_without(
        ["pytest", "_pytest"],
        """
        import sys
        import equipoise.testing
        from hypothesis import find
        find(equipoise.testing.product_game_arrays(), lambda game: True)
        """,
    )
    run_without(
        ["hypothesis"],
        """
        import equipoise.testing
        try:
            equipoise.testing.product_game_arrays()
        except ImportError as error:
            assert "hypothesis" in str(error)
        else:
            raise SystemExit("a strategy without hypothesis")
        """,
    )


def test_public_names_are_checks_strategies_and_oracles():
    assert "check_explains" in equipoise.testing.__all__
    for name in equipoise.testing.__all__:
        assert callable(getattr(equipoise.testing, name))
