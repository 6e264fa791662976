"""What the user wrote, in job files or on the command line: sections of options, with places."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.reading import whole_text
from hybridsim.workloads.fio.options import SWITCHES, canonical, objection

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
# Of fio itself rather than of a job: name, and whether a value follows.
PROGRAM = {
    "output": True, "output-format": True, "parse-only": False, "eta": True, "eta-newline": True,
    "eta-interval": True, "readonly": False, "alloc-size": True, "warnings-fatal": False,
    "terse-version": True, "aux-path": True, "debug": True,
}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """The value of an option, and where it was given."""

    value: str
    place: str


@dataclass
class Section:
    """A job as written, or what holds for all that follow."""

    name: str
    place: str
    options: dict[str, Said] = field(default_factory=dict)


@dataclass
class Written:
    """All that was written: jobs with what is global over each, and what fio itself is told."""

    common: dict[str, Said] = field(default_factory=dict)  # global to the last job
    jobs: list[tuple[Section, dict[str, Said]]] = field(default_factory=list)
    program: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def take(self, into: dict[str, Said], name: str, value: str | None, place: str) -> None:
        """Take an option; note what is wrong with it."""
        try:
            known = canonical(name)
        except ValueError as error:
            self.wrong.append(f"{place}: {error}")
            return
        if value is None:
            if known not in SWITCHES:
                self.wrong.append(f"{place}: {name} needs a value: {name}=...")
                return
            value = "1"
        told = objection(known, value)
        if told:
            self.wrong.append(f"{place}: {told}")
            return
        into[known] = Said(value, place)


def read(arguments: Sequence[str]) -> Written:
    """Read fio's command line: options, and the job files among them."""
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
    """Read a job file."""
    text = whole_text(path, UsageError)
    section: Section | None = None
    into: dict[str, Said] | None = None
    jobs = len(written.jobs)
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]") or line == "[]":
                written.wrong.append(f"{place}: a section is [global] or [name of a job]")
                into = {}
            elif line == "[global]":
                into = written.common
            else:
                section = Section(line[1:-1], place)
                written.jobs.append((section, dict(written.common)))
                into = section.options
            continue
        if line.split()[0] == "include":
            written.wrong.append(f"{place}: include is not supported: copy the lines of that file")
            continue
        if into is None:
            written.wrong.append(f"{place}: an option before any section: begin with [global]")
            into = {}
        name, equals, value = line.partition("=")
        value = _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value.strip())
        written.take(into, name.strip(), value if equals else None, place)
    if len(written.jobs) == jobs and not written.wrong:
        written.wrong.append(f"{path}: no job in it: a section such as [randread] makes one")
