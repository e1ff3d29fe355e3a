"""The console of all commands."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

__all__ = ["make_console", "safe_text"]

_PIPE_WIDTH = 140
# All but tab and line feed that a terminal obeys instead of showing it, signs that turn the
# direction of writing, and halves of characters, which cannot be written at all.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def safe_text(text: str) -> str:
    r"""Show control characters, so that no name in a file can command the terminal.

    Parameters
    ----------
    text : str
        Anything.

    Returns
    -------
    str
        The same, with escapes in their place.

    Examples
    --------
    >>> print(safe_text("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


class _SafeConsole(Console):
    """A console on which only its own styles are control sequences."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything; all that is printed goes through here, tables and progress bars too."""
        for segment in super().render(renderable, options):
            if segment.control or not _UNSAFE.search(segment.text):
                yield segment
            else:
                yield Segment(safe_text(segment.text), segment.style)


def make_console() -> Console:
    """Return a console that prints text as it is: names of labels and files are not markup."""
    console = _SafeConsole(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH  # a pipe has no width; tables must not be folded to 80 columns
    return console
