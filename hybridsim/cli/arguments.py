"""Commands, their options as `--help` shows them, and those that several commands share.

The default of each parameter of a command says which option, argument or several it takes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hybridsim.caches import CACHE_MODES, CACHES
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_time
from hybridsim.traces.formats import FORMATS, WRITTEN

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario as Scenario
    from hybridsim.traces.trace import Trace
else:
    Scenario = Any  # what `machine_options` gives a parameter; loaded when it is made

Value = TypeVar("Value")
Of = TypeVar("Of")
DISPATCH_HELP = "Use the requests as issued to the device, after merging and scheduling."


# What a default is: of the name of its parameter it makes what click takes, and a function that
# returns the parameter's value of those of all.
Taken = Callable[[str], tuple[list[click.Parameter], Callable[[dict[str, Any]], Any]]]


def command(
    *lines: str, of: Callable[..., Callable[..., Of]] = click.command, **settings: Any
) -> Callable[[Callable[..., Any]], Of]:
    """Return a decorator that makes a command with these example lines at the end of its help.

    The default of each parameter of the function is an option, an argument, or several `joined`.
    `of` is the decorator of click, or of a group.
    """

    def add(function: Callable[..., Any]) -> Of:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        options: Taken = joined(
            function, **dict(zip(names, function.__defaults__ or (), strict=True))
        )
        parameters, call = options("")

        @functools.wraps(function)
        def run(**values: Any) -> Any:
            return call(values)

        return of(epilog=examples(*lines), params=parameters, **settings)(run)

    return add


def joined(make: Callable[..., Any], **options: Any) -> Any:
    """Return options of which `make` makes the value of one parameter."""

    def taken(_: str) -> tuple[list[click.Parameter], Callable[[dict[str, Any]], Any]]:
        parts = {name: one(name) for name, one in options.items()}
        parameters = [each for some, _ in parts.values() for each in some]

        def value(values: dict[str, Any]) -> Any:
            return make(**{name: own(values) for name, (_, own) in parts.items()})

        return parameters, value

    return taken


def option(
    names: str, text: str, *default: Any, parse: Callable[[Any], Any] | None = None, **more: Any
) -> Any:
    """Return an option, such as "-o --output FILE"; a default is shown.

    With `parse` the value is what that makes of the text, if there is one.
    """
    if parse is not None:
        more["callback"] = lambda context, one, value: (
            value if value in (None, "") else value_of(one.opts[0], parse, value)
        )
    words = names.split()
    if not words[-1].startswith("-"):
        more["metavar"] = words.pop()
    if default:
        more = {"default": default[0], "show_default": True} | more
    return lambda name: ([click.Option([name, *words], help=text, **more)], itemgetter(name))


def flag(names: str, text: str, **more: Any) -> Any:
    """Return an option without a value."""
    return option(names, text, is_flag=True, **more)


def argument(metavar: str | None = None, **more: Any) -> Any:
    """Return an argument, which is needed unless it says otherwise."""
    return lambda name: ([click.Argument([name], metavar=metavar, **more)], itemgetter(name))


def value_of(option: str, parse: Callable[[str], Value], text: str) -> Value:
    """Return what `parse` makes of an option's value; raise UsageError for what it refuses."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def whole_seconds(text: str) -> int:
    """Return the whole seconds of a time, at least one."""
    return max(parse_time(text) // 10**9, 1)


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


# Of several commands.


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


def format_option(
    text: str = f"Format of the trace, if it is not detected: {', '.join(FORMATS)}.",
) -> Any:
    """Return --format and --columns, which are one value: with the latter `columns:SPEC`."""
    columns = option(
        "--columns SPEC",
        "Columns of any other table of requests: time=ts:us,offset=lba:sectors,length=bytes, and "
        "optionally op=rw:R/W, device=vol, latency=rt:ms; a column is a name or a number from 1. "
        "Or a TOML file with these keys.",
    )
    return joined(_with_columns, format=option("--format NAME", text), columns=columns)


def _with_columns(format: str | None, columns: str | None) -> str | None:
    if columns is None:
        return format
    if format not in (None, "columns", "parquet"):
        raise click.UsageError(f"--columns applies to tables only, not to --format {format}")
    return f"{format or 'columns'}:{columns}"


device_option = option(
    "--device MAJ,MIN",
    "Device of the trace (`trace info` lists them), or all: all volumes of the trace, "
    "concatenated. Default: the one with most bytes.",
)
trace_options = joined(
    Chosen,
    paths=argument("TRACE...", nargs=-1, required=True),
    format=format_option(),
    device=device_option,
    use_dispatch=flag("--use-dispatch", DISPATCH_HELP),
)
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
    type=click.Choice(WRITTEN),
)
json_option = flag("--json", "Print one JSON object.")
preset_option = option(
    "--preset NAME", "Start from this whole system; `hybridsim catalog` lists them."
)


def scenario_option(
    text: str = "Scenario file: the machine to simulate (see `hybridsim scenario show`).",
) -> Any:
    """Return the option for the file of a machine."""
    return option("--scenario FILE", text)


def machine_options(
    kinds: Iterable[str] = (), mode: str = "", scenario: Any = None, **more: Any
) -> Any:
    """Return the options of a machine, of which the parameter gets the scenario.

    With `kinds` of caches there are options for the cache, with `mode`, its help, one for the issue
    times of requests.  `scenario` is the option, or the argument, for the file, `more` are those
    of `Scenario.with_options`.
    """
    return joined(
        machine,
        scenario_file=scenario or scenario_option(),
        preset=preset_option,
        **{"cache": cache_option(kinds), "cache_mode": cache_mode_option} if kinds else {},
        **{"mode": mode_option(mode)} if mode else {},
        settings=set_option,
        **more,
    )


def cache_option(kinds: Iterable[str] = (*CACHES, "none")) -> Any:
    """Return the option for the kind of cache."""
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
    multiple=True,
)
seeds_option = option(
    "--seeds N",
    "Repeat the run with N random seeds, and report means with 95% intervals.",
    type=click.IntRange(1, 1000),
)


def mode_option(text: str) -> Any:
    """Return the option for the issue times of requests."""
    modes = click.Choice(["auto", "open", "closed", "think"])
    return option("--mode", f"When requests are issued: {text}", type=modes)


class Outputs(NamedTuple):
    """Where the answer goes: text to standard output, unless JSON goes there; files if named."""

    json_file: str | None = None
    html_file: str | None = None
    details: bool = False  # the whole report after the first screen

    @classmethod
    def checked(cls, **named: Any) -> Outputs:
        """Return these outputs; raise UsageError for a file that could not be written."""
        from hybridsim.cli.running import check_folder

        out = cls(**named)
        check_folder(out.json_file, what="JSON")
        check_folder(out.html_file, what="HTML")
        return out


OUTPUTS = {
    "details": flag(
        "--details", "After the first screen, print all other figures: reasons, curves and tables."
    ),
    "json": option(
        "--json FILE",
        "Write all results as JSON; -: JSON on standard output instead of the report.",
    ),
    "json too": option(
        "--json FILE",
        "Write the result as JSON too; -: JSON on standard output instead of the report.",
    ),
    "html": option("--html FILE", "Write a report with figures, as one self-contained HTML file."),
}


def outputs(*names: str) -> Any:
    """Return some of OUTPUTS, of which the parameter gets Outputs."""
    fields = {"json": "json_file", "json too": "json_file", "html": "html_file"}
    return joined(Outputs.checked, **{fields.get(each, each): OUTPUTS[each] for each in names})


class Crew(NamedTuple):
    """Who computes many replays, and where they are kept."""

    workers: int | None = None
    scheduler: str | None = None
    folder: str | None = None


def crew_options(only: str = "", has_cluster: bool = True) -> Any:
    """Return the options of a Crew; `only` is put before each help, where they are not always."""

    def text(words: str) -> str:
        return f"{only}{words[:1].lower()}{words[1:]}" if only else words

    number = text("Number of processes; default: one per core.")
    cluster = option("--scheduler ADDRESS", text("Address of a dask cluster: tcp://host:8786."))
    return joined(
        Crew,
        workers=option("--workers N", number, type=click.IntRange(1)),
        **{"scheduler": cluster} if has_cluster else {},
        folder=option("--folder DIR", text("Folder of stored results; default: hybridsim-sweep.")),
    )


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
