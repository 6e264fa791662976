"""The names of the files in a result folder, for all commands, the twin and the report.

    experiment.toml              a copy of the experiment that was run
    environment.json             settings, devices and commands; see `validate.environment`
    load.fio                     the job file that fio ran
    fio.json                     fio's JSON output, and its logs: one value a second
    fio_{bw,iops,lat,clat,slat}.N.log
    workload-start-uptime.txt    uptime in seconds when fio's first request arrived, and ...
    workload-end-uptime.txt      ... when fio ended
    dmcache-status.log           dm-cache: uptime and `dmsetup status --noflush`, each second
    writecache-status.log        dm-writecache: the same
    cas-stats.csv                Open CAS: uptime and `casadm --stats -o csv`, each second
    bcache-stats.log             bcache: exact counters, from the kernel's tracepoints
    bcache-sysfs.log             bcache: its own counters, which are late and wrap
    serve-stats.log              page: uptime and the counters of `hybridsim serve`, each second
    diskstats.log                uptime and the lines of /proc/diskstats of the devices
    host-load.log                uptime and /proc/loadavg
    trace/NAME.blktrace.CPU      if requested: blktrace of the cached, slow and fast device
    restart/                     if requested: the same files, of the run on the warm cache
    bare-slow/, bare-fast/       if requested: fio.JOB.json of runs on the bare devices

`hybridsim compare` takes the folder, and `restart/`; `hybridsim fit bare-slow/*.json` fits a disk.
"""

from __future__ import annotations

EXPERIMENT = "experiment.toml"
ENVIRONMENT = "environment.json"
JOB_FILE = "load.fio"
FIO_JSON = "fio.json"
FIO_LOGS = "fio"  # prefix of the names of its logs
BEGIN = "workload-start-uptime.txt"
END = "workload-end-uptime.txt"
DM_CACHE = "dmcache-status.log"
WRITECACHE = "writecache-status.log"
OPEN_CAS = "cas-stats.csv"
BCACHE_TRUE = "bcache-stats.log"
BCACHE_SYSFS = "bcache-sysfs.log"
SERVED = "serve-stats.log"
DISKSTATS = "diskstats.log"
HOST_LOAD = "host-load.log"
TRACE = "trace"
RESTART = "restart"
BARE_SLOW, BARE_FAST = "bare-slow", "bare-fast"
SCHEMA = "hybridsim.validate/1"
