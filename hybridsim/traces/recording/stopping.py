"""Signals that end a recording early: they are noted, so that all can be put back in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_signals() -> Iterator[Event]:
    """Yield an event that is set by the first signal; what signals did before comes back."""
    stop = Event()

    def note(*_: Any) -> None:
        stop.set()

    before = {each: signal.signal(each, note) for each in SIGNALS}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
