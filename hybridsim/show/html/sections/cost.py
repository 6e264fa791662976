"""The cost of the machine, and what its cache saves."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, latency, money, percent, ranged_money
from hybridsim.show.charts.documents import Document, phases
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Section, Table


def section(document: Document) -> Section | None:
    """Return costs, latencies and the assumed prices; None if no price is known."""
    cost = document.get("cost")
    if not cost or cost["ssd_cost"] is None:
        return None
    assumed = Prose(["Assumptions:", *_assumed(cost)], "note")
    further = Prose(["To compare other purchases: hybridsim advise TRACE"], "hint")
    blocks: list[Block] = [KeyFigures(list(_figures(document, cost))), _table(document, cost)]
    return Section("cost", "Cost", [*blocks, assumed, further])


def _figures(document: Document, cost: Document) -> Iterator[tuple[str, str, str]]:
    unit = cost["price"]["currency"]
    size = human_size(document["inputs"]["scenario"]["cache_bytes"])
    yield "SSD space of the cache", money(cost["ssd_cost"], unit), size
    if cost["per_saved_ms"] is not None:
        saved = f"{latency(cost['saved_ns'])} saved"
        yield (
            f"per ms saved of {cost['what']}",
            ranged_money(cost["per_saved_ms"], cost["per_saved_range"], unit),
            saved,
        )
    if cost["disks_cost"]:
        yield (
            "relative to the disks",
            percent(cost["ssd_cost"] / cost["disks_cost"]),
            "of their cost",
        )
    wear = document.get("wear") or {}
    if wear.get("years"):
        yield (
            "SSD wear per year",
            money(cost["ssds_cost"] / wear["years"], unit),
            cost["ssds"],
        )


def _table(document: Document, cost: Document) -> Table:
    """Return cost and latency of the disks alone and with the cache."""
    alone, *_, cached = phases(document)
    size = human_size(document["inputs"]["scenario"]["cache_bytes"])
    rows = [
        (cost["disks"], 0.0, alone),
        (f"{cost['disks']} + {size} of SSD", cost["ssd_cost"], cached),
        (f"{cost['disks']} + {cost['ssds']} of SSD", cost["ssds_cost"], cached),
    ]
    kind = cost["what"].removesuffix("s")
    cells = [
        [drives, _sum(cost, more), *_latencies(each.figures, kind)] for drives, more, each in rows
    ]
    return Table("Cost and latency", ["drives", "cost", f"mean {kind}", f"p99 {kind}"], cells)


def _sum(cost: Document, more: float) -> str:
    disks = cost["disks_cost"]
    return NONE if disks is None else money(disks + more, cost["price"]["currency"])


def _latencies(figures: Document, kind: str) -> list[str]:
    if figures["saturated"]:
        return ["saturated"] * 2
    return [latency(figures[kind]["mean_ns"]), latency(figures[kind]["p"]["99"])]


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
