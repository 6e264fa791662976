"""Read Iometer's configuration files (.icf): the work of each worker, test by test.

In the file, a line `'comment` names the values on the lines that follow; sections are identified by
their first comment.  Result displays and manager addresses do not concern the load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hybridsim.foundation.errors import WorkloadError
from hybridsim.foundation.suggest import nearest
from hybridsim.foundation.toml.problems import PROBLEMS_MAX, Problem, report

SECOND = 10**9
COLUMNS = ("size", "of_size", "reads", "random", "delay", "burst", "align", "reply")
EXAMPLE = "4096,100,67,100,0,1,0,0"
NORMAL, CYCLED = ("NORMAL", "0"), ("CYCLE_OUTSTANDING_IOS", "6")
NO_DISK = re.compile(r"NETWORK|TCP|VI\b", re.I)
DEPTH_MAX = 4096  # requests outstanding of a worker, and maximum of a cycle of depths
DIGITS = 15  # maximum digits of a number: enough for 30 years in us, a PB in bytes
NUMBER = re.compile(r"(?<!\d)\d+", re.ASCII)


def detect(text: str) -> bool:
    """Return whether the text is a configuration file of Iometer."""
    return text.startswith("Version ") and "\n'" in text


@dataclass(frozen=True)
class Spec:
    """An access specification: its lines as numbers, by COLUMNS."""

    name: str
    line: int  # of the file
    access: tuple[tuple[int, ...], ...]


@dataclass
class Worker:
    """One worker: its targets, and its access specification in each test."""

    line: int
    outstanding: int = 1
    sectors_max: int = 0  # of each target; 0: the whole target
    first_sector: int = 0
    specs: list[tuple[str, int]] = field(default_factory=list)  # name, line
    targets: list[str] = field(default_factory=list)


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


def is_number(word: str) -> bool:
    """Return whether a word is an integer of at most DIGITS digits."""
    return word.isascii() and word.isdigit() and len(word) <= DIGITS


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
            if all(spec.access) and sum(row[1] for row in spec.access) != 100:
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
            self._test_type(line, value.upper())
        elif word == "worker":
            self._worker = Worker(line)
            self.icf.workers.append(self._worker)
        elif self._worker is not None:
            self._of_worker(self._worker, word, line, values)

    def _test_type(self, line: int, value: str) -> None:
        if value in CYCLED:
            self.icf.depths = self._cycle
        elif value not in NORMAL:
            supported = f"supported are {NORMAL[0]} and {CYCLED[0]}"
            self.wrong(line, f"tests that cycle over workers or targets: {supported}")

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
        self.icf.specs[name.lower()] = Spec(name, min(line + 1, len(self._lines)), ())

    def _fill_spec(self, line: int, values: list[str]) -> None:
        name = next(reversed(self.icf.specs), None)
        if name is None:
            self.wrong(line, "the access specification of these lines has no name")
            return
        rows = [self._row(line + 1 + i, value) for i, value in enumerate(values) if value]
        spec = self.icf.specs[name]
        self.icf.specs[name] = Spec(spec.name, spec.line, tuple(rows))

    def _row(self, line: int, value: str) -> tuple[int, ...]:
        fields = [each.strip() for each in value.split(",")]
        if len(fields) != len(COLUMNS) or not all(map(is_number, fields)):
            columns = ", ".join(COLUMNS).replace("of_size", "% of size")
            self.wrong(line, f"not a line of an access specification ({columns}), as in {EXAMPLE}")
            return ()
        row = dict(zip(COLUMNS, map(int, fields)))
        if row["size"] < 1 or max(row[each] for each in COLUMNS[1:4]) > 100:
            self.wrong(line, "a size must be at least 1 byte, and shares at most 100")
        if row["burst"] < 1:
            self.wrong(line, "a burst must be at least one request")
        if row["reply"]:
            self.wrong(line, "replies are for networks and not supported: reply must be 0")
        return tuple(row.values())

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
            max_bytes = worker.sectors_max * 512
            sizes = [row[0] for row in spec.access if row] if spec else []
            if max_bytes and max(sizes, default=0) > max_bytes:
                self.wrong(line, f"a request does not fit into {worker.sectors_max} sectors")
