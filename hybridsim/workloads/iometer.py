"""Iometer: access specifications, from lines as in its .icf files, and these files.

A line is size, % of size, % reads, % random, delay, burst, align, reply.  As in Iometer, a request
that is not random starts where the preceding one ended, and each worker pauses for `delay` ms after
`burst` requests.  Replies (of networks) are not supported.  `rate` is the rate of requests; `ramp`
and `run` set the time per depth, and `depth = "1-512"` doubles it step by step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.suggest import hint, nearest
from hybridsim.foundation.toml.problems import PROBLEMS_MAX, Problem, report
from hybridsim.foundation.toml.table import Time
from hybridsim.foundation.units import format_size, format_time, parse_size
from hybridsim.requests.rows import Requests
from hybridsim.workloads.draws import Draws, Ints, Weighted
from hybridsim.workloads.load import DEPTH_MAX, SHOWN, Depths, Load

EXAMPLE = "4096,100,100,100,0,1,4096,0"
MILLISECOND = 10**6
SECTOR = 512
DIGITS = 15  # maximum digits of a number: enough for 30 years in us, a PB in bytes


class Line(NamedTuple):
    """One line of an access specification, as whole numbers."""

    size: int  # bytes
    of_size: int  # percent of the requests
    reads: int  # percent
    random: int  # percent
    delay: int = 0  # ms
    burst: int = 1
    align: int = 0  # bytes; 0: sectors
    reply: int = 0


def is_number(word: str) -> bool:
    """Return whether a word is an integer of at most DIGITS digits."""
    return word.isascii() and word.isdigit() and len(word) <= DIGITS


def _lines(value: Any) -> tuple[Line, ...]:
    texts = value.split(":") if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise ValueError(
            f"access must be a list of lines, as '{EXAMPLE}' ({', '.join(Line._fields)})"
        )
    lines = []
    for text in texts:
        fields = [each.strip() for each in str(text).replace("/", ",").split(",")]
        if not 4 <= len(fields) <= 8 or not all(map(is_number, fields)):
            shown = repr(str(text)[:SHOWN])
            raise ValueError(f"{shown} is not a line of an access specification, as '{EXAMPLE}'")
        lines.append(Line(*map(int, fields)))
    for line in lines:
        if line.size < 1 or max(line.of_size, line.reads, line.random) > 100:
            raise ValueError(f"{line.size}: a size must be at least 1 byte, and shares at most 100")
        if line.reply or line.burst < 1:
            raise ValueError("reply must be 0 (networks are not supported), and burst at least 1")
    if len({(line.delay, line.burst) for line in lines if line.delay}) > 1 or (
        any(line.delay for line in lines) and not all(line.delay for line in lines)
    ):
        raise ValueError("delays are only supported if all lines have the same delay and burst")
    if sum(line.of_size for line in lines) != 100:
        raise ValueError("the % of size of all lines must add up to 100")
    return tuple(lines)


class Iometer(Load):
    """Access specifications of Iometer; span is Iometer's maximum disk size."""

    kind: Literal["iometer"] = "iometer"
    # lines of size,% of size,% reads,% random,delay,burst,align,reply; in gen: / for ,
    access: Annotated[tuple[Line, ...], BeforeValidator(_lines)] = (Line(4096, 100, 100, 100),)
    depth: Depths | None = (1,)
    ramp: Time = 0  # time at each queue depth before the measurement
    run: Time = 60 * 10**9  # measured time at each depth
    icf: str = ""  # Iometer's file, which sets access, depth, ramp, run, begin, end, at and span
    spec: str = ""  # name of one access specification in that file, instead of its tests

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject keys that contradict the access specification."""
        yield from super().contradictions()
        for key in {"size", "read", "align", "step"} & self.model_fields_set:
            instead = "ramp and run" if key == "step" else "the access lines"
            yield key, f"{key} is set by {instead}"
        if max(line.size for line in self.access) > self.span:
            yield "access", "a request does not fit into the span"
        if self.ramp + self.run == 0:
            yield "run", "ramp + run must be greater than 0"
        if self.spec:
            yield "spec", "spec requires icf=FILE, the file of the access specification"
        if self.access[0].delay and (self.flush_every or self.depth is None or len(self.depth) > 1):
            yield "access", "delays require a single depth, and no flushes"

    @property
    def step_ns(self) -> int:
        """Return the time per depth in ns."""
        return self.ramp + self.run

    def paused_ns(self, number: Ints) -> Ints:
        """Return the total pause in ns of the worker before each request."""
        line, depth = self.access[0], self.depth or (1,)
        done: Ints = number // depth[0] // line.burst
        return done * line.delay * MILLISECOND

    def places(self, seed: int) -> Callable[[Draws, Ints, Ints, Any], Ints]:
        """Return a function that returns offsets of requests, with their lengths and alignments.

        They are random where `jumps`, else the end of the preceding request.
        """
        span, last_end = self.span, 0

        def offsets(draws: Draws, length: Ints, align: Ints, jumps: Any) -> Ints:
            nonlocal last_end
            anywhere = draws.below((span - length) // align + 1, len(length)) * align
            ends = np.cumsum(length)
            begins = ends - length
            last = np.maximum.accumulate(np.where(jumps, np.arange(len(length)), -1))
            on = np.where(last < 0, last_end, anywhere[last] - begins[last]) + begins
            beyond = (on % span) + length > span
            offset = np.where(jumps, anywhere, np.where(beyond, span - length, on % span))
            last_end = int(offset[-1] + length[-1]) % span
            return offset

        return offsets

    def fill(self, rows: Requests, places: Any, draws: Draws) -> None:
        """Draw an access line for each request."""
        lines = np.array(self.access, np.int64)
        line = Weighted([each.of_size for each in self.access]).choose(draws, rows.rows)
        size, _, reads, random, _, _, align, _ = lines[line].T
        rows.length_bytes[:] = size
        rows.op[:] = np.where(draws.happens(reads / 100, rows.rows), Op.READ, Op.WRITE)
        jumps = draws.happens(random / 100, rows.rows)
        rows.offset_bytes[:] = places(draws, size, np.maximum(align, SECTOR), jumps)


SECOND = 10**9
DEFAULT_RUN_NS = 60 * SECOND  # for tests that run until they are stopped
OF_FILE = "4096,100,67,100,0,1,0,0"
NORMAL, CYCLED = ("NORMAL", "0"), ("CYCLE_OUTSTANDING_IOS", "6")
NO_DISK = re.compile(r"NETWORK|TCP|VI\b", re.I)
NUMBER = re.compile(r"(?<!\d)\d+", re.ASCII)


def is_icf(text: str) -> bool:
    """Return whether the text is a configuration file of Iometer."""
    return text.startswith("Version ") and "\n'" in text


@dataclass
class Spec:
    """An access specification."""

    name: str
    line: int  # of the file
    access: list[Line | None] = field(default_factory=list)  # None: a wrong line


@dataclass
class Worker:
    """One worker: its targets, and its access specification in each test."""

    outstanding: int = 1
    sectors_max: int = 0  # of each target; 0: the whole target
    first_sector: int = 0
    specs: list[tuple[str, int]] = field(default_factory=list)  # name, line
    targets: list[str] = field(default_factory=list)

    @property
    def places(self) -> list[str]:
        """Its targets; without any it works on one."""
        return self.targets or [""]


class Icf:
    """The contents of a configuration file (.icf): the work of each worker, test by test.

    In the file, a line `'comment` names the values on the lines that follow; sections are
    identified by their first comment.  Result displays and manager addresses do not concern the
    load.
    """

    def __init__(self, text: str, name: str) -> None:
        """Read a file; raise WorkloadError with every unsupported or wrong line."""
        self._text, self._name = text, name
        self._lines = text.split("\n")
        self._problems: list[Problem] = []
        self._cycle: tuple[int, ...] = ()
        self.run_ns = self.ramp_ns = 0
        self.depths: tuple[int, ...] = ()  # override the workers' own
        self.specs: dict[str, Spec] = {}  # by lower-case name
        self.workers: list[Worker] = []
        for key, line, values in self._entries():
            word = key.split(",")[0].strip().lower()
            if word == "access specification name":
                self._name_spec(line, values)
            elif word == "size":
                self._fill_spec(line, values)
            elif values:
                self._one(word, line + 1, values)
        for spec in self.specs.values():
            if all(spec.access) and sum(row.of_size for row in spec.access if row) != 100:
                self.wrong(spec.line, "the % of size of all lines must add up to 100")
        if not self.specs and not self._problems:
            self.wrong(1, "the file contains no access specification")
        for worker in self.workers:
            self._check(worker)
        if self._problems:
            raise WorkloadError(report(self._problems, "Iometer file"))

    def wrong(self, line: int, message: str) -> None:
        """Add a problem at a line, counted from 1; beyond PROBLEMS_MAX they are ignored."""
        if len(self._problems) > PROBLEMS_MAX:
            return
        content = self._lines[line - 1]
        column = len(content) - len(content.lstrip()) + 1
        self._problems.append(Problem.at(message, self._text, self._name, line, column))

    def _entries(self) -> Iterator[tuple[str, int, list[str]]]:
        """Yield each comment, its line number, and the lines that follow it."""
        at = 0
        while at < len(self._lines):
            line, at = at + 1, at + 1
            content = self._lines[line - 1].strip()
            if not content.startswith("'"):
                continue
            values = []
            while at < len(self._lines) and not self._lines[at].lstrip().startswith("'"):
                values.append(self._lines[at].strip())
                at += 1
            yield content.removeprefix("'").strip(), line, values

    def _one(self, word: str, line: int, values: list[str]) -> None:
        """Read an entry whose value is one line."""
        value = values[0]
        if word.startswith("hours"):
            hours, minutes, seconds = self._numbers(line, value, 3)
            self.run_ns = ((hours * 60 + minutes) * 60 + seconds) * SECOND
        elif word.startswith("ramp up time"):
            self.ramp_ns = self._numbers(line, value, 1)[0] * SECOND
        elif word.split() == ["start", "end", "step", "step", "type"]:
            self._cycle = self._depths(line, value)
        elif word == "test type":
            if value.upper() in CYCLED:
                self.depths = self._cycle
            elif value.upper() not in NORMAL:
                supported = f"supported are {NORMAL[0]} and {CYCLED[0]}"
                self.wrong(line, f"tests that cycle over workers or targets: {supported}")
        elif word == "worker":
            self.workers.append(Worker())
        elif self.workers:
            self._of_worker(self.workers[-1], word, line, values)

    def _of_worker(self, worker: Worker, word: str, line: int, values: list[str]) -> None:
        value = values[0]
        if word in ("worker type", "target type") and NO_DISK.match(value):
            self.wrong(line, f"network workers are not supported: remove this {word.split()[0]}")
        elif word == "number of outstanding ios":
            worker.outstanding = self._numbers(line, value, 1)[0]
            if not 1 <= worker.outstanding <= DEPTH_MAX:
                self.wrong(line, f"outstanding requests must be from 1 to {DEPTH_MAX}")
        elif word == "disk maximum size":
            worker.sectors_max, worker.first_sector = self._numbers(line, value, 2)
        elif word == "assigned access specs":
            worker.specs = [(each, line + i) for i, each in enumerate(values) if each]
        elif word == "target":
            worker.targets.append(value)

    def _name_spec(self, line: int, values: list[str]) -> None:
        name = values[0].rsplit(",", 1)[0].strip() if values else ""
        if not name:
            self.wrong(
                line, "a name and its default assignment must follow, as in 'Web server,NONE'"
            )
        self.specs[name.lower()] = Spec(name, min(line + 1, len(self._lines)))

    def _fill_spec(self, line: int, values: list[str]) -> None:
        name = next(reversed(self.specs), None)
        if name is None:
            self.wrong(line, "the access specification of these lines has no name")
            return
        rows = [self._row(line + 1 + i, value) for i, value in enumerate(values) if value]
        self.specs[name].access = rows

    def _row(self, line: int, value: str) -> Line | None:
        fields = [each.strip() for each in value.split(",")]
        if len(fields) != len(Line._fields) or not all(map(is_number, fields)):
            columns = ", ".join(Line._fields).replace("of_size", "% of size")
            self.wrong(line, f"not a line of an access specification ({columns}), as in {OF_FILE}")
            return None
        row = Line(*map(int, fields))
        if row.size < 1 or max(row.of_size, row.reads, row.random) > 100:
            self.wrong(line, "a size must be at least 1 byte, and shares at most 100")
        if row.burst < 1:
            self.wrong(line, "a burst must be at least one request")
        if row.reply:
            self.wrong(line, "replies are for networks and not supported: reply must be 0")
        return row

    def _depths(self, line: int, value: str) -> tuple[int, ...]:
        begin, end, step = self._numbers(line, value, 3)
        is_linear = value.upper().endswith("LINEAR")
        if begin < 1 or end < begin or step < (1 if is_linear else 2):
            self.wrong(
                line,
                "depths must increase: start at least 1, end not below it, step positive",
            )
            return (1,)
        if end > DEPTH_MAX:
            self.wrong(line, f"depths must be at most {DEPTH_MAX}")
            return (1,)
        depths = [begin]
        while (more := depths[-1] + step if is_linear else depths[-1] * step) <= end:
            depths.append(more)
        return tuple(depths)

    def _numbers(self, line: int, value: str, count: int) -> list[int]:
        words = NUMBER.findall(value)[:count]
        numbers = [int(each) for each in words if is_number(each)]
        if len(numbers) < count:
            what = "an integer" if count == 1 else f"{count} integers"
            self.wrong(line, f"expected {what} of at most {DIGITS} digits")
            numbers += [1] * count
        return numbers[:count]

    def _check(self, worker: Worker) -> None:
        for name, line in worker.specs:
            spec = self.specs.get(name.lower())
            if spec is None and name.lower() != "idle":
                near = nearest(name, [each.name for each in self.specs.values()])
                meant = f": did you mean {near!r}?" if near else ""
                self.wrong(line, f"the file contains no access specification {name!r}{meant}")
            max_bytes = worker.sectors_max * SECTOR
            sizes = [row.size for row in spec.access if row] if spec else []
            if max_bytes and max(sizes, default=0) > max_bytes:
                self.wrong(line, f"a request does not fit into {worker.sectors_max} sectors")

    def loads(self, options: Mapping[str, Any]) -> list[tuple[dict[str, Any], int]]:
        """Return the table of each load, and the line of its access specification in the file.

        A table for each worker, target and test: tests run one after another, each for ramp + run
        at every depth; targets are concatenated on the volume.  `options` override the values of
        the file.  Raises ValueError if `spec` is not an access specification of the file.
        """
        over = {key: value for key, value in options.items() if key not in ("icf", "spec")}
        span = over.get("span", Iometer.model_fields["span"].default)
        span_bytes = span if isinstance(span, int) else parse_size(span)
        workers = self.workers or [Worker()]  # a file with specifications only: one runs them
        extents: dict[str, int] = {}
        for worker in workers:
            extent = worker.first_sector * SECTOR + (worker.sectors_max * SECTOR or span_bytes)
            for target in worker.places:
                extents[target] = max(extents.get(target, 0), extent)
        begins = dict(zip(extents, accumulate(extents.values(), initial=0)))
        run_ns = self.run_ns or DEFAULT_RUN_NS
        lasts_ns = (self.ramp_ns + run_ns) * max(1, len(self.depths))
        return [
            (
                {
                    "kind": "iometer",
                    "name": spec.name,
                    "access": [",".join(map(str, row or ())) for row in spec.access],
                    "depth": list(self.depths or (worker.outstanding,)),
                    "ramp": format_time(self.ramp_ns),
                    "run": format_time(run_ns),
                    "at": format_size(begins[target] + worker.first_sector * SECTOR),
                    "span": format_size(worker.sectors_max * SECTOR or span_bytes),
                    "begin": format_time(number * lasts_ns),
                    "end": format_time((number + 1) * lasts_ns),
                    **over,
                },
                spec.line,
            )
            for number, test in enumerate(self._tests(workers, options.get("spec")))
            for worker, spec in test
            for target in worker.places
        ]

    def _tests(
        self, workers: Sequence[Worker], name: str | None
    ) -> list[list[tuple[Worker, Spec]]]:
        """Return for each test the workers with their access specifications."""
        if name is not None:
            if name.lower() not in self.specs:
                names = [spec.name for spec in self.specs.values()]
                raise ValueError(f"unknown access specification {name!r}: {hint(name, names)}")
            return [[(worker, self.specs[name.lower()]) for worker in workers]]
        assigned = [[each.lower() for each, _ in worker.specs] for worker in workers]
        if not any(assigned):  # no assignments: run all specifications, one after another
            assigned = [list(self.specs)] * len(workers)
        return [
            [
                (worker, self.specs[names[test]])
                for worker, names in zip(workers, assigned)
                if test < len(names) and names[test] in self.specs
            ]
            for test in range(max(map(len, assigned)))
        ]
