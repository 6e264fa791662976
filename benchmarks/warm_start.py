"""Warm start of a page cache: from its own pages, or from a ranked list of an earlier trace.

    HYBRIDSIM_DATA=... python benchmarks/warm_start.py [--size 10%] [--way WAY ...] [--json FILE]
    HYBRIDSIM_DATA=... python benchmarks/warm_start.py --ranking

Each trace is split: the first half is the past, the second half is replayed.  The machine is the
default one (RAID-5 of four disks, write-through, the learned policy, pages of 64 KiB).
    cold         the cache starts empty
    kept         the SSD still has the pages of the end of the past
    state        these pages, loaded from the disks
    ... knowing  the same, and the state of the learned policy is restored
    never ended  the machine of the past continues
    ranked       the list that `--warm-start TRACE` computes from the past
    recent       the most recently read pages
    frequent     the most frequently read pages
    ... hot 1st  the same list, loaded in four sweeps, the best quarter first
Printed for each: pages kept or loaded and the share of them used, the end of loading, the share of
reads served by the SSD in the first 10 s and 60 s, the times when the hit ratio (bins as in
reports, their running median) first reached 50 % and 90 % of the final level of the cold cache,
disk time per request, bytes written to the SSD.

With --ranking, without devices: the share of the reads in the first tenth of the second half that a
list computed from the past would serve, by the half-life of the ranking and the size of the list.
Tuned on (half-lives of the ranking, chunk, gap, rate): rocksdb, mariadb, hot spots with seed 1.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from policy_traces import NUMBERED, Rows, Traced, all_traces

from hybridsim import Scenario
from hybridsim.answers.outcome import Outcome
from hybridsim.answers.warmup import centred_median
from hybridsim.caches.page.fills import COLD_START, WarmStart
from hybridsim.caches.warm_start.ranking import HALF_LIVES, Ranking, ranked
from hybridsim.caches.warm_start.saved_cache import SavedCache
from hybridsim.requests.pages import accesses
from hybridsim.scenario import building
from hybridsim.studies.batches import batches
from hybridsim.studies.runs import Pump
from hybridsim.traces.summary import summarize

SECOND = 10**9
SWEEPS = 4
NEVER_ENDED = "never ended"
UNKNOWN = dict.fromkeys(("there", "used", "loaded_s", "reads", "t50%", "t90%"))
TIMED_REQUESTS = 200_000


def halves(trace: Traced) -> tuple[Rows, Rows]:
    """Return both halves of a trace; both begin at time 0."""
    rows = trace.requests(timed=True).rows.between(0, TIMED_REQUESTS)
    half = rows.rows // 2
    first, second = rows.between(0, half), rows.between(half, rows.rows)
    begin_ns = second.arrival_ns[0]
    complete_ns = np.where(
        second.complete_ns < 0, second.complete_ns, second.complete_ns - begin_ns
    )
    second = second._replace(arrival_ns=second.arrival_ns - begin_ns, complete_ns=complete_ns)
    return Rows(trace.name, first), Rows(trace.name, second)


def reads_of(rows: Rows, page_bytes: int) -> np.ndarray:
    """Return the pages that reads touch, in order."""
    return np.concatenate(
        [
            part.numbers[np.repeat(part.write == 0, np.diff(part.ends, prepend=0))]
            for part in accesses(rows, page_bytes)
        ]
    )


def counted(past: Rows, page_bytes: int, pages: int, recent: bool) -> np.ndarray:
    """Return the most recently or most frequently read pages, the best first."""
    latest_first = reads_of(past, page_bytes)[::-1]
    numbers, first, count = np.unique(latest_first, return_index=True, return_counts=True)
    order = np.argsort(first if recent else -count, kind="stable")
    return numbers[order[:pages]]


def simulate(site: Scenario, mode: str, volume: int, pages: int, rows: Rows, warm: WarmStart):
    """Return the outcome of one machine, and its cache."""
    span = int(rows.rows.arrival_ns[-1])
    pump = Pump(building.machine(site, mode, volume, pages, warm), max(span // 256, 1))
    for batch in batches(rows, 1.0, mode == "think"):
        pump.take(batch)
    return outcome_of(pump, mode), pump.run.machine.cache


def outcome_of(pump: Pump, mode: str) -> Outcome:
    """Return the outcome of a machine's run."""
    return Outcome(pump.collector, pump.counters, mode == "open")


def never_ended(site: Scenario, mode: str, volume: int, pages: int, rows: Rows) -> dict[str, Any]:
    """Return the figures of the second half of a trace on a machine that served the first."""
    pump = Pump(building.machine(site, mode, volume, pages), SECOND // 4)
    begin_ns = 0
    for batch in batches(rows, 1.0, mode == "think"):
        pump.take(batch)
        begin_ns = begin_ns or pump.run.now_ns  # the end of the first half
    outcome = outcome_of(pump, mode)
    later = outcome.phase(begin_ns, outcome.end_ns)
    return UNKNOWN | {
        "hit_10s": outcome.phase(begin_ns, begin_ns + 10 * SECOND).figures.hit_ratio,
        "hit_60s": outcome.phase(begin_ns, begin_ns + 60 * SECOND).figures.hit_ratio,
        "hit": later.figures.hit_ratio,
        "disk_ms": grown(outcome, "slow_busy_ns", begin_ns) / later.figures.requests / 1e6,
        "ssd_gb": grown(outcome, "fast_bytes_written", begin_ns) / 1e9,
    }


def grown(outcome: Outcome, counter: str, begin_ns: int = 0) -> int:
    """Return the growth of a counter from a time to the end."""
    return outcome.counters.between(counter, begin_ns, outcome.end_ns) or 0


def figures(outcome: Outcome, level: float | None) -> dict[str, Any]:
    """Return the figures of a run; t50% and t90% are relative to `level`, or its own level."""
    counters = outcome.whole.counters
    there = counters.get("pages_kept", 0) + counters.get("pages_preloaded", 0)
    loaded = np.asarray(outcome.counters["pages_preloaded"]) if there else np.zeros(1)
    times = outcome.counters["time_ns"]
    series = outcome.series()
    hit = np.array([np.nan if each is None else each for each in series.hit])
    smooth = centred_median(hit[~np.isnan(hit)])
    starts = np.array(series.start_ns)[~np.isnan(hit)]
    if level is None:
        level = float(np.median(smooth[-len(smooth) // 5 :]))
    result = {"level": level}
    for share in (0.5, 0.9):
        late = np.flatnonzero(smooth >= share * level)
        result[f"t{share:.0%}"] = float(starts[late[0]] / SECOND) if len(late) else None
    return result | {
        "there": there,
        "used": counters.get("warm_pages_used", 0) / there if there else None,
        "loaded_s": float(times[np.searchsorted(loaded, loaded[-1])]) / SECOND if loaded[-1] else 0,
        "reads": counters.get("preload_reads", 0),
        "hit_10s": outcome.phase(0, 10 * SECOND).figures.hit_ratio,
        "hit_60s": outcome.phase(0, 60 * SECOND).figures.hit_ratio,
        "hit": outcome.whole.figures.hit_ratio,
        "disk_ms": grown(outcome, "slow_busy_ns") / outcome.whole.figures.requests / 1e6,
        "ssd_gb": grown(outcome, "fast_bytes_written") / 1e9,
    }


def swept(best: np.ndarray, sweeps: int = 1) -> WarmStart:
    """Return a warm start that loads a ranked list in several sweeps over the volume."""
    return WarmStart(preload=np.concatenate([np.sort(x) for x in np.array_split(best, sweeps)]))


def study(trace: Traced, size: str, chosen: list[str]) -> dict[str, dict[str, Any]]:
    """Return the figures of the chosen ways to start."""
    past, present = halves(trace)
    site = Scenario.default().with_options(cache_size=size)
    page_bytes = site.cache.page_bytes
    whole = summarize(iter([past.rows, present.rows]))
    pages = site.cache.pages(whole.footprint.bytes)
    how = (site, trace.mode, whole.max_end_bytes, pages)
    _, cache = simulate(*how, past, COLD_START)
    state = SavedCache.of(cache, whole.max_end_bytes)
    best = ranked(past, page_bytes, pages, site.cache.sequential_cutoff_bytes)
    kept = WarmStart(kept=state.pages[::-1].copy(), valid=state.valid[::-1].copy())
    ways = {
        "cold": COLD_START,
        "kept": kept,
        "kept, knowing": kept._replace(memory=state.memory),
        "state": swept(state.pages),
        "state, knowing": swept(state.pages)._replace(memory=state.memory),
        "ranked": swept(best),
        "ranked, hot 1st": swept(best, SWEEPS),
        "recent": swept(counted(past, page_bytes, pages, True)),
        "frequent": swept(counted(past, page_bytes, pages, False)),
    }
    result: dict[str, dict[str, Any]] = {}
    for way, warm in ways.items():
        if way in (chosen or ways) or not result:
            level = result["cold"]["level"] if result else None
            result[way] = figures(simulate(*how, present, warm)[0], level)
    if not chosen or NEVER_ENDED in chosen:
        rows = trace.requests(timed=True).rows.between(0, TIMED_REQUESTS)
        whole = Rows(trace.name, rows, past.rows.rows)
        result[NEVER_ENDED] = never_ended(*how, whole)
    return result


def shown(value: float | None, form: str = "g") -> str:
    """Return a figure as text, or a dash if it is unknown."""
    return "–" if value is None else format(round(value, 2) if form == "g" else value, form)


def table(result: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Print the figures in Markdown, and their mean differences to `cold`."""
    names = "trace|way|pages / used|loaded by s|hits in 10 s|in 60 s|t50 s|t90 s"
    heads = [*names.split("|"), "disk ms a request", "GB to the SSD"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for trace, ways in result.items():
        for way, row in ways.items():
            there = f"{row['there']} / {shown(row['used'], '.0%')}" if row["there"] else "–"
            cells = [trace, way, there]
            cells += [shown(row["loaded_s"] if row["reads"] else None)]
            cells += [shown(row["hit_10s"], ".0%"), shown(row["hit_60s"], ".0%")]
            cells += [shown(row["t50%"]), shown(row["t90%"])]
            cells += [shown(row["disk_ms"], ".2f"), shown(row["ssd_gb"], ".2f")]
            print(f"| {' | '.join(cells)} |")
    print("\nAgainst `cold`, means over the traces (points of hits; geometric for the others):")
    for way in next(iter(result.values())):
        pairs = [(ways[way], ways["cold"]) for ways in result.values()]
        points = [
            100 * np.mean([row[name] - cold[name] for row, cold in pairs])
            for name in ("hit_10s", "hit_60s")
        ]
        ratios = [
            np.exp(np.mean([np.log(row[name] / cold[name]) for row, cold in pairs])) - 1
            for name in ("disk_ms", "ssd_gb")
        ]
        print(f"{way}: {points[0]:+.1f} in 10 s, {points[1]:+.1f} in 60 s, "
              f"disk time {ratios[0]:+.1%}, SSD writes {ratios[1]:+.1%}")  # fmt: skip


def foretold(trace: Traced, share: float) -> dict[str, float]:
    """Return the share of the reads after the past that the list of each half-life serves."""
    rows = trace.requests().rows
    half = rows.rows // 2
    past, soon = rows.between(0, half), rows.between(half, half + half // 10)
    page_bytes = trace.pages[0] if len(trace.pages) == 1 else 65_536
    numbers = reads_of(Rows("", rows), page_bytes)
    pages = max(int(share * len(np.unique(numbers))), 1)
    ranking = Ranking.of(Rows("", past), page_bytes, pages)
    wanted = reads_of(Rows("", soon), page_bytes)
    result = {f"{each}": float(np.isin(wanted, ranking.best(each)).mean()) for each in HALF_LIVES}
    return result | {"chosen": result[str(ranking.half_life)], "best": max(result.values())}


def rankings() -> None:
    """Print the results of each half-life, and of the one that the ranking chooses."""
    everything = []
    for trace in all_traces():
        for share in (0.01, 0.05, 0.1, 0.2):
            row = foretold(trace, share)
            everything.append(row)
            if len(everything) == 1:
                print("| trace | size |", " | ".join(row), "|\n" + "|---" * (len(row) + 2) + "|")
            cells = " | ".join(f"{100 * value:.1f}" for value in row.values())
            tuned = " (tuned on)" if trace.is_tuned else ""
            print(f"| {trace.name}{tuned} | {share:.0%} | {cells} |", flush=True)
    means = (np.mean([row[name] for row in everything]) for name in everything[0])
    print("| mean | |", " | ".join(f"{100 * mean:.1f}" for mean in means), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="10%")
    parser.add_argument("--trace", default="", help="only those with this in their name")
    parser.add_argument("--way", action="append", default=[], help="only these, and cold")
    parser.add_argument("--json")
    parser.add_argument("--ranking", action="store_true")
    options = parser.parse_args()
    if options.ranking:
        rankings()
        return
    result = {
        trace.name: study(trace, options.size, options.way)
        for trace in all_traces(TIMED_REQUESTS)
        if trace.pages != NUMBERED
        and options.trace in trace.name
        and not trace.name.startswith(("scans", "bursts"))
    }
    table(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump(result, stream, indent=1)


if __name__ == "__main__":
    main()
