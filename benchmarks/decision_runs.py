"""What candidate machines do with the traces of decision_traces: simulated once, kept in a folder.

A machine is causal: what it does with the first requests does not depend on those that come later.
So one run over the whole trace holds both what a tool sees of a capture that ends early and what
came afterwards, with the cache in the state that it had reached.  Every request's times
are kept, and the counters; a run that is there already is not repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, TypeVar

import numpy as np
from decision_traces import Case, all_cases

from hybridsim.answers.dirt import dirty, marks
from hybridsim.answers.forecast import deviation
from hybridsim.answers.judge import Both, Side, gain_after, gain_later
from hybridsim.answers.metrics import GROUPS, JOINED, Collector, Counters, Later, Ledger
from hybridsim.caches.page.fills import COLD_START
from hybridsim.engine import machine as engine
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import HybridsimError
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import batches
from hybridsim.studies.replay import Several
from hybridsim.studies.runs import SAMPLES_MAX, Pump, Task, go_on
from hybridsim.traces.trace import in_memory

Result = TypeVar("Result")

SHOWN = 0.3  # share of the requests that the tool sees
LATER = (
    SHOWN,
    0.225,
    0.15,
    0.09,
    0.0675,
    0.05,
    0.02,
)  # of a trace, after which its load is continued
PAST = {
    SHOWN: 0.09,
    0.225: 0.0675,
    0.15: 0.05,
    0.05: 0.02,
}  # whose forecasts are looked back at, see hindsight.py
PANEL = ("page wb", (0, -1))  # the kind, and which of its sizes
SHARES = (0.05, 0.2, 0.8)  # of what these touch: the sizes
WHOLE_GROUPS = 0.1  # of a trace
MIB = 1 << 20
KINDS = {
    "page wt": {"cache.kind": "page", "cache.mode": "write-through"},
    "page wb": {"cache.kind": "page", "cache.mode": "write-back"},
    "bcache wt": {"cache.kind": "bcache", "cache.mode": "writethrough"},
    "bcache wb": {"cache.kind": "bcache", "cache.mode": "writeback"},
    "dm-cache wt": {"cache.kind": "dm-cache", "cache.mode": "writethrough"},
    "dm-cache wb": {"cache.kind": "dm-cache", "cache.mode": "writeback"},
    "writecache": {"cache.kind": "dm-writecache"},
    "open-cas wt": {"cache.kind": "open-cas", "cache.mode": "wt"},
    "open-cas wb": {"cache.kind": "open-cas", "cache.mode": "wb"},
}
AT_ONCE = 12  # machines of a pass


@dataclass(frozen=True)
class Machine:
    """A candidate: a kind and mode of cache, and how large it is."""

    kind: str  # of KINDS; "none" are the disks alone
    size_bytes: int

    @property
    def is_plain(self) -> bool:
        """Whether these are the disks alone."""
        return self.kind == "none"

    @property
    def name(self) -> str:
        """Return what its file is called."""
        return f"{self.kind} {self.size_bytes // MIB}MiB".replace(" ", "_")

    def scenario(self, mode: str) -> Scenario:
        """Return it as a scenario."""
        values = {"replay.mode": mode}
        if not self.is_plain:
            values |= KINDS[self.kind] | {"cache.size": f"{self.size_bytes // MIB}MiB"}
        return Scenario.default().with_values(values)


class Facts(NamedTuple):
    """Columns of facts, as a ledger takes them."""

    number: np.ndarray
    issue_ns: np.ndarray
    done_ns: np.ndarray
    op: np.ndarray
    length: np.ndarray
    path: np.ndarray


@dataclass
class Ran:
    """What is kept of one machine's run over one trace."""

    machine: Machine
    facts: dict[str, np.ndarray]  # by number: arrival_ns, issue_ns, done_ns, op, length, path
    counters: Counters
    later: dict[int, float]  # by the first request of the load that goes on, see gain_later

    @cached_property
    def marks(self) -> list[int]:
        """Return the levels of dirty bytes at which it behaves otherwise."""
        if self.machine.is_plain:
            return []
        return marks(self.machine.scenario("open").cache, self.machine.size_bytes)

    @cached_property
    def cache_kind(self) -> str:
        """Return the kind of its cache, as scenarios name it."""
        return "none" if self.machine.is_plain else KINDS[self.machine.kind]["cache.kind"]

    def cost_ns(self, first: int, end: int, adapts: bool) -> int:
        """Return what requests [first, end) cost: their latencies, or the time that they took."""
        done, issue = self.facts["done_ns"], self.facts["issue_ns"]
        if adapts:
            return int(done[:end].max() - done[:first].max(initial=0))
        mine = np.isin(self.facts["op"][first:end], (Op.READ, Op.WRITE, Op.WRITE_ZEROES))
        mine &= self.facts["length"][first:end] > 0
        return int((done[first:end] - issue[first:end])[mine].sum())

    def side(self, first: int, end: int) -> Side:
        """Return what the judge sees of requests [first, end)."""
        result = Ledger()
        cut = {name: column[first:end] for name, column in self.facts.items()}
        result.arrive(0, cut.pop("arrival_ns"))
        result.add(Facts(number=np.arange(end - first), **cut))
        later = None if first else self.later.get(end)
        return Side(result, self.counters, self.marks, self.cache_kind, later)


@dataclass
class Runs:
    """All machines' runs over a trace."""

    case: Case
    mode: str
    plain: Ran
    cached: list[Ran]

    @cached_property
    def requests(self) -> int:
        """How many requests the whole trace has."""
        return len(self.plain.facts["op"])

    def drift(self, cut: int) -> float:
        """Return by how many times the load changes after the first `cut` requests.

        That is the most of its requests and its bytes a second, as recorded, and of what the disks
        alone take for one, against the second half of these.
        """
        facts, last = self.plain.facts, self.requests
        figures = []
        for first, end in ((cut // 2, cut), (cut, last)):
            mine = slice(first, end)
            span_ns = max(int(np.ptp(facts["arrival_ns"][mine])), 1)
            cost_ns = (facts["done_ns"][mine] - facts["issue_ns"][mine]).sum()
            bytes_rate = facts["length"][mine].sum() / span_ns
            figures.append([(end - first) / span_ns, bytes_rate, cost_ns / (end - first)])
        before, after = np.maximum(figures, 1e-12)
        return float(np.exp(np.abs(np.log(after / before)).max()))

    def off(self, share: float) -> float | None:
        """Return how far forecasts were off within so much of the trace; see Course."""
        if share not in PAST:
            return None
        cut, end = border(self.requests, PAST[share]), border(self.requests, share)
        mine = panel([each.machine for each in self.cached])
        squares = []
        for each in (one for machine in mine for one in self.cached if one.machine == machine):
            both = Both(self.plain.side(0, cut), each.side(0, cut))
            if both.cached.later is None or both.too_short(both.half):
                return None
            adapts = self.mode != "open"
            gain = gain_after(self.plain.side(0, end), each.side(0, end), cut, adapts)
            if gain is None:
                return None
            squares.append(deviation(both.course("time", adapts), gain) ** 2)
        return float(np.sqrt(np.mean(squares)))


def panel(machines: list[Machine]) -> list[Machine]:
    """Return the machines on which the load's past is forecast."""
    kind, places = PANEL
    mine = sorted((x for x in machines if x.kind == kind), key=lambda x: x.size_bytes)
    return [mine[place] for place in places]


def collected(
    folder: Path,
    of: Callable[[Runs], Result],
    quick: bool,
    workers: int,
    only: str = "",
    shown: bool = False,
) -> Iterator[Result]:
    """Yield what `of` makes of the runs of each case; simulate those that are not there yet.

    With `shown` the load goes on after SHOWN alone, and for the panel after its PAST.
    """
    cases = [each for each in chosen(quick) if only in each.name]
    with ProcessPoolExecutor(workers) as pool:
        done = [pool.submit(_made, folder, each.name, quick, of, shown) for each in cases]
        for case, one in zip(cases, done):
            why, result = one.result()
            if why:
                print(f"left out: {case.name}: {why}", flush=True)
            else:
                yield result


def _made(
    folder: Path, name: str, quick: bool, of: Callable[[Runs], Result], shown: bool
) -> tuple[str, Result]:
    why = simulate(folder, name, quick, shown)
    case = next(each for each in all_cases() if each.name == name)
    return why, None if why else of(loaded(folder, case))


def chosen(quick: bool) -> list[Case]:
    """Return the cases; --quick takes one in six."""
    cases = all_cases()
    return cases[::6] if quick else cases


def simulate(folder: Path, name: str, quick: bool, shown: bool = False) -> str:
    """Run all machines over a case; return why it is left out, if it is."""
    case = next(each for each in all_cases() if each.name == name)
    place = folder / _file(name)
    place.mkdir(parents=True, exist_ok=True)
    done = place / ("done-quick" if quick else "done")
    why = done.read_text() if done.exists() else ""
    try:
        if not done.exists() and not (place / "done").exists():
            why = _simulate(case, place, quick)
        if not why:
            _continue(case, place, shown)
    except HybridsimError as error:
        why = str(error)
    done.write_text(why)
    return why


def _simulate(case: Case, place: Path, quick: bool) -> str:
    rows = case.load()
    shown = in_memory(case.name, rows.between(0, int(rows.rows * SHOWN)), case.is_generated)
    first = Several(shown, Scenario.default())
    first.results([Scenario.default()])
    mode = first.mode
    whole = Several(in_memory(case.name, rows, case.is_generated), Scenario.default())
    touched = first.summary.footprint_bytes
    sizes = sorted({max(round(touched * share / MIB), 1) * MIB for share in SHARES})
    sizes = sizes[1:3] if quick else sizes
    machines = [Machine("none", 0)] + [Machine(kind, size) for kind in KINDS for size in sizes]
    missing = [each for each in machines if not (place / f"{each.name}.npz").exists()]
    (place / "mode").write_text(mode)
    for start in range(0, len(missing), AT_ONCE):
        _run(missing[start : start + AT_ONCE], whole, mode, place)
    return ""


def border(requests: int, share: float) -> int:
    """Return the request at which so much of a trace ends, on a border of histograms.

    Shares below WHOLE_GROUPS need not end on one.
    """
    if share < WHOLE_GROUPS:
        return round(requests * share)
    each = 1
    while requests > GROUPS * each:
        each *= 2
    step = each * JOINED
    return max(round(requests * share / step), 1) * step


def _continue(case: Case, place: Path, shown: bool) -> None:
    """Let the load go on after each share of the trace, on all machines of the folder."""
    wanted = (SHOWN, PAST[SHOWN]) if shown else LATER
    missing = [share for share in wanted if not (place / f"later-{share}.json").exists()]
    if not missing:
        return
    rows, mode = case.load(), (place / "mode").read_text()
    every = [_machine_of(path) for path in sorted(place.glob("*.npz"))]
    for share in missing:
        machines = panel(every) if shown and share != SHOWN else every
        machines = [each for each in machines if not each.is_plain]
        cut = border(rows.rows, share)
        trace = in_memory(case.name, rows.between(0, cut), case.is_generated)
        task = Task(trace, trace.summary(), Scenario.default(), None, None)
        known = {}
        plain = SimpleNamespace(collector=Collector())
        go_on(task, mode, [partial(_built, Machine("none", 0), mode)], [plain])
        for start in range(0, len(machines), AT_ONCE):
            some = machines[start : start + AT_ONCE]
            pumps = [SimpleNamespace(collector=Collector()) for _ in some]
            go_on(task, mode, [partial(_built, each, mode) for each in some], pumps)
            for each, pump in zip(some, pumps):
                runs = plain.collector.later, pump.collector.later
                known[each.name] = _gained(each, *runs, mode != "open")
        text = json.dumps({"cut": cut, "later": known}, indent=1)
        (place / f"later-{share}.json").write_text(text)


def _gained(
    machine: Machine, plain: Later | None, cached: Later | None, adapts: bool
) -> float | None:
    if plain is None or cached is None:
        return None
    counters = [dict(plain.counters), dict(cached.counters)]
    counters[1]["dirty_bytes"] = dirty_bytes(machine, cached.counters)
    sides = [Side(each.ledger, Counters(one)) for each, one in zip((plain, cached), counters)]
    return gain_later(*sides, plain.captured, "time", adapts)


def _built(machine: Machine, mode: str, volume_bytes: int) -> engine.Machine:
    scenario = machine.scenario(mode)
    pages = 0 if machine.is_plain else scenario.cache.pages(volume_bytes)
    return building.machine(scenario, mode, volume_bytes, pages, COLD_START)


class Recorder:
    """Takes the place of a collector: keeps every fact, by the number of the request."""

    def __init__(self, requests: int) -> None:
        self.columns = {
            "issue_ns": np.zeros(requests, np.int64), "done_ns": np.zeros(requests, np.int64),
            "op": np.zeros(requests, np.uint8), "length": np.zeros(requests, np.int64),
            "path": np.zeros(requests, np.uint8),
        }  # fmt: skip
        self.ledger = self
        self.arrival_ns = np.zeros(requests, np.int64)

    def arrive(self, first: int, arrival_ns: np.ndarray) -> None:
        """Keep when requests arrived as recorded."""
        self.arrival_ns[first : first + len(arrival_ns)] = arrival_ns

    def add(self, facts) -> None:
        """Keep a chunk of facts."""
        for name, column in self.columns.items():
            column[facts.number] = getattr(facts, name)


def _run(machines: list[Machine], whole: Several, mode: str, place: Path) -> None:
    volume, requests = whole.summary.max_end_bytes, whole.summary.requests
    step_ns = max(whole.summary.span_ns // (SAMPLES_MAX // 2), 1)
    pumps = {}
    for each in machines:
        try:
            scenario = each.scenario(mode)
            pages = 0 if each.is_plain else scenario.cache.pages(whole.summary.footprint_bytes)
            machine = building.machine(scenario, mode, volume, pages, COLD_START)
        except HybridsimError:
            continue  # too small or too large for its kind
        pumps[each] = Pump(machine, step_ns)
        pumps[each].collector = Recorder(requests)
    for batch in batches(whole.task.trace, 1.0, mode == "think"):
        for pump in pumps.values():
            pump.take(batch._replace(state=batch.state.copy()))
    for each, pump in pumps.items():
        counters = {f"counter_{name}": one for name, one in pump.counters.items()}
        counters["counter_dirty_bytes"] = dirty_bytes(each, pump.counters)
        facts = pump.collector.columns | {"arrival_ns": pump.collector.arrival_ns}
        partial = place / "partial"  # an interrupted run leaves no half of a file
        with partial.open("wb") as file:
            np.savez(file, **facts, **counters)
        partial.replace(place / f"{each.name}.npz")


def dirty_bytes(machine: Machine, counters) -> np.ndarray:
    """Return how much has to be written to the disks, at the time of each row of counters."""
    cache = machine.scenario("open").cache
    return dirty(cache.kind, cache.page_bytes, counters)


def loaded(folder: Path, case: Case) -> Runs:
    """Read the runs of a case."""
    place = folder / _file(case.name)
    later: dict[str, dict[int, float]] = {}
    for path in place.glob("later-*.json"):
        kept = json.loads(path.read_text())
        for name, one in kept["later"].items():
            if one is not None:
                later.setdefault(name, {})[kept["cut"]] = one
    result = [_loaded(each, later) for each in sorted(place.glob("*.npz"))]
    plain = next(each for each in result if each.machine.is_plain)
    cached = [each for each in result if not each.machine.is_plain]
    return Runs(case, (place / "mode").read_text(), plain, cached)


def _machine_of(path: Path) -> Machine:
    kind, _, size = path.stem.rpartition("_")
    return Machine(kind.replace("_", " "), int(size.removesuffix("MiB")) * MIB)


def _loaded(path: Path, later: dict[str, dict[int, Later]]) -> Ran:
    with np.load(path) as kept:
        facts = {name: kept[name] for name in kept.files if not name.startswith("counter_")}
        counters = {
            name.removeprefix("counter_"): kept[name]
            for name in kept.files
            if name.startswith("counter_")
        }
    machine = _machine_of(path)
    return Ran(machine, facts, Counters(counters), later.get(machine.name, {}))


def _file(name: str) -> str:
    return name.replace(" ", "_") + "-" + hashlib.sha256(name.encode()).hexdigest()[:4]
