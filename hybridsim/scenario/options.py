"""The options of `Scenario.with_options` and `what_if`, with types, and the keys that they set.

They are those of the command line without the hyphens: `--cache-size 64MiB` is
`cache_size="64MiB"`.  An option sets the key of its name in its table, [backing], [cache], [host]
or [replay]; one with the name of a table sets its `kind`, and one that begins with the name of its
table the key behind it.  A number of bytes, a time or a rate may be text with its unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypedDict, TypeVar

from hybridsim.foundation.toml.places import Path

Word = TypeVar("Word")
Count = TypeVar("Count")
Amount = TypeVar("Amount")  # of bytes, time or a rate
Number = TypeVar("Number")
Drive = TypeVar("Drive")
Numbers = TypeVar("Numbers")
Switch = TypeVar("Switch")


class OfMachine(TypedDict, Generic[Word, Count], total=False):
    """Options of the whole."""

    preset: Word
    seed: Count


class OfBacking(TypedDict, Generic[Word, Count, Amount, Drive, Numbers, Switch], total=False):
    """Options of the disks."""

    backing: Word
    members: Count
    chunk: Amount
    backing_drive: Drive
    capacity: Amount
    layout: Word
    stroke: Word
    rmw_level: Word
    failed: Numbers
    scheduler: Word
    window: Count
    age_limit: Amount
    write_cache: Switch
    queue_depth: Count


class OfCache(TypedDict, Generic[Word, Count, Amount, Drive], total=False):
    """Options of the cache."""

    cache: Word
    cache_page: Amount
    cache_block: Amount
    cache_size: Amount
    cache_drive: Drive
    cache_members: Count
    cache_mode: Word
    admission: Word
    touches: Count
    probability: Word
    request_max: Amount
    replacement: Word
    sequential_cutoff: Amount
    max_fills: Count
    migration_threshold: Amount
    preload_idle: Amount
    preload_chunk: Amount
    preload_gap: Amount
    preload_reads: Count
    preload_rate: Amount
    cache_line: Amount
    promotion: Word
    cleaning: Word


class OfHost(TypedDict, Generic[Amount, Number], total=False):
    """Options of the host."""

    max_iops: Number
    max_bandwidth: Amount
    host_overhead: Amount


class OfReplay(TypedDict, Generic[Word, Count, Number], total=False):
    """Options of the replay."""

    mode: Word
    speed: Number
    depth: Count


class Options(
    OfMachine[str | None, int | None],
    OfBacking[
        str | None, int | None, str | int | None, str | dict[str, Any] | None, list[int] | None,
        bool | str | None,
    ],
    OfCache[str | None, int | None, str | int | None, str | dict[str, Any] | None],
    OfHost[str | int | None, float | None],
    OfReplay[str | None, int | None, float | None],
    total=False,
):  # fmt: skip
    """One value for each option; None leaves the scenario's."""


class Choices(
    OfMachine[str | Sequence[str], int | Sequence[int]],
    OfBacking[
        str | Sequence[str], int | Sequence[int], str | int | Sequence[str | int],
        str | Sequence[str], Sequence[Any], bool | str | Sequence[bool | str],
    ],
    OfCache[
        str | Sequence[str], int | Sequence[int], str | int | Sequence[str | int],
        str | Sequence[str],
    ],
    OfHost[str | int | Sequence[str | int], float | Sequence[float]],
    OfReplay[str | Sequence[str], int | Sequence[int], float | Sequence[float]],
    total=False,
):  # fmt: skip
    """One value, or a list of values, for each option."""


# The key that each option sets, by its path.
OPTIONS: dict[str, Path] = {name: (name,) for name in OfMachine.__annotations__} | {
    name: (table, "kind" if name == table else name.removeprefix(f"{table}_"))
    for table, options in (
        ("backing", OfBacking), ("cache", OfCache), ("host", OfHost), ("replay", OfReplay)
    )
    for name in options.__annotations__
}  # fmt: skip
