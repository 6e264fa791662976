"""Prepare the process: standard streams that may be closed, and signals."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

from hybridsim.show.screen import Terminal

ENDING = (signal.SIGTERM, signal.SIGHUP)  # for SIGINT Python raises KeyboardInterrupt


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
