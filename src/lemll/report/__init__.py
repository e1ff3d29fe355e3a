"""Pictures and self-contained pages, as text or bytes. Drawing needs the extra `report`."""

from lemll.report._diagrams import rank_diagram
from lemll.report.audit import AuditRows, write_audit
from lemll.report.comparison import write_comparison, write_table
from lemll.report.explain import write_explanation
from lemll.report.learners import LearnerVerdict, judge_learners, write_learners
from lemll.report.page import (
    Link,
    Picture,
    Section,
    TableData,
    template_environment,
    write_page,
)
from lemll.report.surfaces import draw_surfaces
from lemll.report.tuning import draw_label_movement, draw_scores, score_surface

__all__ = [
    "AuditRows",
    "LearnerVerdict",
    "Link",
    "Picture",
    "Section",
    "TableData",
    "draw_label_movement",
    "draw_scores",
    "draw_surfaces",
    "judge_learners",
    "rank_diagram",
    "score_surface",
    "template_environment",
    "write_audit",
    "write_comparison",
    "write_explanation",
    "write_learners",
    "write_page",
    "write_table",
]
