"""
Train on votes instead of majorities
====================================

Ten people label each image. Should a classifier learn their majority, or their votes? On digits
whose true class probabilities are known, both classifiers can be held against the truth: the one
trained on votes finds the right class more often, and knows far better when it can't know it.
"""

# %%
# Digits that are hard to tell apart, and ten votes for each
# -----------------------------------------------------------
# The classes' means are drawn half way towards each other, so that even the best rule errs on every
# fifth image. Each annotator sees a class with its true probability, and reports it.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.datasets import make_ambiguous_digits, simulate_annotators
from equipoise.estimators import SoftLabelClassifier, SoftStratifiedKFold, get_soft_scorer
from equipoise.explainers import calibration_error, human_alignment_report, kl_to_humans
from equipoise.plotting import COLORS

digits = make_ambiguous_digits(3000, ambiguity=0.5, random_state=0)
X, truth = digits.data, digits.posterior
votes = simulate_annotators(truth, votes_per_item=10, skill=(1, 1), random_state=1).counts
train, test = slice(0, 1000), slice(1000, None)
print(f"the best possible accuracy is {truth[test].max(axis=1).mean():.3f}")

# %%
# The same network, twice
# -----------------------
# Seed, initial weights and batches are the same; only the targets differ. `fit` takes hard labels,
# probabilities or votes. `human_alignment_report` compares with the true probabilities.
network = SoftLabelClassifier(hidden_layer_sizes=(64,), max_epochs=30, random_state=0)
fits = {
    "trained on majorities": network.fit(X[train], votes[train].argmax(axis=1)).predict_proba(X),
    "trained on votes": network.fit(X[train], votes[train]).predict_proba(X),
}
shown = ["mode_accuracy", "kl", "soft_ece", "entropy_spearman"]
for name, proba in fits.items():
    report = human_alignment_report(truth[test], proba[test])
    print(f"{name:22s}", ", ".join(f"{key} {report[key]:.3f}" for key in shown))

# %%
# What the classifier says of itself
# ----------------------------------
answer = network.explain(X[test], votes[test])
print(answer)

# %%
# Any scikit-learn classifier, inside a search
# ---------------------------------------------
# A row of votes becomes one weighted row for each class that got a vote. Folds are stratified by the
# human mode, and the search looks at the cross-entropy to the votes.
pipeline = make_pipeline(StandardScaler(), SoftLabelClassifier(LogisticRegression(max_iter=500)))
search = GridSearchCV(
    pipeline,
    {"softlabelclassifier__estimator__C": [0.001, 0.01, 0.1]},
    cv=SoftStratifiedKFold(3, random_state=0),
    scoring=get_soft_scorer("neg_soft_cross_entropy"),
).fit(X[train], votes[train])
kl = kl_to_humans(truth[test], search.predict_proba(X[test]))
print(f"logistic regression, {search.best_params_}: KL to the truth {kl:.3f}")

# %%
# The picture
# -----------
# Left: how sure each classifier is, against how often it is right. Right: its uncertainty about each
# image, against the true uncertainty.
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), layout="constrained")
for (name, proba), color in zip(fits.items(), (COLORS[1], COLORS[0]), strict=True):
    F, P = proba[test], truth[test]
    confidence, predicted = F.max(axis=1), F.argmax(axis=1)
    right = P[np.arange(len(P)), predicted]
    edges = np.quantile(confidence, np.linspace(0, 1, 13))
    place = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, 11)
    mean = [[v[place == b].mean() for b in range(12)] for v in (confidence, right)]
    error = calibration_error(P, F)
    axes[0].plot(*mean, "o-", color=color, markersize=5, label=f"{name}: error {error:.3f}")
    entropies = [-(Q * np.log(np.maximum(Q, 1e-300))).sum(axis=1) for Q in (P, F)]
    axes[1].scatter(*entropies, s=6, color=color, alpha=0.35, linewidths=0)
axes[0].plot([0.3, 1], [0.3, 1], color="0.6", linewidth=1, linestyle="--")
axes[0].set(
    xlabel="confidence", ylabel="probability of being right", title="how sure, and how often right"
)
axes[0].legend(frameon=False, loc="upper left")
axes[1].plot([0, 2], [0, 2], color="0.6", linewidth=1, linestyle="--")
axes[1].set(
    xlabel="true entropy (nats)",
    ylabel="entropy of the classifier (nats)",
    title="uncertainty about each image",
)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
