"""JSON on standard output: one object that says by its key `schema` what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click


def echo_document(schema: str, document: Mapping[str, Any]) -> None:
    """Print a document; `hybridsim schema` has the schema of that name."""
    click.echo(json.dumps({"schema": schema, **document}, indent=2))
