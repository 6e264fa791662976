"""Workloads that are made, not captured: a family.  A kind is one file and one line in KINDS.

quantities, load   the tables; what all kinds of load have in common
draws              numbers by chance, whole columns at once
icf, icf_loads     Iometer's own files, and the loads that they come to
parse, imported    a workload from TOML, from one line, or from the file of another tool
generated          its loads side by side, as one stream of requests
fio                jobs of fio, as they are
standin            stand-ins: a capture as distributions, and requests drawn from these
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
