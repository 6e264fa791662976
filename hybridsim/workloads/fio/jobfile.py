"""Job files and fio command lines, parsed into sections of options with their places."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.reading import whole_text
from hybridsim.workloads.fio.options import SWITCHES, canonical, objection

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
# Options of fio itself, not of a job: name, and whether a value follows.
PROGRAM = {
    "output": True, "output-format": True, "parse-only": False, "eta": True, "eta-newline": True,
    "eta-interval": True, "readonly": False, "alloc-size": True, "warnings-fatal": False,
    "terse-version": True, "aux-path": True, "debug": True,
}  # fmt: skip


@dataclass(frozen=True)
class OptionValue:
    """The value of an option, and the place where it is specified."""

    value: str
    place: str


@dataclass
class Section:
    """The section of one job."""

    name: str
    place: str
    options: dict[str, OptionValue] = field(default_factory=dict)


@dataclass
class Written:
    """The parsed input: jobs, each with its global options, and options of fio itself."""

    common: dict[str, OptionValue] = field(default_factory=dict)  # globals so far
    jobs: list[tuple[Section, dict[str, OptionValue]]] = field(default_factory=list)
    program: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def take(self, into: dict[str, OptionValue], name: str, value: str | None, place: str) -> None:
        """Store an option in `into`; record an error if it is invalid."""
        try:
            key = canonical(name)
        except ValueError as error:
            self.wrong.append(f"{place}: {error}")
            return
        if value is None:
            if key not in SWITCHES:
                self.wrong.append(f"{place}: {name} needs a value: {name}=...")
                return
            value = "1"
        problem = objection(key, value)
        if problem:
            self.wrong.append(f"{place}: {problem}")
            return
        into[key] = OptionValue(value, place)


def read(arguments: Sequence[str]) -> Written:
    """Parse a fio command line and the job files that it names."""
    written = Written()
    job: Section | None = None
    left = list(arguments)
    at = 0
    while left:
        at += 1
        argument = left.pop(0)
        place = f"command line, {argument.split('=')[0]}"
        if not argument.startswith("-"):
            read_file(argument, written)
            job = None
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        has_value = bool(equals)
        if name in PROGRAM:
            if PROGRAM[name] and not has_value:
                value = left.pop(0) if left else ""
            written.program[name] = value
            continue
        if not has_value and left and not _is_switch(name):
            value, has_value = left.pop(0), True
        if name == "name":
            job = Section(value, place)
            written.jobs.append((job, dict(written.common)))
            continue
        into = job.options if job else written.common
        written.take(into, name, value if has_value else None, place)
    return written


def _is_switch(name: str) -> bool:
    try:
        return canonical(name) in SWITCHES
    except ValueError:
        return True


def read_file(path: str, written: Written) -> None:
    """Parse a job file into `written`."""
    text = whole_text(path, UsageError)
    section: Section | None = None
    into: dict[str, OptionValue] | None = None
    jobs = len(written.jobs)
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]") or line == "[]":
                written.wrong.append(f"{place}: a section must be [global] or [name of a job]")
                into = {}
            elif line == "[global]":
                into = written.common
            else:
                section = Section(line[1:-1], place)
                written.jobs.append((section, dict(written.common)))
                into = section.options
            continue
        if line.split()[0] == "include":
            written.wrong.append(f"{place}: include is not supported: copy its lines")
            continue
        if into is None:
            written.wrong.append(f"{place}: option outside of a section: start with [global]")
            into = {}
        name, equals, value = line.partition("=")
        value = _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value.strip())
        written.take(into, name.strip(), value if equals else None, place)
    if len(written.jobs) == jobs and not written.wrong:
        written.wrong.append(f"{path}: no job in this file: add a section such as [randread]")
