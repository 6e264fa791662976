"""The values that a user specified for a scenario, and their places for error messages."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.toml.places import Path, Places
from hybridsim.foundation.toml.problems import Problem, parsed
from hybridsim.scenario.options import OPTIONS


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
