"""A scenario as TOML that says where each value came from, and reads back as the same scenario.

What the catalog says of a drive stands in comments under its `like`: to change a value, take its
comment sign away; to change the drive, change `like`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hybridsim.scenario import catalog
from hybridsim.scenario import presets

if TYPE_CHECKING:
    from hybridsim.storage.drives import Part
    from hybridsim.scenario import Scenario
    from hybridsim.common.toml.places import Path

COMMENT_COLUMN = 40
CATALOG = "catalog"  # begins the source of what `like` brings


def to_toml(scenario: Scenario) -> str:
    """Return every value of the scenario with its source as a comment."""
    sections: list[tuple[str, Part | None]] = [
        ("backing", scenario.backing),
        ("cache", scenario.cache),
        ("host", scenario.host),
        ("replay", scenario.replay),
        ("price", scenario.price),
    ]
    lines = [_line(scenario, ("seed",), scenario.seed)]
    preset = scenario.origin.said.get("preset")
    if preset:
        lines.insert(0, _line(scenario, ("preset",), preset))
    for name, part in sections:
        if part is not None:
            lines += _table(scenario, (name,), part.model_dump(by_alias=True, exclude_none=True))
    return "\n".join(lines) + "\n"


def _table(scenario: Scenario, path: Path, values: dict[str, Any]) -> Iterator[str]:
    """Yield a table, its own values before the tables in it, as TOML demands."""
    yield ""
    yield f"[{'.'.join(map(str, path))}]"
    for key, value in values.items():
        is_own = key == "like" and not value  # a drive that is none of the catalog
        if not isinstance(value, dict) and not is_own:
            yield _line(scenario, (*path, key), value)
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _table(scenario, (*path, key), value)


def _line(scenario: Scenario, path: Path, value: str | int | float) -> str:
    # a JSON string, number or boolean is TOML too, once DEL is escaped
    written = f"{path[-1]} = " + json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    source = _source(scenario, path)
    if source.startswith(CATALOG):
        written = f"# {written}"
    return f"{written:<{COMMENT_COLUMN}}  # {source}"


def _source(scenario: Scenario, path: Path) -> str:
    """Say where a value came from."""
    origin = scenario.origin
    if path in origin.options:
        return origin.options[path]
    if origin.says(path):
        return f"{origin.name}:{origin.places.line_column(path)[0]}"
    preset = origin.said.get("preset")
    if preset and presets.says(preset, path):
        return f"preset {preset}"
    if path[1:2] == ("drive",) and len(path) > 2:
        return _source_in_drive(scenario, path)
    if path in (("backing", "window"), ("backing", "age_limit")) and _follows(scenario, path):
        return "the drive's"
    return "default"


def _follows(scenario: Scenario, path: Path) -> bool:
    """Tell whether the array's queue is as its drive's data say."""
    drive = scenario.backing.drive
    if drive.kind != "hdd":
        return False
    if path[-1] == "window":
        return scenario.backing.window == drive.window
    return scenario.backing.age_limit_ns == drive.age_limit_ns


def _source_in_drive(scenario: Scenario, path: Path) -> str:
    drive = scenario.backing.drive if path[0] == "backing" else scenario.cache.drive
    if not drive.like:
        return "default"
    if path[-1] == "like":  # said in short, as `drive = "name"`, or not at all
        return _source(scenario, path[:2])
    row = catalog.load(drive.like).rows.get(str(path[-1]))
    if row is None:
        return CATALOG if path[-1] in ("kind", "name") else "default"
    return f"{CATALOG}, {row.mark}" + (f": {row.source}" if row.source else "")
