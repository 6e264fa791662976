"""Long work at the terminal: progress while it runs, then the report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybridsim.foundation.errors import RequirementError, UsageError
from hybridsim.foundation.printable import shell_line
from hybridsim.show.screen import clear, show

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario
    from hybridsim.studies.replay import Progress, Report
    from hybridsim.traces.trace import Trace

QUIET_S = 1.0  # a replay that is over sooner shows no progress


def run(
    trace: Trace,
    scenario: Scenario,
    json_file: str | None,
    html_file: str | None,
    seeds: int | None = None,
    **how: Any,
) -> None:
    """Replay, and write the report to standard output, the JSON and the HTML where wanted.

    It is repeated with so many `seeds`.  `how` it begins and what is saved of it goes to the replay
    as it is.
    """
    from hybridsim.show import write
    from hybridsim.studies.repeated import repeated
    from hybridsim.studies.replay import replay

    for file in (json_file, html_file, how.get("save_cache")):
        check_folder(file)
    say_if_compiling()
    with progress() as report:
        if seeds:
            result = repeated(trace, scenario, seeds, report, **how)
        else:
            result = replay(trace, scenario, report, **how)
    if html_file and scenario.cache.kind != "none":
        from hybridsim.studies.what_if import with_curve

        result = with_curve(result, trace, scenario.cache.page_bytes)
    # Files first: who reads the text may go away before its end, as `head` does.
    if json_file and json_file != "-":
        write_file(json_file, result.to_json() + "\n")
    if html_file:
        write_html(result.to_dict(), html_file)
    write(result, sys.stdout, "json" if json_file == "-" else "terminal")
    missed = [each for each in result.required if not each.met]
    if missed:
        words = "; ".join(f"{each.requirement.text} ({each.words})" for each in missed)
        raise RequirementError(f"not met: {words}")


def write_file(name: str, text: str) -> None:
    """Write a file and say so; raise UsageError where that is not possible."""
    from hybridsim.foundation.writing import write_text

    write_text(name, text)
    click.echo(f"wrote {name}", err=True)


def write_json(data: dict[str, Any], name: str) -> None:
    """Write a result's dictionary as JSON to a file, or to standard output for `-`."""
    from hybridsim.answers.result import plain

    text = json.dumps(plain(data), indent=2, allow_nan=False)
    if name == "-":
        click.echo(text)
    else:
        write_file(name, text + "\n")


def write_html(data: dict[str, Any], name: str) -> None:
    """Write a result's dictionary as a report of one HTML file."""
    from hybridsim.show.html import of

    write_file(name, of(data, shell_line(["hybridsim", *sys.argv[1:]])))


def write_answer(
    found: Any,
    text: Callable[[Any, bool], str],
    json_file: str | None,
    html_file: str | None = None,
) -> None:
    """Print what was found in words, unless JSON goes there; write files where they are wanted."""
    from hybridsim.show.page import is_ascii

    if html_file:
        write_html(found.to_dict(), html_file)
    if json_file:
        write_json(found.to_dict(), json_file)
    if json_file != "-":
        click.echo(text(found, is_ascii(sys.stdout)), nl=False)


def check_folder(file: str | None) -> None:
    """Raise UsageError now for a file that could not be written at the end."""
    if file == "" or (file and Path(file).is_dir()):
        raise UsageError(f"cannot write {file!r}: name a file")
    if file and file != "-" and not Path(file).absolute().parent.is_dir():
        raise UsageError(f"cannot write {file}: there is no such folder")


def stages() -> Callable[[str], None]:
    """Return what says on standard error which step is done, if that is a terminal."""

    def say(text: str) -> None:
        if sys.stderr.isatty():
            show(f"{text} ...")
            click.echo(err=True)

    return say


def say_if_compiling() -> None:
    """Say on standard error that the first run takes a while."""
    from hybridsim.jit import cache_folder, compiled

    if compiled and not any(cache_folder().rglob("loops.run-*.nbi")):
        click.echo("first run: compiling the simulator for this machine, once ...", err=True)


@contextmanager
def progress() -> Iterator[Report | None]:
    """Show a line of progress on standard error, if that is a terminal and it takes long."""
    if not sys.stderr.isatty():
        yield None
        return
    started = begun = time.monotonic()
    shown = False

    def report(now: Progress) -> None:
        nonlocal shown, begun
        clock = time.monotonic()
        if not now.of_requests:
            begun = clock  # of the replay: when the trace has been read once
        if clock - started < QUIET_S:
            return
        shown = True
        show(_told(now, max(clock - begun, 1e-3)))

    try:
        yield report
    finally:
        if shown:
            clear()


def _told(now: Progress, passed_s: float) -> str:
    if not now.of_requests:
        return f"reading the trace: {now.requests:,} requests"
    left = passed_s * (now.of_requests - now.requests) / max(now.requests, 1)
    simulated = now.simulated_ns / 1e9
    return (
        f"replayed {now.requests / now.of_requests:.0%} · {simulated:,.0f} s simulated, "
        f"{simulated / passed_s:,.0f} times real time · {left:.0f} s to go"
    )


@contextmanager
def progress_of_jobs() -> Iterator[Callable[[int, int], None]]:
    """Say on standard error how far jobs are: of a compilation always, else at a terminal."""
    begun = time.monotonic()
    shown = False

    def tell(done: int, now_ns: int) -> None:
        nonlocal shown
        if not done:
            say_if_compiling()
        elif sys.stderr.isatty() and time.monotonic() - begun > QUIET_S:
            shown = True
            said = f"{done:,} requests · {now_ns / 1e9:,.0f} s simulated"
            show(said)

    try:
        yield tell
    finally:
        if shown:
            clear()
