"""Signals that end a recording early: they are noted, so that all settings can be restored."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_signals() -> Iterator[Event]:
    """Yield an event that the first signal sets; restore the signal handlers at the end."""
    stop = Event()

    def note(*_: Any) -> None:
        stop.set()

    before = {each: signal.signal(each, note) for each in SIGNALS}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
