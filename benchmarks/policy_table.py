"""Tables of the results of policies, and their evaluation: ranks and targets.

A hit of level `hits` is a page access, read or write, to a cached page; of level `timed` a read
served by the SSD, as the kinds of cache have different pages.  SSD MB are 10^6 bytes: of level
`hits` those of fills only (write hits are the same for all policies), of level `timed` all.

Disk time of level `hits` is an **estimate** (marked ~): requests with a miss x a positioned read
(average seek, half a revolution, transfer of the mean request) + fills of pages that the request
covers only in part x 0.7 of that (policy_fills.py), on the default disk, for reads and writes alike
as if written back.  Of level `timed` it is the busy time of all disks of the array.

Times are shares of the trace: t90 is the time to 90 % of the policy's own last hit ratio, `to best`
that to 90 % of the best baseline's (policy_soon.py).  If a hot spot moves at known times (moving,
all 200 moves; mariadb_moving_hot, three of its jumps), they are requests after a move until the hit
ratio in the new hot regions reaches 90 % of the policy's own settled level (`follow`) and of the
best baseline's (`to best`).  In fileserver_newhot files become cold one by one, at unknown times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from policy_bound import most_hits
from policy_runs import ANCHORS, HELD, POLICIES, SYSTEMS
from policy_soon import fastest, first_line, follows, follows_alone, warms

from hybridsim.caches.policies.write_budget import ACCESS, parse_write_budget
from hybridsim.scenario import Scenario

Row = dict[str, Any]
Cell = tuple[str, int, float]  # trace, page, share
BASELINES = {each.name for each in [*POLICIES, *SYSTEMS, *ANCHORS] if each.baseline}
FILL_READS = 0.7  # disk time of a fill over that of a missed read: policy_fills.py
LEARNED, FREE = "learned", "learned, price 0"
HIT_MARGIN, DISK_MARGIN, WARM_MARGIN = 0.005, 1.02, 1.1


def cell_of(row: Row) -> Cell:
    """Return the cell of a row."""
    return row["trace"], row["page_bytes"], row["share"]


def cells(rows: Iterable[Row], level: str) -> dict[Cell, dict[str, Row]]:
    """Return the rows of a level by cell and policy."""
    result: dict[Cell, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row["level"] == level:
            result[cell_of(row)][row["policy"]] = row
    return result


def hit_ratio(row: Row) -> float:
    """Return the share of hits: of all page accesses, with timing of the reads."""
    if row["level"] == "timed":
        return row["hit_ratio"] or 0.0
    return row["page_hits"] / row["page_accesses"]


def ssd_bytes(row: Row) -> int:
    """Return the bytes written to the SSD."""
    return row["ssd_bytes"] if row["level"] == "timed" else row["fills"] * row["page_bytes"]


def disk_ns(row: Row) -> float:
    """Return the disk time per request in ns: measured, or estimated."""
    if row["level"] == "timed":
        return row["disk_ns"] / row["requests"]
    drive = Scenario.default().backing.drive
    half_turn_ns, per_byte_ns = drive.rev_ns / 2, 1e9 / (sum(drive.rates) / 2)
    positioned_ns = drive.seek_points_ns[1] + half_turn_ns + row["mean_bytes"] * per_byte_ns
    fill_ns = FILL_READS * positioned_ns
    misses = row["requests"] - row["request_hits"]
    return (misses * positioned_ns + row["re_reads"] * fill_ns) / row["requests"]


def lines(rows: list[Row]) -> Iterator[str]:
    """Yield the table, one line per policy."""
    yield (
        f"{'trace':20}{'page':>6}{'size':>6} {'level':13}{'policy':19}{'hits':>7}{'SSD MB':>9}"
        f"{'disk ms':>9}{'mean ms':>9}{'p99 ms':>9}{'t90':>6}{'to best':>8}"
        f"{'follow':>8}{'to best':>8}"
    )
    levels = {level: cells(rows, level) for level in {row["level"] for row in rows}}
    for row in rows:
        if row["level"] == "bound":
            continue
        trace, page, share = cell_of(row)
        size = f"{page // 1024}K" if page >= 1024 else f"{page}"
        mark = "" if row["level"] == "timed" else "~"
        others = baselines(levels[row["level"]][cell_of(row)])
        yield (
            f"{trace:20}{size:>6}{share:>6.0%} {row['level']:13}{row['policy']:19}"
            f"{hit_ratio(row):>7.2%}{ssd_bytes(row) / 1e6:>9,.0f}"
            f"{mark + format(disk_ns(row) / 1e6, '.2f'):>9}"
            f"{_ms(row.get('mean_ns')):>9}{_ms(row.get('p99_ns')):>9}{_share(row['t90']):>6}"
            f"{_share(warms(row, others)):>8}{_after_move(row, others)}"
        ).rstrip()


def _after_move(row: Row, others: list[Row]) -> str:
    if "followed" not in row:
        return ""
    times = (follows_alone(row, others), follows(row, others))
    return "".join(f"{'–' if each is None else format(each, ','):>8}" for each in times)


def _ms(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1e6:.2f}"


def _share(of: float | None) -> str:
    return "–" if of is None else f"{of:.0%}"


def summary(rows: list[Row]) -> Iterator[str]:
    """Yield the ranks on the traces not tuned on, and the targets."""
    for level in ("hits", "timed"):
        held_out = cells((row for row in rows if not row["is_tuned"]), level)
        if held_out:
            what = "estimated" if level == "hits" else "measured"
            yield ""
            yield f"Level {level}, {len(held_out)} cells not tuned on, {what} disk time:"
            yield from ranking(held_out)
            yield from targets(held_out, cells(rows, "bound") if level == "hits" else {})
    for level in dict.fromkeys(row["level"] for row in rows if row["level"].startswith(HELD)):
        held_out = cells((row for row in rows if not row["is_tuned"]), level)
        if held_out:
            yield ""
            yield f"{level} of the accesses, {len(held_out)} cells not tuned on:"
            yield from ranking(held_out)
            yield from within(held_out, level.removeprefix(HELD))


def ranking(held_out: dict[Cell, dict[str, Row]]) -> Iterator[str]:
    """Yield for each policy its disk time relative to the best baseline's in each cell."""
    yield f"  {'policy':19}{'geometric mean':>15}{'worst cell':>12}{'best in':>9}"
    ratios = relative(held_out)
    for name in sorted(ratios, key=lambda name: mean(ratios[name])):
        own = ratios[name]
        best = sum(ratio <= 1 for ratio in own)
        yield f"  {name:19}{mean(own):>15.3f}{max(own):>12.3f}{best:>9}"


def relative(held_out: dict[Cell, dict[str, Row]]) -> dict[str, list[float]]:
    """Return disk times over the best baseline's, by policy."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for by_policy in held_out.values():
        best = min(disk_ns(row) for name, row in by_policy.items() if name in BASELINES)
        for name, row in by_policy.items():
            ratios[name].append(disk_ns(row) / best if best else 1.0)
    return ratios


def mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def targets(
    held_out: dict[Cell, dict[str, Row]], bounds: dict[Cell, dict[str, Row]]
) -> Iterator[str]:
    """Yield the targets of the learned policy, met or missed, over the cells with its results.

    Disk time and warm-up are those with the default price of a fill; other targets name the price.
    """
    held_out = {cell: rows for cell, rows in held_out.items() if LEARNED in rows}
    if not held_out:
        return
    ratios = relative(held_out)
    ours = [disk_ns(rows[LEARNED]) for rows in held_out.values()]
    bests = [min(disk_ns(row) for row in baselines(rows)) for rows in held_out.values()]
    near = [our <= DISK_MARGIN * best for our, best in zip(ours, bests)]
    yield target_line("disk time at most the best baseline's + 2 %", near)
    whole = {name for name in ratios if len(ratios[name]) == len(held_out)} & BASELINES
    single = min(whole, key=lambda name: mean(ratios[name]))
    theirs = [disk_ns(rows[single]) for rows in held_out.values()]
    gain = mean([our / their for our, their in zip(ours, theirs)]) - 1
    verdict = "met" if gain <= -0.1 else "missed"
    yield f"  {verdict:7} disk time 10 % below the best single baseline ({single}): {gain:+.1%}"
    free = [
        hit_ratio(rows[FREE]) >= max(map(hit_ratio, baselines(rows))) - HIT_MARGIN
        for rows in held_out.values()
        if FREE in rows
    ]
    yield target_line("hits within half a point of the best baseline's, writes free", free)
    dominated = [
        all(
            frontier(rows, ssd_bytes(row)) >= hit_ratio(row) - HIT_MARGIN for row in baselines(rows)
        )
        for rows in held_out.values()
    ]
    yield target_line("no baseline half a point above the learned frontier", dominated)
    yield from at_writes_of_larc(held_out, bounds)
    warm = [_warms(rows) for rows in held_out.values()]
    yield target_line(
        "t90 at most the fastest baseline's + 10 %, where both are known",
        [w for w in warm if w is not None],
    )
    yield from how_soon(held_out)


def how_soon(held_out: dict[Cell, dict[str, Row]]) -> Iterator[str]:
    """Yield warm-up and adaptation times of the learned policy, and the fastest policy."""
    hits, moving = "90 % of the best baseline's last hits", "a moving hot spot followed, to 90 % of"
    for time, margin, what in (
        (warms, WARM_MARGIN, f"{hits} no later than the first + 10 %"),
        (follows_alone, 1.0, f"{moving} its own hits, as soon as the first"),
        (follows, 1.0, f"{moving} the best baseline's, as soon as the first"),
    ):
        met, ratios, first = fastest(list(held_out.values()), LEARNED, baselines, time, margin)
        if met:
            late = f"; {mean(ratios):.2f} times the first's where it is" if ratios else ""
            yield target_line(what, met) + late
            yield from first_line(first, len(met))


def within(held_out: dict[Cell, dict[str, Row]], budget: str) -> Iterator[str]:
    """Yield whether a write budget is kept, and the best policy within it."""
    rows = [row for by_policy in held_out.values() for row in by_policy.values()]
    yield target_line("all policies keep the budget", [is_held(row, budget) for row in rows])
    ours = relative({cell: rows for cell, rows in held_out.items() if LEARNED in rows})
    for margin, what in ((1.0, "the lowest of all"), (DISK_MARGIN, "at most the best + 2 %")):
        near = [ratio <= margin for ratio in ours.get(LEARNED, [])]
        yield target_line(f"disk time {what} within the budget", near)


def is_held(row: Row, budget: str) -> bool:
    """Return whether the fills are within the budget, its burst, and a first fill of the cache."""
    limit, pages = parse_write_budget(budget, row["page_bytes"]), row["pages"]
    allowed = row["page_accesses"] * ACCESS // limit.interval(pages)
    return row["fills"] <= allowed + limit.burst(pages) + pages


def target_line(what: str, met: list[bool]) -> str:
    """Return a target with the number of cells that meet it."""
    return f"  {'met' if all(met) else 'missed':7} {what}: in {sum(met)} of {len(met)} cells"


def learned(rows: dict[str, Row]) -> list[Row]:
    """Return the rows of the learned policy with all parameters."""
    return [row for name, row in rows.items() if name.startswith("learned")]


def baselines(rows: dict[str, Row]) -> list[Row]:
    """Return the rows of the policies that it is compared with."""
    return [row for name, row in rows.items() if name in BASELINES]


def frontier(rows: dict[str, Row], written: int) -> float:
    """Return the hit ratio of the learned policy at `written` bytes, interpolated between prices.

    0 if even the highest price writes more.
    """
    points = sorted((ssd_bytes(row), hit_ratio(row)) for row in learned(rows))
    writes, hits = zip(*points)
    best = np.maximum.accumulate(hits)  # a larger write limit cannot reduce the hits
    return float(np.interp(written, writes, best, left=0.0))


def at_writes_of_larc(
    held_out: dict[Cell, dict[str, Row]], bounds: dict[Cell, dict[str, Row]]
) -> Iterator[str]:
    """Yield the targets on the hits of the learned policy with no more writes than LARC."""
    result = {cell: rows for cell, rows in held_out.items() if {"LARC", "s3-fifo"} <= rows.keys()}
    larc = np.array([hit_ratio(rows["LARC"]) for rows in result.values()])
    s3_fifo = np.array([hit_ratio(rows["s3-fifo"]) for rows in result.values()])
    ours = np.array([frontier(rows, ssd_bytes(rows["LARC"])) for rows in result.values()])
    if not result:
        return
    yield target_line("at LARC's writes at least LARC's hits", (ours >= larc).tolist())
    # If S3-FIFO has fewer hits than LARC, the distance is 0, and LARC's hits are sufficient.
    distance = float(np.maximum(s3_fifo - larc, 0).mean())
    gain = float((ours - larc).mean())
    verdict = "met" if gain >= distance / 2 else "missed"
    above = int((ours == 0).sum())
    more = f"; 0 hits counted in {above} cells where it writes more than LARC" if above else ""
    yield (
        f"  {verdict:7} half of LARC's mean distance to S3-FIFO's hits closed at LARC's writes: "
        f"{100 * gain:+.1f} of {100 * distance:.1f} points{more}"
    )
    limits = [
        most_hits(dict(bounds[cell]["bound"]["bounds"]), rows["LARC"]["fills"])
        / rows["LARC"]["page_accesses"]
        for cell, rows in result.items()
        if cell in bounds
    ]
    if limits:
        yield (
            f"  mean hits: LARC {larc.mean():.1%}, S3-FIFO with its own writes "
            f"{s3_fifo.mean():.1%}; no policy with LARC's writes is above {np.mean(limits):.1%}"
        )


def _warms(rows: dict[str, Row]) -> bool | None:
    ours = rows[LEARNED]["t90"]
    theirs = [row["t90"] for row in baselines(rows) if row["t90"] is not None]
    return ours <= WARM_MARGIN * min(theirs) if ours is not None and theirs else None


def compact(rows: list[Row]) -> Iterator[str]:
    """Yield tables in Markdown: hits and fills of some policies, and disk times with timing."""
    names = ("lru", "LARC", "LARC, s3-fifo", LEARNED, FREE, "belady")
    heads = " | ".join(names)
    yield f"| trace | page | size | best baseline | {heads} | bound at LARC's fills |"
    yield "|---" * (5 + len(names)) + "|"
    bounds = cells(rows, "bound")
    for cell, by_policy in cells(rows, "hits").items():
        trace, page, share = cell
        size = f"{page // 1024} KiB" if page >= 1024 else f"{page} B"
        best = max(baselines(by_policy), key=hit_ratio)
        parts = [f"{_pair(best)} {best['policy']}"]
        parts += [_pair(by_policy[name]) if name in by_policy else "" for name in names]
        limit = ""
        if cell in bounds and "LARC" in by_policy:
            larc = by_policy["LARC"]
            highest = most_hits(dict(bounds[cell]["bound"]["bounds"]), larc["fills"])
            limit = f"{100 * highest / larc['page_accesses']:.1f}"
        star = " (tuned on)" if best["is_tuned"] else ""
        yield f"| {trace}{star} | {size} | {share:.0%} | " + " | ".join([*parts, limit]) + " |"
    yield from timed_table(cells(rows, "timed"))


def _pair(row: Row) -> str:
    return f"{100 * hit_ratio(row):.1f} / {100 * row['fills'] / row['page_accesses']:.1f}"


def timed_table(result: dict[Cell, dict[str, Row]]) -> Iterator[str]:
    """Yield disk time per request and GB written to the SSD, by policy and cell."""
    if not result:
        return
    names = dict.fromkeys(name for rows in result.values() for name in rows)
    yield ""
    yield "| policy | " + " | ".join(f"{trace} {share:.0%}" for trace, _, share in result) + " |"
    yield "|---" * (1 + len(result)) + "|"
    for name in names:
        each = [rows.get(name) for rows in result.values()]
        parts = [
            "" if row is None else f"{disk_ns(row) / 1e6:.2f} / {ssd_bytes(row) / 1e9:.2f}"
            for row in each
        ]
        yield f"| {name} | " + " | ".join(parts) + " |"
