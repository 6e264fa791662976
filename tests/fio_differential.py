"""Random jobs for real fio and for this package: the same requests, or a refusal with a reason.

A job is a list of sections; a section is a dict of fio's options.  `drawn` makes one from a seed,
`real` runs it with the fio of the machine, `ours` generates it, and `shrunk` makes a job that
differs as small as it still differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hybridsim.foundation.errors import HybridsimError
from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.jobfile import read
from hybridsim.workloads.fio.places import lay_out
from hybridsim.workloads.fio.requests import Feeds

Section = dict[str, str]
Request = tuple[str, str, int, int]  # file ("" if unknown), kind, offset, length
Run = list[list[Request]]  # by process

KINDS = ("read", "write", "trim", "sync")
REORDERED = ("io_uring", "posixaio")
LIMIT = 3000  # requests of a process that are compared
CAPACITY = 1 << 40
TIMEOUT_S = 60


def drawn(seed: int) -> list[Section]:
    """Return a random job; options are as frequent as in public job files, more or less."""
    dice = random.Random(seed)
    return [_section(dice) for _ in range(dice.choice([1, 1, 1, 1, 2, 3]))]


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
        section["numjobs"] = pick(["1", "1", "2", "2", "3", "4"])
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
        section["runtime"] = "1"
    elif _maybe(dice, 0.15):
        section["runtime"] = pick(["30", "60s"])
    if _maybe(dice, 0.05):
        section["verify"] = pick(["crc32c", "md5"])
        if _maybe(dice, 0.5):
            section["do_verify"] = "0"
    return section


def text(job: list[Section], more: Callable[[int, Section], list[str]] | None = None) -> str:
    """Return a job file."""
    lines = []
    for number, section in enumerate(job):
        lines.append(f"[j{number}]")
        lines += [f"{name}={value}" if value else name for name, value in section.items()]
        lines += more(number, section) if more else []
    return "\n".join([*lines, ""])


def _clones(section: Section) -> int:
    return int(section.get("numjobs", "1"))


def real(job: list[Section], program: str = "fio") -> Run | str:
    """Return the requests that fio logs, by process; its error message if it refuses the job."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    logs = Path(tempfile.mkdtemp())
    try:

        def more(number: int, section: Section) -> list[str]:
            if _clones(section) == 1:
                return [f"write_iolog={logs}/{number}.log"]
            return [f"write_lat_log={logs}/{number}", "log_offset=1"]

        (logs / "job.fio").write_text(text(job, more))
        done = subprocess.run(
            [program, f"{logs}/job.fio"], cwd=folder, capture_output=True, text=True,
            timeout=TIMEOUT_S,
        )  # fmt: skip
        if done.returncode:
            return f"exit {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}"
        run: Run = []
        for number, section in enumerate(job):
            clones = _clones(section)
            if clones == 1:
                run.append(_of_iolog(logs / f"{number}.log"))
                continue
            first = len(run) + 1
            for thread in range(first, first + clones):
                run.append(_of_latencies(logs / f"{number}_clat.{thread}.log"))
        return run
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(logs)


def _of_iolog(path: Path) -> list[Request]:
    requests: list[Request] = []
    for line in path.read_text().splitlines()[1:]:
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


def _of_latencies(path: Path) -> list[Request]:
    rows = (line.split(",") for line in path.read_text().splitlines())
    return [("", KINDS[int(row[2])], int(row[4]), int(row[3])) for row in rows]


def as_in_latencies(requests: list[Request]) -> list[Request]:
    """Return requests as fio's latency logs have them: without files and syncs."""
    return [("", *rest) for _, *rest in requests if rest[0] != "sync"]


def ours(job: list[Section]) -> Run:
    """Return the requests that this package generates, by process.

    Raises HybridsimError for a job that it refuses.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".fio") as stream:
        stream.write(text(job))
        stream.flush()
        jobs = [replace(each, iolog="x") for each in jobs_of(read([stream.name]))]
    feeds = Feeds(lay_out(jobs, CAPACITY))
    run: Run = []
    for feed, each in zip(feeds._feeds, jobs):
        while not feed.is_last and sum(part.shape[1] for part in feed.generated) < LIMIT:
            feed.rows(len(feed._rows[0]))
        made = np.concatenate([np.zeros((4, 0), np.int64), *feed.generated], axis=1)
        run.append([
            (each.files[file], KINDS[kind], offset, length)
            for kind, offset, length, file in made.T.tolist()
        ])  # fmt: skip
    return run


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
    """What became of a job: equal, refused, wrong, or failed in fio itself."""

    what: str
    why: str = ""


def compared(job: list[Section], logged: Run | str) -> Verdict:
    """Return how this package's requests compare with logged ones."""
    try:
        run = ours(job)
    except HybridsimError as error:
        return Verdict("refused", str(error))
    if isinstance(logged, str):
        return Verdict("failed", logged)
    if len(run) != len(logged):
        return Verdict("wrong", f"{len(run)} processes instead of {len(logged)}")
    sections = [section for section in job for _ in range(_clones(section))]
    for number, (mine, theirs, section) in enumerate(zip(run, logged, sections)):
        if _clones(section) > 1:
            mine = as_in_latencies(mine)
            if section.get("ioengine") in REORDERED and section.get("iodepth", "1") != "1":
                mine, theirs = sorted(mine), sorted(theirs)  # logged in order of completion
        if len(theirs) > LIMIT or "time_based" in section:
            mine, theirs = mine[: min(LIMIT, len(theirs))], theirs[: min(LIMIT, len(theirs))]
            mine = mine[: len(theirs)]
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
    return job
