"""
Calibrate the scale by a few rated rows
=======================================

0/1 labels tell which labels matter more, not by how much. A handful of rated rows does.
"""

# %%
# Two truths with the same first labels: one flat, one steep.
import matplotlib.pyplot as plt
import numpy as np

from lemll.datasets import make_artificial
from lemll.enhancers import LEMLLEnhancer
from lemll.metrics import chebyshev

data = make_artificial(300, random_state=0)


def power(D, exponent):
    """Sharpen or flatten a distribution; the order of the labels stays."""
    return D**exponent / (D**exponent).sum(axis=1, keepdims=True)


truths = {"flat": power(data.D, 0.5), "steep": power(data.D, 4.0)}
first = (data.D == data.D.max(axis=1, keepdims=True)).astype(int)

# %%
# From the first labels LEMLL recovers one and the same distribution for both.
enhancer = LEMLLEnhancer().fit(data.X, first)
plain = {name: chebyshev(truth, enhancer.label_distribution_) for name, truth in truths.items()}

# %%
# The more rows are rated, the narrower is the interval of the scale.
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
        f"{name}: Chebyshev distance {plain[name]:.3f} as it is, {calibrated[name]:.3f} with ten "
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
