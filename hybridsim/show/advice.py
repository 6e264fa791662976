"""The report of `advise`, from the document that `--json` writes; the HTML shares its sentences.

Recommendation, benefit, cost and risks on one screen; then details.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hybridsim.answers.forecast import HORIZON, NO, UNSURE, YES, is_certain
from hybridsim.answers.judge import in_time
from hybridsim.answers.result import plain
from hybridsim.answers.verdict import CHANCE, goal_option
from hybridsim.foundation.printable import shell_line, shell_word
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import (
    NONE,
    counted,
    factor,
    lasting,
    latency,
    money,
    percent,
    ranged,
    span,
    times,
)
from hybridsim.show.page import SCREEN, page, paragraph, paragraphs, table, trace_line

if TYPE_CHECKING:
    from hybridsim.studies.advise import Advice

Document = Mapping[str, Any]

MOSTLY, HARDLY = 0.5, 0.1  # of the time
BUSY = 0.7  # disks
RANDOM = 0.5  # of the reads
SHOWN_MIN = 0.05  # of the requests: processes with fewer are not shown
RECORDS = "sudo blktrace"  # how a step that captures for longer begins
BUILT = ("--cache", "--set", "--preset")  # options that `setup` has too
WORSE_TAIL = 1.05  # times: a larger increase of p99 is a risk
VARIES = 1.15  # times: phases whose gains differ by more are a risk
RISKS_SHOWN = 3
OTHERS_SHOWN = 3  # lines for other machines, that the command that replays the chosen one yields to
NAMES = {
    "disks": "these disks",
    "more-disks": "more disks",
    "short-stroke": "short stroke",
    "all-ssd": "all SSD",
    "hybrid": "hybrid",
}


def label(row: Document) -> str:
    """Return kind, mode and the settings that differ from the defaults."""
    return f"{row['name']}, {row['setting']}" if row["setting"] else str(row["name"])


def interval(row: Document) -> str:
    """Return the interval of a gain."""
    if row["low"] is None or row["high"] is None:
        return NONE
    return f"{factor(row['low'])} to {factor(row['high'])}"


def cost(document: Document, amount: float | None) -> str:
    """Return an amount in the currency of the document's prices."""
    return money(amount, document["price"]["currency"])


def to_do(document: Document) -> str:
    """Return what to do: use a cache, none, or record longer."""
    pick = document["recommended"]
    what = f"{label(pick)} with {human_size(pick['size_bytes'])} of SSD"
    if document["answer"] == YES:
        note = "" if pick["installable"] else " (no product implements it)"
        return f"{'Use' if is_sure(document) else 'Probably worth it: use'} {what}{note}."
    if document["answer"] == NO:
        tried = len({each["name"] for each in document["rows"]})
        each = "kind and mode" if tried == 1 else "kinds and modes"
        none = "No SSD cache" if is_sure(document) else "Probably no SSD cache"
        return f"{none}: the best of {tried} {each}, {what}, is not worth its cost."
    if pick["too_short"]:
        best = "" if pick["gain"] is None else f" The best so far is {what}."
        return f"Not yet: record longer, the capture is too short: {pick['too_short']}.{best}"
    if pick["more_ns"]:
        longer = document["verdict"]["headline"].partition(". ")[0]  # how long in total
        return f"{longer}. The best so far is {what}."
    return f"Can't say: {document['verdict']['headline']}"


def is_sure(document: Document) -> bool:
    """Return whether the answer is right at either end of the interval, as `replay` words it."""
    pick = document["recommended"]
    return not document["disks_keep_up"] or is_certain(
        document["answer"], pick["low"], pick["high"]
    )


def command(document: Document) -> str:
    """Return the command that replays the recommended machine."""
    options = document["inputs"]["scenario"]["options"]
    words = ["hybridsim replay", shell_line(document["inputs"]["trace"]["arguments"])]
    words += [*_file(document), *options]
    if not any(one.split()[0] == "--mode" for one in options):
        words += ["--mode", document["mode"]]
    return " ".join([*words, *goal_option(document["goal"])])


def _file(document: Document) -> list[str]:
    file = document["inputs"]["scenario"].get("file")
    return ["--scenario", shell_word(str(file))] if file else []


def record(document: Document) -> str:
    """Return the command that captures for longer, after which a cache may be chosen, or ""."""
    if document["answer"] != UNSURE:
        return ""
    steps = (each["command"] or "" for each in document["verdict"].get("advice", []))
    return next((each for each in steps if each.startswith(RECORDS)), "")


def build(document: Document) -> str:
    """Return the command that prints how the recommended cache is built; empty if there is none."""
    scenario, pick = document["inputs"]["scenario"], document["recommended"]
    if document["answer"] == NO or not pick["installable"] or pick["gain"] is None:
        return ""
    words = ["hybridsim setup", *_file(document)]
    words += [each for each in scenario["options"] if each.startswith(BUILT)]
    if pick["kind"] == "open-cas":
        words.append("--from-source")
    if pick["bought"]["mirrored"]:  # as priced: more than the one SSD that `setup` assumes
        words += [f"--fast /dev/FAST{one}" for one in range(1, pick["bought"]["drives"] + 1)]
    return " ".join(words)


def brings(document: Document) -> str:
    """Return what the recommended machine gains, with its interval."""
    pick = document["recommended"]
    if not pick["keeps_up"] or not document["disks_keep_up"]:
        return " ".join([document["verdict"]["headline"], *document["verdict"]["reasons"][:2]])
    if pick["gain"] is None:
        return "Nothing is known yet: no caches could be compared."
    before, after = pick["judged"]["none"], pick["judged"]["cached"]
    takes = {"took": "The same work takes {}", "all": "A request takes {} on average"}
    name = "took" if in_time(document["goal"], pick["load_adapts"]) else "all"
    what = f"{takes[name].format(mean(pick, 'cached', name))} instead of {mean(pick, 'none', name)}"
    parts = [f"{what}: {_gain_of(document, pick)}"]
    parts += [
        f"{name}s {mean(pick, 'cached', name)} instead of {latency(before[name]['mean_ns'])}"
        for name in ("read", "write")
        if after[name]["n"]
    ]
    if pick["measured_gain"] is not None:
        chance = CHANCE.format(factor(pick["gain"]), factor(pick["measured_gain"]))
        parts[-1] += f". {chance}"
    return "; ".join(parts) + f". Over the whole run {factor(pick['whole_gain'])} times."


def mean(row: Document, side: str, name: str) -> str:
    """Return a mean of the second half of the requests with its interval, if there is one.

    `name` is "read", "write", "all" of both, or "took" for the duration of the work.
    """
    if known := row["means"][side].get(name):
        return ranged(known["value"], known["low"], known["high"])
    stretch = row["judged"][side]
    if name == "took":
        return span(stretch["took_ns"])
    if name != "all":
        return latency(stretch[name]["mean_ns"])
    both = [each for each in (stretch["read"], stretch["write"]) if each["n"]]
    number = sum(each["n"] for each in both)
    return latency(sum(each["n"] * each["mean_ns"] for each in both) / number if number else None)


def _gain_of(document: Document, row: Document) -> str:
    sure = ""
    if row["low"] is not None and row["high"] is not None:
        later = f"forecast {factor(row['forecast'])}, " if row["is_forecast"] else ""
        sure = f" ({later}90%: {interval(row)})"
    of = {"p99": " of the p99", "disk-time": " of the disks' time"}.get(document["goal"], "")
    if document["goal"] == "time" and row["load_adapts"]:
        of = " of the mean completion"
    return f"gain{of} {factor(row['gain'])} times{sure}"


def costs(document: Document) -> str:
    """Return what is bought, for how much, and how long the SSD lasts."""
    pick = document["recommended"]
    bought = pick["bought"]
    words = f"{drives(bought)} ({bought['drive']}{', mirrored' if bought['mirrored'] else ''})"
    if bought["cost"] is None:
        return f"{words}; the price is unknown: specify [price] in a scenario."
    sentence = f"{words}: {cost(document, bought['cost'])}"
    if bought["total_cost"] is not None:
        sentence += f", {cost(document, bought['total_cost'])} with the disks"
    if pick["years"] is not None:
        sentence += f"; at this load the SSD lasts {lasting(pick['years'])}"
    return sentence + "."


def drives(bought: Document) -> str:
    """Return number and size of the SSDs: 2 x 1.92 TB."""
    from hybridsim.answers.advice.alternatives import human_drive

    return f"{bought['drives']} x {human_drive(bought['drive_bytes'])}"


def risks(document: Document) -> list[str]:
    """Return the risks of the recommended machine, the most serious first."""
    pick = document["recommended"]
    result = []
    if pick["bought"]["mirrored"]:
        result.append(
            f"dirty data exist only on the SSD ({human_size(pick['dirty_bytes'])} at the end): "
            "without a mirror they are lost if the SSD fails"
        )
    if is_tail_worse(pick):
        after, before = (latency(pick["p99_ns"][each]) for each in ("cached", "none"))
        result.append(f"the slowest 1% get slower, {after} instead of {before}")
    if not pick["dirty_is_steady"]:
        share = percent(pick["dirty_grown"])
        result.append(f"dirty data still grow ({share} of what was written)")
    if not pick["steady"] and document["inputs"]["trace"]["reads"]:
        result.append(f"not steady yet: {pick['why_not_steady']}")
    warm, whole = pick["warm_gain"], pick["whole_gain"]
    if warm and whole and max(warm / whole, whole / warm) > VARIES:
        result.append(
            f"the gain varies: {factor(warm)} times once all caches are warm, "
            f"{factor(whole)} over the whole run"
        )
    return [*result, "another day's load may differ"]


def is_tail_worse(pick: Document) -> bool:
    """Return whether a machine makes the slowest requests much slower."""
    before, after = pick["p99_ns"]["none"], pick["p99_ns"]["cached"]
    return bool(before and after and after > WORSE_TAIL * before)


def assumed(document: Document) -> str:
    """Return the assumptions."""
    site = str(document["inputs"]["scenario"]["summary"]).partition("; cache")[0]
    price = document["price"]
    way = {
        "open": "requests arrive at their recorded times",
        "think": "requests wait for earlier ones (mode think)",
        "closed": "a fixed queue depth",
    }[document["mode"]]
    by = "forecast" if document["recommended"]["is_forecast"] else "lower end of the gain"
    return (
        f"{site}; {way}; chosen by the {by}; "
        f"{price['ssd_per_gb']:g} {price['currency']} per GB of SSD ({price['date']})."
    )


def range_head(document: Document) -> str:
    """Return the head of the column of intervals of 90 %."""
    return "forecast" if document["recommended"]["is_forecast"] else "90%"


def same_requests(document: Document) -> str:
    """Return which requests each column of the table of machines is of."""
    pick = document["recommended"]
    of_range = "of the gain, 5 to 95%"
    if pick["is_forecast"]:
        ahead = span(round(HORIZON * document["inputs"]["trace"]["span_ns"]))
        of_range = f"of the gain over the {ahead} that follow, 5 to 95%"
    mirrored = any(row["bought"]["mirrored"] for row in document["rows"])
    pair = ", write-back on a mirrored pair" if mirrored else ""
    return (
        f"gain, read, write and p99: the second half, from request {pick['judged']['first']:,} "
        f"on; {range_head(document)}: {of_range}; warm: from {pick['warm']['first']:,} on, where "
        f"the last of them is warm, or the last fifth; whole, hit: all; cost: of the SSDs{pair}."
    )


def questions(document: Document) -> list[tuple[str, str]]:
    """Return the guide's five questions, each with its answer."""
    return [
        ("I/O-bound?", _io_bound(document)),
        ("bottleneck", _then(document)),
        ("random?", _random(document)),
        ("hot spot?", _hot(document)),
        ("how much?", _how_much(document)),
    ]


def _of(document: Document, name: str) -> Document | None:
    return next((each for each in document["compared"] if each["name"] == name), None)


def _io_bound(document: Document) -> str:
    activity = document["activity"]
    busy, most = activity["busy_share"], activity["most_gain"]
    if busy is None or most is None:
        return "Can't say: the trace has no completions (record complete events too)."
    disks = _of(document, "disks")
    on_disks = disks["waiting"] if disks else None
    share = max(busy, on_disks or 0.0)
    answer = "Yes." if share >= MOSTLY else "Partly." if share >= HARDLY else "No."
    text = (
        f"{answer} During the capture, requests were outstanding for {percent(busy)} of the time, "
        f"{activity['outstanding']:.1f} at once; infinitely fast storage would have made that work "
        f"at most {_most(most)} faster"
    )
    if activity["think_ns"] is not None:
        text += f" (its median pause is {latency(activity['think_ns'])})"
    if on_disks is not None:
        text += f". On these disks the application would wait for {percent(on_disks)} of its time"
    return text + "."


def _most(most: float) -> str:
    return "100 times or more" if most >= 100 else times(most) if most >= 1.05 else "5%"


def _then(document: Document) -> str:
    hybrid = _of(document, "hybrid")
    if hybrid is None:
        return "Not simulated: --compare hybrid."
    waits, busy = hybrid["waiting"], hybrid["utilisation"]
    if busy is not None and busy >= BUSY:
        text = f"still the disks: {percent(busy)} busy"
    elif waits is None:
        text = f"the disks are {percent(busy)} busy"
    elif waits >= MOSTLY:
        text = f"still storage: the application waits {percent(waits)} of its time"
    else:
        text = f"the application itself: it waits for storage for {percent(waits)} of its time"
    rest = "For CPU, memory and network use vmstat and sar: a trace does not have them."
    return f"With the cache {text}. {rest}"


def _random(document: Document) -> str:
    activity = document["activity"]
    random = activity["random_reads"]
    if random is None:
        return "There are no reads: only a write-back cache can help."
    answer = "Yes" if random >= RANDOM else "No"
    text = (
        f"{answer}: {percent(random)} of the reads do not continue where their process's previous "
        f"read ended; {percent(activity['read_share'])} of the requests are reads."
    )
    trace = document["inputs"]["trace"]
    number = trace["reads"] + trace["writes"]
    shown = [
        one for one in activity["processes"] if one["reads"] + one["writes"] >= SHOWN_MIN * number
    ]
    if len(shown) > 1:
        text += " By process: " + "; ".join(map(_process, shown[:3])) + "."
    return text


def _process(one: Document) -> str:
    both = one["reads"] + one["writes"]
    random = ""
    if one["reads"]:
        random = f", {percent(1 - one['sequential_reads'] / one['reads'])} random"
    return f"{one['stream']}: {human_count(both)}, {percent(one['reads'] / both)} reads{random}"


def _hot(document: Document) -> str:
    hot = document["hot_spot"]
    if hot["answer"] == "unsure":
        return f"Can't say: the trace touches only {counted(hot['distinct'], 'page')}."
    answer = {"yes": "Yes", "slight": "Slightly", "no": "No"}[hot["answer"]]
    half, most = (human_size(hot["needed"][name] * hot["page_bytes"]) for name in ("0.5", "0.8"))
    text = (
        f"{answer}: the hottest tenth of the pages gets {percent(hot['taken']['0.1'])} of the "
        f"accesses (uniform accesses: {percent(hot['even']['0.1'])}); the hottest {half} get half "
        f"of them, the hottest {most} 80%. "
        f"{percent(hot['touched_once'])} of the pages are touched only once."
    )
    if hot["answer"] == "no" or hot["moves"] is None:
        return text
    moves = "It moves" if hot["moves"] else "It stays"
    return (
        f"{text} {moves}: the hottest tenth of half of a quarter's requests gets "
        f"{percent(hot['kept'][0])} of the accesses of its other half, and "
        f"{percent(hot['kept'][3])} of those three quarters later."
    )


def _how_much(document: Document) -> str:
    pick = document["recommended"]
    return (
        f"{human_size(pick['size_bytes'])} of {label(pick)}. The knee of the LRU curve "
        f"(no devices) is at {human_size(document['knee_bytes'])}; caches of buckets or blocks "
        "need up to twice that."
    )


def alternatives(document: Document) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of the table of what else could be bought."""
    is_think = document["mode"] == "think"
    kind = "read" if document["inputs"]["trace"]["reads"] else "write"
    heads = ["compared", "drives", "cost", kind, "p99",
             "done in" if is_think else "busy", "IOPS",
             f"per {document['price']['currency']}"]  # fmt: skip
    rows = []
    for one in document["compared"]:
        price, iops = one["cost"], one["most_iops"]
        rows.append([
            NAMES[one["name"]], one["words"], cost(document, price),
            latency(one["mean_ns"]), latency(one["p99_ns"]),
            span(one["all_ns"]) if is_think else percent(one["utilisation"]),
            NONE if iops is None else human_count(iops),
            NONE if not price or iops is None
            else f"{iops / price:.2f}" if iops / price < 10 else human_count(iops / price),
        ])  # fmt: skip
    return heads, rows


def prices(document: Document) -> str:
    """Return the prices and their source."""
    price = document["price"]
    return (
        f"{price['hdd_per_gb']:g} {price['currency']} per GB of disk, {price['ssd_per_gb']:g} of "
        f"SSD ({price['date']}, {price['source']}); specify your own as [price] in a scenario. "
        f"Each alternative holds {human_size(document['data_bytes'])} (--data)."
    )


def compared_by(document: Document) -> str:
    """Return what the alternatives are compared by."""
    done = "; done in: including the application's own pauses"
    short = ". Short stroke: only this volume, on the outer tracks."
    return (
        f"the second half of the requests; IOPS: the maximum, at queue depth {document['depth']}"
        + (done if document["mode"] == "think" else "")
        + ("." if _of(document, "short-stroke") is None else short)
    )


# The text.


def text(advice: Advice, ascii_only: bool = False, details: bool = False) -> str:
    """Return the advice as text: one screen, or with `details` all of it."""
    document = plain(advice.to_dict())
    line = record(document) or build(document)
    end = paragraph("next", line) if line else []
    head = list(_head(document, RISKS_SHOWN))
    if details:
        return page([*head, "", *_details(document), *end], ascii_only)
    room = SCREEN - len(end) - 2
    if len(head) + OTHERS_SHOWN > room:
        head = list(_head(document, RISKS_SHOWN, has_check=False))
    for number in range(RISKS_SHOWN - 1, 0, -1):
        if len(head) > room:  # fewer, so that --details can be named
            head = list(_head(document, number, has_check=False))
    return page([*head, *_others(document, room - len(head) + 1), *end], ascii_only)


def _head(document: Document, number: int, has_check: bool = True) -> Iterator[str]:
    yield from trace_line(document["inputs"]["trace"])
    yield from paragraph("ADVICE", to_do(document))
    is_known = document["recommended"]["gain"] is not None
    if has_check and document["answer"] != NO and is_known:
        yield from paragraph("", f"Check: {command(document)}")
    yield from paragraph("brings", brings(document))
    if is_known:
        yield from paragraph("costs", costs(document))
    words = "; ".join(risks(document)[:number])
    yield from paragraph("risks", f"{words[:1].upper()}{words[1:]}.")
    yield from paragraph("assumed", assumed(document))


def _others(document: Document, room: int) -> list[str]:
    """Return one line for each other machine, with the reason why it is not recommended.

    Only the recommended kind is tried with other settings: it is there with its defaults too.
    """
    pick = document["recommended"]
    if pick["gain"] is None:
        return []
    best: dict[str, Document] = {}
    for each in document["rows"][1:]:
        if each["name"] != pick["name"] or (pick["setting"] and not each["setting"]):
            best.setdefault(each["name"], each)
    rows = list(best.values())
    others = len(document["rows"]) - 1
    fits = max(room - 2, 0) if len(rows) > room - 1 or others > len(rows) else len(rows)
    if fits < len(rows):  # then what the chosen kind gains with its defaults is the first to stay
        rows.sort(key=lambda each: each["name"] != pick["name"])
    shown = rows[:fits]
    left = others - len(shown)
    head = "rejected, with defaults" if pick["setting"] else "rejected"
    lines = [*table(
        [head, "SSD", "gain", range_head(document), "why"],
        [[each["name"], human_size(each["size_bytes"]), factor(each["gain"]),
          interval(each), each["loses"]] for each in shown],
    )] if shown else []  # fmt: skip
    if left:
        lines.append(f"{left} more machines and the comparison with other purchases: --details")
    return ["", *lines[:room]]


def _details(document: Document) -> Iterator[str]:
    yield from table(*machines(document), " ")
    star = "*: the advice; " if document["rows"] else ""
    yield from paragraph("compared", star + same_requests(document))
    lost: dict[str, list[str]] = {}
    for each in document["rows"][1:]:
        name = f"{label(each)} of {human_size(each['size_bytes'])}"
        lost.setdefault(each["loses"], []).append(name)
    for why, names in lost.items():
        yield from paragraph("", f"{why[:1].upper()}{why[1:]}: {'; '.join(names)}.")
    yield ""
    for number, (name, answer) in enumerate(questions(document), 1):
        yield from paragraph(f"{number} {name}", answer)
    yield ""
    yield from table(*alternatives(document))
    yield from paragraph("prices", prices(document))
    yield from paragraph("compared by", compared_by(document))
    yield from paragraphs("notes", document["notes"])


def machines(document: Document) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of the table of all replayed machines, of the same requests.

    The first row is that of the disks alone; a star marks the recommended machine.
    """
    heads = ["machine", "SSD", "gain", range_head(document), "warm", "whole", "read", "write",
             "p99", "hit", "cost"]  # fmt: skip
    rows = [["disks alone", *[""] * 5, *_times(document["recommended"], "none"), "", ""]]
    for number, row in enumerate(document["rows"]):
        gain, warm, whole = (factor(row[name]) for name in ("gain", "warm_gain", "whole_gain"))
        rows.append([
            label(row) + " *" * (number == 0), human_size(row["size_bytes"]), gain, interval(row),
            warm, whole, *(_times(row, "cached") if row["keeps_up"] else [NONE] * 3),
            percent(row["hit"]), cost(document, row["bought"]["cost"]),
        ])  # fmt: skip
    return heads, rows


def _times(row: Document, side: str) -> list[str]:
    """Return mean read, mean write and p99 of a machine, or of the disks alone beside it."""
    means = (row["judged"][side][name]["mean_ns"] for name in ("read", "write"))
    return [latency(each) for each in (*means, row["p99_ns"][side])]
