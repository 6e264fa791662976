"""The five questions and the comparison, on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import NONE, counted, latency, money, percent, span, times
from hybridsim.show.page import page, paragraph, table, trace_line

if TYPE_CHECKING:
    from hybridsim.answers.advice.activity import Process
    from hybridsim.studies.advise import Advice, Compared, SizeOfSsd

FEWEST = 1000  # requests
MOSTLY, HARDLY = 0.5, 0.1  # of the time
BUSY = 0.7  # disks
RANDOM = 0.5  # of the reads
TOLD = 0.05  # of the requests: processes with fewer are not told
NAMES = {
    "disks": "these disks",
    "more-disks": "more disks",
    "short-stroke": "short stroke",
    "all-ssd": "all SSD",
    "hybrid": "hybrid",
}


def text(advice: Advice, ascii_only: bool = False) -> str:
    """Return the advice as text."""
    return page(_lines(advice), ascii_only)


def _lines(advice: Advice) -> Iterator[str]:
    yield from trace_line(advice.trace)
    yield from paragraph("site", str(advice.scenario["summary"]).partition("; cache")[0])
    yield ""
    yield from paragraph("ADVICE", _answer(advice))
    yield ""
    for label, words in (
        ("1 I/O-bound?", _io_bound(advice)),
        ("2 then what?", _then(advice)),
        ("3 random?", _random(advice)),
        ("4 hot spot?", _hot(advice)),
        ("5 how much?", _how_much(advice)),
    ):
        yield from paragraph(label, words)
    yield ""
    yield from _sizes(advice)
    yield ""
    yield from _comparison(advice)
    for number, note in enumerate(advice.notes):
        yield from paragraph("" if number else "notes", note)


def _kind(advice: Advice) -> str:
    return "read" if advice.trace["reads"] else "write"


def _answer(advice: Advice) -> str:
    pick, hybrid = advice.pick, advice.of("hybrid")
    size = human_size(pick.size_bytes)
    if advice.trace["requests"] < FEWEST:
        return f"Can't say: {counted(advice.trace['requests'], 'request')} are too few to judge by."
    if pick.saved_ns is None:
        mode = "think" if advice.trace["has_completions"] else "closed"
        return (
            "Can't say: these disks cannot serve this load as it was recorded, with a cache or "
            f"without; --mode {mode} lets it adapt."
        )
    if not advice.pays:
        said = (
            f"No SSD cache: at best a {_kind(advice)} takes {latency(pick.mean_ns)} on average "
            f"with {size}, {latency(pick.before_ns)} without."
        )
        if not advice.trace["reads"] and advice.scenario["cache_mode"] != "write-back":
            said += ' There are only writes: try mode = "write-back" under [cache].'
        return said
    said = (
        f"{size} of SSD: a {_kind(advice)} takes {latency(pick.mean_ns)} on average instead of "
        f"{latency(pick.before_ns)}"
    )
    faster = advice.faster(hybrid)
    disks = advice.of("disks")
    if hybrid is not None and disks is not None and faster is not None:
        said += (
            f". The second half of the application's work goes {times(faster)} as fast; all of "
            f"it takes {span(hybrid.all_ns)} instead of {span(disks.all_ns)}"
        )
    if not pick.steady:
        said += f". The trace is too short to see it warm: {pick.why}"
    return said + "." + _for_the_money(advice)


def _for_the_money(advice: Advice) -> str:
    known = [(one.most_iops / one.cost, one) for one in advice.compared
             if one.cost and one.most_iops]  # fmt: skip
    if len(known) < 2:
        return ""
    per_cost, best = max(known, key=lambda pair: pair[0])
    return (
        f" Most IOPS for the money: {NAMES[best.name]} "
        f"({_per_cost(per_cost)} per {advice.pricing.price.currency})."
    )


def _io_bound(advice: Advice) -> str:
    activity, span_ns = advice.activity, advice.span_ns
    busy, most = activity.busy_share(span_ns), activity.most_gain(span_ns)
    if busy is None or most is None:
        return "Can't say: the trace tells no completions (capture with complete events)."
    on_disks = advice.waiting(advice.of("disks"))
    share = max(busy, on_disks or 0.0)
    answer = "Yes." if share >= MOSTLY else "Partly." if share >= HARDLY else "No."
    think = activity.all_of_them.gaps
    said = (
        f"{answer} When captured, requests were outstanding for {percent(busy)} of the time, "
        f"{activity.outstanding:.1f} at once; storage that takes no time would make it at most "
        f"{_gain(most)} faster"
    )
    if think.count:
        said += f" (it pauses for {latency(think.percentile(50))} at the median)"
    if on_disks is not None:
        said += f". On these disks it would wait for {percent(on_disks)} of its time"
    return said + "."


def _gain(most: float) -> str:
    return "100 times or more" if most >= 100 else times(most) if most >= 1.05 else "5%"


def _then(advice: Advice) -> str:
    hybrid = advice.of("hybrid")
    if hybrid is None:
        return "Not simulated: --compare hybrid."
    waits = advice.waiting(hybrid)
    left = f"; {percent(hybrid.not_from_ssd)} of the reading time is what is not on the SSD"
    left = left if hybrid.not_from_ssd is not None else ""
    if hybrid.utilisation is not None and hybrid.utilisation >= BUSY:
        said = f"Still the disks: {percent(hybrid.utilisation)} busy{left}."
    elif waits is None:
        said = f"The disks are {percent(hybrid.utilisation)} busy{left}."
    elif waits >= MOSTLY:
        said = f"Still storage: it waits for {percent(waits)} of its time{left}."
    else:
        said = f"The application itself: it waits for storage for {percent(waits)} of its time."
    return said + " Of CPU, memory and network a trace tells nothing: vmstat, sar."


def _random(advice: Advice) -> str:
    whole = advice.activity.whole
    random = whole.random_reads
    if random is None:
        return "There are no reads: only a write-back cache can help."
    answer = "Yes" if random >= RANDOM else "No"
    said = (
        f"{answer}: {percent(random)} of the reads do not go on where their process's last "
        f"one ended; {percent(whole.read_share)} of the requests are reads."
    )
    number = whole.reads + whole.writes
    told = [one for one in advice.activity.processes if one.reads + one.writes >= TOLD * number]
    if len(told) > 1:
        said += " By process: " + "; ".join(map(_process, told[:3])) + "."
    return said


def _process(one: Process) -> str:
    number = human_count(one.reads + one.writes)
    random = "" if one.random_reads is None else f", {percent(one.random_reads)} random"
    return f"{one.stream}: {number}, {percent(one.read_share)} reads{random}"


def _hot(advice: Advice) -> str:
    hot = advice.hot
    if hot.word == "unsure":
        return f"Can't say: it touches only {counted(hot.distinct, 'page')}."
    answer = {"yes": "Yes", "slight": "Slightly", "no": "No"}[hot.word]
    half, most = (human_size(hot.needed[share] * hot.page_bytes) for share in (0.5, 0.8))
    said = (
        f"{answer}: the hottest tenth of the pages takes {percent(hot.taken[0.1])} of the "
        f"accesses (even ones: {percent(hot.even[0.1])}); {half} take half of them, {most} 80%. "
        f"{percent(hot.touched_once)} of the pages are touched only once."
    )
    if hot.word == "no" or hot.moves is None:
        return said
    moves = "It moves" if hot.moves else "It stays"
    return (
        f"{said} {moves}: the tenth that is hottest in half of a quarter's requests takes "
        f"{percent(hot.kept[0])} of the other half's accesses, and {percent(hot.kept[3])} three "
        "quarters later."
    )


def _how_much(advice: Advice) -> str:
    knee = int(advice.curve.pages[advice.curve.knee]) * advice.curve.page_bytes
    said = f"The curve's knee is at {human_size(knee)}"
    pick = advice.pick
    if pick.saved_ns and advice.pays:
        said += f"; {human_size(pick.size_bytes)} saves nearly all that more would"
    if pick.per_saved_ms is not None and advice.pays:
        said += f", at {_money(advice, pick.per_saved_ms)} per saved ms of a {_kind(advice)}"
    return said + "."


def _sizes(advice: Advice) -> list[str]:
    heads = ["SSD", "", "hit", f"mean {_kind(advice)}", "saved", "cost", "per saved ms", "steady"]
    return table(heads, [_size(advice, one) for one in advice.sizes])


def _size(advice: Advice, one: SizeOfSsd) -> list[str]:
    saved = one.saved_ns
    what = one.what + (" *" if one is advice.pick and advice.pays else "")
    return [
        human_size(one.size_bytes), what, percent(one.hit), latency(one.mean_ns),
        NONE if saved is None else latency(saved) if saved >= 0 else f"-{latency(-saved)}",
        _money(advice, one.cost), _money(advice, one.per_saved_ms),
        "yes" if one.steady else "not yet",
    ]  # fmt: skip


def _comparison(advice: Advice) -> Iterator[str]:
    is_think = advice.compared_mode == "think"
    per_cost = f"per {advice.pricing.price.currency}"
    heads = ["compared", "drives", "cost", f"{_kind(advice)}", "p99",
             "done in" if is_think else "busy", "IOPS", per_cost]  # fmt: skip
    yield from table(heads, [_compared(advice, one, is_think) for one in advice.compared])
    price = advice.pricing.price
    yield from paragraph(
        "prices",
        f"{price.hdd_per_gb:g} {price.currency} per GB of disk, {price.ssd_per_gb:g} of SSD "
        f"({price.date}, {advice.pricing.source}); yours: [price] in a scenario. Each holds "
        f"{human_size(advice.data_bytes)} (--data).",
    )
    yield from paragraph(
        "compared by",
        f"means of the second half of the requests; IOPS: the most, {advice.depth} at a time"
        + ("; done in: with the application's own pauses" if is_think else "")
        + (
            "."
            if advice.of("short-stroke") is None
            else ". Short stroke: this volume alone on the outer edge."
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
