"""From what was said to the whole machine: drives of the catalog, presets, defaults, checks."""

from __future__ import annotations

import copy
from typing import Any

from pydantic import ValidationError

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.toml.places import Path
from hybridsim.foundation.toml.problems import Problem, explain, report
from hybridsim.scenario import levels, presets
from hybridsim.scenario.keys import known_keys, path_in_text
from hybridsim.scenario.machine import Machine
from hybridsim.scenario.origin import Origin
from hybridsim.storage import catalog

DEFAULT_DRIVES = {"backing": "hgst-ultrastar-7k8", "cache": "samsung-pm9a3-1920gb"}
DEFAULT_KINDS = {"backing": "hdd", "cache": "ssd"}
ALIASES = {"raid0": "stripe"}


def resolved(origin: Origin) -> Machine:
    """Fill in drives and defaults, check everything, and report all that is wrong."""
    problems: list[Problem] = []
    said = copy.deepcopy(dict(origin.said))
    try:
        said = presets.under(said)
    except ScenarioError as error:
        problems.append(origin.problem(("preset",), str(error)))
        said["preset"] = ""
    for section in DEFAULT_DRIVES:
        table = said.setdefault(section, {})
        if isinstance(table, dict):
            table["drive"] = _drive(origin, section, table.get("drive"), problems)
    if isinstance(said["cache"], dict):
        said["cache"].setdefault("kind", "page")
        if said["cache"].get("admission", "learned") != "learned":
            said["cache"].setdefault("replacement", "lru")  # what is learned serves both
    if isinstance(said["backing"], dict):
        _complete(said["backing"])
    try:
        machine = Machine.model_validate(said)
    except ValidationError as error:
        problems += explain(error, origin, known_keys, path_in_text)
        machine = None
    if problems or machine is None:
        raise ScenarioError(report(problems))
    return machine


def _drive(origin: Origin, section: str, said: Any, problems: list[Problem]) -> Any:
    """Return a drive's values: of the catalog, with those said over them."""
    path: Path = (section, "drive")
    if isinstance(said, dict) and "like" not in said:
        return {"kind": DEFAULT_KINDS[section], **said}
    own = said if isinstance(said, dict) else {}
    if isinstance(said, dict):
        path = (*path, "like")
    name = own["like"] if own else DEFAULT_DRIVES[section] if said is None else said
    try:
        if not isinstance(name, str):
            raise ScenarioError(f"a drive is a name of the catalog or a table, not {name!r}")
        entry = catalog.load(name)
    except ScenarioError as error:
        problems.append(origin.problem(path, str(error)))
        entry = catalog.load(DEFAULT_DRIVES[section])
        name = entry.key
    rows = {key: row.value for key, row in entry.rows.items()}
    return {"kind": entry.kind, "name": entry.name, **rows, **own, "like": name}


def _complete(backing: dict[str, Any]) -> None:
    """Fill in what has no default of its own: it follows from the kind or the drive."""
    drive = backing["drive"] if isinstance(backing["drive"], dict) else {}
    is_volume = drive.get("kind") == "volume"
    kind = backing.setdefault("kind", "single" if is_volume else "raid5")
    if isinstance(kind, str) and kind in ALIASES:
        backing["kind"] = kind = ALIASES[kind]
    known = levels.KINDS.get(kind) if isinstance(kind, str) else None
    backing.setdefault("members", known.usual_members if known else 4)
    if is_volume:
        backing.setdefault("capacity", "drive")  # its size is bought, and decides its rates
    if backing.get("scheduler") == "fcfs":
        backing.setdefault("window", 1)
    if drive.get("kind") == "hdd":
        for key in ("window", "age_limit"):
            if key in drive:
                backing.setdefault(key, drive[key])
