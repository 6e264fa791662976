"""`hybridsim mrc`: the miss-ratio curve of a trace."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.hits import REPLACEMENTS, page_option, policy_options
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import counted, percent
from hybridsim.show.page import columns, is_ascii, wrapped

if TYPE_CHECKING:
    from hybridsim.studies.mrc import Curve

SCHEMA = "hybridsim.mrc/1"
WIDEST, HEIGHT = 64, 12
TABLE_ROWS = 12
POINTS = 200  # maximum in JSON and CSV of an exact curve


@args.command(
    "hybridsim mrc sda.blktrace.0",
    "hybridsim mrc sda.blktrace.0 --policy arc",
    "hybridsim mrc sda.blktrace.0 --sample 25% --json",
    "hybridsim mrc sda.blktrace.0 --csv > curve.csv",
)
def mrc(
    chosen: args.Chosen = args.trace_options,
    policy: str = args.option("--policy NAME", f"Replacement policy: {REPLACEMENTS}.", "lru"),
    admission: str = args.option(
        "--admission NAME", "Admission policy; see `hybridsim hits --help`.", "always"
    ),
    sample: str | None = args.option(
        "--sample SHARE|N",
        "Estimate from a sample: a share of the pages (1%), or, for LRU, at most N pages at a "
        "time (8192).",
    ),
    page: str = page_option("4KiB"),
    parameters: dict[str, int] = policy_options,
    as_json: bool = args.json_option,
    as_csv: bool = args.flag("--csv", "Print CSV, one line per size."),
) -> None:
    """Draw the miss-ratio curve of TRACE: the share of page accesses that miss, by cache size.

    For LRU the curve is exact at all sizes; other policies are simulated at 64 sizes in one pass
    (after another pass that counts the distinct pages).  With --sample, the figures are estimates
    with their 95% confidence intervals.
    """
    from hybridsim.studies.mrc import miss_ratio_curve

    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other: specify one of them")
    trace = chosen.read()
    share: str | int | None = int(sample) if sample and sample.isdigit() else sample
    curve = miss_ratio_curve(trace, policy, None, page, share, admission=admission, **parameters)
    if as_json:
        args.echo_document(SCHEMA, {"trace": trace.name, **curve.to_dict(POINTS)})
    elif as_csv:
        click.echo("pages,bytes,miss_ratio,error")
        for pages, ratio, error in curve.thinned(POINTS).points():
            click.echo(f"{pages},{pages * curve.page_bytes},{ratio:.6f},{error:.6f}")
    else:
        click.echo(drawn(curve))


def knee(curve: Curve) -> str:
    """Return the knee in words; there is none if all sizes have about the same miss ratio."""
    from hybridsim.show.curve import no_knee

    why = no_knee(float(curve.miss_ratio[0]), float(curve.miss_ratio[-1]))
    if why is not None:
        return f"no knee: {why}"
    misses = percent(curve.miss_ratio[curve.knee])
    return f"knee: {human_size(curve.knee_bytes)} ({misses} misses); a larger cache gains little"


def drawn(curve: Curve) -> str:
    """Return the curve as text: a plot, its knee, and a table of some sizes."""
    from hybridsim.show.curve import miss_ratios

    plot = min(columns() - 8, WIDEST)
    end = float(curve.pages[-1])
    text = miss_ratios(curve, plot, HEIGHT, is_ascii(sys.stdout), "|")
    text += [f"{'':6}+{'-' * plot}"]
    text += [f"{'':7}0{human_size(end * curve.page_bytes):>{plot - 1}}", ""]
    sentence = (
        f"{curve.policy}, {counted(curve.accesses, 'page access', 'page accesses')}, "
        f"{'about ' * (curve.sampled < curve.accesses)}"
        f"{counted(curve.distinct, 'distinct page')} of {human_size(curve.page_bytes)} (--page)"
        + (f"; {curve.sampled:,} accesses sampled" if curve.sampled < curve.accesses else "")
    )
    text += [
        *wrapped(sentence),
        *wrapped(knee(curve)),
        "",
        f"{'cache':>12}{'pages':>14}{'misses':>10}",
    ]
    for pages, ratio, error in curve.thinned(TABLE_ROWS).points():
        doubt = f"  ± {error:.2%}" if error else ""
        text.append(f"{human_size(pages * curve.page_bytes):>12}{pages:>14,}{ratio:>10.2%}{doubt}")
    return "\n".join(text)
