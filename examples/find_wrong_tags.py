"""
Find wrong and missing tags
===========================

Flip some tags of the handwritten digits on purpose, find them again, and look at the pictures.
"""

# %%
# Every twentieth tag is made wrong: given tags are removed, and others are added.
import matplotlib.pyplot as plt
import numpy as np

from lemll.audit import correct, estimate_noise, find_tag_issues
from lemll.datasets import load_digit_tags

digits = load_digit_tags()
X, truth = digits.X[:600], digits.Y[:600]
mistakes = np.random.default_rng(0).random(truth.shape) < 0.05
tags = np.where(mistakes, 1 - truth, truth)
names = list(digits.label_names)
print(f"{mistakes.sum()} of {mistakes.size} tags are wrong or missing")

# %%
# One call lists the doubtful tags, with a suggestion, a score, and the evidence.
issues = find_tag_issues(X, tags, label_names=names, limit=None)
print(issues.head(8)[["row", "label", "kind", "score", "probability", "neighbour_share"]].round(3))

# %%
# How many of the worst ones are mistakes?
column = {name: j for j, name in enumerate(names)}
found = mistakes[issues["row"], issues["label"].map(column)]
for number in (20, 50, 100, 200):
    print(f"of the {number} most doubtful tags, {found[:number].sum()} are mistakes")

# %%
# The most doubtful ones, with their pictures.
figure, axes = plt.subplots(2, 6, figsize=(12, 5))
for axis, issue, right in zip(axes.flat, issues.itertuples(), found, strict=False):
    axis.imshow(X[issue.row].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"{issue.label}:\n{issue.kind}, {issue.score:.2f}", fontsize=10)
    axis.set_xlabel("a mistake" if right else "no mistake", fontsize=9)
    axis.set_xticks([])
    axis.set_yticks([])
figure.tight_layout()
plt.show()

# %%
# How much of each tag is wrong or missing? The interval begins at 0, because no data can tell a tag
# that is hard to predict from a tag with mistakes.
noise = estimate_noise(X, tags, label_names=names)
print(noise[["label", "wrong", "wrong_high", "missing", "missing_high"]].round(2))

# %%
# Apply the suggestions that are expected to be right nine times in ten, and list them.
corrected = correct(tags, issues, precision=0.9, label_names=names)
print(corrected)
before, after = (tags != truth).sum(), (corrected.Y != truth).sum()
print(f"mistakes before: {before}, after: {after}")
