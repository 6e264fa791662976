"""`hybridsim completion`: shell completion of commands, options and their values.

Click completes commands, options and choices.  A parameter in VALUES is completed from its list;
any other argument, and an option with a FILE or DIR, with file names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from hybridsim.caches.policies import ADMISSION, OFFLINE, REPLACEMENT
from hybridsim.cli.arguments import argument, command
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.explain import TERMS
from hybridsim.show import schemas
from hybridsim.storage import catalog
from hybridsim.traces.formats import FORMATS
from hybridsim.workloads import KINDS

VARIABLE = "_HYBRIDSIM_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
# By parameter name, preceded by the command's name if the parameter name is ambiguous.
VALUES: dict[str, Iterable[str]] = {
    "preset": catalog.systems(),
    "format": FORMATS,
    "admission": ADMISSION,
    "replacement": [*REPLACEMENT, *OFFLINE],
    "policy": [*REPLACEMENT, *OFFLINE],
    "catalog kind": catalog.KINDS,
    "show name": [*catalog.names(), *catalog.systems()],
    "explain term": TERMS,
    "schema name": schemas.names(),
    "gen workload": KINDS,
}
Completing = Callable[[click.Context, str], list[CompletionItem]]


@command("hybridsim completion bash", "hybridsim completion fish > hybridsim.fish")
def completion(shell: str = argument(type=click.Choice(SHELLS))) -> None:
    """Print a script that makes SHELL complete commands, options and their values.

    \b
    bash: eval "$(hybridsim completion bash)" in ~/.bashrc
    zsh:  eval "$(hybridsim completion zsh)" in ~/.zshrc, after compinit
    fish: hybridsim completion fish > ~/.config/fish/completions/hybridsim.fish
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise UsageError(
            f"the installed click has no completion for {shell}: update it (pip install -U click)"
        )
    program = click.get_current_context().find_root().command
    click.echo(completion_class(program, {}, "hybridsim", VARIABLE).source())


def with_values(one: click.Command) -> click.Command:
    """Add the completion of VALUES and file names to the parameters of a command; return it."""
    if isinstance(one, click.Group):
        for each in one.commands.values():
            with_values(each)
    for parameter in one.params:
        if not isinstance(parameter.type, click.Choice):
            complete = _values(one, parameter)
            if complete:
                setattr(parameter, "shell_complete", complete)  # noqa: B010  mypy: a method
    return one


def _values(one: click.Command, parameter: click.Parameter) -> Completing | None:
    for name in (f"{one.name} {parameter.name}", str(parameter.name)):
        if name in VALUES:
            return lambda ctx, incomplete: _beginning(incomplete, VALUES[name])
    if isinstance(parameter, click.Argument) or parameter.metavar in ("FILE", "DIR"):
        return lambda ctx, incomplete: [CompletionItem(incomplete, type="file")]
    return None


def _beginning(incomplete: str, values: Iterable[str]) -> list[CompletionItem]:
    """Return the values that complete the last item of a comma-separated list."""
    others, comma, last = incomplete.rpartition(",")
    return [CompletionItem(others + comma + each) for each in values if each.startswith(last)]
