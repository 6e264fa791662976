"""`hybridsim validate`: handed over to the package of that name, which stands beside this one."""

from __future__ import annotations

import importlib
import importlib.util

import click

from hybridsim.foundation.errors import UsageError

PACKAGE = "validate.experiment"  # not another package that is called validate, too
NOT_HERE = (
    "validate is not in the installed package, only in a clone of the repository: there run\n"
    "`pip install -e .`, or `python3 -m validate` (build, attach and clean need nothing installed)"
)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
    epilog="""\b
Examples:
  hybridsim validate build --help
  sudo hybridsim validate build hot.toml --slow /hdd/s.img --fast /ssd/f.img -o results/hot
""",
)
@click.pass_context
def validate(ctx: click.Context) -> int:
    """Hold the simulation against a real kernel cache: build, attach, lab, report."""
    try:
        found = importlib.util.find_spec(PACKAGE)
    except ModuleNotFoundError:
        found = None
    words = ctx.args or ["--help"]
    if found is None and words[0] in ctx.help_option_names:
        click.echo(f"{ctx.get_help()}\n\n{NOT_HERE}")
        return 0
    if found is None:
        raise UsageError(NOT_HERE)
    code: int = importlib.import_module("validate.cli").main(words)
    return code
