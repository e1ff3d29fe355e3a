"""
Tune LEMLL and look at the scores
=================================

Choose alpha, beta and gamma by cross-validation, and see how much they matter.
"""

# %%
# The search tries the paper's 343 points. Each fold computes its graph once, and each solution is
# the starting point of the next one. ``search="coarse"`` tries only a fifth of the points.
import matplotlib.pyplot as plt

from lemll import LEMLLCV
from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision
from lemll.report.tuning import score_surface

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
surface = score_surface(model.cv_results_, model.best_index_, "average_precision")
figure, axes = plt.subplots(layout="constrained")
image = axes.imshow(surface.scores, origin="lower")
axes.set(
    title=f"average precision, alpha = {surface.best[0]:g}",
    xlabel="gamma",
    ylabel="beta",
    xticks=range(len(surface.gammas)),
    yticks=range(len(surface.betas)),
    xticklabels=[f"{gamma:g}" for gamma in surface.gammas],
    yticklabels=[f"{beta:g}" for beta in surface.betas],
)
figure.colorbar(image)
plt.show()
