"""Random jobs for real fio and for this package: the same requests, or a refusal with a reason.

A job is a list of sections; a section is a dict of fio's options.  `drawn` makes one from a seed,
`real` runs it with the fio of the machine, `ours` generates it, and `shrunk` makes a job that
differs as small as it still differs.

    python tests/fio_differential.py --first 1 --jobs 5000 --log results.jsonl

compares many jobs, several of fio at a time as they mostly wait, and writes one line per job.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from fio_attempts import UNKNOWN, can_make

from hybridsim.foundation.errors import HybridsimError
from hybridsim.workloads.fio.job import Job, jobs_of
from hybridsim.workloads.fio.jobfile import read
from hybridsim.workloads.fio.pattern import DATA_SYNC, READ, SYNC, TRIM, WRITE
from hybridsim.workloads.fio.places import lay_out
from hybridsim.workloads.fio.requests import Feed, Feeds

Section = dict[str, str]
GLOBAL = "[global]"  # the key of a section that is the global one
Request = tuple[str, str, int, int]  # file ("" if unknown), kind, offset, length
Run = list[list[Request]]  # by process

KINDS = {READ: "read", WRITE: "write", TRIM: "trim", SYNC: "sync", DATA_SYNC: "sync"}
NUMBERS = {word: kind for kind, word in KINDS.items() if kind != DATA_SYNC}
SIMPLER_VALUES = {"size": ("64k", "256k"), "numjobs": ("2", "3"), "iodepth": ("1", "2"),
                  "bs": ("4k", "8k")}  # fmt: skip
SIMPLER = {name: values[0] for name, values in SIMPLER_VALUES.items()}
UNMAPPED = ("norandommap", "ba", "random_distribution")
REORDERED = ("io_uring", "posixaio")
# Options without an effect on the requests, and values of them.
OF_HOST = {
    "invalidate": ["0", "1"], "fallocate": ["none", "native", "posix", "keep", "0", "1"],
    "overwrite": ["1", "0"], "create_serialize": ["0", "1"], "create_fsync": ["0", "1"],
    "mem": ["malloc", "shm", "mmap"], "iomem_align": ["4k", "512"],
    "fadvise_hint": ["0", "1", "random", "sequential"], "clocksource": ["clock_gettime"],
    "clat_percentiles": ["0", "1"], "lat_percentiles": ["1"], "slat_percentiles": ["1"],
    "percentile_list": ["50:99:99.9"], "disable_slat": ["1"], "disable_bw": ["1"],
    "buffer_pattern": ["0xdeadbeef"], "buffer_compress_percentage": ["50", "100"],
    "dedupe_percentage": ["30"], "zero_buffers": ["", "1"], "scramble_buffers": ["0", "1"],
    "continue_on_error": ["none", "read", "all"], "nice": ["5"], "cpus_allowed": ["0"],
    "cpus_allowed_policy": ["shared"], "lockfile": ["none", "exclusive", "readwrite"],
    "unlink_each_loop": ["0"], "verify_interval": ["512", "4k"], "verify_dump": ["0"],
    "verify_async": ["0"], "exitall_on_error": ["1"],
    "exec_prerun": ["true"], "description": ["words"], "unit_base": ["8", "1"],
    "significant_figures": ["6"], "write_hint": ["none", "short"],
    "atomic": ["0"], "disk_util": ["0"], "stats": ["1"], "kb_base": ["1024"],
    "io_submit_mode": ["inline"], "hugepage-size": ["2m"], "gtod_reduce": ["0"],
    "unique_filename": ["0", "1"], "write_barrier": ["4"], "serialize_overlap": ["1"],
    "rate_ignore_thinktime": ["1"], "log_max_value": ["1"], "softrandommap": ["1"],
    "allow_file_create": ["1"], "prio": ["4"], "prioclass": ["2"], "verify_backlog": ["0"],
}  # fmt: skip
FOLDERS = ("d1", "d2")
LIMIT = 3000  # requests of a process that are compared
STEERED = 600  # of a mix with rates, which are generated one by one
CAPACITY = 1 << 40
NOT_DUE = 1 << 60  # ns
KEPT = 4 * LIMIT  # of a job that a time ends: it may log millions
SEEDS = 200  # that are tried where a job's random seeds are fio's own
TIMEOUT_S, OURS_S = 60, 240  # the latter also on a busy machine


def drawn(seed: int) -> list[Section]:
    """Return a random job: for even seeds with the options of public job files, else rare ones."""
    dice = random.Random(seed)
    draw = _public if seed % 2 == 0 else _section
    job = [draw(dice) for _ in range(dice.choice([1, 1, 1, 1, 2, 3]))]
    for number, section in enumerate(job):
        _add_of_host(dice, section, 0.15 if seed % 2 == 0 else 0.4)
        if _maybe(dice, 0.2 if seed % 2 == 0 else 0.5):
            _add_relations(dice, section, number)
        _prune(section)
    if any("time_based" in section for section in job):  # it may get into the global section
        for section in job:
            if "runtime" in section:
                section["runtime"] = "100ms"
    if len(job) > 1 and _maybe(dice, 0.3):
        common = [name for name in job[0] if _maybe(dice, 0.5)]
        if job[0].get("ioengine") == "null":
            common = [name for name in common if name not in ("ioengine", "rw")]
        first = {name: value for name, value in job[0].items() if name not in common}
        shared = [{GLOBAL: "1"} | {name: job[0][name] for name in common}, first, *job[1:]]
        whole = [section for _, section in sections_of(shared)]
        for section in whole:
            _prune(section)
        if whole == [section for _, section in sections_of(shared)]:
            job = shared
    return job


def _add_of_host(dice: random.Random, section: Section, share: float) -> None:
    """Add options that concern the host, the contents of files or the output: none, or several."""
    while _maybe(dice, share):
        name = dice.choice(list(OF_HOST))
        section[name] = dice.choice(OF_HOST[name])


def _add_relations(dice: random.Random, section: Section, number: int) -> None:
    """Add an option about rates, think times, or other jobs; more rarely a second one."""
    pick = dice.choice
    is_mixed = section["rw"].partition(":")[0] in ("rw", "randrw", "readwrite")
    kinds = ["rate", "rate_iops", "rate_process", "think", "batch", "engine", "sync", "folder"]
    kinds += ["exit", "wait", "flow", "group", "log", "offset", "ramp"]
    for kind in [pick(kinds)] + [pick(kinds)] * _maybe(dice, 0.3):
        if kind == "rate":
            section["rate"] = pick(["20m", "100m,50m", "50m,", ",80m", "10m,20m,30m", "1g"])
            section.pop("rate_iops", None)
        elif kind == "rate_iops":
            values = ["5000", "9000,3000", "8000,", ",20000", "20000,10000,5000"]
            section["rate_iops"] = pick(values)
            section.pop("rate", None)
        elif kind == "rate_process":
            section |= {"rate_process": "poisson", "rate_iops": pick(["20000", "9000,30000"])}
            section.pop("rate", None)
        elif kind == "think":
            section |= {"thinktime": pick(["20", "50us"]), "thinktime_spin": pick(["0", "10"])}
            section["thinktime_blocks"] = pick(["2", "16", "3"])
            section["thinktime_blocks_type"] = pick(["complete", "issue"])
        elif kind == "batch" and "trim" not in section["rw"]:
            section |= {"ioengine": "libaio", "iodepth": pick(["8", "16", "7"])}
            section["iodepth_batch_complete_min"] = pick(["0", "1", "4", "8"])
            if _maybe(dice, 0.5):
                section["iodepth_batch_complete_max"] = pick(["4", "8", "16"])
        elif kind == "engine" and "trim" not in section["rw"]:
            section["ioengine"] = pick(["pvsync", "pvsync2", "vsync", "mmap", "sync"])
            if section["ioengine"] == "vsync":
                section.pop("iodepth", None)
        elif kind == "sync" and "trim" not in section["rw"]:
            section["sync"] = pick(["1", "0", "dsync", "sync", "none"])
        elif kind == "folder":
            section["directory"] = pick(["d1", "d1:d2", "d2/", "."])
        elif kind == "exit":
            section |= {"exitall": "", "exit_what": pick(["group", "all", "stonewall"])}
        elif kind == "wait" and number:
            section["wait_for"] = f"j{pick(range(number))}"
            section.pop("stonewall", None)
        elif kind == "flow":
            section |= {"flow": pick(["1", "2", "8"]), "flow_id": pick(["0", "1"])}
        elif kind == "group":
            section |= {"new_group": "", "group_reporting": ""}
        elif kind == "log":
            name = pick(["write_bw_log", "write_iops_log"])
            section[name] = pick(["", "x"])
        elif kind == "offset":
            section |= {"offset": pick(["3k", "32k"]), "offset_align": pick(["0", "8k"])}
        elif kind == "ramp" and not is_mixed:
            section["ramp_time"] = "0"


def _prune(section: Section) -> None:
    """Remove options that make the log incomparable: fio's random seed, failing verification."""
    kind = section["rw"].partition(":")[0]
    if "verify" in section and "write" not in kind and kind not in ("rw", "randrw"):
        del section["verify"]  # fio reads what was never written, and fails
    if "verify" in section and kind in ("rw", "randrw", "readwrite"):
        section["verify_fatal"] = "0"  # a mix reads what it did not write
    if "read" in kind or kind in ("rw", "randrw"):  # fio would read empty files
        section.pop("create_on_open", None)
    if "filename" in section:  # another process may find the file gone, or empty
        section.pop("unlink", None)
    if _is_by_rates(section) and section.get("ioengine") in REORDERED:
        section["ioengine"] = "libaio"  # their latency logs do not have the order of directions
    if _is_by_rates(section):  # where the reads of verify begin in the log depends on the time
        section.pop("verify", None)
    if "verify_backlog" in section and "verify" not in section:
        del section["verify_backlog"]
    if "verify_backlog" in section:  # which writes are complete depends on the time
        section.pop("iodepth", None)
    if section.get("iodepth", "1") != "1" and section.get("fsync", section.get("fdatasync")):
        section.pop("time_based", None)


def _public(dice: random.Random) -> Section:
    """Return a section whose options are as frequent as in 248 public job files."""
    pick = dice.choice
    kinds = ["randwrite"] * 28 + ["randread"] * 24 + ["write"] * 22 + ["read"] * 14
    kinds += ["randrw"] * 9 + ["rw"] * 3 + ["trim", "randtrim", "trimwrite", "readwrite"]
    kind = pick(kinds)
    kib = pick([64, 1024, 1024, 1024, 4096, 4096, 10240, 100, 1000])
    section = {"rw": kind, "size": f"{kib}k"}
    shares: list[tuple[float, str, list[str]]] = [
        (0.87, "bs", ["4k"] * 12 + ["8k"] * 6 + ["64k", "64k", "128k", "512", "1m", "16k", "4096"]),
        (0.87, "ioengine", ["libaio"] * 20 + ["sync", "sync", "psync", "io_uring", "posixaio"]),
        (0.66, "iodepth", ["1", "1", "1", "8", "8", "32", "32", "128", "16", "4", "64", "2"]),
        (0.62, "direct", ["1"] * 12 + ["0"]),
        (0.5, "numjobs", ["1"] * 10 + ["8", "8", "4", "4", "2", "3", "10"]),
        (0.38, "norandommap", ["1", ""]),
        (0.34, "thread", ["", "1"]),
        (0.32, "group_reporting", ["", "1"]),
        (0.28, "randrepeat", ["0"]),
        (0.26, "refill_buffers", [""]),
        (0.3, "stonewall", ["", "1"]),
        (0.16, "gtod_reduce", ["0"]),
        (0.15, "buffered", ["0"]),
        (0.12, "verify", ["md5", "md5", "crc32c", "sha256", "meta", "crc32c-intel"]),
        (0.05, "do_verify", ["1", "0"]),
        (0.06, "loops", ["2", "1", "4", "3"]),
        (0.05, "io_size", [f"{kib // 2}k", f"{kib * 2}k", "64k", "256k"]),
        (0.05, "ramp_time", ["0"]),
        (0.05, "verify_backlog", ["8", "1", "32", "1024"]),
        (0.05, "offset", ["0", "64k", "120k", "1m"]),
        (0.04, "nrfiles", ["4", "5", "2", "8"]),
        (0.04, "number_ios", ["20", "1000", "19", "5"]),
        (0.02, "startdelay", ["50ms", "0", "20ms"]),
        (0.02, "iodepth_batch", ["16", "2", "4"]),
        (0.02, "rate_iops", ["100000"]),
        (0.02, "fsync", ["1", "32"]),
        (0.02, "end_fsync", ["1"]),
        (0.02, "filename_format", ["t.$jobnum", "r.$jobnum.$filenum", "f.$clientuid.$jobnum"]),
        (0.02, "create_on_open", ["1"]),
        (0.03, "filename", ["shared", "folder_name"]),
    ]  # fmt: skip
    for share, name, values in shares:
        if _maybe(dice, share):
            section[name] = pick(values)
    if "trim" in kind:
        section |= {"ioengine": "null", "iodepth": "1"}
    if kind in ("rw", "randrw", "readwrite") and _maybe(dice, 0.6):
        section[pick(["rwmixread", "rwmixread", "rwmixwrite"])] = pick(["70", "60", "50", "80"])
    if _maybe(dice, 0.25):
        section |= {"time_based": pick(["", "1"]), "runtime": pick(["50ms", "100ms"])}
    elif _maybe(dice, 0.3):
        section["runtime"] = pick(["30", "60s", "10"])
    sized = dice.random()
    if sized < 0.07:
        section["bssplit"] = pick(
            ["64k/40:1024k/60,1024k/100", "4k/10:64k/50:32k/40", "512/25:1k/:2k/:4k/",
             "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10", "8k/50:64k/50"]
        )  # fmt: skip
    elif sized < 0.1:
        section["bsrange"] = pick(["512-4k", "16k-1M", "1k-4k", "4k-4k", "4k:512k"])
    if kind.startswith("rand") and _maybe(dice, 0.05):
        section["random_distribution"] = pick(
            ["zoned:50/5:30/15:20/80", "zoned:50/5:30/15:20/", "zipf:0.5", "zipf:1.2", "normal:10",
             "zoned:60/10:30/20:8/30:2/40", "pareto:0.3", "random"]
        )  # fmt: skip
    if _maybe(dice, 0.02):
        section |= {"zonemode": "strided", "zonesize": "64k", "zoneskip": pick(["64k", "128k"])}
    if _maybe(dice, 0.1):
        section["size"] = section["size"].replace("k", pick(["K", "ki", "kb", "KiB"]))
        section["kb_base"] = "1024"
    return section


def _maybe(dice: random.Random, share: float) -> bool:
    return dice.random() < share


def _section(dice: random.Random) -> Section:
    pick = dice.choice
    kinds = ["randread"] * 6 + ["randwrite"] * 5 + ["read"] * 5 + ["write"] * 4
    kinds += ["randrw"] * 5 + ["rw"] * 3 + ["readwrite", "trim", "randtrim", "trimwrite"]
    kinds += ["randtrimwrite"]
    kind = pick(kinds)
    is_random, is_mixed = kind.startswith("rand"), kind in ("rw", "randrw", "readwrite")
    kib = pick([64, 256, 256, 1024, 1024, 1024, 4096, 62, 100, 1000, 333])
    section = {"rw": kind, "size": f"{kib}k"}
    if _maybe(dice, 0.85):
        section["bs"] = pick(["4k"] * 8 + ["8k", "16k", "64k", "512", "3k", "4096", "128k"])
    if "trim" in kind:
        section["ioengine"] = "null"
    elif _maybe(dice, 0.8):
        section["ioengine"] = pick(["libaio"] * 5 + ["psync", "sync", "io_uring", "posixaio"])
    if _maybe(dice, 0.6):
        section["iodepth"] = pick(["1", "1", "4", "8", "16", "32"])
        if "trim" in kind:  # the null engine logs a request again that it was too busy for
            section["iodepth"] = "1"
    if _maybe(dice, 0.3):
        section["numjobs"] = pick(["1", "1", "2", "2", "3", "4", "5", "8"])
    if is_mixed and _maybe(dice, 0.6):
        section[pick(["rwmixread", "rwmixread", "rwmixwrite"])] = pick(["70", "50", "30", "90"])
    if _maybe(dice, 0.1):
        section["bs"] = pick(["4k,8k", "8k,4k", "4k,64k", ",8k", "4k,8k,16k"])
    if _maybe(dice, 0.06):
        section["bsrange"] = pick(["4k-16k", "1k-4k", "4k-16k,8k-64k", "512-3k"])
    elif _maybe(dice, 0.08):
        splits = ["4k/50:64k/50", "4k/10:8k/20:16k/", "8k/:4k/", "4k/60:64k/40,8k/50:16k/50"]
        section["bssplit"] = pick([*splits, "512/10:1k/5:4k/85", "4k/30:8k/30"])
    if _maybe(dice, 0.04):
        section["bs_unaligned"] = "1"
    if _maybe(dice, 0.03):
        section["bs_is_seq_rand"] = "1"
    if is_random:
        if _maybe(dice, 0.2):
            section["norandommap"] = pick(["1", ""])
        if _maybe(dice, 0.15):
            zones = ["zoned:60/10:30/20:8/30:2/40", "zoned:90/0.4:10/99.6", "zoned:50/5:50/"]
            zones += ["zoned_abs:95/32k:5/32k"]
            spreads = ["zipf", "zipf:0.8", "zipf:1.2", "pareto:0.2", "pareto:0.9", "normal:10"]
            section["random_distribution"] = pick(
                [*spreads, "zipf:1.2:0.3", "normal:5:0.2", *zones]
            )
        if _maybe(dice, 0.08):
            section["random_generator"] = pick(["lfsr", "lfsr", "tausworthe64", "tausworthe"])
        if _maybe(dice, 0.06):
            section["percentage_random"] = pick(["50", "80", "0", "50,20"])
        if _maybe(dice, 0.06):
            section["rw"] += pick([":2", ":8", ":4"])
        if _maybe(dice, 0.05):
            section["ba"] = pick(["8k", "4k", "512", "16k"])
    elif _maybe(dice, 0.06):
        section["rw"] += pick([":4k", ":8k", ":-8k", ":12k", ":-16k"])
    if _maybe(dice, 0.04):
        section["rw_sequencer"] = pick(["identical", "sequential"])
    if _maybe(dice, 0.15):
        section["offset"] = pick(["64k", "4k", "1m", "10k"])
    if _maybe(dice, 0.05):
        section["offset_increment"] = pick(["64k", "1m"])
    if _maybe(dice, 0.12):
        section["io_size"] = pick([f"{kib * 2}k", f"{kib * 3}k", f"{kib // 2}k", "100k"])
    if _maybe(dice, 0.12):
        section["loops"] = pick(["2", "3"])
    if _maybe(dice, 0.08):
        section["number_ios"] = pick(["20", "100", "1000"])
    if _maybe(dice, 0.08):
        section["randseed"] = pick(["1234", "0", "77"])
    if _maybe(dice, 0.08):
        section[pick(["randrepeat", "allrandrepeat"])] = "1"
    if _maybe(dice, 0.06):
        section["allrandrepeat"] = "0"
    if _maybe(dice, 0.12):
        section[pick(["fsync", "fsync", "fdatasync"])] = pick(["1", "4", "32"])
    if _maybe(dice, 0.1):
        section[pick(["end_fsync", "fsync_on_close"])] = "1"
    if _maybe(dice, 0.1):
        section["nrfiles"] = pick(["2", "3", "4"])
        if _maybe(dice, 0.4):
            orders = ["sequential", "random", "roundrobin:4", "zipf", "pareto:0.3", "random:3"]
            section["file_service_type"] = pick(orders)
        if _maybe(dice, 0.2):
            section["openfiles"] = pick(["1", "2"])
    if _maybe(dice, 0.04):
        section["filename_format"] = pick(["$jobname-$jobnum-$filenum", "f.$JOBNUM.$filenum"])
    elif _maybe(dice, 0.06):
        section["filename"] = pick(["shared", "one:two"])
    if _maybe(dice, 0.06):
        section["filesize"] = pick(["256k", "1m", "2m"])
        if _maybe(dice, 0.6):
            del section["size"]
        elif _maybe(dice, 0.5):
            section["size"] = pick(["50%", "33%", "100%", "7%"])
    if _maybe(dice, 0.3):
        section["direct"] = "0"
    if _maybe(dice, 0.1):
        section["thread"] = "1"
    if _maybe(dice, 0.15):
        section["group_reporting"] = pick(["", "1"])
    if _maybe(dice, 0.2):
        section["stonewall"] = pick(["", "1"])
    if _maybe(dice, 0.05):
        section["iodepth_batch"] = pick(["2", "4"])
    if _maybe(dice, 0.03):
        section["time_based"] = "1"
        section["runtime"] = pick(["100ms", "200ms"])
    elif _maybe(dice, 0.15):
        section["runtime"] = pick(["30", "60s"])
    if _maybe(dice, 0.05):
        section["verify"] = pick(["crc32c", "md5"])
        if _maybe(dice, 0.3):
            section["do_verify"] = "0"
        elif _maybe(dice, 0.3):
            section["verify_backlog"] = pick(["1", "8", "64", "5"])
            if _maybe(dice, 0.4):
                section["verify_backlog_batch"] = pick(["1", "4", "100"])
    if _maybe(dice, 0.04):
        section["startdelay"] = pick(["20ms", "100ms"])
    if _maybe(dice, 0.06):
        section["zonemode"] = "strided"
        section["zonesize"] = pick(["64k", "128k", "256k", "20k"])
        if _maybe(dice, 0.6):
            section["zonerange"] = pick(["64k", "32k", "256k", "128k"])
        if _maybe(dice, 0.6):
            section["zoneskip"] = pick(["64k", "128k", "1m", "0"])
    _add_rarer(dice, section, kib)
    if _maybe(dice, 0.04):
        section["thinktime"] = "10"
    if _maybe(dice, 0.03):
        section["rate_iops"] = "200000"
    if _maybe(dice, 0.03):
        section["create_on_open"] = "1"
    if _maybe(dice, 0.03):
        section["unlink"] = pick(["1", "0"])
    return section


def _add_rarer(dice: random.Random, section: Section, kib: int) -> None:
    """Add options whose effects on each other are easily missed."""
    pick = dice.choice
    if _maybe(dice, 0.04):
        section["nrfiles"] = pick(["2", "3", "1"])
        section["filename"] = pick(["one:two:three", "one:two", "one:one", "three"])
    if _maybe(dice, 0.03):
        section["bsrange"] = pick(["4k:16k", "16k-4k", "1k-3k", "512:2k,4k-8k", "6k-20k"])
    if _maybe(dice, 0.03):
        section["bssplit"] = pick(
            ["4k/60:8k/60", "4k/0:8k/40:16k/", "512/1:64k/99", "3k/50:5k/50", "4k,8k",
             "4k,8k/50:16k", "4k/33:8k/33:16k/33", "2k/100", "4k/120:8k/5"]
        )  # fmt: skip
    if _maybe(dice, 0.03):
        section["size"] = pick(["65536b", "1M", "300000", "1mib", "777k", "12345k"])
    if _maybe(dice, 0.03):
        section["rwmixwrite"], section["rwmixread"] = pick(["30", "100"]), pick(["80", "0"])
    if _maybe(dice, 0.03):
        section["file_service_type"] = pick(
            ["normal:10", "gauss:5", "zipf:1.2:0.3", "sequential:3", "random:7", "roundrobin:1"]
        )
        section["nrfiles"] = pick(["3", "5"])
    if _maybe(dice, 0.03):
        section["iodepth_low"] = pick(["1", "2"])
    if _maybe(dice, 0.03):
        section["thinktime"], section["thinktime_blocks"] = "5", pick(["1", "4"])
    if _maybe(dice, 0.03):
        section["random_distribution"] = pick(
            ["zoned_abs:50/64k:50/128k", "pareto:0.1:0.5", "normal:60", "normal:30:0.1", "zipf:2.5",
             "zoned:100/", "zoned:30/50:70/", "normal"]
        )  # fmt: skip
    if _maybe(dice, 0.03):
        section["numjobs"] = pick(["2", "3"])
        section["offset_increment"] = pick([f"{kib}k", "4k", "10k"])
    if _maybe(dice, 0.03):
        section["number_ios"], section["loops"] = pick(["7", "50"]), pick(["2", "3"])
    if _maybe(dice, 0.03):
        section["io_size"] = pick(["4k", "4m", f"{kib + 2}k", f"{4 * kib}k"])
    if _maybe(dice, 0.02):
        section["unified_rw_reporting"] = pick(["1", "mixed"])
    if _maybe(dice, 0.02):
        section["randrepeat"], section["allrandrepeat"] = pick(["0", "1"]), pick(["0", "1"])
    if _maybe(dice, 0.02):
        section["randseed"] = pick(["9999999999", "1", "2147483647", "4294967296"])
    if _maybe(dice, 0.02):
        section["percentage_random"] = pick(["0", "1", "99", "30,70", "100,0", "50,50,50"])
    if _maybe(dice, 0.02):
        section["rw_sequencer"] = pick(["identical", "sequential"])
        section["rw"] = section["rw"].partition(":")[0] + ":3"
    if _maybe(dice, 0.02):
        section["ba"] = pick(["8k,4k", "2k", "3k", "64k"])
    if _maybe(dice, 0.02):
        section["openfiles"], section["nrfiles"], section["iodepth"] = "1", "3", "1"
    if _maybe(dice, 0.02):
        section["exitall"] = "1"
    if _maybe(dice, 0.02):
        section["norandommap"], section["softrandommap"] = pick(["0", "1"]), "1"


def text(job: list[Section], more: Callable[[int, Section], list[str]] | None = None) -> str:
    """Return a job file."""
    lines = []
    for number, section in enumerate(job):
        lines.append(GLOBAL if GLOBAL in section else f"[j{number}]")
        options = [(name, value) for name, value in section.items() if name != GLOBAL]
        lines += [f"{name}={value}" if value else name for name, value in options]
        lines += more(number, section) if more else []
    return "\n".join([*lines, ""])


def sections_of(job: list[Section]) -> list[tuple[int, Section]]:
    """Return the jobs with their numbers and all their options."""
    common: Section = {}
    sections = []
    for number, section in enumerate(job):
        if GLOBAL in section:
            common = common | section
        else:
            sections.append((number, common | section))
    return sections


def is_by_rates(job: list[Section]) -> bool:
    """Return whether the time decides in a job which direction is next."""
    return any(_is_by_rates(section) for _, section in sections_of(job))


def _is_by_rates(section: Section) -> bool:
    is_mixed = section.get("rw", "").partition(":")[0] in ("rw", "randrw", "readwrite")
    return is_mixed and ("rate" in section or "rate_iops" in section)


def _clones(section: Section) -> int:
    return int(section.get("numjobs", "1"))


def has_latencies(section: Section) -> bool:
    """Return whether the requests of a job are compared with those of fio's latency logs.

    Clones share one request log; the null engine logs a request again that it was too busy for.
    """
    is_busy = section.get("ioengine") == "null" and section.get("iodepth", "1") != "1"
    return _clones(section) > 1 or is_busy


def real(job: list[Section], program: str = "fio") -> Run | str:
    """Return the requests that fio logs, by process; its error message if it refuses the job."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    logs = Path(tempfile.mkdtemp())
    is_late = False
    try:
        whole = dict(sections_of(job))
        for name in FOLDERS:
            (folder / name).mkdir()

        def more(number: int, section: Section) -> list[str]:
            if GLOBAL in section:
                return []
            if not has_latencies(whole[number]):
                return [f"write_iolog={logs}/{number}.log"]
            # A log that grows waits for all outstanding requests, which changes their order.
            size = f"log_entries={1 << 15}"
            return [f"write_lat_log={logs}/{number}", "log_offset=1", size]

        (logs / "job.fio").write_text(text(job, more))
        limit = ["timeout", "--signal=KILL", str(TIMEOUT_S)]
        printed = logs / "printed"
        with printed.open("w") as stream:  # a pipe would stay open while a process of fio lives
            done = subprocess.run(
                [*limit, program, f"{logs}/job.fio"], cwd=folder, stdout=stream, stderr=stream
            )
        is_late = done.returncode in (-9, 137)
        if is_late:
            return "timeout"
        output = printed.read_text(errors="replace")
        if done.returncode or "got signal" in output:  # one of its processes may die alone
            return f"exit {done.returncode}: {output[-1000:]}"
        run: Run = []
        for number, section in whole.items():
            if not has_latencies(section):
                run.append(_of_iolog(logs / f"{number}.log", _kept(section)))
                continue
            first = len(run) + 1
            for thread in range(first, first + _clones(section)):
                path = logs / f"{number}_clat.{thread}.log"
                run.append(_of_latencies(path, _kept(section)))
        return run
    except FileNotFoundError as error:  # fio ended a job before it began
        return f"no log: {error}"
    finally:
        if is_late:
            _end_processes_of(logs)
        for each in (folder, logs):  # processes of fio may still write there
            shutil.rmtree(each, ignore_errors=True)


def _end_processes_of(folder: Path) -> None:
    """End the processes of fio whose job file is in a folder: they have sessions of their own."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in entry.read_bytes():
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:  # it has ended
            continue


def _kept(section: Section) -> int | None:
    """Return the number of requests that matter; None: all."""
    return KEPT if "time_based" in section else None


def _of_iolog(path: Path, kept: int | None) -> list[Request]:
    requests: list[Request] = []
    for line in path.read_text().splitlines()[1:kept]:
        fields = line.split()
        if len(fields) < 5:
            continue
        kind = {"datasync": "sync"}.get(fields[2], fields[2])
        if kind == "sync":
            request = (fields[1], kind, 0, 0)
        else:
            request = (fields[1], kind, int(fields[3]), int(fields[4]))
        requests.append(request)
    return requests


def _of_latencies(path: Path, kept: int | None) -> list[Request]:
    rows = (line.split(",") for line in path.read_text().splitlines()[:kept])
    return [("", KINDS[int(row[2])], int(row[4]), int(row[3])) for row in rows]


def as_in_latencies(requests: list[Request]) -> list[Request]:
    """Return requests as fio's latency logs have them: without files and syncs."""
    return [("", *rest) for _, *rest in requests if rest[0] != "sync"]


def ours(job: list[Section], logged: Run | None = None) -> Run:
    """Return the requests that this package generates, by process.

    In a mix with rates the time decides whether a read or a write is next.  There each request has
    the direction of the logged one, as if it were due and the other direction were not.  Raises
    HybridsimError for a job that it refuses.
    """
    feeds = Feeds(lay_out(_accepted(job), CAPACITY))
    run: Run = []
    for process, (feed, each) in enumerate(zip(feeds._feeds, _accepted(job))):
        count, limit = 0, LIMIT
        if feed.is_by_rates and logged:
            steer(feed, each, logged[process : process + 1])
            limit = STEERED if len(logged[process]) > STEERED else LIMIT
        while not feed.is_last and count < limit:
            feed.rows(len(feed._rows[0]))
            count += feed.generated[-1].shape[1]
        made = np.concatenate([np.zeros((4, 0), np.int64), *feed.generated], axis=1)
        run.append([
            (each.files[file], KINDS[kind], offset, length)
            for kind, offset, length, file in made.T.tolist()
        ])  # fmt: skip
    return run


def _accepted(job: list[Section]) -> list[Job]:
    with tempfile.NamedTemporaryFile("w", suffix=".fio") as stream:
        stream.write(text(job))
        stream.flush()
        return [replace(each, iolog="x") for each in jobs_of(read([stream.name]))]


def steer(feed: Feed, job: Job, logged: Run) -> None:
    """Let a feed generate requests in the directions of logged ones."""
    theirs = [request[1] for requests in logged for request in requests]
    has_syncs = not has_latencies(dict(job.specified))

    seen = at = 0  # parts that the feed generated, and requests in them

    def due_ns(direction: int) -> int:
        nonlocal seen, at
        for part in feed.generated[seen:]:
            at += sum(has_syncs or KINDS[kind] != "sync" for kind in part[0].tolist())
        seen = len(feed.generated)
        is_due = at >= len(theirs) or theirs[at] in (KINDS[direction], "sync")
        return 0 if is_due else NOT_DUE

    feed._next_ns = due_ns  # type: ignore[method-assign]


def stored(job: list[Section]) -> dict[str, object]:
    """Run a job with fio and return it with its requests: the first ones, and a digest of all."""
    logged = real(job)
    if isinstance(logged, str):
        raise SystemExit(f"fio refuses {job}: {logged}")
    return {"job": job, "processes": [summary(requests) for requests in logged]}


def summary(requests: list[Request]) -> dict[str, object]:
    """Return the number of requests, the first ones, and a digest of all."""
    digest = hashlib.sha256(json.dumps(requests).encode()).hexdigest()
    return {"count": len(requests), "first": [list(each) for each in requests[:8]], "sha": digest}


@dataclass
class Verdict:
    """What became of a job: equal, refused, wrong, failed in fio alone, or invalid for both."""

    what: str
    why: str = ""


def compared(job: list[Section], logged: Run | str) -> Verdict:
    """Return how this package's requests compare with logged ones."""
    if logged == "timeout":  # fio itself does not end
        return Verdict("failed", logged)
    try:
        run = ours(job, logged if isinstance(logged, list) else None)
    except HybridsimError as error:
        return Verdict("invalid" if isinstance(logged, str) else "refused", str(error))
    if isinstance(logged, str):
        return Verdict("failed", logged)
    if len(run) != len(logged):
        return Verdict("wrong", f"{len(run)} processes instead of {len(logged)}")
    sections = [section for _, section in sections_of(job) for _ in range(_clones(section))]
    for number, (mine, theirs, section) in enumerate(zip(run, logged, sections)):
        is_reordered = False
        if has_latencies(section):
            mine = as_in_latencies(mine)
            # logged in order of completion
            is_reordered = (
                section.get("ioengine") in REORDERED and section.get("iodepth", "1") != "1"
            )
        is_cut = len(theirs) > (STEERED if _is_by_rates(section) else LIMIT)
        is_cut = is_cut or "time_based" in section
        is_cut = is_cut or section.get("runtime", "").endswith("ms")  # may end earlier
        is_cut = is_cut or {"flow", "runtime"} <= section.keys()  # it may wait until its end
        is_cut = is_cut or any("exitall" in each for each in sections)
        if is_cut:
            theirs = _without_last_syncs(theirs)
            if "runtime" in section and any(name in section for name in ("rate", "rate_iops")):
                # The time may end while fio waits for the rate.  The file then counts as done, and
                # one request of the next file follows if it is due: repeated runs differ in it.
                theirs = theirs[:-1]
        if section.get("randrepeat") == "0" and "randseed" not in section:
            if is_reordered and not is_cut:
                mine, theirs = sorted(mine), sorted(theirs)
            why = "" if is_reordered and is_cut else _differs_in_law(mine, theirs, section, is_cut)
            if why and not _depends_on_seed(job, number):
                return Verdict("wrong", f"process {number + 1}: {why}")
            continue
        if any("exitall" in each for each in sections) and len(theirs) < len(mine):
            # The last request of a process that another one ends may be that of another file or
            # pass: eight runs of one such job in fio ended in different ones.
            theirs = theirs[:-1]
        if is_cut:
            count = min(LIMIT, len(theirs), len(mine))
            if is_reordered:
                early = Counter(mine[: max(count - 2 * int(section["iodepth"]), 0)])
                if not early - Counter(theirs[: count + 2 * int(section["iodepth"])]):
                    continue
            mine, theirs = mine[:count], theirs[:count]
        elif is_reordered:
            mine, theirs = sorted(mine), sorted(theirs)
        if mine != theirs and _is_by_rates(section):
            if _may_be(_accepted(job)[number], theirs, is_cut):
                continue
        if mine != theirs:
            at = next(
                (i for i, pair in enumerate(zip(mine, theirs)) if pair[0] != pair[1]),
                min(len(mine), len(theirs)),
            )
            return Verdict(
                "wrong",
                f"process {number + 1}, {len(mine)} instead of {len(theirs)} requests, at {at}: "
                f"{mine[at : at + 3]} instead of {theirs[at : at + 3]}",
            )
    return Verdict("equal")


def _may_be(job: Job, theirs: list[Request], is_cut: bool) -> bool:
    """Return whether some directions of a job's attempts give logged requests."""
    numbers = {name: number for number, name in enumerate(job.files)}
    rows = [
        (NUMBERS[kind], offset, length, numbers.get(file, UNKNOWN))
        for file, kind, offset, length in theirs[:STEERED]
    ]
    has_syncs = not has_latencies(dict(job.specified))
    return can_make(job.pattern, rows, has_syncs, is_cut or len(theirs) > STEERED)


def _without_last_syncs(requests: list[Request]) -> list[Request]:
    """Return requests without the syncs at their end: those when the time is over."""
    count = len(requests)
    while count and requests[count - 1][1] == "sync":
        count -= 1
    return requests[:count]


def _differs_in_law(mine: list[Request], theirs: list[Request], section: Section,
                    is_cut: bool) -> str:  # fmt: skip
    """Return how requests differ whose random seeds are fio's own: "" if in nothing comparable."""
    is_fixed = not any(name in section for name in ("bssplit", "bsrange"))
    kind = section.get("rw", "read").partition(":")[0]
    is_mixed = kind in ("rw", "randrw", "readwrite")
    is_fixed = is_fixed and "," not in section.get("bs", "") and not is_mixed
    if "verify" in section and any(name in section for name in UNMAPPED):
        is_fixed = False  # how many writes are read back depends on those that overlap
    if section.get("zonemode") == "strided" and any(name in section for name in UNMAPPED):
        # So does how many requests a pass has: five runs of one such job in fio had 496 to 499.
        # Jobs whose seeds are repeatable are compared request by request.
        is_fixed = False
    if not kind.startswith("rand"):
        count = min(len(mine), len(theirs), LIMIT) if is_cut else None
        is_same = mine[:count] == theirs[:count] or not is_fixed
        return "" if is_same else f"{mine[:3]} instead of {theirs[:3]}"
    if is_cut or not is_fixed or "percentage_random" in section:
        return ""
    if len(mine) != len(theirs):
        return f"{len(mine)} instead of {len(theirs)} requests"
    is_mapped = not any(name in section for name in (*UNMAPPED, "file_service_type"))
    partial = {"io_size", "number_ios", "loops", "filesize", "zonemode"}  # not all blocks
    if is_mapped and not partial & section.keys():
        if sorted(mine) != sorted(theirs):
            return "other requests"
    return ""


def _depends_on_seed(job: list[Section], process: int) -> bool:
    """Return whether other random seeds give a process another number of requests.

    An attempt that finds no place, as in the last part of a file that is not a whole block, may end
    a pass.
    """
    first = len(ours(job)[process])
    for seed in range(1, SEEDS + 1):
        seeded = [section if GLOBAL in section else section | {"randseed": str(seed)}
                  for section in job]  # fmt: skip
        if len(ours(seeded)[process]) != first:
            return True
    return False


def shrunk(job: list[Section], is_wrong: Callable[[list[Section]], bool]) -> list[Section]:
    """Return a smaller job that is still wrong."""
    again = True
    while again:
        again = False
        for at in range(len(job)):
            if len(job) > 1:
                smaller = job[:at] + job[at + 1 :]
                if is_wrong(smaller):
                    job, again = smaller, True
                    break
        for at, section in enumerate(job):
            for name in list(section):
                smaller = [*job]
                smaller[at] = {key: value for key, value in section.items() if key != name}
                if is_wrong(smaller):
                    job, again = smaller, True
                    break
                value = SIMPLER.get(name)
                if value and section[name] not in SIMPLER_VALUES[name]:
                    smaller[at] = section | {name: value}
                    if is_wrong(smaller):
                        job, again = smaller, True
                        break
    return job


class Judge:
    """Compares in another process, so that a job of ours that does not end can be ended."""

    def __init__(self) -> None:
        ours([{"rw": "randread", "size": "1m"}])  # compiled once, before the processes begin
        self._pool = multiprocessing.get_context("fork").Pool(1)

    def verdict(self, job: list[Section], logged: Run | str) -> Verdict:
        """Return the verdict; a crash and a hang are verdicts, too."""
        try:
            return self._pool.apply_async(compared, (job, logged)).get(OURS_S)
        except multiprocessing.TimeoutError:
            self._pool.terminate()
            self._pool = multiprocessing.get_context("fork").Pool(1)
            return Verdict("crash", f"no end within {OURS_S} s")
        except Exception as error:
            return Verdict("crash", f"{type(error).__name__}: {error}")


def verdicts(seeds: Iterable[int], at_once: int) -> Iterator[tuple[int, list[Section], Verdict]]:
    """Yield the verdict of each seed's job; up to `at_once` jobs of fio run at a time."""
    waiting: dict[Future[Run | str], tuple[int, list[Section]]] = {}
    judge = Judge()
    with ThreadPoolExecutor(at_once) as pool:
        left = iter(seeds)
        while True:
            for seed in islice(left, 2 * at_once - len(waiting)):
                job = drawn(seed)
                waiting[pool.submit(real, job)] = seed, job
            if not waiting:
                return
            for logged in wait(waiting, return_when=FIRST_COMPLETED).done:
                seed, job = waiting.pop(logged)
                yield seed, job, judge.verdict(job, logged.result())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, required=True, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=6, help="processes of fio")
    parser.add_argument("--log", required=True, help="file of results, one JSON object per line")
    given = parser.parse_args()
    counts: dict[str, Counter[str]] = {"public": Counter(), "rare": Counter()}
    seeds = range(given.first, given.first + given.jobs)
    with open(given.log, "a") as stream:
        for seed, job, verdict in verdicts(seeds, given.at_once):
            weights = "public" if seed % 2 == 0 else "rare"
            counts[weights][verdict.what] += 1
            row = {"seed": seed, "weights": weights, "what": verdict.what, "why": verdict.why}
            if verdict.what not in ("equal", "invalid"):
                row["job"] = text(job)
            print(json.dumps(row), file=stream, flush=True)
    for weights, count in counts.items():
        print(f"{weights}: {', '.join(f'{number} {what}' for what, number in count.items())}")


if __name__ == "__main__":
    main()
