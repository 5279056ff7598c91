"""Kernel machines against other packages, shapiq and lightshap; and peak memory.

shapiq's newest release may need another Python than ours: the variable EQUIPOISE_SHAPIQ_PYTHON names
an interpreter that has it. The model is fitted there again, on the same rows. Its cost grows with
the cube of the number of features, so that it is measured up to 200; at 300 features a row takes
minutes, at 1000 hours.
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

from equipoise.explainers import PKeXShapleyExplainer

SHAPIQ = """
import os, pickle, sys
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # whatever else prints
import numpy as np
from importlib.metadata import version
from shapiq.explainer.product_kernel import ProductKernelExplainer
from sklearn.svm import SVR
X, y = pickle.load(sys.stdin.buffer)
explainer = ProductKernelExplainer(
    model=SVR(epsilon=0.0, C=1.0).fit(X, y), max_order=1, index="SV"
)
pickle.dump(version("shapiq"), answers)
answers.flush()
while True:
    try:
        rows = pickle.load(sys.stdin.buffer)
    except EOFError:  # nobody asks any more
        break
    found = [explainer.explain(x) for x in rows]
    pickle.dump([[float(v[(j,)]) for j in range(X.shape[1])] for v in found], answers)
    answers.flush()
"""


def training_set(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """300 rows, all of which become support vectors."""
    generator = np.random.RandomState(0)
    X = generator.normal(size=(300, n_features))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + generator.normal(size=300)


def shapiq_worker(X: np.ndarray, y: np.ndarray) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """Start shapiq's interpreter; return its version, and a function that explains rows there."""
    python = os.environ.get("EQUIPOISE_SHAPIQ_PYTHON", sys.executable)
    worker = subprocess.Popen([python, "-c", SHAPIQ], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin is not None and worker.stdout is not None
    send, receive = worker.stdin, worker.stdout

    def ask(question: Any) -> Any:
        pickle.dump(question, send)
        send.flush()
        return pickle.load(receive)

    return ask((X, y)), lambda rows: np.array(ask(rows))


def shapiq_cases() -> Iterator[dict[str, Any]]:
    if find_spec("shapiq") is None and "EQUIPOISE_SHAPIQ_PYTHON" not in os.environ:
        print("shapiq isn't installed: its cases are left out")
        return
    for d, rows, repeats in ((10, 16, 3), (30, 4, 3), (100, 1, 1), (200, 1, 1)):
        X, y = training_set(d)
        version, peer = shapiq_worker(X, y)
        ours = PKeXShapleyExplainer(SVR(epsilon=0.0, C=1.0).fit(X, y)).fit()
        yield {
            "name": f"identity, d={d}, 300 support vectors, {rows} rows: shapiq {version}",
            "ours": lambda ours=ours, X=X, rows=rows: ours.shap_values(X[:rows]),
            "peer": lambda peer=peer, X=X, rows=rows: peer(X[:rows]),
            "tolerance": 1e-6,  # shapiq's own rounding grows with d
            "repeats": repeats,
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


MEMORY = """
import sys
from pathlib import Path
import numpy as np
from sklearn.svm import SVR
from equipoise.explainers import PKeXShapleyExplainer

def mebibytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024

n_rows, n_support = int(sys.argv[1]), int(sys.argv[2])
X = np.random.RandomState(0).normal(size=(n_support, 200))
explainer = PKeXShapleyExplainer(
    SVR(epsilon=0.0).fit(X, X[:, 0]), removal=sys.argv[3], working_memory=32,
    reference=None if sys.argv[3] == "identity" else X[:100],
).fit()
rows = np.random.RandomState(1).normal(size=(n_rows, 200))
explainer.explain(rows[:1])
Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
before = mebibytes("VmRSS")
explainer.explain(rows)
print(mebibytes("VmHWM") - before)
"""


def memory_cases() -> Iterator[dict[str, Any]]:
    """How much the peak of resident memory grows while rows are explained, in a process each."""
    if not os.path.exists("/proc/self/clear_refs"):
        print("peak memory is measured on Linux alone: its cases are left out")
        return
    for removal, n_rows, n_support in (
        ("identity", 500, 500),
        ("identity", 2000, 500),
        ("identity", 500, 2000),
        ("interventional", 20, 500),
    ):
        arguments = [str(n_rows), str(n_support), removal]
        run = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-c", MEMORY, *arguments],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        yield {
            "name": (
                f"{removal}, d=200, {n_rows} rows, {n_support} support vectors, working_memory=32: "
                f"peak memory grows by {float(run.stdout):.0f} MiB (allowed 96)"
            ),
            "ours": lambda run=run: float(run.stdout),
            "repeats": 1,
        }


def cases() -> Iterator[dict[str, Any]]:
    yield from memory_cases()
    yield from lightshap_cases()
    yield from shapiq_cases()
