"""
Tags of images or texts from embeddings
=======================================

A network turns a picture or a text into an embedding: numbers, which are features.
"""

# %%
# lemll does not look at pixels and does not run networks. Make embeddings first, once per item,
# with any model. With sentence-transformers, which also has CLIP for pictures, this is
#
# .. code-block:: python
#
#    from sentence_transformers import SentenceTransformer
#
#    network = SentenceTransformer("clip-ViT-B-32")
#    vectors = network.encode([Image.open(path) for path in paths])  # or a list of texts
#    numpy.save("images.npy", vectors)
#
# So that this page needs no network, a random projection of the pixels stands for it here.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from lemll.datasets import load_digit_tags

digits = load_digit_tags()
rng = np.random.default_rng(0)
vectors = np.tanh(digits.X[:500] @ rng.standard_normal((64, 48)) / 40).astype(np.float32)
names = np.array(digits.label_names)
tags = [";".join(names[row == 1]) for row in digits.Y[:500]]

# %%
# **As an array.** An estimator takes the embeddings as they are.
from lemll import TagPredictor
from lemll.metrics import average_precision

learner = TagPredictor(n_estimators=50, cv=3, random_state=0)
model = learner.fit(vectors[:400], digits.Y[:400])
probability = model.predict_proba(vectors[400:])
as_array = average_precision(digits.Y[400:500], probability)
print(f"average precision on 100 new images: {as_array:.3f}")

# %%
# **Beside a table.** An array with the name of the table, one row of numbers per row of the table,
# is its column ``vectors``.
from lemll.models import fit_table
from lemll.tables import LabelSpec, read_table

folder = Path(tempfile.mkdtemp())
frame = pd.DataFrame({"file": [f"{i}.png" for i in range(500)], "tags": tags})
frame.to_csv(folder / "images.csv", index=False)
np.save(folder / "images.npy", vectors)
table = read_table(folder / "images.csv", keep=["file", "tags"])
print(table.notes)

# %%
# **As a column of lists**, for example in Parquet. Other columns are features too.
frame.assign(embedding=list(vectors)).to_parquet(folder / "lists.parquet")
lists = read_table(folder / "lists.parquet", keep=["file", "tags"])
where = LabelSpec(tags="tags", untagged="none")
fast = TagPredictor(n_estimators=30, cv=2, members=("logistic", "LEMLL"), random_state=0)
figures = {}
for source in (table, lists):
    _, held_out = fit_table(source, where, ids="file", learner=fast)
    (score,) = [score for score in held_out.scores if score.measure == "average_precision"]
    figures[Path(source.source).name] = score.value
print({name: round(value, 3) for name, value in figures.items()})

# %%
# Are the probabilities right? Of the tags with a probability near 0.8, about 80 % should apply.
import matplotlib.pyplot as plt

from lemll.plots import LabelFiguresDisplay, ReliabilityDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
shown = ReliabilityDisplay.from_predictions(digits.Y[400:500], probability, ax=left)
LabelFiguresDisplay.from_estimator(model, vectors[400:], digits.Y[400:500], ax=right)
plt.show()

# %%
# On the command line, ``lemll fit images.csv --tags tags --id file -m images.lemll`` finds
# ``images.npy`` by itself, and ``lemll predict images.lemll new.csv -o tags.csv`` finds
# ``new.npy``.
