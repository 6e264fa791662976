"""The options of `Scenario.with_options` with their types, for completion and type checkers.

They are those of OPTIONS, without the hyphens: `--cache-size 64MiB` is `cache_size="64MiB"`.  A
number of bytes, a time or a rate may be text with its unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

Amount = str | int


class Options(TypedDict, total=False):
    """One value for each option; None leaves the scenario's."""

    preset: str | None
    seed: int | None
    backing: str | None
    members: int | None
    chunk: Amount | None
    backing_drive: str | dict[str, Any] | None
    capacity: Amount | None
    layout: str | None
    stroke: str | None
    rmw_level: str | None
    failed: list[int] | None
    scheduler: str | None
    window: int | None
    age_limit: str | int | None
    write_cache: bool | str | None
    queue_depth: int | None
    cache: str | None
    cache_page: Amount | None
    cache_block: Amount | None
    cache_size: Amount | None
    cache_drive: str | dict[str, Any] | None
    cache_members: int | None
    cache_mode: str | None
    admission: str | None
    touches: int | None
    probability: str | None
    request_max: Amount | None
    replacement: str | None
    sequential_cutoff: Amount | None
    max_fills: int | None
    migration_threshold: Amount | None
    preload_idle: str | int | None
    preload_chunk: Amount | None
    preload_gap: Amount | None
    preload_reads: int | None
    preload_rate: Amount | None
    cache_line: Amount | None
    promotion: str | None
    cleaning: str | None
    max_iops: float | None
    max_bandwidth: Amount | None
    host_overhead: str | int | None
    mode: str | None
    speed: float | None
    depth: int | None


class Choices(TypedDict, total=False):
    """One value, or a list of values, for each option."""

    preset: str | Sequence[str]
    seed: int | Sequence[int]
    backing: str | Sequence[str]
    members: int | Sequence[int]
    chunk: Amount | Sequence[Amount]
    backing_drive: str | Sequence[str]
    capacity: Amount | Sequence[Amount]
    layout: str | Sequence[str]
    stroke: str | Sequence[str]
    rmw_level: str | Sequence[str]
    failed: Sequence[Any]
    scheduler: str | Sequence[str]
    window: int | Sequence[int]
    age_limit: str | Sequence[str]
    write_cache: bool | str | Sequence[bool | str]
    queue_depth: int | Sequence[int]
    cache: str | Sequence[str]
    cache_page: Amount | Sequence[Amount]
    cache_block: Amount | Sequence[Amount]
    cache_size: Amount | Sequence[Amount]
    cache_drive: str | Sequence[str]
    cache_members: int | Sequence[int]
    cache_mode: str | Sequence[str]
    admission: str | Sequence[str]
    touches: int | Sequence[int]
    probability: str | Sequence[str]
    request_max: Amount | Sequence[Amount]
    replacement: str | Sequence[str]
    sequential_cutoff: Amount | Sequence[Amount]
    max_fills: int | Sequence[int]
    migration_threshold: Amount | Sequence[Amount]
    preload_idle: str | Sequence[str]
    preload_chunk: Amount | Sequence[Amount]
    preload_gap: Amount | Sequence[Amount]
    preload_reads: int | Sequence[int]
    preload_rate: Amount | Sequence[Amount]
    cache_line: Amount | Sequence[Amount]
    promotion: str | Sequence[str]
    cleaning: str | Sequence[str]
    max_iops: float | Sequence[float]
    max_bandwidth: Amount | Sequence[Amount]
    host_overhead: str | Sequence[str]
    mode: str | Sequence[str]
    speed: float | Sequence[float]
    depth: int | Sequence[int]
