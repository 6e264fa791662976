"""fio's options: simulated, ignored as irrelevant to a simulation, or refused; their values.

A `Reader` has the options of one job.  A dataclass whose fields are options declares them as such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from hybridsim.foundation.suggest import nearest

T = TypeVar("T")
Three = tuple[int, int, int]  # by direction: of reads, writes and trims

MODELLED = frozenset({
    "allrandrepeat", "ba", "bs", "bs_is_seq_rand",
    "bs_unaligned", "bsrange", "bssplit", "bwavgtime", "direct", "directory", "do_verify",
    "end_fsync", "exit_what", "exitall", "fdatasync", "flow", "flow_id", "flow_sleep",
    "rate_cycle", "rate_iops_min", "rate_min", "steadystate", "steadystate_duration",
    "steadystate_ramp_time", "wait_for", "fill_device",
    "file_service_type", "filename", "filename_format", "filesize",
    "fsync", "fsync_on_close", "group_reporting",
    "io_size", "iodepth",
    "iodepth_batch", "iodepth_batch_complete_max", "iodepth_batch_complete_min", "iodepth_low",
    "ioengine", "iopsavgtime", "latency_percentile", "latency_run", "latency_target",
    "latency_window", "log_avg_msec", "log_hist_coarseness", "log_hist_msec",
    "log_max_value", "per_job_logs",
    "log_offset", "loops", "max_latency", "name", "new_group", "norandommap", "nrfiles",
    "number_ios", "numjobs", "offset", "offset_align", "openfiles", "create_only",
    "rate_ignore_thinktime", "serialize_overlap", "offset_increment", "percentage_random",
    "percentile_list", "ramp_time", "random_distribution", "random_generator", "randrepeat",
    "randseed", "rate", "rate_iops", "rate_process", "read_iolog",
    "replay_align", "replay_no_stall", "replay_redirect", "replay_scale", "replay_skip",
    "replay_time_scale", "runtime", "rw", "rw_sequencer", "rwmixread", "rwmixwrite",
    "size", "startdelay", "stonewall", "sync", "thinktime", "thinktime_blocks",
    "thinktime_iotime", "time_based",
    "verify", "verify_backlog", "verify_backlog_batch", "zonemode", "zonerange", "zonesize",
    "zoneskip", "max_open_zones", "job_max_open_zones", "read_beyond_wp", "kb_base",
    "write_bw_log", "write_hist_log", "write_iolog", "write_iops_log", "write_lat_log",
})  # fmt: skip
# Ignored: they concern the host that runs fio, the files' names and contents, the output, or how an
# engine reaches its storage, which is the simulated volume here.
IGNORED = frozenset({
    "sync_file_range",  # each request is direct: no dirty page remains to be written
    "comm", "filetype", "job_start_clock_id", "priohint", "recover_zbd_write_error",
    "verify_header_seed", "verify_pattern_interval", "verify_write_sequence",  # of later releases
    "log_alternate_epoch", "log_unix_epoch",  # simulated time has no date
    "write_barrier",  # only pmem has barriers, and needs none here
    "allow_file_create", "allow_mounted_write", "apptag", "apptag_mask", "arbitration_burst",
    "arguments", "atomic", "bindname", "bit_bucket_data_len", "block_error_percentiles", "brick",
    "buffer_compress_chunk", "buffer_compress_percentage", "buffer_pattern", "busy_poll",
    "busy_wait_polling", "cdb_len", "cgroup", "cgroup_nodelete", "cgroup_weight", "chunck_size",
    "chunk_size", "clat_percentiles", "clientname", "clocksource", "clustername", "cmd_type",
    "cmdprio", "cmdprio_bssplit", "cmdprio_class", "cmdprio_hint", "cmdprio_percentage", "conf",
    "cont", "continue_on_error", "cpuchunks", "cpuload", "cpumask", "cpumode", "cpus_allowed",
    "cpus_allowed_policy", "create_fsync", "create_on_open", "create_serialize", "cuda_io",
    "data_placement", "dataplacement", "deac", "dedupe_global", "dedupe_mode", "dedupe_percentage",
    "dedupe_working_set_percentage", "description", "digest_enable", "direct_write_to_pmem",
    "disable_bw_measurement", "disable_clat", "disable_lat", "disable_pcie_sgl_merge",
    "disable_slat", "disk_util", "donorname", "dp_scheme", "enable_interrupts", "enable_sgl",
    "enable_vmd", "enable_wrr", "env_context", "error_dump", "exec_postrun", "exec_prerun",
    "exit_on_io_done", "exitall_on_error", "fadvise_hint", "fallocate", "fdp", "fdp_pli",
    "fdp_pli_select", "fixedbufs", "force_async", "gid", "gpu_dev_id", "gpu_dev_ids", "grace_time",
    "gtod_cpu", "gtod_reduce", "hdfs_use_direct", "hdfsdirectory", "high_weight", "hipri",
    "hipri_percentage", "hostname", "hostnqn", "http_host", "http_mode", "http_object_mode",
    "http_pass", "http_s3_key", "http_s3_keyid", "http_s3_region", "http_s3_security_token",
    "http_s3_sse_customer_algorithm", "http_s3_sse_customer_key", "http_s3_storage_class",
    "http_swift_auth_token", "http_user", "http_verbose", "https", "hugepage-size", "ignore_error",
    "ignore_zone_limits", "initial_zone_reset", "initiator", "inplace", "interface", "invalidate",
    "iomem_align", "ioscheduler", "lat_percentiles", "libaio_vectored", "libblkio_driver",
    "libblkio_force_enable_completion_eventfd", "libblkio_num_entries", "libblkio_path",
    "libblkio_pre_connect_props", "libblkio_pre_start_props", "libblkio_queue_size",
    "libblkio_vectored", "libblkio_wait_mode", "libblkio_write_zeroes_on_trim", "listen",
    "lockfile", "lockmem", "log_alternate_epoch_clock_id", "log_compression",
    "log_compression_cpus", "log_entries", "log_flags", "log_prio", "log_store_compressed",
    "low_weight", "md_per_io_size", "medium_weight", "mem", "mem_size_mb", "mss", "namenode",
    "nfs_url", "nice", "no_completion_thread", "nodelay", "nonvectored", "nowait", "num_range",
    "numa_cpu_nodes", "numa_mem_policy", "object_class", "overwrite", "percentage_sequential",
    "pi_act", "pi_chk", "pingpong", "plid_select", "plids", "pool", "port", "print_qid_mappings",
    "prio", "prioclass", "program", "proto", "protocol", "rbd_encryption_format",
    "rbd_encryption_passphrase", "rbdname", "read_iolog_chunked", "read_mode", "readfua",
    "refill_buffers", "registerfiles", "rocm_io", "rwmixcycle", "scramble_buffers", "serverip",
    "sg_write_mode", "sge_size", "shm_id", "significant_figures", "single-instance",
    "single_instance", "skip_bad", "slat_percentiles", "softrandommap", "spdk_conf",
    "spdk_json_conf", "spdk_mem", "spdk_rpc_listen_addr", "spdk_single_seg", "spdk_tracing",
    "sqthread_poll", "sqthread_poll_cpu", "stat_type", "stats", "std_redirect", "stream_id", "svcl",
    "thinktime_spin", "thp", "thread", "threads", "touch_objects", "ttl", "uid", "uncached",
    "unique_filename", "unit_base", "unlink", "unlink_each_loop", "uri", "userspace_reap", "verb",
    "verify_async", "verify_async_cpus", "verify_bytchk", "verify_dump", "verify_fatal",
    "verify_interval", "verify_mode", "verify_offset", "verify_pattern", "verify_state_save",
    "verifysort", "verifysort_nr", "volume", "window_size", "write_hint", "write_mode", "writefua",
    "wrr_priority", "xnvme_admin", "xnvme_async", "xnvme_be", "xnvme_dev_nsid", "xnvme_dev_subnqn",
    "xnvme_iovec", "xnvme_mem", "xnvme_sync", "zero_buffers", "zone_append",
})  # fmt: skip
# Ignored with these values, refused with others.
HARMLESS: Mapping[str, tuple[str, ...]] = {
    "buffered": ("0", "1"),
    "io_submit_mode": ("inline", "offload"),
    "unified_rw_reporting": ("0", "none", "1", "mixed", "2", "both"),
    "file_append": ("0",),
    "verify_only": ("0",),
    "pre_read": ("0",),
    "thinktime_blocks_type": ("complete", "issue"),
}
# Refused: they would change the requests or the output, and are not supported.
REFUSED = frozenset({
    "flow_watermark", "zone_reset_frequency", "zone_reset_threshold", "experimental_verify",
    "merge_blktrace_file", "merge_blktrace_iters",
    "merge_blktrace_scalars", "opendir", "profile",
    "end_syncfs", "log_issue_time", "ramp_size", "random_sequence_stride", "spr_cs",
    "spr_num_regions", "spr_op", "sprandom", "steadystate_check_interval", "thinkcycles",
    "verify_policy", "write_zone_remainder",
    "trim_backlog", "trim_backlog_batch", "trim_percentage",
    "trim_verify_zero",
    "verify_state_load",
    "zonecapacity",
})  # fmt: skip
ALIASES = {
    "blockalign": "ba",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "bw_avg_time": "bwavgtime",
    "direct_io": "direct",
    "disable_bw": "disable_bw_measurement",
    "fileoffset": "offset",
    "fill_fs": "fill_device",
    "hugepage_size": "hugepage-size",
    "io_limit": "io_size",
    "log_window_value": "log_max_value",
    "mem_align": "iomem_align",
    "ratecycle": "rate_cycle",
    "ratemin": "rate_min",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_interval": "steadystate_check_interval",
    "ss_ramp": "steadystate_ramp_time",
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
# Options that are on when no value follows.
SWITCHES = frozenset({
    "allrandrepeat", "bs_is_seq_rand",
    "bs_unaligned", "clat_percentiles", "create_on_open", "direct", "disk_util", "do_verify",
    "end_fsync",
    "exitall", "fill_device",
    "fixedbufs", "fsync_on_close", "group_reporting", "gtod_reduce", "hipri",
    "invalidate", "lat_percentiles", "latency_run", "lockmem", "log_offset",
    "new_group", "norandommap", "overwrite", "randrepeat",
    "listen", "pingpong", "read_beyond_wp", "refill_buffers", "replay_no_stall",
    "slat_percentiles", "stonewall", "sync",
    "thread",
    "time_based", "unlink", "verify_fatal", "verify_dump",
    "write_bw_log", "write_hist_log", "write_iops_log", "write_lat_log", "zero_buffers",
})  # fmt: skip
# Engines whose storage is not a block device or file of the host; the simulated volume replaces it.
ELSEWHERE_QUEUED = (
    "cpp_null", "dfs", "gfapi_async", "ime_aio", "libzbc", "pmemblk", "sg",
    "libblkio", "libiscsi", "librpma_apm_client", "librpma_gpspm_client", "nbd", "nfs", "rados",
    "rbd", "spdk", "spdk_bdev", "xnvme", "external",
)  # fmt: skip
ELSEWHERE_SYNC = (
    "dev-dax", "gfapi", "http", "ime_psync", "ime_psyncv", "libcufile", "libhdfs", "libhipfile",
    "libpmem", "mtd",
)  # fmt: skip
ELSEWHERE = frozenset(ELSEWHERE_QUEUED + ELSEWHERE_SYNC)
ENGINES = (
    "libaio", "io_uring", "posixaio", "solarisaio", "windowsaio", "io_uring_cmd", "null",
    *ELSEWHERE_QUEUED,
)  # fmt: skip
SYNC_ENGINES = ("psync", "sync", "pvsync", "pvsync2", "vsync", "mmap", "splice", *ELSEWHERE_SYNC)


# Engines that make no requests to storage: their jobs run, and issue nothing.
IDLE_ENGINES = (
    "cpuio", "exec", "falloc", "ftruncate", "filecreate", "filestat", "filedelete", "dircreate",
    "dirstat", "dirdelete", "librpma_apm_server", "librpma_gpspm_server",
)  # fmt: skip
_OF_NETWORK = "moves data over a network, not to storage: its jobs are not simulated"
OTHER_ENGINES = {
    **dict.fromkeys(
        ("net", "netsplice", "rdma"), _OF_NETWORK,
    ),
    "e4defrag": "moves extents inside of a file system: its jobs are not simulated",
    "page_fault": "touches memory, not storage: its jobs are not simulated",
}  # fmt: skip


def engine_of(value: str) -> str:
    """Return the name of the engine that a value of ioengine selects; `external` for a plugin."""
    name = value.split(",")[0]
    return "external" if name.startswith("external:") or name.endswith(".so") else name


def canonical(name: str) -> str:
    """Return the canonical name of an option; raise ValueError for an unknown one."""
    plain = name.lower() if name.lower() != name and name not in ALIASES else name
    plain = ALIASES.get(plain, plain)
    supported = MODELLED | IGNORED | REFUSED | HARMLESS.keys()
    if plain not in supported:
        near = nearest(name, sorted(supported | ALIASES.keys()))
        suggested = f"did you mean {near!r}?" if near else "man fio lists the options of jobs"
        raise ValueError(f"unknown fio job option {name!r}: {suggested}")
    return plain


def objection(name: str, value: str) -> str:
    """Return why an option of fio cannot be ignored, or ""."""
    if name in REFUSED:
        return f"{name} is not supported, and ignoring it would change the requests: remove it"
    if name in HARMLESS and value not in HARMLESS[name]:
        values = " or ".join(f"{name}={each}" for each in HARMLESS[name])
        return f"{name}={value} is not supported; use {values}"
    return ""


# Values.

_NUMBER = re.compile(r"\s*+(\d++(?:\.\d++)?+)([a-zA-Z]*+)\s*+", re.ASCII)
_HEX = re.compile(r"0[xX][0-9]++")  # of other digits fio reads some as units
_POWERS = {letter: power for power, letter in enumerate("bkmgtp")}
_TIMES_NS = {
    "d": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6,
    "us": 10**3, "usec": 10**3, "msec": 10**6,
}  # fmt: skip


def size(text: str) -> int:
    """Return bytes; as in fio, 4k, 4Ki, 8192M and 10G are multiples of 1024, 4KiB of 1000."""
    if _HEX.fullmatch(text):
        return int(text, 16)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; expected for example 4k or 10G")
    _check_whole(text, match[1])
    unit = match[2].lower()
    base = 1000 if unit.endswith("ib") else 1024
    prefix = unit if unit == "b" else unit.removesuffix("b").removesuffix("i")
    power = _POWERS.get(prefix) if unit else 0
    if power is None:
        raise ValueError(f"{text!r}: unknown unit {match[2]!r}; use k, m, g, t or p")
    number: int = int(match[1]) * base**power
    return number


def _check_whole(text: str, digits: str) -> None:
    """Refuse a decimal: fio drops all that follows the point, the unit included."""
    if "." in digits:
        raise ValueError(
            f"{text!r}: fio reads only the {digits.partition('.')[0]} before the point, without "
            "the unit; specify a whole number of a smaller unit"
        )


def plain(text: str) -> int:
    """Return a whole number without a unit."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def decimal(text: str) -> float:
    """Return a number that may have decimals."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def time_ns(text: str, unit_ns: int) -> int:
    """Return nanoseconds; a number without a unit is in `unit_ns`."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time; expected for example 30s, 500ms or 10m")
    _check_whole(text, match[1])
    if match[2] and match[2].lower() not in _TIMES_NS:
        raise ValueError(f"{text!r}: unknown unit {match[2]!r}; use d, h, m, s, ms or us")
    return int(match[1]) * (_TIMES_NS[match[2].lower()] if match[2] else unit_ns)


def filled(before: str, after: str) -> str:
    """Return the values of an option by direction; an empty part keeps the one before."""
    parts = [part.strip() for part in after.split(",")]
    if all(parts) or len(parts) > 3:
        return after
    return ",".join(part or old for part, old in zip(parts, each_direction(before)))


def each_direction(text: str) -> list[str]:
    """Return the values for reads, writes and trims.

    An empty part means the default; missing parts repeat the last one.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3:
        raise ValueError(f"{text!r} has more than three values (reads, writes, trims)")
    return parts + parts[-1:] * (3 - len(parts))


def percent(text: str) -> int:
    """Return a whole number of percent."""
    number = plain(text)
    if not 0 <= number <= 100:
        raise ValueError(f"{text}: a percentage must be 0 to 100")
    return number


@dataclass(frozen=True)
class OptionValue:
    """The value of an option, and the place where it is specified."""

    value: str
    place: str


class Reader:
    """Typed access to the options of one job; errors are collected with their places."""

    def __init__(
        self, specified: Mapping[str, OptionValue], wrong: list[str], place: str = "job"
    ) -> None:
        self.specified = specified
        self._wrong = wrong
        self._place = place

    def read(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Return the parsed value of an option, or the default."""
        option = self.specified.get(name)
        if option is None:
            return default
        try:
            return parse(option.value)
        except (ValueError, ZeroDivisionError) as error:
            text = str(error)
            if name not in text:
                text = f"{name}: {text}"
            if text not in self._wrong:
                self._wrong.append(f"{option.place}: {text}")
            return default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is 0 or 1."""
        return self.read(name, _flag, default)

    def choice(self, name: str, values: Mapping[str, T], default: T) -> T:
        """Return what one of several words means."""

        def parse(text: str) -> T:
            if text not in values:
                *others, last = values
                raise ValueError(f"{text}: must be {', '.join(others)} or {last}")
            return values[text]

        return self.read(name, parse, default)

    def number(self, name: str, default: int, minimum: int = 0) -> int:
        """Return a whole number of at least `minimum`."""

        def parse(text: str) -> int:
            number = size(text)
            if number < minimum:
                raise ValueError(f"{name}={text}: the minimum is {minimum}")
            return number

        return self.read(name, parse, default)

    def time(self, name: str, unit_ns: int) -> int:
        """Return a time in ns; a number without a unit is in `unit_ns`."""
        return self.read(name, lambda text: time_ns(text, unit_ns), 0)

    def three(self, name: str, parse: Callable[[str], T], default: T) -> tuple[T, T, T]:
        """Return the values for reads, writes and trims."""

        def each(text: str) -> tuple[T, T, T]:
            parts = [parse(part) if part else default for part in each_direction(text)]
            return parts[0], parts[1], parts[2]

        return self.read(name, each, (default,) * 3)

    def amount(self, name: str) -> tuple[int, int]:
        """Return (bytes, percent) of an option; one of the two is 0."""

        def parse(text: str) -> tuple[int, int]:
            if not text.strip().endswith("%"):
                return size(text), 0
            share = plain(text.strip()[:-1])
            if not 0 <= share <= 100:
                raise ValueError(f"{text}: a share must be 0% to 100%")
            return 0, share

        return self.read(name, parse, (0, 0))

    def refuse(self, text: str) -> None:
        """Record an error, which begins with the name of its option, at the option's place.

        If its default is the cause, the place is that of the job.
        """
        option = self.specified.get(re.split(r"\W", text, maxsplit=1)[0])
        self._wrong.append(f"{option.place if option else self._place}: {text}")


def _flag(text: str) -> bool:
    if text.strip() not in ("0", "1"):
        raise ValueError(f"{text!r}: must be 1 (on) or 0 (off)")
    return text.strip() == "1"


def option(read: Callable[[Reader], T]) -> T:
    """Declare a field of a dataclass that is read from options; its default is theirs."""
    return field(default=read(Reader({}, [])), metadata={"read": read})


def read_options(kind: Any, reader: Reader) -> dict[str, Any]:
    """Return the fields of a dataclass that are declared as options."""
    return {each.name: each.metadata["read"](reader) for each in fields(kind) if each.metadata}
