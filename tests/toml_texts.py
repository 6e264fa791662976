"""Tables as TOML text, in a random one of the notations that people use."""

from __future__ import annotations

import json
from random import Random
from typing import Any

Table = dict[str, Any]


class Writer:
    """Writes tables as TOML in one of the notations that people use."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def text(self, tables: Table) -> str:
        """Return a whole file."""
        top = {key: value for key, value in tables.items() if not isinstance(value, dict)}
        lines = [self.pair(key, value) for key, value in top.items()]
        for key in self.rng.sample([*tables], len(tables)):
            if key not in top:
                lines += self.table((key,), tables[key])
        return self.rng.choice(["\n", "\n", "\r\n"]).join(lines) + self.rng.choice(["\n", ""])

    def table(self, path: tuple[str, ...], table: Table) -> list[str]:
        """Return a table under its header; nested tables follow it or are inline."""
        lines = ["", "[" + self.rng.choice([".", " . "]).join(map(self.key, path)) + "]"]
        below = []
        for key in self.rng.sample([*table], len(table)):
            value = table[key]
            way = self.rng.randrange(3)
            if not isinstance(value, dict) or way == 0:
                lines.append(self.pair(key, value))
            elif way == 1 and value and not any(isinstance(each, dict) for each in value.values()):
                lines += [self.pair(key, each, f".{self.key(one)}") for one, each in value.items()]
            else:
                below += self.table((*path, key), value)
        return lines + below

    def pair(self, key: str, value: Any, more: str = "") -> str:
        remark = self.rng.choice(["", "", "  # why", "# ] } \" '''"])
        return f"{self.key(key)}{more}{self.rng.choice(['=', ' = '])}{self.value(value)}{remark}"

    def key(self, key: str) -> str:
        return self.rng.choice([key, key, key, key, f'"{key}"', f"'{key}'"])

    def value(self, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, dict):
            pairs = [f"{self.key(key)} = {self.value(each)}" for key, each in value.items()]
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, list):
            return "[" + self.rng.choice([",", ",\n  "]).join(map(self.value, value)) + "]"
        if isinstance(value, str):
            return self.words(value)
        if isinstance(value, int):
            return self.rng.choice([str(value), f"{value:_}", hex(value), f"+{value}"])
        return repr(value)

    def words(self, text: str) -> str:
        ways = [json.dumps(text, ensure_ascii=self.rng.random() < 0.5).replace("\x7f", "\\u007f")]
        if not set(text) & set("'\t\x7f"):
            ways += [f"'{text}'", f"'''{text}'''"]
        return self.rng.choice(ways)
