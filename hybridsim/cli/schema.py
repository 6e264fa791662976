"""`hybridsim schema`: the schemas of the JSON that other commands write."""

from __future__ import annotations

import json

import click

from hybridsim.cli.arguments import argument, command


@command("hybridsim schema", "hybridsim schema result > result.schema.json")
def schema(name: str | None = argument(required=False)) -> None:
    """Print the JSON Schema of the document NAME, with the unit of every value.

    The key `schema` of a document is its name and version: "hybridsim.result/1" is version 1 of
    result.  Without NAME, list all schemas.
    """
    from hybridsim.show import schemas

    if name:
        click.echo(json.dumps(schemas.load(name), indent=2, ensure_ascii=False))
        return
    for each in schemas.names():
        document = schemas.load(each)
        const = document["properties"]["schema"]["const"]
        click.echo(f"{const:<24}{document['title']}")
