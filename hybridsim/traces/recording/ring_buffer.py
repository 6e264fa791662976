"""Block events in pages of the kernel's trace buffer, as `trace_pipe_raw` returns them.

A page: time of its first event (64 bits), bytes used (64 bits, of which 20 count), events.  An
event: 5 bits of type or length, 27 bits of time since the one before, data.  The places of fields
are read from `events/block/NAME/format`, as they differ between kernels.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.errors import RecordingError
from hybridsim.jit import kernel, loop
from hybridsim.traces.formats.events import EVENT, Action, Events, room_for, whole
from hybridsim.traces.formats.ftrace import parse_rwbs

# event of the kernel: action, fields other than those of all
EVENTS = {
    "block_bio_queue": (Action.QUEUE, "nr_sector"),
    "block_rq_complete": (Action.COMPLETE, "nr_sector"),
    "block_bio_complete": (Action.COMPLETE, "nr_sector"),
    "block_split": (Action.SPLIT, "new_sector"),
    "block_rq_requeue": (Action.REQUEUE, "nr_sector"),
}
FIELD = re.compile(r"field:([^;]+);\s*offset:(\d+);\s*size:(\d+);")  # "char rwbs[8]", its place
IDENTITY = re.compile(r"^ID: (\d+)", re.M)
RWBS_BYTES = 8  # of the letters: no request has more
SECTOR_MAX = 1 << 51
SPLIT = int(Action.SPLIT)
LETTERS_MAX = 64  # kinds of `rwbs` at a time
EVENT_BYTES_MIN = 32  # of a block event in a page
# columns of a table of formats
ID, ACTION, PID, DEVICE, SECTOR, COUNT, ERROR, RWBS, SIZE = range(9)


class Formats(NamedTuple):
    """The places of fields: a row per event."""

    table: Any  # int64

    @classmethod
    def read(cls, root: Path) -> Formats:
        """Read them from tracefs; raise RecordingError if the kernel lacks an event or a field."""
        rows = []
        for event, (action, count) in EVENTS.items():
            path = root / "events/block" / event / "format"
            try:
                text = path.read_text()
            except OSError as error:
                raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
            fields = {
                declared.partition("[")[0].split()[-1]: (int(at), int(size))
                for declared, at, size in FIELD.findall(text)
            }
            number = IDENTITY.search(text)
            missing = {"common_pid", "dev", "sector", count, "rwbs"} - fields.keys()
            if number is None or missing:
                raise RecordingError(f"{path}: has no {', '.join(sorted(missing)) or 'ID'}")
            places = [fields[name][0] for name in ("common_pid", "dev", "sector", count)]
            error_at = fields["error"][0] if "error" in fields else -1
            size = max(at + size for at, size in fields.values())
            rows.append([int(number[1]), action, *places, error_at, fields["rwbs"][0], size])
        return cls(np.array(rows, np.int64))


@kernel
def word_at(data, at):
    """Return an unsigned number of 32 bits, as int64."""
    return (
        np.int64(data[at])
        | np.int64(data[at + 1]) << 8
        | np.int64(data[at + 2]) << 16
        | np.int64(data[at + 3]) << 24
    )


@kernel
def long_at(data, at):
    """Return a number of 64 bits."""
    return word_at(data, at) | word_at(data, at + 4) << 32


@kernel
def text_at(data, at):
    """Return a text as a number; what follows its end is left over from other events."""
    value = np.int64(0)
    for byte in range(RWBS_BYTES):
        if data[at + byte] == 0:
            break
        value |= np.int64(data[at + byte]) << (8 * byte)
    return value


@kernel
def parse(data, used, table, devices, events, letters):
    """Write the block events of a page; return their number, or -1 if the page is malformed.

    `letters` gets the first bytes of `rwbs`, as a number.
    """
    base = long_at(data, 0)
    end = 16 + (long_at(data, 8) & 0xFFFFF)
    if end > used:
        return -1
    at = 16
    time = base
    found = 0
    while at + 4 <= end:
        head = word_at(data, at)
        kind = head & 31
        delta = head >> 5
        at += 4
        if kind == 29:  # padding: the rest of the page, or of a discarded event
            if delta == 0:
                break
            time += delta
            at += word_at(data, at)
            continue
        if kind == 30:
            time += (word_at(data, at) << 27) + delta
            at += 4
            continue
        if kind == 31:  # the low 59 bits of a time
            time = (time & ~((1 << 59) - 1)) | ((word_at(data, at) << 27) + delta)
            at += 4
            continue
        time += delta
        body = at
        if kind == 0:
            length = word_at(data, at)
            body = at + 4
            at += (length + 3) & ~3
        else:
            length = kind * 4
            at += length
        if at > end or length < 8:
            return -1
        identity = word_at(data, body) & 0xFFFF
        for row in range(len(table)):
            if table[row, ID] != identity:
                continue
            if body + table[row, SIZE] > used:
                return -1
            device = word_at(data, body + table[row, DEVICE])
            is_wanted = False
            for each in devices:
                is_wanted |= each == device
            if not is_wanted:
                break
            sector = long_at(data, body + table[row, SECTOR])
            if sector == -1:  # a flush without an address
                sector = 0
            if table[row, ACTION] == SPLIT:
                count = long_at(data, body + table[row, COUNT]) - sector
            else:
                count = word_at(data, body + table[row, COUNT])
            if not 0 <= sector <= SECTOR_MAX or not 0 <= count <= SECTOR_MAX:
                break
            event = events[found]
            event.time_ns = time
            event.offset_bytes = sector << 9
            event.length_bytes = count << 9
            event.pid = word_at(data, body + table[row, PID]) & 0x7FFFFFFF
            event.error = 0
            if table[row, ERROR] >= 0 and word_at(data, body + table[row, ERROR]) != 0:
                event.error = -1
            event.cpu = 0
            event.action = table[row, ACTION]
            letters[found] = text_at(data, body + table[row, RWBS])
            found += 1
            break
    return found


@loop
def parse_pages(data, page_bytes, table, devices, events, letters, known, malformed):
    """Write the block events of pages; return their number.

    `letters` gets for each the number of its letters in `known`, whose first number counts them;
    `malformed` the number of malformed pages.
    """
    total = 0
    for first in range(0, len(data), page_bytes):
        page = data[first : first + page_bytes]
        found = parse(page, len(page), table, devices, events[total:], letters[total:])
        if found < 0:
            malformed[0] += 1
            continue
        for row in range(total, total + found):
            number = 1
            while number <= known[0] and known[number] != letters[row]:
                number += 1
            if number > known[0] and number < len(known):
                known[0] = number
                known[number] = letters[row]
            letters[row] = number if number < len(known) else 0  # 0: no request
        total += found
    return total


@loop
def mark(events, letters, meanings, cpu):
    """Write what the numbers of letters mean to events; return whether all are of requests.

    `letters` gets 0 where an event is of no request.
    """
    are_all = True
    for row in range(len(letters)):
        event = events[row]
        number = letters[row]
        has_data = np.int64(event.length_bytes != 0)
        event.cpu = cpu
        event.op = meanings[number, has_data, 1]
        event.marks = meanings[number, has_data, 2]
        letters[row] = meanings[number, has_data, 0]
        are_all &= letters[row] != 0
    return are_all


class Decoder:
    """Converts pages to events."""

    def __init__(self, formats: Formats, devices: list[int], page_bytes: int) -> None:
        """Decode the events of devices, as the kernel numbers them: MAJOR << 20 | MINOR."""
        self._formats, self._devices = formats, np.array(devices, np.int64)
        self.page_bytes = page_bytes
        self._known = np.zeros(LETTERS_MAX, np.int64)
        self._meanings = np.zeros((0, 2, 3), np.int64)  # of the known letters
        self._malformed = np.zeros(1, np.int64)
        self._room, self._letters = room_for(0), np.zeros(0, np.int64)

    @property
    def malformed(self) -> int:
        """Number of malformed pages."""
        return int(self._malformed[0])

    def events(self, pages: bytes | memoryview, cpu: int) -> Events:
        """Return the events of pages of one CPU, each of `page_bytes`."""
        most = len(pages) // EVENT_BYTES_MIN + 1
        if most > len(self._room):
            self._room, self._letters = room_for(most), np.zeros(most, np.int64)
        count = parse_pages(
            np.frombuffer(pages, np.uint8), self.page_bytes, self._formats.table, self._devices,
            self._room, self._letters, self._known, self._malformed,
        )  # fmt: skip
        if self._known[0] >= len(self._meanings):
            keys = self._known[: self._known[0] + 1]
            self._meanings = np.array([self._meaning(key) for key in keys])
        events, letters = self._room[:count], self._letters[:count]
        found = events if mark(events, letters, self._meanings, cpu) else events[letters != 0]
        return whole(found).copy().view(EVENT).view(np.recarray)

    @staticmethod
    def _meaning(key: int) -> list[tuple[int, int, int]]:
        """Return for requests without and with data whether they are some, their op and flags."""
        text = (int(key) & (1 << 64) - 1).to_bytes(RWBS_BYTES, "little").split(b"\0")[0]
        both = (parse_rwbs(text, sectors) for sectors in (0, 1))
        return [(0, 0, 0) if each is None else (1, *each) for each in both]
