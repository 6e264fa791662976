"""Events in the life of a cache in a guest, beside `replay --event` of the same requests.

A crash, a clean reboot, the removal of the cache under load, and an SSD that is pulled.  Minutes
each; HYBRIDSIM_LAB=0 skips them.
"""

import json
import os
import re

import guest_caches as lab

PHASE_S = int(os.environ.get("HYBRIDSIM_LAB_S", 60))
CRASHED, REBOOTED, DETACHED, PULLED = "2345"  # seeds: the load before or during each
CACHES = [("dm-cache", "write-through"), ("dm-cache", "write-back"),
          ("bcache", "write-through"), ("bcache", "write-back")]  # fmt: skip
RECORD = """
capture $SLOW capture
for n in 2 3 4; do load load$n.fio plain$n; sleep 2; done
captured
capture $SLOW pulled
load load5.fio plain5
captured
fio --name=one --filename=$FAST --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=1 \
  --runtime=10 --time_based --output-format=json --output=$OUT/fast.json
"""
LIVE = """
KIND=%(kind)s
case $1 in
1) sh check.sh > /dev/null; sh install.sh
  load cached2.fio cached2; say BEFORE-CRASH $(status); echo b > /proc/sysrq-trigger; sleep 60;;
2) activate; say AFTER-CRASH $(status); sampled crashed
  load cached3.fio cached3; say BEFORE-REBOOT $(status); deactivate;;
3) activate; say AFTER-REBOOT $(status); sampled rebooted
  load cached4.fio cached4 & loading=$!
  sleep %(half)d; say DETACH $(status); sh remove.sh; say DETACHED
  wait $loading;;
4) if [ $KIND = bcache ]; then
    activate 2> /dev/null || echo 1 > /sys/block/vda/bcache/stop || true
    sleep 1; [ -e /sys/block/vda/bcache ] && echo 1 > /sys/block/vda/bcache/stop
    while [ -e /sys/block/vda/bcache ]; do sleep 0.2; done; wipefs -qa /dev/vda
  else vgchange -an cached; vgremove -qfy cached; pvremove -qfy /dev/vda; fi
  sh install.sh; sampled pulled
  load cached5.fio cached5 & loading=$!
  sleep %(half)d; say PULL $(status)
  echo 1 > $(readlink -f /sys/block/vdb/device)/../remove
  say PULLED
  wait $loading || say FIO-ENDED-WITH $?
  say AFTER-PULL $(status)
  dd if=%(device)s of=/dev/null bs=64k count=800 iflag=direct 2>&1 | tail -1 || true
  dmesg | tail -40;;
esac
"""


def record(out):
    """Capture the four loads on the plain disks: three in a row, and the last one alone."""
    files = {f"load{n}.fio": lab.load(lab.HOT, PHASE_S, "/dev/vda", seed=n) for n in range(2, 6)}
    lab.guest_run(RECORD, files, out, lab.BOOT_S + 10 * PHASE_S)


def ends_s(capture):
    """Return the time of the last request of each load of a capture, in seconds."""
    import numpy as np

    from hybridsim.traces.trace import Trace

    arrival = np.concatenate(
        [chunk.arrival_ns for chunk in Trace.read((str(capture),), None, None).chunks()]
    )
    arrival.sort()
    gaps = np.flatnonzero(np.diff(arrival) > 1_500_000_000)
    return [(int(arrival[at]) - int(arrival[0])) / 1e9 for at in [*gaps, len(arrival) - 1]]


def lived(kind, mode, scripts, out):
    """Run the life of a cache in the guest; return its output."""
    device = lab.cached_device(kind)
    files = scripts | {
        f"cached{n}.fio": lab.load(
            "continue_on_error=io\n" + lab.HOT, PHASE_S, device, seed=n
        ) for n in range(2, 6)
    }  # fmt: skip
    settings = re.search(r"cat > \S+ <<'END'\n(#!.*?)END\n", scripts["install.sh"], re.S)
    files["settings.sh"] = settings[1] if settings else ""
    words = {"kind": kind, "half": PHASE_S // 2, "device": device}
    return lab.guest_run(LIVE % words, files, out, lab.BOOT_S + 20 * PHASE_S, boots=4, crashes=(1,))


def simulated(recorded, out, kind, mode):
    """Return the events of the replay: a crash, a reboot and a removal; and of a lost SSD."""
    own = lab.calibrated(recorded)
    capture = recorded / "capture" / "vda.blktrace.0"
    ends = ends_s(capture)
    detach_s = ends[1] + 3 + PHASE_S / 2
    events = [f"at={ends[0] + 0.5:.3f}s,reboot=unclean", f"at={ends[1] + 0.5:.3f}s,reboot=clean",
              f"at={detach_s:.3f}s,detach"]  # fmt: skip
    words = [word for event in events for word in ("--event", event)]
    promise, scripts = lab.promised(capture, out, *lab.options(kind, mode), *own, *words)
    life = json.loads(promise.read_text())["events"]
    lost = out / "lost.json"
    lab.hybridsim(
        "replay", recorded / "pulled" / "vda.blktrace.0", "--scenario", out / "site.toml",
        *lab.options(kind, mode), *own, "--event", f"at={PHASE_S // 2}s,ssd=dies", "--json", lost,
    )  # fmt: skip
    return life, json.loads(lost.read_text())["events"], scripts
