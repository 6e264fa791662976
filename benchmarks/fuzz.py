"""Coverage-guided fuzzing of every reader with damaged files.

    python benchmarks/fuzz.py --reader icf --inputs 100000 --seed 1

An input that reaches a new step from one line of the package to another is kept, and damaged
further.  A reader must succeed or raise the project's error with the name of the file.  Another
exception, more than SECONDS of CPU time, or MEMORY_BYTES more than before is a finding, which is
reported once for each place and written to --keep.  The same seed gives the same inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from damaged import SEEDS, forced, mutated  # noqa: E402
from scenario_texts import scenario_text  # noqa: E402

import hybridsim  # noqa: E402
from hybridsim.foundation.errors import HybridsimError  # noqa: E402

SECONDS = 5.0  # of CPU, tracing included
MEMORY_BYTES = 1 << 30
PARTS = 3  # chunks that are read of a trace, of 100 requests each
WORDS = [b"9" * 19, b"9" * 400, b"-1", b"1e999", b"nan", b"null", b"[", b"{}", b'"', b"=", b".",
         b"\n", b" " * 200, b"\0", b"\xff", b"\xc2\xb2", b"true", b"0", b"%", b"1d", b"99TiB",
         b"'", b"[" * 300, b".a" * 100]  # fmt: skip
Read = Callable[[Path], object]


class Reader(NamedTuple):
    """Valid files of a format, the suffix of their names, and the function that reads one."""

    seeds: list[bytes]
    read: Read
    ending: str = ""


class TooLong(BaseException):
    """An input took more than SECONDS of CPU time."""


def trace_of(kind: str) -> Read:
    from hybridsim.traces.trace import Trace

    def read(path: Path) -> None:
        for _ in islice(Trace.read(path, format=forced(kind)).chunks(100), PARTS):
            pass

    return read


def scenario(path: Path) -> None:
    from hybridsim.scenario import Scenario

    Scenario.load(path)


def saved_cache(path: Path) -> None:
    from hybridsim.caches.warm_start.saved_cache import SavedCache

    SavedCache.read(str(path))


def fio_job(path: Path) -> None:
    from hybridsim.workloads.fio import job, jobfile

    job.jobs_of(jobfile.read([str(path)]))


def fit(path: Path) -> None:
    from hybridsim.answers.fitting import fio
    from hybridsim.cli.fit import text

    result = fio.fit(str(path), fio.read([str(path)]))
    text(result)
    result.scenario()


def plan(path: Path) -> None:
    from hybridsim.studies.sweep.plan import load

    load(str(path))


def sweep_folder(path: Path) -> None:
    from hybridsim.studies.sweep.store import Store

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "results.jsonl").write_bytes(path.read_bytes())
        with Store(folder) as store:
            store.get("a")


def measurement(path: Path) -> None:
    from hybridsim.answers.measurements import gather

    gather(str(path))


def columns(path: Path) -> None:
    from hybridsim.traces.formats import mapped_text

    mapped_text._of_toml(str(path))


def catalog_entry(path: Path) -> None:
    """Read a drive of the catalog as a table of a scenario."""
    scenario(path)


def saved_seeds() -> list[bytes]:
    from hybridsim.caches.warm_start.saved_cache import SavedCache

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/state.npz"
        pages = np.arange(50) * 3
        SavedCache("", 4096, 512, 1 << 30, pages, pages * 0 + 255).write(path)
        packed = Path(path).read_bytes()
        with np.load(path) as arrays:
            np.savez(plain := io.BytesIO(), **dict(arrays))
    return [packed, plain.getvalue()]


def fio_json_seeds() -> list[bytes]:
    rng = np.random.default_rng(1)
    percents = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)
    result = []
    for scale in (1e5, 9e6):
        latency = scale * (0.4 + rng.random(999))
        figures = {
            "min": 1, "max": int(latency.max()), "mean": float(latency.mean()), "stddev": 1.5,
            "percentile": {f"{p:f}": int(np.percentile(latency, p)) for p in percents},
            "bins": {"1000": 3, "2000": 9},
        }  # fmt: skip
        part = {"total_ios": 999, "iops": 1e9 / scale, "bw_bytes": 4096, "io_bytes": 4091904,
                "runtime": 9, "clat_ns": figures, "lat_ns": figures}  # fmt: skip
        options = {"rw": "randread", "bs": "4k", "iodepth": "1", "direct": "1"}
        job = {"jobname": "one", "groupid": 0, "job options": options, "read": part}
        result.append(json.dumps({"fio version": "fio-3.33", "jobs": [job]}).encode())
    return result


DRIVE = b"""[backing]
kind = "single"
[backing.drive]
kind = "hdd"
rpm = 7200
capacity = "8TB"
seek_track_to_track = "0.6ms"
seek_average = "8ms"
seek_full = "16ms"
rate_outer = "255MB/s"
rate_inner = "120MB/s"
overhead = "0.1ms"
"""
SAMPLES = (
    b"uptime cache_hits cache_misses\n1.5 10 20\n2.5 15 29\n",
    b"1.50 0 8192 cache 8 13/4096 128 10/1000 5 6 7 8 1 2 3 1 metadata2 writethrough\n"
    b"2.50 0 8192 cache 8 13/4096 128 11/1000 6 6 8 8 1 2 4 1 metadata2 writethrough\n",
    b"job: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=10, BW=40KiB/s (41kB/s)(4MiB/100msec)\n"
    b"    clat (usec): min=1, max=9, avg=3.5, stdev=1.0\n    clat percentiles (usec):\n"
    b"     |  1.00th=[    1], 99.00th=[    9]\n",
)
JOBS = (
    b"[global]\nbs=4k\ndirect=1\nsize=1g\n"
    b"[a]\nrw=randrw\nrwmixread=70\nruntime=10\niodepth=4\n[b]\nrw=read\n"
)
PLAN = b"""[sweep]
traces = ["gen:hot-spot,span=1GiB"]
objectives = ["mean", "dwpd"]
seeds = 3
[vary]
"cache.size" = ["16GiB", "32GiB"]
cache.policy = ["lru", "larc+arc"]
[set]
"backing.members" = 6
"""


def readers() -> dict[str, Reader]:
    """Return all readers by name."""
    icf = (ROOT / "traces/workloads/web.icf").read_bytes()
    of_traces = {
        f"trace-{kind}": Reader([data], trace_of(kind))
        for kind, data in SEEDS.items()
        if kind not in ("workload", "line")
    }
    return of_traces | {
        "scenario": Reader([scenario_text(i).encode() for i in range(20)], scenario, ".toml"),
        "saved-cache": Reader(saved_seeds(), saved_cache, ".npz"),
        "workload": Reader([SEEDS["workload"], SEEDS["line"]], trace_of("workload"), ".toml"),
        "icf": Reader([icf], trace_of("workload"), ".icf"),
        "fio-job": Reader([JOBS], fio_job, ".fio"),
        "fit": Reader(fio_json_seeds(), fit, ".json"),
        "plan": Reader([PLAN], plan, ".toml"),
        "sweep-folder": Reader(
            [b'{"schema": "hybridsim.point/1", "key": "a", "mean": 1.5}\n' * 3], sweep_folder
        ),
        "measurement": Reader([*SAMPLES, *fio_json_seeds()], measurement, ".txt"),
        "fio-log": Reader([b"100, 5, 0, 4096, 0\n200, 7, 1, 4096, 0\n"], measurement, "_lat.1.log"),
        "columns": Reader([b'time = "when:us"\noffset = "lba:sectors"\n'], columns, ".toml"),
        "catalog": Reader([DRIVE], catalog_entry, ".toml"),
    }


class Lines:
    """The steps from line to line of the package that any input has taken."""

    def __init__(self) -> None:
        self._folder = str(Path(hybridsim.__file__).parent)
        self._mine: dict[Any, bool] = {}
        self._last = 0
        self.seen: set[int] = set()
        self.new = 0

    def _enter(self, frame: Any, event: str, argument: Any) -> Any:
        code = frame.f_code
        mine = self._mine.get(code)
        if mine is None:
            mine = self._mine[code] = code.co_filename.startswith(self._folder)
        return self._step if mine else None

    def _step(self, frame: Any, event: str, argument: Any) -> Any:
        here = id(frame.f_code) ^ frame.f_lineno * 0x9E3779B1
        edge = self._last * 31 ^ here
        if edge not in self.seen:
            self.seen.add(edge)
            self.new += 1
        self._last = here
        return self._step

    @contextlib.contextmanager
    def traced(self):
        self.new, self._last = 0, 0
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)


def damaged_once_more(corpus: list[bytes], rng: random.Random) -> bytes:
    """Return an input of the corpus with some changes, or a combination of two."""
    data = rng.choice(corpus)
    if rng.random() < 0.4:
        return mutated(data, rng) if data else b"\0"
    if rng.random() < 0.3 and len(corpus) > 1:
        other = rng.choice(corpus)
        return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        size = rng.choice([0, 1, 2, 5, 20])
        out[at : at + size] = rng.choice(WORDS)
    return bytes(out)


def attempt(reader: Reader, path: Path) -> str:
    """Read a file; return the finding as text, or an empty text."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        reader.read(path)
    except HybridsimError as error:
        return "" if path.name in str(error) else f"an error without the file's name: {error}"[:300]
    except TooLong:
        return "too long"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        ours = [
            one for one in traceback.extract_tb(error.__traceback__) if "hybridsim/" in one.filename
        ]
        where = ours[-1] if ours else place
        return f"{type(error).__name__}: {Path(where.filename).name}:{where.lineno}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _too_long(number: int, frame: object) -> None:
    raise TooLong


def fuzz(
    name: str, inputs: int, seed: int, seconds: float = 1e9, keep: Path | None = None
) -> tuple[int, int, dict[str, bytes]]:
    """Return the number of inputs read, the number kept, and findings: {text: input}."""
    reader = readers()[name]
    rng = random.Random(f"{name} {seed}")
    lines, corpus = Lines(), list(reader.seeds)
    result: dict[str, bytes] = {}
    places: set[str] = set()
    before = signal.signal(signal.SIGPROF, _too_long)
    begun, number = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{reader.ending}"
        for number in range(1, inputs + 1):
            data = (
                damaged_once_more(corpus, rng) if number > len(reader.seeds) else corpus[number - 1]
            )
            path.write_bytes(data)
            with lines.traced():
                wrong = attempt(reader, path)
            place = ":".join(wrong.split(":")[:3])
            if wrong and place not in places:
                places.add(place)
                result[wrong] = data
                if keep:
                    (keep / f"{name}-{seed}-{number}{reader.ending}").write_bytes(data)
                    print(f"{name} input {number}: {wrong}", flush=True)
            if lines.new and len(data) < 1 << 16 and number > len(reader.seeds):
                corpus.append(data)
            if time.monotonic() - begun > seconds:
                break
    signal.signal(signal.SIGPROF, before)
    return number, len(corpus) - len(reader.seeds), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reader", choices=[*readers(), "all"], default="all")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=1e9, help="maximum time of each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    for name in [*readers()] if arguments.reader == "all" else [arguments.reader]:
        count, kept, result = fuzz(
            name, arguments.inputs, arguments.seed, arguments.seconds, arguments.keep
        )
        print(f"{name}: {count:,} inputs, {kept} kept, {len(result)} findings", flush=True)


if __name__ == "__main__":
    main()
