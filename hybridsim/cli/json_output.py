"""JSON on standard output: one object, whose key `schema` names its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click


def echo_document(schema: str, document: Mapping[str, Any]) -> None:
    """Print a document as JSON; `hybridsim schema` prints the schema of that name."""
    click.echo(json.dumps({"schema": schema, **document}, indent=2))
