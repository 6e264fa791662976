"""`hybridsim trace gen`: generate the requests of a synthetic workload."""

from __future__ import annotations

import click

from hybridsim.cli.arguments import as_option
from hybridsim.cli.option import examples, flag

HOT = "hot-spot,span=1GiB,hot=10%,share=90%"


@click.command(
    epilog=examples(
        f"hybridsim trace gen {HOT},requests=100k hot.csv.zst",
        "hybridsim trace gen traces/workloads/mail.toml mail.csv.zst",
        "hybridsim trace gen random,rate=150+sequential,rate=50,duration=1m - | head -3",
        "hybridsim trace gen --as fio-iolog zipf,theta=1.1,size=4k/70:64k/30,seed=7 zipf.iolog",
        "hybridsim trace gen 'iometer,icf=traces/workloads/web.icf,spec=File server' web.csv.zst",
        "hybridsim trace gen sysbench,test-mode=rndrw,threads=16,duration=5m sysbench.csv.zst",
        f"hybridsim mrc gen:{HOT}",
        "hybridsim trace gen --keys",
    )
)
@click.argument("workload", metavar="WORKLOAD", required=False)
@click.argument("output", metavar="OUTPUT", required=False)
@as_option
@flag("--keys", "List the kinds of load and their keys.")
def gen(workload: str | None, output: str | None, written: str | None, keys: bool) -> None:
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
        from hybridsim.cli.trace_gen_keys import keys_text

        click.echo(keys_text())
        return
    if workload is None or output is None:
        raise click.UsageError("specify a workload and the output file, or - for standard output")

    from hybridsim.cli.trace_convert import convert_to
    from hybridsim.foundation.wording import counted
    from hybridsim.traces.trace import Trace

    rows = convert_to(Trace.read(trace_name(workload)), [workload], output, written)
    if output != "-":
        click.echo(f"{output}: {counted(rows, 'request')}")


def trace_name(workload: str) -> str:
    """Return the trace name of a workload: the file if there is one, else the line with `gen:`."""
    from pathlib import Path

    is_file_name = workload.endswith((".toml", ".icf")) and "=" not in workload
    is_line = not (is_file_name or workload == "-" or Path(workload).exists())
    return workload if not is_line or workload.startswith("gen:") else f"gen:{workload}"
