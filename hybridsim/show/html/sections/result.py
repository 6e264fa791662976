"""Sections of a replay: verdict, events, warm-up, latency, where the time goes, wear, cost."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.answers.verdict import SHORTEST_NS
from hybridsim.foundation.explain import TERMS
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import (
    NONE,
    answered,
    lasting,
    latency,
    money,
    percent,
    ranged,
    ranged_money,
    ranged_size,
    span,
)
from hybridsim.show.charts import replay as charts
from hybridsim.show.charts.replay import Document, Phase, has_cache, phases, reason_in_words
from hybridsim.show.events import HEADS, sentences
from hybridsim.show.events import table as events_table
from hybridsim.show.html.blocks import (
    Block,
    KeyFigure,
    KeyFigures,
    Prose,
    Row,
    Section,
    Table,
)
from hybridsim.show.html.sections.shared import warnings_of
from hybridsim.show.page import after

PAIRS = {"filling": "while it fills", "warm": "once warm", "judged": "second half (compared)",
         "whole": "whole run"}  # fmt: skip
NOT_STEADY = {"filling": "before the last fifth", "warm": "last fifth"}
SHOWN = ("50", "90", "95", "99", "99.9", "99.99")  # percentiles


def verdict(document: Document) -> Section:
    """Return the answer, its reasons, the key figures and the warnings."""
    found = document["verdict"]
    answer = f"{answered(found['answer'], found['is_certain'])} {found['headline']}"
    rows = [
        [each["expr"], each["words"], "met" if each["ok"] else "not met"]
        for each in document.get("require") or ()
    ]
    texts = warnings_of(document)
    blocks: list[Block | None] = [
        Prose([answer, *found["reasons"]], found["answer"]),
        KeyFigures(list(_key_figures(document))),
        Table("Requirements", ["", "result", ""], rows) if rows else None,
        _figures(document, "read"),
        _figures(document, "write") if document["phases"]["whole"]["write"]["n"] else None,
        _pairs(document),
        Prose(["Warnings about these figures:", *texts], "note") if texts else None,
    ]
    return Section("verdict", "Verdict", blocks)


def _key_figures(document: Document) -> Iterator[KeyFigure]:
    alone, *others = phases(document)
    last = others[-1] if others else alone
    read, before = last.figures["read"], alone.figures["read"]
    if others:
        yield "reads from the SSD", percent(read["hit"]), last.label
    for label, now, then in (
        ("mean read", read["mean_ns"], before["mean_ns"]),
        ("p99 of the reads", read["p"]["99"], before["p"]["99"]),
    ):
        yield label, _latency(last, now), f"no cache: {_latency(alone, then)}" if others else ""
    if others:
        yield "warm after", *_warm(document["warm_up"])
    without = f"no cache: {percent(alone.figures['disk_utilisation'])}" if others else ""
    yield "disks busy", percent(last.figures["disk_utilisation"]), without
    size = document["inputs"]["scenario"].get("cache_bytes")
    touched = document["inputs"]["trace"].get("footprint_bytes")
    if size:
        share = f"{percent(size / touched)} of what the trace touches" if touched else ""
        yield "cache", human_size(size), share


def _latency(phase: Phase, value: float | None, unknown: str = "saturated") -> str:
    return unknown if phase.figures["saturated"] else latency(value)


def _warm(warm_up: Document) -> tuple[str, str]:
    if warm_up["state"] == "steady":
        warm_ns = warm_up["t90_ns"]
        return span(warm_ns) if warm_ns else "at once", "90% of the steady level"
    return NONE, "no warm-up" if warm_up["state"] == "flat" else "not steady yet"


def _figures(document: Document, what: str) -> Table:
    """Return the figures of reads or writes, one row per phase."""
    is_read = what == "read"
    heads = ["", "number", *["hit"] * is_read, "mean", "p50", "p99", "p99.9", "max",
             *["disks busy", "SSD busy"] * is_read]  # fmt: skip
    rows = []
    for each in phases(document):
        result = each.figures[what]
        values = [result["mean_ns"], *(result["p"][name] for name in ("50", "99", "99.9"))]
        known = [_latency(each, value, NONE) for value in (*values, result["max_ns"])]
        until = f" < {span(each.figures['end_ns'])}" if each.role == "cold" else ""
        row = [f"{each.label}{until}", human_count(result["n"]), *known]
        if is_read:
            is_alone = each.role == "none"
            row.insert(2, NONE if is_alone else percent(result["hit"]))
            row.append(percent(each.figures["disk_utilisation"]))
            row.append(NONE if is_alone else percent(each.figures["ssd_utilisation"]))
        rows.append(row)
    return Table(f"{what.capitalize()}s", heads, rows, [len(rows) - 1])


def _pairs(document: Document) -> Table:
    """Return a table of the same requests without the cache and with it, by part of the run."""
    heads = ["requests", "direction", "number", "mean, no cache", "mean", "p99, no cache", "p99",
             "time, no cache", "time"]  # fmt: skip
    rows = []
    steady = document["warm_up"]["level"] is not None
    for name, words in (PAIRS if steady else PAIRS | NOT_STEADY).items():
        pair = document["judgement"]["pairs"].get(name)
        if pair is None:
            continue
        sides = pair["none"], pair["cached"]
        took = [span(side["took_ns"]) for side in sides]
        for direction in ("read", "write"):
            both = [side[direction] for side in sides]
            if number := both[1]["n"]:
                times = [latency(each[key]) for key in ("mean_ns", "p99_ns") for each in both]
                rows.append([words, f"{direction}s", human_count(number), *times, *took])
    return Table("The same requests without and with the cache", heads, rows, is_folded=True)


def events(document: Document) -> Section:
    """Return what happened during the load."""
    kind = document["inputs"]["scenario"].get("cache_kind", "none")
    blocks: list[Block | None] = [
        block
        for event in document.get("events") or ()
        for block in (
            Prose(list(sentences(event, kind))),
            Table(event["how"], HEADS, events_table(event)),
        )
    ]
    return Section("events", "Events", blocks)


def warm_up(document: Document) -> Section | None:
    """Return charts of hit ratio, latency and occupancy over the same time axis."""
    if not has_cache(document) or len(document["series"]["start_ns"]) < 2:
        return None
    hint = (
        "Point at a chart to read the values of all; drag along the time axis to zoom in, "
        "double-click to zoom out."
    )
    return Section(
        "warm-up",
        "Warm-up",
        [*charts.warm_up(document), Prose([hint], "hint")],
        _warm_up_in_words(document["warm_up"]),
    )


def _warm_up_in_words(result: Document) -> str:
    if result["state"] == "flat":
        return f"No warm-up: {result['why']}."
    if result["state"] != "steady":
        return f"Not steady yet: {result['why']}."
    times = {share: after(result[f"t{share}_ns"]) for share in (50, 90, 95)}
    known = result.get("t90")
    if known and known["value"]:
        times[90] = f"after {ranged(known['value'], known['low'], known['high'])}"
    steps = ", ".join(f"{share}% {time}" for share, time in times.items())
    level = result["level"]
    steady = percent(level) if result["measure"] == "hit ratio" else f"{human_count(level)} IOPS"
    return f"From the empty to the steady state: {steps}. Steady at {steady}."


def latencies(document: Document) -> Section | None:
    """Return cumulative distributions and a table of percentiles."""
    drawn = list(charts.distributions(document))
    if not drawn:
        return None
    rows = [
        [each.label, *(latency(each.figures["read"]["p"][name]) for name in SHOWN)]
        for each in phases(document)
    ]
    heads = ["", *(f"p{each}" for each in SHOWN)]
    table = Table("Percentiles of the reads", heads, rows, is_folded=True)
    blocks: list[Block] = [Row(drawn), table]
    if any(each.figures["saturated"] for each in phases(document)):
        remark = (
            "Some of these machines are saturated: their latencies depend on the length of the run."
        )
        blocks.insert(0, Prose([remark], "note"))
    lead = "Share of the requests that took at most this long; further to the left is better."
    return Section("latency", "Latency", blocks, lead)


def time(document: Document) -> Section:
    """Return the parts of a read's latency, and the activities of disks and SSDs."""
    blocks: list[Block | None] = [
        charts.ways(document),
        charts.device_time(document),
        charts.disk_time(document),
        charts.disks_over_time(document),
        charts.ssds_over_time(document),
    ]
    return Section("time", "Where the time goes", blocks)


def reasons(document: Document) -> Section | None:
    """Return the reasons over time and by phase, each with its meaning."""
    totals = document["bypass"]
    if not totals or not has_cache(document):
        return None
    shown = phases(document)[1:]
    rows = []
    for name in sorted(totals, key=lambda name: -totals[name]):
        cells = []
        for each in shown:
            number, reads = each.figures["bypass"].get(name, 0), each.figures["read"]["n"]
            cells += [human_count(number), percent(number / reads if reads else None)]
        rows.append([reason_in_words(name), *cells])
    heads = ["", *(head for each in shown for head in (each.label, "of the reads"))]
    words = map(reason_in_words, totals)
    meanings = [[word, TERMS[word]] for word in words if word in TERMS]
    blocks = [
        charts.reasons(document),
        Table("Reads by reason", heads, rows),
        Table("Meaning of the reasons", ["", ""], meanings, is_folded=True),
    ]
    lead = "Each read that was not served from the SSD has exactly one reason."
    return Section("reasons", "Why not from the SSD", blocks, lead)


def wear(document: Document) -> Section | None:
    """Return the wear over the whole run, and the writes to the SSDs over time."""
    worn = document.get("wear")
    if not worn or not has_cache(document):
        return None
    blocks = [KeyFigures(list(_wear(document, worn))), charts.written(document)]
    return Section("wear", "SSD wear", blocks)


def _wear(document: Document, wear: Document) -> Iterator[KeyFigure]:
    whole = document["phases"]["whole"]
    judged = whole["end_ns"] - whole["start_ns"]
    yield "written to the SSD", human_size(wear["bytes_written"]), f"in {span(judged)}"
    if judged >= SHORTEST_NS:
        known = wear.get("per_day")
        sure = known and ranged_size(known["value"], known["low"], known["high"])
        yield "a day, at this rate", sure or human_size(wear["bytes_per_day"]), ""
        if wear["drive_writes_per_day"] is not None:
            yield "drive writes per day", f"{wear['drive_writes_per_day']:.2g}", "DWPD"
        if wear["years"] is not None:
            yield "rated life", lasting(wear["years"]), ""
    for key, words in (
        ("per_host_write", "bytes to the SSD per byte written by the host"),
        ("read_per_written", "bytes read from the SSD per byte written to it"),
        ("in_flash", "bytes to the flash per byte written to the SSD"),
    ):
        ratio = wear[key]
        if ratio is not None:
            often = key == "per_host_write" and ratio > 99
            yield words, "over 99" if often else f"{ratio:.2f}", ""


def cost(document: Document) -> Section | None:
    """Return costs, latencies and the assumed prices; None if no price is known."""
    bill = document.get("cost")
    if not bill or bill["ssd_cost"] is None:
        return None
    blocks: list[Block | None] = [
        KeyFigures(list(_cost(document, bill))),
        _bill(document, bill),
        Prose(["Assumptions:", *_assumed(bill)], "note"),
        Prose(["To compare other purchases: hybridsim advise TRACE"], "hint"),
    ]
    return Section("cost", "Cost", blocks)


def _cost(document: Document, cost: Document) -> Iterator[KeyFigure]:
    unit = cost["price"]["currency"]
    size = human_size(document["inputs"]["scenario"]["cache_bytes"])
    yield "SSD space of the cache", money(cost["ssd_cost"], unit), size
    if cost["per_saved_ms"] is not None:
        each = ranged_money(cost["per_saved_ms"], cost["per_saved_range"], unit)
        yield f"per ms saved of {cost['what']}", each, f"{latency(cost['saved_ns'])} saved"
    if cost["disks_cost"]:
        share = percent(cost["ssd_cost"] / cost["disks_cost"])
        yield "relative to the disks", share, "of their cost"
    worn = document.get("wear") or {}
    if worn.get("years"):
        yield "SSD wear per year", money(cost["ssds_cost"] / worn["years"], unit), cost["ssds"]


def _bill(document: Document, cost: Document) -> Table:
    """Return cost and latency of the disks alone and with the cache."""
    alone, *_, cached = phases(document)
    kind, disks = cost["what"].removesuffix("s"), cost["disks_cost"]
    size = human_size(document["inputs"]["scenario"]["cache_bytes"])
    rows = []
    for drives, more, each in (
        (cost["disks"], 0.0, alone),
        (f"{cost['disks']} + {size} of SSD", cost["ssd_cost"], cached),
        (f"{cost['disks']} + {cost['ssds']} of SSD", cost["ssds_cost"], cached),
    ):
        total = NONE if disks is None else money(disks + more, cost["price"]["currency"])
        of = each.figures[kind]
        times = [_latency(each, value) for value in (of["mean_ns"], of["p"]["99"])]
        rows.append([drives, total, *times])
    return Table("Cost and latency", ["drives", "cost", f"mean {kind}", f"p99 {kind}"], rows)


def _assumed(cost: Document) -> Iterator[str]:
    price = cost["price"]
    origin = "the scenario" if cost["is_own"] else "the catalog, as the scenario has no [price]"
    disk, ssd = (f"{price[name]:g} {price['currency']}" for name in ("hdd_per_gb", "ssd_per_gb"))
    yield (
        f"{disk} per GB of disk and {ssd} per GB of SSD in {price['date']}: prices of {origin} "
        f"({price['source']})."
    )
    yield (
        "Disks are bought whole. The second row charges only the part of the SSD that the cache "
        "uses (the rest has other users); the last row charges the whole SSD."
    )
    yield "Only drives are counted: no server, controller, power, spares or labour."
