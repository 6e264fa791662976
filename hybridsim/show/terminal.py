"""The report of a replay on a terminal: the first screen; with `details` all other figures.

The first screen is 24 lines of 80 columns: verdict, gain, cost, risks, assumptions.  Each of these
is a list of sentences, the most important first.  If they do not fit, the last sentence of the
longest list is dropped, repeatedly; the first sentence of each list always stays.
"""

from __future__ import annotations

import io
import os
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import TextIO

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from hybridsim.answers.advice.alternatives import KEEPS_WRITES
from hybridsim.answers.dirt import Dirt
from hybridsim.answers.forecast import YES
from hybridsim.answers.life import Beginning
from hybridsim.answers.outcome import Phase
from hybridsim.answers.requirements import Checked
from hybridsim.answers.result import Result
from hybridsim.answers.verdict import APART, SHORTEST_NS, Step
from hybridsim.answers.warmup import State, WarmUp
from hybridsim.foundation.explain import REASONS
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_count, human_rate, human_size
from hybridsim.foundation.wording import (
    NONE,
    answered,
    counted,
    lasting,
    latency,
    money,
    of_the_mean,
    percent,
    ranged,
    ranged_money,
    ranged_size,
    recorded,
    span,
)
from hybridsim.show.curve import axis, draw
from hybridsim.show.events import sentences
from hybridsim.show.page import (
    GLUE,
    LIKELY,
    MARGIN,
    MET,
    MISSED,
    SCREEN,
    after,
    in_ascii,
    is_ascii,
    joined,
    labelled,
    mark,
    table,
    unbroken,
)
from hybridsim.show.screen import NARROWEST, steer
from hybridsim.show.screen import width as width_of

Rows = Iterator[tuple[str, str]]  # label and text
# All labels of figures; `hybridsim explain` has an entry for each.
SAME = """
trace event verdict gain risks assumed reasons required interval reads writes number hit
mean p50 p99 max busy cold warm before blocks usage requests fill bcache cost controller
rebuild model notes next
"""
LABELS = {word: word for word in SAME.split()} | {
    "site": "machine",
    "warm_up": "warm-up",
    "warm_start": "warm start",
    "hit_ratio": "hit ratio",
    "iops": "IOPS",
    "p999": "p99.9",
    "none": "no cache",
    "cached": "with cache",
    "last_fifth": "at the end",
    "misses": "not from SSD",
    "page_hits": "page hits",
    "write_back": "write-back",
    "metadata_ram": "RAM",
    "writecache": "write cache",
    "wear": "SSD writes",
    "disk_time": "disk time",
    "volume_time": "volume time",
    "iops_limit": "IOPS limit",
    "bandwidth_limit": "bandwidth limit",
}
COLOURS = {"yes": "bold green", "no": "bold red", "unsure": "bold yellow"}
MODES = {"open": "open loop", "closed": "closed loop", "think": "think time"}
WIDEST = 110
ROOM = 78  # minimum width of the table with all figures in one row
FIGURES = ("number", "hit", "mean", "p50", "p99", "p999", "max", "busy")
PLOT_HEIGHT = 6
LINES_NARROW = 40  # limit below WIDE columns, where each label takes a line
WIDE = 60
LONGEST_SENTENCE = 4  # lines
LONGEST_NAME = 40  # characters
ROOMY = 2  # times what it ever held: a cache for which a smaller one is suggested
SHORT_LIFE_YEARS = 5.0  # the usual warranty of an SSD
PLAIN = {LABELS["warm"], LABELS["cached"], LABELS["last_fifth"]}  # rows that are not dim
LOADS = {
    "open": "Requests arrive at their recorded times.",
    "closed": "A fixed number of requests is outstanding; recorded times are ignored.",
    "think": "Each request waits for the same earlier requests as in the recording.",
}


def write(result: Result, stream: TextIO, details: bool = False) -> None:
    """Write the report with the width, colours and characters that the stream supports."""
    is_terminal = stream.isatty()
    colour = is_terminal and not os.environ.get("NO_COLOR")
    steer(render(result, width_of(stream), is_ascii(stream), colour, details), stream)


def render(
    result: Result,
    width: int = 80,
    ascii_only: bool = False,
    colour: bool = False,
    details: bool = False,
) -> str:
    """Return the report as text: the first screen; with `details` also all other figures."""
    width = max(min(width, WIDEST), NARROWEST)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    system = console._color_system
    parts = console.render(Group(*_sections(result, width, ascii_only, details)))
    # Only styles produce terminal codes: control characters in names and labels are escaped.
    whole = "".join(
        (part.style or Style()).render(printable(part.text, "\n" + GLUE), color_system=system)
        for part in parts
    ).replace(GLUE, " ")
    lines = "\n".join(line.rstrip() for line in whole.splitlines()) + "\n"
    return in_ascii(lines) if ascii_only else lines


def _sections(
    result: Result, width: int, ascii_only: bool, details: bool
) -> Iterator[RenderableType]:
    yield from _first_screen(result, width)
    if result.events:
        happened = (" ".join(sentences(each.to_dict(), result._kind)) for each in result.events)
        yield ""
        yield _lines([(LABELS["event"], words) for words in happened], width)
    if not details:
        return
    yield ""
    yield _lines(_trace(result) + _site(result), width)
    yield ""
    if result.verdict.reasons:
        yield _lines(labelled(LABELS["reasons"], map(unbroken, result.verdict.reasons)), width)
    if result.required:
        yield _lines(required(result.required), width)
    yield ""
    if len(result.warm_up.times_ns) > 1 and rows(result):
        yield from _curve(result, width, ascii_only)
        yield ""
    yield _table(result) if width >= ROOM else _narrow(result, width)
    if rows(result):
        same = "the same disks without the cache; same requests as in the last row"
        yield Text(f"{LABELS['none']}: {same}", "dim")
    if result.phases["none"].saturated or any(phase.saturated for _, phase in rows(result)):
        yield Text(
            "Latencies of a saturated machine are not shown: hybridsim explain saturated", "dim"
        )
    yield ""
    yield _lines(findings(result) + model_error(result), width)
    yield ""
    warnings = (f"⚠ {one.text}{f' ({one.fix})' if one.fix else ''}" for one in result.warnings)
    yield _lines(labelled(LABELS["notes"], warnings), width)
    yield from _next(result, width)


def _lines(rows: list[tuple[str, str]], width: int) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(style="bold", no_wrap=True, min_width=12)
    grid.add_column(overflow="fold")
    for label, text in rows:
        # A part that is longer than a line may break between words.
        whole = re.sub(
            rf"[^ ]{{{width - MARGIN},}}", lambda long: long[0].replace(GLUE, " "),
            printable(text, GLUE),
        )  # fmt: skip
        grid.add_row(label, whole)
    return grid


def required(checked: list[Checked]) -> list[tuple[str, str]]:
    """Return the requirements, each with the measured value."""
    texts = (
        f"{mark(each.met, each.is_sure)} {each.requirement.text}: {each.ranged}" for each in checked
    )
    return labelled(LABELS["required"], texts)


def _trace(result: Result) -> list[tuple[str, str]]:
    parts = [str(result.trace.get("name", "")), *_load(result)]
    if result.trace.get("footprint_bytes"):
        parts.append(f"touches {human_size(result.trace['footprint_bytes'])}")
    rows = [(LABELS["trace"], joined(parts))]
    if result.warnings:
        warnings = counted(len(result.warnings), "warning")
        rows.append(("", f"⚠ {warnings}: see `{LABELS['notes']}`"))
    return rows


def _load(result: Result) -> list[str]:
    """Return how many requests there were, in which time, and how many of them read."""
    figures = result.cached.whole.figures
    both = figures.reads.count + figures.writes.count
    return [
        *recorded(figures.requests, result.trace.get("span_ns", result.cached.end_ns)),
        f"{percent(figures.reads.count / both if both else None)} reads",
    ]


def model_error(result: Result) -> list[tuple[str, str]]:
    """Return the intervals of the model's error, and one sentence of what they cover."""
    found = result.model_error
    if found is None:
        return []
    if not found.figures:
        return [(LABELS["interval"], f"none for the model's error: {found.why_not}")]
    forms = {"iops": "{:,.0f}".format, "hit_ratio": percent}
    shown = []
    for name, ends in found.figures.items():
        figure = name.removeprefix("steady_")
        word = f"{'steady ' * (figure != name)}{LABELS.get(figure, figure)}"
        value, low, high = map(forms.get(figure, human_count), ends)
        shown.append(f"{word} {value} ({low} to {high})")
    return [(LABELS["interval"], joined(shown)), ("", found.covers or "")]


def _site(result: Result) -> list[tuple[str, str]]:
    mode = str(result.scenario.get("mode", "open"))
    run = f"{MODES.get(mode, mode)} · engine {result.engine} · seed {result.seed}"
    summary = result.scenario.get("summary")
    return [(LABELS["site"], str(summary)), ("", run)] if summary else [(LABELS["site"], run)]


def _first_screen(result: Result, width: int) -> Iterator[Text]:
    style = COLOURS[result.verdict.answer]
    for row, line in enumerate(_screen(result, width)):
        shown = Text(line, no_wrap=True, overflow="ignore")
        label = re.match(r"[A-Za-z]+", line)
        if label:
            shown.stylize(style if row == 0 else "bold", 0, label.end())
        yield shown


def _curve(result: Result, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    warm_up = result.warm_up
    end = result.cached.end_ns
    is_ratio = warm_up.measure == "hit ratio"
    top = 1.0 if is_ratio else float(np.max(warm_up.smooth)) or 1.0
    labels = ["100%", "50%", "0%"] if is_ratio else [human_count(top), human_count(top / 2), "0"]
    margin = max(len(label) for label in labels) + 1
    plot = min(width, WIDEST) - margin - 1
    middles = warm_up.times_ns.astype(np.float64) + warm_up.bin_ns / 2
    lines = draw(middles, warm_up.smooth, end, top, plot, PLOT_HEIGHT, ascii_only)
    beside = {0: labels[0], PLOT_HEIGHT // 2: labels[1], PLOT_HEIGHT - 1: labels[2]}
    yield Text(LABELS["hit_ratio"] if is_ratio else LABELS["iops"], "bold")
    for row, line in enumerate(lines):
        yield Text.assemble(f"{beside.get(row, ''):>{margin - 1}} ", (line, "cyan"))
    mark, share = "", 0.0
    if warm_up.state == State.STEADY:
        mark, share = f"▲ {LABELS['warm']}", warm_up.warm_ns / end
    yield Text(" " * margin + axis(span(end), plot, mark, share), "dim")
    yield _lines([(LABELS["warm_up"], _warm_up(result))], width)


def _warm_up(result: Result) -> str:
    warm_up = result.warm_up
    if warm_up.state == State.STEADY:
        parts = [f"{share}% {after(time)}" for share, time in warm_up.reached_ns.items()]
        known = result.warm_interval
        if known is not None and warm_up.warm_ns:
            parts[1] = f"90% after {ranged(known.value, known.low, known.high)}"
        level = warm_up.level or 0.0
        steady = percent(level) if warm_up.measure == "hit ratio" else f"{human_count(level)} IOPS"
        parts.append(f"steady at {steady}")
    elif warm_up.state == State.FLAT:
        parts = [f"none: {warm_up.why}"]
    else:
        parts = [f"not steady yet: {warm_up.why}"]
    full = _full_ns(result)
    if full is not None:
        parts.append(f"SSD full {after(full)}")
    parts.append(f"bins of {span(warm_up.bin_ns)}")
    return joined(parts)


def _full_ns(result: Result) -> int | None:
    """Return the first time at which the cache was 99% full; None if never, or unknown."""
    capacity = result.scenario.get("cache_pages")
    present = result.cached.series().occupancy_pages
    if not capacity or not present or present[0] is None:
        return None
    full = np.flatnonzero(np.array(present) >= 0.99 * capacity)
    return (int(full[0]) + 1) * result.cached.collector.width_ns if len(full) else None


def _table(result: Result) -> Table:
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", expand=True)
    grid.add_column(LABELS["reads"], no_wrap=True, min_width=14, ratio=2)
    for name in FIGURES:
        grid.add_column(LABELS[name], justify="right", no_wrap=True, ratio=1)
    for what, figures in _figures(result):
        if what == "writes":
            grid.add_row(Text(LABELS[what], "bold"))
        for label, *cells in figures:
            grid.add_row(label, *cells, style="" if label in PLAIN else "dim")
    return grid


def _narrow(result: Result, width: int) -> Text:
    """Return the table for a narrow screen: one row per figure, one column per phase."""
    lines: list[str] = []
    for what, figures in _figures(result):
        columns = [[LABELS[what], *(LABELS[name] for name in FIGURES)], *figures]
        kept = [row for row in zip(*columns) if any(row[1:])]
        lines += table(kept[0], kept[1:], room=width)
    return Text("\n".join(lines))


def _figures(result: Result) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield "reads", and "writes" if there are any, each with a row for each phase."""
    alone = result.phases["none"]
    shown = [(LABELS["none"], alone), *rows(result)]
    hits = [NONE if phase is alone else percent(phase.figures.hit_ratio) for _, phase in shown]
    yield "reads", [[label, *_cells(phase, phase.figures.reads, hit)]
                    for (label, phase), hit in zip(shown, hits)]  # fmt: skip
    if result.cached.whole.figures.writes.count:
        yield "writes", [[label, *_cells(phase, phase.figures.writes, "")]
                         for label, phase in shown]  # fmt: skip


def _cells(phase: Phase, requests: Distribution, hit: str) -> list[str]:
    figures = [requests.mean_ns, *(requests.percentile(p) for p in (50, 99, 99.9))]
    maximum = requests.max_ns if requests.count else None
    shown = [NONE] * 5 if phase.saturated else [latency(one) for one in [*figures, maximum]]
    busy = percent(phase.utilisation) if hit else ""
    return [human_count(requests.count), hit, *shown, busy]


def _next(result: Result, width: int) -> Iterator[RenderableType]:
    """Yield the next steps; each command is on one unwrapped line, to be copied."""
    label = LABELS["next"]
    for advice in result.verdict.advice:
        yield _lines([(label, advice.text)], width)
        label = ""
        if advice.command:
            yield Text(" " * 15 + advice.command, no_wrap=True, overflow="ignore")
    yield _lines([(label, "Meaning of a term: hybridsim explain WORD")], width)


# The first screen.


def _screen(result: Result, width: int) -> list[str]:
    """Return the lines of the screen, without colour; GLUE is a space that does not break."""
    answers = [
        (LABELS["verdict"].upper(), _what_to_do(result)),
        (LABELS["gain"], list(result.verdict.effect)),
        (LABELS["cost"], list(_costs(result))),
        (LABELS["risks"], list(_risks(result))),
        (LABELS["assumed"], list(_assumed(result))),
        (LABELS["next"], ["Add --details for all figures; hybridsim explain WORD for a term."]),
    ]
    answers = [(label, sentences) for label, sentences in answers if sentences]
    step = _step(result)
    command = "  " + printable(step.command) if step is not None and step.command else ""
    limit = SCREEN if width >= WIDE else LINES_NARROW
    while True:
        lines = [_paragraph(label, sentences, width) for label, sentences in answers]
        if command:
            lines[0].append(command)
        used = sum(map(len, lines)) + (-(-len(command) // width) - 1 if command else 0)
        longest = max(answers, key=lambda one: (len(one[1]) > 1, len(" ".join(one[1]))))[1]
        if used <= limit or (len(longest) <= 1 and not command):
            break
        if len(longest) > 1:
            longest.pop()
        else:
            command = ""
    gaps = limit - used >= len(lines) - 1
    screen: list[str] = []
    for number, part in enumerate(lines):
        screen += [""] * bool(gaps and number) + part
    return screen


def _paragraph(label: str, sentences: list[str], width: int) -> list[str]:
    room = width - MARGIN if width >= WIDE else width
    lines: list[str] = []
    text = ""
    for sentence in sentences:
        cut = printable(sentence, GLUE)
        if len(cut) > LONGEST_SENTENCE * room:
            cut = cut[: LONGEST_SENTENCE * room - 15].rstrip() + " ... (--details)"
        text += (" " if text else "") + unbroken(cut)
    lines = textwrap.wrap(text, room, break_on_hyphens=False)
    if width < WIDE:
        return [label.upper(), *lines]
    return [f"{label if not row else '':<{MARGIN}}{line}" for row, line in enumerate(lines)]


def _what_to_do(result: Result) -> list[str]:
    verdict = result.verdict
    missed = [each for each in result.required if not each.met]
    answer = answered(verdict.answer, verdict.is_certain)
    if missed and verdict.answer == YES:
        answer = "Not as required. Apart from that: yes."
    if verdict.condition:
        answer = f"{answer[:-1]}, {verdict.condition}."
    sentences = [f"{answer} {verdict.action}"]
    sentences += [f"{MISSED} required: {each.requirement.text}: {each.words}." for each in missed]
    sentences += [
        f"{LIKELY} Perhaps met: {each.requirement.text}: {each.ranged}."
        for each in result.required
        if each.met and not each.is_sure
    ]
    if result.required and all(each.is_sure for each in result.required):
        number = len(result.required)
        met = result.required[0].requirement.text if number == 1 else f"all {number} requirements"
        sentences.append(f"{MET} Met: {met}.")
    step = _step(result)
    return sentences if step is None else [*sentences, step.text]


def _step(result: Result) -> Step | None:
    """Return the first recommended step, unless the answer is yes for sure."""
    verdict = result.verdict
    is_done = verdict.answer == YES and verdict.is_certain
    return verdict.advice[0] if verdict.advice and not is_done else None


def _costs(result: Result) -> Iterator[str]:
    if not rows(result):
        return
    cost = result.cost
    of = "that"
    if cost is None or cost["ssds_cost"] is None:
        of = "the SSD"
        yield "The price is unknown: specify [price] in a scenario."
    else:
        source = "the scenario" if cost["is_own"] else "the catalog"
        mirrored = ", mirrored" * (result.scenario.get("cache_mode") in KEEPS_WRITES)
        yield (
            f"{money(cost['ssds_cost'], cost['price']['currency'])} for {cost['ssds']} of "
            f"SSD{mirrored} (prices of {source}, {cost['price']['date']})."
        )
    size = result.scenario.get("cache_bytes")
    if size:
        held = _most_held_bytes(result)
        hint = ""
        is_used = result.verdict.answer == YES and not result.verdict.condition
        later = result.judgement.forecast
        fills = later is not None and later.trend >= APART  # as the forecast says then
        if is_used and not fills and held is not None and held * ROOMY <= size:
            hint = f"; it held {human_size(held)} at most, so a smaller one may do as well"
        yield f"The cache uses {human_size(size)} of {of}{hint}."
    if result.warm_up.steady and result.warm_up.warm_ns:
        known = result.warm_interval
        warm = ranged(known.value, known.low, known.high) if known else span(result.warm_up.warm_ns)
        yield f"It takes {warm} to warm up."
    if (years := _years(result)) is not None:
        yield f"It writes {per_day(result)} a day to the SSD: rated life {lasting(years)}."


def _most_held_bytes(result: Result) -> int | None:
    """Return how much the cache ever held; None if unknown."""
    present = result.cached.counters
    pages = result.scenario.get("cache_pages")
    if not pages or "pages_present" not in present:
        return None
    most = int(present["pages_present"].max())
    return most * int(result.scenario["cache_bytes"]) // int(pages)


def _years(result: Result) -> float | None:
    """Return the life of the SSD, if the run is long enough to extrapolate to years."""
    is_long = result.phases["whole"].span_ns >= SHORTEST_NS
    return result.wear.years if result.wear and is_long else None


def _risks(result: Result) -> Iterator[str]:
    number = len(result.warnings)
    if number:
        more = f" ({number - 1} more with --details)" if number > 1 else ""
        yield f"⚠ {result.warnings[0].text.rstrip('.')}{more}."
    if (years := _years(result)) is not None and years < SHORT_LIFE_YEARS:
        yield f"The SSD wears out in {lasting(years)}."
    if rows(result):
        seen = span(result.trace.get("span_ns", result.cached.end_ns))
        if result.judgement.forecast is None:
            yield f"The interval is of these {seen} only, not a forecast."
        else:
            yield f"The forecast assumes a load as in these {seen}."
    yield from result.verdict.risks


def _assumed(result: Result) -> Iterator[str]:
    scenario = result.scenario
    half = LONGEST_NAME // 2 - 2
    name = str(result.trace.get("name", "the trace"))
    if len(name) > LONGEST_NAME:
        name = f"{name[:half]}...{name[-half:]}"
    requests, seconds, reads = _load(result)
    yield f"{name}: {requests} in {seconds}, {reads}."
    array = str(scenario.get("summary", "")).partition("; cache")[0]
    if array:
        yield f"Disks: {array}."
    yield LOADS.get(str(scenario.get("mode", "open")), "")
    yield from result.verdict.basis


# Additional results for `--details`, one line each.


def rows(result: Result) -> list[tuple[str, Phase]]:
    """Return label and figures of each phase with the cache; nothing if there is no cache."""
    if not result._has_cache:
        return []
    cold, warm = result.phases["cold"], result.phases["warm"]
    state = result.warm_up.state
    if state == State.FLAT or not cold.span_ns:
        return [(LABELS["cached"], warm)]
    border = span(cold.figures.end_ns)
    if state == State.STEADY:
        return [(f"{LABELS['cold']} < {border}", cold), (LABELS["warm"], warm)]
    return [(f"{LABELS['before']} {border}", cold), (LABELS["last_fifth"], warm)]


def findings(result: Result) -> list[tuple[str, str]]:
    """Return (label, text) of each result, the most important first."""
    finders = (
        _iops,
        _warm_start,
        _misses,
        _activity,
        _wear,
        _cost,
        _disk_time,
        _controller,
        _rebuild,
        _model,
    )
    return [row for finder in finders for row in finder(result)]


def _iops(result: Result) -> Rows:
    """Yield the throughput, unless the trace determines it (mode open)."""
    if result.scenario.get("mode", "open") == "open":
        return
    shown = [(LABELS["none"], result.phases["none"]), *rows(result)]
    iops = (f"{label} {human_count(phase.iops or 0)}" for label, phase in shown)
    yield LABELS["iops"], joined(iops)


def _misses(result: Result) -> Rows:
    phase = result.phases["warm"]
    reasons = phase.figures.read_reasons
    if not reasons or not rows(result):
        return
    missed = percent(phase.share_of_reads(sum(reasons.values())))
    when = rows(result)[-1][0]
    parts = [
        f"{REASONS[reason]} {percent(phase.share_of_reads(number))}"
        for reason, number in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    ]
    yield LABELS["misses"], f"{missed} of the reads ({when}): " + joined(parts)
    pages, (units, _) = percent(phase.figures.page_hit_ratio), _kind(result)
    yield LABELS["page_hits"], f"{pages} of the {units} that reads touch ({when})"


def per_day(result: Result) -> str:
    """Return the bytes written to the SSDs per day, with their interval if there is one."""
    known, wear = result.wear_interval, result.wear
    if known is None:
        return human_size(wear.bytes_per_day if wear else 0)
    return ranged_size(known.value, known.low, known.high)


def _wear(result: Result) -> Rows:
    wear = result.wear
    if wear is None or not rows(result):
        return
    judged = result.phases["whole"].span_ns
    is_long = judged >= SHORTEST_NS  # enough to extrapolate to days and years
    written = f"{human_size(wear.bytes_written)} in {span(judged)}"
    parts = [f"{per_day(result)} a day" if is_long else written]
    if wear.per_host_write is not None:
        often = wear.per_host_write > 99  # the host hardly writes: nearly all writes are promotions
        per_byte = "over 99" if often else f"{wear.per_host_write:.2f}"
        parts.append(f"{per_byte} bytes per byte that the host writes")
    if wear.read_per_written is not None:
        parts.append(f"{wear.read_per_written:.2f} bytes read from it per byte written")
    if wear.in_flash is not None:
        parts.append(f"{wear.in_flash:.2f} bytes in the flash per byte written to it")
    if wear.drive_writes_per_day is not None and is_long:
        parts.append(f"{wear.drive_writes_per_day:.2g} DWPD")
    if wear.years is not None and is_long:
        parts.append(f"rated life {lasting(wear.years)}")
    yield LABELS["wear"], joined(parts)


def _cost(result: Result) -> Rows:
    """Yield the cost of the SSD, if the scenario specifies prices."""
    cost = result.cost
    if cost is None or not cost["is_own"] or cost["ssd_cost"] is None:
        return
    unit = cost["price"]["currency"]
    size = human_size(result.scenario["cache_bytes"])
    parts = [f"{money(cost['ssd_cost'], unit)} for {size} of SSD"]
    if cost["disks_cost"] is not None:
        parts.append(f"{money(cost['disks_cost'], unit)} for the disks, {cost['disks']}")
    if cost["per_saved_ms"] is not None:
        each = ranged_money(cost["per_saved_ms"], cost["per_saved_range"], unit)
        parts.append(f"{each} per ms saved of {cost['what']}")
    yield LABELS["cost"], joined([*parts, f"prices of {cost['price']['date']}"])


def _disk_time(result: Result) -> Rows:
    for label, phase in ((LABELS["none"], result.phases["none"]), *rows(result)[-1:]):
        times = phase.disk_time_ns
        requests = phase.figures.requests
        if spent := sum(times.values()):
            parts = [
                f"{LABELS.get(what, what)} {percent(ns / spent)}" for what, ns in times.items()
            ]
            kind = "volume_time" if "latency" in times else "disk_time"
            if phase.disk_queue_ns and requests and not phase.saturated:
                parts.append(f"queue {latency(phase.disk_queue_ns / requests)} per request")
            first = phase is result.phases["none"]
            yield LABELS[kind] if first else "", f"{label}: " + joined(parts)


def _controller(result: Result) -> Rows:
    """Yield the traffic through the DRAM of a RAID controller."""
    shown = rows(result) or [(LABELS["none"], result.phases["none"])]
    label, phase = shown[-1]
    destages = phase.counters.get("controller_destages")
    if destages is None:
        return
    read, written, destaged = (
        human_size(phase.counters[f"controller_{name}_bytes"])
        for name in ("dram_read", "write_back", "destaged")
    )
    parts = [
        f"{label}: {read} read from its DRAM",
        f"{written} written to it",
        f"{destaged} from there to the disks",
    ]
    if destages:
        share = phase.counters["controller_full_stripes"] / destages
        parts.append(f"{percent(share)} of those writes are full stripes")
    yield LABELS["controller"], joined(parts)


def _rebuild(result: Result) -> Rows:
    ends = {LABELS["none"]: result.plain.rebuild, LABELS["cached"]: result.cached.rebuild}
    for label, progress in ends.items():
        if progress is not None:
            words = f"{percent(progress.share)} done"
            if progress.whole_ns is not None:
                words += f", {span(progress.whole_ns)} in total"
                words += " at this pace" if progress.share < 1 else ""
            yield LABELS["rebuild"] if label == LABELS["none"] else "", f"{label}: {words}"


def _model(result: Result) -> Rows:
    """Yield how well the disks alone reproduce the recorded latencies."""
    fidelity = result.fidelity
    if not fidelity.measured.count:
        return
    both = (fidelity.measured, fidelity.modelled)
    measured, modelled = (latency(one.percentile(50)) for one in both)
    if not fidelity.is_known:
        text = f"not compared with the recorded latencies: {fidelity.why_not}"
    elif fidelity.is_other_kind:
        text = (
            f"the recorded median latency, {measured}, is that of flash or of a cache; these "
            f"disks alone take {modelled}"
        )
    else:
        text = (
            f"these disks alone take {modelled} at the median, the recorded latency is {measured}; "
            f"the distributions are {of_the_mean(fidelity.demerit)} apart, a "
            f"{fidelity.likeness} match"
        )
    yield LABELS["model"], unbroken(text)


# The activity of the cache, in the terms of its own tool: to add a kind of cache, a line in KINDS.


def _activity(result: Result) -> Rows:
    """Yield the activity of the cache, if there is one, and the RAM that it takes of the host."""
    if rows(result):
        _, report = _kind(result)
        yield from report(result)
        yield from _write_back(result)
        if ram := result.metadata_ram:
            yield LABELS["metadata_ram"], f"{human_size(ram['size_bytes'])}: {ram['source']}"


def _page(result: Result) -> Rows:
    """Yield the number of fills that the configured rate limit rejected."""
    counters = result.cached.whole.counters
    if counters.get("fills_over_rate"):
        begun, declined = (
            human_count(counters[f"fills_{each}"]) for each in ("started", "over_rate")
        )
        yield LABELS["fill"], f"{begun} started, {declined} beyond the limit fill_rate"


def _write_back(result: Result) -> Rows:
    """Yield the counts of dirty data, and on which SSDs they have no copy."""
    if result.scenario.get("cache_mode") != "write-back":
        return
    counters = result.cached.whole.counters
    members = int(result.scenario.get("cache_members", 1))
    parts = []
    if "dirty_pages" in counters:
        cleaned, writes = counters["cleaned_bytes"], counters["write_backs"]
        parts.append(f"{human_size(cleaned)} written back in {human_count(writes)} writes")
        dirty = counters["dirty_pages"]
        parts.append(f"{human_count(dirty)} page{'s' * (dirty != 1)} dirty at the end")
    for name, words in (
        ("writes_limited", "page writes went to the disks, as the dirty limit was reached"),
        ("stalls", "pages not cached, as all possible victims were dirty"),
    ):
        if counters.get(name):
            parts.append(f"{human_count(counters[name])} {words}")
    if result.dirty is not None:
        parts += _dirty(result.dirty)
    where = "one SSD" if members == 1 else f"{members} striped SSDs"
    parts.append(f"simulated without a mirror: dirty data exist on {where} only")
    yield LABELS["write_back"], joined(parts)


def _dirty(found: Dirt) -> Iterator[str]:
    """Yield how much is dirty, for how long, and how long a flush takes."""
    p50, p99, end = map(human_size, (found.p50_bytes, found.p99_bytes, found.end_bytes))
    yield f"dirty: {p50} at the median of the time, {p99} at the p99, {end} at the end"
    oldest = f"no byte is dirty for longer than {span(found.oldest_ns)}"
    if found.mean_stay_ns is not None:
        oldest += f", on average for {span(found.mean_stay_ns)}"
    yield oldest
    if found.flush_bytes_per_s and found.flush_ns is not None and found.flush_p99_ns is not None:
        at_end = span(found.flush_ns) if found.end_bytes else "no time"
        yield (
            f"a flush takes {at_end} at the end, {span(found.flush_p99_ns)} at the "
            f"p99: {human_rate(found.flush_bytes_per_s)} without other load"
        )


def _in_dmsetup(label: str, **counted: str) -> Callable[[Result], Rows]:
    """Return what yields counters with their words, in the terms of `dmsetup status`."""

    def report(result: Result) -> Rows:
        counters = result.cached.whole.counters
        parts = (f"{human_count(counters.get(name, 0))} {each}" for name, each in counted.items())
        yield LABELS[label], joined(parts)

    return report


def _open_cas(result: Result) -> Rows:
    """Yield the usage and request counters of an Open CAS, in the terms of `casadm --stats`."""
    counters = result.cached.whole.counters
    usage = [f"{name} {human_size(4096 * counters.get(name, 0))}"
             for name in ("occupancy", "clean", "dirty")]  # fmt: skip
    if cleaned := counters.get("cleaned_blocks", 0):
        usage.append(f"{human_size(4096 * cleaned)} cleaned")
    yield LABELS["usage"], joined(usage)
    total = counters.get("total_requests", 0)
    kinds = (
        "read_hits", "read_deferred", "read_partial_misses", "read_full_misses",
        "write_hits", "write_deferred", "write_partial_misses", "write_full_misses",
        "pass_through_reads", "pass_through_writes",
    )  # fmt: skip
    shares = {name: percent(counters[name] / total) for name in kinds if counters.get(name)}
    words = (f"{name.replace('_', ' ')} {share}" for name, share in shares.items())
    yield LABELS["requests"], joined(each.replace("pass t", "pass-t") for each in words)


def _bcache(result: Result) -> Rows:
    """Yield the counters of a bcache for the whole run, by their names in sysfs."""
    counters = result.cached.whole.counters
    parts = []
    for name in ("cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses"):
        counted, shown = counters.get(name, 0), counters.get(f"sysfs_{name}", 0)
        if counted:
            parts.append(f"{name} {human_count(counted)} (sysfs shows {human_count(shown)})")
    parts.append(f"bypassed {human_size(512 * counters.get('bypassed_sectors', 0))}")
    parts.append(f"dirty_data {human_size(counters.get('dirty_data', 0))} at the end")
    parts.append(f"{human_count(counters.get('evictions', 0))} buckets evicted")
    yield LABELS["bcache"], joined(parts)


KINDS = {  # the unit of allocation, and the report
    "bcache": ("sectors", _bcache),
    "page": ("pages", _page),
    "dm-cache": ("blocks", _in_dmsetup(
        "blocks", promotions="promotions", demotions="demotions", write_backs="write-backs",
        dirty_blocks="dirty at the end",
    )),
    "dm-writecache": ("blocks", _in_dmsetup(
        "writecache", writes="blocks written", writes_allocated="allocated",
        write_hits_uncommitted="overwritten before a commit",
        write_hits_committed="overwritten after one", writes_around="past the cache",
        blocks_written_back="written back",
    )),
    "open-cas": ("lines", _open_cas),
}  # fmt: skip


def _kind(result: Result) -> tuple[str, Callable[[Result], Rows]]:
    return KINDS[str(result.scenario.get("cache_kind", "page"))]


# A warm start.


def _warm_start(result: Result) -> Rows:
    """Yield the effect of a warm start, if there was one."""
    if result.beginning is not None and rows(result):
        yield LABELS["warm_start"], joined(_done(result.beginning))
        yield "", joined(_worth(result.beginning))
        yield "", joined(_spent(result.beginning))


def _done(beginning: Beginning) -> Iterator[str]:
    """Yield the number of pages kept or loaded, and how many of them were used."""
    counters = beginning.counters
    if beginning.is_kept:
        yield f"{human_count(beginning.there)} pages kept on the SSD"
    else:
        yield f"{human_count(beginning.there)} of {human_count(beginning.chosen)} pages loaded"
        read = human_size(counters["preload_bytes"])
        yield f"{read} in {human_count(counters['preload_reads'])} reads"
        if beginning.loaded_ns is not None:
            yield f"loaded within {span(beginning.loaded_ns)}"
    yield f"{percent(beginning.used_share)} of them used"
    yield f"from {beginning.source}"
    if beginning.remembers:
        yield "including the state of the learned policy"


def _worth(beginning: Beginning) -> Iterator[str]:
    """Yield the hit ratio and warm-up time, compared with a cache that begins empty."""
    hit, cold = percent(beginning.first_hit_ratio), percent(beginning.cold_first_hit_ratio)
    yield f"first {span(beginning.first_ns)}: {hit} of the reads from the SSD, {cold} without it"
    yield f"90% warm {_when(beginning.warm_up)}, without it {_when(beginning.cold_warm_up)}"


def _when(warm_up: WarmUp) -> str:
    if warm_up.state == State.FLAT:
        return "at once"
    if warm_up.state != State.STEADY:
        return "at an unknown time"
    return after(warm_up.reached_ns[90])


def _spent(beginning: Beginning) -> Iterator[str]:
    """Yield the busy time of the disks and the SSD writes of the whole run, with and without it."""
    if beginning.disk_ns is not None and beginning.cold_disk_ns is not None:
        yield f"disks busy {span(beginning.disk_ns)}, without it {span(beginning.cold_disk_ns)}"
    if beginning.ssd_bytes is not None and beginning.cold_ssd_bytes is not None:
        written, cold = human_size(beginning.ssd_bytes), human_size(beginning.cold_ssd_bytes)
        yield f"{written} written to the SSD, without it {cold}"
