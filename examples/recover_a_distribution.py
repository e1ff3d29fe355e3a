"""
Recover a label distribution
============================

This example compares enhancers on data whose true distribution is known.
"""

# %%
# Every point of a surface has three labels. Their degrees are its red, green and blue.
# We keep only 0/1 labels: the labels with the largest degrees that together exceed one half.
import matplotlib.pyplot as plt

from lemll.datasets import binarize_distribution, make_artificial_surface
from lemll.enhancers import LEMLLEnhancer, LogicalEnhancer, UniformEnhancer
from lemll.metrics import chebyshev
from lemll.rivals import FCMEnhancer, GLLEEnhancer

surface = make_artificial_surface(step=0.08)
logical = binarize_distribution(surface.D, 0.5)

# %%
# All enhancers have the same interface. The last two are baselines: a method that is not better
# than both recovers nothing.
enhancers = {
    "LEMLL": LEMLLEnhancer(),
    "LEMLL, beta = 1/16": LEMLLEnhancer(beta=1 / 16),
    "GLLE": GLLEEnhancer(),
    "FCM": FCMEnhancer(random_state=0),
    "Uniform": UniformEnhancer(),
    "Logical": LogicalEnhancer(),
}
recovered = {name: made.fit_enhance(surface.X, logical) for name, made in enhancers.items()}
distances = {name: chebyshev(surface.D, D) for name, D in recovered.items()}
for name, distance in sorted(distances.items(), key=lambda item: item[1]):
    print(f"{name:20} Chebyshev distance to the truth {distance:.3f}")

# %%
# Draw each distribution as an image of the surface seen from above.
paints = {"truth": surface.D, "0/1 labels": logical, **recovered}
side = round(len(surface) ** 0.5)
figure, grid = plt.subplots(2, 4, figsize=(10, 5.4), layout="constrained")
for axes, (title, paint) in zip(grid.flat, paints.items(), strict=True):
    # Divided by the largest degree, so that the colours are easy to distinguish.
    axes.imshow((paint / max(paint.max(), 0.5)).reshape(side, side, 3), origin="lower")
    axes.set(title=title, xticks=[], yticks=[])
plt.show()
