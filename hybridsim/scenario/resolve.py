"""Complete a scenario: drives of the catalog, presets, defaults, validation.

A preset is a complete system of the catalog: `preset = "digitalocean-volume"` takes all values of
that file in `catalog/system`; the scenario's own values override them.
"""

from __future__ import annotations

import copy
import tomllib
from functools import cache
from typing import Any

from pydantic import ValidationError

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.places import Path
from hybridsim.foundation.toml.problems import Problem, explain, report
from hybridsim.scenario import levels
from hybridsim.scenario.machine import DEFAULT_KINDS, Machine, known_keys, path_in_text
from hybridsim.scenario.origin import DEFAULT_DRIVES, Origin
from hybridsim.storage import catalog

ALIASES = {"raid0": "stripe"}


def resolved(origin: Origin) -> Machine:
    """Fill in drives and defaults and validate; raise ScenarioError with all problems."""
    problems: list[Problem] = []
    tables = copy.deepcopy(dict(origin.specified))
    try:
        if (name := tables.get("preset", "")) != "":
            tables = overlaid(preset(name), tables)
    except ScenarioError as error:
        problems.append(origin.problem(("preset",), str(error)))
        tables["preset"] = ""
    for section in DEFAULT_DRIVES:
        table = tables.setdefault(section, {})
        if isinstance(table, dict):
            table["drive"] = _drive(origin, section, table.get("drive"), problems)
    if isinstance(tables["cache"], dict):
        tables["cache"].setdefault("kind", "page")
        if tables["cache"].get("admission", "learned") != "learned":
            tables["cache"].setdefault("replacement", "lru")  # "learned" is both policies
    if isinstance(tables["backing"], dict):
        _complete(tables["backing"])
    try:
        machine = Machine.model_validate(tables)
    except ValidationError as error:
        problems += explain(error, origin, known_keys, path_in_text)
        machine = None
    if problems or machine is None:
        raise ScenarioError(report(problems))
    return machine


def _drive(origin: Origin, section: str, specified: Any, problems: list[Problem]) -> Any:
    """Return a drive's values: those of the catalog, with the specified ones over them."""
    path: Path = (section, "drive")
    if isinstance(specified, dict) and "like" not in specified:
        return {"kind": DEFAULT_KINDS[section], **specified}
    own = specified if isinstance(specified, dict) else {}
    if isinstance(specified, dict):
        path = (*path, "like")
    default = DEFAULT_DRIVES[section]
    name = own["like"] if own else default if specified is None else specified
    try:
        if not isinstance(name, str):
            raise ScenarioError(f"a drive must be a name of the catalog or a table, not {name!r}")
        entry = catalog.load(name)
    except ScenarioError as error:
        problems.append(origin.problem(path, str(error)))
        entry = catalog.load(DEFAULT_DRIVES[section])
        name = entry.key
    rows = {key: row.value for key, row in entry.rows.items()}
    drive = {"kind": entry.kind, "name": entry.name, **rows, **own, "like": name}
    if drive["kind"] != entry.kind:
        message = f"{name} of the catalog is of kind {entry.kind!r}: leave out `kind`, or `like`"
        problems.append(origin.problem((section, "drive", "kind"), message))
        drive["kind"] = entry.kind
    return drive


def _complete(backing: dict[str, Any]) -> None:
    """Fill in the defaults that depend on the kind of array or on the drive."""
    drive = backing["drive"] if isinstance(backing["drive"], dict) else {}
    is_volume = drive.get("kind") == "volume"
    kind = backing.setdefault("kind", "single" if is_volume else "raid5")
    if isinstance(kind, str) and kind in ALIASES:
        backing["kind"] = kind = ALIASES[kind]
    known = levels.KINDS.get(kind) if isinstance(kind, str) else None
    backing.setdefault("members", known.usual_members if known else 4)
    if is_volume:
        backing.setdefault("capacity", "drive")  # a volume's rates depend on its size
    if backing.get("scheduler") == "fcfs":
        backing.setdefault("window", 1)
    if drive.get("kind") == "hdd":
        for key in ("window", "age_limit"):
            if key in drive:
                backing.setdefault(key, drive[key])


@cache
def preset_text(name: str) -> str:
    """Return a preset's file; raise ScenarioError, with a suggestion, if there is none."""
    known = catalog.systems()
    if name not in known:
        raise ScenarioError(f"unknown preset {name!r}: {hint(name, known)}")
    return (catalog.FOLDER / catalog.SYSTEM / f"{name}.toml").read_text(encoding="utf-8")


def preset(name: object) -> dict[str, Any]:
    """Return the values of a preset."""
    if not isinstance(name, str):
        known = hint("", catalog.systems())
        raise ScenarioError(f"preset must be a name in quotes, not {name!r}: {known}")
    return tomllib.loads(preset_text(name))


def in_preset(name: str, path: tuple[str | int, ...]) -> bool:
    """Return whether a preset has a value at this path."""
    value: Any = preset(name)
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def overlaid(below: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return a preset with a scenario's own values over it, table by table.

    Single values of a drive's table change the preset's drive; a name or a `like` replaces it.
    """
    result = copy.deepcopy(below)
    for key, value in own.items():
        old = result.get(key)
        if isinstance(value, dict) and key == "drive":
            keeps = "like" not in value and "kind" not in value
            old = {"like": old} if isinstance(old, str) else old
            result[key] = {**old, **value} if keeps and isinstance(old, dict) else value
        elif isinstance(value, dict) and isinstance(old, dict):
            result[key] = overlaid(old, value)
        else:
            result[key] = value
    return result
