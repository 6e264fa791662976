"""The report of `advise`: recommendation, benefit, cost and risks on one screen; then details."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.answers.forecast import HORIZON, NO, YES
from hybridsim.foundation.printable import shell_line, shell_word
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import (
    NONE,
    counted,
    lasting,
    latency,
    money,
    percent,
    span,
    times,
)
from hybridsim.show.page import page, paragraph, table, trace_line

if TYPE_CHECKING:
    from hybridsim.answers.advice.activity import Process
    from hybridsim.studies.advise import Advice, Compared
    from hybridsim.studies.candidates import Row

SCREEN = 24  # lines of the first screen
MOSTLY, HARDLY = 0.5, 0.1  # of the time
BUSY = 0.7  # disks
RANDOM = 0.5  # of the reads
SHOWN_MIN = 0.05  # of the requests: processes with fewer are not shown
BUILT = ("--cache", "--set", "--preset")  # options that `setup` has too
WORSE_TAIL = 1.05  # times: a larger increase of p99 is a risk
NAMES = {
    "disks": "these disks",
    "more-disks": "more disks",
    "short-stroke": "short stroke",
    "all-ssd": "all SSD",
    "hybrid": "hybrid",
}


def text(advice: Advice, ascii_only: bool = False, details: bool = False) -> str:
    """Return the advice as text: one screen, or with `details` all of it."""
    head, end = list(_head(advice)), _next(advice)
    if not details:
        others = _others(advice, SCREEN - len(head) - len(end) - 1)
        return page([*head, *others, *end], ascii_only)
    return page([*head, "", *_details(advice), *end], ascii_only)


def _head(advice: Advice) -> Iterator[str]:
    yield from trace_line(advice.trace)
    yield from paragraph("ADVICE", _answer(advice))
    if advice.answer != NO:
        yield from paragraph("", _command(advice))
    yield from paragraph("brings", _brings(advice))
    yield from paragraph("costs", _costs(advice))
    yield from paragraph("risks", _risks(advice))
    yield from paragraph("assumed", _assumed(advice))


def _answer(advice: Advice) -> str:
    pick = advice.pick
    what = f"{pick.candidate.label} with {human_size(pick.size_bytes)} of SSD"
    result = pick.judgement
    if advice.answer == YES:
        label = "" if pick.candidate.installable else " (no product implements it)"
        return f"Use {what}{label}."
    if advice.answer == NO:
        tried = len({each.candidate.name for each in advice.rows})
        each = "kind and mode" if tried == 1 else "kinds and modes"
        return f"No SSD cache: the best of {tried} {each}, {what}, is not worth its cost."
    better = advice.better
    if better is not None:
        return (
            f"Not yet: record longer. In the first half of the requests {what} is best, in the "
            f"second {better.candidate.label} with {human_size(better.size_bytes)}."
        )
    if result.too_short:
        return (
            f"Not yet: record longer, there are only {result.too_short}. The best so far is {what}."
        )
    if result.more_ns:
        return f"Not yet: record {span(result.more_ns)} more. The best so far is {what}."
    return f"Can't say: {pick.result.verdict.headline}"


def _command(advice: Advice) -> str:
    """Return the command that replays the recommended machine."""
    scenario = advice.pick.result.scenario
    words = ["Check:", "hybridsim replay", shell_line(advice.trace["arguments"])]
    if scenario.get("file"):
        words += ["--scenario", shell_word(str(scenario["file"]))]
    words += scenario["options"]
    if not any(one.split()[0] == "--mode" for one in scenario["options"]):
        words += ["--mode", advice.mode]
    if advice.pick.judgement.goal != "time":
        words += ["--goal", advice.pick.judgement.goal]
    return " ".join(words)


def _next(advice: Advice) -> list[str]:
    """Return the command that prints how the recommended cache is built, as lines."""
    scenario, pick = advice.pick.result.scenario, advice.pick
    if advice.answer == NO or not pick.candidate.installable:
        return []
    words = ["hybridsim setup"]
    if scenario.get("file"):
        words += ["--scenario", shell_word(str(scenario["file"]))]
    words += [each for each in scenario["options"] if each.startswith(BUILT)]
    if pick.candidate.kind == "open-cas":
        words.append("--from-source")
    return paragraph("next", " ".join(words))


def _brings(advice: Advice) -> str:
    pick = advice.pick
    if not pick.keeps_up or pick.result.phases["none"].saturated:
        return " ".join([pick.result.verdict.headline, *pick.result.verdict.reasons[:2]])
    result, pair = pick.judgement, pick.judged
    before, after = pair.plain, pair.cached
    if result.goal == "throughput" or (result.goal == "time" and result.adapts):
        what = f"The same work takes {span(after.took_ns)} instead of {span(before.took_ns)}"
    else:
        now, then = latency(after.both.mean_ns), latency(before.both.mean_ns)
        what = f"A request takes {now} on average instead of {then}"
    parts = [f"{what}: {_gain_of(pick)}"]
    parts += [
        f"{name} {latency(one.mean_ns)} instead of {latency(other.mean_ns)}"
        for name, one, other in (
            ("reads", after.reads, before.reads), ("writes", after.writes, before.writes),
        )
        if one.count
    ]  # fmt: skip
    return "; ".join(parts) + f". Over the whole run {_factor(pick.of(pick.whole))} times."


def _gain_of(row: Row) -> str:
    result = row.judgement
    sure = ""
    if result.low is not None and result.high is not None:
        later = f"forecast {_factor(result.expected)}, " if result.forecast else ""
        sure = f" ({later}90%: {_factor(result.low)} to {_factor(result.high)})"
    of = {"p99": " of the p99", "disk-time": " of the disks' time"}.get(result.goal, "")
    if result.goal == "time" and result.adapts:
        of = " of the mean completion"
    return f"gain{of} {_factor(result.gain)} times{sure}"


def _factor(gain: float | None) -> str:
    return NONE if gain is None else f"{gain:.2f}" if gain < 10 else f"{gain:.0f}"


def _costs(advice: Advice) -> str:
    bought = advice.pick.bought
    words = f"{bought.words} ({bought.drive}{', mirrored' if bought.mirrored else ''})"
    if bought.cost is None:
        return f"{words}; the price is unknown: specify [price] in a scenario."
    sentence = f"{words}: {_money(advice, bought.cost)}"
    if bought.total is not None:
        sentence += f", {_money(advice, bought.total)} with the disks"
    worn = advice.pick.worn
    if worn is not None and worn.years is not None:
        sentence += f"; at this load the SSD lasts {lasting(worn.years)}"
    return sentence + "."


def _risks(advice: Advice) -> str:
    """Return the risks of the recommended machine, the most serious first."""
    pick = advice.pick
    result, row = [], pick.to_dict()
    if pick.candidate.keeps_writes:
        result.append(
            f"dirty data exist only on the SSD ({human_size(row['dirty_bytes'])} at the end): "
            "without a mirror they are lost if the SSD fails"
        )
    before, after = (one.both.percentile(99) for one in (pick.judged.plain, pick.judged.cached))
    if before and after and after > WORSE_TAIL * before:
        result.append(f"the slowest 1% get slower, {latency(after)} instead of {latency(before)}")
    if not pick.judgement.dirty_is_steady:
        share = percent(pick.judgement.dirty_grown)
        result.append(f"dirty data still grow ({share} of what was written)")
    if not pick.result.warm_up.steady:
        result.append(f"not steady yet: {pick.result.warm_up.why}")
    gains = [pick.of(pick.warm), pick.of(pick.whole)]
    if (
        all(gains)
        and gains[0]
        and gains[1]
        and max(gains[0] / gains[1], gains[1] / gains[0]) > 1.15
    ):
        result.append(
            f"the gain varies: {_factor(gains[0])} times once all caches are warm, "
            f"{_factor(gains[1])} over the whole run"
        )
    result.append("another day's load may differ")
    return "; ".join(result[:3]).capitalize()[:1] + "; ".join(result[:3])[1:] + "."


def _assumed(advice: Advice) -> str:
    site = str(advice.scenario["summary"]).partition("; cache")[0]
    price = advice.pricing.price
    way = {
        "open": "requests arrive at their recorded times",
        "think": "requests wait for earlier ones (mode think)",
        "closed": "a fixed queue depth",
    }[advice.mode]
    return (
        f"{site}; {way}; chosen on the first half of the requests, evaluated on the second; "
        f"{price.ssd_per_gb:g} {price.currency} per GB of SSD ({price.date})."
    )


def _others(advice: Advice, room: int) -> list[str]:
    """Return one line for each other machine, with the reason why it is not recommended."""
    best: dict[str, Row] = {}
    for each in advice.rows[1:]:
        if each.candidate.name != advice.pick.candidate.name:
            best.setdefault(each.candidate.name, each)
    rows = list(best.values())
    more = len(advice.rows) - 1 - len(rows)
    shown = rows[: max(room - 2, 0)] if len(rows) > room - 1 or more else rows
    left = len(advice.rows) - 1 - len(shown)
    lines = [*table(
        ["rejected", "SSD", "gain", _range(advice), "why"],
        [[each.candidate.name, human_size(each.size_bytes), _factor(each.judgement.gain),
          _interval(each), each.loses] for each in shown],
    )] if shown else []  # fmt: skip
    if left:
        lines.append(f"{left} more machines and the comparison with other purchases: --details")
    return ["", *lines[:room]]


def _range(advice: Advice) -> str:
    """Return the head of the column of intervals of 90 %."""
    return "90%" if advice.pick.judgement.forecast is None else "forecast"


def _of_range(advice: Advice) -> str:
    """Return what the column of intervals holds."""
    if advice.pick.judgement.forecast is None:
        return "of the gain, 5 to 95%"
    return f"of the gain over the {span(round(HORIZON * advice.span_ns))} that follow, 5 to 95%"


def _interval(row: Row) -> str:
    result = row.judgement
    if result.low is None or result.high is None:
        return NONE
    return f"{_factor(result.low)} to {_factor(result.high)}"


def _details(advice: Advice) -> Iterator[str]:
    yield from _machines(advice)
    yield ""
    for label, words in (
        ("1 I/O-bound?", _io_bound(advice)),
        ("2 bottleneck", _then(advice)),
        ("3 random?", _random(advice)),
        ("4 hot spot?", _hot(advice)),
        ("5 how much?", _how_much(advice)),
    ):
        yield from paragraph(label, words)
    yield ""
    yield from _comparison(advice)
    for number, note in enumerate(advice.notes):
        yield from paragraph("" if number else "notes", note)


def _machines(advice: Advice) -> Iterator[str]:
    """Yield all machines that were replayed: on the same requests, in each column."""
    heads = ["machine", "SSD", "gain", _range(advice), "warm", "whole", "read", "write", "p99",
             "hit", "cost"]  # fmt: skip
    alone = advice.pick.judged.plain
    rows = [
        [
            "disks alone",
            "",
            "",
            "",
            "",
            "",
            latency(alone.reads.mean_ns),
            latency(alone.writes.mean_ns),
            latency(alone.both.percentile(99)),
            "",
            "",
        ]
    ]
    rows += [_machine(advice, each) for each in advice.rows]
    yield from table(heads, rows, " ")
    warm = advice.pick.warm
    yield from paragraph(
        "same requests",
        f"gain, read, write and p99: the second half, from request "
        f"{advice.pick.judged.first:,} on; {_range(advice)}: {_of_range(advice)}; warm: from "
        f"{warm.first:,} on, where the last of them is warm, or the last fifth; whole, hit: all.",
    )
    for each in advice.rows[1:]:
        yield from paragraph(
            "", f"{each.candidate.label}, {human_size(each.size_bytes)}: {each.loses}."
        )


def _machine(advice: Advice, row: Row) -> list[str]:
    after = row.judged.cached
    known = row.keeps_up
    return [
        row.candidate.label + (" *" if row is advice.pick else ""), human_size(row.size_bytes),
        _factor(row.judgement.gain), _interval(row), _factor(row.of(row.warm)),
        _factor(row.of(row.whole)),
        latency(after.reads.mean_ns if known else None),
        latency(after.writes.mean_ns if known else None),
        latency(after.both.percentile(99) if known else None),
        percent(row.hit), _money(advice, row.bought.cost),
    ]  # fmt: skip


def _kind(advice: Advice) -> str:
    return "read" if advice.trace["reads"] else "write"


def _io_bound(advice: Advice) -> str:
    activity, span_ns = advice.activity, advice.span_ns
    busy, most = activity.busy_share(span_ns), activity.most_gain(span_ns)
    if busy is None or most is None:
        return "Can't say: the trace has no completions (record complete events too)."
    on_disks = advice.waiting(advice.of("disks"))
    share = max(busy, on_disks or 0.0)
    answer = "Yes." if share >= MOSTLY else "Partly." if share >= HARDLY else "No."
    think = activity.all_of_them.gaps
    text = (
        f"{answer} During the capture, requests were outstanding for {percent(busy)} of the time, "
        f"{activity.outstanding:.1f} at once; infinitely fast storage would make the work at most "
        f"{_gain(most)} faster"
    )
    if think.count:
        text += f" (its median pause is {latency(think.percentile(50))})"
    if on_disks is not None:
        text += f". On these disks the application would wait for {percent(on_disks)} of its time"
    return text + "."


def _gain(most: float) -> str:
    return "100 times or more" if most >= 100 else times(most) if most >= 1.05 else "5%"


def _then(advice: Advice) -> str:
    hybrid = advice.of("hybrid")
    if hybrid is None:
        return "Not simulated: --compare hybrid."
    waits = advice.waiting(hybrid)
    if hybrid.utilisation is not None and hybrid.utilisation >= BUSY:
        text = f"With the cache still the disks: {percent(hybrid.utilisation)} busy."
    elif waits is None:
        text = f"With the cache the disks are {percent(hybrid.utilisation)} busy."
    elif waits >= MOSTLY:
        text = f"With the cache still storage: the application waits {percent(waits)} of its time."
    else:
        text = (
            "With the cache the application itself: it waits for storage for "
            f"{percent(waits)} of its time."
        )
    return text + " For CPU, memory and network use vmstat and sar: a trace does not have them."


def _random(advice: Advice) -> str:
    whole = advice.activity.whole
    random = whole.random_reads
    if random is None:
        return "There are no reads: only a write-back cache can help."
    answer = "Yes" if random >= RANDOM else "No"
    text = (
        f"{answer}: {percent(random)} of the reads do not continue where their process's previous "
        f"read ended; {percent(whole.read_share)} of the requests are reads."
    )
    number = whole.reads + whole.writes
    shown = [
        one for one in advice.activity.processes if one.reads + one.writes >= SHOWN_MIN * number
    ]
    if len(shown) > 1:
        text += " By process: " + "; ".join(map(_process, shown[:3])) + "."
    return text


def _process(one: Process) -> str:
    number = human_count(one.reads + one.writes)
    random = "" if one.random_reads is None else f", {percent(one.random_reads)} random"
    return f"{one.stream}: {number}, {percent(one.read_share)} reads{random}"


def _hot(advice: Advice) -> str:
    hot = advice.hot
    if hot.word == "unsure":
        return f"Can't say: the trace touches only {counted(hot.distinct, 'page')}."
    answer = {"yes": "Yes", "slight": "Slightly", "no": "No"}[hot.word]
    half, most = (human_size(hot.needed[share] * hot.page_bytes) for share in (0.5, 0.8))
    text = (
        f"{answer}: the hottest tenth of the pages gets {percent(hot.taken[0.1])} of the "
        f"accesses (uniform accesses: {percent(hot.even[0.1])}); the hottest {half} get half of "
        f"them, the hottest {most} 80%. "
        f"{percent(hot.touched_once)} of the pages are touched only once."
    )
    if hot.word == "no" or hot.moves is None:
        return text
    moves = "It moves" if hot.moves else "It stays"
    return (
        f"{text} {moves}: the hottest tenth of half of a quarter's requests gets "
        f"{percent(hot.kept[0])} of the accesses of its other half, and {percent(hot.kept[3])} of "
        "those three quarters later."
    )


def _how_much(advice: Advice) -> str:
    knee = int(advice.curve.pages[advice.curve.knee]) * advice.curve.page_bytes
    pick = advice.pick
    return (
        f"{human_size(pick.size_bytes)} of {pick.candidate.label}. The knee of the LRU curve "
        f"(no devices) is at {human_size(knee)}; caches of buckets or blocks need up to "
        "twice that."
    )


def _comparison(advice: Advice) -> Iterator[str]:
    is_think = advice.mode == "think"
    per_cost = f"per {advice.pricing.price.currency}"
    heads = ["compared", "drives", "cost", f"{_kind(advice)}", "p99",
             "done in" if is_think else "busy", "IOPS", per_cost]  # fmt: skip
    yield from table(heads, [_compared(advice, one, is_think) for one in advice.compared])
    price = advice.pricing.price
    yield from paragraph(
        "prices",
        f"{price.hdd_per_gb:g} {price.currency} per GB of disk, {price.ssd_per_gb:g} of SSD "
        f"({price.date}, {advice.pricing.source}); specify your own as [price] in a scenario. Each "
        f"alternative holds {human_size(advice.data_bytes)} (--data).",
    )
    yield from paragraph(
        "compared by",
        f"the second half of the requests; IOPS: the maximum, at queue depth {advice.depth}"
        + ("; done in: including the application's own pauses" if is_think else "")
        + (
            "."
            if advice.of("short-stroke") is None
            else ". Short stroke: only this volume, on the outer tracks."
        ),
    )


def _compared(advice: Advice, one: Compared, is_think: bool) -> list[str]:
    cost, iops = one.cost, one.most_iops
    return [
        NAMES[one.name], one.words, _money(advice, cost),
        latency(one.mean_ns), latency(one.p99_ns),
        span(one.all_ns) if is_think else percent(one.utilisation),
        NONE if iops is None else human_count(iops),
        NONE if not cost or iops is None else _per_cost(iops / cost),
    ]  # fmt: skip


def _per_cost(number: float) -> str:
    return f"{number:.2f}" if number < 10 else human_count(number)


def _money(advice: Advice, amount: float | None) -> str:
    return money(amount, advice.pricing.price.currency)
