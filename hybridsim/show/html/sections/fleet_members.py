"""The answer for each member of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.answers.forecast import YES
from hybridsim.show import advice as of_one
from hybridsim.show import fleet_advice as words
from hybridsim.show.charts import Axis, Ranges
from hybridsim.show.html.blocks import Block, Code, Section, Table

SHOWN = 40  # intervals drawn
WIDE = 10  # times between the ends of all intervals: from here on the axis is logarithmic


def section(document: Mapping[str, Any]) -> Section:
    """Return the gains of all members, the table, and the command that repeats each."""
    heads, rows = words.members(document)
    every = document["members"]
    strong = [row for row, each in enumerate(every) if each["answer"] == YES]
    reasons = [
        [name[0], each["why"] or of_one.to_do(each["advice"])] for name, each in zip(rows, every)
    ]
    commands = [of_one.command(each["advice"]) for each in every if each["advice"]]
    blocks: list[Block] = [
        *_ranges(document, [row[0] for row in rows]),
        Table("All members; those with a use are bold", heads, rows, strong),
        Table("Each in words", ["", ""], reasons),
        Code("Replay the machine of each", "\n".join(commands), True),
    ]
    lead = "Each is judged on its own; those whose requests gain most come first."
    return Section("members", "Each of them", blocks, lead)


def _ranges(document: Mapping[str, Any], names: list[str]) -> list[Ranges]:
    rows = []
    for name, each in zip(names, document["members"]):
        pick = each["advice"] and each["advice"]["recommended"]
        if pick and pick["low"] and pick["high"]:
            rows.append((f"{name}, {words.worded(each)}", pick["low"],
                         pick["forecast"] or pick["gain"], pick["high"]))  # fmt: skip
    if not rows:
        return []
    ends = [each for row in rows for each in (row[1], row[3])]
    axis = Axis("gain", "times", log=max(ends) >= WIDE * min(ends))
    note = "" if len(rows) <= SHOWN else f"The first {SHOWN} of {len(rows)}."
    is_forecast = any(each["advice"] and each["advice"]["recommended"]["is_forecast"]
                      for each in document["members"])  # fmt: skip
    title = f"{'Forecast gain' if is_forecast else 'Gain'} of each, with its interval of 90 %"
    return [Ranges("members", title, axis, rows[:SHOWN], [("no gain", 1.0)], note)]
