"""The best setting of a sweep, its Pareto front, and failed replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts import Chart
from hybridsim.show.charts.chart import Axis, Ranges
from hybridsim.show.charts.pareto import pareto
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Section, Table
from hybridsim.show.html.sections.sweep_settings import cells, heads, named
from hybridsim.studies.sweep.objectives import Objective

LISTED_MAX, RANGES_MAX = 8, 10  # settings of a sentence, of a chart
ENDS = ("low", "value", "high")
OPEN_MAX = 15  # a front of more rows is collapsed
NS, BYTES, SHARE = "_ns", "_bytes", "_ratio"  # suffixes that identify the unit of a column


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the best setting, the front, the failed replays; for a fleet only the latter."""
    if document["fleet"]:
        failed = _failed(document)
        return Section("failed", "Failed replays", failed) if failed else None
    wanted = [Objective.parse(each) for each in document["inputs"]["objectives"]]
    blocks: list[Block] = []
    settings = document["settings"]
    if settings:
        best = settings[document["best"]]
        values = zip(wanted, cells(document, best)[-len(wanted) :])
        blocks.append(KeyFigures([(each.text, value, "") for each, value in values]))
        blocks.append(Prose([f"Best by {wanted[0].text}: {named(document, best)}."], "yes"))
        blocks += _not_apart(document, wanted[0])
    if document["notes"]:
        blocks.append(Prose(document["notes"], "note"))
    if len(wanted) > 1 and settings:
        blocks.append(_front_chart(document, wanted))
        front = [settings[number] for number in document["front"]]
        title = f"Pareto front: {len(front)} of {len(settings)} settings"
        rows = [cells(document, one) for one in front]
        blocks.append(Table(title, heads(document), rows, is_folded=len(rows) > OPEN_MAX))
    blocks += _failed(document)
    return Section("best", "Best settings", blocks, _replays(document["replays"]))


def _not_apart(document: Mapping[str, Any], first: Objective) -> list[Block]:
    """Return the settings that cannot be distinguished from the best, and the intervals."""
    settings = document["settings"]
    alike = [settings[at] for at in document["alike"]]
    blocks: list[Block] = []
    if alike:
        words = "; ".join(named(document, each) for each in alike[:LISTED_MAX])
        more = len(alike) - LISTED_MAX
        words += f"; and {more:,} more" if more > 0 else ""
        blocks.append(Prose([f"By {first.text}, it cannot be distinguished from {words}."]))
    near = [settings[document["best"]], *alike][:RANGES_MAX]
    rows = [
        (named(document, each), *(known[end] / (1e6 if first.is_time else 1) for end in ENDS))
        for each in near
        if (known := each["intervals"].get(first.text))
    ]
    if rows and not first.is_share:
        unit = "ms" if first.is_time else ""
        title = f"{first.text} with its interval of 90 %: the best, and those not apart from it"
        blocks.append(Ranges("apart", title, Axis(first.text, unit), rows))
    near_front = [settings[at] for at in document["near_front"]]
    if near_front:
        words = "; ".join(named(document, each) for each in near_front[:LISTED_MAX])
        more = len(near_front) - LISTED_MAX
        words += f"; and {more:,} more" if more > 0 else ""
        blocks.append(Prose([f"Off the Pareto front, but not surely worse: {words}."]))
    return blocks


def _failed(document: Mapping[str, Any]) -> list[Block]:
    rows = [[one["words"], one["why"], one["command"]] for one in document["failed"]]
    return [Table("Failed replays", ["setting", "error", "command"], rows)] if rows else []


def _replays(number: Mapping[str, int]) -> str:
    lead = f"{number['computed'] + number['known']:,} replays"
    lead += f", {number['failed']:,} failed" if number["failed"] else ""
    return lead + (
        f", {number['missing']:,} missing, as the sweep was interrupted."
        if number["missing"]
        else "."
    )


def _front_chart(document: Mapping[str, Any], wanted: list[Objective]) -> Chart:
    """Return a chart of the first objective (y) by the second (x)."""
    second, first = wanted[1], wanted[0]
    columns = {_column(each): each for each in (first, second)}
    rows = [
        {
            **{name: _mean(one, each) for name, each in columns.items()},
            "setting": named(document, one),
        }
        for one in document["settings"]
    ]
    more = [name for name, each in columns.items() if not each.wants_less]
    unbeaten = document["front"] if len(wanted) > 2 else None
    return pareto(rows, _column(second), _column(first), "setting", more, unbeaten)


def _column(objective: Objective) -> str:
    if objective.text == "ssd":
        return objective.text + BYTES
    if objective.is_share:
        return objective.text + SHARE
    return objective.text + (NS if objective.is_time else "")


def _mean(one: Mapping[str, Any], objective: Objective) -> float | None:
    result = one["objectives"][objective.text]
    return None if result is None else result["mean"]
