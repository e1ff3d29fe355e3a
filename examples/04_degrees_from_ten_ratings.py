"""
Degrees of tags from ten ratings
================================

Tags tell which of them apply. Ten rated rows tell how much more one matters than another.
"""

# %%
# A table of photos whose true degrees are known: a photo shows mostly *sea*, somewhat *sky*. lemll
# sees the caption, four numbers and the tags.
import matplotlib.pyplot as plt
import numpy as np

from lemll.enhancers import LEMLLEnhancer
from lemll.lab.photos import make_photos
from lemll.metrics import chebyshev
from lemll.tables import TableEncoder

photos = make_photos()
X = TableEncoder().fit_transform(photos.frame.drop(columns=["file", "tags"]))
tags, truth = photos.truth, photos.degrees

# %%
# Without ratings, LEMLL orders the tags of a photo, but nobody can know how steep the degrees are.
enhancer = LEMLLEnhancer().fit(X, tags)
plain = enhancer.label_distribution_.copy()

# %%
# Rate ten photos: how much of each tag does the photo show? The scale follows, with an interval
# that becomes narrower if more photos are rated.
order = np.random.default_rng(0).permutation(len(tags))
counts, found = (10, 30, 100, 200), []
for count in counts:
    rated = order[:count]
    enhancer.calibrate(rated, truth[rated], method="scale", random_state=0)
    found.append((enhancer.scale_, *enhancer.scale_interval_))
    if count == 10:
        calibrated = enhancer.label_distribution_.copy()
rest = order[200:]
before, after = (chebyshev(truth[rest], degrees[rest]) for degrees in (plain, calibrated))
print(f"Chebyshev distance to the truth: {before:.3f}, with ten rated photos {after:.3f}")

# %%
# The degrees of eight photos that nobody rated, and the scale over the number of ratings.
from lemll.plots import DegreesDisplay

figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
eight = rest[:8]
for ax, (title, degrees) in zip(
    axes.flat,
    {"without ratings": plain, "ten rated photos": calibrated, "the truth": truth}.items(),
    strict=False,
):
    DegreesDisplay.from_predictions(degrees[eight], label_names=photos.label_names, ax=ax)
    ax.set_title(title)
scale, low, high = np.array(found).T
last = axes.flat[3]
last.errorbar(counts, scale, yerr=[scale - low, high - scale], capsize=4)
last.set(xlabel="rated photos", ylabel="scale, with its 95 % interval", xscale="log")
plt.show()

# %%
# On the command line, ``lemll enhance photos.csv --tags tags --id file --rate 10`` asks you for the
# ratings, and ``--rated ratings.csv`` reads them from a file.
