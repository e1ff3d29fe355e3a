"""The console of all commands."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_PIPE_WIDTH = 140
# These characters are unsafe: those that control a terminal (except tab and line feed), those that
# change the direction of writing, and lone surrogates, which cannot be encoded.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

# The options that are called by another name than the setting in Python come last.
_SAME = (
    "decimal", "delimiter", "encoding", "ignore", "labels", "learner", "learners", "measure",
    "merge", "missing", "nominal", "seconds", "sep", "sheet", "tags", "thresholds", "untagged",
)  # fmt: skip
_OPTION = {**{name: name for name in _SAME}, "ids": "id", "n_splits": "splits"}
_SETTING = re.compile(f"`({'|'.join(_OPTION)})(?:=('[^'`]*'|\"[^\"`]*\"))?`")


def safe_text(text: str) -> str:
    r"""Replace control characters by escapes, so that a name in a file cannot control the terminal.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The same text with escapes instead of control characters.

    Examples
    --------
    >>> print(safe_text("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def as_options(text: str) -> str:
    """Name the settings in a message of the library as options of the command line.

    Parameters
    ----------
    text : str
        A message, with settings such as ```sep=';'```.

    Returns
    -------
    str
        The same message, with ``--sep ';'``.

    Examples
    --------
    >>> print(as_options("pass `sep=';'`, or check `ids`"))
    pass --sep ';', or check --id
    """

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        return f"--{_OPTION[name]}" + (f" {shlex.quote(literal_eval(value))}" if value else "")

    return _SETTING.sub(option, text)


class _SafeConsole(Console):
    """A console that prints no control sequences except those of its own styles."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything; all output passes here, also tables and progress bars."""
        for segment in super().render(renderable, options):
            if segment.control or not _UNSAFE.search(segment.text):
                yield segment
            else:
                yield Segment(safe_text(segment.text), segment.style)


def make_console() -> Console:
    """Return a console that prints text unchanged: names of labels and files are not markup."""
    console = _SafeConsole(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH  # a pipe has no width, and 80 columns would wrap tables
    return console
