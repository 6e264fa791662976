"""fio's text report: of 1.x and 2.x as in the documents of the reference systems, and of 3.x.

Lines may be incomplete, for example if a web page lost emphasised words; the other parts are read.
If a page has only the lines of results, jobs get the names of the commands above them.
"""

from __future__ import annotations

import re

from hybridsim.answers.measurements.measurement import (
    BANDWIDTH,
    BYTES,
    IOPS,
    LATENCY,
    MILLISECOND,
    REQUESTS,
    RUNTIME,
    Measurement,
)
from hybridsim.foundation.errors import MeasurementError

GROUP_OF_JOB = re.compile(r"(?P<group>\d{1,9}), jobs=\d+\)")
DIRECTION = re.compile(r"^(?P<what>read|write|trim)\s*+: (?P<rest>.*)$")
RESULT = re.compile(r"^[ \t]*+(read|write|trim)[ \t]*+: (IOPS|io)=", re.M)
COMMAND = re.compile(r"\bfio\s")
FIGURE = re.compile(r"(?<!\w)(\w++)=\s*+(\d{1,30}+(?:[.,]\d{1,30}+){0,20}+)\s*+([A-Za-z/]*+)")
MOVED = re.compile(
    r"\((?P<size>\d{1,30}+(?:\.\d{1,30}+)?)(?P<unit>[A-Za-z]++)/(?P<ms>\d{1,15}+)msec\)"
)
MOMENTS = re.compile(r"^(?P<kind>slat|clat|lat|sync) \((?P<unit>nsec|usec|msec)\): ?(?P<rest>.*)$")
PERCENTILES = re.compile(r"^(?P<kind>clat|lat|sync) percentiles \((?P<unit>\w+)\):")
PERCENTILE = re.compile(r"(?<![\d.])(\d{1,3}+(?:\.\d{1,30}+)?)th=\[\s*+(\d{1,18}+)\]")
ISSUED_2 = re.compile(r"^issued\s*:.*total=r=(\d{1,18})/w=(\d{1,18})/d=(\d{1,18})")
ISSUED_1 = re.compile(r"^issued r/w: total=(\d{1,18})/(\d{1,18})")
ISSUED_3 = re.compile(r"^issued rwts?: total=(\d{1,18}),(\d{1,18}),(\d{1,18})")
GROUP = re.compile(
    r"^(?P<what>READ|WRITE|TRIM): .*?aggrb="
    r"(?P<rate>\d{1,30}+(?:[.,]\d{1,30}+){0,20}+)(?P<unit>[A-Za-z]{1,6}+)/s"
)
TIMES_NS = {"nsec": 1, "usec": 10**3, "msec": 10**6}
PREFIXES = "KMGTP"


def detect(name: str, head: str) -> bool:
    """Return whether a file contains a report of fio."""
    is_whole = "(groupid=" in head and "jobs=" in head
    return is_whole or RESULT.search(head) is not None


def read(name: str, text: str) -> Measurement:
    """Parse a report; raise MeasurementError if it has no figures."""
    page = Page(name)
    for line in text.splitlines():
        page.take(line.strip())
    page.finish()
    if not page.result.figures:
        raise MeasurementError(f"{name}: a report of fio without results of reads or writes")
    return page.result


def amount(text: str, unit: str, thousand: int = 1024) -> float:
    """Return a number with a unit of fio's: 7131.2KB, 91.6MiB, 23.4k, 171K.

    KB in fio 1.x and 2.x and KiB in 3.x are 1024 bytes; KB in 3.x is 1000.  A count in k or M is
    decimal.
    """
    number = float(text.replace(",", ""))
    letter = unit[:1].upper()
    return number * thousand ** (PREFIXES.index(letter) + 1) if letter in {*PREFIXES} else number


def _job_of(line: str) -> tuple[str, int] | None:
    """Return name and group of the job that a line introduces, or None.

    Some pages have the word Output before the name.
    """
    before, mark, behind = line.partition(": (groupid=")
    match = GROUP_OF_JOB.match(behind) if mark else None
    name = before.partition("Output")[2] or before
    if match is None or ":" in name or not name[:1].strip():
        return None
    return name.strip(), int(match["group"])


def _name_of(line: str) -> str:
    """Return the job name in a command line of fio, or an empty text."""
    match = COMMAND.search(line)
    mark, behind = line[match.end() :].rpartition("-name=")[1:] if match else ("", "")
    return behind.split(None, 1)[0] if mark and behind[:1].strip() else ""


class Page:
    """A parser of a report, line by line."""

    def __init__(self, name: str) -> None:
        self.result = Measurement([name])
        self._job = ""
        self._command = "job"  # the name of a job that no line names
        self._what = ""
        self._percentiles: tuple[str, int] | None = None

    def take(self, line: str) -> None:
        """Parse a line; lines of unknown kinds are ignored."""
        if begun := _job_of(line):
            self._begin(*begun)
        elif line.startswith("Run status group"):
            self._what = ""
        elif match := GROUP.match(line):
            # The bandwidth of a group of one job, if the job's own line lacks it.
            jobs, what = self.result.jobs, match["what"].lower()
            if len(jobs) == 1 and (jobs[0], what, BANDWIDTH) not in self.result.figures:
                self.result.put(jobs[0], what, BANDWIDTH, amount(match["rate"], match["unit"]))
        elif name := _name_of(line):
            self._job, self._command = "", name
        elif match := DIRECTION.match(line):
            if not self._job and FIGURE.search(match["rest"]):
                self._begin(self._command, len(self.result.jobs))
            self._direction(match["what"], match["rest"])
        elif self._what and (match := PERCENTILES.match(line)):
            self._percentiles = match["kind"], TIMES_NS[match["unit"]]
        elif self._percentiles and line.startswith("|"):
            kind, unit_ns = self._percentiles
            for percent, value in PERCENTILE.findall(line):
                self._put(f"{kind} p{float(percent):g}", int(value) * unit_ns)
        elif self._what and "min=" in line and (match := MOMENTS.match(line)):
            self._moments(match["kind"], TIMES_NS[match["unit"]], match["rest"])
        elif self._job:
            match = ISSUED_1.match(line) or ISSUED_2.match(line) or ISSUED_3.match(line)
            for what, count in zip(("read", "write", "trim"), match.groups() if match else ()):
                if int(count):
                    self.result.put(self._job, what, REQUESTS, int(count))

    def finish(self) -> None:
        """Derive the rates that the lines do not state."""
        figures = self.result.figures
        for name in [each for each in figures if each.measure == RUNTIME]:
            seconds = figures[name] / 1e9
            for measure, of in ((IOPS, REQUESTS), (BANDWIDTH, BYTES)):
                known, whole = name._replace(measure=measure), name._replace(measure=of)
                if known not in figures and figures.get(whole) and seconds:
                    figures[known] = figures[whole] / seconds
                    remark = f"{known}: from {of} and {RUNTIME}, as its line does not state it"
                    self.result.notes.append(f"{self.result.sources[0]}: {remark}")

    def _begin(self, name: str, group: int) -> None:
        again = self.result.jobs.count(name)
        self._job = f"{name} ({again + 1})" if again else name
        self.result.jobs.append(self._job)
        self.result.groups.add(group)
        self._what, self._percentiles = "", None

    def _put(self, measure: str, value: float) -> None:
        self.result.put(self._job, self._what, measure, value)

    def _direction(self, what: str, rest: str) -> None:
        self._what, self._percentiles = what, None
        figures = {name.lower(): (number, unit) for name, number, unit in FIGURE.findall(rest)}
        if "iops" in figures:
            self._put(IOPS, amount(*figures["iops"], 1000))
        if "bw" in figures:
            self._put(BANDWIDTH, amount(*figures["bw"]))
        if "runt" in figures:  # 1.x, 2.x
            self._put(RUNTIME, float(figures["runt"][0].replace(",", "")) * MILLISECOND)
            if moved := amount(*figures["io"]) if "io" in figures else 0:
                self._put(BYTES, moved)
        if match := MOVED.search(rest):
            self._put(RUNTIME, int(match["ms"]) * MILLISECOND)
            self._put(BYTES, amount(match["size"], match["unit"]))

    def _moments(self, kind: str, unit_ns: int, rest: str) -> None:
        names = {"min": "min", "max": "max", "avg": "mean", "stdev": "stddev"}
        kind = LATENCY if kind == "sync" else kind
        for name, number, unit in FIGURE.findall(rest):
            if name in names:
                self._put(f"{kind} {names[name]}", amount(number, unit, 1000) * unit_ns)
