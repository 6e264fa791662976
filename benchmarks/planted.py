"""Planted bugs: which tests catch them, and what of it only the comparison with reference/ does.

    python benchmarks/planted.py [--each 8] [--processes 16] [--seconds 240] [--out FILE]
    python benchmarks/planted.py --table FILE

Mutants (benchmarks/mutants.py) are planted in the compiled models, EACH of them for each module of
`hybridsim/reference/` that has a counterpart there.  Each runs up to three times, each time until a
test fails or the next one would exceed BUDGET seconds:

    reference    the tests that call the reference, as they are
    independent  tests that hold the models against something else (INDEPENDENT)
    unit         all other tests, those of `reference` among them

In the last two the reference is gone: a run of it returns what the engine returns, so that equal
facts prove nothing while hand-worked figures and invariants of the same test still do, and a test
that needs more of it is skipped, and one that fails without a mutant does not count.  So a mutant
that only the first finds is what would stay unseen without the reference.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import mutants as machinery
import pytest
from _pytest.main import pytest_runtestloop as running
from mutants import ROOT, Mutant, Reach

# The compiled files of each module of the reference.
POLICIES, PAGE, BCACHE = "caches/policies/", "caches/page/", "caches/bcache/"
OPENCAS, DMCACHE, WRITECACHE = "caches/opencas/", "caches/dmcache/", "caches/writecache/"
DEVICES, HDD = "storage/devices/", "storage/devices/hdd/"
COUNTERPARTS = {
    "source": ("requests/source.py", "engine/think.py", "requests/inflight.py", "requests/jobs.py"),
    "limits": ("jit/limits.py", "requests/host.py"),
    "machine": tuple("engine/" + name for name in ("machine.py", "loops.py", "stack.py",
        "life.py")),
    "clock": ("jit/jiffies.py",),
    "cache": tuple(PAGE + name for name in ("cache.py", "requests.py", "fills.py", "table.py")),
    "runs": ("caches/streams.py",),
    "policies": tuple(POLICIES + name for name in ("always.py", "touches.py", "lru.py",
        "reject_first.py", "larc.py", "tinylfu.py", "sievestore.py", "probabilistic.py",
        "request_size.py", "frequencies.py", "fifo.py", "clock.py", "slru.py", "two_q.py", "lfu.py",
        "arc.py", "s3_fifo.py", "sieve.py", "lhd.py", "lirs.py", "w_tinylfu.py", "queues.py",
        "memory.py")),
    "learned": tuple(POLICIES + name for name in ("learned/policy.py", "learned/reuse.py",
        "learned/habits.py", "learned/lessons.py", "budget.py")),
    "bcache": tuple(BCACHE + name for name in ("target.py", "inserts.py", "writeback.py")),
    "bcache_buckets": tuple(BCACHE + name for name in ("buckets.py", "keys.py", "journal.py")),
    "opencas": tuple(OPENCAS + name for name in ("cache.py", "transfers.py", "lines.py", "jobs.py",
        "ways.py", "policies.py")),
    "dmcache": tuple(DMCACHE + name for name in ("target.py", "migrations.py")),
    "smq": (DMCACHE + "smq.py", "jit/lists.py"),
    "writecache": (WRITECACHE + "target.py", WRITECACHE + "write_back.py"),
    "tier": ("storage/raid.py",),
    "hdd": tuple(HDD + name for name in ("__init__.py", "buffer.py", "platters.py",
        "media_cache.py")),
    "ssd": (DEVICES + "ssd.py",),
    "flash": (DEVICES + "flash.py",),
    "volume": (DEVICES + "volume.py",),
    "controller": tuple("storage/controller/" + name for name in ("__init__.py", "memory.py")),
    "throttle": ("storage/throttle.py",),
}  # fmt: skip
DATA = ("parameters.py", "__init__.py")  # of the reference: no model
# Tests that hold the models against something else than hand-worked figures and the reference.
INDEPENDENT = {
    "invariants at every instant": r"test_(simulation|tiny_caches)\.py"
    r"|test_policies\.py::test_a_victim",
    "conservation": r"test_machine\.py::test_(each_request_completes_once|no_entry_is_left_at_the"
    r"_end|paths_and_fills_add_up|device_bytes_and_busy|littles_law)",
    "theory": r"test_queueing\.py|test_volume\.py::test_littles_law"
    r"|test_raid\.py::test_(each_request_reads_and_writes_the_members_of_theory|chunks_lie_as_in)"
    r"|test_hits\.py::test_(belady|no_policy_has_more)",
    "another program": r"test_hits\.py::test_misses_(of_a_public_trace|equal_those_of)"
    r"|test_policy_yardstick\.py|test_machine\.py::test_random_read_iops|test_fio_(jobs|offsets)\.py",
    "the kernel's source": r"test_smq_kernel\.py",
    "measurements of a kernel": r"test_(bcache|dmcache|smq|throttle|kernel_waits)\.py::test_("
    r"each_random_read_miss_is_inserted|a_partly_cached_read|each_read_fills_one|a_sequential_"
    r"stream_is|writes_are_inserted_and|sysfs_counts_wrap|counters_of_real_runs|thirteen_reads"
    r"|slower_reads_of_one|a_sequential_scan_at|a_scan_with_pauses|writes_of_whole_blocks|in_write"
    r"through_writes|partial_block_writes|an_idle_cache_writes|a_migration_threshold|hits_do_not"
    r"|occasional_misses|a_block_is_promoted_at_its_thirteenth|depths_and_limits|a_throttled_"
    r"window|beside_reads|without_reads|period_of_a_timer)",
    "real runs, datasheets, published figures": r"test_(validate_twin|validate_report|fidelity"
    r"|maxiq|systems|tails|datasheets|disksim_files|ssd_timing|hdd_geometry|presets)\.py"
    r"|test_shingled\.py::test_an_archive_disk",
}
STRONGER = re.compile("|".join(f"(?:tests/)?(?:{each})" for each in INDEPENDENT.values()))
PHASES = ("reference", "independent", "unit")
# Tests of the models, those that take longest first.
TESTS = (
    "opencas bcache dmcache writecache simulation life page_cache warm_start engine machine "
    "raid reference policies hits jobs fuzz_scenarios tiny_caches queueing throttle flash smq "
    "controller volume rules live shingled host write_budget own_policies kernel_waits levels "
    "hdd_geometry ssd_timing validate_twin maxiq systems tails datasheets disksim_files "
    "policy_yardstick fidelity presets address_map think wear dirt outcome replay warmup seeds "
    "others odd_traces metrics bounds mrc continuation continued student serve_devices "
    "installed_events write_price hindsight compare"
)
machinery.TEST_SECONDS, machinery.TOO_SLOW = 25, 2  # comparisons of random machines are slow


def calls_a_model(test: dict[str, Any]) -> bool:
    """Return whether a test calls models of the reference."""
    places = [at.split(":")[0] for at in test["reached"] if "/reference/" in at]
    return any(Path(file).name not in DATA for file in places)


def phases_of(mutant: Mutant, reach: Reach, compares: set[str], unsound: set[str]) -> Any:
    """Return the tests of a mutant by phase."""
    names = reach.by_function.get(f"{mutant.file}:{mutant.within}", set())
    others = names - unsound
    return {
        "reference": names & compares,
        "independent": {name for name in others if STRONGER.match(name)},
        "unit": {name for name in others if not STRONGER.match(name)},
    }


def planted(each: int, seed: int, only: list[str] | None) -> list[tuple[str, Mutant]]:
    """Return mutants by module of the reference: the first of each module, the second of each..."""
    columns = []
    for module, files in COUNTERPARTS.items():
        if only and module not in only:
            continue
        found = [
            mutant
            for file in files
            for mutant in machinery.mutants_of(f"{machinery.PACKAGE}/{file}")
            if mutant.within and mutant.kind != "default"
        ]
        random.Random(f"{module} {seed}").shuffle(found)
        sound = islice(filter(machinery.is_python, found), each)
        columns.append([(module, mutant) for mutant in sound])
    return [column[rank] for rank in range(each) for column in columns if rank < len(column)]


def without_reference() -> None:
    """Let a run of the reference return what the engine returns, and the rest of it skip tests."""
    import engine
    import scenarios

    from hybridsim.reference import Outcome, machine

    def simulate(*given: Any, **named: Any) -> Outcome:
        scenario = scenarios.Scenario(*given, **named)
        scenario.fast = scenario.fast or scenario.slow  # of no use without a cache
        facts, finished = engine.simulate(scenario, interpreted=True)
        return Outcome(facts, engine.counters(finished))

    def absent(*given: Any, **named: Any) -> None:
        pytest.skip("the reference is gone")

    instead: dict[int, Any] = {id(machine.simulate): simulate}
    kept = machine.simulate  # its id must stay taken
    prefix = "hybridsim.reference"
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix) and f"{name.rpartition('.')[2]}.py" not in DATA:
            for value in list(vars(module).values()):
                if getattr(value, "__module__", None) != name:
                    continue
                if isinstance(value, type) and "__init__" in vars(value):
                    with contextlib.suppress(TypeError, AttributeError):
                        value.__init__ = absent  # type: ignore[misc]
                elif callable(value) and not isinstance(value, type):
                    instead.setdefault(id(value), absent)
    drives = sys.modules.get("test_flash")
    if drives is not None:
        instead[id(drives.on_reference)] = drives.on_engine
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in instead and value is not instead[id(value)]:
                with contextlib.suppress(TypeError, AttributeError):
                    setattr(module, name, instead[id(value)])
    assert kept is not machine.simulate


class Planter(machinery.Server):
    """A process that has collected the tests, and forks for each mutant."""

    def __init__(self, tree: Path, arguments: argparse.Namespace, known: dict[str, Any]) -> None:
        self.tree = tree
        self.watch = Watch()
        self.arguments = arguments
        self.known = known
        self.until = time.monotonic() + arguments.seconds
        self.log = os.fdopen(os.dup(1), "w")

    def say(self, *lines: str) -> None:
        """Print lines, though pytest's output goes to a file."""
        print(*lines, sep="\n", file=self.log, flush=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Plant the bugs instead of running the collected tests."""
        items = {item.nodeid: item for item in session.items}
        reach = Reach({name: test for name, test in self.known.items() if name in items})
        compares = {name for name in reach.seconds if calls_a_model(self.known[name])}
        self.say(f"{len(reach.seconds)} tests, {len(compares)} compare")
        out = self.arguments.out
        kept: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        unsound: set[str] = set(kept.pop("unsound", []))
        sound: set[str] = set()
        todo = deque(
            each
            for each in planted(self.arguments.each, self.arguments.seed, self.arguments.module)
            if len(kept.get(machinery.key_of(each[1]), {}).get("phases", ())) < len(PHASES)
        )

        def order(one: tuple[str, Mutant]) -> Any:
            tests = phases_of(one[1], reach, compares, unsound)
            chosen = [in_order(tests[name], reach, self.arguments.budget) for name in PHASES]
            return one[1], dict(zip(PHASES, chosen)), one

        def take(given: Any, met: dict[str, Any]) -> None:
            mutant, chosen, one = given
            if met.get("changed") is False:
                return
            caught = met.get("caught", {})
            late = {phase: met["why"] for phase in PHASES[:1] if not caught}
            doubtful = {caught.get(phase, "") for phase in PHASES[1:]} & compares - sound
            for name in doubtful:  # does it hold where the reference is gone, and no bug is?
                alone = self.forked(session, items, None, {"unit": {name: reach.seconds[name]}})
                (unsound if alone.get("caught", {}).get("unit") else sound).add(name)
            if doubtful & unsound:
                todo.appendleft(one)
                return
            kept[machinery.key_of(mutant)] = machinery.shown(mutant) | {
                "module": one[0],
                "phases": {
                    phase: {"by": (caught | late).get(phase, ""), "tests": len(chosen[phase])}
                    for phase in PHASES
                },
            }
            machinery.replace(out, json.dumps(kept | {"unsound": sorted(unsound)}, indent=1))

        running: dict[int, Any] = {}
        while (todo or running) and time.monotonic() < self.until:
            while todo and len(running) < self.arguments.processes:
                each = order(todo.popleft())
                pid, answer = self.begin(session, items, each[0], each[1])
                seconds = 60 + 4 * sum(sum(tests.values()) for tests in each[1].values())
                running[pid] = each, answer, min(time.monotonic() + seconds, self.until)
            for pid, (each, answer, limit) in list(running.items()):
                if (met := self.ended(pid, answer, limit)) is not None:
                    del running[pid]
                    if time.monotonic() < self.until:
                        take(each, met)
            time.sleep(0.02)
        for pid in running:
            os.killpg(pid, signal.SIGKILL)
        self.say(*table(kept))
        return True

    def ended(self, pid: int, answer: Path, limit: float) -> dict[str, Any] | None:
        """Return what a fork found, or why it found nothing; None while it runs."""
        late = time.monotonic() > limit
        if not os.waitpid(pid, os.WNOHANG)[0]:
            if not late:
                return None
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if not answer.exists():
            return {"why": "time" if late else "the process died"}
        met: dict[str, Any] = json.loads(answer.read_text())
        answer.unlink()
        return met

    def forked(self, session: Any, items: Any, mutant: Mutant | None, chosen: Any) -> Any:
        """Return what the tests find in a fork."""
        pid, answer = self.begin(session, items, mutant, chosen)
        while (met := self.ended(pid, answer, self.until)) is None:
            time.sleep(0.02)
        return met

    def begin(self, session: Any, items: Any, mutant: Mutant | None, chosen: Any) -> Any:
        """Run the tests of the phases in a fork; return its id, and the file of its answer."""
        answer = self.tree.parent / f"answer-{time.monotonic_ns()}.json"
        child = os.fork()
        if child:
            with contextlib.suppress(PermissionError):
                os.setpgid(child, child)
            return child, answer
        with machinery.ends_here():
            os.setpgid(0, 0)
            folder = self.tree.parent / f"own-{os.getpid()}"
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            resource.setrlimit(resource.RLIMIT_AS, (machinery.MEMORY, machinery.MEMORY))
            session.config._tmp_path_factory._given_basetemp = folder
            session.config._tmp_path_factory._basetemp = None
            session.config.option.maxfail = 1
            functions: list[Any] = []
            if mutant is not None:
                text = machinery.mutated((ROOT / mutant.file).read_text(), mutant)
                functions, code = self.functions(mutant.file, text, mutant.within)
                for function in functions:
                    function.__code__ = code
            caught = {}
            for phase, tests in chosen.items():
                if phase == PHASES[1] or mutant is None:
                    without_reference()
                if mutant is not None and not functions:
                    break
                session.testsfailed, session._shouldfail = 0, False
                self.watch.tests, self.watch.failed = tests, []
                session.items = [items[name] for name in tests]
                with contextlib.suppress(session.Failed, session.Interrupted):
                    running(session)
                caught[phase] = next(iter(self.watch.failed), "")
            changed = bool(functions) or mutant is None
            machinery.replace(answer, json.dumps({"caught": caught, "changed": changed}))
        return 0, answer


class Watch(machinery.Watch):
    """As of mutants.py, but a skipped test does not count as failed."""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record a failure."""
        if report.failed:
            self.failed.append(report.nodeid)


class Recorded(machinery.Watch):
    """Stores what tests call after each of them: some files take longer than there is time."""

    def pytest_runtest_logfinish(self) -> None:
        """Write what the tests called so far."""
        if self.reach is not None:
            out = self.reach
            self.reach = out.with_suffix(".begun")
            self.pytest_sessionfinish()
            self.reach.replace(out)
            self.reach = out


def measured(kept: Path, names: list[str], processes: int, seconds: float) -> dict[str, Any]:
    """Return by test its seconds and what it calls, measured in several processes.

    Of files that take longer than `seconds` in all, it is those tests that ended.  KEPT has the
    results.
    """
    known = json.loads(kept.read_text()) if kept.exists() else {}
    until = time.monotonic() + seconds
    in_child = machinery.in_child

    def in_time(_: float, *given: Any) -> dict[str, Any]:
        return in_child(max(until - time.monotonic(), 1), *given)

    todo, under_way = deque(name for name in names if not is_known(name, known)), set[int]()
    with tempfile.TemporaryDirectory(prefix="reach-") as folder:
        while todo or under_way:
            while todo and len(under_way) < processes and time.monotonic() < until:
                name = todo.popleft()
                own = Path(folder, name)
                own.mkdir()
                child = os.fork()
                if not child:
                    with machinery.ends_here():
                        machinery.in_child, machinery.Watch = in_time, Recorded
                        (own / "kept.json").write_text(json.dumps(known))
                        machinery.measured_reach(
                            own / "kept.json", machinery.copy_tree(own), [name]
                        )
                under_way.add(child)
            under_way = {child for child in under_way if not os.waitpid(child, os.WNOHANG)[0]}
            if time.monotonic() > until:
                todo.clear()
            time.sleep(0.05)
        for part in Path(folder).glob("*/kept.json"):
            known |= json.loads(part.read_text())
    machinery.replace(kept, json.dumps(known))
    wanted = {f"test_{name}.py" for name in names}
    files = [file for name, file in known.items() if name in wanted]
    return {name: test for file in files for name, test in file["tests"].items()}


def is_known(name: str, known: dict[str, Any]) -> bool:
    """Return whether what a test file calls was measured since it changed."""
    path = ROOT / "tests" / f"test_{name}.py"
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return known.get(path.name, {}).get("content") == content


def in_order(names: set[str], reach: Reach, budget: float) -> dict[str, float]:
    """Return tests in the order to run them, the fastest of each file first, up to a budget."""
    part = Reach({})
    part.seconds = reach.seconds
    part.by_function["m:f"] = names
    return part.tests(Mutant("m", 1, 0, 1, "", "f", ""), budget)


def table(kept: dict[str, Any]) -> Iterator[str]:
    """Yield who caught the planted bugs, by module of the reference, and those that only it did."""
    full = [each for name, each in kept.items() if name != "unsound"]
    full = [each for each in full if len(each["phases"]) == len(PHASES)]
    rows: dict[str, Counter[str]] = {}
    only, survivors = [], []
    for each in full:
        caught = {phase for phase in PHASES if each["phases"][phase]["by"]}
        counts = Counter(caught)
        counts["planted"] = 1
        counts["anyone"] = bool(caught)
        counts["only"] = caught == {"reference"}
        for row in (each["module"], "all"):
            rows.setdefault(row, Counter()).update(counts)
        if not caught:
            survivors.append(each)
        if caught == {"reference"}:
            only.append(each)
    columns = ("planted", "anyone", "reference", "only", "independent", "unit")
    yield f"{'module':24}" + "".join(f"{name:>12}" for name in columns)
    for module in [*(name for name in COUNTERPARTS if name in rows), "all"]:
        yield f"{module:24}" + "".join(f"{rows[module][name]:12}" for name in columns)
    for title, found in (("only the reference", only), ("nobody", survivors)):
        yield f"\ncaught by {title}:"
        for each in found:
            tests = "+".join(str(each["phases"][phase]["tests"]) for phase in PHASES)
            where = f"{each['file']}:{each['line']} {each['within']}"
            yield f"{where}: {each['before']} -> {each['after']}   ({tests} tests)"


def main() -> None:
    """Plant the bugs specified on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("--each", type=int, default=8, help="bugs a module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=30, help="seconds of tests a phase")
    parser.add_argument("--seconds", type=float, default=10**9, help="in all")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--measuring", type=float, default=10**9, help="seconds for the reach")
    parser.add_argument(
        "--tests", nargs="+", default=TESTS.split(), metavar="NAME", help="of test_NAME.py"
    )
    parser.add_argument("--module", nargs="+", help="of the reference, of all")
    parser.add_argument("--out", type=Path, default=cache / "hybridsim-mutants" / "planted.json")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print a result, run none")
    arguments = parser.parse_args()
    if arguments.table:
        print(*table(json.loads(arguments.table.read_text())), sep="\n")
        return
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    machinery.preload()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        tree = machinery.copy_tree(Path(folder))
        known = measured(
            arguments.out.parent / "reach.json",
            arguments.tests,
            arguments.processes,
            arguments.measuring,
        )
        sys.dont_write_bytecode = True
        files = sorted({name.partition("::")[0] for name in known})
        planter = Planter(tree, arguments, known)
        sink = os.open(arguments.out.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(sink, stream)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree)
        sys.path[:] = [str(tree), *(at for at in sys.path if at not in ("", str(ROOT)))]
        pytest.main([*machinery.OPTIONS, *files], plugins=[planter.watch, planter])


if __name__ == "__main__":
    main()
