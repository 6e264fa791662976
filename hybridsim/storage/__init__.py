"""Storage: how long a request takes below the cache.

controller  a RAID controller's DRAM, which reads ahead and takes writes in at once
raid        a tier: which members a request goes to, parity, rebuilding
devices     hard disks, SSDs and cloud volumes: state machines that serve requests
drives      datasheets: the quantities that the timing of a device is derived from
"""
