"""`hybridsim trace gen`: generate the requests of a synthetic workload."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from hybridsim.cli import arguments as args
from hybridsim.foundation.units import format_size, format_time
from hybridsim.foundation.wording import counted

HOT = "hot-spot,span=1GiB,hot=10%,share=90%"
HIDDEN = {"kind", "load"}


@args.command(
    f"hybridsim trace gen {HOT},requests=100k hot.csv.zst",
    "hybridsim trace gen traces/workloads/mail.toml mail.csv.zst",
    "hybridsim trace gen random,rate=150+sequential,rate=50,duration=1m - | head -3",
    "hybridsim trace gen --as fio-iolog zipf,theta=1.1,size=4k/70:64k/30,seed=7 zipf.iolog",
    "hybridsim trace gen 'iometer,icf=traces/workloads/web.icf,spec=File server' web.csv.zst",
    "hybridsim trace gen sysbench,test-mode=rndrw,threads=16,duration=5m sysbench.csv.zst",
    f"hybridsim mrc gen:{HOT}",
    "hybridsim trace gen --keys",
)
def gen(
    workload: str | None = args.argument("WORKLOAD", required=False),
    output: str | None = args.argument("OUTPUT", required=False),
    written: str | None = args.as_option,
    keys: bool = args.flag("--keys", "List the kinds of load and their keys."),
) -> None:
    """Generate the requests of a synthetic WORKLOAD.

    OUTPUT is a file, compressed if it ends with .gz, .zst, .xz or .bz2, or - for standard output.

    WORKLOAD is a TOML file with one or more [[load]] tables; a configuration file of Iometer
    (.icf), whose tests run one after another; or a line KIND,key=value,...  Loads joined with + run
    concurrently, each at its own rate.  The kinds are random, hot-spot (which may move), zipf,
    zoned, sequential, iometer, sysbench.

    The same seed generates the same requests.  Every command that reads a trace also accepts a
    workload: its file, or the line with the prefix `gen:`.
    """
    if keys:
        click.echo(keys_text())
        return
    if workload is None or output is None:
        raise click.UsageError("specify a workload and the output file, or - for standard output")

    from hybridsim.cli.trace_convert import convert_to
    from hybridsim.traces.trace import Trace

    rows = convert_to(Trace.read(trace_name(workload)), [workload], output, written)
    if output != "-":
        click.echo(f"{output}: {counted(rows, 'request')}")


def trace_name(workload: str) -> str:
    """Return the trace name of a workload: the file if there is one, else the line with `gen:`."""
    is_file_name = workload.endswith((".toml", ".icf")) and "=" not in workload
    is_line = not (is_file_name or workload == "-" or Path(workload).exists())
    return workload if not is_line or workload.startswith("gen:") else f"gen:{workload}"


def keys_text() -> str:
    """Return the common keys, then each kind with its additional keys and changed defaults."""
    from hybridsim.workloads import KINDS
    from hybridsim.workloads.load import Load
    from hybridsim.workloads.stand_in import StandIn
    from hybridsim.workloads.workload import TABLES, Workload

    lines = ["keys of the workload", *_rows(Workload, HIDDEN), "", "keys of every load"]
    lines += _rows(Load, HIDDEN)
    for name, table in zip(KINDS, TABLES):
        if table is StandIn:
            continue  # written by `trace fit`, not by hand
        about = " ".join((table.__doc__ or "").split("\n\n")[0].split())
        lines += ["", f"{name}: {about}"]
        inherited = set(Load.model_fields) if issubclass(table, Load) else set()
        changed = {
            key
            for key in inherited
            if table.model_fields[key].default != Load.model_fields[key].default
        }
        lines += _rows(table, HIDDEN | (inherited - changed))
    return "\n".join(lines)


def _rows(table: Any, hidden: Iterable[str]) -> list[str]:
    from hybridsim.scenario.key_help import comments

    texts = comments(table)
    return [
        f"  {fact.alias or name:<12} {_shown(name, fact.default):<24} {texts[name]}"
        for name, fact in table.model_fields.items()
        if name not in hidden
    ]


def _shown(key: str, value: Any) -> str:
    """Return a default value in the notation of a workload file."""
    if value is None or value == "":
        return "-"
    if key in ("burst_lasts", "begin", "step", "ramp", "run") and isinstance(value, int):
        return format_time(value)
    if key in ("at", "span", "align", "unit", "total_size", "block_size"):
        return format_size(value)
    if key in ("read", "share", "hot", "moved"):
        return f"{value:.0%}"
    if key == "access":
        return ",".join(map(str, value[0]))
    if key == "size":
        return ":".join(f"{format_size(size)}/{weight:g}" for size, weight in value)
    if key == "zones":
        return ":".join(f"{accesses:g}/{size:g}" for accesses, size in value)
    if key == "depth":
        return "-".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
