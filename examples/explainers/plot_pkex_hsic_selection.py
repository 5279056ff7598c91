"""
Selecting features by dependence, in a pipeline
===============================================

HSIC measures any dependence between features and a target. Its Shapley values rank the features;
they see curved relations, and features that matter only together. The selector stands in a pipeline
as any other, and a grid search chooses how many features to keep.
"""

# %%
# Features that matter only together
# ----------------------------------
# The class is the sign of a product of two features out of eight. Neither says anything alone, so
# one-way analysis of variance finds nothing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.feature_selection import f_classif
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from equipoise.explainers import HSICShapleyExplainer, HSICShapleySelector
from equipoise.plotting import COLORS, new_axes

generator = np.random.default_rng(0)
X = generator.normal(size=(300, 8))
y = np.sign(X[:, 2] * X[:, 5])
explainer = HSICShapleyExplainer(gamma_x=0.25, n_permutations=499, random_state=0).fit(X, y)
print("adjusted p-values:", explainer.pvalues_adjusted_.round(3))
print("p-values of one-way analysis of variance:", f_classif(X, y)[1].round(3))

ax = new_axes()
ax.bar(np.arange(8), explainer.values_, color=[COLORS[1 if j in (2, 5) else 5] for j in range(8)])
ax.set(xlabel="feature", ylabel="share of HSIC", title="class = sign of feature 2 times feature 5")
plt.show()

# %%
# In a pipeline
# -------------
# The wines again, with as many columns of noise as measurements.

X, y = load_wine(return_X_y=True)
X = np.column_stack([X, generator.normal(size=X.shape)])
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
pipeline = make_pipeline(StandardScaler(), HSICShapleySelector(), SVC())
sizes = [1, 2, 3, 5, 8, 13, 20, 26]
search = GridSearchCV(pipeline, {"hsicshapleyselector__n_features_to_select": sizes}, cv=5)
search.fit(X_train, y_train)
kept = search.best_estimator_[1].get_support(indices=True)
print(f"kept: {kept.tolist()}; of these {np.sum(kept >= 13)} are noise")
print(f"accuracy on unseen wines: {search.score(X_test, y_test):.3f}")

mean, spread = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
ax = new_axes()
ax.errorbar(sizes, mean, spread / np.sqrt(5), marker="o", color=COLORS[0], capsize=3)
ax.axvline(13, color="grey", ls=":", label="number of real measurements")
ax.set(xlabel="features kept", ylabel="cross-validated accuracy")
ax.legend()
plt.show()
