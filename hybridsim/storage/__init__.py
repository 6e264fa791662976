"""Storage: the latency of a request below the cache.

controller  a RAID controller's DRAM: reads ahead and acknowledges writes at once
raid        a tier: maps requests to members; parity, rebuild
devices     hard disks, SSDs and cloud volumes: state machines that serve requests
drives      datasheets: the quantities that the timing of a device is derived from
catalog     values of real drives and systems, each with its source
"""
