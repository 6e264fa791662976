"""Dataclasses as objects of JSON documents: a class says once which keys there are.

`show/schemas/` makes the schema of such an object from the same class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

from hybridsim.foundation.version import __version__


@dataclass(frozen=True)
class Document:
    """An object whose keys are its fields, and after these the properties that `_more` names.

    Fields that begin with an underscore are no keys.
    """

    _more: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, with all that is within it."""
        return {name: in_json(getattr(self, name)) for name in _keys(type(self))}


def headed(schema: str, **keys: Any) -> dict[str, Any]:
    """Return a document of a command: how each begins, then its own keys, for JSON."""
    return {"schema": schema, "tool": {"version": __version__}, **in_json(keys)}


def _keys(kind: type) -> list[str]:
    """Return the keys of a dataclass in JSON."""
    own = [each.name for each in fields(kind) if each.name[0] != "_"]
    return [*own, *getattr(kind, "_more", ())]


def in_json(value: Any) -> Any:
    """Return a value with objects as dictionaries and tuples as lists, however deep."""
    if hasattr(value, "to_dict"):
        return in_json(value.to_dict())
    if hasattr(value, "_asdict"):
        return in_json(value._asdict())
    if is_dataclass(value):
        return {name: in_json(getattr(value, name)) for name in _keys(type(value))}
    if isinstance(value, Mapping):
        return {key: in_json(each) for key, each in value.items()}
    return [in_json(each) for each in value] if isinstance(value, list | tuple) else value
