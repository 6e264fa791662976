"""The result folder: what is in it, by which name.  All commands, the twin and the report use it.

    experiment.toml              as it was run
    environment.json             see `validate.environment`: what, on what, by which commands
    load.fio                     the job file that fio ran
    fio.json                     what fio says, and its logs: one value a second
    fio_{bw,iops,lat,clat,slat}.N.log
    workload-start-uptime.txt    uptime in seconds when fio's first request arrived, and ...
    workload-end-uptime.txt      ... when fio ended
    dmcache-status.log           dm-cache: uptime and `dmsetup status --noflush`, each second
    bcache-stats.log             bcache: true counters, from the kernel's tracepoints
    bcache-sysfs.log             bcache: its own, which come late and wrap
    diskstats.log                uptime and the lines of /proc/diskstats of the devices
    host-load.log                uptime and /proc/loadavg
    trace/NAME.blktrace.CPU      where asked for: blktrace of the cached, slow and fast device
    restart/                     where asked for: the same files of the run on the warm cache
    bare-slow/, bare-fast/       where asked for: fio.JOB.json of runs on the bare devices

`hybridsim compare` takes the folder, and `restart/`; `hybridsim fit bare-slow/*.json` fits a disk.
"""

from __future__ import annotations

EXPERIMENT = "experiment.toml"
ENVIRONMENT = "environment.json"
JOB_FILE = "load.fio"
FIO_JSON = "fio.json"
FIO_LOGS = "fio"  # the prefix of their names
BEGIN = "workload-start-uptime.txt"
END = "workload-end-uptime.txt"
DM_CACHE = "dmcache-status.log"
BCACHE_TRUE = "bcache-stats.log"
BCACHE_SYSFS = "bcache-sysfs.log"
DISKSTATS = "diskstats.log"
HOST_LOAD = "host-load.log"
TRACE = "trace"
RESTART = "restart"
BARE_SLOW, BARE_FAST = "bare-slow", "bare-fast"
SCHEMA = "hybridsim.validate/1"
