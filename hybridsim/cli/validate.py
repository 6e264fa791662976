"""`hybridsim validate`: calls the package `validate` of the repository."""

from __future__ import annotations

import importlib
import importlib.util

import click

from hybridsim.cli.arguments import examples
from hybridsim.foundation.errors import UsageError

PACKAGE = "validate.experiment"  # a module of it: another package may also be named validate
NOT_HERE = (
    "validate is not part of the installed package, only of a clone of the repository. There, run\n"
    "`pip install -e .`, or `python3 -m validate` (build, attach and clean need no packages)"
)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
    epilog=examples(
        "hybridsim validate build --help",
        "sudo hybridsim validate build hot.toml --slow /hdd/s.img --fast /ssd/f.img -o results/hot",
    ),
)
@click.pass_context
def validate(ctx: click.Context) -> int:
    """Compare the simulation with a real kernel cache: build, attach, lab, report."""
    try:
        package = importlib.util.find_spec(PACKAGE)
    except ModuleNotFoundError:
        package = None
    words = ctx.args or ["--help"]
    if package is None and words[0] in ctx.help_option_names:
        click.echo(f"{ctx.get_help()}\n\n{NOT_HERE}")
        return 0
    if package is None:
        raise UsageError(NOT_HERE)
    code: int = importlib.import_module("validate.cli").main(words)
    return code
