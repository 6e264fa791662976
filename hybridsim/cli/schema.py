"""`hybridsim schema`: what is in the JSON that other commands write."""

from __future__ import annotations

import json

import click

from hybridsim.cli.trace_arguments import examples


@click.command(epilog=examples("hybridsim schema", "hybridsim schema result > result.schema.json"))
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of the document NAME, with the unit of every value.

    A document's key `schema` says its name and version: "hybridsim.result/1" is result.  Without
    NAME, list all of them.
    """
    from hybridsim.show import schemas

    if name:
        click.echo(json.dumps(schemas.load(name), indent=2, ensure_ascii=False))
        return
    for each in schemas.names():
        known = schemas.load(each)
        click.echo(f"{known['properties']['schema']['const']:<24}{known['title']}")
