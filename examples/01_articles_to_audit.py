"""
Articles: from a CSV file to an audit
=====================================

A table of articles with tags becomes a model, predictions, and a list of the tags to check.
"""

# %%
# Your table is a file. This one is made here, so that we know which of its tags are wrong: an
# article has one to three subjects, and words of these subjects among others.
import csv
import tempfile
from pathlib import Path

import numpy as np

subjects = {
    "economy": "market bank prices trade shares growth budget",
    "energy": "solar grid power wind storage plant electricity",
    "health": "hospital patients vaccine doctors trial nurses care",
    "science": "study researchers laboratory data experiment telescope",
    "sport": "match team goal season coach league final",
    "travel": "hotel island flight beach city train guide",
}
common = "the a new year people said after more first week with from they this report".split()
rng = np.random.default_rng(0)
truth = rng.random((400, len(subjects))) < 0.22
truth[np.arange(400), rng.integers(0, len(subjects), 400)] = True
words = [text.split() for text in subjects.values()]


def article(given):
    """Return a text whose words come from its subjects, and from all articles."""
    own = [word for j in np.flatnonzero(given) for word in rng.choice(words[j], 2)]
    return " ".join(rng.permutation([*own, *rng.choice(common, 18)]))


mistakes = rng.random(truth.shape) < 0.015
names = np.array(list(subjects))
folder = Path(tempfile.mkdtemp())
with (folder / "articles.csv").open("w", newline="", encoding="utf-8") as file:
    lines = csv.writer(file, delimiter=";")
    lines.writerow(["article", "text", "length", "tags"])
    for i, row in enumerate(truth ^ mistakes):
        text, length = article(truth[i]), int(rng.integers(200, 2000))
        lines.writerow([f"a{i:03d}", text, length, "|".join(names[row])])
print((folder / "articles.csv").read_text(encoding="utf-8")[:240])

# %%
# Read it. Encoding, delimiter and decimal mark are found in the file. You say where the tags are.
from lemll.tables import LabelSpec, TableEncoder, read_table, split_table

table = read_table(folder / "articles.csv", keep=["article", "tags"])
where = LabelSpec(tags="tags", sep="|", untagged="none")
print(table.notes)

# %%
# Fit a model. One article in five is held out before any choice is made; the figures come from
# these.
from lemll import TagPredictor
from lemll.models import fit_table
from lemll.models.assess import plain_figures

learner = TagPredictor(n_estimators=50, cv=3, random_state=0)
model, held_out = fit_table(table, where, ids="article", learner=learner)
print(held_out.verdict)
print(plain_figures(held_out.labels.figures))

# %%
# Predict new articles: a frame with their tags and calibrated probabilities.
import pandas as pd

from lemll.tables import Table

new = pd.DataFrame({"article": ["n1"], "text": ["they said the solar plant and the bank"],
                    "length": [800]})  # fmt: skip
print(model.predict(Table(new, "new articles")).to_frame().round(2).T)

# %%
# Which of the given tags are wrong, and which are missing? The most doubtful ones come first.
import matplotlib.pyplot as plt

from lemll.audit import find_tag_issues
from lemll.plots import AuditDisplay

data = split_table(table, where, ids="article")
X = TableEncoder().fit_transform(data.X)
issues = find_tag_issues(X, data.Y, label_names=data.label_names, limit=100)
columns = issues["label"].map({name: j for j, name in enumerate(names)})
found = mistakes[issues["row"], columns]
planted = int(mistakes.sum())
print(f"{found[:planted].sum()} of the first {planted} tags are among the {planted} mistakes")
AuditDisplay.from_issues(issues, most=15)
plt.show()

# %%
# The same on the command line; the audit also writes a page on which you accept or reject each tag.
#
# .. code-block:: text
#
#    lemll info articles.csv
#    lemll fit articles.csv --tags tags --sep "|" --id article -m articles.lemll
#    lemll predict articles.lemll new.csv -o tags.csv --top 3
#    lemll audit articles.csv --tags tags --sep "|" --id article
