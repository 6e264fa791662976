"""Caches of `hybridsim setup` in guests whose disks are simulated in real time.

    record    the load on the plain disks, captured with blktrace
    promised  the replay of that capture, as JSON
    scripts   what `setup` prints to build, watch and remove the cache
    operated  a guest that builds the cache with these scripts, and runs a shell script on it

As root the disks have real-time priority; run the guests at `nice -n -10` on a machine that does
other work, as late answers of the disks are latency that no simulation promised.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MIB = 1 << 20
SLOW_BYTES, FAST_BYTES = 2 << 30, 256 * MIB
LOAD_MIB = 1900  # of the slow device: LVM and bcache take a little of it
MEMORY_MB = 2048
SSD_US = 300
BOOT_S = 300
# A disk and an SSD.  A guest under software emulation serves some hundreds of requests a second:
# the load has fewer.
MACHINE = f"""
[backing]
kind = "single"
members = 1
capacity = "trace"
queue_depth = 16 # requests in flight of QEMU's NBD client
writeback_throttle = "auto"

[backing.drive]
like = "hgst-ultrastar-7k8"

[cache]
kind = "dm-cache"
size = "64MiB"

[cache.drive]
kind = "ssd"
name = "an SSD of the lab"
capacity = "64GB"
read_latency = "{SSD_US}us"
write_latency = "{SSD_US}us"
random_read_iops = 5000
random_write_iops = 5000
sequential_read = "100MB/s"
sequential_write = "50MB/s"
dies = 512 # enough for a guest that is slow
fua = false # like virtio-blk
"""
# Requests arrive at random times, at a rate that the disk alone can serve: an application does not
# send more because its disks are faster.
LOAD = """[global]
direct=1
ioengine=libaio
time_based=1
norandommap=1
randseed={seed}
filename={device}
size={size}m
runtime={seconds}
group_reporting=1
write_lat_log={log}
log_avg_msec=1000
"""
HOT = """[application]
rw=randrw
rwmixread=70
bs=16k
iodepth=64
rate_iops=35,15
rate_process=poisson
random_distribution=zoned:80/2:20/98
"""
# There is neither udev nor systemd in the guest.  These name an array's partition, and run a unit.
UDEVADM = """#!/bin/sh
array=$(readlink -f /dev/md/cache) && ln -sf "${array}p1" /dev/md/cache1
exit 0
"""
SYSTEMCTL = """#!/bin/sh
case "$1" in
enable) sh -c "$(sed -n 's/^ExecStart=//p' "/etc/systemd/system/$3")" ;;
esac
"""
PRELUDE = """set -eu
export PATH=/tmp/bin:$PATH LVM_SUPPRESS_FD_WARNINGS=1 MDADM_NO_UDEV=1
mkdir -p /tmp/bin /usr/local/sbin /etc/systemd/system
cp systemctl udevadm /tmp/bin; chmod 755 /tmp/bin/*
for m in dm-mod dm-cache dm-cache-smq dm-writecache bcache; do modprobe $m; done
load() { # load JOB NAME: run a fio job; its JSON and logs are NAME.*
  fio --output-format=json --output=$OUT/$2.json $1
  mv *_lat.*.log $OUT 2>/dev/null || true
}
counters() { # counters NAME: save the counters as the section monitor does
  sh monitor.sh; mv counters-*.txt $OUT/$1.txt
}
capture() { # capture DEVICE NAME: trace a device; `captured` ends it
  mkdir -p $OUT/$2; blktrace -d $1 -D $OUT/$2 -b 1024 -n 8 > $OUT/$2/blktrace.txt 2>&1 &
  tracer=$!; n=0
  until [ "$(cat /sys/class/block/$(lsblk -ndo KNAME $1)/trace/enable)" != 0 ]; do
    n=$((n + 1)); if [ $n -gt 100 ]; then cat $OUT/$2/blktrace.txt; exit 1; fi; sleep 0.1
  done
}
captured() { kill -INT $tracer; wait $tracer; }
say() { echo "AT $(cut -d' ' -f1 /proc/uptime) $*"; }
status() { # one line: the state of the cache
  if [ -e /sys/block/vda/bcache ]; then
    cd /sys/block/vda/bcache
    echo "bcache $(cat state) dirty=$(cat dirty_data) hits=$(cat stats_total/cache_hits)" \
      "misses=$(cat stats_total/cache_misses)" \
      "unused=$(sed -n 's/^Unused: *//p' cache/cache0/priority_stats 2>/dev/null)"
    cd /job
  else dmsetup status --noflush cached-data; fi
}
sampled() { # sampled NAME: the state each second, from now on
  while :; do echo "$(cut -d' ' -f1 /proc/uptime) $(status)"; sleep 1; done \
    >> $OUT/$1.log 2>/dev/null &
}
activate() { # what a distribution does when it starts
  if [ "$KIND" = bcache ]; then
    for d in /dev/vdb1 /dev/vda; do echo $d > /sys/fs/bcache/register; done
    sh settings.sh
  else vgchange -ay cached; fi
}
deactivate() { # what it does when it stops
  if [ "$KIND" = bcache ]; then
    S=$(readlink -f /sys/block/vda/bcache/cache)
    echo 1 > /sys/block/vda/bcache/stop; echo 1 > $S/stop
    while [ -e /sys/block/vda/bcache ] || [ -e $S ]; do sleep 0.2; done
  else vgchange -an cached; fi
}
"""


def available():
    """Skip the test if the lab is switched off, or not available on this system."""
    from validate.errors import MissingError
    from validate.lab import setup

    if os.environ.get("HYBRIDSIM_LAB") == "0":
        pytest.skip("HYBRIDSIM_LAB=0: no guest is started")
    try:
        setup.set_up(print)
    except MissingError as error:
        pytest.skip(f"the lab is not available here: {error}")


def load(job, seconds, device, seed=1):
    """Return fio's job file for a load on a device."""
    words = {"seed": seed, "device": device, "size": LOAD_MIB, "seconds": seconds, "log": "load"}
    return LOAD.format(**words) + job


def guest_run(script, files, out, limit_s, machine=MACHINE, boots=1, crashes=()):
    """Run a shell script in a guest with the disks SLOW and FAST of a machine; return its output.

    With more boots it runs once in each, on the same disks, with its number as $1, and its results
    are in a folder of that name; those in `crashes` may end without results.  Raises
    AssertionError if the script fails.
    """
    from validate.lab import guest
    from validate.lab.machine import Disk

    out.mkdir(parents=True, exist_ok=True)
    scenario = out / "machine.toml"
    scenario.write_text(machine)
    disks = [
        Disk("slow", SLOW_BYTES, is_served=True),
        Disk("fast", FAST_BYTES, is_served=True, is_rotational=False),
    ]
    server = [sys.executable, "-m", "validate.lab.serve", str(scenario)]
    server += [f"slow=array:{SLOW_BYTES}", f"fast=ssd:{FAST_BYTES}"]
    own = {"systemctl": SYSTEMCTL, "udevadm": UDEVADM, "all.sh": PRELUDE + script}
    packed = {name: text.encode() for name, text in (own | files).items()}
    lines = []

    def heard(line):
        print(line)
        lines.append(line)

    numbers = range(1, boots + 1)
    done = guest.run_in_turn(
        [guest.Boot([["sh", "all.sh", str(number)]], out / str(number) if boots > 1 else out,
                    number in crashes) for number in numbers],
        disks, out, server=server, files=packed, memory_mb=MEMORY_MB, limit_s=limit_s,
        on_output=heard, progress=print,
    )  # fmt: skip
    output = "\n".join(lines)
    codes = [each.codes for each in done]
    assert codes == [[] if number in crashes else [0] for number in numbers], output[-3000:]
    return output


def hybridsim(*words, codes=(0,)):
    """Run a command of hybridsim, at the usual priority; return what it prints.

    Interpreted: to compile a machine takes longer than some ten thousand requests.
    """
    done = subprocess.run(
        [sys.executable, "-m", "hybridsim", *map(str, words)], capture_output=True, text=True,
        preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0),
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode in codes, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


RECORD = """
capture $SLOW capture
load load.fio plain
captured
fio --name=one --filename=$FAST --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=1 \
  --runtime=10 --time_based --output-format=json --output=$OUT/fast.json
"""


def record(job, seconds, out, machine=MACHINE):
    """Capture a load on the plain disks; return the file of the capture.

    The time that the guest itself adds to a request is measured on the bare SSD; see `calibrated`.
    """
    files = {"load.fio": load(job, seconds, "/dev/vda")}
    guest_run(RECORD, files, out, BOOT_S + 4 * seconds, machine)
    return out / "capture" / "vda.blktrace.0"


def calibrated(out):
    """Return options of `replay` with the devices as a guest sees them: slower than their models.

    The guest adds as much to each request of a device as to a single read of the bare SSD.
    """
    done = json.loads((out / "fast.json").read_text())["jobs"][0]["read"]["lat_ns"]["mean"]
    model = json.loads((out / "disks" / "fast.model.json").read_text())["mean_model_us"]
    own = round(max(done / 1000 - model, 0.0))
    values = {
        "cache.drive.read_latency": SSD_US + own,
        "cache.drive.write_latency": SSD_US + own,
        "backing.path_latency": own,
    }
    return [word for key, us in values.items() for word in ("--set", f"{key}={us}us")]


def promised(capture, out, *options, machine=MACHINE):
    """Replay a capture with a cache; return the file of the promise."""
    out.mkdir(parents=True, exist_ok=True)
    site, promise = out / "site.toml", out / "promise.json"
    site.write_text(machine)
    hybridsim("replay", capture, "--scenario", site, *options, "--json", promise)
    return promise


def scripts(out, *arguments, machine=MACHINE):
    """Return the scripts that `setup` prints for the devices of the guest, by name of file.

    `arguments` are a saved promise, or options for the cache of a machine.
    """
    out.mkdir(parents=True, exist_ok=True)
    plan = out / "setup.json"
    if str(arguments[0]).startswith("--"):
        site = out / "site.toml"
        site.write_text(machine)
        arguments = ("--scenario", site, *arguments)
    hybridsim("setup", *arguments, "--slow", "/dev/vda", "--fast", "/dev/vdb", "--json", plan)
    sections = json.loads(plan.read_text())["sections"]
    return {f"{each['name']}.sh": each["script"] for each in sections}


def options(kind, mode, size="64MiB"):
    """Return the options of `replay` for a cache."""
    words = ["--cache", kind, "--cache-size", size]
    if kind != "dm-writecache":
        words += ["--cache-mode", mode]
    if kind == "bcache":  # on a busy host an SSD of the guest takes longer than bcache's 2 ms
        words += ["--set", "cache.congested_read=0ms", "--set", "cache.congested_write=0ms"]
    return words


def cached_device(kind):
    """Return the device that the printed scripts make."""
    return "/dev/bcache0" if kind == "bcache" else "/dev/cached/data"
