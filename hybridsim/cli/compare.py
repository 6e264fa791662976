"""`hybridsim compare`: does the model match my machine?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hybridsim.cli import arguments as args
from hybridsim.cli.running import progress_of_jobs, write_answer

if TYPE_CHECKING:
    from hybridsim.answers.measurements.measurement import Measurement

DIFFERS = 4  # the exit code of an unmet requirement


@args.command(
    "hybridsim compare real.json simulated.json",
    "hybridsim compare real.json simulated.json --tolerance iops=5%,p99=20%,p99.9=none",
    "hybridsim compare real.json job.fio --preset digitalocean-volume --tolerance mean=none,"
    "p99=none",
)
def compare(
    real: str = args.argument("REAL"),
    simulated: str = args.argument("SIMULATED"),
    tolerance: tuple[str, ...] = args.option(
        "--tolerance LIST",
        "Maximum difference: 10% for all figures, or by figure: iops=5%,p99=20%,curve=0.05,"
        "p90=none (not checked).",
        multiple=True,
    ),
    options: dict[str, Any] = args.joined(
        dict,
        scenario_file=args.scenario_option("SIMULATED is a fio job file: run it on this scenario."),
        preset=args.option(
            "--preset NAME",
            "SIMULATED is a fio job file: run it on this whole system (see `hybridsim catalog`).",
        ),
        cache=args.cache_option(),
        cache_mode=args.cache_mode_option,
        settings=args.set_option,
    ),
    as_json: bool = args.json_option,
    out: args.Outputs = args.outputs("html"),
) -> None:
    """Compare a SIMULATED run with a REAL one: curves, figures, pass or fail.

    REAL is a file, a folder, or a prefix of files of one run: fio's JSON (json+ includes whole
    distributions), its text (1.x to 3.x), its logs; samples of `dmsetup status` (dm-cache,
    dm-writecache), of `casadm --stats -o csv` or of bcache's stats_total, each with the
    uptime at which it was taken; `hybridsim serve --json`.
    SIMULATED is the output of `hybridsim fio --output-format=json+` or `hybridsim replay --json`;
    or, with options of a machine, a job file to run now.  If both are results of `hybridsim replay`
    for the same requests, these are paired: the gain of the second machine, with its interval.
    Exit code 4: a figure exceeds its tolerance.
    """
    from hybridsim.show.comparison import text
    from hybridsim.studies.compare import compare as run

    other = _simulated(simulated, options) if any(options.values()) else simulated
    comparison = run(real, other, tolerance)
    write_answer(comparison, text, out._replace(json_file="-" if as_json else None))
    if comparison.failed:
        sys.exit(DIFFERS)


def _simulated(job: str, options: dict[str, Any]) -> Measurement:
    """Run a job file on the machine, and return its measurement."""
    from hybridsim.show.fio_json import measurement
    from hybridsim.studies.fio import fio
    from hybridsim.workloads.fio.jobfile import read

    site = args.machine(**options)
    with progress_of_jobs() as progress:
        result = fio(read([job]), site, progress=progress)
    measured = measurement(result, job)
    measured.kind = site.cache.kind
    return measured
