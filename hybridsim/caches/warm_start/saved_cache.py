"""The pages that a cache held at the end of a run, in a file that another run can start from."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches import PageCache
from hybridsim.caches.policies.memory import (
    Memory,
    is_compatible,
    is_valid,
    learner,
    remembered,
    stamps_of,
)
from hybridsim.foundation.arrays import Ints, distinct
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.foundation.writing import whole_file

FORMAT = "hybridsim.cache/1"
MAGIC = b"PK\x03\x04"  # of NumPy's .npz
NUMBERS = ("page_bytes", "granule_bytes", "volume_bytes")
COLUMNS = ("pages", "valid")
KINDS_OF_MEMBERS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
EXPANSION_MAX = 1100  # times; deflate reaches 1032
DIMENSIONS_MAX = 8
# Errors that libraries raise for bytes of another format; all mean the same here.
UNREADABLE = (
    OSError, ValueError, TypeError, KeyError, EOFError, NotImplementedError, RuntimeError,
    OverflowError, MemoryError, SyntaxError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
STAMPS, LEARNED = "stamps", "learned."  # present if a learned policy chose the pages


@dataclass(frozen=True)
class SavedCache:
    """Page numbers, the best page first, and the valid granules of each page as bits.

    If a learned policy chose them, also its state (caches/policies/memory.py).
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
        """Return the pages that a cache holds; this empties its replacement policy.

        The best page is the one that the policy would evict last.
        """
        table = cache.table
        policy = learner(cache.admission, cache.replacement)
        learned = remembered(policy) if policy else {}
        order = []
        while (page := int(cache.replacement.evict())) >= 0:
            order.append(page)
        ids = np.array(order[::-1], np.int64)
        pages, valid = table.ids.number[ids], table.valid[table.slot[ids]]
        memory = Memory(pages, stamps_of(policy, ids), learned) if policy else None
        return cls(name, table.page_bytes, table.granule_bytes, volume_bytes, pages, valid, memory)

    def write(self, path: str) -> None:
        """Write the file; raise UsageError if that fails."""
        fields: dict[str, Any] = {name: np.array(getattr(self, name)) for name in NUMBERS + COLUMNS}
        if self.memory:
            fields[STAMPS] = self.memory.stamps
            fields |= {LEARNED + name: column for name, column in self.memory.learned.items()}
        with whole_file(path) as stream:
            np.savez_compressed(stream, format=np.array(FORMAT), **fields)

    @classmethod
    def read(cls, path: str) -> SavedCache:
        """Return the content of a file; raise UsageError if it is no valid saved cache."""
        try:
            result = _arrays(path)
            form = str(result["format"])
            if form != FORMAT:
                raise UsageError(f"{path}: its format is {form[:40]!r}; supported: {FORMAT!r}")
            numbers = {name: int(result[name]) for name in NUMBERS}
            columns = {name: result[name] for name in COLUMNS}
            memory = _memory(result, columns["pages"])
        except UNREADABLE as error:
            raise UsageError(f"{path}: not a cache saved by --save-cache ({error})") from error
        fields: dict[str, Any] = {"name": path, **numbers, **columns, "memory": memory}
        saved = cls(**fields)
        problem = saved._problem()
        if problem:
            raise UsageError(f"{path}: damaged: {problem}; save it again")
        return saved

    def _problem(self) -> str:
        """Return what is wrong with the content, or an empty text."""
        if min(self.page_bytes, self.granule_bytes) < 1 or self.granule_bytes > self.page_bytes:
            return f"pages of {self.page_bytes} bytes in parts of {self.granule_bytes}"
        if self.volume_bytes < 0:
            return f"a volume of {self.volume_bytes} bytes"
        for column in (self.pages, self.valid):
            if column.dtype != np.int64 or column.shape != (len(self.pages),):
                return "its columns have different lengths or a wrong type"
        ends = self.volume_bytes // self.page_bytes + 1
        if len(self.pages) and not 0 <= self.pages.min() <= self.pages.max() < ends:
            return f"pages outside of the volume of {human_size(self.volume_bytes)}"
        if len(distinct(self.pages)) < len(self.pages):
            return "a page is in it twice"
        if self.memory and is_compatible(self.memory) and not is_valid(self.memory):
            return "the state of its learned policy is invalid"
        return "" if self.valid.all() else "a page has no valid data"


def _arrays(path: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, each as large as its heading says; raise one of UNREADABLE.

    An array is not begun where the file has fewer bytes for it than it would take.
    """
    result = {}
    with zipfile.ZipFile(path) as archive:
        for each in archive.infolist():
            if each.flag_bits & 1 or each.compress_type not in KINDS_OF_MEMBERS:
                raise ValueError(f"{each.filename}: packed in another way")
            if each.file_size > EXPANSION_MAX * (each.compress_size + 1):
                raise ValueError(f"{each.filename}: it cannot be as large as it claims")
            with archive.open(each) as member:
                result[each.filename.removesuffix(".npy")] = _array(member, each)
    return result


def _array(member: IO[bytes], info: zipfile.ZipInfo) -> NDArray[Any]:
    """Return the array of a member of a file."""
    form = np.lib.format
    read_heading = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    version = form.read_magic(member)
    if version not in read_heading:
        raise ValueError(f"{info.filename}: version {version}")
    shape, is_fortran, kind = read_heading[version](member)
    if kind.hasobject or is_fortran or len(shape) > DIMENSIONS_MAX:
        raise ValueError(f"{info.filename}: an array of another form")
    size_bytes = math.prod(shape) * kind.itemsize
    if size_bytes > info.file_size:
        raise ValueError(f"{info.filename}: it has fewer bytes than its heading says")
    content = member.read()  # to its end, so that its check sum is compared
    if len(content) != size_bytes:
        raise ValueError(f"{info.filename}: not as many bytes as its heading says")
    return np.frombuffer(content, kind).reshape(shape)


def _memory(stored: Mapping[str, Any], pages: Ints) -> Memory | None:
    """Return the state of a learned policy, or None if the file has none."""
    if STAMPS not in stored:
        return None
    learned = {
        name.removeprefix(LEARNED): stored[name] for name in stored if name.startswith(LEARNED)
    }
    return Memory(pages, stored[STAMPS], learned)


def is_saved_cache(path: str) -> bool:
    """Return whether a file is a saved cache rather than a trace."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
