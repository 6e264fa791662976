"""One suite: the figures of the reference documents, compared with those of simulated systems.

    python benchmarks/reference.py [--quick] [--only commands|systems|maxiq] [--json | --markdown]

Every fio command and job file of the documents runs unchanged (`COMMANDS`), on the preset of its
system; rows of the documents without a command are those of systems.py and maxiq.py.  One set of
parameters, the preset's, is used for all rows of a system.  What a row is worth is its basis:

predicted  nothing of its document was fitted to it: the model can fail here
rule       a published rule or limit that is a parameter: only the arithmetic can fail
shared     follows from parameters some of which were fitted to other figures of the same document
fit        a parameter was fitted to this row, or is this row
open       no stated rule explains the row, and no parameter was adjusted to it
"""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import maxiq
import numpy as np
import systems

from hybridsim.answers.measurements.measurement import Measurement, Name
from hybridsim.scenario import Scenario
from hybridsim.show.fio_json import measurement
from hybridsim.studies.fio import fio
from hybridsim.workloads.fio.jobfile import read

UNITS = {
    "IOPS": 1, "KB/s": 1024, "MB/s": 10**6, "MiB/s": 2**20, "us": 10**3, "ms": 10**6, "s": 10**9,
}  # fmt: skip
BASES = ("predicted", "rule", "shared", "fit", "open")


FITTED_TIME = "32 GB, 2 disks"  # the preset's window was fitted to this time of the guide's table


class Published(NamedTuple):
    """A published figure, and the tolerance of the simulated one."""

    measure: str  # as answers/measurements/ names it
    value: float
    unit: str
    tolerance: float | None = 0.05  # None: reported, without a target
    basis: str = "rule"
    note: str = ""
    run: int = 1  # of several runs in sequence
    at_most: bool = False  # the figure is an upper limit


class Command(NamedTuple):
    """A command of a document, on the preset of its system."""

    system: str  # as in reference-systems
    preset: str
    text: str  # verbatim; a shell joins its lines
    figures: tuple[Published, ...]
    runs: int = 1
    job_file: tuple[str, str] | None = None  # name, and text verbatim


class Row(NamedTuple):
    """One line of the suite."""

    system: str
    row: str
    figure: str
    published: str
    simulated: float
    error: float | None
    tolerance: str
    is_met: bool | None
    basis: str
    note: str


def digitalocean(name: str, options: str) -> str:
    """Return a command of the tutorial, whose page breaks lines with backslashes."""
    return f"fio --filename= \\\n--direct=1 \\\n{options} \\\n--name={name} \\\n--runtime=120s \\\n"


BW_TEST = digitalocean(
    "bw-test", "--rw=randwrite \\\n--ioengine=libaio \\\n--bs=1024K \\\n--iodepth=32"
)
RAND_R = digitalocean("rand-r", "--rw=randread \\\n--ioengine=libaio \\\n--bs=4K \\\n--iodepth=128")
RAND_W = digitalocean(
    "rand-w", "--rw=randwrite \\\n--ioengine=libaio \\\n--bs=4K \\\n--iodepth=128"
)
LAT_READ = digitalocean(
    "lat-read", "--rw=randread \\\n--ioengine=libaio \\\n--bs=4K \\\n--iodepth=1"
)
LAT_WRITE = digitalocean(
    "lat-write", "--rw=randwrite \\\n--ioengine=libaio \\\n--bs=4K \\\n--iodepth=1"
)
SHOWN = (
    "fio --filename=/mnt/volume-nyc3-04/test.fio --direct=1 --rw=randwrite --ioengine=libaio "
    "--bs=1024k --iodepth=32  --name=bw-test --runtime=120s"
)
STANDARD, HIGH_CPU = "digitalocean-volume", "digitalocean-volume-high-cpu"
AT_MOST_5_MS = Published("clat mean", 5, "ms", at_most=True, note="promised: under 5 ms")


def alibaba(depth: int, rw: str, block: str, file: str, name: str) -> str:
    """Return a command of the article."""
    return (
        f"fio -direct=1 -iodepth={depth} -rw={rw} -ioengine=libaio -bs={block} -size=10G -numjobs=1"
        f" -runtime=1000 -group_reporting {file} -name={name}_Testing"
    )


NEW, OLD = "-filename=iotest", "-filename =iotest"  # both are in the article
ULTRA = "alibaba-8x-ultra"
FIOTEST = """; random read of 4KB of data
[random-read]
rw=randread
size=8192M
direct=1
iodepth=64
ioengine=libaio
randrepeat=1
directory=/testdb/fio
write_bw_log=logresults
bwavgtime=3000
"""
HOST = "the host's cap, measured here"

COMMANDS = (
    Command("B DigitalOcean", STANDARD, SHOWN, (
        Published("bandwidth", 195_468, "KB/s"),
        Published("IOPS", 190.9, "IOPS", note="22,937 in 120.16 s"),
        Published("clat mean", 167.48, "ms"),
        Published("clat p50", 167, "ms", basis="fit"),
        Published("clat p95", 178, "ms", basis="fit"),
        Published("clat p99", 306, "ms", basis="fit"),
        Published("clat p1", 101, "ms", basis="shared", note="after a stall"),
        Published("clat p5", 155, "ms", basis="shared"),
        Published("clat p10", 159, "ms", basis="shared"),
        Published("clat p90", 172, "ms", basis="shared"),
        Published("clat p99.5", 363, "ms", basis="shared"),
        Published("clat p99.9", 420, "ms", basis="fit"),
    )),
    Command("B DigitalOcean", STANDARD, BW_TEST, (Published("bandwidth", 200, "MB/s"),)),
    Command("B DigitalOcean", STANDARD, RAND_R, (Published("IOPS", 5000, "IOPS"),)),
    Command("B DigitalOcean", STANDARD, RAND_W, (Published("IOPS", 5000, "IOPS"),)),
    Command("B DigitalOcean", STANDARD, LAT_READ, (
        AT_MOST_5_MS,
        Published("IOPS", 1782, "IOPS", basis="fit"),
        Published("lat mean", 556, "us", basis="fit"),
        Published("clat stddev", 2188.85, "us", basis="fit"),
    )),
    Command("B DigitalOcean", STANDARD, LAT_WRITE, (AT_MOST_5_MS,)),
    Command("B high CPU", HIGH_CPU, BW_TEST, (Published("bandwidth", 300, "MB/s"),)),
    Command("B high CPU", HIGH_CPU, RAND_R, (Published("IOPS", 6000, "IOPS", note="and more"),)),
    Command("B high CPU", HIGH_CPU, RAND_W, (Published("IOPS", 6000, "IOPS", note="and more"),)),
    Command("C 8 x Ultra", ULTRA, alibaba(128, "randwrite", "4k", NEW, "Rand_Write"), (
        Published("IOPS", 23_400, "IOPS", basis="fit", note="the host"),
        Published("bandwidth", 91.6, "MiB/s", basis="fit", note="the host"),
    )),
    Command("C 8 x Ultra", ULTRA, alibaba(128, "randwrite", "64k", NEW, "Rand_Write"), (
        Published("IOPS", 8704, "IOPS", basis="open", note="half of what its disks allow"),
        Published("bandwidth", 544, "MiB/s", basis="open"),
    )),
    Command("C 8 x Ultra", ULTRA, alibaba(128, "randread", "4k", OLD, "Rand_Read"), (
        Published("IOPS", 23_500, "IOPS", basis="fit", note="the host"),
        Published("bandwidth", 91.8, "MiB/s", basis="fit", note="the host"),
    )),
    Command("C 8 x Ultra", ULTRA, alibaba(128, "randread", "64k", OLD, "Rand_Read"), (
        Published("IOPS", 16_400, "IOPS", basis="predicted", note="unevenly spread over the disks"),
        Published("bandwidth", 1023, "MiB/s", basis="predicted"),
    )),
    Command("C 8 x Ultra", ULTRA, alibaba(64, "write", "64k", NEW, "Write_PPS"), (
        Published("IOPS", 14_400, "IOPS", basis="fit", note="write latency"),
        Published("bandwidth", 901, "MiB/s", basis="fit"),
    )),
    Command("C 8 x Ultra", ULTRA, alibaba(64, "read", "64k", NEW, "Read_PPS"), (
        Published("IOPS", 17_900, "IOPS", basis="predicted"),
        Published("bandwidth", 1118, "MiB/s", basis="predicted"),
    )),
    Command("A2 MaxIQ, 3 SATA", "adaptec-maxiq-3x-sata", "fio random4K", (
        Published("IOPS", 3775, "IOPS", 0.2, "fit", "the scheduler"),
        Published("IOPS", 17_869, "IOPS", 0.03, "fit", HOST, run=2),
        Published("IOPS", 17_898, "IOPS", 0.03, "fit", HOST, run=3),
        Published("IOPS", 17_800, "IOPS", 0.03, "fit", HOST, run=4),
        Published("IOPS", 17_884, "IOPS", 0.03, "fit", HOST, run=5),
        Published("clat mean", 3550.21, "us", 0.03, "fit", "Little's law of the cap", run=3),
        Published("clat stddev", 939.53, "us", None, "open", "the host's own scatter", run=3),
        Published("runtime", 117.169, "s", 0.03, "fit", HOST, run=3),
    ), 5, ("random4K", FIOTEST)),
    Command("A3 MaxIQ, 8 SAS", "adaptec-maxiq-8x-sas", "fio random4K", (
        Published("first", 1000, "IOPS", 0.3, "fit", "the window; of 3 s, as its log has it"),
        Published("knee", 50, "s", 0.2, "fit", "the window; 40 to 60 s"),
        Published("plateau", 23_000, "IOPS", 0.05, "fit", HOST),
    ), 1, ("random4K", FIOTEST)),
)  # fmt: skip

NOT_RUN = (
    ("A4", "sysbench: maxiq.py generates its requests (16 threads, 4 KiB, 16 or 8 GB)"),
    (
        "A6",
        "Iometer's protocol has no published figure; `trace gen iometer` generates its requests",
    ),
    ("A7", "prices of 2009 and no figure of a machine"),
    ("C", "16 disks: LVM refused them, so nothing was measured"),
    ("D", "the page links to fio commands but has none; its figures are rows of systems.py"),
    (
        "E",
        "transactions of MySQL by mount options, file system and buffer pool, without I/O figures",
    ),
)


def simulate(command: Command) -> Measurement:
    """Run a command with the arguments that a shell would pass to fio."""
    words = shlex.split(joined(command.text))[1:]
    site = Scenario.default().with_options(preset=command.preset)
    with tempfile.TemporaryDirectory() as folder:
        if command.job_file:
            path = Path(folder) / command.job_file[0]
            path.write_text(command.job_file[1], encoding="utf-8")
            words = [str(path) if word == command.job_file[0] else word for word in words]
        return measurement(fio(read(words), site, command.runs), command.preset)


def joined(text: str) -> str:
    """Return the text with lines that end in a backslash joined, as by a shell."""
    return text.replace("\\\n", "")


def commands() -> Iterator[Row]:
    """Yield the rows of all commands."""
    for command in COMMANDS:
        result = simulate(command)
        for one in command.figures:
            job = result.jobs[one.run - 1]
            yield compared(command, one, figure_of(result, job, one.measure) / UNITS[one.unit])


def figure_of(result: Measurement, job: str, measure: str) -> float:
    """Return a figure of a job, or one of its curve: first value, knee or plateau."""
    what = next(name.what for name in result.figures if name.job == job)
    known = result.figures.get(Name(job, what, measure))
    if known is not None:
        return known
    averaged = result.curves[Name(job, what, "bandwidth")]  # by bwavgtime, as its log
    iops = result.curves[Name(job, what, "IOPS")]
    level = float(np.median(iops.value[-20:]))
    knee = iops.start_ns[int(np.argmax(iops.value >= maxiq.WARM * level))]
    return {"first": averaged.value[0] / 4096, "knee": float(knee), "plateau": level}[measure]


def compared(command: Command, one: Published, simulated: float) -> Row:
    """Compare a simulated figure with the published one."""
    error = simulated / one.value - 1
    within = simulated <= one.value if one.at_most else abs(error) <= (one.tolerance or 0)
    runs = f", run {one.run}" if command.runs > 1 else ""
    return Row(
        command.system,
        f"{title(command)}{runs}",
        f"{one.measure}, {one.unit}" if one.unit != one.measure else one.measure,
        f"{'< ' if one.at_most else ''}{one.value:,.10g}",
        simulated,
        None if one.at_most else error,
        "at most" if one.at_most else "" if one.tolerance is None else f"{one.tolerance:.0%}",
        None if one.tolerance is None else within,
        one.basis,
        one.note,
    )


def title(command: Command) -> str:
    """Return the name of a command's job."""
    if command.job_file:
        return f"fio {command.job_file[0]}"
    options = dict(
        word.lstrip("-").split("=") for word in shlex.split(joined(command.text)) if "=" in word
    )
    return f"{options['rw']} {options['bs']} depth {options['iodepth']}"


def covered(figure: systems.Figure) -> bool:
    """Return whether a command has the load of a row of systems.py."""
    load = figure.load
    for command in COMMANDS:
        if command.preset == figure.system and not figure.drive:
            words = title(command).lower().split()
            size = {"k": 2**10, "m": 2**20}[words[1][-1]] * int(words[1][:-1])
            if (words[0], size, int(words[3])) == (load.way, load.block_bytes, load.depth):
                return True
    return False


def cloud(quick: bool) -> Iterator[Row]:
    """Yield the rows of systems.py without a command in the documents."""
    letters = {"digitalocean": "B", "alibaba": "C", "oracle": "D", "google": "E"}
    for figure, value in systems.figures(quick, lambda one: not covered(one)):
        error = value / figure.published - 1
        yield Row(
            f"{letters[figure.system.partition('-')[0]]} {figure.system}",
            " ".join(systems.words(figure).split()),
            figure.measure,
            f"{figure.published:,.10g}",
            value,
            error,
            f"{systems.TARGET:.0%}",
            abs(error) <= systems.TARGET,
            figure.basis,
            figure.note,
        )


def guide(quick: bool) -> Iterator[Row]:
    """Yield the rows of the MaxIQ guide without a fio command."""
    for part in (maxiq.table_of_times, maxiq.sysbench, maxiq.application):
        for row in part(quick):
            ends = [float(word) for word in row.published.split() if word.isdigit()]
            middle = sum(ends) / len(ends)
            yield Row(
                f"{row.row} MaxIQ",
                row.what.rpartition(", ")[0],
                row.what.rpartition(", ")[2],
                row.published,
                row.simulated,
                row.simulated / middle - 1,
                f"{row.lowest:g}..{row.highest:g}",
                row.is_met,
                "fit" if row.what.startswith(FITTED_TIME) else "shared",
                row.note,
            )


def rows(only: str = "", quick: bool = False) -> Iterator[Row]:
    """Yield the rows of the suite, or of one part."""
    parts = {"commands": commands, "systems": lambda: cloud(quick), "maxiq": lambda: guide(quick)}
    for name, part in parts.items():
        if only in ("", name):
            yield from part()


def cells(row: Row) -> list[str]:
    """Return a row as text."""
    error = "" if row.error is None else f"{row.error:+.1%}"
    met = {True: "yes", False: "NO", None: ""}[row.is_met]
    simulated = f"{row.simulated:,.0f}" if row.simulated >= 1000 else f"{row.simulated:,.4g}"
    return [
        row.system, row.row, row.figure, row.published, simulated, error, row.tolerance, met,
        f"{row.basis}{': ' if row.note else ''}{row.note}",
    ]  # fmt: skip


HEADER = ["system", "row", "figure", "published", "simulated", "error", "tolerance", "met", "basis"]
WIDTHS = (20, 31, 18, 10, 11, 9, 11, 4, 0)
RIGHT = range(3, 7)


def line(texts: list[str], is_markdown: bool) -> str:
    """Return a row as a line of text or Markdown."""
    if is_markdown:
        return f"| {' | '.join(texts)} |"
    pairs = enumerate(zip(texts, WIDTHS))
    return " ".join(f"{t:>{w}}" if at in RIGHT else f"{t:{w}}" for at, (t, w) in pairs).rstrip()


def main() -> None:
    """Print the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs, a part of A1")
    parser.add_argument("--only", choices=("commands", "systems", "maxiq"), default="")
    parser.add_argument("--json", action="store_true", help="one object a row instead")
    parser.add_argument("--markdown", action="store_true", help="a table in Markdown")
    options = parser.parse_args()
    result = []
    if not options.json:
        print(line(HEADER, options.markdown))
        if options.markdown:
            print("|" + "---|" * len(HEADER))
    for row in rows(options.only, options.quick):
        result.append(row)
        if not options.json:
            print(line(cells(row), options.markdown), flush=True)
    if options.json:
        print(json.dumps([row._asdict() for row in result], indent=1))
        return
    judged = [row for row in result if row.is_met is not None]
    print("\nFigures within tolerance, by what they rest on:")
    for basis in BASES:
        of_basis = [row for row in judged if row.basis == basis]
        print(f"  {basis:10} {sum(row.is_met for row in of_basis):3} of {len(of_basis)}")
    print("Not run:")
    for where, why in NOT_RUN:
        print(f"* {where}: {why}")


if __name__ == "__main__":
    main()
