"""`hybridsim`: one command a question.  A command's module is imported when it is called."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from typing import Any, NoReturn

import click

from hybridsim.cli.process import heed_signals, let_go_of_streams, prepare_streams
from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.version import __version__

# name: (module, one line of help shown by `hybridsim --help` without importing the module)
COMMANDS = {
    "replay": ("hybridsim.cli.replay", "What would an SSD cache do for a captured trace?"),
    "hits": ("hybridsim.cli.hits", "How many accesses would caches serve?  No devices, no time."),
    "why": ("hybridsim.cli.why", "Why did the learned policy let a page in, or not?"),
    "mrc": ("hybridsim.cli.mrc", "The miss-ratio curve: how large should a cache be?"),
    "advise": ("hybridsim.cli.advise", "Should it be cached at all?  Five questions, and prices."),
    "size": ("hybridsim.cli.size", "How large must the SSD be, to meet what you require?"),
    "sweep": ("hybridsim.cli.sweep", "Which of many machines?  Any keys varied, on all cores."),
    "bench": ("hybridsim.cli.bench", "Sequential, random, cold and hot: what does a machine give?"),
    "fio": ("hybridsim.cli.fio", "What would fio measure here?  Takes its jobs as they are."),
    "compare": ("hybridsim.cli.compare", "Does the model match my machine?"),
    "validate": (
        "hybridsim.cli.validate",
        "Is the model right?  Real fio on a real kernel cache, here or in a guest.",
    ),
    "demo": ("hybridsim.cli.demo", "Replay a real capture that ships with hybridsim."),
    "trace": (
        "hybridsim.cli.trace",
        "Look at a trace, record or make one: info, doctor, head, convert, record, gen, fit.",
    ),
    "fit": ("hybridsim.cli.fit", "Estimate a model of your array or drive from what you measured."),
    "catalog": ("hybridsim.cli.catalog", "List the drives there are to simulate, with sources."),
    "scenario": ("hybridsim.cli.scenario", "Show or check the machine a scenario describes."),
    "explain": ("hybridsim.cli.explain", "What does a printed word or number mean?"),
    "schema": ("hybridsim.cli.schema", "What is in the JSON that --json writes?"),
    "completion": ("hybridsim.cli.completion", "Let bash, zsh or fish complete commands."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return its function of the same name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        if ctx.resilient_parsing:  # for a shell that completes a line
            from hybridsim.cli.completion import teach

            return teach(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; to an unknown one say which was meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}: {hint(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; click would make of a closed pipe exit code 1, which is `compare`'s."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _nobody_reads()
        return code

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from COMMANDS alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  hybridsim demo
  hybridsim replay sda.blktrace.0
  hybridsim trace doctor sda.blktrace.0
""",
)
@click.version_option(__version__, message="hybridsim %(version)s")
@click.option("--debug", is_flag=True, help="Show the Python traceback of an error.")
def cli(debug: bool) -> None:
    """What would an SSD cache do for your disks?  Answers from your own captured I/O."""
    if debug:
        os.environ["HYBRIDSIM_DEBUG"] = "1"


def main() -> None:
    """Run the command line; turn every user error into one message and its exit code."""
    prepare_streams()
    heed_signals()
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        _stop("interrupted", 130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except OSError as error:
        if os.environ.get("HYBRIDSIM_DEBUG"):
            raise
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        _stop(f"error: {f'cannot write: {error.strerror}' if is_full else error}", 2)
    except MemoryError as error:
        _stop(f"error: there is not enough memory: {error}".rstrip(": "), 1)
    except HybridsimError as error:
        if os.environ.get("HYBRIDSIM_DEBUG"):
            raise
        _stop(f"error: {error}", error.exit_code)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _nobody_reads() -> NoReturn:
    """End as a program does that SIGPIPE ended: `hybridsim ... | head -1`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def _stop(message: str, code: int) -> None:
    with contextlib.suppress(OSError):
        print("hybridsim:", printable(message, keep="\n\t"), file=sys.stderr)
    let_go_of_streams()
    sys.exit(code)
