"""Read Iometer's configuration files (.icf): the work of each worker, test by test.

In the file, a line `'comment` names the values on the lines that follow; sections are identified by
their first comment.  Result displays and manager addresses do not concern the load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.suggest import hint, nearest
from hybridsim.foundation.toml.problems import PROBLEMS_MAX, Problem, report
from hybridsim.foundation.units import format_size, format_time, parse_size
from hybridsim.workloads.iometer import DIGITS, Iometer, Line, is_number

SECOND, SECTOR = 10**9, 512
DEFAULT_RUN_NS = 60 * SECOND  # for tests that run until they are stopped
EXAMPLE = "4096,100,67,100,0,1,0,0"
NORMAL, CYCLED = ("NORMAL", "0"), ("CYCLE_OUTSTANDING_IOS", "6")
NO_DISK = re.compile(r"NETWORK|TCP|VI\b", re.I)
DEPTH_MAX = 4096  # requests outstanding of a worker, and maximum of a cycle of depths
NUMBER = re.compile(r"(?<!\d)\d+", re.ASCII)


def detect(text: str) -> bool:
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

    line: int
    outstanding: int = 1
    sectors_max: int = 0  # of each target; 0: the whole target
    first_sector: int = 0
    specs: list[tuple[str, int]] = field(default_factory=list)  # name, line
    targets: list[str] = field(default_factory=list)

    @property
    def places(self) -> list[str]:
        """Its targets; without any it works on one."""
        return self.targets or [""]


@dataclass
class Icf:
    """The contents of a file."""

    run_ns: int = 0
    ramp_ns: int = 0
    depths: tuple[int, ...] = ()  # override the workers' own
    specs: dict[str, Spec] = field(default_factory=dict)  # by lower-case name
    workers: list[Worker] = field(default_factory=list)


def read(text: str, name: str) -> Icf:
    """Return the contents of a file; raise WorkloadError with every unsupported or wrong line."""
    reading = _Reading(text, name)
    reading.all()
    if reading.problems:
        raise WorkloadError(report(reading.problems, "Iometer file"))
    return reading.icf


class _Reading:
    """Reads a file line by line, and collects its problems."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._lines = text.split("\n")
        self.icf = Icf()
        self.problems: list[Problem] = []
        self._cycle: tuple[int, ...] = ()
        self._worker: Worker | None = None

    def wrong(self, line: int, message: str) -> None:
        """Add a problem at a line, counted from 1; beyond PROBLEMS_MAX they are ignored."""
        if len(self.problems) > PROBLEMS_MAX:
            return
        content = self._lines[line - 1]
        column = len(content) - len(content.lstrip()) + 1
        self.problems.append(Problem.at(message, self._text, self._name, line, column))

    def all(self) -> None:
        """Read the whole file."""
        for key, line, values in self._entries():
            word = key.split(",")[0].strip().lower()
            if word == "access specification name":
                self._name_spec(line, values)
            elif word == "size":
                self._fill_spec(line, values)
            elif values:
                self._one(word, line + 1, values)
        for spec in self.icf.specs.values():
            if all(spec.access) and sum(row.of_size for row in spec.access if row) != 100:
                self.wrong(spec.line, "the % of size of all lines must add up to 100")
        if not self.icf.specs and not self.problems:
            self.wrong(1, "the file contains no access specification")
        for worker in self.icf.workers:
            self._check(worker)

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
            self.icf.run_ns = ((hours * 60 + minutes) * 60 + seconds) * SECOND
        elif word.startswith("ramp up time"):
            self.icf.ramp_ns = self._numbers(line, value, 1)[0] * SECOND
        elif word.split() == ["start", "end", "step", "step", "type"]:
            self._cycle = self._depths(line, value)
        elif word == "test type":
            if value.upper() in CYCLED:
                self.icf.depths = self._cycle
            elif value.upper() not in NORMAL:
                supported = f"supported are {NORMAL[0]} and {CYCLED[0]}"
                self.wrong(line, f"tests that cycle over workers or targets: {supported}")
        elif word == "worker":
            self._worker = Worker(line)
            self.icf.workers.append(self._worker)
        elif self._worker is not None:
            self._of_worker(self._worker, word, line, values)

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
        self.icf.specs[name.lower()] = Spec(name, min(line + 1, len(self._lines)))

    def _fill_spec(self, line: int, values: list[str]) -> None:
        name = next(reversed(self.icf.specs), None)
        if name is None:
            self.wrong(line, "the access specification of these lines has no name")
            return
        rows = [self._row(line + 1 + i, value) for i, value in enumerate(values) if value]
        self.icf.specs[name].access = rows

    def _row(self, line: int, value: str) -> Line | None:
        fields = [each.strip() for each in value.split(",")]
        if len(fields) != len(Line._fields) or not all(map(is_number, fields)):
            columns = ", ".join(Line._fields).replace("of_size", "% of size")
            self.wrong(line, f"not a line of an access specification ({columns}), as in {EXAMPLE}")
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
            spec = self.icf.specs.get(name.lower())
            if spec is None and name.lower() != "idle":
                near = nearest(name, [each.name for each in self.icf.specs.values()])
                meant = f": did you mean {near!r}?" if near else ""
                self.wrong(line, f"the file contains no access specification {name!r}{meant}")
            max_bytes = worker.sectors_max * SECTOR
            sizes = [row.size for row in spec.access if row] if spec else []
            if max_bytes and max(sizes, default=0) > max_bytes:
                self.wrong(line, f"a request does not fit into {worker.sectors_max} sectors")


def loads(icf: Icf, options: Mapping[str, Any]) -> list[tuple[dict[str, Any], int]]:
    """Return the table of each load, and the line of its access specification in the file.

    A table for each worker, target and test: tests run one after another, each for ramp + run at
    every depth; targets are concatenated on the volume.  `options` override the values of the file.
    Raises ValueError if `spec` is not an access specification of the file.
    """
    over = {key: value for key, value in options.items() if key not in ("icf", "spec")}
    span = over.get("span", Iometer.model_fields["span"].default)
    span_bytes = span if isinstance(span, int) else parse_size(span)
    workers = icf.workers or [Worker(0)]  # a file with specifications only: one worker runs them
    extents: dict[str, int] = {}
    for worker in workers:
        extent = worker.first_sector * SECTOR + (worker.sectors_max * SECTOR or span_bytes)
        for target in worker.places:
            extents[target] = max(extents.get(target, 0), extent)
    begins = dict(zip(extents, accumulate(extents.values(), initial=0)))
    run_ns = icf.run_ns or DEFAULT_RUN_NS
    lasts_ns = (icf.ramp_ns + run_ns) * max(1, len(icf.depths))
    tables = []
    for number, test in enumerate(_tests(icf, workers, options.get("spec"))):
        for worker, spec in test:
            for target in worker.places:
                table = {
                    "kind": "iometer",
                    "name": spec.name,
                    "access": [",".join(map(str, row or ())) for row in spec.access],
                    "depth": list(icf.depths or (worker.outstanding,)),
                    "ramp": format_time(icf.ramp_ns),
                    "run": format_time(run_ns),
                    "at": format_size(begins[target] + worker.first_sector * SECTOR),
                    "span": format_size(worker.sectors_max * SECTOR or span_bytes),
                    "begin": format_time(number * lasts_ns),
                    "end": format_time((number + 1) * lasts_ns),
                }
                tables.append((table | over, spec.line))
    return tables


def _tests(
    icf: Icf, workers: Sequence[Worker], name: str | None
) -> list[list[tuple[Worker, Spec]]]:
    """Return for each test the workers with their access specifications."""
    if name is not None:
        if name.lower() not in icf.specs:
            names = [spec.name for spec in icf.specs.values()]
            raise ValueError(f"unknown access specification {name!r}: {hint(name, names)}")
        return [[(worker, icf.specs[name.lower()]) for worker in workers]]
    assigned = [[each for each, _ in worker.specs] for worker in workers]
    if not any(assigned):  # no assignments: run all specifications, one after another
        assigned = [[spec.name for spec in icf.specs.values()]] * len(workers)
    return [
        [
            (worker, icf.specs[names[test].lower()])
            for worker, names in zip(workers, assigned)
            if test < len(names) and (names[test].lower() in icf.specs)
        ]
        for test in range(max(map(len, assigned)))
    ]
