"""Options as `--help` shows them: names, the kind of value and the sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


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
