"""Guarantees of jit/, on loops small enough to compile in a second."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from engine import facts_of

from hybridsim import jit
from hybridsim.caches import PageCache
from hybridsim.caches.policies import LRU, Touches
from hybridsim.caches.streams import Streams
from hybridsim.engine import loops
from hybridsim.engine.machine import Machine, Run
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import Level, Mode, Op, Replay
from hybridsim.foundation.machine_parameters import ArrayParameters, SsdParameters
from hybridsim.foundation.version import PACKAGE
from hybridsim.jit import code_folder, internals, kernel, loop, method, state_machine
from hybridsim.jit.code_folder import COMPILED, sources
from hybridsim.jit.events import FAST, SLOW
from hybridsim.jit.internals import NumbaError
from hybridsim.requests.inflight import Batch
from hybridsim.requests.source import Source
from hybridsim.storage.devices import SSD
from hybridsim.storage.raid import Tier

IDS = 64
needs_compiler = pytest.mark.skipif(not jit.compiled, reason="NUMBA_DISABLE_JIT is set")


@loop
def runs(streams, offsets, lengths, lengths_found):
    """Run a loop over one small state machine of the package that detects sequential runs."""
    for i in range(len(offsets)):
        lengths_found[i] = streams.extend(offsets[i], lengths[i])


def some_runs(how):
    random = np.random.default_rng(7)
    offsets = random.integers(0, 40, 2000) * 4096
    lengths_found = np.zeros(2000, np.int64)
    streams = Streams.new()
    how(streams, offsets, np.full(2000, 4096), lengths_found)
    return [lengths_found, *streams]


@needs_compiler
def test_compiled_equals_interpreted():
    compiled, interpreted = some_runs(jit.fresh(runs)), some_runs(runs.py_func)
    for one, other in zip(compiled, interpreted, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_method_called_from_python_is_plain_python():
    streams = Streams.new()
    run = streams.extend(0, 10)
    assert streams.extend(10, 5) == run
    assert streams.run_bytes[run] == 15
    assert streams.extend.__func__.__code__.co_name == "extend"


@state_machine
class Counter(NamedTuple):
    """A state machine for nesting, whose methods call methods and kernels."""

    step: int
    total: Ints

    @method
    def add(self, times):
        self.total[0] += product(self.step, times)
        return self.twice()

    @method
    def twice(self):
        return 2 * self.total[0]


@state_machine
class Pair(NamedTuple):
    one: Counter
    other: Counter

    @method
    def add(self, times):
        return self.one.add(times) - self.other.add(1)


@kernel
def product(a, b):
    return a * b


@loop
def drive(machine, times):
    last = 0
    for i in range(times):
        last = machine.add(i)
    return last


@pytest.mark.parametrize("how", [jit.fresh(drive), getattr(drive, "py_func", drive)])
def test_state_machines_can_be_nested(how):
    pair = Pair(Counter(3, np.zeros(1, np.int64)), Counter(1, np.zeros(1, np.int64)))
    assert how(pair, 10) == 2 * 3 * 45 - 2 * 10
    assert pair.one.total[0] == 3 * 45


@state_machine
class Careless(NamedTuple):
    state: Ints

    @method
    def add(self, times):
        return np.zeros(times + 1)[0]


@state_machine
class Mistaken(NamedTuple):
    state: Ints

    @method
    def add(self, times):
        return self.stat[0] + times


@needs_compiler
@pytest.mark.parametrize(
    ("cls", "words"), [(Careless, r"return np\.zeros"), (Mistaken, "self.stat")]
)
def test_allocations_and_unknown_fields_are_refused_at_compile_time(cls, words):
    """The error names the allocation in the method or the missing field."""
    with pytest.raises(NumbaError, match=words):
        jit.fresh(drive)(cls(np.zeros(1, np.int64)), 3)


# The cache of machine code on disk, in separate processes.

TINY = """
from hybridsim.jit import loop

@loop
def victim(lru):
    for page in (5, 6, 7, 5):
        if page == 5 and lru.queues.oldest(0) == page:
            lru.touch(page)
        else:
            lru.admit(page)
    return lru.evict()
"""
SCRIPT = """
from hybridsim import tiny
from hybridsim.jit import code_folder
from hybridsim.caches.policies import LRU
victim = tiny.victim(LRU.new(8))
print(victim, sum(tiny.victim.stats.cache_hits.values()), code_folder.cache_folder().name)
"""


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (999, 999))"


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a copy of the package with its own cache in a new process."""
    ignored = shutil.ignore_patterns("__pycache__", "code")
    shutil.copytree(Path(jit.__file__).parents[1], tmp_path / "hybridsim", ignore=ignored)
    (tmp_path / "hybridsim/tiny.py").write_text(TINY)
    own = {"PYTHONPATH": str(tmp_path), "HYBRIDSIM_CACHE_DIR": str(tmp_path / "cache")}
    own["PYTHONDONTWRITEBYTECODE"] = "1"  # Python handles a full disk here itself

    def run(first=""):
        env = os.environ | own
        command = [sys.executable, "-c", first + SCRIPT]
        return subprocess.check_output(command, env=env, cwd=tmp_path, text=True).split()

    return run


@needs_compiler
def test_machine_code_is_cached_until_source_that_it_depends_on_changes(run, tmp_path):
    """The changed method is in another file than the loop: numba alone would not detect it."""
    victim, hits, folder = run()
    assert (victim, hits) == ("6", "0")
    assert run() == ["6", "1", folder]  # from the disk
    report = tmp_path / "hybridsim/show/report.py"  # no machine code depends on it
    report.write_text("NEW = 1")
    assert run() == ["6", "1", folder]
    lru = tmp_path / "hybridsim/caches/policies/lru.py"
    lru.write_text(lru.read_text().replace("self.queues.renew(0, page)", "page + 1"))
    victim, hits, changed = run()
    assert (victim, hits) == ("5", "0")
    assert changed != folder


def test_all_source_that_machine_code_may_depend_on_is_in_its_digest():
    counted = set(sources())
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        marked = {ast.unparse(each) for node in ast.walk(tree)
                  for each in getattr(node, "decorator_list", ())}  # fmt: skip
        if marked & {"loop", "method", "kernel", "state_machine", "njit", "numba.njit"}:
            assert path in counted, path
        if path in counted:
            for name in imported(tree):
                room = name.split(".")[1:2]
                assert room == [] or room[0] in COMPILED, f"{path} imports {name}"


def imported(tree):
    """Yield the modules of the package that a module imports when it is loaded."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hybridsim"):
            yield node.module
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith("hybridsim"))


@needs_compiler
def test_a_full_disk_or_a_damaged_cache_only_costs_time(run, tmp_path):
    victim, hits, folder = run(FULL)
    assert (victim, hits) == ("6", "0")
    assert run() == ["6", "0", folder]  # nothing was stored
    for file in (tmp_path / "cache/hybridsim" / folder).rglob("*.nb?"):
        file.write_bytes(file.read_bytes()[:100])  # as after a crash
    assert run() == ["6", "0", folder]
    assert run() == ["6", "1", folder]  # it is repaired


# Machine code inside the package.


@needs_compiler
def test_machine_code_in_the_package_is_used_with_an_empty_cache(run, tmp_path, monkeypatch):
    place = tmp_path / "hybridsim/jit/code"
    monkeypatch.setenv("NUMBA_CPU_NAME", code_folder.CPU)
    monkeypatch.setenv("NUMBA_CPU_FEATURES", ",".join(f"+{each}" for each in code_folder.FEATURES))
    monkeypatch.setenv(code_folder.INTO, str(place))
    assert run()[:2] == ["6", "0"]
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "cache")
    if not code_folder.suits_this_cpu():
        pytest.skip(f"this CPU does not run machine code for {code_folder.CPU}")
    victim, hits, folder = run()
    assert (victim, hits) == ("6", "1")
    assert not any((tmp_path / "cache/hybridsim" / folder).rglob("tiny*.nbc"))  # nothing to keep
    older = "from hybridsim.jit import code_folder; code_folder.FEATURES = ('of-no-cpu',)\n"
    assert run(older)[:2] == ["6", "0"]  # a CPU with less compiles for itself


@needs_compiler
def test_machine_code_of_other_source_is_not_used(run, tmp_path, monkeypatch):
    monkeypatch.setenv(code_folder.INTO, str(tmp_path / "hybridsim/jit/code"))
    run()
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "cache")
    lru = tmp_path / "hybridsim/caches/policies/lru.py"
    lru.write_text(lru.read_text().replace("self.queues.renew(0, page)", "page + 1"))
    assert run()[:2] == ["5", "0"]


# Policies from outside the package.


def simulated(replacement, interpreted=False):
    """Return the facts of a small replay with a replacement policy."""
    pages = 8
    drive = SsdParameters(
        dies=2, unit_bytes=4096, command_ns=1000, interval_ns=500, write_interval_ns=500,
        read_ns=50_000, program_ns=90_000, scatter_ns=0, is_by_stream=1, suspend_ns=0,
        write_ns=1000, buffer_ns=0, link_bytes_per_s=10**9, pipe_bytes_per_s=10**9,
        capacity_bytes=1 << 20,
    )  # fmt: skip
    parameters = CacheParameters(4096, pages, Mode.READ_ONLY, 0, 4, ("touches", 1))
    cache = PageCache.new(parameters, Touches.new(IDS, pages, 1), replacement, IDS)
    form = ArrayParameters(Level.STRIPE, 1, 4096)
    tiers = (Tier.new(kind, form, SSD.new(1, drive)) for kind in (SLOW, FAST))
    random = np.random.default_rng(3)
    n = 600
    batch = Batch(
        np.arange(n) * 70_000,
        np.where(random.random(n) < 0.1, Op.WRITE, Op.READ).astype(np.uint8),
        (random.pareto(1, n) * 4).astype(np.int64) % 200 * 4096,
        np.full(n, 4096),
        np.full(n, -1),
        np.zeros(n, np.int64),
        np.array([0, 1, 0]),
    )
    run = Run(Machine.new(Source.new(int(Replay.OPEN), 1), cache, *tiers), interpreted=interpreted)
    run.feed(batch)
    assert run.advance(loops.NEVER) == (loops.FINISHED, None)
    return facts_of(run.facts.drained())


class PlainLru:
    """A user's policy in plain Python: no arrays, no decorators."""

    def __init__(self):
        self.pages = OrderedDict()

    def grown(self, ids):
        return self

    def missed(self, page):
        pass

    def admit(self, page):
        self.pages[int(page)] = True

    def touch(self, page):
        self.pages.move_to_end(int(page))

    def remove(self, page):
        del self.pages[int(page)]

    def evict(self):
        return self.pages.popitem(last=False)[0] if self.pages else -1


@state_machine
class UserFifo(NamedTuple):
    """A user's compiled policy: FIFO, that is LRU that ignores touches."""

    list: LRU

    def grown(self, ids):
        return UserFifo(self.list.grown(ids))

    @method
    def missed(self, page):
        """Do nothing."""

    @method
    def admit(self, page):
        self.list.admit(page)

    @method
    def touch(self, page):
        """Do nothing."""

    @method
    def remove(self, page):
        self.list.remove(page)

    @method
    def evict(self):
        return self.list.evict()


def test_a_plain_class_is_interpreted_with_the_same_facts():
    assert simulated(PlainLru()) == simulated(LRU.new(IDS), interpreted=True)


@needs_compiler
def test_a_state_machine_from_outside_is_compiled_and_not_cached():
    assert simulated(UserFifo(LRU.new(IDS))) == simulated(UserFifo(LRU.new(IDS)), interpreted=True)
    assert simulated(UserFifo(LRU.new(IDS))) != simulated(LRU.new(IDS), interpreted=True)
    assert jit.fresh(loops.run).signatures
    kept = [file.read_bytes() for file in code_folder.cache_folder().rglob("loops.run-*.nbi")]
    assert not any(b"UserFifo" in index for index in kept)


class Clock:
    """A policy without evict()."""

    missed = admit = touch = remove = grown = lambda self, *arguments: None


@state_machine
class Unmarked(NamedTuple):
    list: LRU

    def grown(self, ids):
        return self

    def admit(self, page):
        """Has no @method."""

    missed = touch = remove = evict = admit


class Bare(NamedTuple):
    list: LRU

    grown = missed = admit = touch = remove = evict = Clock.admit


def test_the_error_names_the_missing_method_of_a_policy():
    with pytest.raises(TypeError, match=r"^Clock is not a replacement policy: it lacks evict\(\)$"):
        simulated(Clock())


@needs_compiler
def test_the_error_names_a_missing_decorator():
    with pytest.raises(TypeError, match=r"^Unmarked\.missed\(\) lacks the decorator @method$"):
        simulated(Unmarked(LRU.new(IDS)))
    lacks = r"^Bare is a tuple that lacks the decorator @state_machine$"
    with pytest.raises(TypeError, match=lacks):
        simulated(Bare(LRU.new(IDS)))


def test_without_a_compiler_the_facts_are_the_same():
    here = simulated(LRU.new(IDS), interpreted=True)
    script = "import test_jit as t; print(t.jit.compiled, t.simulated(t.LRU.new(t.IDS)))"
    path = os.pathsep.join([str(Path(jit.__file__).parents[2]), str(Path(__file__).parent)])
    env = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    output = subprocess.check_output([sys.executable, "-c", script], env=env, text=True)
    assert output.strip() == f"False {here}"


def test_a_loop_releases_the_arrays_of_its_arguments():
    """Otherwise no machine or batch would ever be freed."""
    queue = LRU.new(8)
    compiled = jit.fresh(admit_and_evict)
    compiled(queue)
    before = sys.getrefcount(queue.queues.place)
    for _ in range(10):
        compiled(queue)
    after = sys.getrefcount(queue.queues.place)
    assert after == before


def admit_and_evict(queue):
    queue.admit(1)
    return queue.evict()


def test_the_installed_numba_has_the_internals_that_are_used():
    """The message says which of them a release lacks."""

    def loop(number):
        return number

    dispatcher = numba.njit(loop, cache=True)
    library = internals.cpu_target.target_context.codegen().create_library("empty")
    having = {
        "dispatcher": dispatcher,
        "cache": internals.FunctionCache(loop),
        "cache file": internals.IndexDataCacheFile("folder", "name", "stamp"),
        "library": library,
        "codegen": library._codegen,
    }
    lacks = [
        f"a {what}'s {name}"
        for what, names in internals.PRIVATE.items()
        for name in names
        if not hasattr(having[what], name)
    ]
    assert not lacks, f"numba {numba.__version__} lacks {lacks}"


def test_internals_of_numba_are_used_by_one_name_and_from_one_file():
    named = {name for names in internals.PRIVATE.values() for name in names}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name != "internals.py":
            assert not re.search(r"numba\.(core|np)\b", text), path
        if path.parent.name in ("jit", "lean"):
            own = set(re.findall(r"(?:def |self\.)(_\w+)", text))
            used = set(re.findall(r"\w\.(_[a-z]\w+)", text))
            assert used - own <= named | {"_names", "_make", "_fields", "_replace"}, path


def test_without_a_writable_cache_machine_code_is_kept_in_memory(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    for place in ("HYBRIDSIM_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(place, str(blocked))
    folder = code_folder.cache_folder.__wrapped__()
    assert folder.is_dir()
    assert blocked not in folder.parents
