"""Measure all targets of speed, start-up and memory in one run, and print one table.

    HYBRIDSIM_DATA=... python benchmarks/targets.py [--peer PYTHON] [--only GROUP]
                                                    [--quick] [--json]

PYTHON is an interpreter with `pyarrow` and `libcachesim`; `blkparse` and `btt` are in Debian's
package blktrace.  If a program is missing, its row shows how to install it.  Groups:

    start      the first command in a bare home, by kind of cache, and later ones
    wheel      the first command of a wheel that holds machine code: only with --only; needs uv
    reading    a blktrace capture, compared with blkparse and btt
    text       traces with one request per line, compared with pyarrow's CSV reader
    engine     full timing, compared with published figures of DiskSim
    hits       caches without devices, compared with libCacheSim; the curve of LRU
    learned    CPU time and memory of the learned policy
    sweep      two workers compared with one
    explore    estimates of `explore` against replays that they do not have: only with --only
    notebooks  all notebooks: only with --only
    lab        the short run in a guest: only with --only
    decisions  verdicts, choices and forecasts on families that no rule was fitted to: only with
               --only; $HYBRIDSIM_DECISIONS is a folder that keeps the runs
    errors     how often the intervals of the model's error hold on real runs that are left out
    coverage   how often those of replays, warm-up times, sampled curves and fits hold, on
               generated truths (coverage.py): only with --only; $HYBRIDSIM_COVERAGE is a folder
               that keeps the pieces

About ten minutes on two idle cores; --quick uses smaller sizes and takes two minutes, as a check of
the program.  A figure is the best of its runs; CPU seconds are user + system of all threads.  A
ratio above 1 is better than the peer; `wall s` and its ratios need an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import blktrace

# hybridsim is imported only after `main` has set the folder for machine code.
ROOT = Path(__file__).parents[1]
DEMO = str(ROOT / "traces" / "demo")
MB, KIB = 1e6, 1 << 10
INSTALL = "not installed: pip install {}, and --peer its Python"

# The process prints its peak in the last line: getrusage may return that of the parent.
COMMAND = """
import atexit, re, sys
def print_peak():
    print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
atexit.register(print_peak)
from hybridsim.cli import main
main()
"""


@dataclass(frozen=True)
class Row:
    """One measurement, its target, and the figure of a peer."""

    what: str
    measured: float | None
    unit: str
    target: str = ""
    peer: str = ""
    peer_measured: float | None = None  # in the same unit
    ratio: float | None = None  # times as good as the peer
    met: bool | None = None  # None: no target, or not measured

    def compared_with(self, peer: str, figure: float) -> Row:
        """Return the row with the figure of a peer; higher is better."""
        assert self.measured is not None
        return replace(self, peer=peer, peer_measured=figure, ratio=self.measured / figure)


def at_most(what: str, measured: float, unit: str, limit: float) -> Row:
    return Row(what, measured, unit, f"at most {limit:g}", met=measured <= limit)


def at_least(what: str, measured: float, unit: str, limit: float) -> Row:
    return Row(what, measured, unit, f"at least {limit:,g}", met=measured >= limit)


def times(
    what: str,
    measured: float,
    unit: str,
    peer: tuple[str, float | None],
    wanted: float,
    less: bool = False,
) -> Row:
    """Return a row whose target is a multiple of the peer's figure; `less`: lower is better."""
    name, figure = peer
    row = Row(what, measured, unit, f"{wanted:g} times its peer", name, figure)
    if figure is None:
        return row
    ratio = figure / measured if less else measured / figure
    return replace(row, ratio=ratio, met=ratio >= wanted)


class Options(NamedTuple):
    """Options of the groups."""

    quick: bool
    peer: str | None  # a Python

    def size(self, whole: int, quick: int) -> int:
        return quick if self.quick else whole


class Took(NamedTuple):
    """Time and peak memory of a command."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def command(*arguments: str, **environment: str) -> Took:
    """Run a command of hybridsim."""
    words = [sys.executable, "-c", COMMAND, *arguments]
    cpu_s, wall_s, output = blktrace.cpu_seconds(words, env=os.environ | environment)
    return Took(wall_s, cpu_s, int(output.split()[-1]) * KIB)


FIRST = {  # CPU seconds of the first command in a bare home, and their target
    "demo": (["demo"], 15),
    "dm-cache on the demo's capture": (["replay", DEMO, "--cache", "dm-cache"], 20),
    "bcache on the demo's capture": (["replay", DEMO, "--cache", "bcache"], 20),
}


def start(options: Options) -> Iterator[Row]:
    """Yield the times of the first command after installation, and of later commands."""
    from engine import seconds

    for name, (words, limit_s) in FIRST.items():
        with tempfile.TemporaryDirectory() as home:
            first = command(*words, **bare(home))
            yield at_most(f"first {name}, bare home", first.cpu_s, "CPU s", limit_s)
            yield Row("– the same", first.wall_s, "wall s")
            if name == "demo":
                again = [command(*words, **bare(home)) for _ in range(3)]
    yield at_most("later demo", min(each.wall_s for each in again), "wall s", 2)
    yield Row("– the same", min(each.cpu_s for each in again), "CPU s")
    yield Row("– its peak memory", again[0].peak_bytes / MB, "MB")
    help_s = seconds([sys.executable, "-m", "hybridsim", "--help"])
    yield at_most("hybridsim --help", help_s, "wall s", 0.2)
    yield Row("import hybridsim", seconds([sys.executable, "-c", "import hybridsim"]), "wall s")


def bare(home: str) -> dict[str, str]:
    """Return the environment of a home without machine code, and without bytecode of any source."""
    return {"HOME": home, "HYBRIDSIM_CACHE_DIR": home, "PYTHONPYCACHEPREFIX": home}


def wheel(options: Options) -> Iterator[Row]:
    """Yield the CPU seconds of the first demo of a wheel that holds machine code (CONTRIBUTING)."""
    beside = Path(sys.executable).with_name("uv")
    uv = [str(beside) if beside.exists() else shutil.which("uv") or ""]
    if not uv[0]:
        yield Row("first demo from a wheel", None, "CPU s", peer="not installed: pip install uv")
        return
    with tempfile.TemporaryDirectory() as folder:
        tree, python = Path(folder, "tree"), Path(folder, "venv", "bin", "python")
        tree.mkdir()
        files = output("git", "ls-files", "-z", cwd=ROOT).split("\0")
        for name in filter(None, files):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)
        output(sys.executable, "-m", "hybridsim.jit", cwd=tree, PYTHONPATH=str(tree))
        output(*uv, "build", "-q", "--wheel", "--out-dir", f"{folder}/dist", cwd=tree)
        output(*uv, "venv", "-q", "--python", sys.executable, f"{folder}/venv")
        [made] = Path(folder, "dist").glob("*.whl")
        # As pip does: with bytecode.
        words = ["pip", "install", "-q", "--compile-bytecode", "--python", str(python)]
        output(*uv, *words, "-r", str(ROOT / "requirements.txt"), str(made))
        program = str(python.with_name("hybridsim"))
        for number in range(3):
            home = Path(folder, f"home{number}")
            home.mkdir()
            environment = os.environ | {"HOME": str(home), "HYBRIDSIM_CACHE_DIR": str(home)}
            environment.pop("PYTHONPATH", None)  # of this source
            cpu_s, wall_s, _ = blktrace.cpu_seconds([program, "demo"], env=environment, cwd=home)
            if not number:
                yield at_most("first demo from a wheel", cpu_s, "CPU s", 3)
                yield Row("– the same", wall_s, "wall s")
        yield Row("– once more, in another bare home", cpu_s, "CPU s")
        kept = sum(each.stat().st_size for each in home.rglob("*.nb?"))
        yield at_most("– machine code that it compiled", kept / MB, "MB", 0)


def output(*words: str, cwd: Path | None = None, **environment: str) -> str:
    """Return what a program prints; raise CalledProcessError if it fails."""
    whole = os.environ | environment
    run = subprocess.run(words, check=True, capture_output=True, text=True, cwd=cwd, env=whole)
    return run.stdout


def reading(options: Options) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        result = blktrace.measure(Path(folder), options.size(10_000_000, 500_000))
    peer: tuple[str, float | None] = ("not installed: apt-get install blktrace", None)
    if blktrace.BOTH in result.peers:
        peer = (blktrace.BOTH, result.peers[blktrace.BOTH].cpu_s)
    what = f"blktrace, {result.records / 1e6:.1f} M records to requests with latencies"
    yield times(what, result.reading.cpu_s, "CPU s", peer, 10, less=True)
    yield times("– the whole process", result.whole.cpu_s, "CPU s", peer, 10, less=True)
    yield at_most("– its peak memory", result.peak_bytes / MB, "MB", 300)


def text(options: Options) -> Iterator[Row]:
    import formats

    rows = options.size(1_000_000, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        best = formats.measure(Path(folder), rows, options.peer)
    ours = {each.form: took for each, took in best.items() if each.code == formats.OURS}
    for form, took in ours.items():
        spent = formats.peer_s(best, form)
        name = "pyarrow's CSV reader" if options.peer else INSTALL.format("pyarrow")
        peer = (name, spent and rows / spent / 1e6)
        speed = rows / took.cpu_s / 1e6
        yield times(f"lines of {form}", speed, "M/CPU s", peer, 1)
    peak = max(took.peak_kib for took in ours.values()) * KIB
    yield at_most("– largest peak memory", peak / MB, "MB", 300)


ENGINE = {  # thousand requests a CPU second
    "cache, nearly all hits, depth 32": 3_000,
    "one disk, depth 1": 200,
    "one disk, depth 16, NCQ": 100,
    "SSD, depth 1": 3_000,
    "SSD, depth 32": 3_000,
}


def engine(options: Options) -> Iterator[Row]:
    from engine import DISKSIM, measured

    for name, speed in measured(ENGINE.__contains__, 0.1 if options.quick else 1):
        row = at_least(name, speed.requests_per_s / 1e3, "k requests/CPU s", ENGINE[name])
        if name in DISKSIM:
            peer = "DiskSim -O2, fastest disk (disksim_throughput.csv)"
            row = row.compared_with(peer, DISKSIM[name][1])
        yield row


def hits(options: Options) -> Iterator[Row]:
    from hits import PEERS, curve_s, race, zipf

    with tempfile.TemporaryDirectory() as folder:
        trace = zipf(Path(folder) / "zipf.bin", 0.1, options.size(10_000_000, 1_000_000))
        for policy, (_, wanted) in PEERS.items():
            result = race(trace, policy, options.peer)
            speed = trace.requests / result.seconds / 1e6
            peer: tuple[str, float | None] = (INSTALL.format("libcachesim"), None)
            if result.peer_s is not None:
                same = "the same" if result.misses == result.peer_misses else "different"
                peer = (f"libCacheSim, {same} misses", trace.requests / result.peer_s / 1e6)
            yield times(f"hits, {policy}", speed, "M/CPU s", peer, wanted)
        curve, single = curve_s(trace)
    yield at_most("LRU's curve, all sizes", curve / single, "runs of one size", 4)


def learned(options: Options) -> Iterator[Row]:
    """Yield its CPU time in `hits`, where it dominates, and the memory of its arrays."""
    from policy_traces import all_traces

    for name, page in (("OLTP", 512), ("fileserver_newhot", 4096), ("steady 2", 4096)):
        traced = next((each for each in all_traces() if each.name == name), None)
        if traced is None:
            yield Row(f"learned, {name}", None, "ns/page access", peer="set HYBRIDSIM_DATA")
            continue
        rows = traced.requests()
        rows.rows = rows.rows.between(0, options.size(rows.rows.rows, 50_000))
        spent = {
            policy: access_ns(rows, page, policy, admission)
            for policy, admission in (("learned", "learned"), ("lru", "always"))
        }
        row = at_most(f"learned, {name}, cache of 10 %", spent["learned"], "ns/page access", 200)
        less = spent["lru"] / spent["learned"]
        yield replace(row, peer="LRU", peer_measured=spent["lru"], ratio=less)
    yield at_most("– its state", page_state_bytes(), "bytes/cached page", 32)


def access_ns(rows: Any, page: int, policy: str, admission: str) -> float:
    """Return the CPU time of one page access in ns, the best of three runs."""
    from hybridsim import hits
    from hybridsim.studies.hits import cache_pages

    (pages,) = cache_pages(rows, ["10%"], page)
    best = float("inf")
    for _ in range(3):
        begun = time.process_time_ns()
        (result,) = hits(rows, pages * page, policy, admission, page=page)
        best = min(best, (time.process_time_ns() - begun) / result.page_accesses)
    return best


def page_state_bytes() -> float:
    """Return the bytes of the learned policy's state per cached page."""
    from hybridsim.caches.policies.learned import Learned

    few, many = (held_bytes(Learned.new(pages, pages)) for pages in (1 << 16, 1 << 17))
    return (many - few) / (1 << 16)


def held_bytes(part: Any) -> int:
    """Return the bytes of the arrays of a state machine."""
    if isinstance(part, tuple):
        return sum(map(held_bytes, part))
    return getattr(part, "nbytes", 0)


def sweep(options: Options) -> Iterator[Row]:
    """Yield the wall-clock seconds of the whole command, with the start of the workers."""
    sizes = options.size(10, 2)
    words = ["sweep", DEMO, "--vary", "backing.members=3..12:10"]
    words += ["--vary", f"cache.size=16MiB..256MiB:{sizes}:log"]
    took = {}
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            place = ["--folder", folder, "--workers", str(workers)]
            took[workers] = command(*words, *place).wall_s
    what = f"sweep of {10 * sizes} points, two workers"
    yield times(what, took[2], "wall s", ("one process", took[1]), 1.8, less=True)


HALF_BANDS = {"gain": 10, "mean.reads.whole": 10, "hit.whole": 10, "mean.writes.whole": 20}  # %


def explore(options: Options) -> Iterator[Row]:
    """Yield how often the estimates of an exploration hold, and the size of its page."""
    from explore import DEMO as CAPTURE
    from explore import PAGE_MAX, measured

    check = options.size(100, 10)
    with tempfile.TemporaryDirectory() as folder:
        found = measured([CAPTURE], options.size(480, 60), check, folder)
        again = measured([CAPTURE], options.size(480, 60), check, folder)
    what = f"explore: figures of {check} held-out replays within 3 % or in the band"
    yield at_least(what, 100 * found["hold"], "%", 95)
    yield Row("– machines of which all figures hold", found["machines_hold"], "")
    halves = {name: 100 * half for name, *_, half in found["figures"]}
    for name, most in HALF_BANDS.items():
        yield at_most(f"– half band of {name}, median", halves[name], "%", most)
    yield at_most("– wrong answers without a warning", found["answers_wrong"], "", 0)
    yield at_most("– the page", found["page_bytes"] / MB, "MB", PAGE_MAX / MB)
    yield Row("– the first call", found["seconds"], "wall s")
    yield Row("– a second call", again["seconds"], "wall s")


def notebooks(options: Options) -> Iterator[Row]:
    yield suite("all notebooks", "tests/test_notebooks.py", 300)


def lab(options: Options) -> Iterator[Row]:
    yield suite("short run in the lab", "tests/test_validate_lab_guest.py", 240)


def decisions(options: Options) -> Iterator[Row]:
    """Yield the judged half of the table of decisions.py."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.environ.get("HYBRIDSIM_DECISIONS", scratch)
        path = Path(scratch) / "table.json"
        words = [sys.executable, str(ROOT / "benchmarks" / "decisions.py"), folder]
        words += ["--quick"] * options.quick
        subprocess.run([*words, "--json", str(path)], check=True, capture_output=True, text=True)
        row = {
            name: 100 * one for name, one in json.loads(path.read_text())["rows"]["judged"].items()
        }
    yield at_least("verdicts right", row["right"], "%", 92)
    yield at_most("verdicts wrong", row["wrong"], "%", 2)
    yield at_most("regret of the choice, median", row["regret"], "%", 2)
    yield at_most("– its 95th percentile", row["regret 95%"], "%", 10)
    yield at_most("answers that flip between seeds", row["seed flips"], "%", 3)
    yield at_least("intervals of 90 % that hold the later gain", row["coverage"], "%", 87)
    yield at_most("– and not too often", row["coverage"], "%", 97)


def errors(options: Options) -> Iterator[Row]:
    """Yield the coverage of the model's error on all real runs, one experiment left out."""
    from coverage_cases import rows
    from coverage_models import real

    for row in rows(real()):
        if row.what.endswith("all experiments"):
            yield covered(row)
            if "iops:" in row.what and "steady" not in row.what:
                yield at_most("– its median half-width", 100 * row.half_width, "%", 6)


def coverage(options: Options) -> Iterator[Row]:
    """Yield the coverage of intervals of replays, warm-up times, sampled curves and fits."""
    import coverage as of_intervals

    words = ["replay", "money", "warm", "disks", "stripes", "fio", "curves"]
    if folder := os.environ.get("HYBRIDSIM_COVERAGE"):
        words += ["--keep", folder]
    if options.quick:
        words += ["--loads", "12", "--warm", "1", "--disks", "20", "--samples", "1"]
    for row in of_intervals.table(of_intervals.parsed(words)):
        if row.promised is not None:
            yield covered(row)


def covered(row: Any) -> Row:
    """Return the row of a coverage, in per cent of its cases, with its limits."""
    low, high = (100 * each for each in row.limits)
    what = f"{row.what}: intervals of {row.promised:.0%} that hold"
    return Row(what, 100 * row.found, "%", f"{low:g} to {high:g}", met=row.met)


def suite(what: str, tests: str, limit_s: float) -> Row:
    """Return the row of the wall-clock seconds of a test file, which must pass."""
    begun = time.perf_counter()
    words = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-m", "", tests]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    last = done.stdout.splitlines()[-1] if done.stdout else "pytest did not run"
    if done.returncode or "passed" not in last:
        return Row(what, None, "wall s", f"at most {limit_s:g}", peer=last)
    return at_most(what, time.perf_counter() - begun, "wall s", limit_s)


GROUPS: dict[str, Callable[[Options], Iterator[Row]]] = {
    "start": start,
    "wheel": wheel,
    "reading": reading,
    "text": text,
    "engine": engine,
    "hits": hits,
    "learned": learned,
    "sweep": sweep,
    "explore": explore,
    "notebooks": notebooks,
    "lab": lab,
    "decisions": decisions,
    "errors": errors,
    "coverage": coverage,
}
BY_NAME = (
    "wheel",
    "explore",
    "notebooks",
    "lab",
    "decisions",
    "coverage",
)  # each takes minutes


def measure(groups: list[str], options: Options) -> Iterator[Row]:
    """Yield the rows of the groups; what most of them run is compiled before."""
    command("demo")
    for name in groups:
        begun = time.perf_counter()
        try:
            yield from GROUPS[name](options)
        except subprocess.CalledProcessError as error:  # the other groups are still measured
            last = (error.stderr or str(error)).splitlines()[-1]
            yield Row(f"{name}: failed", None, "", peer=last)
        print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr)


def figure(number: float | None) -> str:
    if number is None:
        return "–"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def cells(row: Row) -> list[str]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    theirs = "" if row.peer_measured is None else figure(row.peer_measured)
    met = {True: "yes", False: "**no**", None: ""}[row.met]
    return [row.what, figure(row.measured), row.unit, row.target, met, row.peer, theirs, ratio]


def machine() -> dict[str, Any]:
    """Return the properties of the machine that figures depend on."""
    import numba

    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numba": numba.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="GROUP")
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    blktrace.prepare()
    groups = arguments.only or [name for name in GROUPS if name not in BY_NAME]
    begun, load = time.perf_counter(), os.getloadavg()[0]
    heads = ["what", "measured", "unit", "target", "met", "peer", "its figure", "ratio"]
    rows = []
    if not arguments.json:
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in measure(groups, Options(arguments.quick, arguments.peer)):
        rows.append(row)
        if not arguments.json:
            print(f"| {' | '.join(cells(row))} |", flush=True)
    about = machine() | {"load_before": load, "load_after": os.getloadavg()[0]}
    about["seconds"] = round(time.perf_counter() - begun)
    if arguments.json:
        print(json.dumps({"machine": about, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        met = [row.met for row in rows if row.met is not None]
        print(
            f"\n{sum(met)} of {len(met)} targets met;",
            ", ".join(f"{k} {v}" for k, v in about.items()),
        )


if __name__ == "__main__":
    main()
