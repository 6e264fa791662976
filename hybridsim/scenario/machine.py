"""All tables of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from hybridsim.scenario.backing import Backing
from hybridsim.scenario.caches import AnyCache
from hybridsim.scenario.event import Event, refused
from hybridsim.scenario.host import Host
from hybridsim.storage.drives import Part

DEFAULT_KINDS = {"backing": "hdd", "cache": "ssd"}  # of drives, by section


class Replay(Part):
    """When the requests of the trace are issued (open, closed or think-time replay)."""

    # "auto": open; think if the recorded arrivals exceed what the disks alone can serve; closed for
    # a trace without times
    mode: Literal["auto", "open", "closed", "think"] = "auto"
    speed: float = Field(1.0, ge=1e-3, le=1e6, allow_inf_nan=False)  # 2 = twice as fast as recorded
    depth: int = Field(32, ge=1, le=65_536)  # with mode "closed": requests outstanding


class Price(Part):
    """Price of storage on a date, in a currency, per GB of 10^9 bytes."""

    date: str
    hdd_per_gb: float = Field(ge=0, allow_inf_nan=False)
    ssd_per_gb: float = Field(ge=0, allow_inf_nan=False)
    currency: str = Field(min_length=1, max_length=8)


class Machine(Part):
    """All tables of a scenario."""

    preset: str = ""  # name of a system of the catalog
    seed: int = Field(1, ge=0, lt=2**63)
    backing: Backing
    cache: AnyCache
    host: Host = Field(default_factory=lambda: Host.model_validate({}))
    replay: Replay = Field(default_factory=lambda: Replay.model_validate({}))
    price: Price | None = None
    event: list[Event] = Field(default_factory=list)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse events that cannot happen to this machine."""
        wrong = refused(self.event, self.cache, self.backing)
        if wrong:
            yield "event", wrong
