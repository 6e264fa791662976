"""The options that say what machine is simulated, for commands that need but a few of them."""

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


def machine(scenario_file: str | None, **options: Any) -> Scenario:
    """Return the machine that the options say."""
    from hybridsim.scenario import Scenario

    site = Scenario.load(scenario_file) if scenario_file else Scenario.default()
    return site.with_options(**options)
