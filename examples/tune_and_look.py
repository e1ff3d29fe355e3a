"""
Tune LEMLL and look at the scores
=================================

Choose alpha, beta and gamma by cross-validation, and see how much they matter.
"""

# %%
# The search tries the paper's 343 points. Each fold computes its graph once, and each solution is
# the starting point of the next one. ``search="coarse"`` tries only a fifth of the points.
import matplotlib.pyplot as plt
import numpy as np

from lemll import LEMLLCV
from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision

digits = load_digit_tags()
train, test = slice(0, 400), slice(400, None)
model = LEMLLCV(cv=3).fit(digits.X[train], digits.Y[train])
best = {name: model.best_params_[name] for name in ("alpha", "beta", "gamma")}
print(f"{len(model.cv_results_['param_alpha'])} points tried; the best: {best}")

# %%
# Score the model on rows that the search has not seen.
precision = average_precision(digits.Y[test], model.decision_function(digits.X[test]))
print(f"average precision {precision:.3f}")

# %%
# Draw the scores over beta and gamma at the best alpha.
found = model.cv_results_
at_best = found["param_alpha"] == best["alpha"]
betas, gammas = (np.unique(found[f"param_{name}"]) for name in ("beta", "gamma"))
scores = np.full((len(betas), len(gammas)), np.nan)
rows = np.searchsorted(betas, found["param_beta"][at_best])
columns = np.searchsorted(gammas, found["param_gamma"][at_best])
scores[rows, columns] = found["mean_test_average_precision"][at_best]
figure, axes = plt.subplots(layout="constrained")
image = axes.imshow(scores, origin="lower")
axes.set(
    title=f"average precision, alpha = {best['alpha']:g}",
    xlabel="gamma",
    ylabel="beta",
    xticks=range(len(gammas)),
    yticks=range(len(betas)),
    xticklabels=[f"{gamma:g}" for gamma in gammas],
    yticklabels=[f"{beta:g}" for beta in betas],
)
figure.colorbar(image)
plt.show()
