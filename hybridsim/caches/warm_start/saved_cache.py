"""What a page cache held at the end of a run, in a file that another run can begin from."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.caches import PageCache
from hybridsim.caches.policies.memory import Memory, is_of_now, is_sound, learner, noted, remembered
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.foundation.writing import whole_file

FORMAT = "hybridsim.cache/1"
MAGIC = b"PK\x03\x04"  # of NumPy's .npz
NUMBERS = ("page_bytes", "granule_bytes", "volume_bytes")
COLUMNS = ("pages", "valid")
STAMPS, LEARNED = "stamps", "learned."  # where a learned policy chose, and what it knew


@dataclass(frozen=True)
class SavedCache:
    """Pages by number, the best first, and which of their granules were valid, as bits.

    Where a learned policy chose them, also what it knew (caches/policies/memory.py).
    """

    name: str
    page_bytes: int
    granule_bytes: int
    volume_bytes: int
    pages: Ints
    valid: Ints
    memory: Memory | None = None  # of these pages, in this order

    @classmethod
    def of(cls, cache: PageCache, volume_bytes: int, name: str = "") -> SavedCache:
        """Take down what a cache holds, which is used up by that.

        The best is the one that its replacement policy would give up last.
        """
        table = cache.table
        policy = learner(cache.admission, cache.replacement)
        learned = remembered(policy) if policy else {}
        order = []
        while (page := int(cache.replacement.evict())) >= 0:
            order.append(page)
        ids = np.array(order[::-1], np.int64)
        pages, valid = table.ids.number[ids], table.valid[table.slot[ids]]
        memory = Memory(pages, noted(policy, ids), learned) if policy else None
        return cls(name, table.page_bytes, table.granule_bytes, volume_bytes, pages, valid, memory)

    def write(self, path: str) -> None:
        """Write the file."""
        told: dict[str, Any] = {name: np.array(getattr(self, name)) for name in NUMBERS + COLUMNS}
        if self.memory:
            told[STAMPS] = self.memory.stamps
            told |= {LEARNED + name: column for name, column in self.memory.learned.items()}
        with whole_file(path) as stream:
            np.savez_compressed(stream, format=np.array(FORMAT), **told)

    @classmethod
    def read(cls, path: str) -> SavedCache:
        """Read a file; UsageError says what is wrong with it."""
        try:
            with np.load(path, allow_pickle=False) as found:
                form = str(found["format"])
                if form != FORMAT:
                    raise UsageError(f"{path}: its format is {form[:40]!r}, this reads {FORMAT!r}")
                numbers = {name: int(found[name]) for name in NUMBERS}
                columns = {name: found[name] for name in COLUMNS}
                memory = _memory(found, columns["pages"])
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise UsageError(f"{path}: not a cache saved by --save-cache ({error})") from error
        told: dict[str, Any] = {"name": path, **numbers, **columns, "memory": memory}
        saved = cls(**told)
        wrong = saved._wrong()
        if wrong:
            raise UsageError(f"{path}: damaged: {wrong}; save it again")
        return saved

    def _wrong(self) -> str:
        """Say what cannot be so."""
        if min(self.page_bytes, self.granule_bytes) < 1 or self.granule_bytes > self.page_bytes:
            return f"pages of {self.page_bytes} bytes in parts of {self.granule_bytes}"
        for column in (self.pages, self.valid):
            if column.dtype != np.int64 or column.shape != (len(self.pages),):
                return "its columns do not fit each other"
        ends = self.volume_bytes // self.page_bytes + 1
        if len(self.pages) and not 0 <= self.pages.min() <= self.pages.max() < ends:
            return f"pages that lie outside of {human_size(self.volume_bytes)}"
        if len(np.unique(self.pages)) < len(self.pages):
            return "a page is in it twice"
        if self.memory and is_of_now(self.memory) and not is_sound(self.memory):
            return "what its policy had learned cannot be so"
        return "" if self.valid.all() else "a page with nothing in it"


def _memory(found: Mapping[str, Any], pages: Ints) -> Memory | None:
    """Return what a policy knew, if a file has that."""
    if STAMPS not in found:
        return None
    learned = {
        name.removeprefix(LEARNED): found[name] for name in found if name.startswith(LEARNED)
    }
    return Memory(pages, found[STAMPS], learned)


def is_saved_cache(path: str) -> bool:
    """Tell whether a file is one of these rather than a trace."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
