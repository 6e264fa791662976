"""`hybridsim check`: does a running cache keep what was simulated?"""

from __future__ import annotations

import sys

from hybridsim.cli import arguments as args
from hybridsim.cli.running import progress, write_answer
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_time

BROKEN = 4  # the exit code of an unmet requirement


@args.command(
    "hybridsim check promise.json counters-1.txt counters-2.txt",
    "hybridsim check promise.json counters-1.txt counters-2.txt --tolerance ssd-writes=20%",
)
def check(
    promise: str = args.argument("PROMISE.json"),
    counters: tuple[str, ...] = args.argument("[COUNTERS...]", nargs=-1),
    live: str | None = args.option(
        "--live DEVICE",
        "Read the counters of this cached device now, and again after --for (as root).",
    ),
    fast: tuple[str, ...] = args.option(
        "--fast DEVICE", "With --live: its SSD.  Repeatable.", multiple=True
    ),
    passes: int = args.option(
        "--for TIME", "With --live: time between the two readings.", "10m", parse=parse_time
    ),
    capture: str | None = args.option(
        "--capture TRACE",
        "A capture of the cached device: simulated again, to separate the load from the model.",
    ),
    tolerance: tuple[str, ...] = args.option(
        "--tolerance LIST",
        "An interval of your own around the promise: hit-ratio=5%,ssd-writes=20%.",
        multiple=True,
    ),
    format: str | None = args.format_option(),
    device: str | None = args.device_option,
    out: args.Outputs = args.outputs("json"),
) -> None:
    """Hold a running cache against the simulation that promised its figures.

    PROMISE.json is what `hybridsim replay --json` wrote, or `hybridsim setup --json` of a saved
    replay.  COUNTERS are two snapshots of the running cache, the earlier one first, saved by the
    command that `hybridsim setup` prints in its section monitor; or one file of samples of
    `dmsetup status`, `casadm -P -o csv` or bcache's stats_total, each with its uptime; or one
    snapshot, counted from the start of the cache.

    Each figure is compared with its interval, from the errors of the model on real runs.  Exit
    code 4: a figure is worse than its interval.
    """
    from hybridsim.scenario import Scenario
    from hybridsim.show.check import text
    from hybridsim.studies.check import check as ask
    from hybridsim.studies.check import promised, watched
    from hybridsim.traces.trace import Trace

    if bool(counters) == bool(live) and not (capture and not live):
        raise UsageError(
            "nothing to check: specify the saved counters of the cache, --live DEVICE, or "
            "--capture TRACE" if not counters else
            "saved counters and --live: specify one or the other"
        )  # fmt: skip
    if len(counters) > 2:
        raise UsageError("more than two snapshots: specify the first and the last")
    load = Trace.read((capture,), format, device) if capture else None
    taken = None
    if live:
        kind = Scenario.loads(promised(promise)[0].toml, promise).cache.kind
        taken = watched(kind, live, fast, passes / 1e9)
    with progress(compiles=load is not None) as report:
        answer = ask(promise, counters, load, report, live=taken, tolerance=tolerance)
    write_answer(answer, text, out)
    if answer.judged.answer == "broken":
        sys.exit(BROKEN)
