"""fio's job files, as far as they can be run as root on a device that matters.

fio can run programs, write files where it is told, and expands `$` with a shell.  So options are
those of a list: they say what is read and written, and nothing else.
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
    "time_based": "it always is",
    "output": "results go to the result folder",
}
HEADER = re.compile(r"\[([A-Za-z0-9 ._-]{1,64})\]\s*([;#].*)?")
LINE = re.compile(r"([a-z_]++)\s*+(?:=(.*))?")
VALUE = re.compile(r"[A-Za-z0-9_.,:/%+ -]*")
RW = ("rw", "readwrite")
READING = ("read", "randread")


@dataclass(frozen=True)
class Section:
    """A job, or [global]: options in their order."""

    name: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class JobFile:
    """Sections in their order."""

    sections: tuple[Section, ...]

    @property
    def writes(self) -> bool:
        """Whether any job writes or discards."""
        said = [each[1] for one in self.sections for each in one.options if each[0] in RW]
        return any(value.split(":")[0].split(",")[0] not in READING for value in said)

    def rendered(self, settings: dict[str, str]) -> str:
        """Return the text for fio, with settings of ours before its own [global]."""
        lines = ["[global]", *(f"{key}={value}" for key, value in settings.items())]
        for one in self.sections:
            lines += ["", f"[{one.name}]"]
            lines += [f"{key}={value}" if value else key for key, value in one.options]
        return "\n".join(lines) + "\n"


def parse(text: str, place: str) -> JobFile:
    """Return the jobs of a file; raises ExperimentError with every line that cannot be run."""
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    problems = []
    for number, written in enumerate(text.splitlines(), 1):
        line = written.strip()
        if not line or line[0] in ";#":
            continue
        header = HEADER.fullmatch(line)
        if header:
            sections.append((header[1], []))
            continue
        name, value, problem = _option(line)
        if not problem and not sections:
            problem = "stands before the first [job]"
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
    """Return name, value, and what is wrong with them."""
    match = LINE.fullmatch(line.strip())
    if match is None:
        return "", "", "no option of fio: write name=value"
    name, value = match[1], (match[2] or "").strip()
    if name in OURS:
        return name, value, OURS[name]
    if name not in OPTIONS:
        like = get_close_matches(name, OPTIONS, 1)
        mend = f"did you mean {like[0]}?" if like else "leave it out"
        return name, value, f"not among the options that may be run here; {mend}"
    if not VALUE.fullmatch(value):
        return name, value, "only letters, digits and _.,:/%+- may be in a value"
    if name == "ioengine" and value not in ENGINES:
        return name, value, f"known engines are {', '.join(ENGINES)}"
    return name, value, ""
