"""
Tags in a frame
===============

Fit a tuned model to pandas frames, predict frames, and find the tags that a person should check.
This example needs pandas.
"""

# %%
# The features have one row per image and one column per pixel. The labels have one column per tag.
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
# Tune a model by cross-validation on the training images.
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
# Predictions are a frame with the names of the tags and the index of the images.
predicted = model.predict(pixels.loc[new])
print(predicted.head(3))

# %%
# The label distribution says how much each tag matters in each training image.
importance = model.to_frame(model.label_distribution_, pixels.loc[seen])
print(importance.head(3).round(2))

# %%
# The five most doubtful tags have the scores that are nearest to their thresholds.
scores = model.to_frame(
    model.decision_function(pixels.loc[new]) - model.thresholds_, pixels.loc[new]
)
doubtful = scores.stack().abs().nsmallest(5)
for (image, tag), margin in doubtful.items():
    answer = "yes" if predicted.loc[image, tag] else "no"
    print(f"{image}: {tag}? predicted {answer}, by a margin of {margin:.4f}")
