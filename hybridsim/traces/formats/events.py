"""The events of a block trace that form requests, and their ordering."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


class Action(IntEnum):
    """Actions, numbered as in the kernel's block tracer; all others are skipped."""

    QUEUE = 1
    REQUEUE = 6
    ISSUE = 7
    COMPLETE = 8
    SPLIT = 13


EVENT = np.dtype(
    [
        ("time_ns", np.int64),
        ("offset_bytes", np.int64),
        ("length_bytes", np.int64),  # of a SPLIT: its front part
        ("pid", np.int32),
        ("error", np.int16),
        ("cpu", np.uint16),
        ("action", np.uint8),
        ("op", np.uint8),  # codes.Op
        ("marks", np.uint8),  # codes.Flag; an internal flush has PREFLUSH and length 0
    ],
    align=True,
)
Events: TypeAlias = Any  # a recarray of EVENT: events[row].time_ns


def room_for(rows: int) -> Events:
    """Return an array for events; memory is allocated on first use."""
    return np.zeros(rows, EVENT).view(np.recarray)


WINDOW = 1 << 18  # events by which one CPU may lag behind another in a stream

Fill = Callable[[Events], int]  # fills rows from the start; returns their number, 0 at the end


class InOrder:
    """Sorts a stream of events by (time, CPU) within a window of WINDOW events.

    A later event keeps its position; pairing counts it and moves it to the time of the preceding
    event.
    """

    def __init__(self, fill: Fill, batch: int) -> None:
        self._fill = fill
        self._batch = batch
        self._held = room_for(WINDOW + batch)
        self._count = 0
        self._ended = False

    def fill(self, events: Events) -> int:
        """Fill `events` with the next ones in order; return their number, 0 at the end."""
        while not self._ended and self._count <= WINDOW:
            got = self._fill(self._held[self._count :])
            self._count += got
            self._ended = got == 0
        held, target = whole(self._held[: self._count]), whole(events)
        order = _order(self._held[: self._count])
        if order is not None:
            held[:] = held[order]
        out = min(self._count if self._ended else self._count - WINDOW // 2, len(events))
        target[:out] = held[:out]
        held[: self._count - out] = held[out:].copy()
        self._count -= out
        return out


def whole(events: Events) -> NDArray[Any]:
    """View events as opaque rows, which numpy copies much faster than field by field."""
    opaque: NDArray[Any] = events.view(np.dtype((np.void, EVENT.itemsize)), np.ndarray)
    return opaque


def _order(events: Events) -> NDArray[np.int64] | None:
    """Return the order of the rows by (time, CPU), or None if they are sorted."""
    time, cpu = events.time_ns, events.cpu
    if np.all((time[1:] > time[:-1]) | ((time[1:] == time[:-1]) & (cpu[1:] >= cpu[:-1]))):
        return None
    return np.lexsort((cpu, time))
