"""A workload: its loads, which run concurrently, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Annotated, Any, Protocol

from pydantic import Field

from hybridsim.foundation.registry import Registry
from hybridsim.requests.rows import Requests
from hybridsim.workloads import KINDS
from hybridsim.workloads.load import Load
from hybridsim.workloads.quantities import Count, Part, Seed, Time


class Source(Protocol):
    """The source of the requests of one load."""

    @property
    def begin(self) -> int: ...  # noqa: D102

    @property
    def ends(self) -> bool: ...  # noqa: D102

    def requests(self, seed: int, number: int) -> Iterator[Requests]:
        """Yield its requests in order of arrival."""


DEFAULT_REQUESTS = 100_000

TABLES = tuple(Registry(KINDS).values())
AnyLoad: Any = Annotated[reduce(or_, TABLES), Field(discriminator="kind")]


class Workload(Part):
    """The keys of a workload; it ends after `requests` or `duration`."""

    seed: Seed = 1
    requests: Count | None = None  # without either: DEFAULT_REQUESTS if a load has no end
    duration: Time | None = Field(None, gt=0)
    load: list[AnyLoad] = Field(min_length=1)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject a workload without requests."""
        if self.duration is not None and all(load.begin >= self.duration for load in self.loads):
            yield "duration", "the workload ends before a load begins"

    @property
    def loads(self) -> list[Source]:
        """Return the sources of requests of all loads."""
        return [load if isinstance(load, Load) else load.load() for load in self.load]

    @property
    def requests_max(self) -> int | None:
        """Return the maximum number of requests, None if there is none."""
        if self.requests is not None or self.duration is not None:
            return self.requests
        return None if all(load.ends for load in self.loads) else DEFAULT_REQUESTS
