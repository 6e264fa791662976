"""The values that a user specified for a scenario, and their places for error messages.

Values of any key are set over those of the file: `--set cache.size=16GiB`.  A key is a path with
dots.  `cache.policy` is short for two keys: "larc+arc" sets admission and replacement; a name of a
replacement policy only sets admission "always"; a name of an admission policy only sets replacement
"lru"; "learned" sets both.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.toml.places import Path, Places
from hybridsim.foundation.toml.problems import Problem, parsed
from hybridsim.scenario.options import OPTIONS

SET = "--set "  # prefix of such a value's name in errors and `Scenario.options`
POLICY = "cache.policy"
TABLES = ("backing", "cache", "host", "replay", "price")
DEFAULT_DRIVES = {"backing": "hgst-ultrastar-7k8", "cache": "samsung-pm9a3-1920gb"}
_KEY = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*")
_PIECE = re.compile(r'(?:"[^"]*+"?|\[[^\]]*+\]?|\{[^}]*+\}?|[^,"\[{])++')  # a value between commas


@dataclass(frozen=True)
class Origin:
    """The specified values: a file, and options set over it."""

    name: str = ""
    text: str = ""
    specified: Mapping[str, Any] = field(default_factory=dict)
    places: Places = field(default_factory=lambda: Places(""))
    options: Mapping[Path, str] = field(default_factory=dict)  # path: option that set it

    @classmethod
    def read(cls, text: str, name: str) -> Origin:
        """Parse a file's text."""
        return cls(name, text, parsed(text, name, ScenarioError), Places(text))

    def over(self, options: Mapping[str, Any]) -> Origin:
        """Return a copy with command-line options set over the file's values."""
        named = {OPTIONS[option]: "--" + option.replace("_", "-") for option in options}
        return self.with_values(dict(zip(named, options.values())), named)

    def with_keys(self, values: Mapping[str, Any]) -> Origin:
        """Return a copy with values of any keys set; raise ScenarioError for an invalid key."""
        paths = spelled_out(values)
        named = {path: SET + ".".join(map(str, path)) for path in paths}
        changed = {path[:2] for path in paths if len(path) > 2 and path[1] == "drive"}
        drives: dict[Path, Any] = {
            (section, "drive"): drive
            for section, drive in DEFAULT_DRIVES.items()
            if (section, "drive") in changed - paths.keys() and self._has_default_drive(section)
        }
        return self.with_values(drives | paths, named)

    def _has_default_drive(self, section: str) -> bool:
        table = self.specified.get(section, {})
        has_own = not isinstance(table, dict) or "drive" in table
        return not has_own and not self.specified.get("preset")

    def with_values(self, values: Mapping[Path, Any], named: Mapping[Path, str]) -> Origin:
        """Return a copy with `values` set over the file's; errors refer to each as in `named`."""
        specified = copy.deepcopy(dict(self.specified))
        for path, value in values.items():
            *tables, key = path
            table: Any = specified
            for name in tables:
                below = table.setdefault(name, {})
                if isinstance(below, str) and name == "drive":
                    below = table[name] = {"like": below}  # a drive of the catalog, changed
                if not isinstance(below, dict):
                    raise ScenarioError(
                        f"{named[path]}: the file sets {name} to {below!r}, which is not a table: "
                        f"remove that, or write [{name}]"
                    )
                table = below
            table[key] = value
        # An option whose value is replaced here is no longer the source of that value.
        kept = {
            path: option
            for path, option in self.options.items()
            if not any(path[: len(new)] == new for new in values)
        }
        return Origin(self.name, self.text, specified, self.places, {**kept, **named})

    def option(self, path: Path) -> str | None:
        """Return the option that set this path or a table that contains it."""
        return next(
            (name for prefix, name in self.options.items() if path[: len(prefix)] == prefix), None
        )

    def specifies(self, path: Path) -> bool:
        """Return whether the file specifies this value and no option replaced it."""
        return path in self.places.values and self.option(path) is None

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem that is located at this path."""
        option = self.option(path)
        if option is not None:
            return Problem(message, place=option)
        if not self.text:
            return Problem(message, place=".".join(map(str, path)) or self.name)
        line, column = self.places.line_column(path, of)
        return Problem.at(message, self.text, self.name, line, column)


def spelled_out(values: Mapping[str, Any]) -> dict[Path, Any]:
    """Return values of keys by path, `cache.policy` as the two keys that it stands for."""
    paths: dict[Path, Any] = {}
    for key, value in values.items():
        if key == POLICY:
            both = policies(str(value))
            paths |= {("cache", "admission"): both[0], ("cache", "replacement"): both[1]}
        else:
            paths[path_of(key)] = value
    return paths


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
    either = {**REPLACEMENT, **ADMISSION}
    wanted = ((admission, ADMISSION), (replacement, REPLACEMENT)) if plus else ((name, either),)
    for one, family in wanted:
        if one not in family:
            raise ScenarioError(f"{POLICY}: unknown policy {one!r}: {hint(one, family)}")
    if plus:
        return admission, replacement
    return name if name in ADMISSION else "always", name if name in REPLACEMENT else "lru"
