"""Run long work at the terminal: progress while it runs, then the report."""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybridsim.foundation.errors import RequirementError, UsageError
from hybridsim.foundation.printable import shell_line
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import span
from hybridsim.show.page import is_ascii
from hybridsim.show.screen import clear, show

if TYPE_CHECKING:
    from hybridsim.answers.requirements import Checked
    from hybridsim.answers.result import Result
    from hybridsim.cli.arguments import Outputs
    from hybridsim.scenario import Scenario
    from hybridsim.studies.estimate.estimate import Answer
    from hybridsim.studies.runs import Progress, Report
    from hybridsim.traces.trace import Trace

QUIET_S = 1.0  # shorter work shows no progress
REDRAW_S = 0.1  # at a terminal, between two states of the line
LINE_EVERY_S = 10.0  # elsewhere, between two lines


class Line:
    """A line of progress, erased at the end; not shown where there is no terminal, or in lines."""

    def __init__(self, in_lines: bool = False) -> None:
        self._is_terminal = sys.stderr.isatty()
        self.is_wanted = self._is_terminal or in_lines
        self.begun_s = time.monotonic()
        self._last_s = self.begun_s
        self._is_shown = False
        self._stage = ""

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            clear()

    def update(self, words: Callable[[], str]) -> None:
        """Show these words, if it is time."""
        now_s = time.monotonic()
        every_s = REDRAW_S if self._is_terminal else LINE_EVERY_S
        if now_s - self.begun_s <= QUIET_S or now_s - self._last_s <= every_s:
            return
        if self._is_terminal:
            self._is_shown, self._last_s = True, now_s
            show(words())
        elif self.is_wanted:
            self._last_s = now_s
            click.echo(f"{self._stage}{words()}", err=True)

    def stage(self, text: str) -> None:
        """Begin a stage of the work: a line of its own at a terminal, else the head of others."""
        if self._is_terminal:
            show(f"{text} ...")
            click.echo(err=True)
        else:
            self._stage = f"{text}: "

    def stays(self, text: str) -> None:
        """Write a line that stays, such as an error of a part of the work."""
        if self._is_shown:
            clear()
        click.echo(text, err=True)


def run(
    trace: Trace, scenario: Scenario, out: Outputs, seeds: int | None = None, **how: Any
) -> None:
    """Replay, and write the report to standard output, and JSON and HTML to files if named.

    The report is the first screen; with `details` all the rest too.  With `seeds`, the replay is
    repeated with that many seeds.  If the verdict is no, other caches are tried beside it.  `how`
    are further parameters of `replay`: the start of the cache, and what is saved.  Raises
    RequirementError if a requirement is not met.
    """
    from hybridsim.show.terminal import write
    from hybridsim.studies.others import repeated, with_others
    from hybridsim.studies.replay import replay
    from hybridsim.studies.runs import Alone

    # warm_start: a saved cache may be updated
    check_folder(how.get("save_cache"), replaces="warm_start", what="a saved cache")
    with progress() as report:
        if seeds:
            result = repeated(trace, scenario, seeds, report, **how)
        else:
            alone = Alone()
            result = replay(trace, scenario, report, alone=alone, **how)
            result = with_others(result, trace, scenario, alone, report)
    if out.html_file and scenario.cache.kind != "none":
        from hybridsim.studies.mrc import with_curve

        result = with_curve(result, trace, scenario.cache.page_bytes)
    # Files first: the reader of standard output may close it early, as `head` does.
    to_stdout = out.json_file == "-"
    if out.json_file and not to_stdout:
        write_json(result.to_dict(), out.json_file)
    if out.html_file:
        write_html(result.to_dict(), out.html_file)
    if to_stdout:
        write_json(result.to_dict(), "-")
    else:
        write(result, sys.stdout, out.details)
    check_met(result.required)


def check_met(required: Sequence[Checked]) -> None:
    """Raise RequirementError if a requirement is not met."""
    if missed := [each for each in required if not each.met]:
        words = "; ".join(f"{each.requirement.text} ({each.words})" for each in missed)
        raise RequirementError(f"not met: {words}")


def write_file(name: str, text: str) -> None:
    """Write a file and report it on standard error; raise UsageError if it cannot be written."""
    from hybridsim.foundation.writing import write_text

    write_text(name, text)
    click.echo(f"wrote {name}", err=True)


def write_json(data: dict[str, Any], name: str) -> None:
    """Write the dictionary of a result as JSON to a file, or to standard output for `-`."""
    from hybridsim.answers.result import plain

    text = json.dumps(plain(data), indent=2, allow_nan=False)
    if name == "-":
        click.echo(text)
    else:
        write_file(name, text + "\n")


def write_html(data: dict[str, Any], name: str) -> None:
    """Write the dictionary of a result as an HTML report in one file."""
    from hybridsim.show.html import of

    write_file(name, of(data, shell_line(["hybridsim", *sys.argv[1:]])))


def write_answer(answer: Any, text: Callable[[Any, bool], str], out: Outputs) -> None:
    """Print an answer as text, unless JSON goes to standard output; write files if named."""
    if out.html_file:
        write_html(answer.to_dict(), out.html_file)
    if out.json_file:
        write_json(answer.to_dict(), out.json_file)
    if out.json_file != "-":
        click.echo(text(answer, is_ascii(sys.stdout)), nl=False)


def refuse(trace: Trace, **options: Any) -> None:
    """Raise UsageError for an option that needs all requests of the time of a thinned capture."""
    assert trace.sample is not None
    for name, specified in options.items():
        if specified:
            raise UsageError(
                f"--{name.replace('_', '-')} is not answered for a thinned capture as a whole: "
                f"leave it out, or take a minute of it: {trace.sample.choices}"
            )


def estimated(ask: Callable[[Report | None], Answer], out: Outputs) -> None:
    """Answer for a thinned capture as a whole; raise RequirementError if one is not met."""
    from hybridsim.show.thinned import estimate_text

    with progress() as report:
        answer = ask(report)
    write_answer(answer, estimate_text, out)
    check_met(answer.picked.required)


BEGINNINGS = {"JSON": b"{[", "HTML": b"<", "a saved cache": b"P"}  # the first byte, one of


def check_folder(file: str | None, replaces: str = "", what: str = "") -> None:
    """Raise UsageError at the start if an output file could not be written at the end.

    An output file must not be another file of the command, such as its trace or scenario, except
    that of the parameter `replaces`.  A file that is there must be of the kind that replaces it,
    `what` of BEGINNINGS: with `replay --json a.blk b.blk`, for example, a.blk is a capture, as
    --json takes a file here and none in other commands.
    """
    if file == "" or (file and Path(file).is_dir()):
        raise UsageError(f"cannot write {file!r}: specify the name of a file")
    if file and file != "-" and not Path(file).absolute().parent.is_dir():
        raise UsageError(f"cannot write {file}: no such folder; create it first")
    if file and file != "-" and _is_named_twice(file, replaces):
        raise UsageError(
            f"cannot write {file}: the command names this file twice; specify another output file"
        )
    if file and what and Path(file).is_file():
        begins = b""
        with suppress(OSError), open(file, "rb") as opened:
            begins = opened.read(64).lstrip()[:1]
        if begins not in BEGINNINGS[what]:  # an empty file is of any kind
            raise UsageError(
                f"cannot write {file}: this file is not {what}, and would be lost; specify another "
                "output file, or remove it first"
            )


def _is_named_twice(file: str, replaces: str) -> bool:
    """Return whether several parameters of the running command name this file."""
    context = click.get_current_context(silent=True)
    values = {} if context is None else {**context.params, replaces: None}
    words = [
        word
        for value in values.values()
        for word in (value if isinstance(value, tuple) else (value,))
        if isinstance(word, str) and word
    ]
    path = os.path.realpath(file)
    return sum(os.path.realpath(word) == path for word in words) > 1


def show_so_far(result: Result) -> None:
    """Print the verdict on what has arrived of a stream as a line on standard error."""
    trace, verdict = result.trace, result.verdict
    arrived = f"{trace['requests']:,} requests in {span(trace['span_ns'])}"
    words = " ".join([f"{verdict.answer}.", *verdict.effect[:1]])
    click.echo(f"so far, {arrived}: {words}", err=True)


def note_compiling() -> None:
    """Report on standard error that the simulator is compiled once; at a terminal, how far."""
    from hybridsim.jit import compiled
    from hybridsim.jit.code_folder import is_kept

    if compiled and not is_kept("loops.run-*.nbi"):
        click.echo("first run: compiling the simulator for this machine, once ...", err=True)
        if sys.stderr.isatty():
            _watch_compiling()


@functools.cache
def _watch_compiling() -> None:
    threading.Thread(target=_show_compiling, daemon=True).start()


def _show_compiling() -> None:
    """Show what is being compiled until the process ends: the compiler itself reports nothing."""
    from hybridsim.jit.waiting import under_way

    shown = False
    while True:
        time.sleep(REDRAW_S)
        now = under_way()
        if now is not None:
            show(now.words(time.monotonic()))
        elif shown:
            clear()
        shown = now is not None


@contextmanager
def progress(line: Line | None = None, compiles: bool = True) -> Iterator[Report | None]:
    """Yield a callback that shows the progress of replays; None if nobody wants to see it."""
    if compiles:
        note_compiling()
    with line or Line() as shown:
        begun_s = shown.begun_s

        def report(now: Progress) -> None:
            nonlocal begun_s
            if not now.of_requests:
                begun_s = time.monotonic()  # the replay starts after one pass over the trace
            since_s = begun_s if now.of_requests else shown.begun_s
            shown.update(lambda: _progress_line(now, max(time.monotonic() - since_s, 1e-3)))

        yield report if shown.is_wanted else None


def reading_line(
    requests: int, read_bytes: int, of_bytes: int, passed_s: float, before: int = 0, passes: int = 1
) -> str:
    """Return the line that shows how far a trace has been read, and how long the rest may take.

    `before` of the `passes` over the trace are complete.
    """
    which = f", pass {before + 1} of {passes}" if passes > 1 else ""
    parts = [f"reading the trace{which}" + (f": {requests:,} requests" if requests else "")]
    if 0 < read_bytes < of_bytes:
        done = before * of_bytes + read_bytes
        left_s = passed_s * (passes * of_bytes - done) / done
        parts += [f"{read_bytes / of_bytes:.0%} of {human_size(of_bytes)}", f"{left_s:.0f} s to go"]
    return " · ".join(parts)


def _progress_line(now: Progress, passed_s: float) -> str:
    if not now.of_requests:
        return reading_line(now.requests, now.read_bytes, now.of_bytes, passed_s)
    left = passed_s * (now.of_requests - now.requests) / max(now.requests, 1)
    simulated = now.simulated_ns / 1e9
    what = "with the load that goes on, replayed" if now.is_later else "replayed"
    return (
        f"{what} {now.requests / now.of_requests:.0%} · {simulated:,.0f} s simulated, "
        f"{simulated / passed_s:,.0f} times real time · {left:.0f} s to go"
    )


@contextmanager
def progress_of_jobs(line: Line | None = None) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback that shows the progress of jobs, and the note about a compilation."""
    with line or Line() as shown:

        def report(done: int, now_ns: int) -> None:
            if not done:
                note_compiling()
            else:
                shown.update(lambda: f"{done:,} requests · {now_ns / 1e9:,.0f} s simulated")

        yield report
