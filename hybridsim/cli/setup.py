"""`hybridsim setup`: the commands that build a simulated cache on a real machine."""

from __future__ import annotations

import click

from hybridsim.caches import CACHES
from hybridsim.cli.machine_options import (
    cache_mode_option,
    cache_option,
    json_option,
    machine,
    machine_options,
    set_option,
)
from hybridsim.cli.trace_arguments import examples
from hybridsim.foundation.errors import UsageError

SYSTEMS = ("debian12", "debian13", "ubuntu24.04", "rhel9", "rhel10")
PARTS = ("check", "build", "install", "verify", "monitor", "remove")


@click.command(
    epilog=examples(
        "hybridsim setup --cache dm-cache --cache-mode write-back --cache-size 100GiB",
        "hybridsim setup --cache bcache --cache-size 64GiB --slow /dev/sdb --fast /dev/nvme0n1",
        "hybridsim setup --cache dm-cache --cache-size 1GiB --slow vg/data --script install",
        "hybridsim setup --cache open-cas --cache-size 64GiB --from-source --json setup.json",
    )
)
@click.argument("result", required=False, metavar="[RESULT.json]")
@machine_options
@cache_option(CACHES)
@cache_mode_option
@click.option("--cache-size", metavar="SIZE", help="Size of the cache: 64GiB.")
@set_option
@click.option(
    "--slow",
    metavar="DEVICE",
    help="The disk or array to cache, or for dm-cache and dm-writecache an existing LVM volume "
    "as VG/LV, whose data stay.  Only printed, never opened.",
)
@click.option(
    "--fast",
    multiple=True,
    metavar="DEVICE",
    help="The SSD.  Repeatable: as many as were simulated, or twice as many for a mirror.",
)
@click.option(
    "--distribution",
    type=click.Choice(SYSTEMS),
    default="debian12",
    show_default=True,
    help="The system that the cache is built on.",
)
@click.option("--from-source", is_flag=True, help="Open CAS: print how it is built, too.")
@click.option(
    "--prices",
    metavar="FILE",
    help="Price list to choose the SSDs from: CSV with name,capacity,price,endurance.",
)
@click.option(
    "--duty",
    metavar="TIME",
    default="24h",
    show_default=True,
    help="How long the load runs each day, for the life of the SSDs.",
)
@click.option(
    "--spare",
    metavar="SHARE",
    default="0%",
    show_default=True,
    help="Share of each SSD to leave unpartitioned (over-provisioning).",
)
@click.option(
    "--script",
    "section",
    type=click.Choice(PARTS),
    help="Print only this section, as a shell script.",
)
@json_option
def setup(
    result: str | None,
    scenario_file: str | None,
    preset: str | None,
    cache: str | None,
    cache_mode: str | None,
    cache_size: str | None,
    settings: tuple[str, ...],
    slow: str | None,
    fast: tuple[str, ...],
    distribution: str,
    from_source: bool,
    prices: str | None,
    duty: str,
    spare: str,
    section: str | None,
    json_file: str | None,
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
    import sys

    from hybridsim.answers.setup import Site
    from hybridsim.answers.setup.plan import SLOW
    from hybridsim.cli.running import check_folder, write_answer
    from hybridsim.foundation.units import parse_percent, parse_time
    from hybridsim.show.setup import text
    from hybridsim.studies.setup import setup as ask

    given = {"--cache": cache, "--cache-mode": cache_mode, "--cache-size": cache_size,
             "--scenario": scenario_file, "--preset": preset, "--set": settings}  # fmt: skip
    over = [name for name, value in given.items() if value]
    if result and over:
        raise UsageError(
            f"{over[0]} with a RESULT.json: the settings are those that were simulated; specify "
            "one or the other"
        )
    if not (result or cache or scenario_file or preset or settings):
        raise UsageError("specify a RESULT.json, or the cache: --cache bcache --cache-size 64GiB")
    check_folder(json_file)
    site = machine(
        scenario_file, settings, preset=preset, cache=cache, cache_mode=cache_mode,
        cache_size=cache_size,
    )  # fmt: skip
    places = Site(slow or SLOW, fast, distribution, from_source)
    try:
        duty_ns, share = parse_time(duty), float(parse_percent(spare))
    except ValueError as error:
        raise UsageError(f"--duty or --spare: {error}") from None
    answer = ask(None if result else site, result, places, prices, duty_ns, share)
    if section:
        sys.stdout.write(answer.plan.section(section).script())
        return
    write_answer(answer, text, json_file)
