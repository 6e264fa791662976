"""What a process finds when it starts: streams that may be closed, signals that may come."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

from hybridsim.show.screen import Terminal

ENDING = (signal.SIGTERM, signal.SIGHUP)  # Python itself makes KeyboardInterrupt of SIGINT


def prepare_streams() -> None:
    """Have all three standard streams; what their encoding lacks or steers them, is an escape.

    A file that is opened later would else get the number of a closed one, and what is printed.
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


def let_go_of_streams() -> None:
    """Forget what cannot be written: Python tries again at its end, and then says 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def heed_signals() -> None:
    """Let signals end the process in order, so that nothing half done is left behind."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # not under nohup
            signal.signal(number, _end)


def _end(number: int, _: Any) -> None:
    sys.exit(128 + number)
