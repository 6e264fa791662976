"""Values of any key of a scenario, set over what its file says: `--set cache.size=16GiB`.

A key is a path with dots.  `cache.policy` is short for two keys: a name that is a replacement
policy only comes with admission "always", one that is an admission policy only with replacement
"lru", "learned" is both, and "larc+arc" says both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.parsing import parsed
from hybridsim.foundation.toml.places import Path
from hybridsim.scenario.origin import Origin

SET = "--set "  # begins what errors and `Scenario.options` call such a value
POLICY = "cache.policy"
TABLES = ("backing", "cache", "host", "replay", "price")
_KEY = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*")
_PIECE = re.compile(
    r'(?:"[^"]*+"?|\[[^\]]*+\]?|\{[^}]*+\}?|[^,"\[{])++'
)  # what stands between commas


def over(origin: Origin, values: Mapping[str, Any]) -> Origin:
    """Return what was said with values over it; raise ScenarioError for a key that is none."""
    paths: dict[Path, Any] = {}
    named: dict[Path, str] = {}
    for key, value in values.items():
        for one, said in _spelled_out(key, value):
            path = path_of(one)
            paths[path], named[path] = said, SET + one
    return origin.with_values(_with_drives(origin, paths), named)


def path_of(key: str) -> Path:
    """Return the path of a key; raise ScenarioError for what can be none."""
    path = tuple(key.split("."))
    if not _KEY.fullmatch(key):
        raise ScenarioError(f"{key!r} is no key: write for instance cache.size")
    if len(path) > 1 and path[0] not in TABLES:
        raise ScenarioError(f"{key}: there is no table {path[0]!r}: {hint(path[0], TABLES)}")
    if len(path) == 1 and key not in ("seed", "preset"):
        raise ScenarioError(f"{key}: in which table? {hint(key, ('seed', 'preset', *TABLES))}")
    return path


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Return the values that texts like `cache.size=16GiB` say."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"--set {text}: write for instance --set cache.size=16GiB")
        found[key.strip()] = value_of(value)
    return found


def value_of(text: str) -> Any:
    """Return what TOML would read, where that is a number, a truth, a list or a table."""
    try:
        found = parsed(f"value = {text}", SET, ScenarioError)["value"]
    except ScenarioError:
        return text.strip()
    return found if isinstance(found, int | float | str | list | dict) else text.strip()


def values_of(text: str) -> list[Any]:
    """Return the values of a list without brackets: `16GiB,32GiB`."""
    return [value_of(each.strip()) for each in _PIECE.findall(text) if each.strip()]


def written(value: Any) -> str:
    """Return a value as `value_of` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if value_of(value) == value else json.dumps(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_in_list, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_in_list(each)}" for key, each in value.items()) + "}"
    return str(value)


def _in_list(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else written(value)


def _spelled_out(key: str, value: Any) -> list[tuple[str, Any]]:
    if key != POLICY:
        return [(key, value)]
    admission, replacement = policies(str(value))
    return [("cache.admission", admission), ("cache.replacement", replacement)]


def policies(name: str) -> tuple[str, str]:
    """Return the admission and the replacement policy that one word stands for."""
    admission, plus, replacement = name.partition("+")
    if not plus:
        admission = name if name in ADMISSION else "always"
        replacement = name if name in REPLACEMENT else "lru"
    for one, family in ((admission, ADMISSION), (replacement, REPLACEMENT)):
        if one not in family or (name not in ADMISSION and name not in REPLACEMENT and not plus):
            known = [*REPLACEMENT, *ADMISSION] if not plus else list(family)
            wrong = one if plus else name
            raise ScenarioError(f"{POLICY}: no policy {wrong!r}: {hint(wrong, known)}")
    return admission, replacement


def _with_drives(origin: Origin, values: dict[Path, Any]) -> dict[Path, Any]:
    """Let a changed drive be the default one where nothing else is said of it."""
    from hybridsim.scenario.resolve import DEFAULT_DRIVES

    added: dict[Path, Any] = {}
    for path in values:
        section = str(path[0])
        if len(path) < 3 or path[1] != "drive" or origin.said.get("preset"):
            continue
        table = origin.said.get(section, {})
        if isinstance(table, dict) and "drive" not in table and (section, "drive") not in values:
            added[section, "drive"] = DEFAULT_DRIVES[section]
    return added | values
