"""Turn the fit of a flash device into estimates of scenario keys."""

from __future__ import annotations

from hybridsim.answers.fitting.answer import NAME, Estimate, Fit
from hybridsim.answers.fitting.flash import KIB4, FlashFit
from hybridsim.answers.fitting.observed import Observed
from hybridsim.foundation.units import human_time, parse_rate, parse_time
from hybridsim.storage import catalog

DRIVE = "backing.drive"
LIKE = "samsung-pm883-960gb"  # provides the values that a capture does not determine
S_NS = 1e9
KINDS = ("read", "write")
STREAM_BYTES = 131_072  # request size of sequential rates in datasheets


def answer(name: str, observed: Observed, flash_fit: FlashFit, notes: list[str]) -> Fit:
    """Return a fit as the keys of a datasheet."""
    rows = catalog.load(LIKE).rows
    interval = flash_fit.interval_ns
    latency = flash_fit.latency_ns.get("read") or flash_fit.latency_ns.get("write")
    pace = f"{S_NS / interval.value:,.0f} requests a second" if interval else "unknown rate"
    each = human_time(latency.value) if latency else "unknown"
    estimates = [
        Estimate("backing", "kind", "single", determined=False, how="treated as one device"),
        Estimate(DRIVE, "kind", "ssd"),
        Estimate(DRIVE, "name", NAME),
        Estimate(
            DRIVE,
            "capacity",
            _capacity(observed),
            "bytes",
            determined=False,
            how="the addresses touched",
        ),
        *(_latency(flash_fit, kind, parse_time(rows[f"{kind}_latency"].scalar)) for kind in KINDS),
        *_pace(flash_fit, rows),
    ]
    words = f"Flash: {each} for 4 KiB when idle, {pace}."
    return Fit(name, words, estimates, observed.rows, notes)


def _capacity(observed: Observed) -> int:
    return max(-(-observed.end_bytes // 2**20), 1) * 2**20


def _latency(flash_fit: FlashFit, kind: str, assumed_ns: int) -> Estimate:
    key = f"{kind}_latency"
    one = flash_fit.latency_ns.get(kind)
    if one is None:
        other = next(iter(flash_fit.latency_ns.values()), None)
        value = other.value if other else assumed_ns
        other_kind = "writes" if kind == "read" else "reads"
        why = f"{flash_fit.undetermined[key]}; as {other_kind if other else LIKE}"
        return Estimate(DRIVE, key, value, "ns", determined=False, how=why)
    return Estimate(
        DRIVE, key, one.value, "ns", one.low, one.high, how="median of 4 KiB at the idle device"
    )


def _pace(flash_fit: FlashFit, rows: dict[str, catalog.Row]) -> list[Estimate]:
    """Return the rates, and the number of dies needed for them."""
    reads, writes = (_iops(flash_fit, kind, rows[f"random_{kind}_iops"].scalar) for kind in KINDS)
    link = _link(flash_fit, parse_rate(str(rows["sequential_read"].value)))
    streamed = min(float(link.value), 0.9 * float(writes.value) * STREAM_BYTES)
    longest_ns = max((one.value for one in flash_fit.latency_ns.values()), default=1e3)
    busiest = max(float(reads.value), float(link.value) / KIB4)
    dies = int(busiest * longest_ns / S_NS) + 2
    return [
        reads,
        writes,
        link,
        Estimate(DRIVE, "sequential_write", streamed, "bytes/s", determined=False, how="as reads"),
        Estimate(DRIVE, "dies", dies, determined=False, how="the minimum for these rates"),
    ]


def _iops(flash_fit: FlashFit, kind: str, assumed: str | int) -> Estimate:
    """Return the highest rate of requests, at least that of one request at a time."""
    key, interval = f"random_{kind}_iops", flash_fit.interval_ns
    if interval is None:
        how = f"{flash_fit.undetermined['interval']}; as {LIKE}"
        return Estimate(DRIVE, key, float(assumed), "/s", determined=False, how=how)
    alone = flash_fit.latency_ns.get(kind)
    minimum = S_NS / alone.value if alone else 0.0
    value, low, high = (
        max(S_NS / each, minimum) for each in (interval.value, interval.high, interval.low)
    )
    return Estimate(DRIVE, key, value, "/s", low, high, how="explains the waiting times best")


def _link(flash_fit: FlashFit, assumed: int) -> Estimate:
    rate = flash_fit.bytes_per_s
    shortest_ns = min((one.value for one in flash_fit.latency_ns.values()), default=S_NS)
    minimum = 2 * KIB4 * S_NS / shortest_ns  # 4 KiB cross the link in half their latency
    if rate is None or rate.value < minimum:
        how = f"{flash_fit.undetermined.get('rate', 'the fit contradicts the latency')}; as {LIKE}"
        value = max(float(assumed), minimum)
        return Estimate(DRIVE, "sequential_read", value, "bytes/s", determined=False, how=how)
    how = "from the size of requests"
    return Estimate(DRIVE, "sequential_read", rate.value, "bytes/s", rate.low, rate.high, how=how)
