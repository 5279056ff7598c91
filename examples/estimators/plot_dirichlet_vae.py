r"""
When does a simplex code collapse?
==================================

A beta-VAE with too large a beta ignores its code: every row gets the prior as its posterior. For a Dirichlet code and a
decoder linear in it, the beta at which this state becomes stable is known *before* training:

.. math:: \beta_c = \frac{\lambda_1}{\sigma^2} \, \frac{K\alpha + 1}{K\alpha^2\,\psi'(\alpha)}

with the largest eigenvalue :math:`\lambda_1` of the rows' covariance, K components, and the concentration
:math:`\alpha` of the prior. Here we compute it for the pixels of a photograph, look at what training
finds around it, and then use a beta well below it to unmix the colours.
"""

# %%
# The threshold before any fit
# ----------------------------
# Each pixel is a row of red, green and blue between 0 and 1. The decoder keeps its three pure colours in that range.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from equipoise.estimators import (
    DirichletBetaVAE,
    collapse_path,
    plot_abundance_maps,
    plot_collapse_path,
    plot_simplex,
)

photograph = load_sample_image("flower.jpg")[::10, ::10] / 255.0
shape = photograph.shape[:2]
X = photograph.reshape(-1, 3)
flat = DirichletBetaVAE(3, decoder="box", concentration=1.0, random_state=0)
sparse = DirichletBetaVAE(3, decoder="box", concentration=0.3, random_state=0)
for model in (flat, sparse):
    print(
        f"concentration {model.concentration}: beta_c = {model.collapse_threshold(X):.1f}, certainly "
        f"collapsed from {model.collapse_threshold(X, kind='certificate'):.1f}"
    )

# %%
# Around the threshold
# --------------------
# Upwards, each model starts from the one before; downwards, from the collapsed state. At beta_c the collapsed state
# becomes stable: the downward branch leaves it there, and nowhere else. With a flat prior the two branches nearly
# agree. With a sparse prior a trained code lives on well above the threshold: between the two branches lies a loop of
# hysteresis, and at the dotted line both states are equally good.

ratios = (0.25, 0.5, 0.7, 0.85, 0.95, 1.02, 1.1, 1.2, 1.28, 1.34, 1.4, 1.5)
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained", sharey=True)
for ax, model in zip(axes, (flat, sparse), strict=True):
    path = collapse_path(model, X, ratios, direction="both")
    plot_collapse_path(path, ax=ax)
    ax.set_title(f"concentration {model.concentration}")
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_ylabel("")
plt.show()

# %%
# Which colours is the photograph mixed from?
# -------------------------------------------
# A fiftieth of the threshold keeps the code active; the sparse prior makes the colours pure. The answer says how far
# from collapse the model is.

sparse.set_params(beta_ratio=0.02).fit(X)
Z = sparse.transform(X)
print(sparse.explain())

figure = plt.figure(figsize=(9.6, 5.4), layout="constrained")
axes = figure.subplot_mosaic([["photograph", "rebuilt", "simplex"], ["a", "b", "c"]])
axes["photograph"].imshow(photograph)
axes["rebuilt"].imshow(np.clip(sparse.inverse_transform(Z), 0, 1).reshape(photograph.shape))
for name, title in (("photograph", "photograph"), ("rebuilt", "from three colours")):
    axes[name].set_title(title, fontsize=10)
    axes[name].set_axis_off()
names = [
    f"RGB {tuple(np.round(255 * colour).astype(int).tolist())}" for colour in sparse.components_
]
plot_simplex(Z, c=np.clip(X, 0, 1), names=["1", "2", "3"], ax=axes["simplex"])
plot_abundance_maps(Z, shape, names=names, ax=[axes["a"], axes["b"], axes["c"]])
plt.show()
