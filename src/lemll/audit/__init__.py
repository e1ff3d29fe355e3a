"""Find tags that are wrong and tags that are missing.

:func:`find_tag_issues` lists the most doubtful cells with suggestions, :func:`tag_quality` judges
every cell or row, :func:`estimate_noise` says how much is wrong in each label, and :func:`correct`
applies suggestions. :func:`audit_tags` runs the models once, for all of them. Users of cleanlab
find its names too: :func:`find_label_issues` and :func:`get_label_quality_scores`.
"""

from lemll.audit.auditing import AuditMode, TagAudit, audit_tags
from lemll.audit.cleanlab_names import (
    find_label_issues,
    get_label_quality_scores,
    get_label_quality_scores_per_class,
)
from lemll.audit.correction import Correction, correct, read_decisions
from lemll.audit.issues import (
    COLUMNS,
    estimate_noise,
    find_tag_issues,
    issue_frame,
    noise_frame,
    tag_quality,
)
from lemll.audit.noise import EVEN_ODDS, NoiseRates
from lemll.audit.tags import TagMatrix, read_tags

__all__ = [
    "COLUMNS",
    "EVEN_ODDS",
    "AuditMode",
    "Correction",
    "NoiseRates",
    "TagAudit",
    "TagMatrix",
    "audit_tags",
    "correct",
    "estimate_noise",
    "find_label_issues",
    "find_tag_issues",
    "get_label_quality_scores",
    "get_label_quality_scores_per_class",
    "issue_frame",
    "noise_frame",
    "read_decisions",
    "read_tags",
    "tag_quality",
]
