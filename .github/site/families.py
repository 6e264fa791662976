"""Pages of the families that are extended with a file: each member with its own description."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping

from click.testing import CliRunner

from hybridsim.answers import measurements
from hybridsim.caches import CACHES
from hybridsim.caches.policies import ADMISSION, OFFLINE, REPLACEMENT
from hybridsim.cli import cli
from hybridsim.cli.trace_gen import keys_text
from hybridsim.foundation.registry import Registry
from hybridsim.traces import formats


def pages() -> dict[str, str]:
    """Return the pages by address."""
    return {
        "reference/formats.md": (
            "# Formats\n\nA trace's format is detected; `--format NAME` forces one.\n\n"
            + _entries(_modules(formats.FORMATS))
            + f"\n`hybridsim trace convert` writes {', '.join(formats.WRITTEN)}.\n\n"
            "## Measurements\n\nWhat `hybridsim compare` and `check` read of real runs.\n\n"
            + _entries(
                (name, inspect.getdoc(each) or "") for name, each in measurements.formats().items()
            )
        ),
        "reference/policies.md": (
            "# Caches and policies\n\n## Kinds of cache\n\n"
            + _entries(_kinds())
            + "\n## Replacement\n\n"
            + _entries(_classes(REPLACEMENT))
            + "\n## Admission\n\n"
            + _entries(_classes(ADMISSION))
            + "\n## Only without devices (`hybridsim hits`)\n\n"
            + _entries(_classes(OFFLINE))
        ),
        "reference/workloads.md": (
            "# Keys of generated workloads\n\n"
            "A TOML file, or `gen:KIND,key=value` on the command line. Printed by "
            f"`hybridsim trace gen --keys`.\n\n```text\n{keys_text().rstrip()}\n```\n"
        ),
        "reference/catalog.md": (
            "# Catalog\n\nThe drives, volumes and systems that can be simulated. "
            "`hybridsim catalog show NAME` prints each value with its source.\n\n"
            f"```text\n{CliRunner().invoke(cli, ['catalog']).output.rstrip()}\n```\n"
        ),
    }


def _modules(places: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name, place in places.items():
        yield name, inspect.getdoc(importlib.import_module(place)) or ""


def _kinds() -> Iterable[tuple[str, str]]:
    """Yield the kinds of cache; what follows their first paragraphs is about files."""
    for name, text in _classes(CACHES):
        yield name, text.split("\n\n")[0]


def _classes(registry: Registry) -> Iterable[tuple[str, str]]:
    for name in registry:
        yield name, inspect.getdoc(registry.module(name)) or ""


def _entries(described: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"**{name}**: {text.strip()}\n" for name, text in described)
