"""Options of commands that simulate a machine: which one, and where the answer goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def cache_option(kinds: Iterable[str]) -> Callable[[Command], Command]:
    """Return what adds the option that says which kind of cache there is."""
    text = "The kind of cache; lvmcache sets up dm-cache, or dm-writecache."
    return click.option("--cache", type=click.Choice(list(kinds)), help=text)


def mode_option(text: str) -> Callable[[Command], Command]:
    """Return what adds the option that says when requests are issued."""
    modes = click.Choice(["auto", "open", "closed", "think"])
    return click.option("--mode", type=modes, help=f"When requests are issued: {text}")


def json_option(function: Command) -> Command:
    """Add the option that names a file for all that was found."""
    text = "Write all of it as JSON; - for stdout."
    return click.option("--json", "json_file", metavar="FILE", help=text)(function)


def html_option(function: Command) -> Command:
    """Add the option that names a file for the report with its figures."""
    text = "Write a report with figures: one HTML file that loads nothing."
    return click.option("--html", "html_file", metavar="FILE", help=text)(function)


def seeds_option(function: Command) -> Command:
    """Add the option that repeats what is left to chance."""
    text = "Repeat what is left to chance with N seeds, and tell means with 95% intervals."
    return click.option("--seeds", type=click.IntRange(1, 1000), metavar="N", help=text)(function)


def set_option(function: Command) -> Command:
    """Add the option that sets any key of the scenario."""
    text = "Set any key of the scenario: cache.size=16GiB, backing.drive.rpm=10000.  Repeat it."
    return click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help=text
    )(function)  # fmt: skip


def machine(scenario_file: str | None, settings: Sequence[str] = (), **options: Any) -> Scenario:
    """Return the machine that the options say; `settings` are those of `--set`."""
    from hybridsim.scenario import Scenario
    from hybridsim.scenario.overrides import assignments

    site = Scenario.load(scenario_file) if scenario_file else Scenario.default()
    site = site.with_options(**options)
    return site.with_values(assignments(settings)) if settings else site
