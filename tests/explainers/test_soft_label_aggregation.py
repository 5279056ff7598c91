"""From votes to distributions: shares, majorities, Dawid and Skene, WAWA."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from equipoise.datasets import simulate_annotators
from equipoise.explainers import WAWA, DawidSkene, MajorityVote, VoteShare

DENSE = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, -1, 1]])
AGGREGATORS = [VoteShare(), MajorityVote(), DawidSkene(), DawidSkene(one_coin=True), WAWA()]


@st.composite
def crowds(draw: st.DrawFn) -> np.ndarray:
    """Dense annotations with missing votes; every task has a vote, two classes occur."""
    n, J, K = draw(st.integers(2, 8)), draw(st.integers(2, 5)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    dense = np.where(rng.uniform(size=(n, J)) < 0.3, -1, rng.integers(K, size=(n, J)))
    dense[:, 0] = rng.integers(K, size=n)
    dense[0, 0], dense[1, 0], dense[1, 1] = 0, 1, -1
    return dense


def long(dense: np.ndarray) -> pd.DataFrame:
    task, worker = np.nonzero(dense != -1)
    return pd.DataFrame({"task": task, "worker": worker, "label": dense[task, worker]})


def reference_em(
    dense: np.ndarray, n_iter: int, eta: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[float]]:
    """Dawid and Skene's EM with loops, from the vote shares."""
    n, J = dense.shape
    classes = np.unique(dense[dense != -1])
    K = len(classes)
    T = np.array([[(row == c).sum() for c in classes] for row in dense], dtype=float)
    T /= T.sum(axis=1, keepdims=True)
    history = []
    for _ in range(n_iter):
        priors = T.mean(axis=0)
        confusion = np.full((J, K, K), float(eta))
        for i in range(n):
            for j in range(J):
                if dense[i, j] != -1:
                    confusion[j, :, np.searchsorted(classes, dense[i, j])] += T[i]
        total = confusion.sum(axis=2, keepdims=True)
        confusion = np.where(total > 0, confusion / np.where(total > 0, total, 1), 1 / K)
        log_T = np.tile(np.log(np.maximum(priors, 1e-300)), (n, 1))
        for i in range(n):
            for j in range(J):
                if dense[i, j] != -1:
                    column = confusion[j, :, np.searchsorted(classes, dense[i, j])]
                    log_T[i] += np.log(np.maximum(column, 1e-300))
        history.append(float(logsumexp(log_T, axis=1).sum()))
        T = np.exp(log_T - logsumexp(log_T, axis=1, keepdims=True))
    return T, confusion, priors, history


def test_reference_dawid_skene() -> None:
    with pytest.warns(ConvergenceWarning, match="stopped after 20 iterations"):
        model = DawidSkene(max_iter=20, tol=0, smoothing=0).fit(DENSE)
    np.testing.assert_allclose(model.probas_[:, 1], [0.001128, 1, 0, 0.999958, 0.002252], atol=1e-6)
    assert model.log_likelihood_ == pytest.approx(-6.662043020755462, abs=1e-11)
    np.testing.assert_allclose(model.priors_, [0.599112, 0.400888], atol=1e-6)
    first = DawidSkene(max_iter=1, smoothing=0).fit(DENSE)
    np.testing.assert_allclose(first.probas_[:, 1], [0.242718, 1, 0, 0.806452, 0.390625], atol=1e-6)
    assert first.log_likelihood_ == pytest.approx(-7.041752012077088, abs=1e-12)
    np.testing.assert_allclose(first.priors_, [0.5, 0.5], atol=1e-15)


@settings(deadline=None, max_examples=40)
@given(crowds(), st.sampled_from([0.0, 0.01, 1.0]), st.integers(1, 6))
@example(np.array([[0, 0], [1, -1]]), 0.0, 2)  # a confusion row whose counts are all but zero
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_em_agrees_with_loops(dense: np.ndarray, eta: float, n_iter: int) -> None:
    model = DawidSkene(max_iter=n_iter, tol=0, smoothing=eta).fit(dense)
    if model.n_iter_ < n_iter:
        return  # a fixed point to the last bit
    T, confusion, priors, history = reference_em(dense, n_iter, eta)
    np.testing.assert_allclose(model.probas_, T, atol=1e-9)
    np.testing.assert_allclose(model.worker_confusion_, confusion, atol=1e-9)
    np.testing.assert_allclose(model.priors_, priors, atol=1e-9)
    np.testing.assert_allclose(model.log_likelihoods_, history, rtol=1e-9)
    if eta == 0:
        assert (np.diff(model.log_likelihoods_) >= -1e-9).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_products_below_the_smallest_float_are_formed_from_logarithms() -> None:
    """1500 guesses a task: each class's probability is about 3^-1500, which is 0 as a product."""
    dense = np.random.default_rng(0).integers(3, size=(4, 1500))
    model = DawidSkene(max_iter=2, tol=0, smoothing=0.5).fit(dense, form="dense")
    T, confusion, _, history = reference_em(dense, 2, 0.5)
    assert model.log_likelihood_ < -4000
    np.testing.assert_allclose(model.log_likelihoods_, history, rtol=1e-12)
    np.testing.assert_allclose(model.probas_, T, atol=1e-9)
    np.testing.assert_allclose(model.worker_confusion_, confusion, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(crowds(), st.integers(0, 10**6))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_order_of_tasks_and_workers_does_not_matter(dense: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(dense)), rng.permutation(dense.shape[1])
    shuffled = long(dense).sample(frac=1, random_state=seed)
    for model in AGGREGATORS:
        plain = clone(model).fit(dense, form="dense")
        moved = clone(model).fit(dense[rows][:, columns], form="dense")
        np.testing.assert_allclose(moved.probas_, plain.probas_[rows], atol=1e-8)
        if hasattr(plain, "worker_accuracy_"):
            np.testing.assert_allclose(
                moved.worker_accuracy_, plain.worker_accuracy_[columns], atol=1e-8
            )
        # A missing vote is a row that isn't there, in whatever order.
        table = clone(model).fit(shuffled)
        np.testing.assert_allclose(table.probas_, plain.probas_, atol=1e-8)


def test_forms_agree() -> None:
    names = np.array(["no", "yes"])
    counts = np.array([[(row == k).sum() for k in (0, 1)] for row in DENSE])
    with_nan = np.where(DENSE == -1, np.nan, DENSE)
    as_text = np.where(DENSE == -1, None, names[DENSE])
    table = long(DENSE).assign(
        label=lambda t: names[t["label"]], worker=lambda t: "w" + t["worker"].astype(str)
    )
    for model in AGGREGATORS:
        plain = clone(model).fit(DENSE)
        for other in (with_nan, as_text, table, pl.from_pandas(table)):
            np.testing.assert_array_equal(clone(model).fit(other).probas_, plain.probas_)
        np.testing.assert_array_equal(clone(model).fit(table).labels_, names[plain.labels_])
    for model in AGGREGATORS[:2]:
        plain = clone(model).fit(DENSE)
        np.testing.assert_array_equal(
            clone(model).fit(counts, form="counts").probas_, plain.probas_
        )
        named = clone(model).fit(pd.DataFrame(counts, columns=names))
        np.testing.assert_array_equal(named.labels_, names[plain.labels_])
        np.testing.assert_array_equal(named.classes_, names)
    assert clone(AGGREGATORS[0]).fit(with_nan).classes_.dtype.kind == "i"


def test_shares_and_their_prior() -> None:
    counts = np.array([[8, 2], [1, 4]])
    model = VoteShare(smoothing=3, prior="class").fit(counts)
    np.testing.assert_allclose(model.probas_, (counts + 3 * np.array([9, 6]) / 15) / [[13], [8]])
    uniform = VoteShare(smoothing=2).fit(counts)
    np.testing.assert_allclose(uniform.probas_, (counts + 1) / [[12], [7]])
    draws = uniform.sample(20_000, random_state=0)
    # Mean and variance of Dir(9, 3) and Dir(2, 5); four standard errors are below 0.005.
    np.testing.assert_allclose(draws.mean(axis=0), uniform.probas_, atol=0.005)
    variance = uniform.probas_ * (1 - uniform.probas_) / ([[13], [8]])
    np.testing.assert_allclose(draws.var(axis=0), variance, atol=0.002)
    with pytest.raises(ValueError, match="smoothing > 0"):
        VoteShare().fit([[3, 0], [1, 5]]).sample()


def test_ties_of_majorities() -> None:
    counts = np.array([[3, 3, 0], [0, 5, 1], [2, 2, 2]])
    first = MajorityVote().fit(counts, form="counts")
    np.testing.assert_array_equal(first.labels_, [0, 1, 0])
    assert first.n_ties_ == 2
    kept = MajorityVote("keep").fit(counts, form="counts")
    np.testing.assert_allclose(kept.probas_, [[0.5, 0.5, 0], [0, 1, 0], [1 / 3] * 3])
    many = MajorityVote("random", random_state=0).fit(np.tile([3, 3, 0], (4000, 1)), form="counts")
    assert abs((many.labels_ == 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(4000)
    again = MajorityVote("random", random_state=0).fit(np.tile([3, 3, 0], (4000, 1)), form="counts")
    np.testing.assert_array_equal(many.labels_, again.labels_)


def test_wawa_by_hand() -> None:
    dense = np.array([[0, 0, 1], [1, 1, 0], [0, 0, -1], [1, -1, 0]])
    model = WAWA().fit(dense)
    np.testing.assert_allclose(model.worker_accuracy_, [0.75, 1, 1 / 3])
    weight = 0.75, 1, 1 / 3
    assert model.probas_[0, 0] == pytest.approx((weight[0] + weight[1]) / sum(weight))
    assert model.probas_[3, 1] == pytest.approx(weight[0] / (weight[0] + weight[2]))
    opposed = WAWA().fit(np.array([[0, 0, 1, -1], [0, 0, -1, 1], [1, 1, -1, -1]]))
    np.testing.assert_allclose(opposed.worker_accuracy_, [1, 1, 0, 0])


def test_reliable_workers_are_found() -> None:
    truth = np.random.default_rng(0).integers(4, size=600)
    made = simulate_annotators(
        np.eye(4)[truth], 15, 5, skill=(0.5, 0.95), spammer_fraction=0.3, random_state=0
    )
    accuracies = {}
    for model in (MajorityVote(), WAWA(), DawidSkene(), DawidSkene(one_coin=True)):
        found = clone(model).fit(made.annotations)
        accuracies[repr(model)] = np.mean(found.labels_ == truth)
        if hasattr(found, "worker_accuracy_"):
            assert np.corrcoef(found.worker_accuracy_, made.worker_skill)[0, 1] > 0.9
    assert accuracies["DawidSkene()"] > accuracies["MajorityVote()"] + 0.01
    full = DawidSkene().fit(made.annotations)
    assert np.abs(full.worker_confusion_ - made.worker_confusion).mean() < 0.05


def test_perfect_workers_leave_no_doubt() -> None:
    truth = np.arange(12) % 3
    dense = np.tile(truth[:, None], (1, 4))
    model = DawidSkene(smoothing=0).fit(dense, form="dense")
    np.testing.assert_array_equal(model.probas_, np.eye(3)[truth])
    np.testing.assert_allclose(model.worker_accuracy_, 1)


def test_a_worker_who_says_nothing_of_a_class_is_uniform_there() -> None:
    dense = np.array([[0, 0, 0], [1, 1, -1], [0, 0, 0], [1, 1, -1]])
    model = DawidSkene(smoothing=0).fit(dense)
    np.testing.assert_allclose(model.worker_confusion_[2], [[1, 0], [0.5, 0.5]])


def test_missing_tasks() -> None:
    dense = np.array([[0, 1, 0], [-1, -1, -1], [1, 1, 0]])
    for model in AGGREGATORS:
        with pytest.raises(ValueError, match="task 1 has no vote"):
            clone(model).fit(dense)
        kept = clone(model).set_params(on_missing="uniform").fit(dense)
        np.testing.assert_allclose(kept.probas_[1], [0.5, 0.5])
        dropped = clone(model).set_params(on_missing="drop").fit(dense)
        np.testing.assert_array_equal(dropped.tasks_, [0, 2])
        np.testing.assert_allclose(dropped.probas_, kept.probas_[[0, 2]], atol=1e-12)


def test_counts_are_refused_where_workers_matter() -> None:
    counts = np.array([[8, 1, 1], [4, 5, 1], [3, 3, 4]])
    for model in (DawidSkene(), WAWA()):
        for votes, form in ((counts, "auto"), (counts, "counts"), (pd.DataFrame(counts), "auto")):
            with pytest.raises(ValueError, match="who voted what is needed"):
                clone(model).fit(votes, form=form)
    assert VoteShare().fit(counts).probas_[0, 0] == 0.8


@pytest.mark.parametrize(
    ("annotations", "form", "message"),
    [
        ([[0, 1], [1, 1]], "auto", "say form='dense' or"),
        ([[0, 1], [1, 1]], "wide", "form='wide'"),
        ([0, 1], "auto", r"shape \(2,\)"),
        ([[0, -1], [0, 0]], "auto", "one class only"),
        ([[-1, -1], [-1, -1]], "auto", "no vote"),
        ([[0.5, 0.5], [0.2, 0.8]], "counts", "probabilities"),
        (pd.DataFrame({"task": [0], "worker": [None], "label": [1]}), "auto", "no worker in row 0"),
        (pd.DataFrame({"task": [], "worker": [], "label": []}), "auto", "no vote"),
    ],
)
def test_errors_say_what_is_wrong(annotations: object, form: str, message: str) -> None:
    model = VoteShare().fit([[8, 2], [1, 4]])
    with pytest.raises(ValueError, match=message):
        model.fit(annotations, form=form)
    np.testing.assert_array_equal(model.labels_, [0, 1])


@pytest.mark.parametrize("model", AGGREGATORS, ids=lambda m: repr(m))
def test_explanation(model: object) -> None:
    with pytest.raises(NotFittedError):
        clone(model).explain()
    found = pickle.loads(pickle.dumps(clone(model).fit(DENSE)))
    answer = found.explain()
    frame = answer.to_frame()
    assert frame["n_votes"].tolist() == [3, 3, 3, 3, 2]
    np.testing.assert_array_equal(frame["label"], found.labels_)
    assert answer.plot("certainty").get_xlabel() == "probability of the label"
    assert {"opinion": "opinions", "posterior": "one true class"}[found.soft_kind_] in str(answer)
    if hasattr(found, "worker_accuracy_"):
        assert len(answer.plot("workers").lines[0].get_ydata()) == 3
    np.testing.assert_array_equal(clone(model).fit_predict(DENSE), found.labels_)
    np.testing.assert_array_equal(clone(model).fit_predict_proba(DENSE), found.probas_)


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_crowd_kit() -> None:
    crowdkit = pytest.importorskip("crowdkit.aggregation", reason="crowd-kit isn't installed")
    made = simulate_annotators(
        np.random.default_rng(1).dirichlet(np.ones(3), 200), 12, 5, random_state=0
    )
    table = made.annotations
    ours = DawidSkene(max_iter=10, tol=0, smoothing=0).fit(table)
    theirs = crowdkit.DawidSkene(n_iter=10, tol=0).fit_predict_proba(table)
    np.testing.assert_allclose(ours.probas_, theirs.sort_index()[[0, 1, 2]], atol=1e-6)
