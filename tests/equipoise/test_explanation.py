"""The answer every `explain` gives: words, table, notebook view and pictures."""

import pickle
from functools import partial

import matplotlib as mpl
import pandas as pd
import pytest

import equipoise
from equipoise.explanation import Explanation


@pytest.fixture(autouse=True)
def no_windows():
    before = mpl.get_backend()
    mpl.use("agg")
    yield
    mpl.pyplot.close("all")
    mpl.use(before)


def draw(ax, color):
    ax.plot([0, 1], color=color)
    return ax


@pytest.fixture
def answer():
    frame = pd.DataFrame({"item": ["a<b", "c"], "effect": [0.5, -0.25]})
    plots = {"red": partial(draw, color="r"), "blue": partial(draw, color="b")}
    return Explanation("Which <item> matters?", ["a<b raises it", "c lowers it"], frame, plots)


def test_front_door_has_it():
    assert equipoise.Explanation is Explanation
    assert "Explanation" in dir(equipoise)


def test_words(answer):
    assert str(answer) == "Which <item> matters?\n  a<b raises it\n  c lowers it"
    assert repr(answer) == "<Explanation: Which <item> matters? (2 rows x 2 columns)>"


def test_notebook_view_is_escaped_and_complete(answer):
    html = answer._repr_html_()
    assert "<strong>Which &lt;item&gt; matters?</strong>" in html
    assert "<li>a&lt;b raises it</li><li>c lowers it</li>" in html
    assert "<td>a&lt;b</td>" in html
    assert "<item>" not in html
    assert "rows</p>" not in html


def test_notebook_view_says_when_rows_are_left_out():
    html = Explanation("Long?", [], pd.DataFrame({"x": range(21)}))._repr_html_()
    assert "<p>20 of 21 rows</p>" in html
    assert "<td>19</td>" in html
    assert "<td>20</td>" not in html


def test_table_cannot_be_changed_from_outside():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    answer = Explanation("?", ["x"], frame)
    frame.loc[0, "x"] = 9.0
    table = answer.to_frame()
    table.loc[1, "x"] = 9.0
    pd.testing.assert_frame_equal(answer.to_frame(), pd.DataFrame({"x": [1.0, 2.0]}))


def test_plot_takes_kind_and_axes(answer):
    ax = mpl.pyplot.figure().add_subplot()
    assert answer.plot(ax=ax) is ax
    assert ax.lines[0].get_color() == "r"  # the first kind is the default
    assert answer.plot("blue").lines[0].get_color() == "b"


def test_wrong_kind_lists_the_right_ones(answer):
    figures = mpl.pyplot.get_fignums()
    with pytest.raises(ValueError, match=r"kind='green' .* allowed: \['blue', 'red'\]"):
        answer.plot("green")
    assert mpl.pyplot.get_fignums() == figures  # no empty figure is left behind
    with pytest.raises(ValueError, match=r"allowed: \[\]"):
        Explanation("?", [], pd.DataFrame()).plot()


def test_pickle_keeps_everything(answer):
    again = pickle.loads(pickle.dumps(answer))
    assert str(again) == str(answer)
    pd.testing.assert_frame_equal(again.to_frame(), answer.to_frame())
    assert again.plot("blue").lines[0].get_color() == "b"


def test_one_string_is_no_summary():
    with pytest.raises(TypeError, match="summary='one line'"):
        Explanation("?", "one line", pd.DataFrame())
    with pytest.raises(TypeError, match="frame is a dict"):
        Explanation("?", ["one line"], {"x": [1]})
