"""
Exact attributions against sampled ones
=======================================

Kernel SHAP samples coalitions of features; with more samples it comes closer. For a support vector
machine the value that it approaches can be computed exactly. How long does each take, and how far
off is the sampled answer when one stops?
"""

# %%
# The model and the question
# --------------------------
# A support vector machine on 30 measurements of tumours. Absent features take the values of 50
# background patients; both methods answer the same question.

import time

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from equipoise.explainers import PKeXShapleyExplainer
from equipoise.plotting import COLORS, new_axes

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = SVC().fit(X, y)
background, patient = X[:50], X[100:101]

explainer = PKeXShapleyExplainer(model, removal="interventional", reference=background).fit()
explainer.explain(patient)  # compiles
start = time.perf_counter()
exact = explainer.explain(patient)
exact_seconds = time.perf_counter() - start
print(f"exact: {1e3 * exact_seconds:.1f} ms, error at most {exact.error_bound:.1e}")

# %%
# Sampling, with more and more coalitions
# ---------------------------------------

sampler = shap.KernelExplainer(model.decision_function, background)
budgets = [125, 250, 500, 1000, 2000]
errors, seconds = [], []
for budget in budgets:
    np.random.seed(0)  # noqa: NPY002 - Kernel SHAP draws from NumPy's global generator
    start = time.perf_counter()
    sampled = sampler.shap_values(patient, nsamples=budget, l1_reg=0, silent=True)
    seconds.append(time.perf_counter() - start)
    errors.append(np.abs(sampled - exact.values).max() / np.abs(exact.values).max())
    print(
        f"{budget} coalitions: {1e3 * seconds[-1]:.0f} ms, largest error {100 * errors[-1]:.2f} %"
    )

# %%
# Error and time
# --------------
# The sampled answer improves with about the square root of the time; the exact one is there at
# once, down to rounding.

ax = new_axes()
ax.plot(seconds, errors, "o-", color=COLORS[0], label="Kernel SHAP")
for second, error, budget in zip(seconds, errors, budgets, strict=True):
    ax.annotate(f"{budget}", (second, error), xytext=(4, 5), textcoords="offset points")
total = explainer.expected_value + exact.values.sum()
rounding = abs(total - model.decision_function(patient)[0]) / np.abs(exact.values).max()
ax.plot(exact_seconds, max(rounding, 1e-16), "*", color=COLORS[1], ms=14, label="exact")
ax.set(
    xscale="log", yscale="log", xlabel="seconds for one patient",
    ylabel="largest error, relative to the largest value",
    title="30 features, 50 background rows",
)  # fmt: skip
ax.legend()
plt.show()
