"""fio's options: modelled, without meaning to a simulated machine, or not to be passed over."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hybridsim.foundation.suggest import nearest

MODELLED = frozenset({
    "ba", "bs", "bs_unaligned", "bsrange", "bssplit", "bwavgtime", "direct", "directory",
    "end_fsync", "fdatasync", "file_service_type", "filename", "fsync", "group_reporting",
    "io_size", "iodepth",
    "iodepth_batch", "iodepth_batch_complete_max", "iodepth_batch_complete_min", "iodepth_low",
    "ioengine", "iopsavgtime", "latency_percentile", "latency_run", "latency_target",
    "latency_window", "log_avg_msec", "log_hist_coarseness", "log_hist_msec",
    "log_offset", "loops", "max_latency", "name", "new_group", "norandommap", "nrfiles",
    "number_ios", "numjobs", "offset", "offset_increment", "percentage_random",
    "percentile_list", "ramp_time", "random_distribution", "random_generator", "randrepeat",
    "randseed", "rate", "rate_iops", "rate_process", "read_iolog",
    "replay_align", "replay_no_stall", "replay_redirect", "replay_scale", "replay_skip",
    "replay_time_scale", "runtime", "rw", "rw_sequencer", "rwmixread", "rwmixwrite",
    "size", "startdelay", "stonewall", "sync", "thinktime", "thinktime_blocks", "time_based",
    "write_bw_log", "write_hist_log", "write_iolog", "write_iops_log", "write_lat_log",
})  # fmt: skip
# What concerns the computer that fio runs on, its files' names and contents, or what is printed.
MEANINGLESS = frozenset({
    "allow_file_create", "allow_mounted_write", "atomic", "block_error_percentiles",
    "buffer_compress_chunk", "buffer_compress_percentage", "buffer_pattern", "cgroup",
    "cgroup_nodelete", "cgroup_weight", "clat_percentiles", "clocksource", "continue_on_error",
    "cpumask", "cpus_allowed", "cpus_allowed_policy", "create_fsync", "create_on_open",
    "create_serialize", "dedupe_global", "dedupe_mode", "dedupe_percentage",
    "dedupe_working_set_percentage", "description", "disable_bw_measurement", "disable_clat",
    "disable_lat", "disable_slat", "disk_util", "do_verify", "error_dump", "exec_postrun",
    "exec_prerun", "exitall_on_error", "fadvise_hint", "fallocate",
    "filename_format", "fixedbufs", "fsync_on_close", "gid", "gtod_cpu", "gtod_reduce", "hipri",
    "hugepage-size", "ignore_error", "invalidate", "iomem_align", "ioscheduler",
    "lat_percentiles", "lockfile", "lockmem", "log_compression", "log_compression_cpus",
    "log_entries", "log_max_value", "log_store_compressed", "mem", "nice", "numa_cpu_nodes",
    "numa_mem_policy", "openfiles", "overwrite", "per_job_logs", "prio", "prioclass",
    "rate_cycle", "read_iolog_chunked", "refill_buffers", "registerfiles", "scramble_buffers",
    "significant_figures", "slat_percentiles", "softrandommap", "sqthread_poll", "stats",
    "thinktime_spin", "thread", "uid", "unit_base",
    "unlink", "unlink_each_loop", "userspace_reap", "write_hint", "zero_buffers",
})  # fmt: skip
# Passed over with these values, refused with others.
HARMLESS: Mapping[str, tuple[str, ...]] = {
    "buffered": ("0", "1"),
    "io_submit_mode": ("inline",),
    "kb_base": ("1024",),
    "log_alternate_epoch": ("0",),
    "log_unix_epoch": ("0",),
    "verify": ("0", "none"),
    "zonemode": ("none",),
    "unified_rw_reporting": ("0", "none", "1", "mixed"),
    "serialize_overlap": ("0",),
    "file_append": ("0",),
    "fill_device": ("0",),
    "verify_only": ("0",),
    "pre_read": ("0",),
    "create_only": ("0",),
    "exitall": ("0",),
    "thinktime_blocks_type": ("complete", "issue"),
}
# They would change the load, or what is to be written, and are not supported.
REFUSED = frozenset({
    "exit_what", "experimental_verify", "filesize", "flow", "flow_id", "flow_sleep",
    "log_prio", "max_open_zones", "merge_blktrace_file", "merge_blktrace_iters",
    "merge_blktrace_scalars", "offset_align", "opendir", "profile", "rate_ignore_thinktime",
    "rate_iops_min", "rate_min",
    "steadystate", "steadystate_duration", "steadystate_ramp_time", "sync_file_range",
    "thinktime_iotime", "trim_backlog", "trim_backlog_batch", "trim_percentage",
    "trim_verify_zero", "unique_filename", "verify_async", "verify_backlog",
    "verify_backlog_batch", "verify_dump", "verify_fatal", "verify_interval", "verify_offset",
    "verify_pattern", "verify_state_load", "verify_state_save", "wait_for", "write_barrier",
    "zonecapacity", "zonerange", "zonesize", "zoneskip",
})  # fmt: skip
ALIASES = {
    "allrandrepeat": "randrepeat",
    "blockalign": "ba",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "bw_avg_time": "bwavgtime",
    "direct_io": "direct",
    "hugepage_size": "hugepage-size",
    "io_limit": "io_size",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "iodepth_batch_submit": "iodepth_batch",
    "iomem": "mem",
    "iops_avg_time": "iopsavgtime",
    "nr_files": "nrfiles",
    "readwrite": "rw",
    "start_delay": "startdelay",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
}
# On where they are named without a value.
SWITCHES = frozenset({
    "bs_unaligned", "clat_percentiles", "create_on_open", "direct", "disk_util", "end_fsync",
    "exitall", "fixedbufs", "fsync_on_close", "group_reporting", "gtod_reduce", "hipri",
    "invalidate", "lat_percentiles", "latency_run", "lockmem", "log_offset",
    "new_group", "norandommap", "overwrite", "randrepeat",
    "refill_buffers", "replay_no_stall", "slat_percentiles", "stonewall", "sync",
    "thread",
    "time_based", "unlink", "zero_buffers",
})  # fmt: skip
ENGINES = ("libaio", "io_uring", "posixaio", "solarisaio", "windowsaio", "io_uring_cmd")
SYNC_ENGINES = ("psync", "sync", "pvsync", "pvsync2", "vsync", "mmap")


def canonical(name: str) -> str:
    """Return the name under which an option is known, or raise ValueError."""
    plain = name.lower() if name.lower() != name and name not in ALIASES else name
    plain = ALIASES.get(plain, plain)
    known = MODELLED | MEANINGLESS | REFUSED | HARMLESS.keys()
    if plain not in known:
        near = nearest(name, sorted(known | ALIASES.keys()))
        suggested = f"did you mean {near!r}?" if near else "man fio lists what jobs can say"
        raise ValueError(f"no option {name!r} of fio's jobs is known: {suggested}")
    return plain


def objection(name: str, value: str) -> str:
    """Say why an option of fio cannot be passed over, or nothing."""
    if name in REFUSED:
        return f"{name} is not supported, and without it fio would do something else: take it out"
    if name in HARMLESS and value not in HARMLESS[name]:
        known = " or ".join(f"{name}={each}" for each in HARMLESS[name])
        return f"{name}={value} is not supported; {known} is"
    return ""


# Values.

_NUMBER = re.compile(r"\s*+(\d++(?:\.\d++)?+)\s*+([a-zA-Z]*+)\s*+", re.ASCII)
_POWERS = {letter: power for power, letter in enumerate("kmgtp", 1)}
_TIMES_NS = {
    "d": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6,
    "us": 10**3, "usec": 10**3, "msec": 10**6, "sec": 10**9,
}  # fmt: skip


def size(text: str) -> int:
    """Return bytes: 4k, 8192M and 10G count in 1024; 4Ki, as fio has it, in 1000."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size: write for instance 4k or 10G")
    unit = match[2].lower().removesuffix("b")
    base = 1000 if unit.endswith("i") else 1024
    power = _POWERS.get(unit.removesuffix("i")) if unit else 0
    if power is None:
        raise ValueError(f"{text!r}: unknown unit {match[2]!r}; k, m, g, t and p are known")
    digits, _, part = match[1].partition(".")
    number: int = int(digits + part) * base**power // 10 ** len(part)
    return number


def whole(text: str) -> int:
    """Return a number, perhaps in units of 1024."""
    return size(text)


def time_ns(text: str, unit_ns: int) -> int:
    """Return nanoseconds; a bare number counts in the option's own unit."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time: write for instance 30s, 500ms or 10m")
    if match[2] and match[2].lower() not in _TIMES_NS:
        raise ValueError(f"{text!r}: unknown unit {match[2]!r}; d, h, m, s, ms and us are known")
    return round(float(match[1]) * (_TIMES_NS[match[2].lower()] if match[2] else unit_ns))


def each_direction(text: str) -> list[str]:
    """Return a value for reads, writes and trims.

    One that is empty stands for the default; those left out are as the one before them.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3:
        raise ValueError(f"{text!r} has more than a value for reads, writes and trims")
    return parts + parts[-1:] * (3 - len(parts))
