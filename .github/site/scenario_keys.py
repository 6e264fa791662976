"""The page of a scenario's keys: type, range, default and meaning of each."""

from __future__ import annotations

import inspect
import re

from hybridsim.foundation.toml.table import Part
from hybridsim.scenario.key_help import Key, keys_of
from hybridsim.scenario.machine import Table, tables

HEAD = """\
# Keys of a scenario

`hybridsim scenario show` prints the whole machine with the source of each value;
`hybridsim scenario check FILE` finds mistakes; `hybridsim explain KEY` prints what stands here. A
size is a text such as `"64KiB"` or `"8TB"`, a time `"8.5ms"`, a rate `"255MB/s"`, a share `"10%"`.
A drive that names one of the [catalog](catalog.md), `like = "NAME"`, has its values; keys beside it
override them.

"""


def pages() -> dict[str, str]:
    """Return the page by its address."""
    by_model: dict[type[Part], list[Table]] = {}
    for table in tables():
        by_model.setdefault(table.model, []).append(table)
    sections = [_section(_title(those), model) for model, those in by_model.items()]
    return {"reference/scenario.md": HEAD + "\n".join(sections)}


def _title(places: list[Table]) -> str:
    if not places[0].path:
        return "The scenario itself"
    names = ", ".join(f"[{'.'.join(map(str, each.path))}]" for each in places)
    names = names.replace("[event]", "[[event]]")
    kinds = " or ".join(f'`"{kind}"`' for kind in places[0].kinds)
    return f"{names}, kind = {kinds}" if kinds else names


def _section(title: str, model: type[Part]) -> str:
    lines = ["| key | value | default | |", "|---|---|---|---|", *map(_row, keys_of(model))]
    return "\n".join([f"## {title}\n", inspect.getdoc(model) or "", "", *lines]) + "\n"


def _row(key: Key) -> str:
    value = re.sub(r'"[^"]*"|\btrue\b|\bfalse\b', r"`\g<0>`", key.value)
    default = "needed" if key.default is None else key.default and f"`{key.default}`"
    cells = [each.replace("|", "&#124;") for each in (value, default)]
    text = key.text.replace("|", "&#124;").replace("<", "&lt;")
    return f"| `{key.name}` | {cells[0]} | {cells[1]} | {text} |"
