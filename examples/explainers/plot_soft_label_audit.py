"""
Is it really the uncertainty? An audit of soft labels
=====================================================

A model trained on people's votes is often better than one trained on the original labels. Why?
The votes are soft, they correct wrong labels, they hold information on each item, or softness of any
kind would have done. `SoftLabelAudit` trains the same network on targets that differ in one of
these things at a time.
"""

# %%
# Digits with ten votes each, and some wrong labels
# --------------------------------------------------
# The true class probabilities are known. A tenth of the original labels is switched to the most
# probable other class.
import matplotlib.pyplot as plt
import numpy as np

from equipoise.datasets import inject_mode_shift, make_ambiguous_digits, simulate_annotators
from equipoise.estimators import SoftLabelClassifier
from equipoise.explainers import DawidSkene, SoftLabelAudit, VoteShare, make_label_arms

digits = make_ambiguous_digits(2500, ambiguity=0.5, random_state=0)
X, truth = (digits.data / 16).astype(np.float32), digits.posterior
crowd = simulate_annotators(truth, votes_per_item=10, skill=(1, 1), random_state=1)
votes = crowd.counts
original = inject_mode_shift(votes.argmax(axis=1), truth, rate=0.1, random_state=2)

# %%
# The arms
# --------
# One image, eight targets. Hard or soft, at the original label or the human mode, and four kinds of
# synthetic softness.
arms = make_label_arms(votes, original, random_state=0)
item = int(np.flatnonzero((original != votes.argmax(axis=1)) & (votes.max(axis=1) < 7))[0])
print(f"original label {original[item]}, votes {votes[item]}")
for name, targets in arms.items():
    print(f"{name:16s}", targets[item].round(2))

# %%
# The audit
# ---------
# Every arm is trained with the same seeds, so the same initial weights and batches, and evaluated
# against the original labels, the human modes and the votes. Intervals resample seeds and test items
# together. Here three seeds do; more make the intervals honest about training noise.
network = SoftLabelClassifier(
    hidden_layer_sizes=(64,), max_epochs=40, batch_size=64, lr=5e-3, standardize=False
)
audit = SoftLabelAudit(network, seeds=3, n_bootstrap=300, random_state=0)
audit.fit(X[:1000], original[:1000], votes[:1000], X[1000:], original[1000:], votes[1000:])
report = audit.explain()
print(report)

# %%
# The gain in KL is softness with information on each item: shuffling the votes among images of the
# same mode loses it, and label smoothing of the same entropy doesn't bring it.
figure, axes = plt.subplots(2, 2, figsize=(12.5, 8.5), layout="constrained")
for kind, ax in zip(("effects", "strata", "entropy_alignment", "data_map"), axes.flat, strict=True):
    report.plot(kind, ax)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Opinions, or belief about one truth?
# ------------------------------------
# Vote shares describe opinions. Dawid and Skene's model says how sure one may be of a single true
# class, which sharpens with more votes: it is no target for a model that should doubt as people do.
shares = VoteShare().fit(crowd.annotations)
belief = DawidSkene().fit(crowd.annotations)
for model in (shares, belief):
    mean = model.probas_.max(axis=1).mean()
    print(f"{type(model).__name__:10s} ({model.soft_kind_}): mean top probability {mean:.3f}")
print(f"the true mean top probability is {truth.max(axis=1).mean():.3f}")
