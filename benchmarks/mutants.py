"""Mutation tests: change one line of the simulator, and check that a test fails.

    python benchmarks/mutants.py [--sample 300] [--seed 1] [--folder answers] [--out FILE]
    python benchmarks/mutants.py --again          run the survivors of the last run once more
    python benchmarks/mutants.py --thorough       as --again, with every test that reaches them
    python benchmarks/mutants.py --list 20        show mutants, run none

A mutant is the source with one operator, constant, statement, returned value or order of arguments
changed.  The mutants of all folders are shuffled by the seed and the first SAMPLE of them run, so a
larger sample contains the smaller one.  The result of each mutant is stored in FILE (JSON) at once:
a stopped run continues, and a mutant is run again only if its file has changed.

The tests of a mutant are those that call its function, as measured once (`reach`, stored next to
FILE by the content of each test file): the fastest of each test file first, in turn, up to BUDGET
seconds.  They run interpreted (NUMBA_DISABLE_JIT=1) in a temporary copy of the tree, in a fork of a
process that has collected them, where the function is replaced in memory; a mutant outside of
functions is imported again.  Hypothesis draws the same examples every time and does not shrink.  A
mutant is killed by a test that fails, by a tree that cannot be imported, or by a test that takes
more than five times its usual CPU time plus ten seconds.  At the end each test that killed a mutant
runs once without one: kills by a test that fails there are void.

Not mutated, as only texts or speed would change: docstrings, annotations, decorators, __all__,
texts of errors, f-strings, assertions, prefetching, and changes that only enlarge an array.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import hypothesis
import pytest
from _pytest.main import pytest_runtestloop as running

ROOT = Path(__file__).parents[1]
PACKAGE = "hybridsim"
FOLDERS = ("engine", "requests", "caches", "storage", "answers")
COPIED = ("hybridsim", "tests", "traces", "validate", "notebooks", "benchmarks")
# Slow tests of other parts or of other processes, which cannot detect a mutant.
LEFT_OUT = re.compile(
    r"test_(browser|completion|docs|fio_plot|fuzz_\w+|html\w*|jit|kills|notebooks|package|record"
    r"|schemas|surroundings|tidy|validate_\w+|blktrace|binary_formats|column_formats|text_formats"
    r"|pairing|trace_cli|explain|plot|catalog_cli|odd_traces|fio|fio_offsets|workloads)\.py"
)
PRELOADED = (
    "numpy numba numba.typed scipy.stats scipy.optimize scipy.special pydantic click click.testing "
    "rich.console rich.table simpy jsonschema jinja2 hypothesis.strategies hypothesis.extra.numpy "
    "hypothesis.stateful"
)
TEST_SECONDS = 10  # CPU seconds; a test that takes longer, interpreted, is left out
TOO_SLOW = 2  # after this many such tests the rest of the file is left out
MEMORY = 6 << 30
FLIPPED = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
OTHER = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
    ast.Pow: "*",
}
OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum"}
SYMMETRIC = {
    "min",
    "max",
    "isinstance",
    "issubclass",
    "minimum",
    "maximum",
    "gcd",
    "isclose",
    "array_equal",
}
SPEED_ONLY = {"prefetch", "touch_line", "warn", "debug", "info", "warning"}
ARRAYS = {"zeros", "empty", "ones", "full"}
IDENTIFIER = re.compile(r"\w+")  # a string that a program reads: a name, not a sentence


class Mutant(NamedTuple):
    """One change of one piece of a file, and its place."""

    file: str
    line: int
    start: int  # offsets into the file's text
    end: int
    after: str
    within: str  # qualified name of the enclosing function; '' if none
    kind: str


class Mutants(ast.NodeVisitor):
    """Collects the mutants of a file."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.mutants: list[Mutant] = []
        self.names: list[str] = []
        self.in_function = 0
        self.in_shape = False
        self.returns: list[str] = []
        lines = text.encode().splitlines(keepends=True)
        assert text.isascii() or all(len(line) for line in lines)
        self.begins = [0]
        for line in text.splitlines(keepends=True):
            self.begins.append(self.begins[-1] + len(line))
        self.lines = text.splitlines(keepends=True)

    def offset(self, line: int, column: int) -> int:
        """Return the offset in the text of a line and a column (in bytes, as in ast)."""
        return self.begins[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: Any) -> tuple[int, int]:
        """Return the offsets of the begin and end of a node in the text."""
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno, node.end_col_offset),
        )

    def source(self, node: Any) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def add(self, node: Any, after: str, kind: str) -> None:
        """Add a mutant that has `after` in place of a node."""
        start, end = self.span(node)
        self.put(node.lineno, start, end, after, kind)

    def put(self, line: int, start: int, end: int, after: str, kind: str) -> None:
        """Add a mutant that has `after` in place of a piece of text."""
        if self.text[start:end] != after and not (self.in_shape and kind != "smaller"):
            within = ".".join(self.names) if self.in_function else ""
            self.mutants.append(Mutant(self.file, line, start, end, after, within, kind))

    def between(self, left: Any, right: Any, after: str, kind: str) -> None:
        """Add a mutant that has another operator between two nodes."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = self.text[start:end]
        operator = re.search(r"(?:is\s+not|not\s+in|is|in|and|or|[-+*/%<>=!&|^]+)", gap)
        if operator and "#" not in gap:
            first, last = start + operator.start(), start + operator.end()
            self.put(self.text.count("\n", 0, first) + 1, first, last, after, kind)

    # Nodes with a body

    def visit_FunctionDef(self, node: Any) -> None:
        outer = self.names
        self.names = [*outer, *(["<locals>"] if self.in_function else []), node.name]
        self.in_function += 1
        before = len(self.mutants)
        self.returns.append("" if node.returns is None else ast.unparse(node.returns))
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        for at, each in enumerate(self.mutants[before:], before):
            self.mutants[at] = each._replace(kind="default")  # set before the function is called
        for statement in node.body:
            self.visit(statement)
        self.returns.pop()
        self.in_function -= 1
        self.names = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self.names = self.names, [*self.names, node.name]
        for statement in node.body:
            self.visit(statement)
        self.names = outer

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in self.source(node.test):
            return
        self.condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.condition(node.test)
        self.generic_visit(node)

    def condition(self, test: ast.expr) -> None:
        """Add the negation of a condition, unless flipping its comparison is the same."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self.add(test, f"(not ({self.source(test)}))", "negation")

    # Nodes that are not mutated

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        self.add(node, "pass", "dropped")

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            if name_of(node.value.func) in SPEED_ONLY:
                return
            self.add(node, "pass", "dropped")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in ("__all__", "__slots__"):
            return
        if isinstance(target, ast.Subscript | ast.Attribute):
            self.add(node, "pass", "dropped")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add(node, "pass", "dropped")
        if type(node.op) in OTHER:
            self.between(node.target, node.value, OTHER[type(node.op)] + "=", "arithmetic")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self.add(node, "pass", "dropped")

    def visit_Break(self, node: ast.Break) -> None:
        self.add(node, "pass", "dropped")

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            self.add(node, "pass", "dropped")
            return
        truth = isinstance(value, ast.Compare | ast.BoolOp) or self.returns[-1] == "bool"
        if truth and not isinstance(value, ast.Compare):
            self.add(value, f"not ({self.source(value)})", "returned")
        elif not truth and not isinstance(value, ast.Constant):
            number = self.returns[-1] in ("int", "float") or (
                not self.returns[-1] and isinstance(value, ast.Name | ast.BinOp | ast.Subscript)
            )
            after = f"({self.source(value)}) + 1" if number else "None"
            self.add(value, after, "returned")
        self.generic_visit(node)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators):
            for after in FLIPPED[type(operator)]:
                self.between(left, right, after, "comparison")
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        unions = isinstance(node.op, ast.BitOr) and self.source(node).endswith("None")
        if type(node.op) in OTHER and not text and not unions:
            self.between(node.left, node.right, OTHER[type(node.op)], "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        after = "or" if isinstance(node.op, ast.And) else "and"
        for left, right in zip(node.values, node.values[1:]):
            self.between(left, right, after, "boolean")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.add(node, f"({self.source(node.operand)})", "negation")
        elif isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
            self.add(node, f"(+{self.source(node.operand)})", "arithmetic")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = name_of(node.func)
        if name in OTHER_CALL:
            start, end = self.span(node.func)
            self.put(node.lineno, end - len(name), end, OTHER_CALL[name], "call")
        plain = not any(isinstance(each, ast.Starred) for each in node.args)
        if plain and name not in SYMMETRIC and name not in ARRAYS:
            for one, two in zip(node.args, node.args[1:]):
                (start, one_ends), (two_begins, end) = self.span(one), self.span(two)
                first, second = self.text[start:one_ends], self.text[two_begins:end]
                if first != second:
                    after = second + self.text[one_ends:two_begins] + first
                    self.put(node.lineno, start, end, after, "swapped")
        if name in ("range", "arange") and node.args:
            last = node.args[min(1, len(node.args) - 1)]
            self.add(last, f"{self.source(last)} + 1", "off by one")
        outer = self.in_shape
        for place, argument in enumerate(node.args):
            self.in_shape = outer or (name in ARRAYS and not place)
            self.visit(argument)
        self.in_shape = outer
        for keyword in node.keywords:
            self.visit(keyword.value)
        self.visit(node.func)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Name | ast.BinOp) and isinstance(node.ctx, ast.Load):
            if node.value is not None and name_of(node.value)[:1].islower():
                self.add(node.slice, f"{self.source(node.slice)} - 1", "off by one")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.add(node, str(not value), "constant")
        elif isinstance(value, int):
            self.add(node, str(value + 1), "constant")
            if value > 1:
                self.add(node, str(value - 1), "smaller")
        elif isinstance(value, float):
            self.add(node, repr(value * 2 if value else 1.0), "constant")
        elif isinstance(value, str) and IDENTIFIER.fullmatch(value):
            if self.text[self.span(node)[0]] in "\"'":
                self.add(node, repr(value + "_"), "constant")


def name_of(node: ast.expr) -> str:
    """Return the last name of a dotted name, or ''."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def mutants_of(file: str) -> list[Mutant]:
    """Return all mutants of one file."""
    text = (ROOT / file).read_text()
    visitor = Mutants(file, text)
    visitor.visit(ast.parse(text))
    return list(dict.fromkeys(visitor.mutants))


def is_python(mutant: Mutant) -> bool:
    """Return whether a mutant can be compiled: an operator may have been put into a string."""
    try:
        compile(mutated((ROOT / mutant.file).read_text(), mutant), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


def mutated(text: str, mutant: Mutant) -> str:
    """Return the text of a file with a mutant."""
    return text[: mutant.start] + mutant.after + text[mutant.end :]


def shown(mutant: Mutant) -> dict[str, Any]:
    """Return a readable description of a mutant, with its line before and after."""
    text = (ROOT / mutant.file).read_text()
    begin = text.rfind("\n", 0, mutant.start) + 1
    end = text.find("\n", mutant.end)
    end = len(text) if end < 0 else end
    before, after = text[begin:end], text[begin : mutant.start] + mutant.after
    after += text[mutant.end : end]
    return {
        "file": mutant.file,
        "line": mutant.line,
        "kind": mutant.kind,
        "within": mutant.within,
        "before": " ".join(before.split()),
        "after": " ".join(after.split()),
    }


def key_of(mutant: Mutant) -> str:
    """Return the key of a mutant, which is valid until its file changes."""
    text = (ROOT / mutant.file).read_text()
    whole = repr((mutant.file, mutated(text, mutant)))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


class Watch:
    """A pytest plugin: selects tests, limits their time, and records the functions they call."""

    def __init__(self, tests: dict[str, float] | None = None, reach: Path | None = None) -> None:
        self.tests = tests
        self.reach = reach
        self.seen: set[tuple[str, str]] = set()
        self.done: dict[str, dict[str, Any]] = {}
        self.failed: list[str] = []
        self.overran = 0
        # Seconds and reach of shared fixtures, which count for each test that uses them.
        self.shared: dict[Any, tuple[float, set[tuple[str, str]]]] = {}
        self.created: set[Any] = set()  # fixtures set up in the current test

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Let hypothesis draw the same examples every time, without shrinking."""
        hypothesis.settings.register_profile(
            "mutants",
            parent=hypothesis.settings.get_profile("default"),
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the chosen tests in their order."""
        if self.tests is not None:
            place = {name: at for at, name in enumerate(self.tests)}
            items[:] = sorted(
                (item for item in items if item.nodeid in place), key=lambda it: place[it.nodeid]
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Limit the time of one test with its fixtures."""
        usual = TEST_SECONDS if self.tests is None else 10 + 5 * self.tests[item.nodeid]
        began = time.process_time()
        self.seen, self.created = set(), set()
        signal.signal(signal.SIGPROF, self.too_long)
        signal.setitimer(signal.ITIMER_PROF, usual)  # CPU time, as the machine may be busy
        if self.reach is not None:
            sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            if self.reach is not None:
                seconds = time.process_time() - began
                for fixture in self.fixtures(item) - self.created:
                    seconds += self.shared[fixture][0]
                    self.seen |= self.shared[fixture][1]
                self.done[item.nodeid] = {
                    "seconds": round(seconds, 3),
                    "reached": sorted(f"{file}:{name}" for file, name in self.seen),
                }

    def fixtures(self, item: Any) -> set[Any]:
        """Return the shared fixtures of a test that have been set up."""
        info = getattr(item, "_fixtureinfo", None)
        result = info.name2fixturedefs.values() if info else ()
        return {each for several in result for each in several} & self.shared.keys()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Record the seconds and the reach of a shared fixture."""
        if self.reach is None or fixturedef.scope == "function":
            return (yield)
        began, outer = time.process_time(), self.seen
        self.seen = set()
        try:
            return (yield)
        finally:
            seconds, reached = self.shared.get(fixturedef, (0.0, set()))
            took = seconds + time.process_time() - began
            self.shared[fixturedef] = (took, reached | self.seen)
            self.created.add(fixturedef)
            self.seen |= outer

    def trace(self, frame: Any, event: str, argument: Any) -> None:
        """Record a call of a function of the package; its lines are not traced."""
        code = frame.f_code
        self.seen.add((code.co_filename, code.co_qualname))

    def too_long(self, number: int, frame: Any) -> None:
        """End a test that takes too long."""
        if frame is not None and frame.f_code is Watch.trace.__code__:
            signal.setitimer(signal.ITIMER_PROF, 0.01)  # a traceback from there has no lines
            return
        self.overran += 1
        raise TooLongError

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record a failure."""
        if report.failed or report.skipped:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: Any) -> None:
        """Stop a file whose tests take too long, interpreted."""
        if self.tests is None and self.overran >= TOO_SLOW:
            item.session.shouldstop = "too slow"

    def pytest_sessionfinish(self) -> None:
        """Write the functions that each test reached to the file."""
        if self.reach is not None:
            root = str(Path.cwd()) + "/"
            kept = {}
            for name, each in self.done.items():
                if name not in self.failed:
                    inside = [at[len(root) :] for at in each["reached"] if at.startswith(root)]
                    inside = [at for at in inside if at.startswith(PACKAGE + "/")]
                    kept[name] = {"seconds": each["seconds"], "reached": inside}
            self.reach.write_text(json.dumps(kept))


class TooLongError(BaseException):
    """A test exceeded its time; not an Exception, so that no `except Exception` catches it."""


def in_child(seconds: float, folder: Path, arguments: list[str], watch: Watch) -> dict[str, Any]:
    """Run pytest in a fork, in a folder; return its exit status, or -1 if it took too long."""
    answer = folder.parent / "answer.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        with ends_here():
            settle(folder)
            options = ["-x"] if watch.tests is not None else []
            status = int(pytest.main([*options, *OPTIONS, *arguments], plugins=[watch]))
            answer.write_text(json.dumps({"status": status, "failed": watch.failed}))
    return waited(child, seconds, answer)


OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header")


@contextlib.contextmanager
def ends_here() -> Iterator[None]:
    """End a forked process after the block, whatever happens."""
    code = 70
    try:
        yield
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def settle(folder: Path) -> None:
    """Prepare a forked process: run in a tree, with limits and without output."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sink = os.open(folder.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(sink, stream)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    os.environ["XDG_CACHE_HOME"] = str(folder.parent / "cache")
    sys.path[:] = [str(folder), *(at for at in sys.path if at not in ("", str(ROOT)))]


def waited(child: int, seconds: float, answer: Path) -> dict[str, Any]:
    """Wait for a forked process; return its answer, or why there is none."""
    until = time.monotonic() + seconds
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"status": -1, "failed": []}
        time.sleep(0.02)
    if not answer.exists():
        return {"status": -2, "failed": []}  # the process died: counts as a failed test
    result: dict[str, Any] = json.loads(answer.read_text())
    return result


class Server:
    """A process that has collected the tests, and forks for each mutant.

    The fork replaces the code of a function: nothing is imported or collected again.  This works
    for all mutants except those outside of functions.
    """

    def __init__(self, tree: Path, files: list[str]) -> None:
        self.tree = tree
        self.watch = Watch()
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            with ends_here():
                os.close(self.orders)
                os.close(self.answers)
                settle(tree)
                self.reader, self.writer = os.fdopen(orders), os.fdopen(answers, "w")
                base = f"--basetemp={tree.parent / 'base'}"
                pytest.main(["-x", base, *OPTIONS, *files], plugins=[self.watch, self])
        os.close(orders)
        os.close(answers)
        self.reader, self.writer = os.fdopen(self.answers), os.fdopen(self.orders, "w")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Run requested mutants instead of the collected tests."""
        items = {item.nodeid: item for item in session.items}
        for line in self.reader:
            print(json.dumps(self.one(session, items, json.loads(line))), file=self.writer)
            self.writer.flush()
        os._exit(0)

    def one(self, session: Any, items: dict[str, Any], order: dict[str, Any]) -> dict[str, Any]:
        """Fork, run the tests of one mutant, return the result; status None: not possible here."""
        tests: dict[str, float] = order["tests"]
        functions, code = self.functions(order["file"], order["text"], order["within"])
        if not functions or not tests.keys() <= items.keys():
            return {"status": None, "failed": []}
        answer = self.tree.parent / "answer.json"
        answer.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            with ends_here():
                os.setsid()
                for function in functions:
                    function.__code__ = code
                self.watch.tests = tests
                session.items = [items[name] for name in tests]
                with contextlib.suppress(session.Failed, session.Interrupted):
                    running(session)
                met = {"status": int(bool(self.watch.failed)), "failed": self.watch.failed}
                answer.write_text(json.dumps(met))
        return waited(child, order["seconds"], answer)

    def functions(self, file: str, text: str, within: str) -> tuple[list[Any], Any]:
        """Return the functions to change in memory, and their mutated code."""
        name, path = within.partition(".<locals>")[0], str(self.tree / file)
        result = [
            code
            for code in codes_in(compile(text, path, "exec", dont_inherit=True))
            if code.co_qualname == name
        ]
        if len(result) != 1:
            return [], None  # none, or several with one name, such as a property and its setter
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            everything = [each for each in gc.get_objects() if type(each) is FunctionType]
        return [
            each
            for each in everything
            if each.__code__.co_filename == path
            and each.__code__.co_qualname == name
            and each.__code__.co_firstlineno == result[0].co_firstlineno
        ], result[0]

    def ask(self, mutant: Mutant, tests: dict[str, float], seconds: float) -> dict[str, Any]:
        """Return the result of a mutant; its status is None if it cannot be run here."""
        order = {
            "file": mutant.file,
            "text": mutated((ROOT / mutant.file).read_text(), mutant),
            "within": mutant.within,
            "tests": tests,
            "seconds": seconds,
        }
        print(json.dumps(order), file=self.writer)
        self.writer.flush()
        line = self.reader.readline()
        if not line:
            raise SystemExit(f"the tests are not collected: {self.tree.parent / 'output.txt'}")
        result: dict[str, Any] = json.loads(line)
        return result

    def end(self) -> None:
        """End the process."""
        self.writer.close()
        self.reader.close()
        os.waitpid(self.pid, 0)


def codes_in(code: Any) -> Iterator[Any]:
    """Yield the code of a module's functions and methods."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from codes_in(each)


def copy_tree(to: Path) -> Path:
    """Copy the files that the tests need."""
    tree = to / "tree"
    tree.mkdir()
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy2(path, tree / path.name)
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
            shutil.copytree(ROOT / name, tree / name, ignore=ignored, symlinks=True)
    return tree


def measured_reach(kept: Path, tree: Path, wanted: list[str]) -> dict[str, dict[str, Any]]:
    """Return by test the seconds it takes and the functions it calls.

    Test files that have changed are measured again; changes of shared helpers are not detected.
    """
    known = json.loads(kept.read_text()) if kept.exists() else {}
    files = sorted((ROOT / "tests").glob("test_*.py"))
    files = [path for path in files if not LEFT_OUT.fullmatch(path.name)]
    files = [path for path in files if not wanted or path.stem.removeprefix("test_") in wanted]
    now = {}
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        if known.get(path.name, {}).get("content") == content:
            now[path.name] = known[path.name]
            continue
        out = tree.parent / "reach.json"
        out.unlink(missing_ok=True)
        began = time.monotonic()
        in_child(900, tree, [f"tests/{path.name}"], Watch(reach=out))
        tests = json.loads(out.read_text()) if out.exists() else {}
        took = time.monotonic() - began
        print(f"  reach of {path.name}: {len(tests)} tests, {took:.0f} s", flush=True)
        now[path.name] = {"content": content, "tests": tests}
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace(kept, json.dumps(known | now))
    return {name: test for file in now.values() for name, test in file["tests"].items()}


def replace(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(path)


class Reach:
    """The tests that call each function."""

    def __init__(self, tests: dict[str, dict[str, Any]]) -> None:
        self.seconds = {name: test["seconds"] for name, test in tests.items()}
        self.by_function: dict[str, set[str]] = defaultdict(set)
        self.by_file: dict[str, set[str]] = defaultdict(set)
        for name, test in tests.items():
            for place in test["reached"]:
                file, function = place.split(":", 1)
                self.by_function[place].add(name)
                self.by_file[file].add(name)
                while "<" in function and function.endswith(">"):  # a lambda or comprehension
                    function = function.rpartition(".<locals>")[0]
                    self.by_function[f"{file}:{function}"].add(name)

    def tests(self, mutant: Mutant, budget: float) -> dict[str, float]:
        """Return the tests of a mutant in the order to run them, with their usual seconds."""
        if mutant.within:
            names = self.by_function.get(f"{mutant.file}:{mutant.within}", set())
        else:
            names = self.by_file.get(mutant.file, set())
        files = defaultdict(list)
        for name in sorted(names, key=lambda name: (self.seconds[name], name)):
            files[name.partition("::")[0]].append(name)
        chosen: dict[str, float] = {}
        remaining = budget
        queues = sorted(files.values(), key=lambda queue: self.seconds[queue[0]])
        for rank in range(max(map(len, queues), default=0)):
            for queue in queues:
                if rank < len(queue) and (self.seconds[queue[rank]] <= remaining or not chosen):
                    chosen[queue[rank]] = self.seconds[queue[rank]]
                    remaining -= self.seconds[queue[rank]]
        return chosen


def run(
    mutant: Mutant, tests: dict[str, float], tree: Path, server: Server | None = None
) -> dict[str, Any]:
    """Run the tests of a mutant; return the result."""
    if not tests:
        return {"survived": True, "by": "", "tests": 0, "seconds": 0.0}
    began = time.monotonic()
    limit = 120 + 10 * sum(tests.values())
    met = {"status": None}
    if server is not None and mutant.within and mutant.kind != "default":
        met = server.ask(mutant, tests, limit)
    if met["status"] is None:
        met = run_anew(mutant, tests, tree, limit)
    status = met["status"]
    if status == 5:
        raise SystemExit(f"no test of {mutant} exists; delete reach.json next to FILE")
    by = "" if not status else "time" if status == -1 else "the process died"
    if status > 0:
        by = met["failed"][0] if met["failed"] else "import"
    return {
        "survived": not status,
        "by": by,
        "tests": len(tests),
        "seconds": round(time.monotonic() - began, 1),
    }


def run_anew(mutant: Mutant, tests: dict[str, float], tree: Path, seconds: float) -> dict[str, Any]:
    """Run the tests of a mutant in a process that imports it from a file."""
    path = tree / mutant.file
    sound = path.read_text()
    for stale in (path.parent / "__pycache__").glob(path.stem + ".*"):
        stale.unlink()  # its time and size may match those of the mutant
    path.write_text(mutated(sound, mutant))
    try:
        files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
        return in_child(seconds, tree, files, Watch(tests))
    finally:
        path.write_text(sound)


def void_kills(kept: dict[str, Any], reach: Reach, tree: Path) -> list[str]:
    """Run the tests that killed mutants once without a mutant; return those that fail."""
    names = {each["by"] for each in kept.values() if "::" in each["by"]}
    tests = {name: reach.seconds[name] for name in sorted(names) if name in reach.seconds}
    unsound = []
    while tests:
        files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
        met = in_child(120 + 10 * sum(tests.values()), tree, files, Watch(tests))
        if not met["status"]:
            return unsound
        if not met["failed"]:
            raise SystemExit("the tests do not run without a mutant; run them with pytest")
        unsound += met["failed"]
        tests = {name: each for name, each in tests.items() if name not in unsound}
    return unsound


def table(chosen: list[Mutant], kept: dict[str, Any]) -> Iterator[str]:
    """Yield the results by folder, and the survivors."""
    rows: dict[str, list[int]] = {}
    survivors = []
    for mutant in chosen:
        met = kept.get(key_of(mutant))
        if met is None:
            continue
        row = rows.setdefault(mutant.file.split("/")[1], [0, 0])
        row[0] += 1
        row[1] += not met["survived"]
        if met["survived"]:
            survivors.append((mutant, met))
    rows = dict(sorted(rows.items()))
    rows["all"] = [sum(row[0] for row in rows.values()), sum(row[1] for row in rows.values())]
    yield f"{'folder':12}{'sampled':>8}{'killed':>8}{'survived':>9}{'':>8}"
    for folder, (sampled, killed) in rows.items():
        share = f"{killed / sampled:8.1%}" if sampled else ""
        yield f"{folder:12}{sampled:8}{killed:8}{sampled - killed:9}{share}"
    for mutant, met in survivors:
        each = shown(mutant)
        why = "" if met["tests"] else "   (no test calls it)"
        yield f"{each['file']}:{each['line']}: {each['before']} -> {each['after']}{why}"


def preload() -> None:
    """Import the modules that all tests need and no mutant changes."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before numba is loaded
    here = str(Path(__file__).parent)
    sys.path[:] = [at for at in sys.path if at != here]  # numba wants coverage, not ours
    for name in PRELOADED.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    held = [name for name in sys.modules if name.split(".")[0] == PACKAGE]
    assert not held, held


def sampled(folders: list[str], count: int, seed: int) -> list[Mutant]:
    """Return the first mutants of the shuffled list of all mutants in the folders."""
    files = []
    for folder in folders:
        if not (ROOT / PACKAGE / folder).is_dir():
            raise SystemExit(f"{PACKAGE}/{folder} does not exist: correct FOLDERS in {__file__}")
        files += sorted((ROOT / PACKAGE / folder).rglob("*.py"))
    names = [path.relative_to(ROOT).as_posix() for path in files]
    everything = [mutant for name in names for mutant in mutants_of(name)]
    print(f"{len(everything):,} mutants in {len(names)} files of {', '.join(folders)}")
    random.Random(seed).shuffle(everything)
    return list(islice(filter(is_python, everything), count))


def main() -> None:
    """Run the mutants specified on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--sample", type=int, default=300, help="mutants to run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", action="append", choices=FOLDERS, help="of all folders")
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests a mutant")
    parser.add_argument(
        "--tests", nargs="+", default=[], metavar="NAME", help="of test_NAME.py only"
    )
    parser.add_argument("--out", type=Path, default=cache / "hybridsim-mutants" / "mutants.json")
    parser.add_argument("--again", action="store_true", help="run the survivors again")
    parser.add_argument("--thorough", action="store_true", help="with all tests that reach them")
    parser.add_argument("--list", type=int, metavar="N", help="show N mutants, run none")
    arguments = parser.parse_args()
    chosen = sampled(
        arguments.folder or list(FOLDERS), arguments.list or arguments.sample, arguments.seed
    )
    if arguments.list:
        for mutant in chosen:
            each = shown(mutant)
            print(f"{each['file']}:{each['line']}: {each['before']} -> {each['after']}")
        return
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    preload()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = copy_tree(Path(folder))
        reach = Reach(measured_reach(arguments.out.parent / "reach.json", tree, arguments.tests))
        sys.dont_write_bytecode = True  # from here on: no bytecode of a mutant may stay
        files = sorted({name.partition("::")[0] for name in reach.seconds})
        server = Server(tree, files)
        for number, mutant in enumerate(chosen, 1):
            key = key_of(mutant)
            before = kept.get(key)
            if before and not (before["survived"] and (arguments.again or arguments.thorough)):
                continue
            budget = float("inf") if arguments.thorough else arguments.budget
            met = run(mutant, reach.tests(mutant, budget), tree, server)
            first = before["first"] if before else met["survived"]
            kept[key] = shown(mutant) | met | {"first": first}
            replace(arguments.out, json.dumps(kept, indent=1))
            what = "survived" if met["survived"] else "killed by " + met["by"]
            where = f"{mutant.file}:{mutant.line}"
            print(f"{number:4} {met['seconds']:6.1f} s  {where}  {what}", flush=True)
        server.end()
        here = {key: kept[key] for key in map(key_of, chosen) if key in kept}
        unsound = void_kills(here, reach, tree)
        for key, each in here.items():
            if each["by"] in unsound:
                print(f"void: {each['by']} fails without a mutant")
                del kept[key]
        replace(arguments.out, json.dumps(kept, indent=1))
    print(*table(chosen, kept), sep="\n")


if __name__ == "__main__":
    main()
