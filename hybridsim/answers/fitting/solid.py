"""From the fit of a device without an arm to an answer."""

from __future__ import annotations

from hybridsim.answers.fitting.answer import NAME, Estimate, Fit
from hybridsim.answers.fitting.flash import KIB4, FlashFit
from hybridsim.answers.fitting.observed import Observed
from hybridsim.foundation.units import human_time, parse_rate, parse_time
from hybridsim.storage import catalog

DRIVE = "backing.drive"
LIKE = "samsung-pm883-960gb"  # whose values stand in where a capture tells nothing
S_NS = 1e9
KINDS = ("read", "write")
STREAM_BYTES = 131_072  # of a request of a sequential rate, in datasheets


def answer(name: str, observed: Observed, flash_fit: FlashFit, notes: list[str]) -> Fit:
    """Put a fit into the terms of a datasheet."""
    rows = catalog.load(LIKE).rows
    interval = flash_fit.interval_ns
    latency = flash_fit.latency_ns.get("read") or flash_fit.latency_ns.get("write")
    pace = (
        f"{S_NS / interval.value:,.0f} requests per second" if interval else "rate not determined"
    )
    each = human_time(latency.value) if latency else "unknown"
    estimates = [
        Estimate("backing", "kind", "single", determined=False, how="modelled as a single device"),
        Estimate(DRIVE, "kind", "ssd"),
        Estimate(DRIVE, "name", NAME),
        Estimate(
            DRIVE,
            "capacity",
            _capacity(observed),
            "bytes",
            determined=False,
            how="highest address accessed",
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
        why = f"{flash_fit.untold[key]}; " + ("as the other direction" if other else f"as {LIKE}")
        return Estimate(DRIVE, key, value, "ns", determined=False, how=why)
    return Estimate(
        DRIVE,
        key,
        one.value,
        "ns",
        one.low,
        one.high,
        how="median of 4 KiB requests on the idle device",
    )


def _pace(flash_fit: FlashFit, rows: dict[str, catalog.Row]) -> list[Estimate]:
    """Return the rates, and the number of dies that they require."""
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
        Estimate(
            DRIVE, "sequential_write", streamed, "bytes/s", determined=False, how="same as reads"
        ),
        Estimate(DRIVE, "dies", dies, determined=False, how="required for these rates"),
    ]


def _iops(flash_fit: FlashFit, kind: str, assumed: str | int) -> Estimate:
    """Return the rate of requests in a crowd, not below what one after the other gives."""
    key, interval = f"random_{kind}_iops", flash_fit.interval_ns
    if interval is None:
        how = f"{flash_fit.untold['interval']}; as {LIKE}"
        return Estimate(DRIVE, key, float(assumed), "/s", determined=False, how=how)
    alone = flash_fit.latency_ns.get(kind)
    least = S_NS / alone.value if alone else 0.0
    value, low, high = (
        max(S_NS / each, least) for each in (interval.value, interval.high, interval.low)
    )
    return Estimate(DRIVE, key, value, "/s", low, high, how="rate that fits the queueing best")


def _link(flash_fit: FlashFit, assumed: int) -> Estimate:
    rate = flash_fit.bytes_per_s
    shortest_ns = min((one.value for one in flash_fit.latency_ns.values()), default=S_NS)
    least = 2 * KIB4 * S_NS / shortest_ns  # 4 KiB cross the link in half their latency
    if rate is None or rate.value < least:
        how = f"{flash_fit.untold.get('rate', 'slower than its latency')}; as {LIKE}"
        value = max(float(assumed), least)
        return Estimate(DRIVE, "sequential_read", value, "bytes/s", determined=False, how=how)
    how = "from the latency by request size"
    return Estimate(DRIVE, "sequential_read", rate.value, "bytes/s", rate.low, rate.high, how=how)
