"""Find tags that are wrong and tags that are missing.

:func:`find_tag_issues` lists the most doubtful cells with suggestions, :func:`tag_quality` judges
every cell or row, :func:`estimate_noise` says how much is wrong in each label, and :func:`correct`
applies suggestions. :func:`audit_tags` runs the models once, for all of them. Users of cleanlab
find its names too: :func:`find_label_issues` and :func:`get_label_quality_scores`.
"""

from lemll.audit.auditing import (
    TagAudit,
    audit_tags,
    estimate_noise,
    find_label_issues,
    find_tag_issues,
    get_label_quality_scores,
    get_label_quality_scores_per_class,
    tag_quality,
)
from lemll.audit.correction import correct, read_decisions

__all__ = [
    "TagAudit",
    "audit_tags",
    "correct",
    "estimate_noise",
    "find_label_issues",
    "find_tag_issues",
    "get_label_quality_scores",
    "get_label_quality_scores_per_class",
    "read_decisions",
    "tag_quality",
]
