"""
Your tags are incomplete
========================

*Not relevant* and *not looked at* are different things. See what it costs to confuse them.
"""

# %%
# The data come with all tags. To imitate a person who checked only some tags of some images, hide
# a share of the cells. NaN means that nobody looked.
import matplotlib.pyplot as plt
import numpy as np

from lemll import LEMLL
from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision

digits = load_digit_tags()
train, test = slice(0, 400), slice(900, None)
order = np.random.default_rng(0).random(digits.Y[train].shape)


def tags(share):
    """Return the tags of the training rows with a share of the cells hidden."""
    return np.where(order < share, np.nan, digits.Y[train])


def precision(labels):
    """Fit LEMLL to labels, and measure it on rows that have all tags."""
    model = LEMLL(16.0).fit(digits.X[train], labels)
    return average_precision(digits.Y[test], model.decision_function(digits.X[test]))


# %%
# Fit the same model twice: to the tags as they are, and to tags in which "not looked at" was
# written as 0, "not relevant".
shares = (0.0, 0.3, 0.6, 0.8, 0.9)
unknown = [precision(tags(share)) for share in shares]
as_zero = [precision(np.nan_to_num(tags(share), nan=0.0)) for share in shares]
for share, honest, zero in zip(shares, unknown, as_zero, strict=True):
    print(f"{share:.0%} hidden: {honest:.3f} if unknown, {zero:.3f} if read as 0")

# %%
# The model also says what the unknown tags of the training rows probably are.
model = LEMLL(16.0).fit(digits.X[train], tags(0.6))
hidden = np.isnan(tags(0.6))
right = (model.completed_labels_[hidden] == digits.Y[train][hidden]).mean()
always_zero = (digits.Y[train][hidden] == 0).mean()
print(f"{right:.0%} of the hidden tags are completed correctly; 0 everywhere: {always_zero:.0%}")

# %%
# On the left, the tags of twenty images as such a person leaves them. On the right, the average
# precision on the test rows.
figure, (left, axes) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
shown = np.nan_to_num(tags(0.6)[:20], nan=0.5)
left.imshow(shown, cmap="gray_r", vmin=0, vmax=1, aspect="auto")
left.set(
    title="black: relevant, white: not relevant,\ngrey: not looked at",
    xticks=range(digits.Y.shape[1]),
    ylabel="image",
)
left.set_xticklabels(digits.label_names, rotation=90)
axes.plot(shares, unknown, marker="o", label="not looked at = unknown (NaN)")
axes.plot(shares, as_zero, marker="s", label="not looked at = 0")
axes.set(xlabel="share of hidden tags", ylabel="average precision on complete test rows")
axes.legend()
plt.show()
