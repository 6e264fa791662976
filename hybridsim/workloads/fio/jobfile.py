"""Job files and fio command lines, parsed into sections of options with their places."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.reading import whole_text
from hybridsim.workloads.fio.options import SWITCHES, OptionValue, canonical, objection

COMMAND_LINE = "command line"  # begin of the places of its options
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
KEYWORDS = {
    "$pagesize": lambda: os.sysconf("SC_PAGE_SIZE"),
    "$mb_memory": lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
    "$ncpus": lambda: os.cpu_count() or 1,
}
# Options of fio itself, not of a job: name, and whether a value follows.
PROGRAM = {
    "output": True, "output-format": True, "parse-only": False, "eta": True, "eta-newline": True,
    "eta-interval": True, "readonly": False, "alloc-size": True, "warnings-fatal": False,
    "terse-version": True, "aux-path": True, "debug": True, "section": True, "minimal": False,
    "status-interval": True, "max-jobs": True, "append-terse": False, "daemonize": True,
    "idle-prof": True, "trigger": True, "trigger-file": True, "trigger-remote": True,
    "trigger-timeout": True,
}  # fmt: skip


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
        before = into.pop(key, None)  # the last of several counts, at its place in the order
        if key == "filename" and before is not None:
            value = f"{before.value}:{value}"  # as in fio: files add up
        into[key] = OptionValue(value, place)


def read(arguments: Sequence[str]) -> Written:
    """Parse a fio command line and the job files that it names.

    As in fio, the files come after all options, wherever they stand.
    """
    written = Written()
    job: Section | None = None
    left = list(arguments)
    files: list[str] = []
    sections: list[str] = []
    while left:
        argument = left.pop(0)
        place = f"{COMMAND_LINE}, {argument.split('=')[0]}"
        if not argument.startswith("-"):
            files.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        has_value = bool(equals)
        if name in PROGRAM:
            if PROGRAM[name] and not has_value:
                value = left.pop(0) if left else ""
            if name == "section":
                sections.append(value)
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
    for number, file in enumerate(files):
        before = len(written.jobs)
        read_file(file, written)
        if number and len(written.jobs) > before:  # as in fio: each file waits for the one before
            first = written.jobs[before][0]
            first.options.setdefault("stonewall", OptionValue("1", first.place))
    if sections:
        written.jobs = [each for each in written.jobs if each[0].name in sections]
        if not written.jobs and not written.wrong:
            names = ", ".join(sections)
            written.wrong.append(f"{COMMAND_LINE}, --section: no job has the name {names}")
    return written


def _is_switch(name: str) -> bool:
    try:
        return canonical(name) in SWITCHES
    except ValueError:
        return True


def _lines(path: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file that are not empty without their comments, and their places.

    As in fio, ; and # begin a comment anywhere in a line.
    """
    for number, line in enumerate(whole_text(path, UsageError).splitlines(), 1):
        if plain := re.split("[;#]", line, maxsplit=1)[0].strip():
            yield plain, f"{path}:{number}"


def read_file(path: str, written: Written) -> None:
    """Parse a job file into `written`."""
    into: dict[str, OptionValue] | None = None
    jobs = len(written.jobs)
    for line, place in _lines(path):
        if line.startswith("["):
            if not line.endswith("]") or line == "[]":
                written.wrong.append(f"{place}: a section must be [global] or [name of a job]")
                into = {}
            elif line.startswith("[global"):  # as in fio, whatever follows
                into = written.common
            else:
                section = Section(line[1:-1], place)
                written.jobs.append((section, dict(written.common)))
                into = section.options
            continue
        if into is None:
            written.wrong.append(f"{place}: option outside of a section: start with [global]")
            into = {}
        _take(line, place, into, written, (path,))
    if len(written.jobs) == jobs and not written.wrong:
        written.wrong.append(f"{path}: no job in this file: add a section such as [randread]")


def _take(
    line: str, place: str, into: dict[str, OptionValue], written: Written, paths: tuple[str, ...]
) -> None:
    """Store the option of a line in `into`, or all of a file that it includes.

    `paths` are its file and those that include it; a file's name may be relative to the including
    one.
    """
    if line.split()[0] != "include":
        name, equals, value = line.partition("=")
        unset = [each for each in _VARIABLE.findall(value) if each not in os.environ]
        if unset:  # as in fio, they are empty
            place += f" (not set in the environment: {', '.join(dict.fromkeys(unset))})"
        value = _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value.strip())
        try:
            value = _with_keywords(value)
        except ValueError as error:
            written.wrong.append(f"{place}: {name.strip()}: {error}")
            return
        written.take(into, name.strip(), value if equals else None, place)
        return
    name = line[len("include") :].strip()
    path = name if os.path.exists(name) else os.path.join(os.path.dirname(paths[-1]), name)
    if path in paths:
        written.wrong.append(f"{place}: include {name}: the file includes itself")
        return
    try:
        included = list(_lines(path))
    except UsageError as error:
        written.wrong.append(f"{place}: include {name}: {error}")
        return
    for each, at in included:
        if each.startswith("["):
            remedy = "a section in an included file is not supported: include only options"
            written.wrong.append(f"{at}: {remedy}")
            return
        _take(each, at, into, written, (*paths, path))


def _with_keywords(value: str) -> str:
    """Return a value with fio's keywords replaced by figures of this host, and calculated."""
    replaced = value
    for keyword in (each for each in KEYWORDS if each in value):
        replaced = replaced.replace(keyword, str(KEYWORDS[keyword]()))
    if replaced == value or not set("+-*/") & set(replaced) or "'" in replaced:
        return replaced
    try:
        return str(_calculated(ast.parse(replaced, mode="eval").body))
    except (SyntaxError, ZeroDivisionError) as error:
        raise ValueError(f"{value} is not a calculation with whole numbers") from error


def _calculated(tree: ast.expr) -> int:
    """Return the value of an expression; as in bc, a quotient is cut off."""
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_calculated(tree.operand)
    if isinstance(tree, ast.BinOp):
        left, right = _calculated(tree.left), _calculated(tree.right)
        match tree.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                quotient = abs(left) // abs(right)
                return quotient if (left < 0) == (right < 0) else -quotient
    raise SyntaxError("not a whole number, +, -, * or /")
