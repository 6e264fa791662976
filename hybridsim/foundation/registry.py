"""A family of classes by name, each imported at its first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any


class Registry(Mapping[str, Any]):
    """Name -> class.  Listing the names imports nothing, so that `--help` stays quick."""

    def __init__(self, places: dict[str, str]) -> None:
        """Take `{name: "module:class"}`."""
        self._places = places

    def __getitem__(self, name: str) -> Any:
        module, cls = self._places[name].split(":")
        return getattr(importlib.import_module(module), cls)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def module(self, name: str) -> ModuleType:
        """Return the module of a name, whose docstring describes it."""
        return importlib.import_module(self._places[name].split(":")[0])

    def by_class(self, cls: str) -> Any:
        """Return the class called `cls`; raise AttributeError if the family has none."""
        for name, place in self._places.items():
            if place.endswith(f":{cls}"):
                return self[name]
        raise AttributeError(cls)
