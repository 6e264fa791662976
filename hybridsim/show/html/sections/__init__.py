"""The sections of reports.  To add one: a file with `section(document)`, a line in SECTIONS.

A section is built from the document that `--json` writes, so that both agree.  If the document has
no data for a section, `section` returns None.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from hybridsim.show.html.blocks import Section

# Sections by the schema of the document: modules of this folder, in order.
SECTIONS = {
    "hybridsim.result": (
        "verdict", "events", "warm_up", "latency", "disks", "reasons", "size", "wear", "cost",
        "doctor", "explore", "reproduce",
    ),
    "hybridsim.size": ("sizing", "size", "doctor", "explore", "reproduce"),
    "hybridsim.advice": ("advice", "advice_machines", "advice_questions", "explore", "reproduce"),
    "hybridsim.fleet": ("fleet_advice", "fleet_members", "explore", "reproduce"),
    "hybridsim.bench": ("bench", "bench_depths", "explore", "reproduce"),
    "hybridsim.sweep": (
        "fleet", "sweep_best", "sweep_effects", "sweep_settings", "explore", "reproduce",
    ),
    "hybridsim.comparison": ("agreement", "curves", "explore", "reproduce"),
}  # fmt: skip


def sections_of(document: Mapping[str, Any]) -> list[Section]:
    """Return the sections for which the document has data."""
    family = str(document["schema"]).partition("/")[0]
    modules = (importlib.import_module(f"{__name__}.{name}") for name in SECTIONS[family])
    return [each for each in (module.section(document) for module in modules) if each is not None]
