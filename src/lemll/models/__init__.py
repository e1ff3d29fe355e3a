"""A learner with its table: fit and honest figures, predictions, and model files.

:func:`fit_table` fits a learner to a table and measures it on rows that no choice has seen.
:func:`compare_learners` does so for several learners and splits. :class:`TableModel` predicts other
tables, and :func:`explain_table` explains them. :func:`save` and :func:`load` keep models in files.
"""

from lemll.models.assess import Assessment, assess
from lemll.models.compare import LearnerScores, compare_learners
from lemll.models.explain import Explanation, explain_table
from lemll.models.files import load, read_metadata, save
from lemll.models.onnx import to_onnx
from lemll.models.training import Predictions, TableModel, fit_table, make_learner

__all__ = [
    "Assessment",
    "Explanation",
    "LearnerScores",
    "Predictions",
    "TableModel",
    "assess",
    "compare_learners",
    "explain_table",
    "fit_table",
    "load",
    "make_learner",
    "read_metadata",
    "save",
    "to_onnx",
]
