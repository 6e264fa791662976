"""`hybridsim catalog`: the drives that can be simulated, with the sources of their values."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli import arguments as args
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import latency
from hybridsim.show.page import WIDEST, columns, wrapped

if TYPE_CHECKING:
    from hybridsim.storage.catalog import Entry

# The figures shown in the list, in this order, if an entry has them: key, format.
HEADLINES = (
    ("rpm", "{} rpm"),
    ("seek_average", "seek {}"),
    ("rate_outer", "{} outer"),
    ("read_latency", "read {}"),
    ("write_latency", "write {}"),
    ("random_read_iops", "{} reads/s"),
    ("random_write_iops", "{} writes/s"),
    ("sustained_iops", "{} IOPS"),
    ("sustained_bandwidth", "{}"),
)
CATALOG = "hybridsim.catalog/1"
DRIVE = "hybridsim.drive/1"
SYSTEM = "hybridsim.system/1"


@args.command(
    "hybridsim catalog",
    "hybridsim catalog --kind ssd",
    "hybridsim catalog show hgst-ultrastar-7k8",
    of=click.group,
    invoke_without_command=True,
)
def catalog(
    kind: str | None = args.option("--kind KIND", "List only this kind, such as hdd or ssd."),
    as_json: bool = args.json_option,
) -> None:
    """List the drives that a scenario can use, or show one with its sources."""
    if click.get_current_context().invoked_subcommand:
        if kind or as_json:
            raise click.UsageError(
                "--kind and --json belong to the list; `show` has its own --json"
            )
        return
    from hybridsim.storage.catalog import KINDS, load, names, systems

    if kind is not None and kind not in KINDS:
        raise UsageError(f"--kind {kind}: no such kind; {hint(kind, KINDS)}")
    entries = [load(each) for each in names(kind)]
    if as_json:
        args.echo_document(CATALOG, {"drives": [_short(entry) for entry in entries]})
        return
    lines = _list_text(entries)
    if kind is None:
        every = ", ".join(systems())
        lines += ["", *wrapped(f"Whole systems (hybridsim scenario show --preset NAME): {every}")]
    use = 'In a scenario: drive = "NAME".  Sources of its values: hybridsim catalog show NAME'
    lines += ["", *([use] if columns() == WIDEST else wrapped(use))]
    click.echo("\n".join(lines))


@args.command(
    "hybridsim catalog show hgst-ultrastar-7k8",
    "hybridsim catalog show --json samsung-pm9a3-1920gb",
    of=catalog.command,
)
def show(name: str = args.argument(), as_json: bool = args.json_option) -> None:
    """Show every value of NAME, its source, and how reliable it is.

    Marks: read (in a published text), measured (on a device), fitted (to a measurement), assumed,
    or recalled (from memory of a datasheet: check it).
    """
    from hybridsim.scenario import Scenario
    from hybridsim.scenario.machine import preset, preset_text
    from hybridsim.storage import catalog

    if name not in catalog.names() and name in catalog.systems():
        if as_json:
            args.echo_document(SYSTEM, {"name": name, "scenario": preset(name)})
        else:
            click.echo(preset_text(name).rstrip())
        return
    entry = catalog.load(name)
    section = "cache" if entry.kind == "ssd" else "backing"
    Scenario.loads(f'[{section}.drive]\nlike = "{name}"', f"{name} of the catalog")  # or refuse
    if as_json:
        values = {key: row._asdict() for key, row in entry.rows.items()}
        about = {"name": entry.key, "kind": entry.kind, "title": entry.name}
        args.echo_document(DRIVE, about | {"values": values})
        return
    rows = [(key, _number(row.value), row) for key, row in entry.rows.items()]
    width, room = (max(len(row[column]) for row in rows) for column in (0, 1))
    click.echo(f"{entry.name}  ({entry.key}, {entry.kind})\n")
    for key, value, row in rows:
        click.echo(f"{key:<{width}}  {value:<{room}}  {row.mark:<8}  {row.source}".rstrip())


def _headline(entry: Entry) -> dict[str, str | int]:
    if entry.kind == "volume":
        return _of_volume(entry)
    rows = entry.rows
    return {key: rows[key].scalar for key, _ in HEADLINES if key in rows}


def _of_volume(entry: Entry) -> dict[str, str | int]:
    """Return the IOPS and bandwidth that the provider's rules allow for the volume's size."""
    from hybridsim.storage.drives import CloudVolume

    values = {key: row.value for key, row in entry.rows.items()}
    volume = CloudVolume.model_validate({"kind": "volume", **values})
    rate = volume.sustained_bandwidth and f"{human_size(volume.sustained_bandwidth)}/s"
    limits = {"sustained_iops": volume.sustained_iops, "sustained_bandwidth": rate}
    return {name: each for name, each in limits.items() if each}


def _short(entry: Entry) -> dict[str, Any]:
    capacity = {"capacity": entry.rows["capacity"].value} if "capacity" in entry.rows else {}
    return {"name": entry.key, "kind": entry.kind, "title": entry.name, **capacity} | _headline(
        entry
    )


def _narrow(name: str, rest: list[str]) -> list[str]:
    """Return an entry for a terminal that is too narrow for the table."""
    indent = "  "
    text = ", ".join(each for each in rest if each)
    return [name, *textwrap.wrap(
        text, columns(), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )]  # fmt: skip


def _list_text(entries: list[Entry]) -> list[str]:

    rows = [("NAME", "KIND", "CAPACITY", "FIGURES")]
    for entry in entries:
        values = _headline(entry)
        figures = [text.format(_rounded(values[key])) for key, text in HEADLINES if key in values]
        capacity = entry.rows.get("capacity")
        size = _rounded(capacity.value) if capacity else ""
        rows.append((entry.key, entry.kind, size, ", ".join(figures) or entry.name))
    if columns() < WIDEST:
        return [line for name, *rest in rows[1:] for line in _narrow(name, rest)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + f"  {row[3]}"
        for row in rows
    ]


def _rounded(value: str | int | list[Any]) -> str:
    """Return a value for the list: 9.18GB for 9184760832B, 77.9us for 77900ns."""
    from hybridsim.answers.advice.alternatives import human_drive

    match = re.fullmatch(r"(\d{5,})(B|ns)", str(value))
    if match is None:
        return _number(value)
    return (human_drive if match[2] == "B" else latency)(int(match[1])).replace(" ", "")


def _number(value: str | int | list[Any]) -> str:
    if isinstance(value, list):
        return f"a table of {len(value)}"
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
