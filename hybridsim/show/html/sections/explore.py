"""The command that makes a page with sliders for the report's trace and disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybridsim.foundation.printable import shell_line
from hybridsim.scenario.options import OPTIONS
from hybridsim.show.html.blocks import Block, Command, Section

GID = "explore"
TAKEN = ("mode", "preset")  # options of replay that explore has too
FREE = ("kind", "mode", "size", "policy", "admission", "replacement")  # of the cache: sliders
LEFT_OUT = ("event", "seed")
SET = "--set"
PAGE = "what-if.html"
ANY = "TRACE"


def section(document: Mapping[str, Any]) -> Section:
    """Return the command of `hybridsim explore`: one for each trace of the document."""
    inputs = document.get("inputs", {})
    scenario = inputs.get("scenario", document.get("scenario", {}))
    machine = list(_machine(scenario))
    traces = list(_traces(document))
    blocks: list[Block] = []
    for number, trace in enumerate(traces):
        page = PAGE if len(traces) == 1 else f"what-if-{number + 1}.html"
        caption = "The command" if len(traces) == 1 else trace[0]
        blocks.append(Command(caption, _command(trace, machine, page)))
    lead = (
        "One command makes a page with sliders: kind, mode and size of the cache, SSD, number of "
        "disks, load and prices. It answers at once and offline, and states its error."
    )
    if not traces:
        lead += " Put a capture of your load in the place of TRACE."
        blocks.append(Command("The command", _command([ANY], machine, PAGE)))
    return Section(GID, "What if?", blocks, lead)


def _command(trace: Sequence[str], machine: Sequence[str], page: str) -> str:
    return shell_line(["hybridsim", "explore", *trace, *machine, "-o", page])


def _traces(document: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the arguments that select each trace; those of a fleet with a use for a cache first."""
    trace = document.get("inputs", {}).get("trace", {})
    if trace.get("arguments"):
        yield list(trace["arguments"])
    for member in document.get("members", []):
        if member.get("advice"):
            yield list(member["advice"]["inputs"]["trace"]["arguments"])


def _machine(scenario: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of the scenario, without those that become sliders."""
    if scenario.get("file"):
        yield from ("--scenario", str(scenario["file"]))
    for option in scenario.get("options", []):
        word, _, value = str(option).partition(" ")
        name = word.removeprefix("--").replace("-", "_")
        if word == SET:
            table, _, key = value.partition("=")[0].partition(".")
            if not (table == "cache" and key in FREE):
                yield from (SET, value)
        elif name in TAKEN:
            yield from (word, value)
        elif name in OPTIONS and name not in LEFT_OUT:
            path = [str(each) for each in OPTIONS[name]]
            if not (path[0] == "cache" and path[-1] in FREE):
                yield from (SET, f"{'.'.join(path)}={value}")
