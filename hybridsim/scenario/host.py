"""The table `host`: the host in front of the cache."""

from __future__ import annotations

from pydantic import Field

from hybridsim.foundation.machine_parameters import HostParameters
from hybridsim.storage.drives import Part, Rate, Time


class Host(Part):
    """Limits of the host that issues the requests: its processors, its controller, its network."""

    max_iops: int | None = Field(None, ge=1, le=10**9)
    max_bandwidth: Rate | None = None
    overhead_ns: Time = 0  # added to each request; overlaps with others
    # a controller raises one interrupt for all completions of this time; 0: one for each
    hold_ns: Time = 0
    # completions are held back once so many have come in a period
    hold_from: int = Field(HostParameters.hold_from, ge=1, le=10**6)
    hold_within_ns: Time = 0  # the period in which they must come

    @property
    def parameters(self) -> HostParameters:
        """The parameters of the model."""
        limits = self.max_iops or 0, self.max_bandwidth or 0
        hold = self.hold_ns, self.hold_from, self.hold_within_ns
        return HostParameters(*limits, self.overhead_ns, *hold)
