"""`serve` on block devices: loop devices where they can be had, and trees like those of sysfs."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from serving_checker import Client

from hybridsim.cli.arguments import machine
from hybridsim.foundation.errors import DeviceError
from hybridsim.serving import claims, nbd
from hybridsim.serving.generations import DATA_FROM
from hybridsim.studies import serve

VOLUME, PAGE = 8 << 20, 65536


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def devices(tmp_path, monkeypatch):
    """Return the names of a disk with data and of an SSD, both loop devices."""
    monkeypatch.chdir(tmp_path)
    Path("slow.img").write_bytes(b"".join(bytes([n + 1]) * PAGE for n in range(VOLUME // PAGE)))
    with open("fast.img", "wb") as file:
        file.truncate(DATA_FROM + 32 * PAGE)
    with contextlib.ExitStack() as stack:
        names = []
        for image in ("slow.img", "fast.img"):
            try:
                names.append(run("losetup", "--find", "--show", image))
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("no loop devices here")
            stack.callback(run, "losetup", "--detach", names[-1])
        yield names


def setting(slow, fast):
    site = machine(None, ["cache.policy=lru", "cache.sequential_cutoff=0"])
    socket = Path("nbd.sock").absolute()
    return serve.Setting(slow, fast, site, Path("state"), socket, None, threads=4)


def page(number):
    error, data = Client("nbd.sock", VOLUME).ask(nbd.READ, number * PAGE, PAGE)
    assert error == 0
    return data


def test_pages_are_kept_on_devices_until_one_is_changed_by_others(devices):
    slow, fast = devices
    for changed, why in (
        (None, ""), (slow, "the slow device may have been written to"),
        (None, ""), (fast, "the fast device may have been written to"),
    ):  # fmt: skip
        with serve.served(setting(slow, fast)):
            assert page(3) == page(3)
        if changed:
            run("blkdiscard", "--force", "--offset", str(DATA_FROM), "--length", "1MiB", changed)
        with serve.served(setting(slow, fast)) as ready:
            assert ready.why_empty.startswith(why)
            assert bool(ready.pages_warm) == (changed is None)
            expected = bytes(PAGE) if Path("slow.img").read_bytes()[PAGE * 16] == 0 else None
            assert page(16) == (expected or bytes([17]) * PAGE)
            assert page(3) == bytes([4]) * PAGE


def test_what_the_kernel_uses_is_refused(devices):
    slow, fast = devices

    def refusal(*names):
        with pytest.raises(DeviceError) as error, serve.served(setting(*names)):
            pass
        return str(error.value)

    assert f"slow.img: is open in {Path(slow).name}: end that" in refusal("slow.img", fast)
    assert f"fast.img: is open in {Path(fast).name}: end that" in refusal(slow, "fast.img")
    with serve.served(setting(slow, fast)):
        assert "it is in use" in refusal(slow, fast)
    make = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if make:
        run(make, "-q", "-F", slow)
        os.mkdir("mounted")
        run("mount", slow, "mounted")
        try:
            assert "it is in use (mounted" in refusal(slow, fast)
        finally:
            run("umount", "mounted")
        assert "holds ext4, and would be overwritten" in refusal(fast, slow)


# Trees like those of sysfs and /proc.


def counts(folder, read=8, written=0, discarded=0):
    folder.mkdir(parents=True, exist_ok=True)
    columns = [0] * 17
    columns[2], columns[6], columns[13] = read, written, discarded
    (folder / "stat").write_text(" ".join(map(str, columns)))


@pytest.fixture
def disk(tmp_path):
    """Return the folder of a disk with two partitions."""
    folder = tmp_path / "sdb"
    counts(folder, written=100)
    for name in ("sdb1", "sdb2"):
        counts(folder / name, written=40)
        (folder / name / "partition").write_text("1")
    return folder


def test_writes_and_discards_of_a_device_change_its_stamp(disk):
    before = claims.changes(disk)
    assert claims.changes(disk) == before
    counts(disk, written=101)
    written = claims.changes(disk)
    counts(disk, written=101, discarded=8)
    assert before != written != claims.changes(disk)


def test_a_partition_is_changed_by_writes_to_the_whole_disk_not_by_those_to_others(disk):
    part = disk / "sdb1"
    before = claims.changes(part)
    counts(disk, written=110)
    counts(disk / "sdb2", written=50)
    assert claims.changes(part) == before
    counts(disk, written=118)
    assert claims.changes(part) != before


def test_a_device_that_does_not_count_has_another_stamp_each_time(disk):
    counts(disk, read=0)
    assert claims.changes(disk) != claims.changes(disk)
    counts(disk)
    (disk / "queue").mkdir()
    (disk / "queue/iostats").write_text("0\n")
    assert claims.changes(disk) != claims.changes(disk)


def test_a_file_that_a_loop_device_or_the_swap_space_uses_is_found(tmp_path):
    image, blocks, swaps = tmp_path / "an image", tmp_path / "block", tmp_path / "swaps"
    image.write_bytes(b"x")
    (blocks / "loop3/loop").mkdir(parents=True)
    (blocks / "loop3/loop/backing_file").write_text(f"{image}\n")
    swaps.write_text("Filename Type\n" + str(image).replace(" ", r"\040") + " file 1 0 -2\n")
    status = image.stat()
    identity = status.st_dev, status.st_ino
    found = claims.uses_by_the_kernel(identity, str(blocks), str(swaps))
    assert found == ["loop3", "the swap space"]
    assert claims.uses_by_the_kernel((0, 0), str(blocks), str(swaps)) == []
