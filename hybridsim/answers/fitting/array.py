"""Fit an array of disks: its layout, and the keys of a scenario that describe it.

The members of a striped array serve requests independently.  Under the true layout each service
time is plausible for a disk, and so is the order of completions.  Under any other layout services
overlap, or contain pauses that the model cannot explain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hybridsim.answers.fitting import disks
from hybridsim.answers.fitting.answer import DRIVE, NAME, Estimate, Fit, assumed
from hybridsim.answers.fitting.disks import MINUTE_MS, DiskFit
from hybridsim.answers.fitting.observed import Observed
from hybridsim.answers.fitting.service import CHOOSES, Layout, order_likelihood, pieces
from hybridsim.foundation.errors import FitError
from hybridsim.foundation.units import parse_rate, parse_time
from hybridsim.storage import catalog

KIB = 1024
MEMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24)
CHUNKS = tuple(KIB << power for power in range(2, 12))  # 4 KiB to 2 MiB
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 254)
SINGLE = Layout(1, CHUNKS[-1])
SEARCHED = 3000  # requests that all layouts are compared on
SEMIFINALISTS, FINALISTS = 16, 4
QUICK, THOROUGH = 4, 25  # iterations of the search for parameters
CLEARLY = 10.0  # minimum logarithm of a ratio of likelihoods that is clear

Progress = Callable[[str, int, int], None]  # called with (step, done, total)
MS = 1e6
# How many times as wide an interval must be for the differences of real arms and platters from the
# model as for the scatter of the requests alone: chosen on 24 simulated disks of the catalog,
# judged on others (benchmarks/coverage.py fit).
WIDER = {
    "rpm": 1.0, "seek_track_to_track": 1.0, "seek_average": 1.3, "seek_full": 1.3,
    "write_settle": 1.0, "overhead": 1.0,
}  # fmt: skip
# What more requests do not tell, as shares of the value below and above it.  Random requests hardly
# ever make the shortest seeks, so these follow from the curve of the others: fitted to the tables
# of the 13 measured arms in the catalog themselves, it is 0.8 to 2.2 times the shortest seek, and
# 0.98 to 1.04 times the longest.
ARM_OFF = {
    "seek_track_to_track": (0.54, 0.3),
    "seek_average": (0.0, 0.0),
    "seek_full": (0.035, 0.02),
}
# The ends of such a range hold all disks, not 95 in 100 of them: of values evenly spread over it,
# so much of it at either end is beyond the interval.
BEYOND = 0.025
# Where completions are exact, what tells two kinds of requests apart (reads and writes, idle and
# busy, short and long ones) are the ends of the rotation, which is uniform.  Between the last of n
# requests and the end of a turn at either side, each an n-th part of it on average, the likelihood
# is level, and the estimate may be anywhere: 95 % of the errors are below so many n-th parts, the
# solution of 2 integral over d from 0 to 1 of (1 - d) (1 + x / d) exp(-x / d) = 0.05.  The
# curvature of the likelihood does not show it.
END = 2.15
# Errors of the rate that more requests do not reduce: time by which the model's seeks and ends of
# tracks differ between short and long requests, and a share.  Chosen on half of the catalog, when
# it was 0.15 ms, as END was not allowed for; on stripes with seeds from 60000 it is enough.
RATE_OFF_MS, RATE_OFF = 0.075, 0.03
# Longest overhead in ms and lowest rate in bytes/s of the disks of the catalog, by age.  A disk is
# as old as the first row of which it has fewer bytes and no shorter full stroke (a later disk needs
# less for so few bytes); where it shows, its rate decides.  One later disk has 1.5 ms.
AGES = (
    (2.5e9, 12.0, 3.7, 2.3e6),  # to 1994
    (1e10, 8.0, 0.7, 8.6e6),  # to 2000
    (math.inf, 0.0, 0.7, 6e7),
)
OVERHEADS_MS = (0.0, 0.7)
OLD_RATE, OLD_OVERHEAD_MS = 6e6, 3.7
# what an entry of the catalog must say to lend its values
DATASHEET = {"seek_track_to_track", "write_settle", "overhead", "rate_outer", "rate_inner"}
MEAN_ROOT, MEAN_SHARE, MEAN_BEND = 8 / 15, 1 / 3, 1 / 6  # means of sqrt(x), x and x (1 - x)


@dataclass(frozen=True)
class Arrangement:
    """The most likely layout, and its margin over the second."""

    layout: Layout
    depth: int  # 0: no limit detected
    margin: float  # difference of the log-likelihoods of the best layout and the second
    second: Layout
    deepest: int  # maximum number of outstanding requests

    @property
    def is_clear(self) -> bool:
        """Whether all other layouts are clearly less likely."""
        return self.margin >= CLEARLY

    @property
    def is_halved(self) -> bool:
        """Whether each half of the addresses clearly has an arm of its own."""
        return self.is_clear and self.layout.chunk_bytes > CHUNKS[-1]


def arrangement(observed: Observed, progress: Progress) -> Arrangement:
    """Return the most likely layout and depth."""
    some = observed.of(slice(0, SEARCHED))
    deepest = int(observed.outstanding().max())
    if deepest <= 1:  # one disk is never left idle by another: nothing tells several from one
        return Arrangement(SINGLE, 0, 0.0, SINGLE, deepest)

    def ranked(step: str, of: Observed, depth: int, turns: int) -> dict[Layout, float]:
        """Return the scores of the layouts that are left, the best first."""
        scores = {}
        for number, layout in enumerate(best):
            progress(step, number, len(best))
            scores[layout] = _score(of, layout, depth, turns)
        return dict(sorted(scores.items(), key=lambda row: -row[1]))

    best = list(_layouts(observed.end_bytes))
    for turns, kept in ((0, SEMIFINALISTS), (QUICK, FINALISTS)):
        best = list(ranked("comparing layouts", some, 0, turns))[:kept]
    depth = _depth(some, best[0], deepest, progress)
    final = ranked("comparing the most likely layouts", observed, depth, THOROUGH)
    first, second, *_ = final
    return Arrangement(first, depth, final[first] - final[second], second, deepest)


def _layouts(end_bytes: int) -> Iterator[Layout]:
    """Yield one disk, halves with an arm each if these are larger than chunks, and stripes."""
    yield SINGLE
    half = -(-end_bytes // (2 * KIB)) * KIB
    if half > CHUNKS[-1]:
        yield Layout(2, half)
    for members in MEMBERS[1:]:
        for chunk in CHUNKS:
            yield Layout(members, chunk)


def _score(observed: Observed, layout: Layout, depth: int, turns: int) -> float:
    seen = pieces(observed, observed.entered_ns(depth), layout)
    if not turns:
        return disks.guessed(seen) + order_likelihood(seen)
    return disks.quick_fit(seen, turns).log_likelihood + order_likelihood(seen)


def _depth(observed: Observed, layout: Layout, deepest: int, progress: Progress) -> int:
    """Return the depth that explains the waiting times best, 0 if none clearly does."""
    scores = {0: _score(observed, layout, 0, THOROUGH)}
    coarse = [depth for depth in DEPTHS if depth < deepest]
    for number, depth in enumerate(coarse):
        progress("searching for a limit of the queue", number, len(coarse))
        scores[depth] = _score(observed, layout, depth, THOROUGH)
    best = max(scores, key=lambda depth: scores[depth])
    step = best // 4
    while best and step:
        for depth in (best - step, best + step):
            if 0 < depth < deepest and depth not in scores:
                scores[depth] = _score(observed, layout, depth, THOROUGH)
        best = max(scores, key=lambda depth: scores[depth])
        step //= 2
    return best if scores[best] > scores[0] + CLEARLY else 0


def answer(name: str, observed: Observed, progress: Progress, notes: list[str]) -> Fit:
    """Fit an array of disks; raise FitError if the capture is not one of disks as modelled."""
    if observed.rows < disks.FEWEST:
        raise FitError(
            f"{name}: {observed.rows} requests are too few to fit disks; at least {disks.FEWEST} "
            "are needed"
        )
    result = arrangement(observed, progress)
    if result.is_halved:
        raise FitError(
            f"{name}: each half of the addresses is served by an arm of its own: a disk with two "
            "actuators, or two disks one after the other. Capture one half alone, and describe the "
            'whole as two such members of kind = "linear"'
        )
    progress("fitting the disks", 0, 1)
    seen = pieces(observed, observed.entered_ns(result.depth), result.layout)
    fitted = disks.fit(seen, usual_disk)
    _check(name, fitted)
    if fitted.chooses is not None and fitted.chooses > CHOOSES:
        notes.append(
            "The disks reorder their queue. Seek and rotation are fitted to the "
            f"{fitted.used:,} requests served without a choice; the number of commands that the "
            "disks choose from is assumed."
        )
    estimates = [*_backing(result, fitted), *_drive(observed, result, fitted)]
    return Fit(name, _in_words(result, fitted), estimates, fitted.used, notes)


def usual_disk(rotation_ms: float) -> dict[str, float]:
    """Return the values in ms of the catalog's disk with the nearest rotational speed."""
    rpm = MINUTE_MS / rotation_ms
    disks = (catalog.load(name).rows for name in catalog.names("hdd"))
    by_datasheet = (rows for rows in disks if rows.keys() >= DATASHEET)
    rows = min(by_datasheet, key=lambda rows: abs(int(rows["rpm"].scalar) - rpm))

    def time_ms(key: str) -> float:
        return parse_time(rows[key].scalar) / MS

    rates = [parse_rate(str(rows[key].value)) for key in ("rate_outer", "rate_inner")]
    return {
        "overhead_ms": time_ms("overhead"),
        "track_ms": time_ms("seek_track_to_track"),
        "settle_ms": time_ms("write_settle"),
        "per_mib_ms": 1e3 * 2**20 / (sum(rates) / 2),
    }


def _check(name: str, fitted: DiskFit) -> None:
    if fitted.used < disks.FEWEST and (fitted.chooses or 0.0) <= CHOOSES:
        raise FitError(
            f"{name}: only {fitted.used} requests are on one disk and follow a request on that "
            f"disk alone; {disks.FEWEST} are needed to fit seek and rotation"
        )
    if fitted.used < disks.FEWEST:
        raise FitError(
            f"{name}: the disks nearly always chose among several requests; only {fitted.used} "
            f"were served without a choice, and {disks.FEWEST} are needed to fit seek and "
            "rotation. Capture at a time of lower load"
        )
    if why_not := fitted.why_not:
        raise FitError(
            f"{name}: the times are not those of disks as modelled: {why_not}. Possible causes are "
            "a write cache, a parity array, mirrors, or a cache above the disks; capture random "
            "reads instead"
        )


def _in_words(result: Arrangement, fitted: DiskFit) -> str:
    members, chunk = result.layout
    rpm = f"{MINUTE_MS / fitted.service.rotation_ms:,.0f} rpm"
    disk = f"One disk of {rpm}" if members == 1 else f"{members} disks of {rpm}"
    stripe = "" if members == 1 else f", striped in chunks of {chunk // 1024} KiB"
    path = f", {result.depth} requests at a time" if result.depth else ""
    return f"{disk}{stripe}{path}."


def _backing(result: Arrangement, fitted: DiskFit) -> list[Estimate]:
    members, chunk = result.layout
    determined, how = result.is_clear, _how_clear(result)
    kind = "single" if members == 1 else "stripe"
    order, passed = "ncq", "there were never two requests at one disk"
    if fitted.chooses is not None:
        order = "ncq" if fitted.chooses > CHOOSES else "fcfs"
        passed = f"in {fitted.chooses:.0%} of the services an older request had to wait"
    waited = f"up to {result.deepest} requests were outstanding, no more than this in service"
    rows: list[tuple[str, str | int, str, bool, str]] = [
        ("kind", kind, "", determined, "mirrors and parity are not detected"),
        ("members", members, "", determined, how),
        *[("chunk", chunk, "bytes", determined, how)] * (members > 1),
        ("scheduler", order, "", fitted.chooses is not None, passed),
        *[("queue_depth", result.depth, "", True, waited)] * (result.depth > 0),
    ]
    return [
        Estimate("backing", key, value, unit, determined=is_known, how=why)
        for key, value, unit, is_known, why in rows
    ]


def _how_clear(result: Arrangement) -> str:
    if result.deepest <= 1:
        return "one request at a time: one disk, or as one; several at a time would tell"
    times = result.margin / math.log(10)
    if times > 20:
        return "all other layouts are far less likely"
    if result.margin >= CLEARLY:
        return f"10^{times:.0f} times more likely than {result.second}"
    return f"not clear: {result.second} is nearly as likely"


def _drive(observed: Observed, result: Arrangement, fitted: DiskFit) -> list[Estimate]:
    one = fitted.service
    member_bytes = -(-observed.end_bytes // result.layout.members)
    member_bytes = max(-(-member_bytes // 2**20), 1) * 2**20
    reach = one.full_ms - one.track_ms
    low, high = fitted.likeliest.low, fitted.likeliest.high
    curve = (1 - one.linear) * MEAN_ROOT + one.linear * MEAN_SHARE + one.bend * MEAN_BEND
    linear = f"seek curve: {1 - one.linear:.2f} sqrt(x) + {one.linear:.2f} x of the stroke x"
    span = "the part of the disk that the volume touches"

    least, most = _unsure_ms(fitted, member_bytes)

    def arm(share: float, figure: str) -> tuple[float, float]:
        """Interval of a seek: that of the reach; the shortest seek is uncertain against it."""
        value = one.track_ms + share * reach
        shortest, longest = (one.track_ms + share * each["reach_ms"] for each in (low, high))
        ends = _off(figure, value, widened(value, shortest, longest, WIDER[figure]))
        less, more = apart(value, ends, (least, most))
        return max(less, 0.0) * MS, more * MS

    mean_ns, mean_ends = (one.track_ms + reach * curve) * MS, arm(curve, "seek_average")
    full_ends = arm(1.0, "seek_full")
    return [
        Estimate(DRIVE, "kind", "hdd"),
        Estimate(DRIVE, "name", NAME),
        _rpm(fitted),
        assumed("capacity", member_bytes, "bytes", span),
        _time(fitted, "seek_track_to_track", "track_ms", unsure_ms=(least, most)),
        Estimate(DRIVE, "seek_average", mean_ns, "ns", *mean_ends, how=linear),
        Estimate(DRIVE, "seek_full", one.full_ms * MS, "ns", *full_ends, how="over that part"),
        _time(fitted, "write_settle", "settle_ms", "what a write takes more than a read"),
        *_rates(fitted),
        _time(fitted, "overhead", "overhead_ms", "of a request that finds its disk idle"),
    ]


def _unsure_ms(fitted: DiskFit, member_bytes: int) -> tuple[float, float]:
    """Return by how much seeks may be shorter (below 0) and longer, for what is assumed.

    An assumed overhead or transfer is taken from the seeks, where it is part of the service times:
    they are as uncertain as it is.
    """
    one = fitted.service
    longest_ms, slowest = next(
        (overhead_ms, rate)
        for most_bytes, stroke_ms, overhead_ms, rate in AGES
        if member_bytes < most_bytes and one.full_ms >= stroke_ms
    )
    least = most = 0.0
    if "per_mib_ms" in fitted.undetermined:
        size = fitted.sizes[0]
        least -= size / slowest * 1e3 - size / 2**20 * one.per_mib_ms
    elif one.per_mib_ms > 1e3 * 2**20 / OLD_RATE:
        longest_ms = OLD_OVERHEAD_MS
    else:
        longest_ms = OVERHEADS_MS[1]
    if "overhead_ms" in fitted.undetermined:
        least -= (longest_ms - one.overhead_ms) * fitted.idle_share
        most += (one.overhead_ms - OVERHEADS_MS[0]) * fitted.idle_share
    below, above = within(max(-least, 0.0), most)
    return -below, above


def _off(figure: str, value: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Return an interval with what more requests do not tell."""
    below, above = within(*ARM_OFF[figure])
    less, more = apart(value, ends, (below * value, above * value))
    return max(less, 0.0), more


def within(below: float, above: float) -> tuple[float, float]:
    """Return how far below and above its value 95 % of a range are."""
    beyond = BEYOND * (below + above)
    return max(below - beyond, 0.0), max(above - beyond, 0.0)


def apart(value: float, ends: tuple[float, float], by: tuple[float, float]) -> tuple[float, float]:
    """Return an interval of a value with independent errors below and above."""
    return value - math.hypot(value - ends[0], by[0]), value + math.hypot(ends[1] - value, by[1])


def _rpm(fitted: DiskFit) -> Estimate:
    """Return the speed; a usual one that is taken lies within the interval of the capture."""
    low, high = (round(end) for end in disks.speeds(fitted.free_rotation))
    rpm = round(MINUTE_MS / fitted.service.rotation_ms)
    raw = MINUTE_MS / fitted.free_rotation[0]
    how = "" if rpm not in disks.USUAL_RPM else f"a usual speed; the capture alone gives {raw:,.0f}"
    return Estimate(DRIVE, "rpm", rpm, "rpm", low, high, how=how)


def _time(
    fitted: DiskFit,
    key: str,
    name: str,
    how: str = "",
    unsure_ms: tuple[float, float] = (0.0, 0.0),
) -> Estimate:
    one = fitted.likeliest
    value = one.values.get(name, 0.0)
    if name in fitted.undetermined:
        return assumed(key, value * MS, "ns", fitted.undetermined[name])
    ends = widened(value, one.low[name], one.high[name], WIDER[key])
    if key in ARM_OFF:
        ends = _off(key, value, ends)
    if count := fitted.compared.get(name):
        end_ms = END * fitted.service.rotation_ms / count
        ends = apart(value, ends, (end_ms, end_ms))
    # An overhead that is assumed has nothing to do with the scatter of the seeks.
    low, high = (max(end, 0.0) * MS for end in apart(value, ends, unsure_ms))
    return Estimate(DRIVE, key, value * MS, "ns", low, high, how=how)


def _rates(fitted: DiskFit) -> list[Estimate]:
    """Return the sustained rate.

    Random requests cross the borders of tracks as often as long ones do, a byte: what a byte more
    takes on average includes its share of the skews.
    """
    second_mib = 2**20 * 1e3
    keys = ("rate_outer", "rate_inner")
    value, likely = fitted.service.per_mib_ms, fitted.likeliest
    if why := fitted.undetermined.get("per_mib_ms"):
        return [assumed(key, second_mib / value, "bytes/s", why) for key in keys]
    short, long = (each / 2**20 for each in fitted.sizes)
    end_ms = END * fitted.service.rotation_ms / max(fitted.compared["per_mib_ms"], 1)
    own = math.hypot(math.hypot(RATE_OFF_MS, end_ms) / (long - short), RATE_OFF * value)
    ends = likely.low["per_mib_ms"], likely.high["per_mib_ms"]
    least, most = apart(value, ends, (own, own))
    ends = second_mib / most, second_mib / max(least, disks.NUMBERS["per_mib_ms"].low)
    how = "the mean over its zones"
    return [Estimate(DRIVE, key, second_mib / value, "bytes/s", *ends, how=how) for key in keys]


def widened(value: float, low: float, high: float, factor: float) -> tuple[float, float]:
    """Return an interval with its ratios to the value raised to a power; if one is 0, linearly."""
    if low <= 0 or value <= 0:
        return max(value - (value - low) * factor, 0.0), value + (high - value) * factor
    return value * (low / value) ** factor, value * (high / value) ** factor
