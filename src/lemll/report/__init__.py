"""Pictures and self-contained pages, as text or bytes. Drawing needs the extra `report`."""

from lemll.report.comparison import write_comparison, write_table
from lemll.report.demo import make_demo
from lemll.report.page import template_environment
from lemll.report.tuning import draw_label_movement, draw_scores, score_surface

__all__ = [
    "draw_label_movement",
    "draw_scores",
    "make_demo",
    "score_surface",
    "template_environment",
    "write_comparison",
    "write_table",
]
