"""Options of commands that simulate a machine: which one, and where the answer goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario

Command = TypeVar("Command", bound=Callable[..., Any])
SCENARIO_HELP = "The machine: see `hybridsim scenario show`."


def machine_options(function: Command) -> Command:
    """Add the options that name a machine."""
    function = click.option("--preset", metavar="NAME", help="Begin from a system of the catalog.")(
        function
    )
    return click.option("--scenario", "scenario_file", metavar="FILE", help=SCENARIO_HELP)(function)


def mode_option(text: str) -> Callable[[Command], Command]:
    """Return what adds the option that says when requests are issued."""
    modes = click.Choice(["auto", "open", "closed", "think"])
    return click.option("--mode", type=modes, help=f"When requests are issued: {text}")


def json_option(function: Command) -> Command:
    """Add the option that names a file for all that was found."""
    text = "Write all of it as JSON; - for stdout."
    return click.option("--json", "json_file", metavar="FILE", help=text)(function)


def machine(scenario_file: str | None, **options: Any) -> Scenario:
    """Return the machine that the options say."""
    from hybridsim.scenario import Scenario

    site = Scenario.load(scenario_file) if scenario_file else Scenario.default()
    return site.with_options(**options)
