"""Options as `--help` shows them: names, the kind of value and the sentence; and their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from hybridsim.foundation.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])
Value = TypeVar("Value")


def option(
    names: str, text: str, *default: Any, to: str = "", **more: Any
) -> Callable[[Command], Command]:
    """Return an option: "-o --output FILE"; a default is shown.  `to` names its parameter."""
    words = names.split()
    if not words[-1].startswith("-"):
        more["metavar"] = words.pop()
    if default:
        more = {"default": default[0], "show_default": True} | more
    return click.option(*words, *filter(None, [to]), help=text, **more)


def flag(names: str, text: str, to: str = "", **more: Any) -> Callable[[Command], Command]:
    """Return an option without a value."""
    return option(names, text, to=to, is_flag=True, **more)


def value_of(option: str, parse: Callable[[str], Value], text: str) -> Value:
    """Return what `parse` makes of an option's value; raise UsageError for what it refuses."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def listed(text: str) -> list[str]:
    """Return the parts of a list that commas separate, with or without blanks."""
    return [part.strip() for part in text.split(",")]


def examples(*lines: str) -> str:
    """Return example commands as the end of a help text."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def echo_document(schema: str, document: Mapping[str, Any]) -> None:
    """Print a document as JSON; `hybridsim schema` prints the schema of that name."""
    import json

    click.echo(json.dumps({"schema": schema, **document}, indent=2))
