"""`hybridsim bench`: sequential and random, cold and hot I/O of a simulated machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from hybridsim.caches import CACHES
from hybridsim.cli import arguments as args
from hybridsim.cli.running import Line, progress_of_jobs, write_answer
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_size

if TYPE_CHECKING:
    from hybridsim.studies.bench import Bench


def depths_of(text: str) -> list[int]:
    """Return the queue depths of --depths: '1-512' doubles from 1, '1,32' is a list."""
    if not re.fullmatch(r"\d+(-\d+|(,\d+)*)", text):
        raise UsageError(f"--depths {text}: specify a range (1-512) or a list (1,8,32)")
    if "-" not in text:
        depths = [int(each) for each in text.split(",")]
    else:
        first, last = map(int, text.split("-"))
        depths = [first << power for power in range(20) if first << power <= last]
    if not depths or not 1 <= min(depths) <= max(depths) <= 65_536:
        raise UsageError(
            f"--depths {text}: queue depths must be from 1 to 65536, the smaller first"
        )
    return depths


@args.command("hybridsim bench --preset digitalocean-volume --depths 1-4 --requests 200")
def bench(
    site: args.Scenario = args.machine_options(
        [*CACHES, "none"], scenario=args.argument("[SITE.toml]", required=False)
    ),
    depths: list[int] = args.option(
        "--depths N-M|N,...",
        "Queue depths: doubling from N to M, or a list.",
        "1-512",
        parse=depths_of,
    ),
    hot: int | None = args.option(
        "--hot SIZE", "Size of the hot spot; default: half of the cache.", parse=parse_size
    ),
    bs: int = args.option("--bs SIZE", "Size of random requests.", "4KiB", parse=parse_size),
    seq_bs: int = args.option(
        "--seq-bs SIZE", "Size of sequential requests.", "1MiB", parse=parse_size
    ),
    requests: int = args.option(
        "--requests N",
        "Requests per measurement; sequential ones take a tenth of it.",
        10_000,
        type=click.IntRange(10),
    ),
    seeds: int | None = args.seeds_option,
    out: args.Outputs = args.outputs("json", "html"),
) -> None:
    """Measure five I/O parameters of a machine: without a cache, with an empty and a warm cache.

    The machine is that of a scenario (`hybridsim bench site.toml`), or the default one.  The
    parameters are sequential write and read, random write, cold random read (of data not yet
    cached) and hot random read (of a hot spot), each at several queue depths.  Figures that are
    not steady are marked.
    """
    from hybridsim.show.bench import text
    from hybridsim.studies.bench import bench as measure
    from hybridsim.studies.bench import over_seeds

    if hot == 0:
        raise UsageError("--hot must be greater than 0 (default: half of the cache)")
    with progress_of_jobs(line := Line()) as progress:

        def once(site: args.Scenario, randseed: int | None) -> Bench:
            return measure(site, depths, hot, bs, seq_bs, requests, randseed, line.stage, progress)

        results = over_seeds(site, seeds, once) if seeds else once(site, None)
    write_answer(results, text, out)
