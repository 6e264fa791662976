"""The sections of reports.  To add one: a file with `section(document)`, a line in SECTIONS.

A section is built from the document that `--json` writes, so that both agree.  If the document has
no data for a section, `section` returns None, or one without blocks.  A file may have several:
"result.wear" is `wear` of result.py.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.show.html.blocks import Section

# Sections by the schema of the document: in this folder, in order.
SECTIONS = {
    "hybridsim.result": (
        "result.verdict", "result.events", "result.warm_up", "result.latencies", "result.time",
        "result.reasons", "shared.sizes", "result.wear", "result.cost", "shared.trace",
    ),
    "hybridsim.size": ("size.answer", "shared.sizes", "shared.trace"),
    "hybridsim.advice": ("advice.answer", "advice.machines", "advice.questions"),
    "hybridsim.fleet": ("advice.fleet", "advice.members"),
    "hybridsim.bench": ("bench.most", "bench.depths"),
    "hybridsim.sweep": ("sweep.fleet", "sweep.best", "sweep.effects", "sweep.settings"),
    "hybridsim.comparison": ("comparison.agreement", "comparison.curves"),
}  # fmt: skip
LAST = ("shared.explore", "shared.reproduce")  # of all


def sections_of(document: Mapping[str, Any]) -> Iterator[Section]:
    """Yield the sections for which the document has data."""
    for name in (*SECTIONS[str(document["schema"]).partition("/")[0]], *LAST):
        module, _, function = name.partition(".")
        section_of = getattr(importlib.import_module(f"{__name__}.{module}"), function or "section")
        if (section := section_of(document)) and section.blocks:
            yield section
