"""Scores of cleanlab, in an environment of its own: ``python audit_cleanlab.py`` with cleanlab.

Reads lines "IN OUT" from standard input. IN is an NPZ file with the tags ``Z`` and probabilities
``p_NAME``. OUT gets, for every NAME, one array of quality scores per scorer: ``NAME|SCORER`` for
cells, ``NAME|SCORER|ema`` and ``NAME|SCORER|softmin`` for rows. Then "done" is printed.
"""

import sys

import numpy as np
from cleanlab.internal.multilabel_scorer import (
    ClassLabelScorer,
    MultilabelScorer,
    exponential_moving_average,
    softmin,
)

SCORERS = {
    "self-confidence": (ClassLabelScorer.SELF_CONFIDENCE, {}),
    "self-confidence, adjusted": (ClassLabelScorer.SELF_CONFIDENCE, {"adjust_pred_probs": True}),
    "normalised margin": (ClassLabelScorer.NORMALIZED_MARGIN, {}),
    "normalised margin, adjusted": (
        ClassLabelScorer.NORMALIZED_MARGIN,
        {"adjust_pred_probs": True},
    ),
    "weighted entropy": (ClassLabelScorer.CONFIDENCE_WEIGHTED_ENTROPY, {}),
}


def score(tags, probabilities):
    """Return the scores of all scorers, per cell and per row."""
    found = {}
    for name, (base, options) in SCORERS.items():
        scorer = MultilabelScorer(base_scorer=base, strict=False)
        cells = scorer.get_class_label_quality_scores(tags, probabilities, options)
        found[name] = cells
        found[f"{name}|ema"] = exponential_moving_average(cells, alpha=0.8)
        found[f"{name}|softmin"] = softmin(cells, temperature=0.1)
    return found


for line in sys.stdin:
    source, target = line.split()
    with np.load(source) as content:
        tags = content["Z"].astype(int)
        out = {}
        for key in content.files:
            if key.startswith("p_"):
                p = np.clip(content[key], 1e-6, 1 - 1e-6)
                out |= {f"{key[2:]}|{name}": value for name, value in score(tags, p).items()}
    np.savez(target, **out)
    print("done", flush=True)
