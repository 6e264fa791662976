"""read_iolog and the options of its replay."""

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
    """An open trace that a job replays; implemented by hybridsim.traces.trace.Trace."""

    @property
    def devices(self) -> Sequence[Device]:
        """The files of the log."""

    def summary(self) -> Any:
        """Return the summary of the log; its `max_end_bytes` is the end of the last byte."""

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests in order; each call starts again."""


@dataclass(frozen=True)
class Replay:
    """Source of a job's requests if it is a log."""

    path: str
    redirect: str = ""  # another name for the file
    is_unstalled: bool = False  # as fast as possible, not at the times of the log
    time_percent: int = 100  # 200: in half the time
    scale: int = 1  # divisor of offsets
    align_bytes: int = 0  # offsets are rounded down to multiples of it
    skipped: tuple[int, ...] = ()  # directions that are not replayed
    log: Log | None = None  # the file at `path`, once it is open

    def placed(self, offset: Ints) -> Ints:
        """Return scaled and aligned offsets."""
        offset = offset // self.scale
        return offset // self.align_bytes * self.align_bytes if self.align_bytes else offset


def replay_of(reader: Reader) -> Replay | None:
    """Return the replay options of a job; None without read_iolog."""
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
    kinds = {"read": READ, "write": WRITE, "trim": TRIM, "sync": SYNC}
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= kinds.keys():
        raise ValueError(f"{text!r}: must be a list of read, write, trim and sync")
    return tuple(kinds[name] for name in names)
