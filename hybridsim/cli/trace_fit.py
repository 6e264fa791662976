"""`hybridsim trace fit`: a shareable stand-in for a confidential capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli.arguments import Chosen, trace_options
from hybridsim.cli.option import echo_document, examples, flag, option
from hybridsim.cli.running import check_folder
from hybridsim.foundation.units import human_count, human_size, human_time

if TYPE_CHECKING:
    from hybridsim.studies.trace_fit import Likeness
    from hybridsim.traces.summary import Tally

SCHEMA = "hybridsim.likeness/1"


@click.command(
    epilog=examples(
        "hybridsim trace fit sda.blktrace.0 -o sda.toml",
        "hybridsim trace fit traces/demo/rocksdb_mixgraph.blktrace.0.zst",
    )
)
@trace_options
@option("-o --output FILE", "Write the stand-in, a workload in TOML.")
@option("--seed", "Random seed of the stand-in.", 1, type=click.IntRange(0))
@flag("--no-check", "Do not compare the stand-in with the capture.")
@flag("--json", "Print one JSON object.", to="as_json")
def fit(chosen: Chosen, output: str | None, seed: int, no_check: bool, as_json: bool) -> None:
    """Fit a stand-in for TRACE: a synthetic workload.

    The stand-in can be shared: it contains distributions, but no addresses and no times of TRACE.
    Every command that reads a trace accepts its file, and generates requests with about the cache
    hits and misses of TRACE.  A comparison is printed: misses of LRU caches of several sizes and
    page sizes, the hit ratio over time, request sizes and directions.  A stand-in has no think
    times: replay it with --mode open or --mode closed.
    """
    from hybridsim.foundation.writing import write_text
    from hybridsim.studies.trace_fit import fit

    check_folder(output)
    trace = chosen.read()
    fitted = fit(trace, seed, not no_check)
    if fitted.likeness and as_json:
        echo_document(SCHEMA, {"trace": trace.name, **fitted.likeness.to_dict()})
    elif fitted.likeness:
        click.echo(text(fitted.likeness))
    if output:
        write_text(output, fitted.to_toml(seed))
        click.echo(f"wrote {output}: its first lines list what it reveals", err=True)


def text(likeness: Likeness) -> str:
    """Return the comparison as a report for a terminal."""
    from hybridsim.studies.trace_fit import SHARES

    lines = [f"{'':14}{'capture':>12}{'stand-in':>12}"]
    columns = _figures(likeness.capture), _figures(likeness.stand_in)
    lines += [f"{name:14}{columns[0][name]:>12}{columns[1][name]:>12}" for name in columns[0]]
    shares = "".join(f"{share:>7.0%}" for share in SHARES)
    lines += ["", "LRU misses in %, by cache size as a share of the data; difference in points"]
    lines += [f"{'page':>7}{'':11}{shares}  difference"]
    for each in likeness.curves:
        first, second = (
            "".join(f"{ratio * 100:>7.1f}" for ratio in row)
            for row in (each.capture, each.stand_in)
        )
        lines.append(f"{each.page:>7}  {'capture':>9}{first}")
        difference = f"{each.mean * 100:.1f}, at most {each.largest * 100:.1f}"
        lines.append(f"{'':7}  {'stand-in':>9}{second}  {difference}")
    warm = [_warm(each) for each in likeness.warm_ups]
    lines += [
        "",
        "warm-up of LRU, 10% of the data, 64 KiB pages: the hit ratios over time differ by",
        f"{likeness.hits_apart * 100:.1f} points;",
        f"90% warm after {warm[0]} of the accesses in the capture, {warm[1]} in the stand-in",
    ]
    return "\n".join(lines)


def _warm(warm_up: Any) -> str:
    from hybridsim.studies.trace_fit import BINS

    if not warm_up.steady:
        return f"{warm_up.state} at the end"
    return f"{warm_up.reached_ns.get(90, 0) / BINS:.0%}"


def _figures(tally: Tally) -> dict[str, str]:
    from hybridsim.foundation.codes import Op

    reads, writes = (tally.count[op] for op in (Op.READ, Op.WRITE))
    sequential = sum(tally.sequential.values()) / max(reads + writes, 1)
    return {
        "requests": human_count(tally.requests),
        "time": human_time(tally.span_ns),
        "reads": human_count(reads),
        "mean read": human_size(tally.bytes[Op.READ] / max(reads, 1)),
        "writes": human_count(writes),
        "mean write": human_size(tally.bytes[Op.WRITE] / max(writes, 1)),
        "flushes": human_count(tally.count[Op.FLUSH]),
        "sequential": f"{sequential:.0%}",
        "touched": human_size(tally.footprint.bytes),
        "highest offset": human_size(tally.max_end_bytes),
    }
