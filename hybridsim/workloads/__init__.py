"""Workloads that are made, not captured: a family.  A kind is one file and one line in KINDS.

quantities, load   the tables; what all kinds of load have in common
draws              numbers by chance, whole columns at once
icf, icf_loads     Iometer's own files, and the loads that they come to
said, of_files     a workload from TOML or from a line, and what is wrong with it
generated          its loads side by side, as one stream of requests
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
