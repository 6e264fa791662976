"""Every setting of a sweep, with its objectives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.confidence import Estimate
from hybridsim.report.html.blocks import Prose, Section, Table
from hybridsim.sweep.objectives import Objective
from hybridsim.wording import NONE

SHOWN_MAX = 1000


def section(document: Mapping[str, Any]) -> Section | None:
    """Return them as a table, which is shown when asked for."""
    settings = document["settings"]
    if not settings:
        return None
    rows = [cells(document, one) for one in settings[:SHOWN_MAX]]
    title = f"{len(settings):,} settings"
    if len(settings) > SHOWN_MAX:
        title += f", the first {SHOWN_MAX:,} here; all are in the JSON"
    seeds = "± is the interval of 95% over seeds (Student's t); without it nothing is drawn."
    return Section("settings", "All settings", [Table(title, heads(document), rows, is_folded=True),
                                                Prose([seeds])])  # fmt: skip


def heads(document: Mapping[str, Any]) -> list[str]:
    """Return the heads of a table of settings."""
    return [*_keys(document), *document["inputs"]["objectives"]]


def cells(document: Mapping[str, Any], one: Mapping[str, Any]) -> list[str]:
    """Return a row of that table."""
    levels = [_level(one, key) for key in _keys(document)]
    return levels + [_worded(one, each) for each in document["inputs"]["objectives"]]


def _keys(document: Mapping[str, Any]) -> list[str]:
    """Return what tells settings apart: each volume of a fleet is a setting of its own."""
    keys: list[str] = document["keys"]
    return ["trace", *keys] if document["fleet"] or not keys else keys


def named(document: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """Return a setting in words."""
    words = [f"{key} {_level(one, key)}" for key in document["keys"]]
    return ", ".join(words) or "the scenario"


def _level(one: Mapping[str, Any], key: str) -> str:
    return str(one["values"].get(key, one["trace"]))


def _worded(one: Mapping[str, Any], objective: str) -> str:
    found = one["objectives"][objective]
    return NONE if found is None else Estimate(**found).worded(Objective.parse(objective).worded)
