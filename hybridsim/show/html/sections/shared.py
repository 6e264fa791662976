"""Sections of several documents: the trace, other sizes, What if, how to reproduce the figures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from hybridsim.foundation.printable import shell_line
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import percent, recorded
from hybridsim.scenario.options import OPTIONS
from hybridsim.show.charts.answers import miss_ratio
from hybridsim.show.charts.replay import Document, address_maps
from hybridsim.show.curve import no_knee
from hybridsim.show.html.blocks import (
    Block,
    Code,
    Command,
    CopyJson,
    KeyFigure,
    KeyFigures,
    Prose,
    Section,
    Table,
)

TAKEN = ("mode", "preset")  # options of replay that explore has too
FREE = ("kind", "mode", "size", "policy", "admission", "replacement")  # of the cache: sliders
LEFT_OUT = ("event", "seed")
SET = "--set"
PAGE = "what-if.html"
ANY = "TRACE"


def inputs_of(document: Document) -> tuple[Document, Document]:
    """Return the trace and the scenario of a document; empty ones where it has none."""
    inputs = document.get("inputs", {})
    return inputs.get("trace", {}), inputs.get("scenario", document.get("scenario", {}))


def warnings_of(document: Document) -> list[str]:
    """Return the warnings about the trace, each with what to do."""
    warnings = document.get("warnings") or []
    return [
        f"{each['text']} {each['fix'] and '(' + each['fix'] + ')'}".strip() for each in warnings
    ]


def trace(document: Document) -> Section | None:
    """Return figures of the trace, its warnings, and heat maps of its addresses."""
    about, _ = inputs_of(document)
    if not about:
        return None
    sound = (
        []
        if document.get("warnings") is None
        else ["No faults: no dropped events, all events in order."]
    )
    texts = warnings_of(document)
    lead = f"{about.get('name', '')}, read as {about.get('format', 'requests')}."
    blocks: list[Block | None] = [
        KeyFigures(list(_of_trace(about))),
        Prose(texts or sound, "note" if texts else ""),
        *address_maps(document),
    ]
    return Section("trace", "The trace", blocks, lead)


def _of_trace(trace: Document) -> Iterator[KeyFigure]:
    known = {name: trace.get(name) for name in ("requests", "reads", "writes", "span_ns")}
    if known["requests"] is not None:
        yield "requests", human_count(known["requests"]), ""
    if known["reads"] is not None and known["writes"] is not None:
        both = known["reads"] + known["writes"]
        yield "reads", percent(known["reads"] / both if both else None), ""
    if known["span_ns"] is not None:
        yield "duration", recorded(known["requests"] or 0, known["span_ns"])[1], ""
    for name, label in (
        ("footprint_bytes", "distinct data"), ("bytes_read", "read"), ("bytes_written", "written"),
        ("volume_bytes", "highest address"),
    ):  # fmt: skip
        if trace.get(name):
            yield label, human_size(trace[name]), ""
    if trace.get("incomplete") and trace["incomplete"] == trace.get("requests"):
        yield "completions", "none", "latencies unknown"
    elif trace.get("incomplete"):
        yield "without completion", human_count(trace["incomplete"]), "latency unknown"


def sizes(document: Document) -> Section | None:
    """Return the miss-ratio curve with the chosen size and the knee; None without a curve."""
    curve = document.get("miss_ratio_curve")
    if not curve or not curve["curve"]:
        return None
    chosen = (document.get("answer") or {}).get("size_bytes")
    if "answer" not in document:
        chosen = document["inputs"]["scenario"].get("cache_bytes")
    return Section("size", "Other sizes", [miss_ratio(curve, chosen)], _knee(curve))


def _knee(curve: Document) -> str:
    points = curve["curve"]
    page = human_size(curve["page_bytes"])
    basis = f"Simulated with {curve['policy'].upper()} and pages of {page}, without devices."
    why = no_knee(points[0]["miss_ratio"], points[-1]["miss_ratio"])
    if why is not None:
        return f"The curve has no knee: {why}. {basis}"
    knee = curve["knee_pages"]
    near = min(points, key=lambda each: abs(each["pages"] - knee))
    size, misses = human_size(knee * curve["page_bytes"]), percent(near["miss_ratio"])
    return f"Beyond the knee, {size} with {misses} misses, a larger cache gains little. {basis}"


def explore(document: Document) -> Section:
    """Return the command of `hybridsim explore`: one for each trace of the document."""
    machine = list(_machine(inputs_of(document)[1]))
    traces = list(_traces(document))
    lead = (
        "One command makes a page with sliders: kind, mode and size of the cache, SSD, number of "
        "disks, load and prices. It answers at once and offline, and states its error."
    )
    if not traces:
        lead += " Put a capture of your load in the place of TRACE."
        traces = [[ANY]]
    blocks = []
    for number, trace in enumerate(traces, 1):
        page, caption = PAGE, "The command"
        if len(traces) > 1:
            page, caption = f"what-if-{number}.html", trace[0]
        line = shell_line(["hybridsim", "explore", *trace, *machine, "-o", page])
        blocks.append(Command(caption, line))
    return Section("explore", "What if?", blocks, lead)


def _traces(document: Document) -> Iterator[Sequence[str]]:
    """Yield the arguments that select each trace; those of a fleet with a use for a cache first."""
    trace, _ = inputs_of(document)
    if trace.get("arguments"):
        yield trace["arguments"]
    for member in document.get("members", []):
        if member.get("advice"):
            yield member["advice"]["inputs"]["trace"]["arguments"]


def _machine(scenario: Document) -> Iterator[str]:
    """Yield the options of the scenario, without those that become sliders."""
    if scenario.get("file"):
        yield from ("--scenario", str(scenario["file"]))
    for option in scenario.get("options", []):
        word, _, value = str(option).partition(" ")
        name = word.removeprefix("--").replace("-", "_")
        if name in TAKEN:
            yield from (word, value)
            continue
        if name in OPTIONS and name not in LEFT_OUT:
            word, value = SET, f"{'.'.join(map(str, OPTIONS[name]))}={value}"
        if word == SET:
            table, _, key = value.partition("=")[0].partition(".")
            if not (table == "cache" and key in FREE):
                yield from (SET, value)


def reproduce(document: Document) -> Section:
    """Return the command, the complete scenario, versions and hashes."""
    trace, scenario = inputs_of(document)
    command = str(document.get("command") or "")
    toml = scenario.get("toml")
    rows = [["result", str(document["schema"])]]
    rows += [[name, str(value)] for name, value in document.get("tool", {}).items()]
    if toml:
        rows.append(["scenario, SHA-256", digest(toml)])
    if trace.get("requests_sha256"):
        rows.append(["requests, SHA-256", trace["requests_sha256"]])
    blocks = [
        Code("The command", command) if command else None,
        Table("Versions and hashes", ["", ""], rows),
        Code("The complete scenario, with all defaults", toml, True) if toml else None,
        CopyJson(),
    ]
    lead = "The same command gives the same figures, to the nanosecond, on any machine."
    return Section("reproduce", "How to reproduce", blocks, lead)


def digest(toml: str) -> str:
    """Return the SHA-256 of a scenario; file names in it may be other than UTF-8."""
    return hashlib.sha256(toml.encode("utf-8", "surrogateescape")).hexdigest()
