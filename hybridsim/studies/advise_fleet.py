"""Recommend SSD caches for a fleet: each capture on its own, and the purchase as a whole.

Each capture, or each volume of a capture of several, is judged by `advise` on disks as the scenario
has them.  A server is one capture: its volumes share its SSDs.  All servers get the drive of the
scenario's cache, as many as their caches need: by capacity, by the time that the drives are busy,
and by wear, whichever is most.
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hybridsim.answers.advice.alternatives import Pricing, pricing
from hybridsim.answers.forecast import NO, UNSURE, YES
from hybridsim.answers.result import plain
from hybridsim.foundation.documents import headed
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.in_notebooks import DataFrame, frame_of
from hybridsim.scenario import Scenario
from hybridsim.studies.advise import AS_GOOD, Advice, advise
from hybridsim.studies.candidates import effort_of
from hybridsim.studies.sweep.named_trace import NamedTrace, volumes_of
from hybridsim.studies.sweep.point import Point, compiled_kind, remember_code
from hybridsim.studies.sweep.running import Report, Running, silent
from hybridsim.studies.sweep.store import FOLDER, Store
from hybridsim.studies.sweep.sweep import check_crew, crew, in_order
from hybridsim.traces.formats.column_reader import ALL

SCHEMA = "hybridsim.fleet/1"
BUSY_AT_MOST = 0.7  # of the time: drives that caches share
LEFT_OUT = ("schema", "tool", "activity", "hot_spot", "compared", "data_bytes", "depth", "price",
            "gain_per_cost_decides")  # fmt: skip
OF_TRACE = (
    "name", "arguments", "requests", "reads", "writes", "span_ns", "footprint_bytes",
    "requests_sha256",
)  # fmt: skip
OF_MACHINE = (
    "kind", "mode", "name", "setting", "installable", "size_bytes", "answer", "gain", "forecast",
    "low", "high", "cautious", "judged", "keeps_up", "ssd_busy", "years", "bought",
)  # fmt: skip
LASTS_YEARS = 5.0  # the usual warranty of an SSD


@dataclass(frozen=True)
class Member:
    """One capture or volume: the document of its advice, or why there is none."""

    server: str  # the capture
    volume: str | None  # of several volumes; None: the capture has one
    advice: Mapping[str, Any] | None  # the document of `advise --json`, without its details
    why: str = ""  # it failed

    @property
    def name(self) -> str:
        """Capture and volume."""
        return self.server if self.volume is None else f"{self.server} {self.volume}"

    @property
    def answer(self) -> str:
        """yes, no or unsure; also unsure if it failed."""
        return UNSURE if self.advice is None else str(self.advice["answer"])

    @property
    def pick(self) -> Mapping[str, Any] | None:
        """The recommended machine; None if it failed."""
        return None if self.advice is None else self.advice["recommended"]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {"name": self.name, **vars(self), "answer": self.answer}


@dataclass(frozen=True)
class Server:
    """The SSDs of one server: those of its volumes that have a use for a cache."""

    name: str
    volumes: int  # that get a cache
    cache_bytes: int
    mirrored: bool
    drives: int
    decided_by: str  # what needs so many: capacity, load or wear
    busy: float | None  # share of the time, of each drive
    years: float | None  # until the first drive is worn out
    cost: float | None  # None: the price is unknown


def cost_of(servers: Sequence[Server]) -> float | None:
    """Return the cost of all SSDs of servers; None: the price is unknown."""
    costs = [each.cost for each in servers]
    return None if None in costs else sum(each or 0.0 for each in costs)


@dataclass(frozen=True)
class Waits:
    """The sum of the latencies of the same requests, without the caches and with them."""

    members: int  # whose disks keep up with the load: a growing queue has no mean
    requests: int
    alone_ns: float
    cached_ns: float
    low_ns: float  # with the caches, if all gains are at the upper ends of their intervals
    high_ns: float  # if all are at their lower ends
    gain: float | None  # how many times less all requests wait; None: they wait for nothing
    low: float | None  # its ends, if all members are at the same ends of their intervals
    high: float | None


@dataclass(frozen=True)
class OneKind:
    """The same kind and mode of cache for all that get one."""

    name: str
    members: int  # for which it was replayed
    waits: Waits
    drives: int
    cost: float | None


@dataclass(frozen=True)
class FleetAdvice:
    """The answers for all members, and the purchase."""

    members: list[Member]  # with a use first, the most saved wait first
    servers: list[Server]  # that get SSDs
    waits: Waits | None  # of the members with a use; None: there are none
    kinds: list[OneKind]  # the best first
    drive: str
    drive_bytes: int
    pricing: Pricing
    goal: str
    scenario: dict[str, Any]
    later: int  # drives for those that may have a use, if all of them have
    later_cost: float | None
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per member, those with a use first.

        Columns: `server`, `volume`, `answer`, and of the recommended machine: `cache`,
        `cache_mode`, `setting`, `size_bytes`, `gain`, its forecast `low` to `high`, `ssd_busy`
        (share of the time), `years` until the SSD is worn out; `why` it failed.  NaN where unknown.
        Needs pandas (`hybridsim[notebooks]`).
        """
        known = {"cache": "kind", "cache_mode": "mode", **{
            name: name for name in ("setting", "size_bytes", "gain", "low", "high", "ssd_busy",
                                    "years")
        }}  # fmt: skip
        return frame_of(
            [
                {"server": each.server, "volume": each.volume, "answer": each.answer}
                | {column: (each.pick or {}).get(name) for column, name in known.items()}
                | {"why": each.why}
                for each in self.members
            ]
        )

    def purchase(self) -> DataFrame:
        """Return a pandas frame: a row per server that gets SSDs, with their number and cost."""
        return frame_of(map(asdict, self.servers), [each.name for each in fields(Server)])

    def __repr__(self) -> str:
        use = len(self.answered(YES))
        return f"<FleetAdvice: {use} of {len(self.members)} have a use, {self.drives} drives>"

    def answered(self, answer: str) -> list[Member]:
        """Return the members with an answer, except those that failed."""
        return [each for each in self.members if each.answer == answer and not each.why]

    @property
    def failed(self) -> list[Member]:
        """The members that could not be judged."""
        return [each for each in self.members if each.why]

    @property
    def drives(self) -> int:
        """Number of SSDs to buy."""
        return sum(each.drives for each in self.servers)

    @property
    def cost(self) -> float | None:
        """Cost of all SSDs; None: the price is unknown."""
        return cost_of(self.servers)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        answers = {each: len(self.answered(each)) for each in (YES, NO, UNSURE)}
        return headed(
            SCHEMA,
            inputs={"scenario": self.scenario},
            goal=self.goal,
            answers={**answers, "failed": len(self.failed)},
            purchase={
                "drive": self.drive,
                "drive_bytes": self.drive_bytes,
                "drives": self.drives,
                "cost": self.cost,
                "servers": self.servers,
                "later_drives": self.later,
                "later_cost": self.later_cost,
            },
            waits=self.waits,
            kinds=self.kinds,
            members=self.members,
            price=self.pricing.to_dict(),
            notes=self.notes,
            interrupted=self.interrupted,
        )


def advise_fleet(
    traces: Sequence[NamedTrace],
    scenario: Scenario | None = None,
    limit: int = 0,
    goal: str = "time",
    folder: str | os.PathLike[str] = FOLDER,
    workers: int | None = None,
    scheduler: str | None = None,
    report: Report = silent,
) -> FleetAdvice:
    """Advise for every trace, and for each volume of a trace of several (at most `limit`; 0: all).

    `workers` is a number of processes on this machine (None: one per core); `scheduler` is the
    address of a dask scheduler whose workers are used instead.  Answers are stored in `folder`: the
    same call continues where an earlier one was interrupted.  Raises UsageError if there is only
    one trace of one volume, TraceError for one that cannot be read.
    """
    check_crew(workers, scheduler)
    scenario = scenario or Scenario.default()
    named, notes = members_of(traces, limit, Path(folder))
    points = {each: _point(one, scenario, goal) for each, one in named.items()}
    hire = functools.partial(crew, workers, scheduler, functools.partial(advised, goal))
    interrupted = False
    with Store(folder) as store, Running(hire, store, report) as running:
        try:
            running.finish(in_order(list(points.values())))
        except KeyboardInterrupt:
            interrupted = True
        found = running.on_disk(points.values())
        failures = {key: each.why for key, each in running.failures.items()}
    members = [
        Member(server, volume, found.get(point.key),
               failures.get(point.key, "" if point.key in found else "it was not computed"))
        for (server, volume), point in points.items()
    ]  # fmt: skip
    return concluded(members, scenario, goal, notes, interrupted)


Named = dict[tuple[str, str | None], NamedTrace]


def members_of(traces: Sequence[NamedTrace], limit: int, folder: Path) -> tuple[Named, list[str]]:
    """Return the captures and volumes by server and volume, and notes on repeated captures."""
    result: Named = {}
    notes: list[str] = []
    first: dict[str, str] = {}
    for each in traces:
        digest = each.digest()
        if digest in first:
            notes.append(f"{each.name} is the same capture as {first[digest]}: counted once")
            continue
        first[digest] = each.name
        for one in volumes_or_itself(each, limit, folder):
            result[each.name, one.device if one.split else None] = one
    if len(result) < 2:
        raise UsageError(
            f"a fleet needs several captures or volumes, and there is {len(result)}: name more, "
            "or remove --fleet"
        )
    return result, notes


def volumes_or_itself(trace: NamedTrace, limit: int, folder: Path) -> list[NamedTrace]:
    """Return the volumes of a trace that has several, else the trace."""
    if trace.device is not None:
        return [trace]
    if not trace.open().has_volumes or len(trace._replace(device=ALL).open().devices) < 2:
        return [trace]
    return volumes_of(trace, limit, folder)


def _point(trace: NamedTrace, scenario: Scenario, goal: str) -> Point:
    """Return the point of a member; its key includes what narrows the search, and the prices."""
    price = scenario.price and scenario.price.model_dump(mode="json")
    narrowed = [scenario.origin.specified, scenario.options, price]
    detail = f"advise {goal} {json.dumps(narrowed, sort_keys=True, default=str)}"
    return Point(trace, trace.digest(), (), scenario, None, detail)


def advised(goal: str, point: Point) -> dict[str, Any]:
    """Advise for a point; return what the fleet needs of the document."""
    trace = point.trace.open()
    advice = advise(trace, point.scenario, ["disks"], goal=goal)
    document: dict[str, Any] = plain(of_member(advice))
    remember_code(compiled_kind(point))
    document["inputs"]["trace"] |= {
        "name": point.trace.name, "arguments": point.trace.arguments
    }  # fmt: skip
    return document


def of_member(advice: Advice) -> dict[str, Any]:
    """Return the document of an advice without what a fleet does not show."""
    whole = advice.to_dict()
    document = {name: each for name, each in whole.items() if name not in LEFT_OUT}
    trace = whole["inputs"]["trace"]
    document["inputs"] = {**whole["inputs"], "trace": {name: trace[name] for name in OF_TRACE}}
    document["rows"] = [{name: each[name] for name in OF_MACHINE} for each in whole["rows"]]
    return document


def concluded(
    members: Sequence[Member],
    scenario: Scenario,
    goal: str,
    notes: Sequence[str] = (),
    interrupted: bool = False,
) -> FleetAdvice:
    """Return the purchase for all members with a use for a cache."""
    use, maybe = (
        [(each, each.pick) for each in members if each.answer == answer and each.pick is not None]
        for answer in (YES, UNSURE)
    )
    servers = servers_of(use)
    both = servers_of([*use, *maybe])
    later = sum(each.drives for each in both) - sum(each.drives for each in servers)
    costs = cost_of(both), cost_of(servers)
    ordered = sorted(members, key=lambda each: ((YES, UNSURE, NO).index(each.answer),
                                                bool(each.why), -saved_ns(each)))  # fmt: skip
    drive = scenario.cache.drive
    site = {
        "summary": scenario.words[0],
        "file": scenario.origin.name or None,
        "options": scenario.options,
        "toml": scenario.to_toml(),
    }
    return FleetAdvice(
        ordered, servers, waits_of(use) if use else None,
        one_kind(use), drive.name, drive.capacity_bytes, pricing(scenario), goal, site, later,
        None if costs[0] is None or costs[1] is None else costs[0] - costs[1], list(notes),
        interrupted,
    )  # fmt: skip


Chosen = tuple[Member, Mapping[str, Any]]  # a member and one of its machines


def servers_of(use: Sequence[Chosen]) -> list[Server]:
    """Return the SSDs of each server, in the order of their first members."""
    names = dict.fromkeys(each.server for each, _ in use)
    return [server_of(name, [row for each, row in use if each.server == name]) for name in names]


def server_of(name: str, rows: Sequence[Mapping[str, Any]]) -> Server:
    """Return the SSDs that the caches of one server need together."""
    bought = [each["bought"] for each in rows]
    mirrored = any(each["mirrored"] for each in bought)
    copies = 2 if mirrored else 1
    # A tier of several SSDs is bought as such; caches of single drives share drives.
    members = max(each["drives"] // (2 if each["mirrored"] else 1) for each in bought)
    capacity = bought[0]["drive_bytes"]
    held = sum(each["size_bytes"] for each in rows)
    load = [each["ssd_busy"] for each in rows]
    busy = None if None in load else sum(load) * members
    worn = [1 / each["years"] for each in rows if each["years"]]
    wear = sum(worn) * members
    needs = {
        "capacity": max(members, math.ceil(held / capacity)),
        "load": math.ceil((busy or 0.0) / BUSY_AT_MOST),
        "wear": math.ceil(wear * LASTS_YEARS),
    }
    if len(rows) == 1:  # one cache cannot spread over more drives than it was simulated with
        needs = {"capacity": needs["capacity"]}
    number = max(needs.values())
    cost = bought[0]["cost"]
    return Server(
        name, len(rows), held, mirrored, copies * number,
        next(reason for reason, each in needs.items() if each == number),
        None if busy is None else busy / number,
        number / wear if wear else None,
        None if cost is None else cost / bought[0]["drives"] * copies * number,
    )  # fmt: skip


def waits_of(chosen: Sequence[Chosen]) -> Waits:
    """Return the waits of the second half of the requests of all members.

    The ends scale the wait of each member by its gain and the ends of its interval.
    """
    alone = cached = low = high = 0.0
    requests = members = 0
    for member, each in chosen:
        if not (each["keeps_up"] and member.advice and member.advice["disks_keep_up"]):
            continue  # their waits depend on the length of the capture
        members += 1
        before, after = (_total_ns(each["judged"][side]) for side in ("none", "cached"))
        gain = each["gain"] or 1.0
        alone, cached = alone + before, cached + after
        low += after * gain / (each["high"] or gain)
        high += after * gain / (each["low"] or gain)
        requests += each["judged"]["end"] - each["judged"]["first"]
    gains = (alone / with_caches if with_caches else None for with_caches in (cached, high, low))
    return Waits(members, requests, alone, cached, low, high, *gains)


def _total_ns(stretch: Mapping[str, Any]) -> float:
    both = (stretch["read"], stretch["write"])
    return float(sum(each["n"] * each["mean_ns"] for each in both if each["n"]))


def saved_ns(member: Member) -> float:
    """Return the saved latencies of a member, per second of its capture."""
    if member.advice is None:
        return 0.0
    pick = member.advice["recommended"]
    before, after = (_total_ns(pick["judged"][side]) for side in ("none", "cached"))
    return (before - after) / max(int(member.advice["inputs"]["trace"]["span_ns"]), 1)


def one_kind(use: Sequence[Chosen]) -> list[OneKind]:
    """Return the installable kinds and modes, if all members get the same one.

    Those that were replayed for all members come first, by their total wait.
    """
    names = dict.fromkeys(
        row["name"] for each, _ in use if each.advice
        for row in each.advice["rows"] if row["installable"]
    )  # fmt: skip
    result = []
    for name in names:
        chosen: list[Chosen] = []
        for each, _ in use:
            rows = [row for row in (each.advice or {})["rows"] if row["name"] == name]
            if rows:
                chosen.append((each, best_of(rows)))
        servers = servers_of(chosen)
        drives = sum(each.drives for each in servers)
        result.append(OneKind(name, len(chosen), waits_of(chosen), drives, cost_of(servers)))
    return sorted(result, key=lambda each: (-each.members, each.waits.cached_ns))


def best_of(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the machine of some that `advise` would choose: of those as good, the cheapest."""
    able = [each for each in rows if each["keeps_up"]] or rows
    values = [(each["cautious"] or 0.0) / effort_of(each["kind"]) for each in able]
    good = [each for each, value in zip(able, values) if value >= AS_GOOD * max(values)]
    return min(
        good, key=lambda each: (each["bought"]["cost"] or 0.0, each["size_bytes"], each["setting"])
    )
