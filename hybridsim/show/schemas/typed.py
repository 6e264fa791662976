"""JSON Schemas of classes that are written as they are: each field is a key.

An object of a schema with `"class": "module:Name"` has the fields of this class, all of them
required, with the types of their annotations.  Its own `properties` are added, or replace those of
a field that a type does not describe; `descriptions` has the sentences, by key, and `required` the
keys that are always there if these are not all.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def filled(schema: Any) -> Any:
    """Return a schema in which every `class` is replaced by what the class says."""
    if isinstance(schema, list):
        return [filled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: filled(each) for key, each in schema.items()}
    if not isinstance(result.get("class"), str):
        return result
    module, name = result.pop("class").split(":")
    own = result.pop("properties", {})
    whole = _object(getattr(importlib.import_module(module), name), own)
    for key, text in result.pop("descriptions", {}).items():
        whole["properties"][key] = whole["properties"][key] | {"description": text}
    return whole | result


def of_type(kind: Any) -> dict[str, Any]:
    """Return the schema of a value of a type."""
    if kind in NAMES:
        return {"type": NAMES[kind]}
    if kind is Any:
        return {}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return _either([of_type(each) for each in arguments])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": of_type(arguments[1])}
    if origin is not None:  # a list, a sequence, or a tuple of one type
        return {"type": "array", "items": of_type(arguments[0])}
    if is_dataclass(kind):
        return _object(kind)
    raise TypeError(f"{kind} has no schema: write it among the properties")


def _either(choices: list[dict[str, Any]]) -> dict[str, Any]:
    if all(each.keys() == {"type"} for each in choices):
        return {"type": [each["type"] for each in choices]}
    null = {"type": "null"} in choices
    if null and len(choices) == 2 and isinstance(choices[0].get("type"), str):
        return choices[0] | {"type": [choices[0]["type"], "null"]}
    return {"anyOf": choices}


def _object(kind: Any, own: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    fields = {name: hint for name, hint in get_type_hints(kind).items() if name[0] != "_"}
    properties = {
        name: own[name] if name in own else of_type(hint) for name, hint in fields.items()
    } | dict(own)
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
