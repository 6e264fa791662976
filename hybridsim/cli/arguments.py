"""Options that several commands share: the trace, the machine, and where the answer goes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hybridsim.caches import CACHE_MODES
from hybridsim.cli.option import flag, option
from hybridsim.traces.formats import FORMATS, WRITTEN

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario
    from hybridsim.traces.trace import Trace

Command = TypeVar("Command", bound=Callable[..., Any])
PRESET_HELP = "Start from this whole system; `hybridsim catalog` lists them."
SCENARIO_HELP = "Scenario file: the machine to simulate (see `hybridsim scenario show`)."
FORMAT_HELP = f"Format of the trace, if it is not detected: {', '.join(FORMATS)}."
COLUMNS_HELP = (
    "Columns of any other table of requests: time=ts:us,offset=lba:sectors,length=bytes, and "
    "optionally op=rw:R/W, device=vol, latency=rt:ms; a column is a name or a number from 1. Or a "
    "TOML file with these keys."
)
DEVICE_HELP = (
    "Device of the trace (`trace info` lists them), or all: all volumes of the trace, "
    "concatenated. Default: the one with most bytes."
)
DISPATCH_HELP = "Use the requests as issued to the device, after merging and scheduling."
COLUMNS_KEY = "hybridsim.columns"


class Chosen(NamedTuple):
    """The trace that the arguments select, in the order of the parameters of `Trace.read`."""

    paths: tuple[str, ...]
    format: str | None
    device: str | None
    use_dispatch: bool

    def read(self) -> Trace:
        """Open it."""
        from hybridsim.traces.trace import Trace

        return Trace.read(*self)


def trace_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments that select a trace; the command gets them as `chosen`."""

    @functools.wraps(function)
    def command(**options: Any) -> Any:
        chosen = Chosen(*(options.pop(name) for name in Chosen._fields))
        return function(chosen=chosen, **options)

    added = flag("--use-dispatch", DISPATCH_HELP)(command)
    added = option("--device MAJ,MIN", DEVICE_HELP)(added)
    added = format_option("format", FORMAT_HELP)(added)
    return click.argument("paths", metavar="TRACE...", nargs=-1, required=True)(added)


require_option = option(
    "--require 'p99.warm<8ms'",
    "Requirement: a measure, one of < <= > >=, a value.  Measures: mean, max, p50, p99.9 ... "
    "(.reads or .writes), hit, busy, iops (each .warm, .cold or .whole); dwpd, years, warmup. "
    "Repeatable: all must be met.",
    multiple=True,
)
as_option = option(
    "--as",
    "Output format: csv; fio-iolog (version 3), for fio's read_iolog; msr; spc; "
    "oracle-general, in pages of 4 KiB; parquet.  Default: by the file's suffix (OUT.spc, "
    "OUT.parquet), else csv.",
    to="written",
    type=click.Choice(WRITTEN),
)


def format_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return a decorator that adds --format and --columns; both give one value: `columns:SPEC`."""

    def add(function: Command) -> Command:
        columns = option("--columns SPEC", COLUMNS_HELP, is_eager=True, expose_value=False,
                         callback=_keep_columns)  # fmt: skip
        function = columns(function)
        return option("--format NAME", text, to=name, callback=_with_columns)(function)

    return add


def _keep_columns(ctx: click.Context, parameter: click.Parameter, spec: str | None) -> None:
    ctx.meta[COLUMNS_KEY] = spec


def _with_columns(ctx: click.Context, parameter: click.Parameter, format: str | None) -> str | None:
    spec = ctx.meta.get(COLUMNS_KEY)
    if spec is None:
        return format
    if format not in (None, "columns", "parquet"):
        raise click.UsageError(f"--columns applies to tables only, not to --format {format}")
    return f"{format or 'columns'}:{spec}"


scenario_option = option("--scenario FILE", SCENARIO_HELP, to="scenario_file")


def machine_options(
    kinds: Iterable[str] = (), mode: str = "", scenario: Callable[..., Any] = scenario_option
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of a machine; the command gets `site_of`.

    `site_of()` is the machine that they specify.  With `kinds` of caches there are options for the
    cache, with `mode`, its help, one for the issue times of requests.  `scenario` adds the option,
    or the argument, for the file.
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
        added_last: Callable[..., Any] = scenario(option("--preset NAME", PRESET_HELP)(result))
        return added_last

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


cache_mode_option = option(
    "--cache-mode", "How the cache treats writes.", type=CacheMode(CACHE_MODES)
)
set_option = option(
    "--set KEY=VALUE",
    "Set any key of the scenario: cache.size=16GiB, backing.drive.rpm=10000.  Repeatable.",
    to="settings",
    multiple=True,
)
seeds_option = option(
    "--seeds N",
    "Repeat the run with N random seeds, and report means with 95% intervals.",
    type=click.IntRange(1, 1000),
)


def mode_option(text: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the option for the issue times of requests."""
    modes = click.Choice(["auto", "open", "closed", "think"])
    return option("--mode", f"When requests are issued: {text}", type=modes)


class Outputs(NamedTuple):
    """Where the answer goes: text to standard output, unless JSON goes there; files if named."""

    json_file: str | None = None
    html_file: str | None = None
    details: bool = False  # the whole report after the first screen


OUTPUTS = {
    "details": flag(
        "--details", "After the first screen, print all other figures: reasons, curves and tables."
    ),
    "json": option(
        "--json FILE",
        "Write all results as JSON; -: JSON on standard output instead of the report.",
        to="json_file",
    ),
    "json too": option(
        "--json FILE",
        "Write the result as JSON too; -: JSON on standard output instead of the report.",
        to="json_file",
    ),
    "html": option(
        "--html FILE",
        "Write a report with figures, as one self-contained HTML file.",
        to="html_file",
    ),
}


def outputs(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options of OUTPUTS; the command gets them as `out`, checked."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**options: Any) -> Any:
            from hybridsim.cli.running import check_folder

            named = {name: options.pop(name) for name in Outputs._fields if name in options}
            out = Outputs(**named)
            check_folder(out.json_file, what="JSON")
            check_folder(out.html_file, what="HTML")
            return function(out=out, **options)

        result: Callable[..., Any] = command
        for name in reversed(names):
            result = OUTPUTS[name](result)
        return result

    return add


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
    from hybridsim.scenario.origin import assignments

    site = Scenario.load(scenario_file) if scenario_file else Scenario.default()
    site = site.with_options(**options)
    if not has_life:
        check_no_events(site)
    return site.with_values(assignments(settings)) if settings else site
