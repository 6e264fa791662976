"""Caches in guests, from the capture of a load to the check whether they keep what was promised.

Each test takes minutes.  HYBRIDSIM_LAB=0 skips them, and so does a system without the lab;
HYBRIDSIM_LAB_S sets the seconds of a load.
"""

import json
import os

import guest_caches as lab
import pytest

SECONDS = int(os.environ.get("HYBRIDSIM_LAB_S", 600))
CACHES = [
    ("dm-cache", "write-through"),
    ("dm-cache", "write-back"),
    ("bcache", "write-through"),
    ("bcache", "write-back"),
    ("dm-writecache", "write-back"),
]
# Pages of a database: some are read much more often than others, and commits wait for flushes.
DATABASE = """[database]
rw=randrw
rwmixread=75
bs=8k
iodepth=64
rate_iops=36,12
rate_process=poisson
random_distribution=zipf:1.1
fsync=16
"""
OPERATE = """
sh check.sh; sh install.sh; sh verify.sh > $OUT/verify.txt
counters first
capture DEVICE capture
load load.fio cached
captured
counters last
sh remove.sh
"""


@pytest.fixture(scope="module", params=[lab.HOT, DATABASE], ids=["hot", "database"])
def recorded(request, tmp_path_factory):
    """A load, and the folder of its capture on the plain disks."""
    lab.available()
    out = tmp_path_factory.mktemp("plain")
    # As long as the load: a shorter one may not get steady, and then promises nothing beyond it.
    lab.record(request.param, SECONDS, out)
    return request.param, out


@pytest.mark.long
@pytest.mark.parametrize(("kind", "mode"), CACHES)
def test_a_cache_keeps_what_was_promised(kind, mode, recorded, tmp_path):
    """Capture, promise, setup, load, check: the answer rests on counters and a capture."""
    job, plain = recorded
    capture = plain / "capture" / "vda.blktrace.0"
    own = [*lab.options(kind, mode), *lab.calibrated(plain)]
    promise = lab.promised(capture, tmp_path, *own)
    device = lab.cached_device(kind)
    load = lab.load(job, SECONDS, device, seed=2)
    files = lab.scripts(tmp_path, promise) | {"load.fio": load}
    out = tmp_path / "cached"
    lab.guest_run(OPERATE.replace("DEVICE", device), files, out, lab.BOOT_S + 5 * SECONDS)
    found = tmp_path / "check.json"
    lab.hybridsim(
        "check", promise, out / "first.txt", out / "last.txt", "--capture", out / "capture",
        "--json", found, codes=(0, 4),
    )  # fmt: skip
    answer = json.loads(found.read_text())
    figures = {each["name"]: each for each in answer["figures"]}
    assert answer["settings"]["differences"] == []
    assert figures["hit ratio"]["within"], answer
    assert answer["answer"] == "kept", answer
