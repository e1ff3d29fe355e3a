"""A learner with its table: fit and honest figures, predictions, and model files.

:func:`fit_table` fits a learner to a table and measures it on rows that no choice has seen.
:func:`compare_learners` does so for several learners and splits. :class:`TableModel` predicts other
tables, and :func:`explain_table` explains them. :func:`save` and :func:`load` keep models in files.
"""

from lemll.models.assess import MEASURES, Assessment, Score, assess, label_shares
from lemll.models.compare import FREQUENCY, LearnerScores, compare_learners
from lemll.models.curves import THRESHOLDS
from lemll.models.explain import Explanation, Feature, explain_table
from lemll.models.files import SUFFIX, load, read_metadata, save
from lemll.models.onnx import to_onnx
from lemll.models.training import (
    LEARNERS,
    Predictions,
    TableModel,
    fit_table,
    make_learner,
    stratified_splits,
)

__all__ = [
    "FREQUENCY",
    "LEARNERS",
    "MEASURES",
    "SUFFIX",
    "THRESHOLDS",
    "Assessment",
    "Explanation",
    "Feature",
    "LearnerScores",
    "Predictions",
    "Score",
    "TableModel",
    "assess",
    "compare_learners",
    "explain_table",
    "fit_table",
    "label_shares",
    "load",
    "make_learner",
    "read_metadata",
    "save",
    "stratified_splits",
    "to_onnx",
]
