"""`hybridsim fit`: which model behaves like the device I measured?"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hybridsim.show.screen import clear, show

if TYPE_CHECKING:
    from hybridsim.answers.fidelity import Fidelity
    from hybridsim.answers.fitting.answer import Fit
    from hybridsim.answers.fitting.arrangement import Progress

QUIET_S = 1.0  # what is over sooner shows no progress
EXAMPLES = """\b
Examples:
  hybridsim fit traces/blktrace/loop_ext4_mqdl_randrw
  hybridsim fit traces/blktrace/loop_ext4_mqdl_randrw -o disk.toml
"""


@click.command(epilog=EXAMPLES)
@click.argument("measured", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", help="Write the model as a scenario to replay on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
@click.option("--format", "format_", metavar="NAME", help="The capture's format.")
@click.option(
    "--device", metavar="MAJ,MIN", help="Which device of the capture, by default the busiest."
)
@click.option(
    "--no-check", is_flag=True, help="Do not simulate the model to hold it against the capture."
)
def fit(
    measured: tuple[str, ...],
    output: str | None,
    as_json: bool,
    format_: str | None,
    device: str | None,
    no_check: bool,
) -> None:
    """Estimate a model of your device or array from MEASURED: a block capture, or fio's JSON.

    A capture (as `replay` takes it) must hold dispatches and completions, as blktrace records
    them.  It tells disks from flash; of disks, how many the volume is striped over, in chunks of
    what size, speed, seek times, overhead, transfer rate, and how many requests go down at a time.

    Of fio, give the results of random reads at several queue depths (--output-format=json or
    json+).  Each value comes with an interval that holds the truth 19 times in 20; what cannot be
    told from the measurement is said, and keeps a usual value.
    """
    from hybridsim.foundation.errors import UsageError
    from hybridsim.foundation.writing import write_text
    from hybridsim.studies.fit import fit

    if output and not Path(output).absolute().parent.is_dir():
        raise UsageError(f"cannot write {output}: there is no such folder")
    with _progress() as progress:
        found = fit(measured, format_, device, progress, not no_check)
    click.echo(found.to_json() if as_json else text(found))
    if output:
        write_text(output, found.to_toml())
        click.echo(f"wrote {output}: replay a capture on it with --scenario {output}", err=True)


def text(found: Fit) -> str:
    """Return the fit for a person at a terminal."""
    lines = [found.what, ""]
    rows = [("", "VALUE", "95% INTERVAL", "")]
    for one in found.estimates:
        if one.key in ("name", "rate_inner") or (one.table, one.key) == ("backing.drive", "kind"):
            continue
        interval = one.interval if one.told else "not told"
        rows.append((one.key.replace("_", " "), one.shown(one.value), interval, one.how))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        lines.append("  ".join([*cells, row[3]]).rstrip())
    if found.fidelity:
        lines += ["", *_fidelity(found.fidelity)]
    return "\n".join(lines + [f"note: {note}" for note in found.notes])


def _fidelity(held: Fidelity) -> Iterator[str]:
    from hybridsim.answers.fidelity import figures
    from hybridsim.foundation.wording import latency, of_the_mean

    both = {"measured": figures(held.measured), "this model": figures(held.modelled)}
    names = [name for name in both["measured"] if name != "n"]
    yield f"{'latency':<12}" + "".join(f"{name.removesuffix('_ns'):>10}" for name in names)
    for what, row in both.items():
        yield f"{what:<12}" + "".join(f"{latency(row[name]):>10}" for name in names)
    yield (
        f"The two distributions are {of_the_mean(held.demerit)} apart: a {held.likeness} "
        f"likeness ({held.measured.count:,} requests)."
    )


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show what is being done on standard error, if that is a terminal and it takes long."""
    begun = time.monotonic()
    shown = False

    def progress(what: str, done: int, of: int) -> None:
        nonlocal shown
        if not sys.stderr.isatty() or time.monotonic() - begun < QUIET_S:
            return
        shown = True
        number = f" {done + 1} of {of}" if of > 1 else ""
        show(f"{what}{number}")

    try:
        yield progress
    finally:
        if shown:
            clear()
