"""`hybridsim trace`: inspect a trace before using it, convert, record or generate one."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.running import check_folder
from hybridsim.cli.trace_gen import gen
from hybridsim.cli.trace_record import record
from hybridsim.cli.trace_text import diagnose, doctor_text, head_text, info_text, labelled, size
from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.printable import shell_word
from hybridsim.foundation.units import (
    human_count,
    human_size,
    human_time,
    parse_percent,
    parse_size,
)
from hybridsim.foundation.wording import counted
from hybridsim.show.page import is_ascii

if TYPE_CHECKING:
    from hybridsim.studies.record_thinned import Result
    from hybridsim.studies.trace_fit import Likeness
    from hybridsim.traces.summary import Tally
    from hybridsim.traces.trace import Summary, Trace

SCHEMA = "hybridsim.trace/1"
DOCTOR = "hybridsim.doctor/1"
LIKENESS = "hybridsim.likeness/1"
THINNED = "hybridsim.thinned/1"


@click.group(
    epilog=args.examples(
        "sudo hybridsim trace record /dev/sda -o sda --time 10m",
        "hybridsim trace info sda.blktrace.0",
        "hybridsim trace doctor traces/blktrace/loop_errors",
        "hybridsim trace convert sda.blktrace.0 sda.csv.zst",
    )
)
def trace() -> None:
    """Inspect, check or convert a trace; record or generate one.

    TRACE is a file (.gz, .zst, .xz and .bz2 too), any one of blktrace's per-CPU files, their
    prefix or directory, or - for standard input; or a workload to generate, as in `trace gen`.
    """


trace.add_command(gen)
trace.add_command(record)


@args.command(
    "hybridsim trace info sda.blktrace.0",
    "hybridsim trace info --json traces/blktrace/loop_errors",
    "blktrace -d /dev/sda -o - | hybridsim trace info -",
    of=trace.command,
)
def info(chosen: args.Chosen = args.trace_options, as_json: bool = args.json_option) -> None:
    """Show a summary of a trace: requests, bytes, time span, devices.

    Of a thinned capture: totals of all requests, and load, p99 and hit ratio by hour and weekday.
    """
    from hybridsim.cli.trace_convert import with_progress
    from hybridsim.show import thinned as shown
    from hybridsim.studies.week import PASSES

    opened = chosen.read()  # once: standard input can be read once
    if not as_json and opened.sample is not None:
        with with_progress(opened, PASSES):
            text = shown.text(opened, is_ascii(sys.stdout))
        click.echo(text)
        return
    summary = counted_summary(opened)
    if as_json:
        from hybridsim.studies.week import document

        with with_progress(opened, PASSES):
            thinned = document(opened)
        args.echo_document(SCHEMA, as_object(opened, summary) | {"thinned": thinned})
    else:
        click.echo(info_text(opened, summary))


@args.command(
    "hybridsim trace doctor sda.blktrace.0",
    "hybridsim trace doctor --json traces/blktrace/loop_errors",
    of=trace.command,
)
def doctor(chosen: args.Chosen = args.trace_options, as_json: bool = args.json_option) -> None:
    """Check a trace, and report how to fix its problems.

    Exit code 0: usable, possibly with reservations; 3: it contains nothing that can be replayed.
    """
    try:
        opened = chosen.read()
        summary = counted_summary(opened)
    except TraceError as error:
        if as_json:
            args.echo_document(DOCTOR, {"verdict": "unusable", "reason": str(error)})
        else:
            click.echo(f"unusable  {error}")
        sys.exit(TraceError.exit_code)
    verdict = diagnose(summary)
    if as_json:
        args.echo_document(DOCTOR, {"verdict": verdict, **as_object(opened, summary)})
    else:
        click.echo(doctor_text(opened, summary))
    if verdict == "unusable":
        sys.exit(TraceError.exit_code)


@args.command(
    "hybridsim trace head sda.blktrace.0",
    "hybridsim trace head -n 3 traces/blktrace/loop_errors",
    of=trace.command,
)
def head(
    chosen: args.Chosen = args.trace_options,
    rows: int = args.option("-n", "Number of requests.", 10, type=click.IntRange(1)),
) -> None:
    """Show the first requests of a trace."""
    first = next(iter(chosen.read().recorded(rows)), None)
    if first is not None:
        click.echo(head_text(first.between(0, rows)))


@args.command(
    "hybridsim trace convert sda.blktrace.0 sda.csv.zst",
    "hybridsim trace convert --as fio-iolog sda.blktrace.0 sda.iolog",
    "hybridsim trace convert --columns time=1:ns,offset=3:B,length=4,op=2 sda.csv.zst -",
    "hybridsim trace convert traces/blktrace/loop_errors - | head",
    of=trace.command,
)
def convert(chosen: args.Chosen = args.trace_options, written: str | None = args.as_option) -> None:
    """Write the requests of a trace in another format.

    The last path is the output file, compressed if it ends with .gz, .zst, .xz or .bz2; - is
    standard output.  A file that is there is replaced only if it has the format written, and TRACE
    another one.

    Columns of CSV: arrival_ns,op,offset,length,dispatch_ns,complete_ns.  op is R, W, D (discard),
    F (flush) or Z (write zeroes); times are in ns since the first event, empty if unknown.
    Process ids are dropped, so think times computed from the CSV treat all requests as those of one
    process.  Other formats (--as) keep less: msr and spc keep reads and writes only;
    spc has no completion times; oracle-general has neither these nor a distinction of reads and
    writes.
    """
    from hybridsim.cli.trace_convert import convert_to

    *inputs, output = chosen.paths
    if not inputs:
        raise click.UsageError("specify a trace and the output file, or - for standard output")
    opened = chosen._replace(paths=tuple(inputs)).read()
    rows = convert_to(opened, inputs, output, written)
    if output != "-":
        click.echo(f"{output}: {counted(rows, 'request')}")


def counted_summary(opened: Trace) -> Summary:
    """Read a trace once, with its progress, and return its summary."""
    from hybridsim.cli.trace_convert import with_progress

    with with_progress(opened) as counted:
        return opened.summary_of_recorded(counted)


def as_object(opened: Trace, summary: Summary) -> dict[str, Any]:
    """Return the facts of a trace as a JSON object; null where the trace has none."""
    about = {"name": opened.name, "format": opened.format, "origin_unix_ns": opened.origin}
    figures = asdict(summary)
    for name in ("address_map", "recorded"):  # for the report of a replay, not figures
        del figures[name]
    return about | figures


@args.command(
    "hybridsim trace fit sda.blktrace.0 -o sda.toml",
    "hybridsim trace fit traces/demo/rocksdb_mixgraph.blktrace.0.zst",
    of=trace.command,
)
def fit(
    chosen: args.Chosen = args.trace_options,
    output: str | None = args.option("-o --output FILE", "Write the stand-in, a workload in TOML."),
    seed: int = args.option("--seed", "Random seed of the stand-in.", 1, type=click.IntRange(0)),
    no_check: bool = args.flag("--no-check", "Do not compare the stand-in with the capture."),
    as_json: bool = args.json_option,
) -> None:
    """Fit a stand-in for TRACE: a synthetic workload.

    The stand-in can be shared: it contains distributions, but no addresses and no times of TRACE.
    Every command that reads a trace accepts its file, and generates requests with about the cache
    hits and misses of TRACE.  A comparison is printed: misses of LRU caches of several sizes and
    page sizes, the hit ratio over time, request sizes and directions.  A stand-in has no think
    times: replay it with --mode open or --mode closed.
    """
    from hybridsim.foundation.writing import write_text
    from hybridsim.studies.trace_fit import fit

    check_folder(output)
    captured = chosen.read()
    fitted = fit(captured, seed, not no_check)
    if fitted.likeness and as_json:
        args.echo_document(LIKENESS, {"trace": captured.name, **fitted.likeness.to_dict()})
    elif fitted.likeness:
        click.echo(likeness_text(fitted.likeness))
    if output:
        write_text(output, fitted.to_toml(seed))
        click.echo(f"wrote {output}: its first lines list what it reveals", err=True)


def likeness_text(likeness: Likeness) -> str:
    """Return the comparison as a report for a terminal."""
    from hybridsim.studies.trace_fit import SHARES

    lines = [f"{'':14}{'capture':>12}{'stand-in':>12}"]
    columns = _figures(likeness.capture), _figures(likeness.stand_in)
    lines += [f"{name:14}{columns[0][name]:>12}{columns[1][name]:>12}" for name in columns[0]]
    shares = "".join(f"{share:>7.0%}" for share in SHARES)
    lines += ["", "LRU misses in %, by cache size as a share of the data; difference in points"]
    lines += [f"{'page':>7}{'':11}{shares}  difference"]
    for each in likeness.curves:
        first, second = (
            "".join(f"{ratio * 100:>7.1f}" for ratio in row)
            for row in (each.capture, each.stand_in)
        )
        lines.append(f"{each.page:>7}  {'capture':>9}{first}")
        difference = f"{each.mean * 100:.1f}, at most {each.largest * 100:.1f}"
        lines.append(f"{'':7}  {'stand-in':>9}{second}  {difference}")
    warm = [_warm(each) for each in likeness.warm_ups]
    lines += [
        "",
        "warm-up of LRU, 10% of the data, 64 KiB pages: the hit ratios over time differ by",
        f"{likeness.hits_apart * 100:.1f} points;",
        f"90% warm after {warm[0]} of the accesses in the capture, {warm[1]} in the stand-in",
    ]
    return "\n".join(lines)


def _warm(warm_up: Any) -> str:
    from hybridsim.studies.trace_fit import BINS

    if not warm_up.steady:
        return f"{warm_up.state} at the end"
    return f"{warm_up.reached_ns.get(90, 0) / BINS:.0%}"


def _figures(tally: Tally) -> dict[str, str]:
    from hybridsim.foundation.codes import Op

    reads, writes = (tally.count[op] for op in (Op.READ, Op.WRITE))
    sequential = sum(tally.sequential.values()) / max(reads + writes, 1)
    return {
        "requests": human_count(tally.requests),
        "time": human_time(tally.span_ns),
        "reads": human_count(reads),
        "mean read": human_size(tally.bytes[Op.READ] / max(reads, 1)),
        "writes": human_count(writes),
        "mean write": human_size(tally.bytes[Op.WRITE] / max(writes, 1)),
        "flushes": human_count(tally.count[Op.FLUSH]),
        "sequential": f"{sequential:.0%}",
        "touched": human_size(tally.footprint.bytes),
        "highest offset": human_size(tally.max_end_bytes),
    }


@args.command(
    "hybridsim trace thin sda.blktrace.0 -o sda.thin --max 2GB",
    "hybridsim trace thin sda.blktrace.0 -o sda.thin --rate 10% --region 64KiB --json",
    of=trace.command,
)
def thin(
    chosen: args.Chosen = args.trace_options,
    output: str = args.option("-o --output OUT", "The file to write.", required=True),
    maximum: int | None = args.option(
        "--max SIZE",
        "Maximum size of the file, also while it is written: the rate falls as it fills.",
        parse=parse_size,
    ),
    rate: Any = args.option(
        "--rate SHARE",
        "Share of the regions to sample at the start.  Default: 100%.",
        parse=parse_percent,
    ),
    region: int = args.option(
        "--region SIZE",
        "Regions that are sampled as a whole.  Smaller ones give smaller errors; a region must be "
        "at least as large as the cache's pages.",
        "1MiB",
        parse=parse_size,
    ),
    seed: int = args.option("--seed", "Another seed samples other regions.", 0),
    as_json: bool = args.json_option,
) -> None:
    """Thin TRACE: weeks of requests in a file of limited size.

    OUT keeps every request to a sample of the regions, counters and histograms of all requests by
    minute, and for each hour the requests of its worst minute and of a typical one in full.  mrc
    and hits read it as any other trace and state the error of the sample; with --device worst,
    --device typical or a time, every command reads the requests of that minute.  The same trace and
    options give the same file.
    """
    from hybridsim.cli.trace_convert import check_replaced, with_progress
    from hybridsim.studies.record_thinned import thin as run
    from hybridsim.traces.thinned.thinner import Settings

    if maximum is None and rate is None:
        raise click.UsageError("specify --max SIZE, --rate SHARE or both")
    if output == "-":
        raise click.UsageError("-o -: a thinned capture is rewritten as it fills: name a file")
    opened = chosen.read()
    check_replaced(output, "thinned", opened.format)
    device = next((each.name for each in opened.devices if each.chosen), "")
    share = 1.0 if rate is None else float(rate)
    settings = Settings(
        device, region_bytes=region, max_bytes=maximum, rate=share, seed=seed, source=opened.name
    )
    with with_progress(opened) as counted:
        result = run(opened, output, settings, counted)
    if as_json:
        facts = asdict(result)
        args.echo_document(THINNED, {"file": facts.pop("path"), **facts})
    else:
        click.echo(thinned_text(result))


def thinned_text(result: Result) -> str:
    """Return the result and the next commands as text."""
    name = shell_word(result.path)
    per = f", {result.bytes / result.requests:.2f} bytes a request" if result.requests else ""
    lines = [
        ("thinned", f"{counted(result.requests, 'request')} to {size(result.bytes)}{per}"),
        ("sample", f"{result.rate:.3%} of the regions"),
        ("in full", counted(result.stretches, "minute")),
        ("next", f"hybridsim trace info {name}"),
        ("", f"hybridsim mrc {name}"),
        ("", f"hybridsim replay {name} --device worst"),
    ]
    return labelled(lines)
