"""Options of commands that simulate a machine: the machine, and the output files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hybridsim.caches import CACHE_MODES
from hybridsim.cli.option import flag, option

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario

Command = TypeVar("Command", bound=Callable[..., Any])
PRESET_HELP = "Start from this whole system; `hybridsim catalog` lists them."
SCENARIO_HELP = "Scenario file: the machine to simulate (see `hybridsim scenario show`)."


def machine_options(
    kinds: Iterable[str] = (), mode: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a machine; the command gets `site_of`.

    `site_of()` is the machine that they specify.  With `kinds` of caches there are options for the
    cache, with `mode`, its help, one for the issue times of requests.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(scenario_file: str | None, settings: tuple[str, ...], **options: Any) -> Any:
            own = {name: options.pop(name) for name in added if name in options}
            return function(site_of=partial(machine, scenario_file, settings, **own), **options)

        added = ["preset"]
        result = set_option(command)
        if mode:
            added.append("mode")
            result = mode_option(mode)(result)
        if kinds:
            added += ["cache", "cache_mode"]
            result = cache_option(kinds)(cache_mode_option(result))
        result = option("--preset NAME", PRESET_HELP)(result)
        return option("--scenario FILE", SCENARIO_HELP, to="scenario_file")(result)

    return add


def cache_option(kinds: Iterable[str]) -> Callable[[Command], Command]:
    """Return a decorator that adds the option for the kind of cache."""
    text = "Kind of cache; for lvmcache: dm-cache or dm-writecache."
    return option("--cache", text, type=click.Choice(list(kinds)))


class CacheMode(click.Choice[str]):
    """A mode of caches; also as the kernel spells it: writeback, writethrough, writearound."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the mode; raise BadParameter for any other word."""
        if value.startswith("write") and "-" not in value:
            hyphened = value.replace("write", "write-", 1)
            value = hyphened if hyphened in self.choices else value
        return super().convert(value, param, ctx)


def cache_mode_option(function: Command) -> Command:
    """Add the option for the handling of writes."""
    text = "How the cache treats writes."
    return option("--cache-mode", text, type=CacheMode(CACHE_MODES))(function)


def details_option(function: Command) -> Command:
    """Add the option that prints the whole report after the first screen."""
    text = "After the first screen, print all other figures: reasons, curves and tables."
    return flag("--details", text)(function)


def mode_option(text: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the option for the issue times of requests."""
    modes = click.Choice(["auto", "open", "closed", "think"])
    return option("--mode", f"When requests are issued: {text}", type=modes)


def json_option(function: Command) -> Command:
    """Add the option that names a file for the results as JSON."""
    text = "Write all results as JSON; -: JSON on standard output instead of the report."
    return option("--json FILE", text, to="json_file")(function)


def html_option(function: Command) -> Command:
    """Add the option that names a file for the HTML report."""
    text = "Write a report with figures, as one self-contained HTML file."
    return option("--html FILE", text, to="html_file")(function)


def seeds_option(function: Command) -> Command:
    """Add the option that repeats a run with several random seeds."""
    text = "Repeat the run with N random seeds, and report means with 95% intervals."
    return option("--seeds N", text, type=click.IntRange(1, 1000))(function)


def set_option(function: Command) -> Command:
    """Add the option that sets any key of the scenario."""
    text = "Set any key of the scenario: cache.size=16GiB, backing.drive.rpm=10000.  Repeatable."
    return option("--set KEY=VALUE", text, to="settings", multiple=True)(function)  # fmt: skip


def crew_options(only: str = "", has_cluster: bool = True) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of many replays: who computes, where they are kept.

    `only` is put before each help, for a command of which these are not always options.
    """

    def text(words: str) -> str:
        return f"{only}{words[:1].lower()}{words[1:]}" if only else words

    def add(function: Command) -> Command:
        folder = text("Folder of stored results; default: hybridsim-sweep.")
        function = option("--folder DIR", folder)(function)
        if has_cluster:
            address = text("Address of a dask cluster: tcp://host:8786.")
            function = option("--scheduler ADDRESS", address)(function)
        number = text("Number of processes; default: one per core.")
        return option("--workers N", number, type=click.IntRange(1))(function)

    return add


def machine(
    scenario_file: str | None, settings: Sequence[str] = (), has_life: bool = False, **options: Any
) -> Scenario:
    """Return the machine that the options specify; `settings` are the values of `--set`.

    Raises UsageError for a scenario with events, unless the command simulates them (`has_life`).
    """
    from hybridsim.scenario import Scenario
    from hybridsim.scenario.event import check_no_events
    from hybridsim.scenario.overrides import assignments

    site = Scenario.load(scenario_file) if scenario_file else Scenario.default()
    site = site.with_options(**options)
    if not has_life:
        check_no_events(site)
    return site.with_values(assignments(settings)) if settings else site
