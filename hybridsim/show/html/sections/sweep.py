"""Sections of `sweep`: totals of a fleet, the best settings, effects of keys, all settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, counted, latency
from hybridsim.show.charts import ENDS, Axis, Bars, Chart, Line, Ranges
from hybridsim.show.charts.replay import Document
from hybridsim.show.charts.tables import pareto
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Section, Table
from hybridsim.show.sweep import cells_of, listed
from hybridsim.studies.sweep.figures import Objective

CURVES_MAX = 6
LISTED_MAX, RANGES_MAX = 8, 10  # settings of a sentence, of a chart
OPEN_MAX = 15  # a front of more rows is collapsed
SHOWN_MAX = 1000
VOLUME = "volume"
EFFECTS = (
    "The share of the variance between settings that the values of one key explain by themselves; "
    "the rest is the effect of keys in combination."
)


def fleet(document: Document) -> Section | None:
    """Return the totals by setting, and the cumulative distribution of the gains."""
    rows = document["fleet"]
    if not rows:
        return None
    heads = ["setting", "volumes", "yes", "no", "unsure", "SSD", "mean, no cache", "mean, cached",
             "gain"]  # fmt: skip
    cells, lines = [], []
    for number, row in enumerate(rows):
        name = ", ".join(f"{key} {value}" for key, value in row["values"].items())
        name, gains = name or "the scenario", row["gains"]
        cells.append([
            name, str(row["volumes"]), *map(str, row["answers"].values()),
            human_size(row["ssd_bytes"]), latency(row["alone_ns"]), latency(row["mean_ns"]),
            NONE if row["gain"] is None else f"{row['gain']:.2f}",
        ])  # fmt: skip
        if gains and number < CURVES_MAX:
            shares = [(place + 1) / len(gains) * 100 for place in range(len(gains))]
            lines.append(Line(f"gains{number}", name, gains, shares, "steps"))
    x, y = Axis("gain", "times"), Axis("volumes", "%", low=0, high=100)
    lead = (
        "Each volume is replayed separately; its gain is the mean latency of the second half of "
        "its requests without the cache divided by that with it."
    )
    blocks: list[Block | None] = [
        Table("All volumes; means of the second half of their requests", heads, cells),
        Chart("gains", "Share of the volumes with at most this gain", x, y, lines),
    ]
    return Section("fleet", "The fleet", blocks, lead)


def best(document: Document) -> Section | None:
    """Return the best setting, the front, the failed replays; for a fleet only the latter."""
    rows = [[one["words"], one["why"], one["command"]] for one in document["failed"]]
    failed = [Table("Failed replays", ["setting", "error", "command"], rows)] if rows else []
    if document["fleet"]:
        return Section("failed", "Failed replays", failed) if failed else None
    wanted = [Objective.parse(each) for each in document["inputs"]["objectives"]]
    blocks: list[Block] = []
    settings = document["settings"]
    if settings:
        first = settings[document["best"]]
        values = zip(wanted, cells_of(wanted, first))
        blocks.append(KeyFigures([(each.text, value, "") for each, value in values]))
        blocks.append(Prose([f"Best by {wanted[0].text}: {_named(document, first)}."], "yes"))
        blocks += _not_apart(document, wanted[0])
    blocks.append(Prose(document["notes"], "note"))
    if len(wanted) > 1 and settings:
        rows = [_cells(document, settings[number]) for number in document["front"]]
        title = f"Pareto front: {len(rows)} of {len(settings)} settings"
        blocks.append(_front(document, wanted))
        blocks.append(Table(title, _heads(document), rows, is_folded=len(rows) > OPEN_MAX))
    number = document["replays"]
    lead = f"{number['computed'] + number['known']:,} replays"
    lead += f", {number['failed']:,} failed" if number["failed"] else ""
    if number["missing"]:
        lead += f", {number['missing']:,} missing, as the sweep was interrupted"
    return Section("best", "Best settings", [*blocks, *failed], f"{lead}.")


def _not_apart(document: Document, first: Objective) -> list[Block]:
    """Return the settings that cannot be distinguished from the best, and the intervals."""
    settings = document["settings"]
    alike, near = ([settings[at] for at in document[name]] for name in ("alike", "near_front"))
    blocks: list[Block] = []
    if alike:
        words = f"By {first.text}, it cannot be distinguished from {_listed(document, alike)}."
        blocks.append(Prose([words]))
    rows = [
        (_named(document, each), *(known[end] / (1e6 if first.is_time else 1) for end in ENDS))
        for each in [settings[document["best"]], *alike][:RANGES_MAX]
        if (known := each["intervals"].get(first.text))
    ]
    if rows and not first.is_share:
        unit = "ms" if first.is_time else ""
        title = f"{first.text} with its interval of 90 %: the best, and those not apart from it"
        blocks.append(Ranges("apart", title, Axis(first.text, unit), rows))
    if near:
        words = f"Off the Pareto front, but not surely worse: {_listed(document, near)}."
        blocks.append(Prose([words]))
    return blocks


def _listed(document: Document, settings: Sequence[Document]) -> str:
    return listed([_named(document, each) for each in settings], LISTED_MAX, "")


def _front(document: Document, wanted: list[Objective]) -> Chart:
    """Return a chart of the first objective (y) by the second (x)."""
    columns = {_column(each): each for each in wanted[:2]}
    rows = []
    for one in document["settings"]:
        known = {name: one["objectives"][each.text] for name, each in columns.items()}
        means = {name: each and each["mean"] for name, each in known.items()}
        rows.append(means | {"setting": _named(document, one)})
    more = [name for name, each in columns.items() if not each.wants_less]
    unbeaten = document["front"] if len(wanted) > 2 else None
    return pareto(rows, _column(wanted[1]), _column(wanted[0]), "setting", more, unbeaten)


def _column(objective: Objective) -> str:
    """Return the name of a column, whose suffix is its unit."""
    if objective.text == "ssd":
        return "ssd_bytes"
    suffix = "_ratio" if objective.is_share else "_ns" if objective.is_time else ""
    return objective.text + suffix


def effects(document: Document) -> Section | None:
    """Return the shares as bars, and the mean at each value of each key."""
    every, keys = document["effects"], document["keys"]
    if not every or document["fleet"]:
        return None
    shares = {(one["objective"], one["key"]): one["share"] for one in every}
    rows = []
    for name in dict.fromkeys(one["objective"] for one in every):
        result = [100 * shares.get((name, key), 0.0) for key in keys]
        rows.append((name, [*result, max(100 - sum(result), 0.0)]))
    bars = Bars("effects", "Explained share of the variance", Axis("share", "%", low=0, high=100),
                [*keys, "in combination"], rows)  # fmt: skip
    of_keys = {key: [one for one in every if one["key"] == key] for key in keys}
    tables = [_levels(key, mine) for key, mine in of_keys.items() if mine]
    return Section("effects", "What matters", [bars, *tables], EFFECTS)


def _levels(key: str, mine: Sequence[Document]) -> Table:
    """Return the mean of each objective at each value of a key."""
    means = [{level["words"]: level["mean"] for level in one["levels"]} for one in mine]
    objectives = [Objective.parse(one["objective"]) for one in mine]
    rows = []
    for level in mine[0]["levels"]:
        word = level["words"]
        cells = [each.worded(by_word[word]) if word in by_word else ""
                 for each, by_word in zip(objectives, means)]  # fmt: skip
        rows.append([word, *cells, str(int(level["number"]))])
    heads = [key, *(one["objective"] for one in mine), "settings"]
    return Table(f"Mean by value of {key}", heads, rows)


def settings(document: Document) -> Section | None:
    """Return a collapsed table of the settings."""
    every = document["settings"]
    if not every:
        return None
    title = counted(len(every), "setting")
    if of_fleet := document["fleet"]:
        title = counted(of_fleet[0]["volumes"], "volume")
        if len(of_fleet) > 1:
            title += f", each with {counted(len(of_fleet), 'setting')}"
    if len(every) > SHOWN_MAX:
        title += f" (the first {SHOWN_MAX:,}; --json writes all)"
    rows = [_cells(document, one) for one in every[:SHOWN_MAX]]
    seeds = (
        "±: 95% confidence interval over random seeds (Student's t); without ± nothing is random."
    )
    blocks: list[Block | None] = [
        Table(title, _heads(document), rows, is_folded=True),
        Prose([seeds]) if document["inputs"]["seeds"] else None,
    ]
    return Section("settings", "All volumes" if of_fleet else "All settings", blocks)


def _keys(document: Document) -> list[str]:
    """Return the columns that identify a setting; in a fleet these include the volume."""
    keys: list[str] = document["keys"]
    return [VOLUME, *keys] if document["fleet"] else keys or ["trace"]


def _heads(document: Document) -> list[str]:
    return [*_keys(document), *document["inputs"]["objectives"]]


def _cells(document: Document, one: Document) -> list[str]:
    """Return the row of a setting in a table with these heads."""
    wanted = list(map(Objective.parse, document["inputs"]["objectives"]))
    return [*(_level(one, key) for key in _keys(document)), *cells_of(wanted, one)]


def _named(document: Document, one: Document) -> str:
    """Return the values of a setting as text."""
    words = [f"{key} {_level(one, key)}" for key in document["keys"]]
    return ", ".join(words) or "the scenario"


def _level(one: Document, key: str) -> str:
    if key == VOLUME:
        return Path(one["trace"].removesuffix(f" {one['device']}")).name + f" {one['device']}"
    return str(one["values"].get(key, one["trace"]))
