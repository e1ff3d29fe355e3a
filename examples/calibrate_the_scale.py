"""
Calibrate the scale by a few rated rows
=======================================

0/1 labels tell which labels matter more, but not how much more. A few rated rows tell it.
"""

# %%
# Two true distributions with the same largest labels: one is flat, the other is steep.
import matplotlib.pyplot as plt
import numpy as np

from lemll.datasets import make_artificial
from lemll.enhancers import LEMLLEnhancer
from lemll.metrics import chebyshev

data = make_artificial(300, random_state=0)


def power(D, exponent):
    """Sharpen or flatten a distribution; the order of the labels does not change."""
    return D**exponent / (D**exponent).sum(axis=1, keepdims=True)


truths = {"flat": power(data.D, 0.5), "steep": power(data.D, 4.0)}
first = (data.D == data.D.max(axis=1, keepdims=True)).astype(int)

# %%
# Both have the same largest labels, so LEMLL recovers the same distribution for both.
enhancer = LEMLLEnhancer().fit(data.X, first)
plain = {name: chebyshev(truth, enhancer.label_distribution_) for name, truth in truths.items()}

# %%
# The interval of the scale becomes narrower if more rows are rated.
counts = (3, 10, 30, 100)
order = np.random.RandomState(0).permutation(len(data))
scales = {name: [] for name in truths}
calibrated = {}
for name, truth in truths.items():
    for count in counts:
        rated = order[:count]
        enhancer.calibrate(rated, truth[rated], random_state=0)
        scales[name].append((enhancer.scale_, *enhancer.scale_interval_))
        if count == 10:
            calibrated[name] = chebyshev(truth, enhancer.label_distribution_)
    print(
        f"{name}: Chebyshev distance {plain[name]:.3f} at scale 1, {calibrated[name]:.3f} with ten "
        "rated rows"
    )

# %%
figure, axes = plt.subplots(layout="constrained")
for name, found in scales.items():
    scale, low, high = np.array(found).T
    axes.errorbar(counts, scale, yerr=[scale - low, high - scale], capsize=4, label=f"{name} truth")
axes.set(xlabel="rated rows", ylabel="scale, with its 95 % interval", xscale="log", yscale="log")
axes.legend()
plt.show()
