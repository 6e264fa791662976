"""The tables `[[event]]`: what happens to the machine at a moment of the load.

On the command line an event is one text: `--event at=10m,reboot=unclean`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from hybridsim.foundation.errors import UsageError
from hybridsim.storage.drives import Part, Time

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario

WHAT = ("reboot", "detach", "ssd")  # the keys that specify what happens; each event has one
EXAMPLE = "--event at=10m,reboot=unclean"
# The kinds of cache that each event is simulated for.
SUPPORTED = {
    "reboot": ("dm-cache", "bcache", "dm-writecache"),
    "detach": ("dm-cache", "bcache", "dm-writecache"),
    "ssd": ("dm-cache", "bcache", "dm-writecache"),
}
NAMES = {
    "reboot": "a reboot",
    "detach": "the removal of the cache (detach)",
    "ssd": "the failure of the SSD",
}


class Event(Part):
    """Something that happens at a moment of the load."""

    at_ns: Time = Field(alias="at")  # since the first request
    reboot: Literal["clean", "unclean"] | None = None  # unclean: a crash or a power failure
    down_ns: Time = Field(0, alias="down")  # of a reboot; no part of the load
    detach: bool = False  # write back all dirty data while the load goes on, then remove the cache
    ssd: Literal["dies"] | None = None

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


def refused(events: Sequence[Event], kind: str) -> str:
    """Return why these events cannot happen to a machine with that kind of cache, or ""."""
    removed = None
    for event in sorted(events, key=lambda event: event.at_ns):
        if event.what in ("detach", "ssd") and kind == "none":
            return f"{event.text}: the machine has no cache; choose one with --cache"
        supported = SUPPORTED[event.what]
        if kind not in (*supported, "none"):
            return (
                f"{event.text}: {NAMES[event.what]} is not simulated for {kind}, only for "
                f"{', '.join(supported)}"
            )
        if removed is not None:
            return f"{event.text}: the cache is removed before that, by {removed.text}"
        if event.what in ("detach", "ssd"):
            removed = event
    return ""


def check_no_events(scenario: Scenario) -> None:
    """Raise UsageError for a scenario with events: only `replay` simulates them."""
    if scenario.events:
        raise UsageError(
            f"event {scenario.events[0].text}: only `replay` simulates events; "
            "remove [[event]] from the scenario"
        )


def read_all(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tables of the values of `--event`; raise UsageError for one without a meaning."""
    return [read(text) for text in texts]


def read(text: str) -> dict[str, Any]:
    """Return the table of one value of `--event`."""
    table: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not key or (equals and not value) or key in table:
            raise UsageError(f"--event {text}: expected for example {EXAMPLE}")
        table[key] = value if equals else True
    return table


__all__ = ["EXAMPLE", "Event", "read", "read_all", "refused"]
