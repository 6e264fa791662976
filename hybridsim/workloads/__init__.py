"""Synthetic workloads: a family.  A kind of load is one file and one line in KINDS.

load       quantities as users write them; the common part of all kinds of load
draws      random numbers, whole columns at once
workload   concurrent loads, from TOML, one line or the file of another tool, and their requests as
           one stream
fio        fio jobs
stand_in   stand-ins: the distributions of a capture, and requests drawn from them
"""

# name: class of the table
KINDS = {
    "random": "hybridsim.workloads.offsets:Random",
    "hot-spot": "hybridsim.workloads.offsets:HotSpot",
    "zipf": "hybridsim.workloads.offsets:Zipf",
    "zoned": "hybridsim.workloads.offsets:Zoned",
    "sequential": "hybridsim.workloads.offsets:Sequential",
    "iometer": "hybridsim.workloads.iometer:Iometer",
    "sysbench": "hybridsim.workloads.sysbench:Sysbench",
    "stand-in": "hybridsim.workloads.stand_in:StandIn",
}
