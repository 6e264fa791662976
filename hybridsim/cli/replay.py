"""`hybridsim replay`: what would this cache do for the I/O I captured?"""

from __future__ import annotations

from typing import Any

import click

from hybridsim.answers.goals import GOALS
from hybridsim.caches.policies import ADMISSION, REPLACEMENT
from hybridsim.cli import arguments as args
from hybridsim.cli.running import estimated, refuse, run, show_so_far
from hybridsim.foundation.errors import UsageError


@args.command(
    "hybridsim replay sda.blktrace.0",
    "hybridsim replay sda.blktrace.0 --cache-size 64GiB --mode think",
    "hybridsim replay sda.blktrace.0 --scenario site.toml --json result.json --html report.html",
    "hybridsim replay sda.blktrace.0 --preset digitalocean-volume --cache page",
    "hybridsim replay sda.blktrace.0 --require 'mean<1s' --require 'warmup<1h'",
    "hybridsim replay sda.blktrace.0 --cache dm-cache --event at=500ms,reboot=unclean",
    "hybridsim replay sda.blktrace.0 --save-cache state.npz",
    "hybridsim replay sda.blktrace.0 --warm-start yesterday.blktrace.0",
    "blktrace -d /dev/sda -w 600 -o - | hybridsim replay -",
)
def replay(
    trace: tuple[str, ...] = args.argument(nargs=-1, required=True),
    options: dict[str, Any] = args.joined(
        dict,
        scenario_file=args.scenario_option(),
        cache=args.cache_option(),
        cache_size=args.option(
            "--cache-size SIZE",
            "Size of the cache: 64GiB, or 10% of the data that the trace touches.",
        ),
        cache_members=args.option("--cache-members N", "Number of SSDs in the cache.", type=int),
        cache_page=args.option("--cache-page SIZE", "Size of a cache page; default: 64KiB."),
        cache_mode=args.cache_mode_option,
        admission=args.option(
            "--admission",
            "Admission policy: which pages enter the cache.",
            type=click.Choice(list(ADMISSION)),
        ),
        replacement=args.option(
            "--replacement",
            "Replacement policy: which page is evicted.",
            type=click.Choice(list(REPLACEMENT)),
        ),
        preset=args.preset_option,
        backing=args.option(
            "--backing",
            "Array type of the disks.",
            type=click.Choice(["single", "linear", "raid0", "raid1", "raid5", "raid6", "raid10"]),
        ),
        members=args.option("--members N", "Number of disks in the array.", type=int),
        mode=args.mode_option(
            "at their recorded times (open), at a fixed queue depth (closed), after their recorded "
            "think times (think); auto: open if the disks without a cache can keep up, else think."
        ),
        speed=args.option(
            "--speed X", "Divide the recorded times by X: 2 is twice as fast.", type=float
        ),
        depth=args.option(
            "--depth N", "Queue depth: requests outstanding, with --mode closed.", type=int
        ),
        max_iops=args.option("--max-iops N", "Maximum IOPS of the host.", type=int),
        max_bandwidth=args.option(
            "--max-bandwidth RATE", "Maximum throughput of the host: 300MB/s."
        ),
        host_overhead=args.option(
            "--host-overhead TIME", "Time that the host adds to each request: 20us."
        ),
        events=args.option(
            "--event EVENT",
            "What happens to the machine: at=TIME with reboot=clean, reboot=unclean (and "
            "down=TIME), detach (write back, then remove the cache), ssd=dies, disk=fails or "
            "rebuild (and member=N), backup=RATE.  Repeatable.",
            multiple=True,
        ),
        settings=args.set_option,
    ),
    seed: int | None = args.option(
        "--seed N",
        "Random seed of the machine and of a generated workload.",
        type=click.IntRange(0),
    ),
    seeds: int | None = args.seeds_option,
    format: str | None = args.format_option(
        "Format of the trace, if it is not detected: see `hybridsim trace info --help`."
    ),
    device: str | None = args.device_option,
    use_dispatch: bool = args.flag(
        "--use-dispatch",
        "Replay the requests as issued to the device, after merging and scheduling.",
    ),
    warm_start: str | None = args.option(
        "--warm-start FILE",
        "Load pages into the cache while the disks are idle: the most valuable pages of an "
        "earlier trace, or the pages of a saved cache (--save-cache).",
    ),
    ssd_kept: bool = args.flag(
        "--ssd-kept",
        "With --warm-start of a saved cache: its pages are still on the SSD, none is loaded.",
    ),
    save_cache: str | None = args.option(
        "--save-cache FILE",
        "Save the list of cached pages at the end, and the state of a learned policy.",
    ),
    require: tuple[str, ...] = args.require_option,
    goal: str = args.option(
        "--goal",
        "Figure that decides the verdict: time (that the application saves), latency (mean), p99, "
        "throughput (duration of the work) or disk-time (busy time of the disks).",
        "time",
        show_default=False,
        type=click.Choice(GOALS),
    ),
    out: args.Outputs = args.outputs("json too", "html", "details"),
) -> None:
    """Replay a captured TRACE with an SSD cache and without, and report the difference.

    TRACE is a blktrace capture (any of its files, their prefix or directory, or - for a stream), a
    trace of any other supported format, compressed or not, or a workload to generate (gen:...).

    The default machine is a RAID-5 of four 7,200 rpm disks just large enough for the trace, with
    a write-through cache of 10% of the data that the trace touches, on a data-centre SSD.

    While a stream has not ended, the verdict on what has arrived is printed now and then, to
    standard error.

    Of a thinned capture (weeks) the minutes kept in full are replayed, each with the cache filled
    as the sample says, and weighted to figures of all of it, with errors.
    """
    from hybridsim.answers.requirements import parse_all
    from hybridsim.scenario.event import read_all
    from hybridsim.studies.replay import SoFar
    from hybridsim.studies.warm_start import opened
    from hybridsim.traces.trace import Trace

    required = parse_all(require)
    events = options.pop("events")
    site = args.machine(has_life=True, seed=seed, **options)
    if events:
        site = site.with_events(read_all(events))
    if options["depth"] is not None and site.replay.mode != "closed":
        raise UsageError("--depth requires --mode closed")
    if ssd_kept and not warm_start:
        raise UsageError("--ssd-kept requires a saved cache: --warm-start FILE")
    load = Trace.read(trace, format, device, use_dispatch, SoFar(site, goal, show_so_far))
    if load.sample is not None:
        from hybridsim.studies.estimate.estimate import replay_sample

        refuse(load, events=events, warm_start=warm_start, save_cache=save_cache, seeds=seeds,
               html=out.html_file, goal=goal != "time")  # fmt: skip
        estimated(lambda report: replay_sample(load, site, required, report), out)
        return
    run(
        load if seed is None else load.seeded(seed),
        site,
        out,
        warm_start=opened(warm_start, device) if warm_start else None,
        ssd_kept=ssd_kept,
        save_cache=save_cache,
        require=required,
        goal=goal,
        seeds=seeds,
    )
