"""Speed of reading traces with one request per line, compared with pyarrow and plain Python.

    python benchmarks/formats.py [--rows 5_000_000] [--folder DIR] [--peer PYTHON]

Generates a trace in Alibaba's format (about 41 bytes a line, 1,000 volumes), and the same requests
in other formats, then reads each in new processes, in turn, three times; the best time counts.  All
but msr, spc and fiu have several volumes, which are placed one after another: their requests are
stored on disk until the size of each volume is known.  CPU time is user + system of all threads, as
it is comparable on a busy machine; the ratios, all of one run, are more reliable than the figures.
`--peer` is a Python with pyarrow, which reads the same files, also the compressed one, to integers,
floats and strings.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hybridsim.traces.formats.files import zstd

PIECE = 1 << 18
EPOCH_US = 1_577_808_000_000_000
TICKS_TO_1970 = 116_444_736_000_000_000
RUNS = 3
MD5 = "531e779d1c2f5c2b0e8a4c9a0b5d2b11"
SAMPLE = b"1,R,0,4096,1577808000000000\n"

# Lower limit for any parser: reading the bytes.
OURS = """
import re, sys, time
from pathlib import Path
from hybridsim.traces.trace import Trace
sample = Path(sys.argv[1]).with_name("sample")
for chunk in Trace.read(sample).chunks():  # numba and the machine code are loaded
    pass
begun = time.process_time()
device = None if Path(sys.argv[1]).name in ("msr", "spc", "fiu") else "all"
rows = sum(chunk.rows for chunk in Trace.read(sys.argv[1], device=device).chunks())
used = time.process_time() - begun
peak_kib = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(rows, used, peak_kib)
"""
PARSER = """
import sys, time
from hybridsim.traces.formats.alibaba import TABLE
from hybridsim.traces.formats.column_reader import Lines
from hybridsim.traces.formats.files import source
from hybridsim.traces.formats.line_parser import nothing_seen
from hybridsim.requests.rows import Findings
from pathlib import Path
def rows(path):
    lines = Lines(source(path), TABLE, Findings(), nothing_seen(), [])
    return sum(part.rows for part in lines.parts())
rows(Path(sys.argv[1]).with_name("sample"))
begun = time.process_time()
print(rows(sys.argv[1]), time.process_time() - begun, 0)
"""
PYARROW = """
import sys, time, re
import pyarrow as pa
from pyarrow import csv
threads, separator, kinds = int(sys.argv[2]), sys.argv[3], sys.argv[4].split(",")
pa.set_cpu_count(threads)
begun = time.process_time()
rows = 0
names = [str(at) for at in range(len(kinds))]
options = csv.ReadOptions(column_names=names, use_threads=threads > 1)
types = csv.ConvertOptions(column_types=dict(zip(names, kinds)))
form = csv.ParseOptions(delimiter=separator)
for batch in csv.open_csv(sys.argv[1], options, form, types):
    rows += batch.num_rows
used = time.process_time() - begun
peak_kib = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(rows, used, peak_kib)
"""
# Separator and column types of each format for pyarrow.
KINDS = {
    "alibaba": (",", "int64,string,int64,int64,int64"),
    "msr": (",", "int64,string,int64,string,int64,int64,int64"),
    "spc": (",", "int64,int64,int64,string,double"),
    "systor": (",", "double,double,string,int64,int64,int64"),
    "fiu": (" ", "int64,int64,string,int64,int64,string,int64,int64,string"),
    "mqsim": (" ", "int64,int64,int64,int64,int64"),
}
ZST = "alibaba.zst"  # pyarrow detects the compression by this name
FORMS = {form: form for form in KINDS} | {"zst": ZST}  # format: its file
PYTHON = """
import sys, time
begun = time.process_time()
rows = 0
for line in open(sys.argv[1], "rb"):
    device, op, offset, length, at = line.split(b",")
    int(offset), int(length), int(at)
    rows += 1
print(rows, time.process_time() - begun, 0)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--folder")
    parser.add_argument("--peer")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        show(measure(Path(folder), arguments.rows, arguments.peer))


class Program(NamedTuple):
    """A reader of a file, with the input of its process."""

    title: str
    python: str
    code: str
    form: str
    arguments: tuple[str, ...] = ()


class Reading(NamedTuple):
    """The best run of a program."""

    cpu_s: float
    rows: int
    peak_kib: int  # 0: not reported
    file_bytes: int  # as text


def measure(folder: Path, rows: int, peer: str | None) -> dict[Program, Reading]:
    """Write all formats into a folder, and read them with all programs in turn."""
    for name in KINDS:
        write(folder / name, name, rows)
    (folder / "sample").write_bytes(SAMPLE)
    (folder / ZST).write_bytes(zstd.compress((folder / "alibaba").read_bytes()))
    programs = [
        Program("hybridsim, the parser alone", sys.executable, PARSER, "alibaba"),
        *(Program(f"hybridsim, {name}", sys.executable, OURS, name) for name in FORMS),
        *(pyarrow(peer, name, threads) for name in FORMS for threads in (1, 2) if peer),
        Program("Python, split and int", sys.executable, PYTHON, "alibaba"),
    ]
    runs: dict[Program, list[tuple[float, int, int]]] = {each: [] for each in programs}
    for _ in range(RUNS):  # in turn, so that a busy period affects all of them
        for each in programs:
            runs[each].append(run(each, folder))
    best = {}
    for each, result in runs.items():
        size = (folder / ("alibaba" if each.form == "zst" else each.form)).stat().st_size
        best[each] = Reading(*min(result), size)
        assert best[each].rows == rows, (each.title, best[each].rows)
    return best


def pyarrow(python: str, form: str, threads: int) -> Program:
    """Return the program of pyarrow's CSV reader with a number of threads."""
    title = f"pyarrow's CSV reader, {form}, {threads} thread{'s' * (threads > 1)}"
    kinds = KINDS.get(form, KINDS["alibaba"])
    return Program(title, python, PYARROW, form, (str(threads), *kinds))


def peer_s(best: dict[Program, Reading], form: str) -> float | None:
    """Return the fewest CPU seconds of pyarrow for a format; None if it was not run."""
    seconds = [
        took.cpu_s for each, took in best.items() if each.code == PYARROW and each.form == form
    ]
    return min(seconds, default=None)


def show(best: dict[Program, Reading]) -> None:
    """Print the table."""
    print("| | bytes a line | CPU s | M lines/s | MB/s | times pyarrow's speed | peak MiB |")
    print("|---|---|---|---|---|---|---|")
    for each, (seconds, rows, peak_kib, size) in best.items():
        peer = peer_s(best, each.form)
        ratio = f"{peer / seconds:.2f}" if peer else ""
        print(
            f"| {each.title} | {size / rows:.0f} | {seconds:.2f} | {rows / seconds / 1e6:.1f} "
            f"| {size / seconds / 1e6:.0f} | {ratio} | {peak_kib >> 10 or ''} |"
        )


def run(program: Program, folder: Path) -> tuple[float, int, int]:
    """Run a program; return its CPU seconds, rows and peak memory in KiB."""
    path = str(folder / FORMS[program.form])
    command = [program.python, "-c", program.code, path, *program.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, seconds, peak_kib = done.stdout.split()
    return float(seconds), int(rows), int(peak_kib)


def write(path: Path, form: str, rows: int) -> None:
    """Write the requests in a format, in pieces."""
    with path.open("w") as file:
        for begin in range(0, rows, PIECE):
            draw = np.random.default_rng(begin)
            count = min(PIECE, rows - begin)
            columns = (
                draw.integers(0, 1 if form in ("msr", "spc") else 1000, count),
                draw.integers(0, 2, count),
                draw.integers(0, 10**8, count) * 4096,
                draw.integers(1, 17, count) * 4096,
                begin * 50 + np.sort(draw.integers(0, count * 50, count)),
            )
            file.write("".join(LINES[form](*row) for row in zip(*(c.tolist() for c in columns))))


LINES = {
    "alibaba": lambda d, o, a, n, t: f"{d},{'RW'[o]},{a},{n},{EPOCH_US + t}\n",
    "msr": lambda d, o, a, n, t: (
        f"{(EPOCH_US + t) * 10 + TICKS_TO_1970},host,{d},{('Read', 'Write')[o]},{a},{n},4321\n"
    ),
    "spc": lambda d, o, a, n, t: f"{d},{a // 512},{n},{'rw'[o]},{t / 1e6:.6f}\n",
    "systor": lambda d, o, a, n, t: (
        f"{(EPOCH_US + t) // 10**6}.{t % 10**6:06}000,0.004321000,{'RW'[o]},{d % 7},{a},{n}\n"
    ),
    "fiu": lambda d, o, a, n, t: (
        f"{t * 1000} 4892 syslogd {a // 512} {n // 512} {'RW'[o]} 6 0 {MD5}\n"
    ),
    "mqsim": lambda d, o, a, n, t: f"{t * 1000} {d % 8} {a // 512} {n // 512} {1 - o}\n",
}

if __name__ == "__main__":
    main()
