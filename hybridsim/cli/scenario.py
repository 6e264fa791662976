"""`hybridsim scenario`: show or check the machine that a scenario describes."""

from __future__ import annotations

import click

from hybridsim.cli.arguments import PRESET_HELP
from hybridsim.cli.option import examples, option

SHOW_EXAMPLES = examples(
    "hybridsim scenario show",
    "hybridsim scenario show > site.toml",
    "hybridsim scenario show site.toml",
    "hybridsim scenario show --preset digitalocean-volume",
)
CHECK_EXAMPLES = examples(
    "hybridsim scenario check site.toml",
)


@click.group(epilog=SHOW_EXAMPLES)
def scenario() -> None:
    """Show or check the machine that a scenario describes."""


@scenario.command(epilog=SHOW_EXAMPLES)
@click.argument("file", required=False)
@option("--preset NAME", PRESET_HELP)
def show(file: str | None, preset: str | None) -> None:
    """Print a scenario with all defaults, and the source of each value.

    Without FILE, print the default scenario, as a file to start from.
    """
    from hybridsim.scenario import Scenario

    shown = Scenario.load(file) if file else Scenario.default()
    shown = shown.with_options(preset=preset)
    click.echo(shown.to_toml(), nl=False)


@scenario.command(epilog=CHECK_EXAMPLES)
@click.argument("file")
def check(file: str) -> None:
    """Check a scenario file and report all errors in one pass."""
    from hybridsim.scenario import Scenario

    checked = Scenario.load(file)
    backing, cache = checked.backing, checked.cache
    with_it = "no cache"
    if cache.kind != "none":
        with_it = f"cache {cache.size} {cache.write_policy} on {cache.drive.name}"
    tier = f"{backing.members} x {backing.drive.name}, {backing.kind}"
    click.echo(f"{file}: ok ({tier}; {with_it})")
