"""Every setting of a sweep, with its objectives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybridsim.foundation.wording import NONE, counted
from hybridsim.show.html.blocks import Block, Prose, Section, Table
from hybridsim.show.sweep import worded
from hybridsim.studies.sweep.confidence import Estimate
from hybridsim.studies.sweep.objectives import Objective

SHOWN_MAX = 1000
VOLUME = "volume"


def section(document: Mapping[str, Any]) -> Section | None:
    """Return a collapsed table of the settings."""
    settings = document["settings"]
    if not settings:
        return None
    rows = [cells(document, one) for one in settings[:SHOWN_MAX]]
    title = _number(document)
    if len(settings) > SHOWN_MAX:
        title += f" (the first {SHOWN_MAX:,}; --json writes all)"
    blocks: list[Block] = [Table(title, heads(document), rows, is_folded=True)]
    if document["inputs"]["seeds"]:
        seeds = (
            "±: 95% confidence interval over random seeds (Student's t); without ± nothing is "
            "random."
        )
        blocks.append(Prose([seeds]))
    return Section("settings", "All volumes" if document["fleet"] else "All settings", blocks)


def _number(document: Mapping[str, Any]) -> str:
    """Return the number of settings; of a fleet the number of volumes and of settings each."""
    if not document["fleet"]:
        return counted(len(document["settings"]), "setting")
    volumes = counted(document["fleet"][0]["volumes"], "volume")
    settings = len(document["fleet"])
    return volumes + (f", each with {counted(settings, 'setting')}" if settings > 1 else "")


def heads(document: Mapping[str, Any]) -> list[str]:
    """Return the heads of a table of settings."""
    return [*_keys(document), *document["inputs"]["objectives"]]


def cells(document: Mapping[str, Any], one: Mapping[str, Any]) -> list[str]:
    """Return the row of a setting in a table with these heads."""
    levels = [_level(one, key) for key in _keys(document)]
    return levels + [_worded(one, each) for each in document["inputs"]["objectives"]]


def _keys(document: Mapping[str, Any]) -> list[str]:
    """Return the columns that identify a setting; in a fleet these include the volume."""
    keys: list[str] = document["keys"]
    return [VOLUME, *keys] if document["fleet"] else keys or ["trace"]


def named(document: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """Return the values of a setting as text."""
    words = [f"{key} {_level(one, key)}" for key in document["keys"]]
    return ", ".join(words) or "the scenario"


def _level(one: Mapping[str, Any], key: str) -> str:
    if key == VOLUME:
        return Path(one["trace"].removesuffix(f" {one['device']}")).name + f" {one['device']}"
    return str(one["values"].get(key, one["trace"]))


def _worded(one: Mapping[str, Any], objective: str) -> str:
    result = one["objectives"][objective]
    if result is None:
        return NONE
    return worded(Objective.parse(objective), Estimate(**result), one["intervals"].get(objective))
