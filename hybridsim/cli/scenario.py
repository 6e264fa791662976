"""`hybridsim scenario`: show or check the machine that a scenario describes."""

from __future__ import annotations

import click

from hybridsim.cli import arguments as args

SHOWN = (
    "hybridsim scenario show",
    "hybridsim scenario show > site.toml",
    "hybridsim scenario show site.toml",
    "hybridsim scenario show --preset digitalocean-volume",
)


@click.group(epilog=args.examples(*SHOWN))
def scenario() -> None:
    """Show or check the machine that a scenario describes."""


@args.command(*SHOWN, of=scenario.command)
def show(
    file: str | None = args.argument(required=False), preset: str | None = args.preset_option
) -> None:
    """Print a scenario with all defaults, and the source of each value.

    Without FILE, print the default scenario, as a file to start from.
    """
    from hybridsim.scenario import Scenario

    shown = Scenario.load(file) if file else Scenario.default()
    shown = shown.with_options(preset=preset)
    click.echo(shown.to_toml(), nl=False)


@args.command("hybridsim scenario check site.toml", of=scenario.command)
def check(file: str = args.argument()) -> None:
    """Check a scenario file and report all errors in one pass."""
    from hybridsim.scenario import Scenario

    checked = Scenario.load(file)
    cache, with_it = checked.cache, "no cache"
    if cache.kind != "none":
        with_it = f"cache {cache.size} {cache.write_policy} on {cache.drive.name}"
    click.echo(f"{file}: ok ({checked.words[0]}; {with_it})")
