"""
What a Gaussian process knows, and how sure it is of the reasons
================================================================

A Gaussian process predicts with an error bar. Three exact answers follow from its kernel: what each
feature contributes to the mean, how uncertain each of these contributions is, and what each feature
contributes to the predictive variance.
"""

# %%
# A process on a curved surface, with an idle feature
# ---------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from equipoise.explainers import PKeXShapleyExplainer
from equipoise.plotting import COLORS

names = ["temperature", "pressure", "stirring", "operator"]
generator = np.random.default_rng(3)
X = generator.uniform(-2, 2, size=(80, 4))
y = 2 * np.sin(1.5 * X[:, 0]) + X[:, 1] ** 2 / 2 + X[:, 0] * X[:, 2]
y += 0.2 * generator.normal(size=80)
kernel = ConstantKernel(4.0) * RBF(np.ones(4)) + WhiteKernel(0.1)
model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(X, y)
print(model.kernel_)

# %%
# Two experiments: one within the data, one at their edge
# -------------------------------------------------------
# The contributions against a reference setting (all zeros) are jointly Gaussian under the process.
# ``with_std`` gives their standard deviations, from the closed form of their covariance.

settings = np.array([[0.8, -0.5, 0.6, 0.0], [1.9, 2.4, -1.9, 2.0]])
explainer = PKeXShapleyExplainer(model, removal="baseline", reference=np.zeros(4)).fit()
explanation = explainer.explain(settings, with_std=True)
for row, values, errors in zip(settings, explanation.values, explanation.error_std, strict=True):
    print(row, [f"{v:+.2f} +- {e:.2f}" for v, e in zip(values, errors, strict=True)])

# %%
# And the variance itself
# -----------------------
# With the identity removal the predictive variance is a product game too. Its attributions sum,
# with the base value, to the variance that the model predicts. The base value, no variance itself,
# cancels in a comparison: which features make the setting at the edge the less certain one?

identity = PKeXShapleyExplainer(model).fit()
variance = identity.explain_variance(settings)
total = variance.base_values + variance.values.sum(axis=1)
print("predicted variance:", total.round(3), "base value:", variance.base_values.round(3))

fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
places = np.arange(4)
for k, label in enumerate(("within the data", "at the edge")):
    shift = (k - 0.5) * 0.36
    axes[0].barh(
        places + shift, explanation.values[k], 0.34, xerr=2 * explanation.error_std[k],
        color=COLORS[k], label=label, error_kw={"elinewidth": 1, "capsize": 3},
    )  # fmt: skip
axes[0].set(title="contribution to the mean, with 2 sd", xlabel="against the reference setting")
difference = variance.values[1] - variance.values[0]
axes[1].barh(places, difference, 0.5, color=np.where(difference > 0, COLORS[1], COLORS[0]))
axes[1].set(title="variance at the edge minus within", xlabel="contribution")
for ax in axes:
    ax.set_yticks(places, names)
    ax.axvline(0, color="black", lw=0.8)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend()
plt.show()
