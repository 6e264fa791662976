"""The tables `[[event]]`: what happens to the machine at a moment of the load.

On the command line an event is one text: `--event at=10m,reboot=unclean`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.toml.table import Part, Rate, Time
from hybridsim.scenario.backing import RATE_MAX, RATE_MIN, Backing

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario
    from hybridsim.scenario.machine import CacheTable

# The keys that specify what happens; each event has one.
WHAT = ("reboot", "detach", "ssd", "disk", "rebuild", "backup")
EXAMPLE = "--event at=10m,reboot=unclean"
# Why an event is not simulated.
NO_DETACH = (
    "Open CAS is removed only while nothing uses its device, so under no load; "
    "`setup` with a saved replay prints how long the flush takes"
)
NO_DIRTY_PAGES = (
    "no product writes back with a cache of pages, so it is open what becomes of dirty data; "
    "choose another mode, or another kind with --cache"
)


class Event(Part):
    """Something that happens at a moment of the load."""

    at_ns: Time  # since the first request
    reboot: Literal["clean", "unclean"] | None = None  # unclean: a crash or a power failure
    down_ns: Time = 0  # of a reboot; no part of the load
    detach: bool = False  # write back all dirty data while the load goes on, then remove the cache
    ssd: Literal["dies"] | None = None
    disk: Literal["fails"] | None = None  # a member of the array
    backup: Rate | None = None  # read the whole volume once, in order, through the cache
    rebuild: bool = False  # replace a failed member and rebuild it
    member: int | None = Field(None, ge=0)  # of the array, from 0; default: 0, or the failed one
    min_bytes_per_s: Rate | None = Field(None, alias="min")  # of a rebuild, as in backing.rebuild
    max_bytes_per_s: Rate | None = Field(None, alias="max")

    @property
    def what(self) -> str:
        """The key of what happens."""
        return next(key for key in WHAT if getattr(self, key))

    @property
    def text(self) -> str:
        """The event as the option `--event` specifies it."""
        values = self.model_dump(by_alias=True, exclude_defaults=True)
        words = (f"{key}={value}" if value is not True else key for key, value in values.items())
        return ",".join(words)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse an event with no or several things that happen."""
        chosen = [key for key in WHAT if getattr(self, key)]
        if len(chosen) != 1:
            which = f"not {' and '.join(chosen)}" if chosen else f"for example {EXAMPLE}"
            yield (
                chosen[1] if chosen else "at",
                f"an event needs exactly one of {', '.join(WHAT)}: {which}",
            )
        if self.down_ns and not self.reboot:
            yield "down", "down is the time that a reboot takes: it needs reboot"
        if self.member is not None and not (self.disk or self.rebuild):
            yield "member", "member is a disk of the array: it needs disk or rebuild"
        for key, value in (("min", self.min_bytes_per_s), ("max", self.max_bytes_per_s)):
            if value and not self.rebuild:
                yield key, f"{key} is a rate of a rebuild: it needs rebuild"
        if self.rebuild and self.rates[0] > self.rates[1]:
            yield "min", "min cannot exceed max"

    @property
    def rates(self) -> tuple[int, int]:
        """The minimum and the maximum rate of a rebuild, in bytes a second."""
        return self.min_bytes_per_s or RATE_MIN, self.max_bytes_per_s or RATE_MAX


def ordered(events: Iterable[Event]) -> list[Event]:
    """Return events in the order in which they happen."""
    return sorted(events, key=lambda event: event.at_ns)


def refused(events: Sequence[Event], cache: CacheTable, backing: Backing) -> str:
    """Return why these events cannot happen to a machine with that cache, or ""."""
    wrong = itertools.chain(_wrong_for_cache(events, cache), _wrong_for_array(events, backing))
    return next((f"{event.text}: {why}" for event, why in wrong), "")


def members(events: Sequence[Event]) -> dict[Event, int]:
    """Return the member of each event that concerns one."""
    failed = 0
    result = {}
    for event in ordered(events):
        if event.disk:
            failed = event.member or 0
        if event.disk or event.rebuild:
            result[event] = failed if event.member is None else event.member
    return result


def _wrong_for_array(events: Sequence[Event], backing: Backing) -> Iterator[tuple[Event, str]]:
    lost = set(backing.failed)
    rebuilds = backing.rebuild is not None
    for event, member in members(events).items():
        if rebuilds:
            yield event, "only one member is rebuilt, and none fails from then on"
        if event.rebuild:
            if member not in lost:
                yield event, f"member {member} has not failed before that"
            rebuilds = True
            continue
        if member in lost:
            yield event, f"member {member} has failed already"
        lost.add(member)
        if wrong := backing.form.wrong_losses(sorted(lost)):
            yield event, wrong


def _wrong_for_cache(events: Sequence[Event], cache: CacheTable) -> Iterator[tuple[Event, str]]:
    happen = ordered(events)
    backups = [event for event in happen if event.backup]
    if len(backups) > 1:
        yield backups[1], "only one backup is simulated in a replay"
    removed = None
    for event in happen:
        removes = event.what in ("detach", "ssd")
        if not removes and event.what != "reboot":
            continue
        if removes and cache.kind == "none":
            yield event, "the machine has no cache; choose one with --cache"
        if event.detach and cache.kind == "open-cas":
            yield event, NO_DETACH
        if event.what != "ssd" and cache.kind == "page" and cache.write_policy == "write-back":
            yield event, NO_DIRTY_PAGES
        if removed is not None:
            yield event, f"the cache is removed before that, by {removed.text}"
        if removes:
            removed = event


def check_no_events(scenario: Scenario) -> None:
    """Raise UsageError for a scenario with events: only `replay` simulates them."""
    if scenario.events:
        raise UsageError(
            f"event {scenario.events[0].text}: only `replay` simulates events; "
            "remove [[event]] from the scenario"
        )


def read_all(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tables of the values of `--event`; raise UsageError for one without a meaning."""
    tables = []
    for text in texts:
        table: dict[str, Any] = {}
        for part in text.split(","):
            key, equals, value = (each.strip() for each in part.partition("="))
            if not key or (equals and not value) or key in table:
                raise UsageError(f"--event {text}: expected for example {EXAMPLE}")
            is_number = key == "member" and value.isdecimal()
            table[key] = (int(value) if is_number else value) if equals else True
        tables.append(table)
    return tables
