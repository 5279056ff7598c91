"""
Thousands of sparse features
============================

In a bag of words almost every feature is 0 in almost every row. A feature with the same value in a
row and in a support vector plays no part in their kernel, so it is skipped: exact attributions of
thousands of words take milliseconds.
"""

# %%
# Reviews from a grammar
# ----------------------
# Short reviews of a phone, put together at random; the rating depends on what is praised. The
# vocabulary has a few thousand words, most of them names that say nothing.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import SVC

from equipoise.explainers import PKeXShapleyExplainer
from equipoise.plotting import COLORS, new_axes

generator = np.random.default_rng(0)
things = ["battery", "screen", "camera", "speaker", "case", "keyboard"]
praise = ["excellent", "great", "lovely", "superb", "solid"]
blame = ["terrible", "poor", "awful", "broken", "weak"]


def review() -> tuple[str, str]:
    opinions, score = [], 0
    for thing in generator.choice(things, size=4, replace=False):
        good = generator.uniform() < 0.5
        opinions.append(f"{generator.choice(praise if good else blame)} {thing}")
        score += (1 if good else -1) * (3 if thing == "battery" else 1)
    names = " ".join(f"name{k}" for k in generator.integers(5000, size=8))
    return ", ".join(opinions) + " says " + names, "good" if score > 0 else "bad"


texts, labels = zip(*(review() for _ in range(1500)), strict=True)
vectorizer = TfidfVectorizer(ngram_range=(1, 2)).fit(texts[:1200])
X = vectorizer.transform(texts)
model = SVC(C=10).fit(X[:1200], labels[:1200])
print(f"{X.shape[1]} features, {len(model.support_)} support vectors")
print(f"accuracy on unseen reviews: {model.score(X[1200:], labels[1200:]):.3f}")

# %%
# Explaining unseen reviews
# -------------------------
# Rows stay sparse throughout.

explainer = PKeXShapleyExplainer(model).fit()
explainer.explain(X[1200:1201])
start = time.perf_counter()
explanation = explainer.explain(X[1200:1250])
print(f"{1e3 * (time.perf_counter() - start) / 50:.1f} ms a review")
total = explanation.base_values + explanation.values.sum(axis=1)
gap = total - model.decision_function(X[1200:1250])
print(f"attributions miss the decision by {np.abs(gap).max():.1e}")

# %%
# One review
# ----------
# Words to the right speak for "good". A word counts also where it is missing (pale): a review that
# mentions the battery without calling it solid isn't one of those that do.

k = int(np.argmin(np.abs(explainer.predict_output(X[1200:1250]))))
print(texts[1200 + k])
words = vectorizer.get_feature_names_out()
values = explanation.values[k]
top = np.argsort(-np.abs(values))[:12][::-1]
ax = new_axes()
present = X[[1200 + k]].toarray()[0, top] > 0
bars = ax.barh(words[top], values[top], color=np.where(present, COLORS[0], COLORS[5]))
ax.axvline(0, color="black", lw=0.8)
ax.set(xlabel="contribution to the decision for 'good'", title="the closest call of fifty")
ax.legend(
    [bars[int(present.argmax())], bars[int((~present).argmax())]],
    ["in the review", "missing from it"],
)
plt.show()
