"""The page cache on real devices: what `hybridsim serve` runs (DESIGN.md 1, decision 51).

nbd         the protocol of the clients; exports of other servers as devices
claims      devices and files that are claimed before use, and refused if they may hold other data
cache       the cache: requests, their data, failures of a device; reads and writes of a device in
            parallel, overlapping ones in order; figures of it as JSON and for Prometheus
generations what a restart may trust: the superblock on the fast device, and the state folder
server      connections of clients
"""
