"""One short run in a guest: a real dm-cache on simulated disks.

The assertions do not depend on the speed of this machine: counters, and the model times of the
disks.  HYBRIDSIM_LAB=0 skips the test, and so does a system on which the lab is not available, with
the reason.
"""

import json
import math
import os

import numpy as np
import pytest

from hybridsim.scenario import Scenario
from validate.errors import MissingError
from validate.lab import running, serve, setup

PERIOD_S = 60  # of smq: at its end half of a full cache is replaced
BLOCKS, HOT_BLOCKS = 128, 256
FEW = 100  # minimum of reads for a hit ratio
ENOUGH = 2_000  # reads that fill the cache
EXPERIMENT = f"""
name = "smoke"

[cache]
kind = "dm-cache"
size = "{BLOCKS * 256}KiB"
block = "256KiB"

[origin]
size = "2GiB"

[load]
duration = "25s"
job = '''
[even]
rw=randread
bs=4k
iodepth=16
norandommap
size={HOT_BLOCKS * 256}k
'''
"""


def test_a_real_cache_on_simulated_disks(tmp_path):
    """One test, so that parallel test processes start one guest only."""
    if os.environ.get("HYBRIDSIM_LAB") == "0":
        pytest.skip("HYBRIDSIM_LAB=0: no guest is started")
    try:
        setup.set_up(print)
    except MissingError as error:
        pytest.skip(f"the lab is not available here: {error}")
    path = tmp_path / "smoke.toml"
    path.write_text(EXPERIMENT)
    folder = running.run(path, tmp_path / "results", progress=print)
    the_run_is_complete(folder)
    samples = samples_of_the_first_period(folder)
    counters_only_grow(samples)
    reads = samples[-1]["hits"] + samples[-1]["misses"]
    if samples[-1]["used"] < BLOCKS and reads < ENOUGH:
        pytest.skip(f"this machine is too slow to fill a cache: {reads} reads in a minute")
    the_cache_fills_and_then_does_not_change(samples)
    hit_ratio_of_a_full_cache_is_its_share_of_the_hot_blocks(samples)
    for name, part in (("slow", "array"), ("fast", "ssd")):
        the_disk_followed_its_model(folder / "lab", name, part)


def the_run_is_complete(folder):
    assert json.loads((folder / "environment.json").read_text())["complete"]
    fio = json.loads((folder / "fio.json").read_text())
    assert sum(job["error"] for job in fio["jobs"]) == 0


def samples_of_the_first_period(folder):
    """Return the rows of `dmsetup status`, one a second: uptime, used, total, counters."""
    rows = []
    for line in (folder / "dmcache-status.log").read_text().splitlines():
        uptime, _, _, kind, _, _, _, used, *counters = line.split()
        assert kind == "cache"
        names = ("hits", "misses", "write_hits", "write_misses", "demotions", "promotions", "dirty")
        row = dict(zip(names, map(int, counters), strict=False))
        row["uptime_s"], (row["used"], row["total"]) = float(uptime), map(int, used.split("/"))
        rows.append(row)
    return [row for row in rows if row["uptime_s"] < rows[0]["uptime_s"] + PERIOD_S - 5]


def counters_only_grow(samples):
    for name in ("used", "hits", "misses", "promotions"):
        values = [row[name] for row in samples]
        assert values == sorted(values)


def the_cache_fills_and_then_does_not_change(samples):
    """Without free blocks smq promotes only as a replacement, which begins after 60 s."""
    assert samples[-1]["used"] == samples[-1]["total"] == BLOCKS
    full = [row for row in samples if row["promotions"] == BLOCKS]
    assert full
    assert all(row["demotions"] == 0 for row in samples)
    assert samples[-1]["promotions"] == BLOCKS


def hit_ratio_of_a_full_cache_is_its_share_of_the_hot_blocks(samples):
    """Reads are uniform over twice the blocks of the cache: half of them hit."""
    full = [row for row in samples if row["promotions"] == BLOCKS]
    hits, misses = (full[-1][name] - full[0][name] for name in ("hits", "misses"))
    if hits + misses < FEW:
        return  # the cache was full only at the end
    chance = 5 * math.sqrt(0.25 / (hits + misses))
    assert abs(hits / (hits + misses) - BLOCKS / HOT_BLOCKS) < chance


def the_disk_followed_its_model(lab, name, part):
    """The same requests at the same times complete at the same ns in the model."""
    requests = np.load(lab / "disks" / f"{name}.requests.npy")
    assert len(requests) > 100
    assert (requests["sent_ns"] >= requests["done_ns"]).all()
    size_bytes = json.loads((lab / "lab.json").read_text())["disks"][name]["size_bytes"]
    live, _ = serve.model(Scenario.load(lab / "machine.toml"), part, size_bytes)
    done = {}
    for tag, arrival_ns, _, _, op, offset, length in np.sort(requests, order=["tag"]).tolist():
        done |= dict(live.advance(arrival_ns))
        live.submit(arrival_ns, tag, op, offset, length)
    done |= dict(live.advance(1 << 62))
    assert [done[tag] for tag in requests["tag"].tolist()] == requests["done_ns"].tolist()
