"""Label enhancement: logical labels in, numerical labels and a label distribution out."""

from lemll.enhancers._normalize import normalize
from lemll.enhancers.lemll import LEMLLEnhancer

__all__ = ["LEMLLEnhancer", "normalize"]
