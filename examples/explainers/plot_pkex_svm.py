"""
Why does the support vector machine say so?
===========================================

A support vector machine with an RBF kernel tells three cultivars of wine apart by their chemistry.
Which measurements speak for a decision, and how much does each contribute? For kernels that are
products of one factor a feature this question has an exact answer, and no coalition of features
needs to be sampled for it.
"""

# %%
# The model
# ---------
# Scaling acts feature by feature, so the whole pipeline is explained in the features' own units.
# The machine decides between all pairs of classes; ``output="margin"`` averages, for each class,
# the decisions in which it takes part.

import matplotlib.pyplot as plt
import numpy as np
import shap
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from equipoise.explainers import PKeXShapleyExplainer

wine = load_wine(as_frame=True)
data = wine.data.rename(columns={"od280/od315_of_diluted_wines": "od280/od315"})
names = wine.target_names[wine.target]
X_train, X_test, y_train, y_test = train_test_split(data, names, random_state=0, stratify=names)
model = make_pipeline(StandardScaler(), SVC()).fit(X_train, y_train)
print(f"accuracy on unseen wines: {model.score(X_test, y_test):.3f}")

# %%
# The explanation
# ---------------
# An absent feature takes the values of 40 training wines, and the result is the mean over them:
# this is the value that Kernel SHAP estimates by sampling. Here it is computed exactly, for all
# features at once, and the explanation says how many quadrature nodes that took and how large the
# error can be.

explainer = PKeXShapleyExplainer(
    model, removal="interventional", reference=40, output="margin", random_state=0
).fit(X_train)
explanation = explainer.explain(X_test)
print(f"{explanation.values.shape=}")
print(f"nodes: {explanation.n_nodes}, error at most {explanation.error_bound:.1e}")
gap = explanation.base_values + explanation.values.sum(axis=1) - explainer.predict_output(X_test)
print(f"base value + attributions miss the model's output by {np.abs(gap).max():.1e}")

# %%
# All wines: what makes a wine look like class_0?
# -----------------------------------------------
# Every dot is a wine. Much proline, flavanoids and alcohol speak for the first cultivar.

shap.plots.beeswarm(explanation[..., 0], max_display=8, show=False, plot_size=(7.5, 4.2))
plt.tight_layout()
plt.show()

# %%
# One wine: a close call
# ----------------------
# The wine whose best two classes lie closest together. Read from the bottom: starting at the mean
# output, each measurement pushes towards the class or away from it.

margins = explainer.predict_output(X_test)
ordered = np.sort(margins, axis=1)
closest = int(np.argmin(ordered[:, -1] - ordered[:, -2]))
best = int(margins[closest].argmax())
print(f"decided for {explainer.output_names_[best]}, in truth {y_test[closest]}")
plt.figure()
shap.plots.waterfall(explanation[closest, :, best], max_display=9, show=False)
plt.gcf().set_size_inches(8, 4.5)
plt.tight_layout()
plt.show()
