"""`hybridsim trace gen`: requests that nobody captured."""

from __future__ import annotations

import click

from hybridsim.cli.trace_arguments import as_option, examples

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
@click.option("--keys", is_flag=True, help="List the kinds of load and their keys.")
def gen(workload: str | None, output: str | None, written: str | None, keys: bool) -> None:
    """Make requests nobody captured, of a WORKLOAD.

    OUTPUT is a file, compressed if it ends with .gz, .zst, .xz or .bz2, or - for standard output.

    WORKLOAD is a TOML file with one [[load]] or more, a configuration file of Iometer (.icf), whose
    tests follow one another, or a line: KIND,key=value,... Several loads
    are joined with +: they run side by side, so their rates are the mix.  The kinds: random,
    hot-spot (which may move), zipf, zoned, sequential, iometer, sysbench.

    The same seed gives the same requests.  Every command that takes a trace takes a workload too:
    its file, or the line with `gen:` before it.
    """
    if keys:
        from hybridsim.cli.trace_gen_keys import keys_text

        click.echo(keys_text())
        return
    if workload is None or output is None:
        raise click.UsageError("give a workload and the file to write, or - for standard output")

    from hybridsim.cli.trace_convert import convert_to
    from hybridsim.cli.trace_text import plural
    from hybridsim.traces.trace import Trace

    rows = convert_to(Trace.read(as_said(workload)), [], output, written)
    if output != "-":
        click.echo(f"{output}: {plural(rows, 'request')}")


def as_said(workload: str) -> str:
    """Return what names a workload: a file where there is one, else a line."""
    from pathlib import Path

    is_named = workload.endswith((".toml", ".icf")) and "=" not in workload
    is_line = not (is_named or workload == "-" or Path(workload).exists())
    return workload if not is_line or workload.startswith("gen:") else f"gen:{workload}"
