"""`hybridsim fit`: estimate a model of a measured device or array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.running import Line, check_folder
from hybridsim.foundation.wording import latency, of_the_mean

if TYPE_CHECKING:
    from hybridsim.answers.fidelity import Fidelity
    from hybridsim.answers.fitting.answer import Fit


@args.command(
    "hybridsim fit traces/blktrace/loop_ext4_mqdl_randrw",
    "hybridsim fit traces/blktrace/loop_ext4_mqdl_randrw -o disk.toml",
)
def fit(
    measured: tuple[str, ...] = args.argument(nargs=-1, required=True),
    output: str | None = args.option(
        "-o --output FILE", "Write the model as a scenario file, for `replay --scenario`."
    ),
    as_json: bool = args.flag("--json", "Print JSON instead of the table."),
    format: str | None = args.option("--format NAME", "Format of the capture."),
    device: str | None = args.option(
        "--device MAJ,MIN", "Device of the capture; default: the busiest."
    ),
    no_check: bool = args.flag(
        "--no-check", "Do not simulate the model to compare it with the capture."
    ),
) -> None:
    """Estimate a model of your device or array from MEASURED: a block capture, or fio's JSON.

    A capture (of a format that `replay` reads) must contain dispatches and completions, as
    blktrace records them.  The fit distinguishes disks from flash; for disks it estimates the
    number of members and the chunk size, rotational speed, seek times, overhead, transfer rate, and
    the number of requests that the path to the device carries at a time.

    With fio, use results of random reads, and of random writes if there are any, at several queue
    depths (--output-format=json or json+): those of a disk at depths above 1 determine the order in
    which it serves requests, its writes the write cache.  Each value is reported with its 95%
    confidence interval; values that the measurement does not determine are marked, and keep a
    typical default.
    """
    from hybridsim.foundation.writing import write_text
    from hybridsim.studies.fit import fit

    check_folder(output)
    with Line() as line:

        def progress(what: str, done: int, of: int) -> None:
            line.update(lambda: f"{what} {done + 1} of {of}" if of > 1 else what)

        fitted = fit(measured, format, device, progress, not no_check)
    click.echo(fitted.to_json() if as_json else text(fitted))
    if output:
        write_text(output, fitted.to_toml())
        click.echo(f"wrote {output}: replay a capture on it with --scenario {output}", err=True)


def text(fitted: Fit) -> str:
    """Return the fit as a report for a terminal."""
    lines = [fitted.what, ""]
    rows = [("", "VALUE", "95% INTERVAL", "")]
    for one in fitted.estimates:
        if one.key in ("name", "rate_inner") or (one.table, one.key) == ("backing.drive", "kind"):
            continue
        interval = one.interval if one.determined else "not determined"
        name = f"host {one.key}" if one.table == "host" else one.key
        rows.append((name.replace("_", " "), one.shown(one.value), interval, one.how))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        lines.append("  ".join([*cells, row[3]]).rstrip())
    if fitted.fidelity:
        lines += ["", *_fidelity(fitted.fidelity)]
    return "\n".join(lines + [f"note: {note}" for note in fitted.notes])


def _fidelity(fidelity: Fidelity) -> Iterator[str]:
    from hybridsim.answers.fidelity import figures

    both = {"measured": figures(fidelity.measured), "this model": figures(fidelity.modelled)}
    names = [name for name in both["measured"] if name != "n"]
    yield f"{'latency':<12}" + "".join(f"{name.removesuffix('_ns'):>10}" for name in names)
    for what, row in both.items():
        yield f"{what:<12}" + "".join(f"{latency(row[name]):>10}" for name in names)
    yield (
        f"The two distributions are {of_the_mean(fidelity.demerit)} apart: a "
        f"{fidelity.likeness} match ({fidelity.measured.count:,} requests)."
    )
