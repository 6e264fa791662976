"""The pages of the commands: what each prints with --help."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hybridsim.cli import COMMANDS, cli

FOLDER = "reference/commands"
COLUMNS = 100


def addresses() -> Iterator[str]:
    """Yield the addresses of the pages, in the order of `hybridsim --help`."""
    yield f"{FOLDER}/index.md"
    for name in COMMANDS:
        yield f"{FOLDER}/{name}.md"


def pages() -> dict[str, str]:
    """Return the pages by address."""
    context = click.Context(cli, info_name="hybridsim", max_content_width=COLUMNS)
    rows = "".join(f"| [{name}]({name}.md) | {line} |\n" for name, line in COMMANDS.items())
    found = {
        f"{FOLDER}/index.md": (
            "# Commands\n\nEach page is what `hybridsim COMMAND --help` prints.\n\n"
            f"| command | |\n|---|---|\n{rows}\n{_block(cli, context)}"
        )
    }
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        found[f"{FOLDER}/{name}.md"] = "\n".join(_sections(command, context, f"hybridsim {name}"))
    return found


def _sections(command: click.Command, above: click.Context, words: str) -> Iterator[str]:
    context = click.Context(command, above, words.split()[-1], max_content_width=COLUMNS)
    level = "#" * min(words.count(" "), 6)
    yield f"{level} {words}\n\n{_block(command, context)}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _sections(below, context, f"{words} {name}")


def _block(command: click.Command, context: click.Context) -> str:
    return f"```text\n{command.get_help(context)}\n```\n"
