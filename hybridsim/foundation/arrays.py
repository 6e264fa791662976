"""Types, distinct values and growth of arrays, such as those that hold a state machine's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Int32s: TypeAlias = NDArray[np.int32]
Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float64]
Records: TypeAlias = "np.recarray[Any, Any]"
Machine = TypeVar("Machine")
KINDS = {"Ints": np.int64, "Int32s": np.int32, "Bytes": np.uint8, "Floats": np.float64}


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values of a one-dimensional array, in ascending order.

    numpy's `unique` hashes integers, which is up to twelve times slower where most values differ.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def runs(first: Ints, count: Ints) -> Ints:
    """Return the integers of runs, one after the other: count[i] ascending ones from first[i]."""
    result: Ints = np.arange(count.sum()) + np.repeat(first - np.cumsum(count) + count, count)
    return result


def hashed(numbers: Ints, seed: int = 0) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each number: the finaliser of splitmix64 (public domain)."""
    mixed = numbers.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def longer(column: NDArray[Any], length: int, fill: int = 0) -> NDArray[Any]:
    """Return a copy of `column` extended to `length` entries; the new ones are `fill`.

    Untouched zeros take no physical memory, so pools can be sized for the worst case.
    """
    grown = np.full(length, fill, column.dtype) if fill else np.zeros(length, column.dtype)
    grown[: len(column)] = column
    return grown


def records(kind: np.dtype[Any], length: int, **fills: int) -> Records:
    """Return records of a structured type, with these values or zeros in their fields.

    What is read together stands together: a record takes one access to memory, columns one each.
    """
    made = np.zeros(length, kind).view(np.recarray)
    for name, fill in fills.items():
        made[name] = fill
    return made


def more_records(old: Records, length: int, **fills: int) -> Records:
    """Return a copy of `old` extended to `length` records; the new ones are as in `records`."""
    made = records(old.dtype, length, **fills)
    made[: len(old)] = old
    return made


def grown_together(one: Any, other: Any, ids: int) -> tuple[Any, Any]:
    """Return both state machines grown to `ids` ids; if they are one object, they stay one."""
    grown = one.grown(ids)
    return grown, grown if other is one else other.grown(ids)


def doubled(size: int, room: int, demand: int) -> int:
    """Return `size`, doubled until the free entries, now `room`, are at least `demand`."""
    grown = size
    while room + grown - size < demand:
        grown *= 2
    return grown


def free_list(length: int) -> Int32s:
    """Return the links of a free list over all entries, the last linked to -1."""
    links = np.arange(1, length + 1, dtype=np.int32)
    links[-1] = -1
    return links


def columns_of(
    machine: type, length: int, names: Iterable[str] | None = None
) -> list[NDArray[Any]]:
    """Return an array of zeros with `length` entries for each field, or those named."""
    names = machine.__annotations__ if names is None else names
    return [np.zeros(length, KINDS[_kind(machine, name)]) for name in names]


def _kind(machine: type, name: str) -> str:
    """Return the name of a field's type."""
    kind = machine.__annotations__[name]
    return str(getattr(kind, "__forward_arg__", kind))


def filled(machine: type[Machine], length: int, parameters: Any = None, **given: Any) -> Machine:
    """Return a state machine with these fields; the others are zeros, `length` entries each.

    A number that is not given is the parameter of its name.
    """
    rest = [name for name in machine.__annotations__ if name not in given]
    numbers = [name for name in rest if _kind(machine, name) == "int"]
    own = {name: int(getattr(parameters, name)) for name in numbers}
    arrays = [name for name in rest if name not in own]
    return machine(**given, **own, **dict(zip(arrays, columns_of(machine, length, arrays))))


def pool_of(machine: type[Machine], capacity: int, parameters: Any = None, **given: Any) -> Machine:
    """Return a pool in which all entries are free.

    That is a state machine of arrays with an entry for each thing in it, but for what `filled`
    takes as well; its last two fields are the links of the free list, and [first free, number of
    free].
    """
    *_, links, free = cast("Any", machine)._fields
    ends = {links: free_list(capacity), free: np.array([0, capacity])}
    return filled(machine, capacity, parameters, **given, **ends)


def grown_pool(pool: Machine, capacity: int, columns: Iterable[str] | None = None) -> Machine:
    """Return a pool with room for `capacity` entries; the new ones are the first free ones.

    `columns` are its fields with an entry for each thing, by default all.
    """
    *others, links, free = cast("Any", pool)._fields
    names = (*(columns or others), links)
    longest: dict[str, Any] = {name: longer(getattr(pool, name), capacity) for name in names}
    (first, number), old = getattr(pool, free), len(getattr(pool, links))
    longest[links][old:] = np.arange(old + 1, capacity + 1)
    longest[links][-1] = first
    longest[free] = np.array([old, number + capacity - old])
    grown: Machine = cast("Any", pool)._replace(**longest)
    return grown


def roomy_pool(pool: Machine, demand: int, columns: Iterable[str] | None = None) -> Machine:
    """Return a pool with at least `demand` free entries: the same, or a grown one."""
    *_, links, free = cast("Any", pool)._fields
    size, room = len(getattr(pool, links)), int(getattr(pool, free)[1])
    return pool if room >= demand else grown_pool(pool, doubled(size, room, demand), columns)
