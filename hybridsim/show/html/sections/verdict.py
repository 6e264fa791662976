"""The verdict and its most important figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import NONE, answered, latency, percent, span
from hybridsim.show.charts.documents import Phase, phases
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Section, Table


def section(document: Mapping[str, Any]) -> Section:
    """Return the answer, its reasons, the key figures and the warnings."""
    verdict = document["verdict"]
    word = answered(verdict["answer"], verdict["is_certain"])
    answer = f"{word} {verdict['headline']}"
    blocks: list[Block] = [
        Prose([answer, *verdict["reasons"]], verdict["answer"]),
        KeyFigures(list(_figures(document))),
        *_required(document),
        figures_table(document, "read", "Reads"),
    ]
    if document["phases"]["whole"]["write"]["n"]:
        blocks.append(figures_table(document, "write", "Writes"))
    blocks.append(_pairs(document))
    if document["warnings"]:
        texts = [f"{each['text']} {each['fix'] and '(' + each['fix'] + ')'}".strip()
                for each in document["warnings"]]  # fmt: skip
        blocks.append(Prose(["Warnings about these figures:", *texts], "note"))
    return Section("verdict", "Verdict", blocks)


PAIRS = {"filling": "while it fills", "warm": "once warm", "judged": "second half (compared)",
         "whole": "whole run"}  # fmt: skip
NOT_STEADY = {"filling": "before the last fifth", "warm": "last fifth"}


def _pairs(document: Mapping[str, Any]) -> Table:
    """Return a table of the same requests without the cache and with it, by part of the run."""
    heads = ["requests", "direction", "number", "mean, no cache", "mean", "p99, no cache", "p99",
             "time, no cache", "time"]  # fmt: skip
    rows = []
    steady = document["warm_up"]["level"] is not None
    for name, words in (PAIRS if steady else PAIRS | NOT_STEADY).items():
        pair = document["judgement"]["pairs"].get(name)
        if pair is None:
            continue
        took = [span(pair[side]["took_ns"]) for side in ("none", "cached")]
        for direction in ("read", "write"):
            before, after = (pair[side][direction] for side in ("none", "cached"))
            if after["n"]:
                means = [latency(each["mean_ns"]) for each in (before, after)]
                tails = [latency(each["p99_ns"]) for each in (before, after)]
                rows.append(
                    [words, f"{direction}s", human_count(after["n"]), *means, *tails, *took]
                )
    return Table("The same requests without and with the cache", heads, rows, is_folded=True)


def _figures(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    result = phases(document)
    alone, last = result[0], result[-1]
    if last is alone:
        read = alone.figures["read"]
        yield "mean read", _latency(alone, read["mean_ns"]), ""
        yield "p99 of the reads", _latency(alone, read["p"]["99"]), ""
    else:
        read, before = last.figures["read"], alone.figures["read"]
        yield "reads from the SSD", percent(read["hit"]), f"{last.label}"
        for label, now, then in (
            ("mean read", read["mean_ns"], before["mean_ns"]),
            ("p99 of the reads", read["p"]["99"], before["p"]["99"]),
        ):
            yield label, _latency(last, now), f"no cache: {_latency(alone, then)}"
        yield "warm after", *_warm(document["warm_up"])
    busy = last.figures["disk_utilisation"]
    without = f"no cache: {percent(alone.figures['disk_utilisation'])}"
    yield "disks busy", percent(busy), without if last is not alone else ""
    size = document["inputs"]["scenario"].get("cache_bytes")
    touched = document["inputs"]["trace"].get("footprint_bytes")
    if size:
        share = f"{percent(size / touched)} of what the trace touches" if touched else ""
        yield "cache", human_size(size), share


def _warm(warm_up: Mapping[str, Any]) -> tuple[str, str]:
    if warm_up["state"] == "steady":
        return span(warm_up["t90_ns"]) if warm_up[
            "t90_ns"
        ] else "at once", "90% of the steady level"
    return NONE, "no warm-up" if warm_up["state"] == "flat" else "not steady yet"


def _latency(phase: Phase, value: float | None) -> str:
    return "saturated" if phase.figures["saturated"] else latency(value)


def _required(document: Mapping[str, Any]) -> Iterator[Table]:
    checked = document.get("require") or []
    if checked:
        rows = [[each["expr"], each["words"], "met" if each["ok"] else "not met"]
                for each in checked]  # fmt: skip
        yield Table("Requirements", ["", "result", ""], rows)


def figures_table(document: Mapping[str, Any], what: str, caption: str) -> Table:
    """Return the figures of reads or writes, one row per phase."""
    heads = ["", "number", *(["hit"] if what == "read" else []), "mean", "p50", "p99", "p99.9",
             "max", *(["disks busy", "SSD busy"] if what == "read" else [])]  # fmt: skip
    rows = []
    for each in phases(document):
        result = each.figures[what]
        values = [result["mean_ns"], *(result["p"][name] for name in ("50", "99", "99.9"))]
        values.append(result["max_ns"])
        known = [NONE] * 5 if each.figures["saturated"] else [latency(one) for one in values]
        name = each.label
        if each.role == "cold":
            name = f"{each.label} < {span(each.figures['end_ns'])}"
        row = [name, human_count(result["n"]), *known]
        if what == "read":
            row.insert(2, NONE if each.role == "none" else percent(result["hit"]))
            row.append(percent(each.figures["disk_utilisation"]))
            row.append(NONE if each.role == "none" else percent(each.figures["ssd_utilisation"]))
        rows.append(row)
    return Table(caption, heads, rows, [len(rows) - 1])
