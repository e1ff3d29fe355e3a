"""
Tags in a frame
===============

Frames in, tuned model, frames out: and which tags a person should look at again. It needs pandas.
"""

# %%
# The data: one row an image, one column a pixel; and one column a tag.
import pandas as pd
from sklearn.model_selection import GridSearchCV

from lemll import LEMLL
from lemll.datasets import load_digit_tags
from lemll.metrics import get_scorer

digits = load_digit_tags()
images = [f"image {i}" for i in range(len(digits))]
pixels = pd.DataFrame(digits.X / 16, columns=list(digits.feature_names), index=images)
tags = pd.DataFrame(digits.Y, columns=list(digits.label_names), index=images)
seen, new = images[:600], images[600:]

# %%
# A model, tuned by cross-validation on the images seen.
search = GridSearchCV(
    LEMLL(thresholds="f1"),
    {"alpha": [0.01, 1.0, 100.0]},
    scoring=get_scorer("average_precision"),
    cv=3,
).fit(pixels.loc[seen], tags.loc[seen])
model = search.best_estimator_
print(f"alpha = {model.alpha:g}, cross-validated average precision {search.best_score_:.3f}")
print(f"within a proven {model.optimality_:.0e} of the optimum")

# %%
# Predictions come back as a frame, with the tags' names and the images' index.
predicted = model.predict(pixels.loc[new])
print(predicted.head(3))

# %%
# How much each tag matters in an image already tagged.
importance = model.to_frame(model.label_distribution_, pixels.loc[seen])
print(importance.head(3).round(2))

# %%
# The five most doubtful tags: scores nearest to their thresholds.
scores = model.to_frame(
    model.decision_function(pixels.loc[new]) - model.thresholds_, pixels.loc[new]
)
doubtful = scores.stack().abs().nsmallest(5)
for (image, tag), margin in doubtful.items():
    answer = "yes" if predicted.loc[image, tag] else "no"
    print(f"{image}: {tag}? predicted {answer}, by a margin of {margin:.4f}")
