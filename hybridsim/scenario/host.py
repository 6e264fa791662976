"""What a scenario says of the host in front of the cache."""

from __future__ import annotations

from pydantic import Field

from hybridsim.storage.drives import Part, Rate, Time


class Host(Part):
    """How fast the host gets requests through: its processors, its controller, its network."""

    max_iops: int | None = Field(None, ge=1, le=10**9)
    max_bandwidth: Rate | None = None
    overhead_ns: Time = Field(0, alias="overhead")  # of each request, beside the others
