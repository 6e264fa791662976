"""The effect of each key on each objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts import Bars
from hybridsim.show.charts.chart import Axis
from hybridsim.show.html.blocks import Block, Section, Table
from hybridsim.studies.sweep.objectives import Objective

LEAD = (
    "The share of the variance between settings that the values of one key explain by themselves; "
    "the rest is the effect of keys in combination."
)


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the shares as bars, and the mean at each value of each key."""
    effects = document["effects"]
    if not effects or document["fleet"]:
        return None
    names = list(dict.fromkeys(one["objective"] for one in effects))
    shares = {(one["objective"], one["key"]): one["share"] for one in effects}
    keys = document["keys"]
    rows = []
    for name in names:
        result = [100 * shares.get((name, key), 0.0) for key in keys]
        rows.append((name, [*result, max(100 - sum(result), 0.0)]))
    bars = Bars("effects", "Explained share of the variance", Axis("share", "%", low=0, high=100),
                [*keys, "in combination"], rows)  # fmt: skip
    blocks: list[Block] = [bars, *(_levels(effects, key) for key in keys if _has(effects, key))]
    return Section("effects", "What matters", blocks, LEAD)


def _has(effects: list[Mapping[str, Any]], key: str) -> bool:
    return any(one["key"] == key for one in effects)


def _levels(effects: list[Mapping[str, Any]], key: str) -> Table:
    """Return the mean of each objective at each value of a key."""
    mine = [one for one in effects if one["key"] == key]
    words = [level["words"] for level in mine[0]["levels"]]
    rows = [
        [word, *(_mean(one, word) for one in mine), str(_number(mine[0], word))] for word in words
    ]
    heads = [key, *(one["objective"] for one in mine), "settings"]
    return Table(f"Mean by value of {key}", heads, rows)


def _mean(one: Mapping[str, Any], word: str) -> str:
    result = next((each for each in one["levels"] if each["words"] == word), None)
    return "" if result is None else Objective.parse(one["objective"]).worded(result["mean"])


def _number(one: Mapping[str, Any], word: str) -> int:
    return next(int(each["number"]) for each in one["levels"] if each["words"] == word)
