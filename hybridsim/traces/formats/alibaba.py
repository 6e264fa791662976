"""Alibaba's block traces of 2020: `device_id,opcode,offset,length,timestamp`, in bytes and us.

J. Li et al., "An in-depth analysis of cloud block storage workloads in large-scale production",
IISWC 2020; github.com/alibaba/block-traces.  Times are microseconds since 1970.
"""

from __future__ import annotations

from hybridsim.traces.formats.columns import Field, Table, To

TABLE = Table(
    name="alibaba",
    separator=",",
    fields=(
        Field(To.DEVICE),
        Field(To.OP),
        Field(To.OFFSET),
        Field(To.LENGTH),
        Field(To.TIME, 1000),
    ),
    line=rb"\d+,[RW],\d+,\d+,\d{16}",
    header=b"device_id,opcode,offset,length,timestamp",
    since_1970=True,
)
