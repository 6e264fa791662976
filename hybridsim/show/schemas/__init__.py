"""What is in the JSON that hybridsim writes: a JSON Schema (draft 2020-12) for each document.

A document says which in its key `schema`: "hybridsim.result/1" is result.json.  The number changes
when a key is taken away or means something else; new keys come without.

The files state each key once.  An object has no other keys than its `properties`, all of them
required: in a file, `required` is written only where some are not always there.

A key of a plain type is one string, its type and a sentence: "integer: Nanoseconds.",
"number|null", "[string]: Names." of an array.

An object with `"class": "module:Name"` has the fields of this class, with the types of their
annotations, and the properties that its `_more` names.  Its own `properties` are added, or replace
those of a field that a type does not describe; `descriptions` has the sentences, by key.  An object
with `"like": "name"` has the keys of that one of the `$defs` too, before its own.
"""

from __future__ import annotations

import importlib
import json
import re
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.storage.catalog import KINDS

FOLDER = Path(__file__).parent
PARTS = "parts"  # what several documents have in them
KINDS_OF_DRIVES = '"KINDS OF DRIVES"'  # stands in the files for those of the catalog
NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_OTHERS = re.compile(r'"\$ref": "urn:hybridsim:(\w+)')


def names() -> list[str]:
    """Return the names of the documents."""
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != PARTS)


def load(name: str) -> dict[str, Any]:
    """Return the schema of a document, whole: those that it refers to are among its `$defs`.

    Raises UsageError for an unknown name.
    """
    if name not in names():
        raise UsageError(f"unknown schema {name!r}: {hint(name, names())}")
    needed, result = [name], dict[str, dict[str, Any]]()
    while needed:
        each = needed.pop()
        if each not in result:
            text = (FOLDER / f"{each}.json").read_text(encoding="utf-8")
            text = text.replace(KINDS_OF_DRIVES, json.dumps(KINDS))
            result[each] = filled(json.loads(text))
            needed += _OTHERS.findall(text)
    whole = result.pop(name)
    if result:
        whole["$defs"] = whole.get("$defs", {}) | result
    return whole


def filled(schema: Any, defs: Mapping[str, Any] | None = None) -> Any:
    """Return a whole schema; `defs` are the `$defs` of its document, by default its own."""
    if isinstance(schema, list):
        return [filled(each, defs) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {
        key: {name: in_full(one) for name, one in each.items()}
        if key in ("properties", "$defs") and isinstance(each, dict)
        else each
        for key, each in schema.items()
    }
    defs = schema.get("$defs", {}) if defs is None else defs
    result = {key: filled(each, defs) for key, each in schema.items()}
    own = result.get("properties", {})
    if isinstance(result.get("class"), str):
        module, name = result.pop("class").split(":")
        whole = _object(getattr(importlib.import_module(module), name), own)
    elif isinstance(result.get("like"), str):
        whole = _closed(filled(defs[result.pop("like")], defs)["properties"] | own)
    elif isinstance(own, dict) and own and result.get("type") in ("object", ["object", "null"]):
        whole = _closed(own)
    else:
        return result
    for key, text in result.pop("descriptions", {}).items():
        whole["properties"][key] = whole["properties"][key] | {"description": text}
    result.pop("properties", None)
    return whole | result


def in_full(value: Any) -> Any:
    """Return the schema of a key that is written as one string; other values as they are."""
    if not isinstance(value, str):
        return value
    kind, colon, sentence = value.partition(": ")
    names = kind.strip("[]").split("|")
    plain: dict[str, Any] = {"type": names[0] if len(names) == 1 else names}
    result = {"type": "array", "items": plain} if kind[0] == "[" else plain
    return result | {"description": sentence} if colon else result


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
    for name in getattr(kind, "_more", ()):  # properties: see foundation/documents.py
        fields[name] = get_type_hints(getattr(kind, name).fget)["return"]
    properties = {
        name: own[name] if name in own else of_type(hint) for name, hint in fields.items()
    } | dict(own)
    return _closed(properties)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
