"""Events in the life of a cache in a guest, beside `replay --event` of the same requests.

A crash, a clean reboot, the removal of the cache under load, and an SSD that is pulled.  Minutes
each; HYBRIDSIM_LAB=0 skips them.
"""

import json
import os
import re

import guest_caches as lab
import pytest

# dm-cache commits its metadata when it gets a flush: without any, a crash leaves nothing to start.
FLUSHES = lab.HOT + "fsync=32\n"
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
LIVE = r"""
KIND=%(kind)s
case $1 in
1) sh check.sh > /dev/null; sh install.sh
  load cached2.fio cached2; say BEFORE-CRASH $(status); sleep 1
  echo b > /proc/sysrq-trigger; sleep 60;;
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
  dmesg | grep -v "access beyond end\|vdb: rw=" | tail -15;;
esac
"""


def record(out):
    """Capture the four loads on the plain disks: three in a row, and the last one alone."""
    files = {f"load{n}.fio": lab.load(FLUSHES, PHASE_S, "/dev/vda", seed=n) for n in range(2, 6)}
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


def lived(kind, mode, out):
    """Run the life of a cache in the guest; return its output."""
    device = lab.cached_device(kind)
    scripts = lab.scripts(out, *lab.options(kind, mode))
    files = scripts | {
        f"cached{n}.fio": lab.load(
            FLUSHES + "continue_on_error=io\n", PHASE_S, device, seed=n
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
    promise = lab.promised(capture, out, *lab.options(kind, mode), *own, *words)
    life = json.loads(promise.read_text())["events"]
    lost = out / "lost.json"
    lab.hybridsim(
        "replay", recorded / "pulled" / "vda.blktrace.0", "--scenario", out / "site.toml",
        *lab.options(kind, mode), *own, "--event", f"at={PHASE_S // 2}s,ssd=dies", "--json", lost,
    )  # fmt: skip
    return life, json.loads(lost.read_text())["events"]


STATES = re.compile(
    r"AT (\S+) (BEFORE-CRASH|AFTER-CRASH|BEFORE-REBOOT|AFTER-REBOOT|DETACH|PULL) (.*)"
)


def state(line):
    """Return dirty bytes, used bytes, read hits and misses of a line of the cache's state."""
    if not line.startswith("bcache"):
        if " cache " not in line or line.endswith(" Fail"):
            return None
        words = line.split(" cache ")[1].split()
        used, hits, misses, dirty = (int(words[at].split("/")[0]) for at in (3, 4, 5, 10))
        return {"dirty": dirty << 16, "used": used << 16, "hits": hits, "misses": misses}
    found = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
    if "dirty" not in found or "no cache" in line:
        return None
    from hybridsim.answers.check.observed import human_bytes

    free = re.search(r"unused=\s*(\d+)%", line)
    return {
        "dirty": human_bytes(found["dirty"]),
        "used": (100 - int(free[1])) * 64 * lab.MIB // 100 if free else None,
        "hits": int(found["hits"]),
        "misses": int(found["misses"]),
    }


def sampled(path):
    """Return the uptime and the state of each sample of a log."""
    rows = (line.partition(" ") for line in path.read_text().splitlines())
    return [(float(uptime), state(rest)) for uptime, _, rest in rows]


def events_of(output, out):
    """Return what happened in the guest: states, times in seconds, and errors of the load."""
    found = {
        match[2]: {"uptime_s": float(match[1])} | (state(match[3]) or {})
        for match in STATES.finditer(output)
    }
    crashed, rebooted = sampled(out / "2" / "crashed.log"), sampled(out / "3" / "rebooted.log")
    before, after = found["BEFORE-CRASH"]["dirty"], found["AFTER-CRASH"]["uptime_s"]
    flushed = [at for at, each in crashed if each and each["dirty"] <= before]
    out_at = [at for at, each in rebooted if at > found["DETACH"]["uptime_s"] and not each]
    fio = (out / "4" / "cached5.json").read_text()
    job = json.loads(fio[fio.index("{") :])["jobs"][0]
    last = [each for _, each in crashed if each][-1]
    return found | {
        "flushed_s": flushed[0] - after if flushed else None,
        "hit_after_crash": last["hits"] / max(last["hits"] + last["misses"], 1),
        "detached_s": out_at[0] - found["DETACH"]["uptime_s"] if out_at else None,
        "errors_after_pull": job.get("total_err", 0),
        "requests": job["read"]["total_ios"] + job["write"]["total_ios"],
        "stopped": "AFTER-PULL bcache" not in output and "AFTER-PULL 0 " not in output,
    }


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder of the captures on the plain disks."""
    lab.available()
    out = tmp_path_factory.mktemp("plain")
    record(out)
    return out


@pytest.mark.long
@pytest.mark.parametrize(("kind", "mode"), CACHES)
def test_the_events_of_a_cache_are_those_of_its_simulation(kind, mode, recorded, tmp_path):
    """States and counts; times depend on what else the host does."""
    real = events_of(lived(kind, mode, tmp_path), tmp_path)
    (crash, reboot, detach), (lost,) = simulated(recorded, tmp_path / "sim", kind, mode)
    print(json.dumps({"real": real, "simulated": [crash, reboot, detach, lost]}))
    used = real["BEFORE-CRASH"]["used"]
    assert abs(crash["cached_bytes"] - used) < 0.2 * used
    assert abs(real["AFTER-CRASH"]["used"] - used) < 0.1 * used
    if kind == "dm-cache":  # all of it is dirty; some is written back before the first look
        assert crash["dirty_after_bytes"] == crash["cached_bytes"]
        assert real["AFTER-CRASH"]["dirty"] > real["BEFORE-CRASH"]["dirty"]
    else:
        assert crash["dirty_after_bytes"] == crash["dirty_bytes"]
        assert real["AFTER-CRASH"]["dirty"] <= real["BEFORE-CRASH"]["dirty"]
    assert real["AFTER-REBOOT"]["dirty"] <= real["BEFORE-REBOOT"]["dirty"]
    assert real["detached_s"] is not None
    has_dirty = mode == "write-back"
    assert (lost["lost"]["bytes"] > 0) == has_dirty
    if kind == "bcache":  # write-through goes on; dirty data stop the device
        assert (real["errors_after_pull"] > 0, real["stopped"]) == (has_dirty, has_dirty)
    else:  # errors until it is removed by hand
        assert real["errors_after_pull"] > 0
