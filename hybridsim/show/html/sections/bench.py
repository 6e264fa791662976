"""Sections of `bench`: the maximum of each I/O parameter, and charts by queue depth."""

from __future__ import annotations

from hybridsim.foundation.units import human_count, human_rate, human_size
from hybridsim.foundation.wording import NONE, latency, percent
from hybridsim.show.charts.answers import PARAMETERS, STATES, by_depth
from hybridsim.show.charts.replay import Document
from hybridsim.show.html.blocks import Prose, Row, Section, Table


def most(document: Document) -> Section:
    """Return the best of each parameter in each state of the cache."""
    setting = document["setting"]
    lead = (
        f"Random requests of {human_size(setting['block_bytes'])}, sequential requests of "
        f"{human_size(setting['sequential_bytes'])}; a hot spot of "
        f"{human_size(setting['hot_bytes'])}; {setting['requests']:,} requests per measurement."
    )
    blocks = [
        _most(document),
        _gains(document) if document["gains"] else None,
        _doubts(document),
        Prose(document["notes"], "note"),
    ]
    return Section("most", "Maximum rates", blocks, lead)


def _most(document: Document) -> Table:
    states = [name for name in STATES if any(one["state"] == name for one in document["points"])]
    heads = ["", *(head for state in states for head in (STATES[state], "at depth", "p99"))]
    rows = []
    for name in PARAMETERS:
        row = [name]
        for state in states:
            known = [one for one in document["points"]
                     if (one["state"], one["parameter"]) == (state, name)]  # fmt: skip
            best = max(known, key=lambda one: one["iops"], default=None)
            row += [NONE] * 3 if best is None else _cells(name, best)
        rows.append(row)
    return Table("Maximum of each parameter over all queue depths", heads, rows)


def _cells(name: str, best: Document) -> list[str]:
    is_sequential = name.startswith("sequential")
    rate = human_rate(best["bytes_per_s"]) if is_sequential else f"{human_count(best['iops'])} IOPS"
    return [rate + ("" if best["steady"] else " *"), str(best["depth"]), latency(best["p99_ns"])]


def _gains(document: Document) -> Table:
    """Return the gain of the warm cache by depth: of the same requests."""
    depths = document["setting"]["depths"]
    known = {(each["parameter"], each["depth"]): each["gain"] for each in document["gains"]}
    rows = [
        [name, *(f"{gain:.2f}" if (gain := known.get((name, depth))) else NONE for depth in depths)]
        for name in PARAMETERS
    ]
    heads = ["queue depth", *map(str, depths)]
    return Table("Rate with the warm cache over that without, same requests", heads, rows)


def _doubts(document: Document) -> Prose:
    unsteady = [one for one in document["points"] if not one["steady"]]
    if not unsteady:
        return Prose(["Every figure is steady: two measurements in a row agree."])
    worst = max(unsteady, key=lambda one: abs(one["drift"]))
    sentence = (
        f"{len(unsteady)} of {len(document['points'])} figures (*) are not steady: a second "
        f"measurement right after the first differs by up to {percent(abs(worst['drift']))} "
        f"({worst['parameter']}, {STATES[worst['state']]}, depth {worst['depth']})."
    )
    return Prose([sentence], "note")


def depths(document: Document) -> Section | None:
    """Return the charts of each parameter; None if only one depth was measured."""
    if len(document["setting"]["depths"]) < 2:
        return None
    lead = "The queue depth is the number of requests outstanding at a time."
    return Section("depths", "By queue depth", [Row(list(by_depth(document)))], lead)
