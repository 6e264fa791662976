"""Reasons for reads that were not served from the SSD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.explain import TERMS
from hybridsim.foundation.units import human_count
from hybridsim.foundation.wording import percent
from hybridsim.show.charts.documents import has_cache, phases
from hybridsim.show.charts.reasons import over_time, reason_in_words
from hybridsim.show.html.blocks import Section, Table


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the reasons over time and by phase, each with its meaning."""
    totals = document["bypass"]
    if not totals or not has_cache(document):
        return None
    chart = over_time(document)
    lead = "Each read that was not served from the SSD has exactly one reason."
    return Section(
        "reasons", "Why not from the SSD",
        [*([chart] if chart else []), _table(document, totals), _meanings(totals)], lead,
    )  # fmt: skip


def _table(document: Mapping[str, Any], totals: Mapping[str, int]) -> Table:
    shown = phases(document)[1:]
    rows = []
    for name in sorted(totals, key=lambda name: -totals[name]):
        cells = []
        for each in shown:
            number, reads = each.figures["bypass"].get(name, 0), each.figures["read"]["n"]
            cells += [human_count(number), percent(number / reads if reads else None)]
        rows.append([reason_in_words(name), *cells])
    heads = [head for each in shown for head in (each.label, "of the reads")]
    return Table("Reads by reason", ["", *heads], rows)


def _meanings(totals: Mapping[str, int]) -> Table:
    words = [reason_in_words(name) for name in totals]
    rows = [[word, TERMS[word]] for word in words if word in TERMS]
    return Table("Meaning of the reasons", ["", ""], rows, is_folded=True)
