"""Write the reference of the command line from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from lemll.cli.app import Later, app

__all__ = ["write"]


def write() -> str:
    """Return a section per command, with its options and their defaults."""
    return "\n".join(_lines("lemll", typer.main.get_command(app), 2))


def _lines(name: str, command: Any, level: int) -> Iterator[str]:
    command = command.loaded() if isinstance(command, Later) else command
    inner = getattr(command, "commands", {})
    if name != "lemll":
        yield f"{'#' * level} {name}"
        yield ""
        yield _prose(command.help or "")
        yield ""
        if not inner:
            yield from _options(name, command)
        level += 1
    for word, child in inner.items():
        yield from _lines(f"{name} {word}", child, level)


def _prose(text: str) -> str:
    """Return the help of a command; its examples are code."""
    first, marker, examples = text.partition("Example")
    if not marker:
        return first.strip()
    commands = examples.partition(":")[2].replace("\n", " ").split(";")
    lines = [" ".join(command.split()) for command in commands]
    return "\n".join([first.strip(), "", "```text", *lines, "```"])


def _options(name: str, command: Any) -> Iterator[str]:
    given = [p for p in command.params if p.param_type_name == "argument"]
    words = " ".join(str(p.metavar or p.name.upper()) for p in given)
    yield "```text"
    yield f"{name} {words} [OPTIONS]".replace("  ", " ")
    yield "```"
    yield ""
    rows = [row for p in command.params if p.name != "help" for row in _row(p)]
    if rows:
        yield "| option | default | meaning |"
        yield "|---|---|---|"
        yield from rows
        yield ""


def _row(parameter: Any) -> Iterator[str]:
    if parameter.param_type_name == "argument" or getattr(parameter, "hidden", False):
        return
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = "" if default in (None, False, ()) or callable(default) else f"`{default}`"
    shown = "required" if parameter.required else shown
    meaning = " ".join((parameter.help or "").split()).replace("|", "\\|")
    yield f"| {names} | {shown} | {meaning} |"
