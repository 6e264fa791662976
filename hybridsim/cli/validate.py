"""`hybridsim validate`: handed over to the package of that name, which stands beside this one."""

from __future__ import annotations

import importlib
import importlib.util

import click

from hybridsim.errors import UsageError

PACKAGE = "validate.experiment"  # not another package that is called validate, too


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
    if found is None:
        raise UsageError(
            "validate is part of a clone of the repository, not of an installed package: go there "
            "and run `pip install -e .`, or python3 -m validate"
        )
    words = ctx.args or ["--help"]
    code: int = importlib.import_module("validate.cli").main(words)
    return code
