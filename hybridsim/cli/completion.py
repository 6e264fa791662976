"""`hybridsim completion`: what a shell is told to complete commands, options and their values.

Commands, options and choices are completed by click.  A parameter of VALUES takes one of these; any
other argument, and an option whose value is a FILE or DIR, takes what is in the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from hybridsim.caches.policies import ADMISSION, KNOWS_THE_FUTURE, REPLACEMENT
from hybridsim.cli.trace_arguments import examples
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.explain import TERMS
from hybridsim.show import schemas
from hybridsim.storage import catalog
from hybridsim.traces.formats import FORMATS
from hybridsim.workloads import KINDS

VARIABLE = "_HYBRIDSIM_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
# By name of the parameter; where the same name means several things, after that of its command.
VALUES: dict[str, Iterable[str]] = {
    "preset": catalog.systems(),
    "format": FORMATS,
    "format_": FORMATS,
    "admission": ADMISSION,
    "replacement": [*REPLACEMENT, *KNOWS_THE_FUTURE],
    "policy": [*REPLACEMENT, *KNOWS_THE_FUTURE],
    "catalog kind": catalog.KINDS,
    "show name": [*catalog.names(), *catalog.systems()],
    "explain term": TERMS,
    "schema name": schemas.names(),
    "gen workload": KINDS,
}
Completing = Callable[[click.Context, str], list[CompletionItem]]


@click.command(
    epilog=examples(
        "hybridsim completion bash",
        "hybridsim completion fish > hybridsim.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands, options and their values.

    \b
    bash: eval "$(hybridsim completion bash)" in ~/.bashrc
    zsh:  eval "$(hybridsim completion zsh)" in ~/.zshrc, after compinit
    fish: hybridsim completion fish > ~/.config/fish/completions/hybridsim.fish
    """
    known = get_completion_class(shell)
    if known is None:
        raise UsageError(f"this version of click has no completion for {shell}")
    click.echo(known(ctx.find_root().command, {}, "hybridsim", VARIABLE).source())


def teach(command: click.Command) -> click.Command:
    """Return a command whose parameters know what their values can be."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            teach(each)
    for parameter in command.params:
        if not isinstance(parameter.type, click.Choice):
            found = _values(command, parameter)
            if found:
                setattr(parameter, "shell_complete", found)  # noqa: B010  a method, to mypy
    return command


def _values(command: click.Command, parameter: click.Parameter) -> Completing | None:
    for name in (f"{command.name} {parameter.name}", str(parameter.name)):
        if name in VALUES:
            return lambda ctx, incomplete: _beginning(incomplete, VALUES[name])
    if isinstance(parameter, click.Argument) or parameter.metavar in ("FILE", "DIR"):
        return lambda ctx, incomplete: [CompletionItem(incomplete, type="file")]
    return None


def _beginning(incomplete: str, values: Iterable[str]) -> list[CompletionItem]:
    """Return the values that go on as the last one of a list, divided by commas, begins."""
    others, comma, last = incomplete.rpartition(",")
    return [CompletionItem(others + comma + each) for each in values if each.startswith(last)]
