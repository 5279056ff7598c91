"""Soft labels against hand-written loops, netcal, torchmetrics, crowd-kit, cleanlab, scikit-learn.

Peers that aren't installed are left out. All run on one thread.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from torch import nn

from equipoise.datasets import inject_mode_shift, make_ambiguous_digits, simulate_annotators
from equipoise.estimators import SoftLabelClassifier
from equipoise.explainers import (
    DatasetCartography,
    DawidSkene,
    MajorityVote,
    calibration_error,
    soft_cross_entropy,
)
from equipoise.explainers.soft_labels.audit_effects import metric_values
from equipoise.explainers.soft_labels.audit_metrics import choose_metrics

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def images(n: int = 5000, D: int = 784, K: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and vote shares of the size of Fashion-MNIST-H's half."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, D)).astype(np.float32)
    logits = X[:, :20] @ rng.normal(size=(20, K))
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return X, P / P.sum(axis=1, keepdims=True)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def loop_by_hand(X: np.ndarray, P: np.ndarray, epochs: int, batch_size: int) -> np.ndarray:
    """The plain torch loop, with the batches that the classifier draws for seed 0."""
    seed = np.random.RandomState(0).randint(2**31 - 1, size=2)[0]
    rng = np.random.RandomState(seed)
    module = network()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=1e-4)
    inputs, targets = torch.from_numpy(X), torch.from_numpy(P.astype(np.float32))
    for _ in range(epochs):
        order = torch.from_numpy(rng.permutation(len(X)))
        for start in range(0, len(X), batch_size):
            rows = order[start : start + batch_size]
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(inputs[rows]), targets[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        return torch.softmax(module(inputs).double(), dim=1).numpy()


def training_cases() -> Iterator[dict[str, Any]]:
    X, P = images()
    base = SoftLabelClassifier(
        network(), standardize=False, max_epochs=10, batch_size=128, random_state=0
    )
    yield {
        "name": "training 784-256-10, n 5000, batch 128, 10 epochs vs torch loop",
        "ours": lambda: base.fit(X, P).predict_proba(X),
        "peer": lambda: loop_by_hand(X, P, 10, 128),
        "tolerance": 1e-4,
        "repeats": 9,
    }
    tracked = clone(base).set_params(track_dynamics=True)
    yield {
        "name": "the same with cartography vs without (target: one forward pass an epoch)",
        "ours": lambda: tracked.fit(X, P).predict_proba(X),
        "peer": lambda: base.fit(X, P).predict_proba(X),
        "tolerance": 1e-12,
        "repeats": 5,
    }


def sparse_case() -> Iterator[dict[str, Any]]:
    """5000 classes, three of them with votes on each item."""
    rng = np.random.default_rng(0)
    n, K = 2000, 5000
    X = rng.normal(size=(n, 32)).astype(np.float32)
    rows, columns = np.repeat(np.arange(n), 3), rng.integers(K, size=3 * n)
    votes = csr_array((np.ones(3 * n), (rows, columns)), shape=(n, K))
    model = SoftLabelClassifier(hidden_layer_sizes=(16,), max_epochs=2, random_state=0)
    dense = votes.toarray()
    yield {
        "name": f"training on {n} x {K} sparse votes vs dense ones",
        "ours": lambda: model.fit(X, votes).predict_proba(X[:100]),
        "peer": lambda: model.fit(X, dense).predict_proba(X[:100]),
        "tolerance": 1e-6,
        "repeats": 3,
    }


def replication_case() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 50))
    P = np.exp(X @ rng.normal(size=(50, 5)))
    P = np.where(P / P.sum(axis=1, keepdims=True) < 0.05, 0, P)
    P /= P.sum(axis=1, keepdims=True)
    soft = SoftLabelClassifier(LogisticRegression(max_iter=60, tol=1e-12))
    rows, columns = np.nonzero(P)

    def by_hand() -> np.ndarray:
        model = LogisticRegression(max_iter=60, tol=1e-12)
        return model.fit(X[rows], columns, sample_weight=P[rows, columns]).predict_proba(X)

    hard = LogisticRegression(max_iter=60, tol=1e-12)
    limit = 1.2 * len(rows) / len(X)
    yield {
        "name": f"the fit to {len(rows)} copies vs the hard fit (target: at most {limit:.2f} times)",
        "ours": lambda: soft.fit(X, P).estimator_.coef_,
        "peer": lambda: hard.fit(X, P.argmax(axis=1)).coef_,
        "exact": False,
    }
    yield {
        "name": f"logistic regression on {len(rows)} copies of 4000 rows vs replicated by hand",
        "ours": lambda: soft.fit(X, P).predict_proba(X),
        "peer": by_hand,
        "tolerance": 1e-10,
    }


def soft_gradient_case() -> Iterator[dict[str, Any]]:
    """Replication against minimising the soft objective directly."""
    from scipy.optimize import minimize
    from scipy.special import log_softmax, softmax

    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 20))
    P = softmax(X @ rng.normal(size=(20, 4)), axis=1)
    soft = SoftLabelClassifier(LogisticRegression(max_iter=1000, tol=1e-9))

    def direct() -> np.ndarray:
        def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
            W = theta.reshape(21, 4)
            log_f = log_softmax(X @ W[:20] + W[20], axis=1)
            residual = np.exp(log_f) - P
            gradient = np.vstack([X.T @ residual + W[:20], residual.sum(axis=0)])
            return -(P * log_f).sum() + (W[:20] ** 2).sum() / 2, gradient.ravel()

        options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
        W = minimize(objective, np.zeros(84), jac=True, method="L-BFGS-B", options=options).x
        return softmax(X @ W.reshape(21, 4)[:20] + W.reshape(21, 4)[20], axis=1)

    yield {
        "name": "logistic regression on 2000 x 20 soft labels vs direct minimisation",
        "ours": lambda: soft.fit(X, P).predict_proba(X),
        "peer": direct,
        "tolerance": 1e-5,
    }


def calibration_cases() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(10), 1_000_000)
    y = rng.integers(10, size=len(proba))
    if find_spec("netcal"):
        from netcal.metrics import ECE

        yield {
            "name": "calibration_error 1e6 x 10 vs netcal",
            "ours": lambda: calibration_error(y, proba),
            "peer": lambda: ECE(15).measure(proba, y),
            "tolerance": 1e-12,
            "repeats": 3,
        }
    if find_spec("torchmetrics"):
        from torchmetrics.functional.classification import multiclass_calibration_error

        tensors = torch.from_numpy(proba), torch.from_numpy(y)
        yield {
            "name": "calibration_error 1e6 x 10 vs torchmetrics (float32)",
            "ours": lambda: calibration_error(y, proba, closed="right"),
            "peer": lambda: float(multiclass_calibration_error(*tensors, 10, n_bins=15)),
            "tolerance": 1e-4,
            "repeats": 3,
        }
    soft = rng.dirichlet(np.ones(10), len(proba))
    yield {
        "name": "soft calibration_error 1e6 x 10",
        "ours": lambda: calibration_error(soft, proba),
        "repeats": 3,
    }
    small, labels = proba[:10_000], np.eye(10)[y[:10_000]]
    ece = {"mode": choose_metrics(("ece",))}
    everything = {"all": np.ones(len(small), dtype=bool)}

    def ours() -> np.ndarray:
        _, draws = metric_values(
            small[None, None],
            {"mode": labels},
            None,
            everything,
            ece,
            2000,
            np.random.RandomState(0),
        )
        return np.quantile(draws["all", "mode", "ece"], [0.025, 0.975])

    def one_by_one() -> np.ndarray:
        generator = np.random.default_rng(0)
        hard = y[:10_000]
        draws = []
        for _ in range(2000):
            rows = generator.integers(10_000, size=10_000)
            draws.append(calibration_error(hard[rows], small[rows]))
        return np.quantile(draws, [0.025, 0.975])

    yield {
        "name": "2000 bootstrap calibration errors of 1e4 items vs one by one",
        "ours": ours,
        "peer": one_by_one,
        "tolerance": 0.02,
        "repeats": 1,
    }


def cleanlab_cases() -> Iterator[dict[str, Any]]:
    """Wrong labels beside the votes of 30 workers, five an item: who finds them, who is reliable?

    The distance is that of the average precision in finding the 8 % of wrong labels, and of the
    rank correlation with the workers' true skill.
    """
    from cleanlab.multiannotator import get_label_quality_multiannotator
    from scipy.stats import spearmanr
    from sklearn.metrics import average_precision_score

    digits = make_ambiguous_digits(3000, ambiguity=0.3, random_state=0)
    votes = simulate_annotators(digits.posterior, 30, 5, skill=(0.4, 0.98), random_state=0)
    truth = digits.posterior.argmax(axis=1)
    y = inject_mode_shift(truth, digits.posterior, 0.08, random_state=0)
    model = LogisticRegression(max_iter=500)
    F = cross_val_predict(model, digits.data / 16, y, cv=5, method="predict_proba")
    table = votes.annotations
    dense = np.full((3000, 31), np.nan)
    dense[table["task"], table["worker"]] = table["label"]
    dense[:, 30] = y  # for cleanlab the given label is one more annotator's

    def suspected() -> float:
        mapped = DatasetCartography.from_probabilities(F[None], y, votes.counts)
        return average_precision_score(y != truth, mapped.suspicion_)

    def low_quality() -> float:
        found = get_label_quality_multiannotator(dense, F, verbose=False)
        return average_precision_score(y != truth, -found["detailed_label_quality"].iloc[:, 30])

    def skills() -> float:
        model = DawidSkene().fit(dense[:, :30], form="dense")
        return spearmanr(model.worker_accuracy_, votes.worker_skill).statistic

    def qualities() -> float:
        found = get_label_quality_multiannotator(dense[:, :30], F, verbose=False)["annotator_stats"]
        return spearmanr(found["annotator_quality"].sort_index(), votes.worker_skill).statistic

    for name, ours, peer in (
        ("wrong labels among 3000", suspected, low_quality),
        ("skill of 30 workers", skills, qualities),
    ):
        print(f"  {name}: {ours():.3f}, cleanlab {peer():.3f}")
        yield {"name": f"{name} vs cleanlab", "ours": ours, "peer": peer, "tolerance": 0.03}


def crowd(n_tasks: int) -> Any:
    rng = np.random.default_rng(0)
    P = np.eye(10)[rng.integers(10, size=n_tasks)]
    return simulate_annotators(P, 200, 5, random_state=0).annotations


def aggregation_cases() -> Iterator[dict[str, Any]]:
    small = crowd(20_000)
    twenty = DawidSkene(max_iter=20, tol=0, smoothing=0)
    if find_spec("crowdkit"):
        from crowdkit.aggregation import DawidSkene as CrowdKit
        from crowdkit.aggregation import MajorityVote as CrowdKitMajority

        yield {
            "name": "Dawid-Skene 1e5 votes, 20 iterations vs crowd-kit (target 20)",
            "ours": lambda: twenty.fit(small).probas_,
            "peer": lambda: (
                CrowdKit(n_iter=20, tol=0)
                .fit_predict_proba(small)
                .sort_index()[list(range(10))]
                .to_numpy()
            ),
            "tolerance": 1e-6,
            "repeats": 3,
        }
        yield {
            "name": "majority 1e5 votes vs crowd-kit (ties are broken otherwise)",
            "ours": lambda: MajorityVote("keep").fit(small).probas_.max(axis=1),
            "peer": lambda: CrowdKitMajority().fit_predict_proba(small).max(axis=1).to_numpy(),
            "exact": False,
            "repeats": 3,
        }
    if find_spec("cleanlab"):
        from cleanlab.multiannotator import get_majority_vote_label

        # Five votes on two classes: no ties, which cleanlab breaks by class frequencies.
        rng = np.random.default_rng(0)
        two = np.eye(2)[rng.integers(2, size=20_000)]
        pairs = simulate_annotators(two, 50, 5, random_state=0).annotations
        dense = pairs.pivot(index="task", columns="worker", values="label").to_numpy()
        yield {
            "name": "majority of 20,000 x 50 dense votes vs cleanlab",
            "ours": lambda: MajorityVote().fit(dense, form="dense").labels_,
            "peer": lambda: get_majority_vote_label(dense, verbose=False),
            "tolerance": 0,
            "repeats": 3,
        }
    large = crowd(200_000)
    times: dict[int, float] = {}

    def timed(size: int, table: Any) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            start = time.perf_counter()
            found = twenty.fit(table).probas_
            times[size] = time.perf_counter() - start
            return found

        return run

    yield {
        "name": "Dawid-Skene 1e5 votes, 20 iterations",
        "ours": timed(100_000, small),
        "repeats": 3,
    }
    yield {
        "name": "Dawid-Skene 1e6 votes, 20 iterations (target 4 s)",
        "ours": timed(1_000_000, large),
        "repeats": 3,
    }
    exponent = np.log10(times[1_000_000] / times[100_000])
    print(f"  time grows with votes to the power {exponent:.2f} (target 1.05)")


def alignment_case() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    P, F = rng.dirichlet(np.ones(10), 200_000), rng.dirichlet(np.ones(10), 200_000)
    tensors = torch.from_numpy(P), torch.from_numpy(F)
    yield {
        "name": "soft cross-entropy 2e5 x 10 vs torch",
        "ours": lambda: soft_cross_entropy(P, F),
        "peer": lambda: float(-(tensors[0] * tensors[1].log()).sum(dim=1).mean()),
        "tolerance": 1e-12,
    }


def cases() -> Iterator[dict[str, Any]]:
    yield from training_cases()
    yield from sparse_case()
    yield from replication_case()
    yield from soft_gradient_case()
    yield from calibration_cases()
    yield from alignment_case()
    yield from aggregation_cases()
    if find_spec("cleanlab"):
        yield from cleanlab_cases()
