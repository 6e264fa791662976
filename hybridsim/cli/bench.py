"""`hybridsim bench`: what do sequential and random, cold and hot give on this machine?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from hybridsim.cli.machine_options import html_option, json_option, machine, seeds_option
from hybridsim.cli.trace_arguments import examples
from hybridsim.foundation.errors import UsageError

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario
    from hybridsim.studies.bench import Bench


@click.command(
    epilog=examples(
        "hybridsim bench --preset digitalocean-volume --depths 1-4 --requests 200",
    )
)
@click.argument("scenario_file", metavar="[SITE.toml]", required=False)
@click.option("--preset", metavar="NAME", help="Begin from a system of the catalog.")
@click.option(
    "--depths",
    default="1-512",
    show_default=True,
    metavar="N-M|N,...",
    help="Queue depths: doubling from N to M, or these.",
)
@click.option("--hot", metavar="SIZE", help="The hot spot; half of the cache by default.")
@click.option("--bs", default="4KiB", show_default=True, metavar="SIZE", help="Of random requests.")
@click.option(
    "--seq-bs", default="1MiB", show_default=True, metavar="SIZE", help="Of sequential requests."
)
@click.option(
    "--requests", type=click.IntRange(10), default=10_000, show_default=True, metavar="N",
    help="Of each measurement; a tenth of it where sequential.",
)  # fmt: skip
@seeds_option
@json_option
@html_option
def bench(
    scenario_file: str | None,
    preset: str | None,
    depths: str,
    hot: str | None,
    bs: str,
    seq_bs: str,
    requests: int,
    seeds: int | None,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Measure the five I/O parameters of a machine: without its cache, with an empty one, warm.

    The machine is that of a scenario (`hybridsim bench site.toml`), or the default one.
    Sequential write and read, random write, cold random read (of what no cache has yet) and hot
    random read (of a hot spot), at doubling queue depths.  A number that is not steady is marked.
    """
    from hybridsim.cli.running import check_folder, progress_of_jobs, stages, write_answer
    from hybridsim.show.bench import text
    from hybridsim.studies.bench import bench as measure
    from hybridsim.studies.bench_seeds import over_seeds

    sizes = {"--hot": hot, "--bs": bs, "--seq-bs": seq_bs}
    hot_bytes, block_bytes, sequential_bytes = (_size(*each) for each in sizes.items())
    if hot and not hot_bytes:
        raise UsageError("--hot: a hot spot of nothing is none: leave it out for half of the cache")
    check_folder(json_file)
    check_folder(html_file)
    site = machine(scenario_file, preset=preset)
    chosen = depths_of(depths)
    with progress_of_jobs() as tell:

        def once(site: Scenario, randseed: int | None) -> Bench:
            return measure(
                site, chosen, hot_bytes or None, block_bytes, sequential_bytes, requests,
                randseed, stages(), tell,
            )  # fmt: skip

        found = over_seeds(site, seeds, once) if seeds else once(site, None)
    write_answer(found, text, json_file, html_file)


def depths_of(said: str) -> list[int]:
    """Return queue depths: '1-512' doubles, '1,32' is what it says."""
    if not re.fullmatch(r"\d+(-\d+|(,\d+)*)", said):
        raise UsageError(f"--depths {said}: write for instance 1-512, or 1,8,32")
    if "-" not in said:
        found = [int(each) for each in said.split(",")]
    else:
        first, last = map(int, said.split("-"))
        found = [first << power for power in range(20) if first << power <= last]
    if not found or not 1 <= min(found) <= max(found) <= 65_536:
        raise UsageError(f"--depths {said}: queue depths are from 1 to 65536, the smaller first")
    return found


def _size(option: str, said: str | None) -> int:
    """Return a size in bytes, 0 where nothing is said."""
    from hybridsim.foundation.units import parse_size

    try:
        return parse_size(said or 0)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
