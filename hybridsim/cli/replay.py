"""`hybridsim replay`: what would this cache do for the I/O I captured?"""

from __future__ import annotations

from typing import Any

import click

from hybridsim.answers.goals import GOALS
from hybridsim.caches import CACHES
from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.cli.machine_options import (
    cache_option,
    html_option,
    machine,
    mode_option,
    seeds_option,
    set_option,
)
from hybridsim.cli.trace_arguments import DEVICE_HELP, format_option, require_option
from hybridsim.foundation.errors import UsageError

EXAMPLES = """\b
Examples:
  hybridsim replay sda.blktrace.0
  hybridsim replay sda.blktrace.0 --cache-size 64GiB --mode think
  hybridsim replay sda.blktrace.0 --scenario site.toml --json result.json --html report.html
  hybridsim replay sda.blktrace.0 --preset digitalocean-volume --cache page
  hybridsim replay sda.blktrace.0 --require 'mean<1s' --require 'warmup<1h'
  hybridsim replay sda.blktrace.0 --save-cache state.npz
  hybridsim replay sda.blktrace.0 --warm-start yesterday.blktrace.0
  blktrace -d /dev/sda -w 600 -o - | hybridsim replay -
"""


@click.command(epilog=EXAMPLES)
@click.argument("trace", nargs=-1, required=True)
@click.option(
    "--scenario",
    "scenario_file",
    metavar="FILE",
    help="The machine: see `hybridsim scenario show`.",
)
@cache_option([*CACHES, "none"])
@click.option(
    "--cache-size", metavar="SIZE", help="SSD space: 64GiB, or 10% of what the trace touches."
)
@click.option("--cache-members", type=int, metavar="N", help="How many SSDs the cache is on.")
@click.option("--cache-page", metavar="SIZE", help="What is cached at a time, 64KiB by default.")
@click.option(
    "--cache-mode",
    type=click.Choice(["read-only", "write-around", "write-through", "write-back"]),
    help="What a write does to the cache.",
)
@click.option("--admission", type=click.Choice(list(ADMISSION)), help="Who is let into the cache.")
@click.option(
    "--replacement", type=click.Choice(list(REPLACEMENT)), help="Who has to leave for it."
)
@click.option("--preset", metavar="NAME", help="Begin from a system of the catalog.")
@click.option(
    "--backing",
    type=click.Choice(["single", "linear", "raid0", "raid1", "raid5", "raid6", "raid10"]),
    help="What array the disks make.",
)
@click.option("--members", type=int, metavar="N", help="How many disks the array has.")
@mode_option(
    "as recorded (open), at a queue depth (closed), after the recorded think times; auto: open if "
    "the machine can keep up, else think."
)
@click.option("--speed", type=float, metavar="X", help="2 replays twice as fast as recorded.")
@click.option("--depth", type=int, metavar="N", help="Requests under way in --mode closed.")
@click.option("--max-iops", type=int, metavar="N", help="Requests a second the host gets through.")
@click.option("--max-bandwidth", metavar="RATE", help="Bytes a second it gets through: 300MB/s.")
@click.option("--host-overhead", metavar="TIME", help="What it adds to each request: 20us.")
@set_option
@click.option(
    "--seed", type=click.IntRange(0), metavar="N", help="Of what is drawn: machine and made load."
)
@seeds_option
@format_option("format_", "The trace's format, where it cannot be told.")
@click.option("--device", metavar="MAJ,MIN", help=DEVICE_HELP)
@click.option(
    "--use-dispatch", is_flag=True, help="Replay what was issued to the device, after merging."
)
@click.option(
    "--warm-start",
    metavar="FILE",
    help="Begin with the pages that an earlier trace says are worth it, or those of a saved cache, "
    "loaded from the disks while they are idle.",
)
@click.option("--ssd-kept", is_flag=True, help="The SSD still has the pages of the saved cache.")
@click.option(
    "--save-cache",
    metavar="FILE",
    help="Save what the cache holds at the end, and what a learned policy knows then.",
)
@require_option
@click.option(
    "--goal",
    type=click.Choice(GOALS),
    default="time",
    help="What the cache must lower to be worth it: the time that the application would save "
    "(time), latency, p99, the time that the work takes (throughput), or the disks' busy time.",
)
@click.option(
    "--json",
    "json_file",
    metavar="FILE",
    help="Write the result as JSON too; - for standard output alone.",
)
@html_option
def replay(
    trace: tuple[str, ...],
    scenario_file: str | None,
    format_: str | None,
    device: str | None,
    use_dispatch: bool,
    settings: tuple[str, ...],
    seed: int | None,
    seeds: int | None,
    warm_start: str | None,
    ssd_kept: bool,
    save_cache: str | None,
    require: tuple[str, ...],
    goal: str,
    json_file: str | None,
    html_file: str | None,
    **options: Any,
) -> None:
    """Replay a captured TRACE with an SSD cache and without, and say whether the cache pays.

    TRACE is a blktrace capture (any of its files, their prefix or directory, or - for a stream), or
    any other trace that `trace info` knows, compressed or not; or a workload to make (gen:...).

    Without a scenario the machine is: RAID-5 of four 7,200 rpm disks just large enough for the
    trace, and a write-through cache of 10% of what the trace touches, on a data-centre SSD.
    """
    from hybridsim.answers.requirements import parse_all
    from hybridsim.cli.running import run
    from hybridsim.studies.warm_start import opened
    from hybridsim.traces.trace import Trace

    required = parse_all(require)
    site = machine(scenario_file, settings, seed=seed, **options)
    if options["depth"] is not None and site.replay.mode != "closed":
        raise UsageError("--depth is of a replay at a queue depth: say --mode closed too")
    if ssd_kept and not warm_start:
        raise UsageError("--ssd-kept says how to begin with a saved cache: give it by --warm-start")
    load = Trace.read(trace, format_, device, use_dispatch)
    run(
        load if seed is None else load.seeded(seed),
        site,
        json_file,
        html_file,
        warm_start=opened(warm_start, device) if warm_start else None,
        ssd_kept=ssd_kept,
        save_cache=save_cache,
        require=required,
        goal=goal,
        seeds=seeds,
    )
