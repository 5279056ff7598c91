"""Regions and boundaries: reference values, the five claims, grids against closed forms."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from equipoise.games import (
    REGIME_NAMES,
    ai_accuracy,
    complementarity_threshold,
    human_accuracy,
    locate,
    phase_diagram,
    regime,
    regime_boundaries,
    team_accuracy,
)
from equipoise.games.human_ai.boundaries import cubic_roots
from equipoise.testing import deployments

few = settings(max_examples=60, deadline=None)


def compared(h, a, overlap, tol=1e-9, **options):
    """The region by comparing the three accuracies."""
    team = team_accuracy(h, a, overlap, **options)
    human, ai = human_accuracy(h), ai_accuracy(a)
    if team < human - tol:
        return -1
    if team < ai - tol:
        return 2
    return 1 if team > max(human, ai) + tol else 0


# --- reference values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rho", "tau", "impairment", "automation"),
    [
        (0.5, 1, 0.6823278038280193, 1.465571231876768),
        (0.5, 0.25, 0.547928286701955, 1.130395434767279),
        (0.5, 1.5, 0.7474152503958124, 1.59528999988378),
        (0.2, 0.25, 0.226902567476799, 1.26354284740998),
        (0.2, 1, 0.35518945758823, 2.81539887695455),
    ],
)
def test_reference_boundaries(rho, tau, impairment, automation):
    found = regime_boundaries(rho, tau)
    assert found == pytest.approx((impairment, automation), abs=1e-11)


@pytest.mark.parametrize(
    ("share", "tau", "impairment", "automation"),
    [
        (0.9, 1, 0.8944271909999159, 1.1180339887498949),
        (0.9, 0.25, 0.4472135955, 1.02597835208515),
        (0.9, 1.5, 0.930949336251, 1.195228609334),
        (0.6, 1, 0.4472135955, 2.2360679775),
        (0.6, 0.25, 0, 1.11803398875),
        (0.6, 1.5, 0.6831300510640, np.inf),
        (0.3, 1, 0, np.inf),
    ],
)
def test_reference_cue_boundaries(share, tau, impairment, automation):
    found = regime_boundaries(share, tau, overlap_kind="cue")
    assert found == pytest.approx((impairment, automation), abs=1e-10)


@pytest.mark.parametrize(
    ("rho", "tau", "impairment", "automation"),
    [
        (0.3, 1, 0.267332016245, 0.869282773745),
        (0.5, 1, 0.385272769006, 0.708966267164),
        (0.5, 0.25, 0.279288766438, 0.548516369579),
        (0.5, 1.5, 0.445224819694, 0.797700676100),
    ],
)
def test_reference_binary_boundaries(rho, tau, impairment, automation):
    found = regime_boundaries(rho, tau, h=0.5, recommendation="binary")
    assert found == pytest.approx((impairment, automation), abs=1e-11)


def test_reference_binary_boundary_with_little_overlap():
    """Beyond it T - A is about 1e-9 and less: the sign must not drown."""
    _, automation = regime_boundaries(0.1, h=0.5, recommendation="binary", overlap_kind="cue")
    assert automation == pytest.approx(2.126, abs=5e-4)


def test_reference_bands():
    (low, high), automation = regime_boundaries(-0.1, 3, full=True)
    assert (low, high) == pytest.approx((0.2431, 0.4160), abs=5e-5)
    assert automation == (np.inf, np.inf)
    impairment, (low, high) = regime_boundaries(-0.05, 0.25, full=True)
    assert impairment == (0, 0)
    assert (low, high) == pytest.approx((1.4692, 19.8990), abs=5e-5)
    assert regime_boundaries(0, 3)[0] == pytest.approx(np.sqrt(1 / 3), abs=1e-12)
    assert regime_boundaries(0, 0.25)[1] == pytest.approx(np.sqrt(2), abs=1e-12)
    assert regime_boundaries(0.0, 2.0) == (0, np.inf)


def test_reference_thresholds():
    r, tau = [0.5, 0.8, 1, 1, 1.5, 1.5, 2.5], [1, 0.25, 0.3, 4, 1, 0.25, 1.5]
    expected = [0.3125, 0.764, 1, 1, 0.481481481, -0.074074074, 0.288]
    assert complementarity_threshold(r, tau) == pytest.approx(expected, abs=1e-9)
    assert complementarity_threshold(0.5, 0.0) == -np.inf


# --- invariants ---------------------------------------------------------------------------------


@few
@example(1.0, 3e-279, 0.25)  # where the ratio of the hyperbolic form overflows
@example(1.0, 1e-4, 1e-45)
@given(st.floats(0.001, 5), st.floats(-3, 5), st.floats(-3, 3))
def test_cubic_roots_agree_with_numpy(alpha, beta, gamma):
    """Where the polynomial is negative in (0, 1), its ends are numpy's roots."""
    assume(alpha + beta - 2 * gamma > 1e-6)
    low, high = (v[0] for v in cubic_roots(*(np.array([v]) for v in (alpha, beta, gamma))))
    t = np.linspace(0, 1, 2001)[1:]
    negative = t[alpha * t**3 + beta * t - 2 * gamma < -1e-9]
    if len(negative):
        roots = np.roots([alpha, 0, beta, -2 * gamma])
        for end in (low, high):
            if 0 < end < 1:
                assert np.abs(roots - end).min() < 1e-6
        assert low <= negative[0] + 1e-9 and negative[-1] - 1e-9 <= high
    else:
        assert high - low < 2e-2  # nothing, or a sliver between two points of the grid


@few
@given(deployments())
def test_closed_forms_agree_with_accuracies(point):
    h, a, rho, tau = point
    assume(tau > 1e-3)
    human_margin = team_accuracy(h, a, rho, trust=tau) - human_accuracy(h)
    ai_margin = team_accuracy(h, a, rho, trust=tau) - ai_accuracy(a)
    assume(min(abs(human_margin), abs(ai_margin)) > 1e-9)
    r = a / h
    assert (tau * r**3 + (2 - tau) * r < 2 * rho) == (human_margin < 0)
    assert (2 * rho * tau * r**3 - (2 * tau - 1) * r**2 - 1 > 0) == (ai_margin < 0)
    assert (rho < complementarity_threshold(r, tau)) == (min(human_margin, ai_margin) > 0)
    (i_low, i_high), (a_low, a_high) = regime_boundaries(rho, tau, full=True)
    assert (i_low < r < i_high) == (human_margin < 0)
    assert (a_low < r < a_high) == (ai_margin < 0)
    assert not (human_margin < 0 and ai_margin < 0)
    assert regime(h, a, rho, trust=tau) == compared(h, a, rho, trust=tau)


@few
@given(deployments(max_capability=1.5), st.floats(0.3, 1.8))
def test_log_odds_advice_is_scale_free(point, scale):
    h, a, rho, tau = point
    margins = [
        team_accuracy(c * h, c * a, rho, trust=tau) - alone
        for c in (1, scale)
        for alone in (human_accuracy(c * h), ai_accuracy(c * a))
    ]
    assume(min(map(abs, margins)) > 1e-8)
    assert regime(h, a, rho, trust=tau) == regime(scale * h, scale * a, rho, trust=tau)


@few
@given(st.floats(0.01, 0.95), st.floats(0.001, 0.04), st.floats(0.05, 1.9), st.floats(0.01, 0.1))
def test_boundaries_move_with_overlap_and_trust(rho, more, tau, trust_more):
    """C3: complementarity narrows with overlap. C4, C5: trust moves both boundaries up."""
    i, a = regime_boundaries([rho, rho + more], tau)
    assert i[0] < i[1] and a[0] > a[1]
    i, a = regime_boundaries(rho, [tau, tau + trust_more])
    assert i[0] <= i[1] and a[0] <= a[1]


@few
@given(st.floats(0.001, 0.99), st.floats(0.01, 2.0))
def test_neglect_hurts_and_ai_alone_wins_in_the_end(rho, tau):
    """C1 and C2: with any overlap both regions exist."""
    impairment, automation = regime_boundaries(rho, tau)
    assert 0 < impairment < 1 < automation < np.inf
    none, _ = regime_boundaries(0.0, tau)
    assert none == 0


@settings(max_examples=15, deadline=None)
@given(
    st.floats(0.02, 0.9),
    st.floats(0.1, 2.5),
    st.floats(0.2, 1.5),
    st.sampled_from(["correlation", "cue"]),
)
def test_binary_boundaries_separate_the_regions(overlap, tau, h, kind):
    options = {"trust": tau, "recommendation": "binary", "overlap_kind": kind}
    impairment, automation = regime_boundaries(
        overlap, tau, h, recommendation="binary", overlap_kind=kind
    )
    for end, code in ((impairment, -1), (automation, 2)):
        if 0 < end < 6:
            inside, outside = (end * 0.99, end * 1.01)[:: 1 if code == -1 else -1]
            margins = {}
            for name, a in (("inside", inside), ("outside", outside)):
                alone = human_accuracy(h) if code == -1 else ai_accuracy(a)
                margins[name] = team_accuracy(h, a, overlap, **options) - alone
            assert margins["inside"] < 1e-12 and margins["outside"] > -1e-12


@settings(max_examples=15, deadline=None)
@given(st.floats(-0.5, 0.9), st.floats(0.1, 3), st.floats(-0.6, 0.6))
def test_scanned_boundaries_with_belief(rho, tau, belief):
    (i_low, i_high), (a_low, a_high) = regime_boundaries(rho, tau, overlap_belief=belief, full=True)
    r = np.geomspace(0.01, 20, 60)
    team = team_accuracy(0.3, 0.3 * r, rho, trust=tau, overlap_belief=belief)
    worse = human_accuracy(0.3) - team > 1e-9
    assert not worse[(r < i_low * 0.99) | (r > i_high * 1.01)].any()
    dominated = ai_accuracy(0.3 * r) - team > 1e-9
    assert not dominated[(r < a_low * 0.99) | (r > a_high * 1.01)].any()


def test_scanned_and_closed_boundaries_agree():
    """A belief too small to matter takes the other route."""
    rho, tau = np.random.default_rng(0).uniform([[-0.3], [0.05]], [[0.95], [3.0]], (2, 60))
    closed = regime_boundaries(rho, tau, full=True)
    scanned = regime_boundaries(rho, tau, overlap_belief=1e-300, full=True)
    for first, second in zip(np.ravel(closed), np.ravel(scanned), strict=True):
        if first < 90:
            assert first == pytest.approx(second, rel=1e-5, abs=2e-3)


# --- phase diagrams and places --------------------------------------------------------------------


@pytest.mark.parametrize("recommendation", ["probabilistic", "binary"])
def test_areas_follow_the_claims(recommendation):
    """Under-trust shrinks impairment and widens automation; over-trust the other way round."""
    grids = {"ai_grid": np.linspace(0, 3, 61), "overlap_grid": np.linspace(0, 1, 51)}
    areas = [
        phase_diagram(0.5, trust=tau, recommendation=recommendation, **grids).area()
        for tau in (0.25, 1.0, 1.5)
    ]
    impairment, automation = ([area[k] for area in areas] for k in ("impairment", "automation"))
    assert impairment[0] < impairment[1] < impairment[2]
    assert automation[0] > automation[1] > automation[2]
    assert all(sum(area.values()) == pytest.approx(1) for area in areas)


@pytest.mark.parametrize("recommendation", ["probabilistic", "binary"])
def test_complementarity_narrows_with_overlap(recommendation):
    diagram = phase_diagram(0.5, recommendation=recommendation)
    width = (diagram.codes == 1).sum(axis=1)
    assert (np.diff(width[1:-1]) <= 0).all() and width[1] > width[-2]


def test_diagram_agrees_with_its_parts():
    diagram = phase_diagram(
        p_human=0.7, ai_grid=[0.2, 0.6, 1.5], overlap_grid=[0.1, 0.5, 0.9], trust=0.6
    )
    for i, o in enumerate(diagram.overlap_grid):
        for j, a in enumerate(diagram.ai_grid):
            options = {"trust": 0.6, "overlap_kind": "cue"}
            assert diagram.team[i, j] == team_accuracy(diagram.h, a, o, **options)
            assert diagram.codes[i, j] == compared(diagram.h, a, o, **options)
    frame = diagram.to_frame()
    assert frame.shape == (9, 6)
    assert frame["regime"][0] == REGIME_NAMES[diagram.codes[0, 0]]
    assert diagram.human == pytest.approx(0.7)


def test_diagram_boundaries_cross_where_codes_change():
    for recommendation in ("probabilistic", "binary"):
        diagram = phase_diagram(
            0.5,
            ai_grid=np.linspace(0.01, 3, 300),
            overlap_grid=[0.2, 0.6, 0.9],
            recommendation=recommendation,
        )
        step = diagram.ai_grid[1] - diagram.ai_grid[0]
        for row, end in zip(diagram.codes, diagram.boundaries["automation"], strict=True):
            if np.isfinite(end):
                first = diagram.ai_grid[np.argmax(row == 2)]
                assert first == pytest.approx(end, abs=1.5 * step)


def test_diagram_for_four_options():
    diagram = phase_diagram(
        p_human=0.52,
        ai_grid=np.linspace(0.5, 2.5, 5),
        overlap_grid=[0.0, 0.5],
        overlap_kind="correlation",
        recommendation="binary",
        n_choices=4,
        trust=0.25,
    )
    assert diagram.human == pytest.approx(0.52, abs=1e-9)
    assert diagram.codes[0, -1] == 2  # strong AI, little trust
    assert np.isnan(diagram.boundaries["automation"]).all()
    team = team_accuracy(
        diagram.h, diagram.ai_grid[2], 0.5, trust=0.25, n_choices=4, recommendation="binary"
    )
    assert diagram.team[1, 2] == team


def test_ties_are_indifferent():
    assert regime(0.5, 0.5, 1.0, overlap_kind="cue") == 0
    assert regime(0.5, 12.0, 0.3, recommendation="binary") == 0
    # T - A is about -5e-13 here: a sign, but nothing that the default tolerance colours.
    assert regime(0.5, 3.0, 0.3, recommendation="binary") == 0
    assert regime(0.5, 3.0, 0.3, recommendation="binary", tol=1e-13) == 2
    assert regime(0.5, 0.8, 0.3, trust=0) == 2
    assert regime(0.8, 0.5, 0.3, trust=0) == 0
    assert regime(0.5, 0.8, 0.3, tol=1.0) == 0


@pytest.mark.parametrize("recommendation", ["probabilistic", "binary"])
def test_place_of_one_deployment(recommendation):
    place = locate(0.5, 0.3, 0.8, recommendation=recommendation)
    impairment, automation = regime_boundaries(0.8, h=0.5, recommendation=recommendation)
    unit = 0.5 if recommendation == "binary" else 1.0
    assert place.name == "impairment" and place.above_impairment < 0 < place.below_automation
    assert place.above_impairment == pytest.approx(0.6 - impairment / unit)
    assert place.below_automation == pytest.approx(automation / unit - 0.6)
    assert place.team < place.human
    nowhere = locate(0.0, 0.3, 0.2, recommendation=recommendation)
    assert np.isnan(nowhere.above_impairment) and nowhere.relative_capability == np.inf


def test_place_with_cues_and_belief():
    place = locate(0.5, 0.4, 0.5, overlap_kind="cue", overlap_belief=0.5)
    assert place.overlap == pytest.approx(0.4) and place.overlap_belief == pytest.approx(0.4)
    assert place.name == "complementarity" and place.below_automation == np.inf


def test_plot():
    ax = Figure().add_subplot()
    diagram = phase_diagram(0.5, recommendation="binary", overlap_grid=np.linspace(0, 1, 21))
    same = diagram.plot(ax, point=(0.8, 0.4), covariance=np.diag([0.01, 0.002]))
    assert same is ax and len(ax.lines) == 5  # two boundaries, point, ellipse, dotted line
    words = {text.get_text() for text in ax.texts}
    assert {"complementarity", "automation", "impairment"} <= words


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: regime(1, 1, 0, tol=-1), "tol: got -1"),
        (lambda: regime_boundaries(0.3, recommendation="binary"), "h: got None"),
        (lambda: regime_boundaries(0.3, h=0.0), "h: got 0.0"),
        (lambda: regime_boundaries(1.0), "overlap: got 1.0"),
        (lambda: regime_boundaries(0.3, -1), "trust: got -1"),
        (lambda: phase_diagram(), "exactly one"),
        (lambda: phase_diagram(0.5, p_human=0.7), "exactly one"),
        (lambda: phase_diagram(p_human=0.4), "p_human: got 0.4"),
        (lambda: phase_diagram(0.5, ai_grid=[1, 1]), "ai_grid: allowed"),
        (lambda: phase_diagram(0.5, overlap_grid=[0, np.nan]), "overlap_grid: allowed"),
        (lambda: phase_diagram(0.5, overlap_grid=[0.5, 1.5]), "overlap: got 1.5"),
        (lambda: complementarity_threshold(-1), "r: got -1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
