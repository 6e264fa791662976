"""Answers for a thinned capture as a whole, for the commands that replay a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli.running import note_compiling, progress, write_json
from hybridsim.foundation.errors import RequirementError, UsageError

if TYPE_CHECKING:
    from hybridsim.studies.estimate.answer import Answer
    from hybridsim.studies.runs import Report
    from hybridsim.traces.trace import Trace


def refuse(trace: Trace, **options: Any) -> None:
    """Raise UsageError for an option that needs all requests of the time."""
    assert trace.sample is not None
    for name, specified in options.items():
        if specified:
            raise UsageError(
                f"--{name.replace('_', '-')} is not answered for a thinned capture as a whole: "
                f"leave it out, or take a minute of it: {trace.sample.choices}"
            )


def estimated(ask: Callable[[Report | None], Answer], json_file: str | None) -> None:
    """Ask, and print the answer; raise RequirementError if a requirement is not met."""
    from hybridsim.show.estimate import text
    from hybridsim.show.page import is_ascii

    note_compiling()
    with progress() as report:
        answer = ask(report)
    if json_file:
        write_json(answer.to_dict(), json_file)
    if json_file != "-":
        click.echo(text(answer, is_ascii(sys.stdout)), nl=False)
    of_pick = answer.require[answer.caches.index(answer.picked)]
    missed = [each for each in of_pick if not each.met]
    if missed:
        words = "; ".join(f"{each.requirement.text} ({each.words})" for each in missed)
        raise RequirementError(f"not met: {words}")
