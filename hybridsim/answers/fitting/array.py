"""Turn the fit of an array of disks into estimates of scenario keys."""

from __future__ import annotations

import math

from hybridsim.answers.fitting import disks
from hybridsim.answers.fitting.answer import NAME, Estimate, Fit
from hybridsim.answers.fitting.arrangement import CLEARLY, Arrangement, Progress, arrangement
from hybridsim.answers.fitting.disks import MINUTE_MS, DiskFit
from hybridsim.answers.fitting.observed import Observed
from hybridsim.answers.fitting.order import CHOOSES
from hybridsim.answers.fitting.pieces import pieces
from hybridsim.foundation.errors import FitError
from hybridsim.foundation.units import parse_rate, parse_time
from hybridsim.storage import catalog

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
    fitted = disks.fit(seen, assumed)
    _check(name, fitted)
    if fitted.chooses is not None and fitted.chooses > CHOOSES:
        notes.append(
            "The disks reorder their queue. Seek and rotation are fitted to the "
            f"{fitted.used:,} requests served without a choice; the number of commands that the "
            "disks choose from is assumed."
        )
    estimates = [*_backing(result, fitted), *_drive(observed, result, fitted)]
    return Fit(name, _in_words(result, fitted), estimates, fitted.used, notes)


def assumed(rotation_ms: float) -> dict[str, float]:
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
    estimates = [
        Estimate(
            "backing",
            "kind",
            kind,
            determined=determined,
            how="mirrors and parity are not detected",
        ),
        Estimate("backing", "members", members, determined=determined, how=how),
    ]
    if members > 1:
        estimates.append(
            Estimate("backing", "chunk", chunk, "bytes", determined=determined, how=how)
        )
    if fitted.chooses is None:
        estimates.append(
            Estimate(
                "backing",
                "scheduler",
                "ncq",
                determined=False,
                how="there were never two requests at one disk",
            )
        )
    else:
        passed = f"in {fitted.chooses:.0%} of the services an older request had to wait"
        order = "ncq" if fitted.chooses > CHOOSES else "fcfs"
        estimates.append(Estimate("backing", "scheduler", order, how=passed))
    if result.depth:
        waited = f"up to {result.deepest} requests were outstanding, no more than this in service"
        estimates.append(Estimate("backing", "queue_depth", result.depth, how=waited))
    return estimates


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
        less, more = _off(figure, value, widened(value, shortest, longest, WIDER[figure]))
        below, above = math.hypot(value - less, least), math.hypot(more - value, most)
        return max(value - below, 0.0) * MS, (value + above) * MS

    drive = "backing.drive"
    return [
        Estimate(drive, "kind", "hdd"),
        Estimate(drive, "name", NAME),
        _rpm(fitted),
        Estimate(drive, "capacity", member_bytes, "bytes", determined=False, how=span),
        _time(fitted, "seek_track_to_track", "track_ms", unsure_ms=(least, most)),
        Estimate(
            drive,
            "seek_average",
            (one.track_ms + reach * curve) * MS,
            "ns",
            *arm(curve, "seek_average"),
            how=linear,
        ),
        Estimate(
            drive, "seek_full", one.full_ms * MS, "ns", *arm(1.0, "seek_full"), how="over that part"
        ),
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
    return (
        max(value - math.hypot(value - ends[0], below * value), 0.0),
        value + math.hypot(ends[1] - value, above * value),
    )


def within(below: float, above: float) -> tuple[float, float]:
    """Return how far below and above its value 95 % of a range are."""
    beyond = BEYOND * (below + above)
    return max(below - beyond, 0.0), max(above - beyond, 0.0)


def _apart(
    fitted: DiskFit, name: str, ends: tuple[float, float], by_ms: tuple[float, float]
) -> tuple[float, float]:
    """Return an interval of a time with independent errors below and above."""
    value = fitted.likeliest.values[name]
    return (
        value - math.hypot(value - ends[0], by_ms[0]),
        value + math.hypot(ends[1] - value, by_ms[1]),
    )


def _rpm(fitted: DiskFit) -> Estimate:
    """Return the speed; a usual one that is taken lies within the interval of the capture."""
    low, high = (round(end) for end in disks.speeds(fitted.free_rotation))
    rpm = round(MINUTE_MS / fitted.service.rotation_ms)
    raw = MINUTE_MS / fitted.free_rotation[0]
    how = "" if rpm not in disks.USUAL_RPM else f"a usual speed; the capture alone gives {raw:,.0f}"
    return Estimate("backing.drive", "rpm", rpm, "rpm", low, high, how=how)


def _time(
    fitted: DiskFit,
    key: str,
    name: str,
    how: str = "",
    unsure_ms: tuple[float, float] = (0.0, 0.0),
) -> Estimate:
    value = fitted.likeliest.values.get(name, 0.0) * MS
    if name in fitted.undetermined:
        return Estimate(
            "backing.drive", key, value, "ns", determined=False, how=fitted.undetermined[name]
        )
    ends = _widened(fitted, name, key)
    if key in ARM_OFF:
        ends = _off(key, fitted.likeliest.values[name], ends)
    if count := fitted.compared.get(name):
        end_ms = END * fitted.service.rotation_ms / count
        ends = _apart(fitted, name, ends, (end_ms, end_ms))
    # An overhead that is assumed has nothing to do with the scatter of the seeks.
    ends = _apart(fitted, name, ends, unsure_ms)
    low, high = (max(end, 0.0) * MS for end in ends)
    return Estimate("backing.drive", key, value, "ns", low, high, how=how)


def _rates(fitted: DiskFit) -> list[Estimate]:
    """Return the sustained rate.

    Random requests cross the borders of tracks as often as long ones do, a byte: what a byte more
    takes on average includes its share of the skews.
    """
    second_mib = 2**20 * 1e3

    def both(determined: bool, how: str, low: float | None, high: float | None) -> list[Estimate]:
        value = second_mib / fitted.service.per_mib_ms
        return [
            Estimate("backing.drive", key, value, "bytes/s", low, high, determined, how)
            for key in ("rate_outer", "rate_inner")
        ]

    if "per_mib_ms" in fitted.undetermined:
        return both(False, fitted.undetermined["per_mib_ms"], None, None)
    value, likely = fitted.service.per_mib_ms, fitted.likeliest
    short, long = (each / 2**20 for each in fitted.sizes)
    end_ms = END * fitted.service.rotation_ms / max(fitted.compared["per_mib_ms"], 1)
    own = math.hypot(math.hypot(RATE_OFF_MS, end_ms) / (long - short), RATE_OFF * value)
    least = value - math.hypot(value - likely.low["per_mib_ms"], own)
    most = value + math.hypot(likely.high["per_mib_ms"] - value, own)
    fastest = second_mib / max(least, disks.NUMBERS["per_mib_ms"].low)
    return both(True, "the mean over its zones", second_mib / most, fastest)


def _widened(fitted: DiskFit, name: str, figure: str) -> tuple[float, float]:
    """Return the ends of a parameter's interval, as wide as the model's own errors demand."""
    return widened(
        fitted.likeliest.values[name], fitted.likeliest.low[name], fitted.likeliest.high[name],
        WIDER[figure],
    )  # fmt: skip


def widened(value: float, low: float, high: float, factor: float) -> tuple[float, float]:
    """Return an interval with its ratios to the value raised to a power; if one is 0, linearly."""
    if low <= 0 or value <= 0:
        return max(value - (value - low) * factor, 0.0), value + (high - value) * factor
    return value * (low / value) ** factor, value * (high / value) ** factor
