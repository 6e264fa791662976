"""The events of a replay: reboots, the removal of the cache, failures."""

from __future__ import annotations

from hybridsim.show.charts.documents import Document
from hybridsim.show.events import HEADS, sentences, table
from hybridsim.show.html.blocks import Block, Prose, Section, Table


def section(document: Document) -> Section | None:
    """Return what happened during the load; None if nothing did."""
    events = document.get("events")
    if not events:
        return None
    blocks: list[Block] = []
    kind = document["inputs"]["scenario"].get("cache_kind", "none")
    for event in events:
        blocks.append(Prose(list(sentences(event, kind))))
        blocks.append(Table(event["how"], HEADS, table(event)))
    return Section("events", "Events", blocks)
