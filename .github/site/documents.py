"""The pages of the JSON documents, from their schemas: each key with its type and meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hybridsim.show import schemas
from hybridsim.show.schemas import filled

FOLDER = "reference/json"


def addresses() -> Iterator[str]:
    """Yield the addresses of the pages."""
    yield f"{FOLDER}/index.md"
    for name in [*schemas.names(), schemas.PARTS]:
        yield f"{FOLDER}/{name}.md"


def pages() -> dict[str, str]:
    """Return the pages by address."""
    loaded = {name: _own(name) for name in [*schemas.names(), schemas.PARTS]}
    rows = "".join(
        f"| [{name}]({name}.md) | {schema['title']} |\n" for name, schema in loaded.items()
    )
    index = (
        "# JSON documents\n\nWhat `--json` writes. The key `schema` of a document names it and its "
        "version, which changes when a key is removed or changes its meaning. "
        "`hybridsim schema NAME` prints a JSON Schema (draft 2020-12) whole.\n\n"
        f"| document | |\n|---|---|\n{rows}"
    )
    return {f"{FOLDER}/index.md": index} | {
        f"{FOLDER}/{name}.md": _page(name, schema) for name, schema in loaded.items()
    }


def _own(name: str) -> dict[str, Any]:
    """Return the schema of one file, without the parts of others that it refers to by name."""
    text = (schemas.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    text = text.replace(schemas.KINDS_OF_DRIVES, '"one of the catalog"')
    schema: dict[str, Any] = filled(json.loads(text.replace('"#/', f'"urn:hybridsim:{name}#/')))
    found: dict[str, Any] = _inlined(schema)
    return found


def _inlined(value: Any) -> Any:
    """Return a schema in which each reference to a single key of another one is what is there."""
    if isinstance(value, list):
        return [_inlined(each) for each in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), str) and "/properties/" in value["$ref"]:
        document, _, pointer = value["$ref"].partition("#/")
        found: Any = _own(document.rpartition(":")[2])
        for key in pointer.split("/"):
            found = found[key]
        return found | {key: each for key, each in value.items() if key != "$ref"}
    return {key: _inlined(each) for key, each in value.items()}


def _page(name: str, schema: dict[str, Any]) -> str:
    tables = [("", schema), *schema.get("$defs", {}).items()]
    parts = [f"# {schema['title']}\n\n{schema.get('description', '')}\n"]
    for title, table in tables:
        rows = [*_rows(table, "")]
        if title:
            parts.append(f"## {title}\n\n{table.get('description', '')}\n")
        if rows:
            parts.append("| key | type | |\n|---|---|---|\n" + "".join(rows))
        elif title:
            parts.append(f"{_type(table)}\n")
    return "\n".join(parts)


def _rows(schema: dict[str, Any], above: str) -> Iterator[str]:
    """Yield a row for each key, those of tables within after the table itself."""
    required = set(schema.get("required", ()))
    for key, value in schema.get("properties", {}).items():
        path = f"{above}{key}"
        optional = "" if key in required else ", optional"
        yield _row(path, f"{_type(value)}{optional}", value.get("description", ""))
        yield from _within(value, path)


def _within(value: dict[str, Any], path: str) -> Iterator[str]:
    if "properties" in value:
        yield from _rows(value, f"{path}.")
    if isinstance(value.get("additionalProperties"), dict):
        inner = value["additionalProperties"]
        yield _row(f"{path}.*", _type(inner), inner.get("description", ""))
        yield from _within(inner, f"{path}.*")
    if isinstance(value.get("items"), dict):
        yield from _within(value["items"], f"{path}[]")
    for choice in value.get("anyOf", ()):
        yield from _within(choice, path)


def _row(path: str, kind: str, text: str) -> str:
    return f"| `{path}` | {kind} | {text.replace('|', '&#124;')} |\n"


def _type(value: dict[str, Any]) -> str:
    """Return the type of a value, with links to those that are described elsewhere."""
    if "$ref" in value:
        page, _, anchor = value["$ref"].partition("#")
        name = anchor.rpartition("/")[2]
        page = f"{page.rpartition(':')[2]}.md"
        return f"[{name or page.removesuffix('.md')}]({page}{'#' if name else ''}{name.lower()})"
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return " or ".join(f"`{json.dumps(each)}`" for each in value["enum"])
    if "anyOf" in value:
        return " or ".join(map(_type, value["anyOf"]))
    if "items" in value:
        return f"list of {_type(value['items'])}"
    kind = value.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
