"""What read_iolog and its options say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hybridsim.foundation.arrays import Ints
from hybridsim.requests.rows import Device, Requests
from hybridsim.workloads.fio import options
from hybridsim.workloads.fio.pattern import READ, SYNC, TRIM, WRITE
from hybridsim.workloads.fio.reader import Reader


class Log(Protocol):
    """An open trace whose requests a job replays; hybridsim.traces.trace.Trace is one."""

    @property
    def devices(self) -> Sequence[Device]:
        """The files of the log."""

    def summary(self) -> Any:
        """Return what is in the log; `max_end_bytes` is where its last byte lies."""

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests in order, anew at each call."""


@dataclass(frozen=True)
class Replay:
    """Where a job's requests come from, if not from a generator."""

    path: str
    redirect: str = ""  # another name for the file
    is_unstalled: bool = False  # as fast as can be, not at the times of the log
    time_percent: int = 100  # 200: in half the time
    scale: int = 1  # offsets are divided by it
    align_bytes: int = 0  # and offsets made multiples of it
    skipped: tuple[int, ...] = ()  # directions that are left out
    log: Log | None = None  # the file at `path`, once it is open

    def placed(self, offset: Ints) -> Ints:
        """Return where requests lie."""
        offset = offset // self.scale
        return offset // self.align_bytes * self.align_bytes if self.align_bytes else offset


def replay_of(reader: Reader) -> Replay | None:
    """Return what a job replays, if it does."""
    path = reader.read("read_iolog", str, "")
    if not path:
        return None
    return Replay(
        path,
        redirect=reader.read("replay_redirect", str, ""),
        is_unstalled=reader.flag("replay_no_stall"),
        time_percent=reader.number("replay_time_scale", 100, 1),
        scale=reader.number("replay_scale", 1, 1),
        align_bytes=reader.read("replay_align", options.size, 0),
        skipped=reader.read("replay_skip", _skipped, ()),
    )


def _skipped(text: str) -> tuple[int, ...]:
    known = {"read": READ, "write": WRITE, "trim": TRIM, "sync": SYNC}
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= known.keys():
        raise ValueError(f"{text!r}: read, write, trim and sync can be left out")
    return tuple(known[name] for name in names)
