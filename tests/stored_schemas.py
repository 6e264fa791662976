"""The schemas of the JSON documents as they were last stored, a line a key: data/schemas.txt.

    python tests/stored_schemas.py        store those of this state, after a key was added

A line is the key's place, its type, and "optional" if it may be missing.  A key that vanishes or
changes its type needs a new number of its document.
"""

import json
import sys
from pathlib import Path

from hybridsim.show import schemas

FILE = Path(__file__).parent / "data" / "schemas.txt"


def lines():
    """Return a line for each key of all documents, in order."""
    return sorted(line for name in schemas.names() for line in of_document(name))


def of_document(name):
    """Yield the lines of a document and of the parts that it refers to."""
    schema = schemas.load(name)
    number = schema["properties"]["schema"]["const"]
    yield from _keys(schema, number)
    for part, below in schema.get("$defs", {}).items():
        if not below.get("$id"):  # another document has its own lines
            yield from _keys(below, f"{number}#{part}")
        elif below["$id"].endswith(f":{schemas.PARTS}"):
            for one, each in below["$defs"].items():
                yield from _keys(each, f"{number}#{schemas.PARTS}#{one}")


def _keys(schema, place):
    """Yield the line of a value, and those of the values within."""
    for key, value in schema.get("properties", {}).items():
        optional = "" if key in schema.get("required", ()) else " optional"
        yield f"{place}.{key} {_kind(value)}{optional}"
        yield from _keys(value, f"{place}.{key}")
    for within in ("items", "additionalProperties"):
        if isinstance(schema.get(within), dict):
            yield f"{place}[] {_kind(schema[within])}"
            yield from _keys(schema[within], f"{place}[]")
    for number, choice in enumerate(schema.get("anyOf", ())):
        yield f"{place}|{number} {_kind(choice)}"
        yield from _keys(choice, f"{place}|{number}")


def _kind(value):
    """Return the type of a value in one word, without what is within it."""
    shown = {name: value[name] for name in ("const", "enum", "$ref") if name in value}
    if shown:
        return json.dumps(*shown.values(), separators=(",", ":"))
    kinds = value.get("type", "any")
    return "/".join(sorted(kinds)) if isinstance(kinds, list) else kinds


if __name__ == "__main__":
    before = set(FILE.read_text().splitlines()) if FILE.exists() else set()
    FILE.write_text("".join(f"{line}\n" for line in lines()))
    sys.stdout.writelines(f"- {line}\n" for line in sorted(before - set(lines())))
    sys.stdout.writelines(f"+ {line}\n" for line in sorted(set(lines()) - before))
