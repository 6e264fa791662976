"""The command `hybridsim`: one subcommand per question, imported when it is called."""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import io
import os
import signal
import sys
from typing import Any, NoReturn

import click

from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.version import __version__
from hybridsim.show.screen import Terminal

ENDING = (signal.SIGTERM, signal.SIGHUP)  # for SIGINT Python raises KeyboardInterrupt

# name: one line of help, shown by `hybridsim --help` without importing hybridsim.cli.NAME
COMMANDS = {
    "replay": "What would an SSD cache do for a captured trace?",
    "hits": "Hit ratios of cache sizes and policies, without simulating devices.",
    "why": "Why did the learned policy admit a page, or reject it?",
    "mrc": "The miss-ratio curve: how large should the cache be?",
    "advise": "Is an SSD cache worth buying, and what are the alternatives?",
    "size": "How large must the SSD be to meet your requirements?",
    "bounds": "What could a cache do at best and at worst, from iostat, sar or fio alone?",
    "setup": "Which commands build this cache on a real machine?",
    "check": "Does the running cache keep what was simulated?",
    "sweep": "Simulate many variants of a machine, and rank them.",
    "explore": "What if? A page with sliders: cache, size, SSD, disks, load, price.",
    "bench": "Measure sequential and random, cold and hot I/O of a machine.",
    "fio": "Run fio's job files on a simulated machine.",
    "compare": "Compare a simulated run with a real one.",
    "validate": "Check the model against fio on a real kernel cache, on this host or in a VM.",
    "demo": "Replay a real capture that ships with hybridsim.",
    "trace": "Inspect, convert, record or generate a trace.",
    "watch": "Hit ratios of caches that are simulated beside a running disk.",
    "serve": "A cache on a real SSD, as a block device over NBD.",
    "fit": "Estimate a model of your array or drive from a measurement.",
    "catalog": "List the drives that can be simulated, with sources.",
    "scenario": "Show or check the machine that a scenario describes.",
    "explain": "Explain a word or figure of a report.",
    "schema": "Print the JSON Schema of what --json writes.",
    "completion": "Set up completion for bash, zsh or fish.",
}


class LazyGroup(click.Group):
    """A command group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return its function of the same name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(
            importlib.import_module(f"{__name__}.{cmd_name}"), cmd_name
        )
        if ctx.resilient_parsing:  # for a shell that completes a line
            from hybridsim.cli.completion import with_values

            return with_values(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, suggest the nearest name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}: {hint(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed pipe ends it with code 141, where click would exit with 1."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _exit_as_by_sigpipe()
        return code

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from COMMANDS alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExamples:\n  hybridsim demo\n  hybridsim replay sda.blktrace.0\n"
    "  hybridsim trace doctor sda.blktrace.0",
)
@click.version_option(__version__, message="hybridsim %(version)s")
@click.option("--debug", is_flag=True, help="Show the Python traceback of an error.")
def cli(debug: bool) -> None:
    """Simulate SSD caches for your disks, from your own captured I/O."""
    if debug:
        os.environ["HYBRIDSIM_DEBUG"] = "1"


def main() -> None:
    """Run the command line; turn every user error into one message and its exit code."""
    # Most objects of a command are modules and classes, which live to its end: looking through them
    # for garbage each 700 objects is a twelfth of a short command's time.
    gc.set_threshold(50_000)
    # Before NumPy is imported.  Threads of its linear algebra spin while they wait for each other:
    # beside other work the small matrices of `explore` took forty times the CPU time of one thread.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    prepare_streams()
    handle_signals()
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
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
    except AssertionError as error:
        if os.environ.get("HYBRIDSIM_DEBUG"):
            raise
        _stop(f"fault of a model (hybridsim --debug ... shows where): {error}", 1)
    except MemoryError as error:
        _stop(f"error: not enough memory: {error}".rstrip(": "), 1)
    except HybridsimError as error:
        if os.environ.get("HYBRIDSIM_DEBUG"):
            raise
        _stop(f"error: {error}", error.exit_code)
    except (KeyboardInterrupt, click.exceptions.Abort):
        _stop("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _exit_as_by_sigpipe() -> NoReturn:
    """Exit as a program that SIGPIPE ended, as in `hybridsim ... | head -1`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def _stop(message: str, code: int) -> None:
    with contextlib.suppress(OSError):
        print("hybridsim:", printable(message, keep="\n\t"), file=sys.stderr)
    release_streams()
    sys.exit(code)


# The process: standard streams that may be closed, and signals.


def prepare_streams() -> None:
    """Open missing standard streams, and make all escape characters that they cannot show.

    Otherwise a file opened later would get the descriptor of a closed stream, and its output.
    Control characters are escaped too.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    if getattr(sys.stdout, "errors", "") == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            setattr(sys, name, Terminal.of(stream))


def release_streams() -> None:
    """Discard unwritable output: Python would try again at exit, and then exit with code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def handle_signals() -> None:
    """On SIGTERM and SIGHUP, exit in order, so that no partial files remain."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # not under nohup
            signal.signal(number, _end)


def _end(number: int, _: Any) -> None:
    sys.exit(128 + number)
