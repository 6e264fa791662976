"""`hybridsim trace record`: capture the requests of a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.running import Line
from hybridsim.cli.trace_text import duration, labelled, share, size
from hybridsim.foundation.printable import shell_word
from hybridsim.foundation.units import parse_size
from hybridsim.foundation.wording import counted

if TYPE_CHECKING:
    from hybridsim.studies.record import Prepared, Recording
    from hybridsim.studies.record_thinned import Prepared as Weeks
    from hybridsim.studies.record_thinned import Recording as WeeksRecording

SCHEMA = "hybridsim.recording/1"
THINNED = "hybridsim.weeks/1"
buffer_option = args.option(
    "--buffer SIZE", "Size of the trace buffer of each CPU.", "4MiB", parse=parse_size
)


@args.command(
    "sudo hybridsim trace record /dev/sdb",
    "sudo hybridsim trace record sdb -o monday --time 1h --buffer 16MiB",
    "sudo hybridsim trace record /dev/md0 --via tracefs",
    "sudo hybridsim trace record /dev/sdb --for 28d --max 2GB",
    "sudo hybridsim trace record /dev/sdb --for 28d --max 2GB --unit",
)
def record(
    device: str = args.argument("DEV"),
    output: str | None = args.option(
        "-o --output NAME", "Prefix of the files: NAME.blktrace.0.zst, ..."
    ),
    seconds: int = args.option(
        "--time --for TIME", "Length of the recording.", "10m", parse=args.whole_seconds
    ),
    maximum: int | None = args.option(
        "--max SIZE",
        "For weeks: record to one file, NAME.thin, of at most this size, as `trace thin` writes.",
        parse=parse_size,
    ),
    unit: bool = args.flag(
        "--unit",
        "With --max: print a systemd unit that records and goes on after a reboot; do not record.",
    ),
    via: str = args.option(
        "--via",
        "blktrace: blktrace(8); tracefs: the kernel's `blk` tracer, which also works where kernel "
        "lockdown blocks blktrace; auto: the one that works.",
        "auto",
        show_default=False,
        type=click.Choice(["auto", "blktrace", "tracefs"]),
    ),
    buffer: int = buffer_option,
    as_json: bool = args.json_option,
) -> None:
    """Record the requests of the disk DEV.

    The files are a trace that every command can read.  Nothing is written to DEV, and the settings
    of the kernel's tracing are restored.  The recording contains the queue, issue and completion
    events of requests: offsets, sizes, times, process ids; never any data.  Ctrl-C ends it early
    and keeps the events so far.  Record under the load that matters: ten minutes of the busiest
    hour are worth more than a quiet night.

    With --max, for weeks: a sample of the regions, counters of all requests by minute, and the
    worst and a typical minute of each hour in full, in a file that never exceeds that size.  A
    power cut costs the last seconds; the same command goes on with the file, until the time since
    its first start is over.

    The last line reports whether the recording is complete.  Exit code 0: it is complete, or Ctrl-C
    ended it; 3: it ended early for another reason or events are missing, all others are kept; 2:
    nothing was recorded.
    """
    if maximum is not None:
        if via == "blktrace":
            raise click.UsageError("--max records from tracefs: leave out --via blktrace")
        from hybridsim.studies import record_thinned as weeks

        lasting = weeks.prepare(device, output, seconds, maximum, buffer)
        if unit:
            click.echo(weeks.unit(lasting), nl=False)
        else:
            _record_weeks(lasting, as_json)
        return
    if unit:
        raise click.UsageError("--unit is for recordings of weeks: add --max SIZE")
    from hybridsim.studies.record import prepare
    from hybridsim.studies.record import record as run

    prepared = prepare(device, output, seconds, via, buffer)
    click.echo(plan_text(prepared), err=True)
    with Line() as line:
        recorded = run(prepared, lambda passed_s: line.update(
            lambda: f"{passed_s:,.0f} s, {max(prepared.seconds - passed_s, 0):,.0f} s to go"
        ))  # fmt: skip
    if as_json:
        args.echo_document(SCHEMA, as_object(prepared, recorded))
    else:
        click.echo(answer_text(prepared, recorded))
    if recorded.failed or lost(recorded):  # a recording that the user ended is complete
        click.get_current_context().exit(3)


def _record_weeks(prepared: Weeks, as_json: bool) -> None:
    from hybridsim.studies.record_thinned import record as run

    verb = "going on with" if prepared.goes_on else "recording to"
    plan = (
        f"{verb} {prepared.path}: {prepared.disk.path} for {duration(prepared.seconds * 1e9)} from "
        f"the first start, at most {size(prepared.max_bytes)}; Ctrl-C ends it, the same command "
        "goes on"
    )
    click.echo("\n".join([plan, *_on_itself(prepared)]), err=True)

    def words(left_s: float, so_far: WeeksRecording) -> str:
        share = so_far.cpu_seconds / max(so_far.seconds, 1e-9)
        return (
            f"{counted(so_far.requests, 'request')}, {size(so_far.bytes)}, "
            f"{so_far.rate:.3%} sampled, {share:.1%} of a core, {duration(left_s * 1e9)} to go"
        )

    with Line() as line:
        recorded = run(prepared, lambda *now: line.update(lambda: words(*now)))
    if as_json:
        args.echo_document(THINNED, recorded.to_dict())
    else:
        click.echo(weeks_text(recorded))
    if recorded.dropped_events:
        click.get_current_context().exit(3)


def _on_itself(prepared: Prepared | Weeks) -> list[str]:
    """Return the warning about a recording that is written to the recorded disk."""
    if not prepared.is_on_disk:
        return []
    return [
        f"warning: the recording is written to {prepared.disk.name} itself, and will contain "
        "its own writes: choose a place on another disk with -o"
    ]


def weeks_text(recorded: WeeksRecording) -> str:
    """Return the result of a recording of weeks and the next commands as text."""
    name = shell_word(recorded.file)
    share = recorded.cpu_seconds / max(recorded.seconds, 1e-9)
    number, long = counted(recorded.requests, "request"), duration(recorded.seconds * 1e9)
    lines = [
        ("recorded", f"{number} in {long}" + " (ended early)" * (not recorded.complete)),
        ("file", f"{recorded.file}: {size(recorded.bytes)}, {recorded.rate:.3%} of the regions"),
        ("cost", f"{share:.2%} of a core"),
        ("next", f"hybridsim trace info {name}"),
        ("", f"hybridsim mrc {name}"),
    ]  # fmt: skip
    last = "complete"
    if recorded.dropped_events:
        events = counted(recorded.dropped_events, "event")
        last = f"incomplete: dropped {events}: take a larger --buffer when going on"
    elif not recorded.complete:
        last += ": ended early, as requested; the same command goes on"
    return f"{labelled(lines)}\n{last}"


def last_line(recorded: Recording) -> str:
    """Return a line with whether the recording is complete, and if not, why."""
    missing = lost(recorded)
    why = [recorded.failed] if recorded.failed else []
    if missing:
        events = counted(missing, "event")
        why.append(
            f"dropped {events}: results will be inaccurate; record again with a larger --buffer"
        )
    if why:
        return "incomplete: " + "; ".join(why)
    return "complete" + (": ended early, as requested" if recorded.was_stopped else "")


def plan_text(prepared: Prepared) -> str:
    """Return the plan of the recording as text."""
    expected = prepared.estimate
    lines = [
        f"recording {prepared.disk.path} by {prepared.via} for "
        f"{duration(prepared.seconds * 1e9)}; Ctrl-C ends it early and keeps the events so far",
        f"currently {expected.requests_per_second:,.0f} requests per second: about "
        f"{size(expected.bytes)} before compression; {size(expected.free_bytes)} free",
    ]
    return "\n".join([*lines, *_on_itself(prepared)])


def lost(recorded: Recording) -> int:
    """Return the number of missing events, as counted by the kernel or from the records."""
    warnings = recorded.summary.warnings if recorded.summary else []
    shown = sum(each.count for each in warnings if each.code == "dropped")
    return max(recorded.dropped, shown)


def answer_text(prepared: Prepared, recorded: Recording) -> str:
    """Return the result of the recording and the next commands as text."""
    summary = recorded.summary
    if summary is None:
        none = f"no requests to {prepared.disk.path} in this time: record while it is under load"
        return f"{none}\n{last_line(recorded)}"
    first = recorded.files[0]
    lines = [
        (
            "recorded",
            f"{counted(summary.requests, 'request')} in {duration(summary.span_ns)}, "
            f"{share(summary.reads, summary.requests)} reads"
            + (" (ended early)" if recorded.was_stopped else ""),
        ),
        ("files", f"{prepared.prefix}.blktrace.*: {len(recorded.files)}, {size(recorded.bytes)}"),
        *([("by", f"{recorded.via}, as {recorded.instead_of}")] if recorded.instead_of else []),
        ("next", f"hybridsim replay {shell_word(str(first))}"),
        ("", f"hybridsim trace doctor {shell_word(str(first))}"),
    ]
    return f"{labelled(lines)}\n{last_line(recorded)}"


def as_object(prepared: Prepared, recorded: Recording) -> dict[str, Any]:
    """Return the result as a JSON object."""
    summary = recorded.summary
    return {
        "device": prepared.disk.path,
        "via": recorded.via,
        "files": [str(each) for each in recorded.files],
        "bytes": recorded.bytes,
        "requests": summary.requests if summary else 0,
        "reads": summary.reads if summary else 0,
        "span_ns": summary.span_ns if summary else 0,
        "dropped_events": lost(recorded),
        "ended_early": recorded.was_stopped or bool(recorded.failed),
        "failed": recorded.failed or None,
    }
