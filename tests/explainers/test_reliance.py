"""Rates of reliance counted by hand, and intervals against the shared bootstrap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from equipoise.datasets import make_human_ai_trials
from equipoise.explainers import RelianceReport
from equipoise.inference import cluster_bootstrap

#              first, advice, final, truth
TRIALS = np.array(
    [
        ["a", "a", "a", "a"],  # agrees, right
        ["b", "a", "a", "a"],  # corrected
        ["b", "a", "b", "a"],  # stays wrong
        ["a", "b", "b", "a"],  # misled
        ["a", "b", "a", "a"],  # resists
        ["b", "b", "b", "a"],  # both wrong
        ["c", "b", "c", "a"],  # three labels: differs from wrong advice, is wrong itself
    ]
).T


def rates(report):
    return report.rates_.set_index("rate")["value"]


def test_by_hand():
    report = RelianceReport(n_resamples=50, random_state=0).fit(*TRIALS)
    expected = {
        "accuracy_initial": 3 / 7,
        "accuracy_advice": 3 / 7,
        "accuracy_final": 3 / 7,
        "agreement": 4 / 7,
        "switch_rate": 2 / 5,
        "follow_when_right": 2 / 3,
        "override_when_wrong": 2 / 4,
        "corrected": 1 / 2,
        "misled": 1 / 2,
    }
    assert rates(report).to_dict() == pytest.approx(expected)
    assert report.relative_ai_reliance_ == report.relative_self_reliance_ == 0.5
    counts = report.rates_.set_index("rate")["n_trials"]
    assert counts["switch_rate"] == 5 and counts["override_when_wrong"] == 4


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_rates_by_loops(seed, n_labels):
    first, advice, final, truth = np.random.default_rng(seed).integers(n_labels, size=(4, 40))
    found = rates(RelianceReport(n_resamples=2, random_state=0).fit(first, advice, final, truth))

    def share(event, given):
        rows = [e for e, g in zip(event, given, strict=True) if g]
        return np.mean(rows) if rows else np.nan

    expected = {
        "switch_rate": share(final == advice, first != advice),
        "follow_when_right": share(final == advice, advice == truth),
        "override_when_wrong": share(final != advice, advice != truth),
        "corrected": share(final == truth, (first != truth) & (advice == truth)),
        "misled": share(final == advice, (first == truth) & (advice != truth)),
        "agreement": np.mean(final == advice),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, nan_ok=True)


def test_intervals_resample_people():
    data = make_human_ai_trials(30, 30, trust=0.4, trust_sd=1.0, random_state=0)
    columns = (data.initial, data.advice, data.y, data.y_true)
    report = RelianceReport(n_resamples=300, random_state=0).fit(*columns, groups=data.groups)
    by_trial = RelianceReport(n_resamples=300, random_state=0).fit(*columns)
    row = report.rates_.set_index("rate").loc["agreement"]
    agrees = data.y == data.advice
    shared = cluster_bootstrap(np.mean, agrees, groups=data.groups, n_resamples=300, random_state=0)
    assert row["value"] == pytest.approx(shared.estimate)
    assert row["high"] - row["low"] == pytest.approx(shared.high - shared.low, rel=0.25)
    assert report.n_groups_ == 30 and by_trial.n_groups_ == 900


def test_without_first_judgements():
    data = make_human_ai_trials(20, 20, random_state=0)
    report = RelianceReport(n_resamples=50, random_state=0).fit(
        None, data.advice, data.y, data.y_true, groups=data.groups
    )
    found = rates(report)
    for name in ("accuracy_initial", "switch_rate", "corrected", "misled"):
        assert np.isnan(found[name])
    assert np.isfinite(found["follow_when_right"])
    assert "switches" not in str(report.explain())


def test_ai_that_never_errs():
    report = RelianceReport(n_resamples=20, random_state=0).fit(
        [0, 1, 0, 1], [1, 1, 0, 0], [1, 1, 0, 1], [1, 1, 0, 0]
    )
    assert np.isnan(rates(report)["override_when_wrong"])
    assert report.rates_.set_index("rate").loc["override_when_wrong", "n_trials"] == 0


def test_plot_and_words():
    data = make_human_ai_trials(20, 20, random_state=0)
    report = RelianceReport(n_resamples=50, random_state=0)
    report.fit(data.initial, data.advice, data.y, data.y_true, groups=data.groups)
    explanation = report.explain()
    ax = Figure().add_subplot()
    assert explanation.plot(ax=ax) is ax
    assert "400 trials of 20 people" in str(explanation)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0, 1], [0, 1], [0, 1], [0]), "inconsistent"),
        ((None, [0, None], [0, 1], [0, 1]), "advice: missing"),
        ((None, [0, 1], [0, 1], [0, 1], [1, 1]), "one person"),
    ],
)
def test_errors(columns, message):
    with pytest.raises(ValueError, match=message):
        RelianceReport(n_resamples=5).fit(*columns)
