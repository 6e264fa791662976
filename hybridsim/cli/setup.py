"""`hybridsim setup`: the commands that build a simulated cache on a real machine."""

from __future__ import annotations

import sys
from typing import Any

import click

from hybridsim.caches import CACHES
from hybridsim.cli import arguments as args
from hybridsim.cli.running import write_answer
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_percent, parse_time

SYSTEMS = ("debian12", "debian13", "ubuntu24.04", "rhel9", "rhel10")
OF_MACHINE = ("cache", "cache_mode", "cache_size", "scenario_file", "preset", "settings")
PARTS = ("check", "build", "install", "verify", "monitor", "remove")


@args.command(
    "hybridsim setup --cache dm-cache --cache-mode write-back --cache-size 100GiB",
    "hybridsim setup --cache bcache --cache-size 64GiB --slow /dev/sdb --fast /dev/nvme0n1",
    "hybridsim setup --cache dm-cache --cache-size 1GiB --slow vg/data --script install",
    "hybridsim setup --cache open-cas --cache-size 64GiB --from-source --json setup.json",
)
def setup(
    result: str | None = args.argument("[RESULT.json]", required=False),
    site: args.Scenario = args.machine_options(
        CACHES, cache_size=args.option("--cache-size SIZE", "Size of the cache: 64GiB.")
    ),
    slow: str | None = args.option(
        "--slow DEVICE",
        "The disk or array to cache, or for dm-cache and dm-writecache an existing LVM volume "
        "as VG/LV, whose data stay.  Only printed, never opened.",
    ),
    fast: tuple[str, ...] = args.option(
        "--fast DEVICE",
        "The SSD.  Repeatable: as many as were simulated, or twice as many for a mirror.",
        multiple=True,
    ),
    distribution: str = args.option(
        "--distribution",
        "The system that the cache is built on.",
        "debian12",
        type=click.Choice(SYSTEMS),
    ),
    from_source: bool = args.flag("--from-source", "Open CAS: print how it is built, too."),
    prices: str | None = args.option(
        "--prices FILE",
        "Price list to choose the SSDs from: CSV with name,capacity,price,endurance.",
    ),
    duty: int = args.option(
        "--duty TIME",
        "How long the load runs each day, for the life of the SSDs.",
        "24h",
        parse=parse_time,
    ),
    spare: Any = args.option(
        "--spare SHARE",
        "Share of each SSD to leave unpartitioned (over-provisioning).",
        "0%",
        parse=parse_percent,
    ),
    section: str | None = args.option(
        "--script",
        "Print only this section, as a shell script.",
        type=click.Choice(PARTS),
    ),
    out: args.Outputs = args.outputs("json"),
) -> None:
    """Print the commands that build the simulated cache on a real machine; run none of them.

    RESULT.json is what `hybridsim advise`, `hybridsim size` or `hybridsim replay` wrote with
    --json: its cache is built, with the settings that were simulated.  Without it, the options
    describe the cache.

    Printed are the checks beforehand, the installation, how to read the state back and how to go
    back, with the RAM that the metadata take and how long a flush takes (where RESULT.json has it).
    Lines with a command begin with #, so that a shell ignores them: --script prints a section that
    a shell runs.
    """

    from hybridsim.answers.setup.plan import SLOW, Site
    from hybridsim.show.setup import text
    from hybridsim.studies.setup import setup as ask

    context = click.get_current_context()
    over = [
        each.opts[0]
        for each in context.command.params
        if each.name in OF_MACHINE and context.params[each.name]
    ]
    if result and over:
        raise UsageError(
            f"{over[0]} with a RESULT.json: the settings are those that were simulated; specify "
            "one or the other"
        )
    if not result and not {"--cache", "--scenario", "--preset", "--set"}.intersection(over):
        raise UsageError("specify a RESULT.json, or the cache: --cache bcache --cache-size 64GiB")
    places = Site(slow or SLOW, fast, distribution, from_source)
    answer = ask(None if result else site, result, places, prices, duty, float(spare))
    if section:
        sys.stdout.write(answer.plan.section(section).script())
        return
    write_answer(answer, text, out)
