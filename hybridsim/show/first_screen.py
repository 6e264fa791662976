"""The first screen of a replay: verdict, gain, cost, risks, assumptions; 24 lines of 80 columns.

Each of these is a list of sentences, the most important first.  If they do not fit, the last
sentence of the longest list is dropped, repeatedly; the first sentence of each list always stays.
`--details` prints all of them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from hybridsim.answers.advice.alternatives import KEEPS_WRITES
from hybridsim.answers.forecast import YES
from hybridsim.answers.result import Result
from hybridsim.answers.verdict import APART, SHORTEST_NS, Step
from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import answered, lasting, money, percent, ranged, recorded, span
from hybridsim.show.findings import per_day
from hybridsim.show.labels import GLUE, LABELS, LIKELY, MET, MISSED, rows, unbroken
from hybridsim.show.page import MARGIN

LINES = 24
LINES_NARROW = 40  # limit below WIDE columns, where each label takes a line
WIDE = 60
LONGEST_SENTENCE = 4  # lines
LONGEST_NAME = 40  # characters
ROOMY = 2  # times what it ever held: a cache for which a smaller one is suggested
SHORT_LIFE_YEARS = 5.0  # the usual warranty of an SSD
LOADS = {
    "open": "Requests arrive at their recorded times.",
    "closed": "A fixed number of requests is outstanding; recorded times are ignored.",
    "think": "Each request waits for the same earlier requests as in the recording.",
}


def first_screen(result: Result, width: int) -> list[str]:
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
    command = _command(result)
    limit = LINES if width >= WIDE else LINES_NARROW
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
    for each in missed:
        sentences.append(f"{MISSED} required: {each.requirement.text}: {each.words}.")
    for each in result.required:
        if each.met and not each.is_sure:
            sentences.append(f"{LIKELY} Perhaps met: {each.requirement.text}: {each.ranged}.")
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


def _command(result: Result) -> str:
    step = _step(result)
    return "  " + printable(step.command) if step is not None and step.command else ""


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
        yield (
            f"{money(cost['ssds_cost'], cost['price']['currency'])} for {cost['ssds']} of "
            f"SSD{_mirrored(result)} (prices of {source}, {cost['price']['date']})."
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
        yield f"It takes {_until_warm(result)} to warm up."
    wear = result.wear
    if wear is not None and wear.years is not None and _is_long(result):
        yield (f"It writes {per_day(result)} a day to the SSD: rated life {lasting(wear.years)}.")


def _most_held_bytes(result: Result) -> int | None:
    """Return how much the cache ever held; None if unknown."""
    present = result.cached.counters
    pages = result.scenario.get("cache_pages")
    if not pages or "pages_present" not in set(present):
        return None
    most = int(present.column("pages_present").max())
    return most * int(result.scenario["cache_bytes"]) // int(pages)


def _until_warm(result: Result) -> str:
    known = result.warm_interval
    if known is None:
        return span(result.warm_up.warm_ns)
    return ranged(known.value, known.low, known.high)


def _mirrored(result: Result) -> str:
    return ", mirrored" if result.scenario.get("cache_mode") in KEEPS_WRITES else ""


def _is_long(result: Result) -> bool:
    """Return whether the run is long enough to extrapolate to days and years."""
    return result.phases["whole"].span_ns >= SHORTEST_NS


def _risks(result: Result) -> Iterator[str]:
    number = len(result.warnings)
    if number:
        more = f" ({number - 1} more with --details)" if number > 1 else ""
        yield f"⚠ {result.warnings[0].text.rstrip('.')}{more}."
    wear = result.wear
    if wear is not None and wear.years is not None and _is_long(result):
        if wear.years < SHORT_LIFE_YEARS:
            yield f"The SSD wears out in {lasting(wear.years)}."
    if rows(result):
        seen = span(result.trace.get("span_ns", result.cached.end_ns))
        if result.judgement.forecast is None:
            yield f"The interval is of these {seen} only, not a forecast."
        else:
            yield f"The forecast assumes a load as in these {seen}."
    yield from result.verdict.risks


def _assumed(result: Result) -> Iterator[str]:
    trace, scenario = result.trace, result.scenario
    figures = result.cached.whole.figures
    both = figures.reads.count + figures.writes.count
    name = _shortened(str(trace.get("name", "the trace")))
    load = recorded(figures.requests, trace.get("span_ns", result.cached.end_ns))
    reads = percent(figures.reads.count / both if both else None)
    yield f"{name}: {' in '.join(load)}, {reads} reads."
    array = str(scenario.get("summary", "")).partition("; cache")[0]
    if array:
        yield f"Disks: {array}."
    yield LOADS.get(str(scenario.get("mode", "open")), "")
    yield from result.verdict.basis


def _shortened(name: str) -> str:
    half = LONGEST_NAME // 2 - 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}...{name[-half:]}"
