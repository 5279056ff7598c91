"""The audit: paired runs, contrasts, intervals, strata, stability, report."""

import pickle
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr, ttest_1samp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.datasets import inject_mode_shift, make_ambiguous_digits, simulate_annotators
from equipoise.estimators import SoftLabelClassifier
from equipoise.explainers import (
    SoftLabelAudit,
    calibration_error,
    human_alignment_report,
    kl_to_humans,
    soft_brier,
    soft_cross_entropy,
)
from equipoise.explainers.soft_labels.audit_effects import (
    CONTRASTS,
    curve_measures,
    metric_values,
)
from equipoise.explainers.soft_labels.audit_metrics import DEFAULT_METRICS, choose_metrics
from equipoise.explainers.soft_labels.audit_runs import split_by_mode, strata_of_items
from equipoise.inference import holm

pytestmark = pytest.mark.filterwarnings("ignore:strata with fewer than:UserWarning")


def items(n: int = 300, shift: float = 0.2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    made = make_ambiguous_digits(n, ambiguity=0.5, random_state=0)
    votes = simulate_annotators(made.posterior, skill=(1, 1), random_state=1).counts
    y = inject_mode_shift(votes.argmax(axis=1), made.posterior, shift, random_state=2)
    return made.data[:, 20:36] / 16, y, votes


def network(**parameters: object) -> SoftLabelClassifier:
    return SoftLabelClassifier(
        **{"hidden_layer_sizes": (8,), "max_epochs": 3, "batch_size": 64, "lr": 0.01, **parameters}
    )


@pytest.fixture(scope="module")
def audited() -> SoftLabelAudit:
    audit = SoftLabelAudit(network(), seeds=3, n_bootstrap=200, keep_models=True, random_state=0)
    return audit.fit(*items())


def values_of(
    audit: SoftLabelAudit, reference: str, metric: str, stratum: str = "all"
) -> pd.DataFrame:
    r = audit.results_
    rows = r[(r["reference"] == reference) & (r["metric"] == metric) & (r["stratum"] == stratum)]
    return rows.pivot(index="seed", columns="arm", values="value")


def test_contrasts_add_up(audited: SoftLabelAudit) -> None:
    effects = audited.effects_[audited.effects_["stratum"] == "all"]
    for (reference, metric), rows in effects.groupby(["reference", "metric"]):
        Q = values_of(audited, reference, metric)
        found = rows.set_index("effect")["estimate"]
        parts = found["soft main"] + found["mode main"]
        assert parts == pytest.approx((Q["soft_human"] - Q["hard_orig"]).mean(), abs=1e-12)
        assert found["conflated"] == pytest.approx(parts, abs=1e-12)
        d1, d2 = Q["soft_human"] - Q["hard_mode"], Q["soft_orig_mode"] - Q["hard_orig"]
        assert found["soft main"] == pytest.approx(((d1 + d2) / 2).mean(), abs=1e-12)
        assert found["interaction"] == pytest.approx((d1 - d2).mean(), abs=1e-12)
        mode = (Q["hard_mode"] - Q["hard_orig"] + Q["soft_human"] - Q["soft_orig_mode"]) / 2
        assert found["mode main"] == pytest.approx(mode.mean(), abs=1e-12)
        item = (Q["soft_human"] - Q["shuffled"]).mean()
        assert found["item information"] == pytest.approx(item, abs=1e-12)
    assert all(abs(sum(contrast.values())) < 1e-12 for contrast in CONTRASTS.values())


def test_number_of_seeds_may_be_a_numpy_integer() -> None:
    X, y, votes = items(150)
    runs = [
        SoftLabelAudit(
            SoftLabelClassifier(LogisticRegression()),
            arms=["hard_orig", "soft_human"],
            seeds=seeds,
            strata=(0, 1),
            n_bootstrap=0,
            random_state=0,
        ).fit(X, y, votes)
        for seeds in (2, np.int64(2))
    ]
    pd.testing.assert_frame_equal(runs[0].results_, runs[1].results_)


def test_intervals_over_seeds_are_those_of_the_t_test(audited: SoftLabelAudit) -> None:
    rows = audited.effects_.set_index(["effect", "stratum", "reference", "metric"])
    row = rows.loc[("soft at human mode", "all", "soft", "kl")]
    Q = values_of(audited, "soft", "kl")
    test = ttest_1samp(Q["soft_human"] - Q["hard_mode"], 0)
    interval = test.confidence_interval(0.95)
    np.testing.assert_allclose([row["t_low"], row["t_high"]], interval, atol=1e-12)
    assert row["t_p"] == pytest.approx(test.pvalue)
    assert row["low"] < row["estimate"] < row["high"]
    for (_, _), group in audited.effects_.groupby(["effect", "stratum"]):
        known = group[group["p"].notna()]
        if len(known):
            np.testing.assert_allclose(known["p_holm"], holm(known["p"].to_numpy()))


def test_results_agree_with_the_public_metrics(audited: SoftLabelAudit) -> None:
    X, y, votes = items()
    arm, seed = audited.results_.loc[0, "arm"], audited.results_.loc[0, "seed"]
    arms, F, P_test, _, _ = audited._report
    model = audited.models_[arm, seed]
    modes = np.where(votes[np.arange(300), y] == votes.max(axis=1), y, votes.argmax(axis=1))
    _, test = split_by_mode(modes, 0.3, int(np.random.RandomState(0).randint(2**31 - 1, size=3)[0]))
    proba = model.predict_proba(X[test])
    np.testing.assert_array_equal(F[arms.index(arm), 0], proba)
    np.testing.assert_allclose(P_test, votes[test] / 10)
    report = human_alignment_report(votes[test], proba)

    def found(reference: str, metric: str) -> float:
        return float(values_of(audited, reference, metric).loc[seed, arm])

    for metric, name in {
        "kl": "kl",
        "accuracy": "soft_accuracy",
        "cross_entropy": "cross_entropy",
        "ece": "soft_ece",
        "brier": "soft_brier",
        "brier_debiased": "soft_brier_debiased",
        "total_variation": "total_variation",
        "entropy_error": "entropy_error",
        "entropy_error_absolute": "entropy_error_absolute",
        "ranking": "ranking_exact",
    }.items():
        assert found("soft", metric) == pytest.approx(report[name], abs=1e-12)
    assert found("soft", "entropy_spearman") == pytest.approx(report["entropy_spearman"], abs=1e-9)
    debiased = calibration_error(votes[test], proba, norm="l2", debias=True)
    assert found("soft", "rmsce_debiased") == pytest.approx(debiased, abs=1e-12)
    for reference, labels in (("original", y), ("mode", modes)):
        assert found(reference, "accuracy") == (proba.argmax(axis=1) == labels[test]).mean()
        assert found(reference, "cross_entropy") == pytest.approx(
            soft_cross_entropy(labels[test], proba)
        )
        assert found(reference, "ece") == pytest.approx(calibration_error(labels[test], proba))
        assert found(reference, "brier") == pytest.approx(soft_brier(labels[test], proba))
    assert audited.mode_shift_.rate == pytest.approx((y != modes).mean())
    assert audited.mode_shift_.matrix.sum() == 300
    assert np.trace(audited.mode_shift_.matrix) == (y == modes).sum()


def test_runs_are_paired(audited: SoftLabelAudit) -> None:
    """A seed's arms start from the same weights and see the same batches: one-hot arms that agree
    give the same model."""
    X, _, votes = items()
    audit = SoftLabelAudit(network(), seeds=[5], n_bootstrap=20, random_state=0)
    audit.fit(X, votes.argmax(axis=1), votes)
    assert audit.mode_shift_.rate == 0
    Q = values_of(audit, "soft", "kl")
    assert (Q["hard_orig"] == Q["hard_mode"]).all()
    assert (Q["soft_human"] == Q["soft_orig_mode"]).all()
    mode = audit.effects_[audit.effects_["effect"] == "mode main"].dropna(subset="estimate")
    assert (mode["estimate"] == 0).all()
    assert (mode[["low", "high"]] == 0).all(axis=None)
    assert (mode["p"] == 1).all()


def test_bootstrap_is_a_resampling_of_items() -> None:
    """Resamples of the vectorised bootstrap agree with metrics computed on repeated rows."""
    rng = np.random.default_rng(0)
    n, K = 60, 4
    P = rng.multinomial(9, np.ones(K) / K, n)
    F = rng.dirichlet(np.ones(K), (1, 1, n))
    chosen = choose_metrics(("ece", "kl", "rmsce_debiased", "classwise_ece", "brier_debiased"))
    everything = {"all": np.ones(n, dtype=bool)}
    _, resamples = metric_values(
        F, {"soft": P / 9}, P, everything, {"soft": chosen}, 30, np.random.RandomState(3)
    )
    state = np.random.RandomState(3).randint(2**31 - 1, size=1)
    draws = np.random.RandomState(state[0])
    for b in range(30):
        rows = draws.randint(n, size=n)
        expected = {
            "ece": calibration_error(P[rows], F[0, 0, rows]),
            "kl": human_alignment_report(P[rows], F[0, 0, rows])["kl"],
            "rmsce_debiased": calibration_error(P[rows], F[0, 0, rows], norm="l2", debias=True),
            "classwise_ece": calibration_error(P[rows], F[0, 0, rows], classwise=True),
            "brier_debiased": soft_brier(P[rows], F[0, 0, rows], debias=True),
        }
        for name, value in expected.items():
            assert resamples["all", "soft", name][b, 0, 0] == pytest.approx(value, abs=2e-5)


def test_bootstrap_interval_covers_at_its_level() -> None:
    """80 data sets with a known mean of the KL divergence; a binomial count of 95 % intervals."""
    rng = np.random.default_rng(0)
    covered = 0
    kl = choose_metrics(("accuracy",))
    for i in range(80):
        share = rng.beta(2, 2, size=(1, 1, 150))
        F = np.stack([np.full_like(share, 0.6), np.full_like(share, 0.4)], axis=-1)
        P = np.stack([share[0, 0], 1 - share[0, 0]], axis=-1)
        everything = {"all": np.ones(150, dtype=bool)}
        _, resamples = metric_values(
            F, {"soft": P}, None, everything, {"soft": kl}, 300, np.random.RandomState(i)
        )
        low, high = np.quantile(resamples["all", "soft", "accuracy"], [0.025, 0.975])
        covered += low < 0.5 < high
    assert 69 <= covered <= 80


def test_strata() -> None:
    P = np.array(
        [[1.0, 0], [1, 0], [1, 0], [0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5]]
    )
    shifted = np.arange(8) == 7
    strata = strata_of_items(P, "entropy", [0, 0.25, 0.75, 1], shifted, None)
    assert list(strata)[1:4] == [
        "difficulty 0%-25%",
        "difficulty 25%-75%",
        "difficulty 75%-100%",
    ]
    # The three items of entropy 0 are tied across the first limit, and stay together below it.
    assert strata["difficulty 0%-25%"].tolist() == [True] * 3 + [False] * 5
    assert sum(rows.astype(int) for rows in list(strata.values())[1:4]).tolist() == [1] * 8
    assert strata["mode-shifted"].tolist() == shifted.tolist()


def test_groups_are_strata_that_are_held_against_all_items() -> None:
    X, y, votes = items(400)
    groups = np.where(np.arange(400) % 3 == 0, "north", "south")
    settings = {"arms": list(CONTRASTS["soft main"]), "seeds": 2, "random_state": 0}
    model = SoftLabelClassifier(LogisticRegression())
    audit = SoftLabelAudit(model, n_bootstrap=100, strata=(0, 1), **settings)
    audit.fit(X, y, votes, groups=groups)
    assert {"group north", "group south"} <= set(audit.results_["stratum"])
    gaps = audit.group_gaps_.set_index(["effect", "group", "reference", "metric"])
    for group in ("north", "south"):
        inside = values_of(audit, "soft", "kl", f"group {group}")
        outside = values_of(audit, "soft", "kl")
        c = pd.Series(CONTRASTS["soft main"])
        gap = gaps.loc[("soft main", group, "soft", "kl")]
        assert gap["estimate"] == pytest.approx(((inside - outside)[c.index] @ c).mean(), abs=1e-12)
        assert gap["low"] < gap["estimate"] < gap["high"]
        assert gap["p"] <= gap["p_holm"] <= 1
    # A mean over all items lies between the means of the two groups that make them up.
    kl = gaps.xs(("soft main", "soft", "kl"), level=("effect", "reference", "metric"))["estimate"]
    assert kl["north"] * kl["south"] < 0
    # Groups don't enter the training, and given test items bring their own.
    plain = SoftLabelAudit(model, n_bootstrap=0, strata=(0, 1), **settings).fit(X, y, votes)
    pd.testing.assert_frame_equal(values_of(plain, "soft", "kl"), values_of(audit, "soft", "kl"))
    assert plain.group_gaps_.empty
    parts = (X[:300], y[:300], votes[:300], X[300:], y[300:], votes[300:])
    given = SoftLabelAudit(model, n_bootstrap=0, strata=(0, 1), **settings)
    given.fit(*parts, groups_test=groups[300:])
    assert set(given.group_gaps_["group"]) == {"north", "south"}
    assert any(line.startswith("group north") for line in audit.explain().summary)
    with pytest.raises(ValueError, match="groups_test"):
        given.fit(*parts, groups=groups[:300])
    with pytest.raises(ValueError, match="groups has 3 entries"):
        audit.fit(X, y, votes, groups=groups[:3])
    with pytest.raises(ValueError, match="needs X_test"):
        audit.fit(X, y, votes, groups_test=groups)
    holes = groups.astype(object)
    holes[7] = None
    with pytest.raises(ValueError, match="no group in row 7"):
        audit.fit(X, y, votes, groups=holes)


def test_strata_by_fixed_thresholds_and_other_difficulties() -> None:
    X, y, votes = items(400)
    audit = SoftLabelAudit(
        SoftLabelClassifier(LogisticRegression()),
        arms=["hard_mode", "soft_human"],
        seeds=1,
        n_bootstrap=0,
        strata={"clear": (0, 0.3), "split": (0.3, 1)},
        difficulty="top",
        random_state=0,
    ).fit(X[:200], y[:200], votes[:200], X[200:], y[200:], votes[200:])
    F = SoftLabelClassifier(LogisticRegression()).fit(X[:200], y[:200], votes[:200])
    d = 1 - votes[200:].max(axis=1) / votes[200:].sum(axis=1)
    for name, rows in {"clear": d <= 0.3, "split": d > 0.3}.items():
        found = values_of(audit, "soft", "kl", name)["soft_human"].iloc[0]
        proba = F.predict_proba(X[200:][rows])
        assert found == pytest.approx(kl_to_humans(votes[200:][rows], proba), abs=1e-8)
    ax = audit.explain().plot("strata")
    plt.close(ax.figure)


def test_small_strata_have_no_figures() -> None:
    audit = SoftLabelAudit(
        network(), seeds=[1], n_bootstrap=10, arms=["hard_mode", "soft_human"], random_state=0
    )
    with pytest.warns(UserWarning, match=r"fewer than 30 test items.*80%-100%.*mode-shifted"):
        audit.fit(*items(200, shift=0.05))
    small = audit.results_[audit.results_["stratum"] == "difficulty 80%-100%"]
    assert small["value"].isna().all()
    assert audit.results_[audit.results_["stratum"] == "all"]["value"].notna().all()


def test_given_test_items_and_named_classes() -> None:
    X, y, votes = items()
    names = np.array([f"digit {k}" for k in range(10)])
    frame = pd.DataFrame(votes, columns=names)
    audit = SoftLabelAudit(
        network(max_epochs=1), seeds=[1], n_bootstrap=0, arms=["soft_human", "hard_mode"]
    )
    audit.fit(X[:200], names[y[:200]], frame[:200], X[200:], names[y[200:]], frame[200:])
    np.testing.assert_array_equal(audit.classes_, names)
    assert audit.effects_["low"].isna().all()
    assert audit._report[1].shape == (2, 1, 100, 10)
    assert set(audit.effects_["effect"]) == {"soft at human mode"}


def test_teacher_and_own_arms_and_metrics() -> None:
    X, y, votes = items()

    def surprise(target: np.ndarray, F: np.ndarray) -> float:
        return float(-(target * np.log(F)).sum(axis=1).max())

    audit = SoftLabelAudit(
        SoftLabelClassifier(LogisticRegression()),
        arms={
            "teacher": None,
            "teacher_matched": None,
            "flat": lambda P, m, rng: np.full_like(P, 0.1),
        },
        metrics={"kl": None, "surprise": surprise},
        seeds=2,
        n_bootstrap=20,
        reference=["soft"],
        random_state=0,
    ).fit(X, y, votes)
    flat = values_of(audit, "soft", "surprise")["flat"]
    np.testing.assert_allclose(flat, -np.log(0.1), atol=0.02)
    summary = audit.summary_.set_index(["arm", "stratum", "metric"]).loc[
        ("flat", "all", "surprise")
    ]
    assert summary["low"] == pytest.approx(summary["high"])  # the seeds don't matter here
    assert audit.dynamics_.empty
    with pytest.raises(ValueError, match="kind='data_map'"):
        audit.explain().plot("data_map")


def test_the_arm_of_drawn_votes() -> None:
    """A network draws a new vote in every epoch; an estimator without epochs has one draw."""
    X, y, votes = items(100)
    settings = {"seeds": 1, "n_bootstrap": 0, "keep_models": True, "random_state": 0}
    arms = ["soft_human", "sampled"]
    for estimator, method in (
        (network(), "sampled"),
        (SoftLabelClassifier(GaussianNB()), "sampled"),
        (SoftLabelClassifier(LogisticRegression()), "auto"),
    ):
        audit = SoftLabelAudit(estimator, arms=arms, **settings).fit(X, y, votes)
        methods = {arm: model.method for (arm, _), model in audit.models_.items()}
        assert methods == {"soft_human": "auto", "sampled": method}
        target = next(
            m for (arm, _), m in audit.models_.items() if arm == "sampled"
        ).target_entropy_
        assert (target.max() > 0) == (method == "sampled")


def test_pipelines() -> None:
    X, y, votes = items()
    pipe = make_pipeline(StandardScaler(), network(max_epochs=1))
    audit = SoftLabelAudit(
        pipe, seeds=2, n_bootstrap=10, arms=["hard_mode", "soft_human"], random_state=0
    )
    audit.fit(X, y, votes)
    Q = values_of(audit, "soft", "kl")
    assert Q["soft_human"].nunique() == 2  # the seed reaches the classifier
    again = SoftLabelAudit(
        pipe, seeds=2, n_bootstrap=10, arms=["hard_mode", "soft_human"], random_state=0
    )
    pd.testing.assert_frame_equal(again.fit(X, y, votes).effects_, audit.effects_)


def test_parallel_runs_and_memory_give_the_same(tmp_path: Path) -> None:
    X, y, votes = items(150)
    settings = {
        "seeds": 2,
        "n_bootstrap": 10,
        "arms": ["hard_mode", "soft_human"],
        "random_state": 0,
    }
    plain = SoftLabelAudit(network(), **settings).fit(X, y, votes)
    parallel = SoftLabelAudit(network(), n_jobs=2, **settings).fit(X, y, votes)
    pd.testing.assert_frame_equal(plain.results_, parallel.results_)
    first = SoftLabelAudit(network(), memory=tmp_path, **settings).fit(X, y, votes)
    stored = len(list(tmp_path.rglob("output.pkl")))
    assert stored == 4
    # An audit with one arm more goes on from the four fits that are there.
    settings["arms"] = ["hard_mode", "soft_human", "shuffled"]
    more = SoftLabelAudit(network(), memory=tmp_path, **settings).fit(X, y, votes)
    assert len(list(tmp_path.rglob("output.pkl"))) == 6
    kept = more.results_[more.results_["arm"] != "shuffled"].reset_index(drop=True)
    pd.testing.assert_frame_equal(
        kept.sort_values(list(kept)).reset_index(drop=True),
        first.results_.sort_values(list(kept)).reset_index(drop=True),
    )


AUDIT_OF_EIGHT_FITS = """
import sys
from equipoise.datasets import make_ambiguous_digits, simulate_annotators
from equipoise.estimators import SoftLabelClassifier
from equipoise.explainers import SoftLabelAudit

def audit(memory):
    made = make_ambiguous_digits(400, ambiguity=0.5, random_state=0)
    votes = simulate_annotators(made.posterior, skill=(1, 1), random_state=1).counts
    arms = ["hard_orig", "hard_mode", "soft_human", "shuffled"]
    model = SoftLabelClassifier(hidden_layer_sizes=(32,), max_epochs=20, batch_size=8)
    audit = SoftLabelAudit(
        model, arms=arms, seeds=2, n_bootstrap=10, memory=memory, random_state=0, verbose=1
    )
    return audit.fit(made.data / 16, made.target, votes)
"""


@pytest.mark.slow
def test_a_killed_audit_goes_on_from_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process is killed outright after two fits; another one takes up the rest."""
    script = AUDIT_OF_EIGHT_FITS + "\naudit(sys.argv[1])"
    killed = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-P", "-c", script, str(killed)])
    try:
        deadline = time.monotonic() + 120
        while len(list(killed.rglob("output.pkl"))) < 2:
            assert process.poll() is None, "the audit ended before it could be killed"
            assert time.monotonic() < deadline, "no fit was stored"
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    stored = {path: path.stat().st_mtime_ns for path in killed.rglob("output.pkl")}
    assert 2 <= len(stored) < 8
    room: dict = {}
    exec(AUDIT_OF_EIGHT_FITS, room)
    resumed = room["audit"](killed)
    assert len(list(killed.rglob("output.pkl"))) == 8
    assert all(path.stat().st_mtime_ns == written for path, written in stored.items())
    assert "8/8" in capsys.readouterr().err  # the bar counts fits
    whole = room["audit"](None)
    pd.testing.assert_frame_equal(resumed.results_, whole.results_)
    pd.testing.assert_frame_equal(resumed.effects_, whole.effects_)


def test_dynamics_and_alignment(audited: SoftLabelAudit) -> None:
    d = audited.dynamics_
    assert set(d["items"]) == {"train", "test"}
    assert d[(d["arm"] == "soft_human") & (d["items"] == "train")].shape[0] == 210
    row = audited.alignment_.set_index(["arm", "items"]).loc[("soft_human", "test")]
    table = d[(d["arm"] == "soft_human") & (d["items"] == "test")]
    H = table["human_entropy"].round(12)
    for axis, values in {
        "1 - confidence": 1 - table["confidence"],
        "variability": table["variability"],
        "last entropy": table["last_entropy"],
    }.items():
        assert row[axis] == pytest.approx(spearmanr(values.round(12), H).statistic, abs=1e-9)
    assert row["mean variability"] == pytest.approx(table["variability"].mean())


def test_stability(audited: SoftLabelAudit) -> None:
    arms, F, _, curves, references = audited._report
    table = audited.stability_.set_index(["arm", "measure"])
    predicted = F[arms.index("soft_human")].argmax(axis=2)
    churn = np.mean([(predicted[a] != predicted[b]).mean() for a, b in ((0, 1), (0, 2), (1, 2))])
    assert table.loc[("soft_human", "churn"), "value"] == pytest.approx(churn)
    Q = values_of(audited, "soft", "kl")
    row = table.loc[("soft_human", "sd of kl (soft)")]
    assert row["value"] == pytest.approx(Q["soft_human"].std())
    assert row["ratio"] == pytest.approx(Q["hard_mode"].std() / Q["soft_human"].std())
    assert curves["soft_human"].shape == (3, 3, 3)
    assert references == ["original", "mode", "soft"]
    last = curves["soft_human"][:, -1, 2]
    np.testing.assert_allclose(
        last,
        values_of(audited, "soft", "cross_entropy")["soft_human"].loc[
            list(dict.fromkeys(audited.results_["seed"]))
        ],
        atol=1e-9,
    )


def test_curve_measures_by_hand() -> None:
    curves = np.array([[[2.0], [1.0], [1.2], [1.21], [1.205]]])
    found = curve_measures(curves, ["soft"])
    assert found["volatility (soft)"] == pytest.approx((0.01 + 0.005) / 2)
    assert found["epochs to within 1% (soft)"] == 3
    assert found["overfit gap (soft)"] == pytest.approx(0.205)


def test_report(audited: SoftLabelAudit) -> None:
    report = audited.explain()
    pd.testing.assert_frame_equal(report.to_frame(), audited.effects_)
    for kind in (
        "effects",
        "reliability",
        "strata",
        "data_map",
        "convergence",
        "entropy_alignment",
    ):
        assert report.plot(kind).get_title()
    assert len(report.plot("convergence", arm="soft_human").lines) == 1
    with pytest.raises(ValueError, match="arm='none' is not in the audit"):
        report.plot("strata", arm="none")
    with pytest.raises(ValueError, match="is for the kinds"):
        report.plot("effects", arm="soft_human")
    assert "| soft main | soft | kl |" in report.to_markdown()
    page = report.to_html()
    assert page.count("data:image/png;base64") == 6
    assert 'src="http' not in page
    assert str(pickle.loads(pickle.dumps(report))) == str(report)
    assert "KL from annotators to model" in str(report)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"estimator": LogisticRegression()}, TypeError, "wrap it: SoftLabelClassifier"),
        ({"strata": (0.2, 1)}, ValueError, "must rise from 0 to 1"),
        ({"reference": ["truth"]}, ValueError, "must name some of"),
        ({"metrics": ["auc"]}, ValueError, "metric 'auc' is not known"),
        ({"metrics": {"own": 3}}, ValueError, "must be a function"),
        ({"metrics": "all"}, ValueError, "metrics"),
        ({"arms": ["mixup"]}, ValueError, "arm 'mixup' is not known"),
        ({"n_bootstrap": -1}, ValueError, "n_bootstrap"),
        ({"seeds": 0}, ValueError, "seeds"),
    ],
)
def test_errors_say_what_is_wrong(arguments: dict, error: type, message: str) -> None:
    audit = SoftLabelAudit(**{"estimator": network(), **arguments})
    with pytest.raises(error, match=message):
        audit.fit(*items(100))
    with pytest.raises(NotFittedError):
        audit.explain()


def test_test_items_are_given_together() -> None:
    X, y, votes = items(100)
    with pytest.raises(ValueError, match="given together"):
        SoftLabelAudit(network()).fit(X, y, votes, X)


def test_default_metrics_are_named() -> None:
    assert {"kl", "ece", "accuracy", "entropy_spearman"} <= set(DEFAULT_METRICS)
