"""What a restart may trust: the superblock on the fast device, and the state folder.

Each start is a generation, with a number and a random key.  Before anything else is written, those
of the new one are stored in the state folder and on the fast device, both marked as open.  At an
orderly end the pages of the cache are stored in the folder, and both are marked as closed.  The
next start keeps the pages if both are closed, of the same generation, and nobody has written to
either device since.  In all other cases the cache starts empty: after a crash, with an older copy
of the fast device or of the folder, without the folder, with another slow device or page size.

The key distinguishes two copies of a fast device that took turns: the older one, started again, has
the number that the newer one already has.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.caches import PageCache
from hybridsim.caches.page.fills import COLD_START, WarmStart
from hybridsim.caches.page.names import PRESENT
from hybridsim.caches.policies.memory import is_compatible
from hybridsim.caches.warm_start.saved_cache import SavedCache
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import DeviceError, HybridsimError
from hybridsim.foundation.writing import whole_file
from hybridsim.serving.cache import Device, Medium, buffer
from hybridsim.serving.claims import check_replaceable

MAGIC = b"hybridsim serve\n"
DATA_FROM = 1 << 20  # the first page on the fast device
BLOCK = 4096
DIGEST = 32
SETTLES_S = 0.02  # longer than the step of a file's times: later writes have later times


class Generations:
    """The fast device of a cache and the state folder, from one start to the next."""

    def __init__(self, fast: Device, folder: Path, setting: dict[str, Any]) -> None:
        """Read both; `setting` is what must be as before for pages to be kept.

        Raises DeviceError if the device cannot be read.
        """
        self._fast, self._folder, self._setting = fast, folder, setting
        self._medium = Medium(fast)
        try:
            head = self._medium.bytes_at(0, BLOCK)
        except OSError as error:
            raise DeviceError(f"{fast.path}: cannot be read: {error.strerror}") from None
        self.is_ours = head.startswith(MAGIC)
        self._block = _parsed(head)
        self.number = int(self._block.get("generation", 0))
        self._id = str(self._block.get("id", uuid.uuid4().hex))
        self._key = ""  # of this generation, once it is open

    def check_replaceable(self, erase: str | None) -> None:
        """Raise DeviceError if the device holds anything but a cache of ours."""
        if not self.is_ours:
            check_replaceable(self._fast, self._medium.bytes_at, erase)

    def kept(self, slow: Device) -> tuple[WarmStart, str]:
        """Return the pages to start with, and why there are none, or an empty text."""
        why = self._why_empty(slow)
        if why:
            return COLD_START, why
        try:
            saved = SavedCache.read(str(self._file("pages")))
            slots = np.load(self._file("slots"), allow_pickle=False)
        except (HybridsimError, OSError, ValueError) as error:
            return COLD_START, f"the list of its pages cannot be read ({error})"
        memory = saved.memory if saved.memory and is_compatible(saved.memory) else None
        kept, valid, places = (each[::-1].copy() for each in (saved.pages, saved.valid, slots))
        return WarmStart(kept, valid, memory=memory, slots=places), ""

    def _why_empty(self, slow: Device) -> str:
        if not self.is_ours:
            return "it is new"
        if not self._block:
            return "its superblock is damaged"
        state = self._state()
        if not state:
            return f"there is no state of it in {self._folder}"
        if not (self._block.get("closed") and state.get("closed")):
            return "it was not closed in order"
        if self.number != state.get("generation"):
            return (
                f"it is of generation {self.number}, and the last one was {state.get('generation')}"
            )
        if "key" not in self._block or self._block["key"] != state.get("key"):
            return f"it is another copy of generation {self.number} than the last one"
        if self._block.get("setting") != self._setting or state.get("setting") != self._setting:
            return "its pages, policy or devices were others"
        for name, device in (("slow", slow), ("fast", self._fast)):
            if device.why_unknown:
                return f"the {name} device {device.why_unknown}"
            if state.get(name) != device.stamp():
                return (
                    f"the {name} device may have been written to since, or the machine was "
                    "restarted"
                )
        digests = [_digest(self._file(each)) for each in ("pages", "slots")]
        return "" if digests == state.get("digests") else "the list of its pages is damaged"

    def _state(self) -> dict[str, Any]:
        """Return the state of the last generation; empty if there is none."""
        try:
            values = json.loads(self._file("json").read_bytes())
        except (OSError, ValueError):
            return {}
        return values if isinstance(values, dict) else {}

    def open(self) -> None:
        """Begin a generation; from now on its pages are lost unless it is closed.

        Raises DeviceError, or UsageError if the folder cannot be written.
        """
        self.number += 1
        self._key = uuid.uuid4().hex
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write_state({"closed": False})
            self._write_block(closed=False)
        except OSError as error:
            place = error.filename or self._fast.path
            raise DeviceError(f"{place}: cannot be written: {error.strerror}") from None

    def close(self, cache: PageCache, slow: Device) -> None:
        """End the generation in order.

        Nothing may be in progress, and the cache cannot be used any more.  Raises OSError or
        UsageError if a device or the folder cannot be written: the next start is empty then.
        """
        saved = SavedCache.of(cache, slow.size_bytes)
        saved.write(str(self._file("pages")))
        with whole_file(self._file("slots"), durable=True) as stream:
            np.save(stream, _slots(cache, saved.pages))
        self._medium.flush()
        slow.flush()
        self._write_block(closed=True)
        time.sleep(SETTLES_S)
        digests = [_digest(self._file(each)) for each in ("pages", "slots")]
        stamps = {"slow": slow.stamp(), "fast": self._fast.stamp()}
        self._write_state({"closed": True, "digests": digests, **stamps})

    def _file(self, kind: str) -> Path:
        return self._folder / f"{self._id}.{kind}"

    def _write_state(self, values: dict[str, Any]) -> None:
        values |= {"generation": self.number, "key": self._key, "setting": self._setting}
        with whole_file(self._file("json"), durable=True) as stream:
            stream.write(json.dumps(values).encode())

    def _write_block(self, *, closed: bool) -> None:
        values = {"id": self._id, "generation": self.number, "key": self._key, "closed": closed,
                  "setting": self._setting}  # fmt: skip
        text = json.dumps(values).encode()
        whole = MAGIC + hashlib.sha256(text).digest() + len(text).to_bytes(4, "little") + text
        if len(whole) > BLOCK:
            raise OSError(f"a superblock of {len(whole)} bytes")
        where = buffer(BLOCK)
        where[: len(whole)] = whole
        self._medium.write(where, 0, durable=True)


def _slots(cache: PageCache, pages: Ints) -> Ints:
    """Return the slots of cached pages."""
    table = cache.table
    ids = np.flatnonzero(table.state == PRESENT)
    ids = ids[np.argsort(table.ids.number[ids])]
    slots: Ints = table.slot[ids[np.searchsorted(table.ids.number[ids], pages)]]
    return slots


def _parsed(head: bytes) -> dict[str, Any]:
    """Return the content of a superblock; empty if it is damaged or not ours."""
    if not head.startswith(MAGIC):
        return {}
    at = len(MAGIC)
    digest, rest = head[at : at + DIGEST], head[at + DIGEST :]
    text = rest[4:][: int.from_bytes(rest[:4], "little")]
    if hashlib.sha256(text).digest() != digest:
        return {}
    values: dict[str, Any] = json.loads(text)
    return values


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
