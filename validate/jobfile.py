"""Parse fio job files, limited to options that are safe as root on a user's device.

fio can run programs, write to any file, and expand `$` with a shell.  So only listed options are
allowed: they describe requests, and name no files or programs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from validate.errors import ExperimentError

GLOBAL = "global"
ENGINES = ("libaio", "io_uring", "posixaio", "psync", "pvsync", "pvsync2", "sync", "vsync")
OPTIONS = frozenset({
    "ba", "blockalign", "blocksize", "bs", "bs_unaligned", "bsrange", "bssplit", "buffered",
    "clocksource", "description", "direct", "end_fsync", "fdatasync", "fsync", "group_reporting",
    "hipri", "invalidate", "io_size", "io_submit_mode", "iodepth", "iodepth_batch",
    "iodepth_batch_complete", "iodepth_batch_complete_max", "iodepth_batch_complete_min",
    "iodepth_batch_submit", "iodepth_low", "ioengine", "loops", "name", "new_group",
    "norandommap", "number_ios", "numjobs", "offset", "offset_align", "offset_increment",
    "percentage_random", "percentile_list", "ramp_time", "random_distribution",
    "random_generator", "randrepeat", "randseed", "rate", "rate_iops", "rate_process",
    "readwrite", "refill_buffers", "rw", "rw_sequencer", "rwmixread", "rwmixwrite", "size",
    "softrandommap", "startdelay", "start_delay", "stonewall", "sync", "thinktime",
    "thinktime_blocks", "thread", "zero_buffers",
})  # fmt: skip
OURS = {
    "filename": "the device is named on the command line",
    "runtime": "write duration in [load]",
    "timeout": "write duration in [load]",
    "time_based": "it is always set",
    "output": "results go to the result folder",
}
HEADER = re.compile(r"\[([A-Za-z0-9 ._-]{1,64})\]\s*([;#].*)?")
LINE = re.compile(r"([a-z_]++)\s*+(?:=(.*))?")
VALUE = re.compile(r"[A-Za-z0-9_.,:/%+ -]*")
RW = ("rw", "readwrite")
READING = ("read", "randread")


@dataclass(frozen=True)
class Section:
    """A job or [global], with its options in order."""

    name: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class JobFile:
    """A job file, with its sections in order."""

    sections: tuple[Section, ...]

    @property
    def writes(self) -> bool:
        """Whether any job writes or discards."""
        values = [each[1] for one in self.sections for each in one.options if each[0] in RW]
        return any(value.split(":")[0].split(",")[0] not in READING for value in values)

    def rendered(self, settings: dict[str, str]) -> str:
        """Return the text for fio, with `settings` as the first [global] section."""
        lines = ["[global]", *(f"{key}={value}" for key, value in settings.items())]
        for one in self.sections:
            lines += ["", f"[{one.name}]"]
            lines += [f"{key}={value}" if value else key for key, value in one.options]
        return "\n".join(lines) + "\n"


def parse(text: str, place: str) -> JobFile:
    """Return the jobs of a file; raise ExperimentError with all lines that are refused."""
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    problems = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in ";#":
            continue
        header = HEADER.fullmatch(line)
        if header:
            sections.append((header[1], []))
            continue
        name, value, problem = _option(line)
        if not problem and not sections:
            problem = "is before the first [job]"
        if problem:
            problems.append(f"{place}: line {number}: {line[:60]}: {problem}")
        else:
            sections[-1][1].append((name, value))
    if not problems and not any(name != GLOBAL for name, _ in sections):
        problems.append(f"{place}: no job: write a [name] and its options below")
    if problems:
        raise ExperimentError("\n".join(problems))
    return JobFile(tuple(Section(name, tuple(options)) for name, options in sections))


def _option(line: str) -> tuple[str, str, str]:
    """Return name, value and problem of a line; the problem is "" if there is none."""
    match = LINE.fullmatch(line.strip())
    if match is None:
        return "", "", "is not an option: write name=value"
    name, value = match[1], (match[2] or "").strip()
    if name in OURS:
        return name, value, OURS[name]
    if name not in OPTIONS:
        like = get_close_matches(name, OPTIONS, 1)
        remedy = f"did you mean {like[0]}?" if like else "remove it"
        return name, value, f"is not among the allowed options; {remedy}"
    if not VALUE.fullmatch(value):
        return name, value, "a value may contain only letters, digits, spaces and _.,:/%+-"
    if name == "ioengine" and value not in ENGINES:
        return name, value, f"supported engines are {', '.join(ENGINES)}"
    return name, value, ""
