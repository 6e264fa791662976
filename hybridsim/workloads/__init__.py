"""Synthetic workloads: a family.  A kind of load is one file and one line in KINDS.

quantities, load   the tables; the common part of all kinds of load
draws              random numbers, whole columns at once
icf, icf_loads     Iometer's files, and their loads
parse, imported    workloads from TOML, from one line, or from the file of another tool
generated          the requests of concurrent loads as one stream
fio                fio jobs
standin            stand-ins: the distributions of a capture, and requests drawn from them
"""

# name: class of the table
KINDS = {
    "random": "hybridsim.workloads.even:Random",
    "hot-spot": "hybridsim.workloads.hot_spot:HotSpot",
    "zipf": "hybridsim.workloads.zipf:Zipf",
    "zoned": "hybridsim.workloads.zoned:Zoned",
    "sequential": "hybridsim.workloads.sequential:Sequential",
    "iometer": "hybridsim.workloads.iometer:Iometer",
    "sysbench": "hybridsim.workloads.sysbench:Sysbench",
    "stand-in": "hybridsim.workloads.stand_in:StandIn",
}
