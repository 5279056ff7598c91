"""Kernel machines and kernel statistics against other packages; and peak memory.

Peers that want another environment run in one: the variables EQUIPOISE_SHAPIQ_PYTHON (shapiq's newest
release may need another Python than ours) and EQUIPOISE_ALIBI_PYTHON (alibi-detect and fastshap need
numpy 1) name interpreters that have them. Models are fitted there again, on the same rows.

shapiq's cost grows with the cube of the number of features: at 300 features a row takes a quarter of
a minute, at 1000 ten, so that it is measured up to 300.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.svm import SVR

from equipoise.explainers import (
    HSICShapleyExplainer,
    MMDShapleyExplainer,
    PKeXShapleyExplainer,
)

#: A peer's process: it prepares from the first question, and answers all later ones.
SERVE = """
import os, pickle, sys
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # whatever else prints
def serve(prepare):
    version, answer = prepare(*pickle.load(sys.stdin.buffer))
    pickle.dump(version, answers)
    answers.flush()
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)
        except EOFError:  # nobody asks any more
            break
        pickle.dump(answer(question), answers)
        answers.flush()
import numpy as np
from importlib.metadata import version
from sklearn.svm import SVR
"""

SHAPIQ = """
from shapiq.explainer.product_kernel import ProductKernelExplainer
def prepare(X, y):
    explainer = ProductKernelExplainer(
        model=SVR(epsilon=0.0, C=1.0).fit(X, y), max_order=1, index="SV"
    )
    def answer(rows):
        found = [explainer.explain(x) for x in rows]
        return [[float(v[(j,)]) for j in range(X.shape[1])] for v in found]
    return version("shapiq"), answer
serve(prepare)
"""

ALIBI = """
import torch
from alibi_detect.cd import MMDDrift
torch.set_num_threads(1)
def prepare(X, gamma, n_permutations):
    detector = MMDDrift(
        X.astype(np.float32), backend="pytorch", device="cpu", n_permutations=n_permutations,
        sigma=np.array([(2 * gamma) ** -0.5], dtype=np.float32), configure_kernel_from_x_ref=False,
    )
    def answer(Y):
        return [float(detector.predict(Y.astype(np.float32))["data"]["distance"])]
    return version("alibi-detect"), answer
serve(prepare)
"""

FASTSHAP = """
from fastshap import KernelExplainer
def prepare(X, y, n_background):
    model = SVR(epsilon=0.0).fit(X, y)
    explainer = KernelExplainer(model.predict, X[:n_background])
    def answer(row):
        values = explainer.calculate_shap_values(row, verbose=False)
        return np.asarray(values)[..., :-1].reshape(1, -1).tolist()  # the last is the base value
    return version("fastshap"), answer
serve(prepare)
"""


def training_set(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """300 rows, all of which become support vectors."""
    generator = np.random.RandomState(0)
    X = generator.normal(size=(300, n_features))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + generator.normal(size=300)


def peer_process(
    python: str, script: str, *arguments: Any
) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """Start a peer's interpreter; return its version, and a function that asks it."""
    command = [python, "-W", "ignore", "-c", SERVE + script]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin is not None and worker.stdout is not None
    send, receive = worker.stdin, worker.stdout

    def ask(question: Any) -> Any:
        pickle.dump(question, send)
        send.flush()
        return pickle.load(receive)

    return ask(arguments), lambda rows: np.array(ask(rows))


def shapiq_cases() -> Iterator[dict[str, Any]]:
    if find_spec("shapiq") is None and "EQUIPOISE_SHAPIQ_PYTHON" not in os.environ:
        print("shapiq isn't installed: its cases are left out")
        return
    python = os.environ.get("EQUIPOISE_SHAPIQ_PYTHON", sys.executable)
    for d, rows, repeats in (
        (10, 64, 3),
        (20, 64, 3),
        (30, 16, 3),
        (100, 4, 1),
        (200, 1, 1),
        (300, 1, 1),
    ):
        X, y = training_set(d)
        version, peer = peer_process(python, SHAPIQ, X, y)
        ours = PKeXShapleyExplainer(SVR(epsilon=0.0, C=1.0).fit(X, y)).fit()
        yield {
            "name": f"identity, d={d}, 300 support vectors, rows: {rows}; shapiq {version}",
            "ours": lambda ours=ours, X=X, rows=rows: ours.shap_values(X[:rows]),
            "peer": lambda peer=peer, X=X, rows=rows: peer(X[:rows]),
            "repeats": repeats,
        }


def drift_cases() -> Iterator[dict[str, Any]]:
    """Tests of the whole statistic alone; ours also have a p-value for each feature."""
    generator = np.random.RandomState(0)
    X, Y = generator.normal(size=(2, 250, 20))
    gamma, options = 0.025, {"n_permutations": 999, "random_state": 0}

    def mmd() -> MMDShapleyExplainer:
        return MMDShapleyExplainer(gamma=gamma, **options).fit(X, Y)

    def hsic() -> HSICShapleyExplainer:
        return HSICShapleyExplainer(
            kernel_y="rbf", gamma_x=gamma, gamma_y=gamma, **options
        ).fit(X, Y)  # fmt: skip

    setting = "250 + 250 rows, d=20, 999 permutations"
    if "EQUIPOISE_ALIBI_PYTHON" in os.environ:
        version, peer = peer_process(
            os.environ["EQUIPOISE_ALIBI_PYTHON"], ALIBI, X, gamma, options["n_permutations"]
        )
        yield {
            "name": f"MMD, {setting}: alibi-detect {version} MMDDrift, torch in single precision",
            "ours": lambda: np.array([mmd().statistic_]),
            "peer": lambda: peer(Y),
            "distance": lambda ours, peer: float(abs(ours[0] - peer[0])),
            "tolerance": 1e-6,
            "repeats": 3,
        }
    if find_spec("hyppo") is None:
        print("hyppo isn't installed: its cases are left out")
        return
    from hyppo.independence import Hsic

    test = Hsic(compute_kernel="rbf", gamma=gamma, bias=True)
    yield {
        "name": "HSIC, 250 rows, 20 + 20 features, 999 permutations, p-value: hyppo",
        "ours": lambda: np.array([hsic().pvalue_]),
        "peer": lambda: np.array(
            [test.test(X, Y, reps=999, auto=False, workers=1, random_state=0).pvalue]
        ),
        "exact": False,
        "repeats": 3,
    }


def fastshap_case() -> Iterator[dict[str, Any]]:
    if "EQUIPOISE_ALIBI_PYTHON" not in os.environ:
        print("EQUIPOISE_ALIBI_PYTHON isn't set: alibi-detect and fastshap are left out")
        return
    X, y = training_set(10)
    version, peer = peer_process(os.environ["EQUIPOISE_ALIBI_PYTHON"], FASTSHAP, X, y, 50)
    ours = PKeXShapleyExplainer(
        SVR(epsilon=0.0).fit(X, y), removal="interventional", reference=X[:50]
    ).fit()
    yield {
        "name": f"interventional, d=10, 50 background rows: fastshap {version}, its defaults",
        "ours": lambda: ours.shap_values(X[60:61]),
        "peer": lambda: peer(X[60:61]),
        "exact": False,
        "repeats": 3,
    }


def lightshap_cases() -> Iterator[dict[str, Any]]:
    if find_spec("lightshap") is None:
        print("lightshap isn't installed: its cases are left out")
        return
    from lightshap import explain_any

    for d, method in ((10, "kernel"), (30, "permutation")):
        X, y = training_set(d)
        model, background, row = SVR(epsilon=0.0).fit(X, y), X[:50], X[60:61]
        ours = PKeXShapleyExplainer(model, removal="interventional", reference=background).fit()
        yield {
            "name": f"interventional, d={d}, 50 background rows: lightshap, {method}, its defaults",
            "ours": lambda ours=ours, row=row: ours.shap_values(row),
            "peer": lambda model=model, row=row, background=background, method=method: (
                explain_any(
                    model.predict, row, bg_X=background, method=method, random_state=0,
                    verbose=False,
                ).shap_values
            ),
            "exact": False,
            "repeats": 3,
        }  # fmt: skip


PEAK = """
import sys
from pathlib import Path
import numpy as np
from sklearn.svm import SVR
from equipoise.explainers import MMDShapleyExplainer, PKeXShapleyExplainer

def mebibytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024

def growth(function):
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before = mebibytes("VmRSS")
    function()
    return mebibytes("VmHWM") - before

sizes = [int(size) for size in sys.argv[1:3]]
"""

MACHINE = """
n_rows, n_support = sizes
X = np.random.RandomState(0).normal(size=(n_support, 200))
explainer = PKeXShapleyExplainer(
    SVR(epsilon=0.0).fit(X, X[:, 0]), removal=sys.argv[3], working_memory=32,
    reference=None if sys.argv[3] == "identity" else X[:100],
).fit()
rows = np.random.RandomState(1).normal(size=(n_rows, 200))
explainer.explain(rows[:1])
print(growth(lambda: explainer.explain(rows)))
"""

STATISTIC = """
n, d = sizes
sample = np.random.RandomState(0).normal(size=(n, d))
explainer = MMDShapleyExplainer(gamma=0.5 / d)
explainer.fit(sample[:300], sample[300:600])
print(growth(lambda: explainer.fit(sample[: n // 2], sample[n // 2 :])))
"""


def peak_growth(script: str, *arguments: str | int) -> float:
    """Measure how much the peak of resident memory grows, in MiB, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", PEAK + script, *map(str, arguments)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(run.stdout)


def memory_cases() -> Iterator[dict[str, Any]]:
    if not os.path.exists("/proc/self/clear_refs"):
        print("peak memory is measured on Linux alone: its cases are left out")
        return
    for removal, n_rows, n_support in (
        ("identity", 500, 500),
        ("identity", 2000, 500),
        ("identity", 500, 2000),
        ("interventional", 20, 500),
    ):
        grown = peak_growth(MACHINE, n_rows, n_support, removal)
        yield {
            "name": (
                f"{removal}, d=200, {n_rows} rows, {n_support} support vectors, working_memory=32: "
                f"peak memory grows by {grown:.0f} MiB (allowed 96)"
            ),
            "ours": lambda grown=grown: grown,
            "repeats": 1,
        }
    for n, d in ((10_000, 20), (1000, 1000)):
        grown = peak_growth(STATISTIC, n, d)
        yield {
            "name": f"MMD, {n} rows, d={d}: peak memory grows by {grown:.0f} MiB (allowed 256)",
            "ours": lambda grown=grown: grown,
            "repeats": 1,
        }


def cases() -> Iterator[dict[str, Any]]:
    yield from memory_cases()
    yield from lightshap_cases()
    yield from fastshap_case()
    yield from drift_cases()
    yield from shapiq_cases()
