"""What the machine costs, and what its cache saves for that."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, latency, money, percent
from hybridsim.show.charts.documents import Document, phases
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Section, Table


def section(document: Document) -> Section | None:
    """Return costs beside latencies, and what is assumed of prices; None where none are known."""
    cost = document.get("cost")
    if not cost or cost["ssd_cost"] is None:
        return None
    assumed = Prose(["What is assumed:", *_assumed(cost)], "note")
    further = Prose(["What else could be bought for it: hybridsim advise TRACE"], "hint")
    blocks: list[Block] = [KeyFigures(list(_figures(document, cost))), _table(document, cost)]
    return Section("cost", "Cost", [*blocks, assumed, further])


def _figures(document: Document, cost: Document) -> Iterator[tuple[str, str, str]]:
    unit = cost["price"]["currency"]
    size = human_size(document["inputs"]["scenario"]["cache_bytes"])
    yield "the SSD that the cache takes", money(cost["ssd_cost"], unit), size
    if cost["per_saved_ms"] is not None:
        saved = f"{latency(cost['saved_ns'])} saved"
        yield f"per ms saved of {cost['what']}", money(cost["per_saved_ms"], unit), saved
    if cost["disks_cost"]:
        yield "beside the disks", percent(cost["ssd_cost"] / cost["disks_cost"]), "of their cost"
    wear = document.get("wear") or {}
    if wear.get("years"):
        yield (
            "wear of the SSD, a year",
            money(cost["ssds_cost"] / wear["years"], unit),
            cost["ssds"],
        )


def _table(document: Document, cost: Document) -> Table:
    """Return what the disks alone and those with SSDs cost, and give."""
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
    return Table("What it costs", ["drives", "cost", f"mean {kind}", f"p99 {kind}"], cells)


def _sum(cost: Document, more: float) -> str:
    disks = cost["disks_cost"]
    return NONE if disks is None else money(disks + more, cost["price"]["currency"])


def _latencies(figures: Document, kind: str) -> list[str]:
    if figures["saturated"]:
        return ["endless queue"] * 2
    return [latency(figures[kind]["mean_ns"]), latency(figures[kind]["p"]["99"])]


def _assumed(cost: Document) -> Iterator[str]:
    price = cost["price"]
    origin = "the scenario" if cost["is_own"] else "the catalog, as the scenario has no [price]"
    disk, ssd = (f"{price[name]:g} {price['currency']}" for name in ("hdd_per_gb", "ssd_per_gb"))
    yield (
        f"{disk} per GB of disk and {ssd} of SSD, of {price['date']}: prices of {origin} "
        f"({price['source']})."
    )
    yield (
        "Disks are bought whole. Of the SSD what the cache takes, where others use the rest; the "
        "last row buys it whole for this cache alone."
    )
    yield "Drives only: no server, controller, power, spare or work."
