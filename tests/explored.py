"""Explorations that take no time: the figures of a machine follow from its scenario alone."""

import math

from hybridsim import Scenario
from hybridsim.answers.forecast import answer_of
from hybridsim.studies.explore.exploring import HIT_PART, PARTS, QUANTITIES, explore
from hybridsim.studies.sweep.named_trace import NamedTrace

LOAD = "gen:hot-spot,span=256MiB,hot=10%,share=90%,rate=150,requests=1500"
KINDS = {"bcache": 0.9, "dm-cache": 0.7, "dm-writecache": 0.3, "open-cas": 0.85, "page": 1.0}
CLIFF = 10 * 2**20  # bytes: from here on the whole hot spot fits


def made_up(point, shared_folder=None):
    """Return the figures of a machine whose hit ratio has a knee, and a cliff in p99."""
    site = point.scenario
    cache, speed = site.cache, site.replay.speed
    size = cache.pages(2**28) * cache.page_bytes if cache.kind == "page" else _bytes(site)
    back = cache.write_policy == "write-back"
    hit = KINDS[cache.kind] * 0.95 * (1 - math.exp(-size / (6 * 2**20)))
    disk = 6e6 * (4 / site.backing.members) ** 0.6 * speed**0.5
    ssd = 1e5 if "PM9A3" in cache.drive.name else 2.5e5
    read = hit * ssd + (1 - hit) * disk
    write = ssd if back else disk * 1.3
    tail = disk * (3 if size < CLIFF else 1.5)
    gain = (disk + 0.5 * disk * 1.3) / (read + 0.5 * write)
    low, high = gain * math.exp(-0.3), gain * math.exp(0.3)
    answer = answer_of(math.log(gain), 0.3)
    row = {each.name: None for each in QUANTITIES}
    row |= {
        "answer": answer, "headline": f"As replayed: {answer}.", "mode": "open",
        "saturated": False, "alone.saturated": False, "hit.whole": hit, "gain": gain,
        "forecast": gain, "forecast.low": low, "forecast.high": high,
        "dwpd.whole": (0.4 + back) * (1 - hit) * speed, "years.whole": 5.0,
        # Not steady where the cache is larger than what the trace fills.
        "warmup": 4e10 * size / 2**24 if size < 2**24 else None,
        "mean.reads.whole": read, "p99.reads.whole": tail, "mean.writes.whole": write,
        "p99.writes.whole": 4 * write, "alone.mean.reads.whole": disk,
        "alone.p99.reads.whole": 3 * disk, "alone.mean.writes.whole": 1.3 * disk,
        "alone.p99.writes.whole": 5 * disk,
    }  # fmt: skip
    for name, share in (("p50", 0.5), ("p90", 0.8), ("p95", 0.9), ("p99.9", 1.4)):
        row[f"{name}.reads.whole"] = share * tail
        row[f"alone.{name}.reads.whole"] = share * 3 * disk
    for part in range(PARTS):
        row[f"{HIT_PART}{part}"] = hit * (1 - math.exp(-(part + 1) / 5))
    return row


def _bytes(site):
    from hybridsim.foundation.units import parse_size

    return parse_size(site.cache.size)


def exploration(folder, points=90, check=40, site=None, compute=made_up, **choices):
    site = (site or Scenario.default()).with_options(mode="open")
    return explore(NamedTrace.here((LOAD,)), site, points=points, check=check, folder=folder,
                   workers=1, compute=compute, **choices)  # fmt: skip
