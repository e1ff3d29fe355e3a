"""The demonstration of `lemll demo`: its data, its pictures and its pages."""

from lemll.demo.page import make_demo
from lemll.demo.pictures import draw_demo_pictures

__all__ = ["draw_demo_pictures", "make_demo"]
