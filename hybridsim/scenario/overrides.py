"""Values of any key of a scenario, set over its file's: `--set cache.size=16GiB`.

A key is a path with dots.  `cache.policy` is short for two keys: "larc+arc" sets admission and
replacement; a name of a replacement policy only sets admission "always"; a name of an admission
policy only sets replacement "lru"; "learned" sets both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.places import Path
from hybridsim.foundation.toml.problems import parsed
from hybridsim.scenario.origin import Origin

SET = "--set "  # prefix of such a value's name in errors and `Scenario.options`
POLICY = "cache.policy"
TABLES = ("backing", "cache", "host", "replay", "price")
_KEY = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*")
_PIECE = re.compile(r'(?:"[^"]*+"?|\[[^\]]*+\]?|\{[^}]*+\}?|[^,"\[{])++')  # a value between commas


def over(origin: Origin, values: Mapping[str, Any]) -> Origin:
    """Return `origin` with `values` set over it; raise ScenarioError for an invalid key."""
    paths: dict[Path, Any] = {}
    named: dict[Path, str] = {}
    for key, value in values.items():
        spelled_out = {key: value}
        if key == POLICY:
            admission, replacement = policies(str(value))
            spelled_out = {"cache.admission": admission, "cache.replacement": replacement}
        for one, single in spelled_out.items():
            path = path_of(one)
            paths[path], named[path] = single, SET + one
    return origin.with_values(_with_drives(origin, paths), named)


def path_of(key: str) -> Path:
    """Return the path of a key; raise ScenarioError if the key is invalid."""
    path = tuple(key.split("."))
    if not _KEY.fullmatch(key):
        raise ScenarioError(f"{key!r} is not a key: expected for example cache.size")
    if len(path) > 1 and path[0] not in TABLES:
        raise ScenarioError(f"{key}: unknown table {path[0]!r}: {hint(path[0], TABLES)}")
    if len(path) == 1 and key not in ("seed", "preset"):
        known = hint(key, ("seed", "preset", *TABLES))
        raise ScenarioError(f"{key}: expected a key such as cache.size; {known}")
    return path


def assignments(texts: Iterable[str]) -> dict[str, Any]:
    """Return the keys and values of texts like `cache.size=16GiB`."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not value:
            raise UsageError(f"--set {text}: expected for example --set cache.size=16GiB")
        values[key.strip()] = value_of(value)
    return values


def value_of(text: str) -> Any:
    """Return the TOML value of a text; a text that is not TOML is a string."""
    try:
        value = parsed(f"value = {text}", SET, ScenarioError)["value"]
    except ScenarioError:
        return text.strip()
    return value if isinstance(value, int | float | str | list | dict) else text.strip()


def values_of(text: str) -> list[Any]:
    """Return the values of a list without brackets: `16GiB,32GiB`."""
    return [value_of(each.strip()) for each in _PIECE.findall(text) if each.strip()]


def written(value: Any) -> str:
    """Return the text that `value_of` reads back as this value."""
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


def policies(name: str) -> tuple[str, str]:
    """Return the admission and the replacement policy of a `cache.policy` value."""
    admission, plus, replacement = name.partition("+")
    if not plus:
        admission = name if name in ADMISSION else "always"
        replacement = name if name in REPLACEMENT else "lru"
    for one, family in ((admission, ADMISSION), (replacement, REPLACEMENT)):
        if one not in family or (name not in ADMISSION and name not in REPLACEMENT and not plus):
            known = list(family) if plus else list({**REPLACEMENT, **ADMISSION})
            wrong = one if plus else name
            raise ScenarioError(f"{POLICY}: unknown policy {wrong!r}: {hint(wrong, known)}")
    return admission, replacement


def _with_drives(origin: Origin, values: dict[Path, Any]) -> dict[Path, Any]:
    """Add the default drive where `values` change a drive that is not specified."""
    from hybridsim.scenario.resolve import DEFAULT_DRIVES

    added: dict[Path, Any] = {}
    for path in values:
        section = str(path[0])
        if len(path) < 3 or path[1] != "drive" or origin.specified.get("preset"):
            continue
        table = origin.specified.get(section, {})
        if isinstance(table, dict) and "drive" not in table and (section, "drive") not in values:
            added[section, "drive"] = DEFAULT_DRIVES[section]
    return added | values
