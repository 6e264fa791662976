"""The lab without a guest: served disks, images, processes and suites."""

import errno
import lzma
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hybridsim.serving import nbd
from validate.cli import main
from validate.errors import ExperimentError, MissingError
from validate.experiment import Cache
from validate.lab import guest, image, job, packages, places, processes, running, setup, suite
from validate.lab.disk import Disk, MemoryDisk
from validate.lab.errors import LabError
from validate.lab.machine import Disk as GuestDisk
from validate.lab.machine import command
from validate.lab.setup import Lab

MIB = 1 << 20
ROOT = Path(__file__).parents[1]


class SerialModel:
    """A model that serves requests one after another, each in `each_ns`."""

    def __init__(self, each_ns):
        self.each_ns, self.free_ns, self.waiting, self.seen = each_ns, 0, [], []

    @property
    def next_ns(self):
        return self.waiting[0][1] if self.waiting else 1 << 62

    def submit(self, now_ns, tag, op, offset, length):
        self.free_ns = max(now_ns, self.free_ns) + self.each_ns
        self.waiting.append((tag, self.free_ns))
        self.seen.append((op, offset, length))

    def advance(self, now_ns):
        done = [each for each in self.waiting if each[1] <= now_ns]
        self.waiting = self.waiting[len(done) :]
        return done


class Client:
    """The client's side of the NBD protocol."""

    def __init__(self, disk):
        self.socket, theirs = socket.socketpair()
        self.thread = threading.Thread(target=disk.serve, args=(theirs,))
        self.thread.start()
        self.theirs = theirs

    def receive(self, form):
        return struct.unpack(form, nbd.received(self.socket, struct.calcsize(form)))

    def greeted(self):
        assert self.receive(">8s8sH") == (b"NBDMAGIC", b"IHAVEOPT", 3)
        self.socket.sendall(struct.pack(">I", 3))
        return self

    def option(self, number, data=b""):
        self.socket.sendall(struct.pack(">8sII", b"IHAVEOPT", number, len(data)) + data)
        answers = []
        while not answers or answers[-1][0] in (2, 3):
            magic, asked, kind, length = self.receive(">QIII")
            assert (magic, asked) == (0x3E889045565A9, number)
            answers.append((kind, nbd.received(self.socket, length)))
        return answers

    def connected(self):
        self.greeted().option(nbd.GO, struct.pack(">I0sH", 0, b"", 0))
        return self

    def ask(self, kind, offset, length, data=b"", flags=0, cookie=7):
        head = struct.pack(">IHHQQI", 0x25609513, flags, kind, cookie, offset, length)
        self.socket.sendall(head + data)

    def answer(self, length=0):
        magic, error, cookie = self.receive(">IIQ")
        assert magic == 0x67446698
        return error, cookie, b"" if error else nbd.received(self.socket, length)

    def close(self):
        self.ask(nbd.DISCONNECT, 0, 0)
        self.thread.join(10)
        assert not self.thread.is_alive()


def disk(each_ns=0, **export):
    return Disk(nbd.Export(4 * MIB, **export), SerialModel(each_ns))


def test_handshake_has_size_and_flags():
    client = Client(disk(can_trim=False, is_rotational=True)).greeted()
    size, blocks, end = client.option(nbd.GO, struct.pack(">I0sH", 0, b"", 0))
    flags = nbd.HAS_FLAGS | nbd.SENDS_FLUSH | nbd.SENDS_FUA | nbd.SENDS_ZEROES | nbd.ROTATIONAL
    assert size == (3, struct.pack(">HQH", 0, 4 * MIB, flags))
    assert blocks == (3, struct.pack(">HIII", 3, 512, 4096, 32 * MIB))
    assert end == (1, b"")
    client.close()


def test_client_with_export_name_option_is_served():
    client = Client(disk()).greeted()
    client.socket.sendall(struct.pack(">8sII", b"IHAVEOPT", nbd.EXPORT_NAME, 0))
    assert client.receive(">QH")[0] == 4 * MIB
    client.ask(nbd.READ, 0, 4096)
    assert client.answer(4096) == (0, 7, bytes(4096))
    client.close()


def test_unknown_and_invalid_options_are_refused():
    client = Client(disk()).greeted()
    assert client.option(8) == [(1 << 31 | 1, b"")]  # structured replies
    assert client.option(nbd.INFO, b"") == [(1 << 31 | 3, b"")]
    assert [kind for kind, _ in client.option(nbd.LIST)] == [2, 1]
    assert client.option(nbd.ABORT) == [(1, b"")]
    client.thread.join(10)
    assert not client.thread.is_alive()


def test_written_data_are_read_until_they_are_trimmed():
    served = disk()
    client = Client(served).connected()
    data = bytes(range(256)) * 48
    client.ask(nbd.WRITE, 2048, len(data), data, flags=nbd.FUA)
    client.ask(nbd.FLUSH, 0, 0, cookie=8)
    assert [client.answer(), client.answer()] == [(0, 7, b""), (0, 8, b"")]
    client.ask(nbd.READ, 2048, len(data))
    assert client.answer(len(data)) == (0, 7, data)
    client.ask(nbd.TRIM, 4096, 8192)
    assert client.answer() == (0, 7, b"")
    client.ask(nbd.READ, 0, 16384)
    kept = data[:2048] + bytes(8192) + data[10240:]
    assert client.answer(16384)[2] == (bytes(2048) + kept + bytes(16384))[:16384]
    client.close()
    ops = [op for op, _, _ in served.model.seen]
    assert ops == [1 | 8, 3, 0, 2, 0]  # a forced write, a flush, a read, a discard, a read


@pytest.mark.parametrize(
    ("kind", "offset", "length", "error"),
    [
        (nbd.READ, 4 * MIB, 512, errno.EINVAL),
        (nbd.WRITE, 4 * MIB - 512, 1024, errno.ENOSPC),
        (nbd.WRITE_ZEROES, 4 * MIB, 1, errno.ENOSPC),
        (5, 0, 0, errno.EINVAL),
        (nbd.TRIM, 0, 4096, errno.EINVAL),
    ],
)
def test_invalid_request_gets_an_error_and_the_connection_stays(kind, offset, length, error):
    served = disk(can_trim=False)
    client = Client(served).connected()
    client.ask(kind, offset, length, bytes(length) if kind == nbd.WRITE else b"")
    assert client.answer()[0] == error
    assert served.model.seen == []
    client.ask(nbd.READ, 0, 512)
    assert client.answer(512)[0] == 0
    client.close()


def test_protocol_error_or_disconnect_ends_the_connection_only():
    served = disk()
    for nonsense in (b"GET / HTTP/1.1\r\n" * 9, b""):
        client = Client(served)
        client.socket.sendall(nonsense)
        client.socket.close()
        client.thread.join(10)
        assert not client.thread.is_alive()
    client = Client(served).connected()
    client.ask(nbd.READ, 0, 512)
    assert client.answer(512)[0] == 0
    client.close()


def test_answers_follow_the_times_of_the_model_and_are_logged():
    served = disk(each_ns=5_000_000)
    client = Client(served).connected()
    began = time.monotonic()
    for cookie in range(8):
        client.ask(nbd.READ, 4096 * cookie, 4096, cookie=cookie)
    cookies = [client.answer(4096)[1] for _ in range(8)]
    assert time.monotonic() - began >= 8 * 0.005
    assert cookies == list(range(8))
    client.close()
    rows = [served.log.values[i : i + 7] for i in range(0, 56, 7)]
    done = [row[2] for row in rows]
    assert done == [done[0] + i * 5_000_000 for i in range(8)]  # of the model, to the nanosecond
    assert all(row[3] >= row[2] for row in rows)


def test_data_and_model_go_on_for_the_next_client_after_a_crash():
    """A guest that reboots: what was in flight is lost; the disk answers in its usual time."""
    from hybridsim.scenario import Scenario
    from validate.lab import serve

    model, export = serve.model(Scenario.default(), "array", 64 * MIB)
    served = Disk(export, model)
    first = Client(served).connected()
    first.ask(nbd.WRITE, 8192, 4, b"kept")
    assert first.answer() == (0, 7, b"")
    for cookie in range(20):
        first.ask(nbd.READ, cookie * MIB, 4096, cookie=cookie)
    first.close()
    second = Client(served).connected()
    second.socket.settimeout(10)
    for cookie in range(100, 120):
        second.ask(nbd.READ, 8192, 4, cookie=cookie)
    answers = [second.answer(4) for _ in range(20)]
    assert sorted(answers) == [(0, cookie, b"kept") for cookie in range(100, 120)]
    second.close()


def test_disks_have_priority_over_the_guest_that_waits_for_them():
    """The guest runs with the priority that the disks inherit, as with `chrt -r 5`."""
    script = (
        "import os, sys\n"
        "from validate.lab.disk import wake_up_in_time\n"
        "try: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))\n"
        "except PermissionError: sys.exit(77)\n"
        "wake_up_in_time()\n"
        "print(os.sched_getscheduler(0) == os.SCHED_RR, os.sched_getparam(0).sched_priority)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no real-time priority without root")
    assert done.stdout.split() == ["True", "6"], done.stderr


def test_threads_that_serve_the_guest_have_priority_over_its_processors():
    child = subprocess.Popen(["sleep", "60"])
    try:
        processes.put_before(child.pid, "CPU ")
        assert os.sched_getscheduler(child.pid) == os.SCHED_OTHER  # as it was
        try:
            os.sched_setscheduler(child.pid, os.SCHED_RR, os.sched_param(5))
        except PermissionError:
            pytest.skip("no real-time priority without root")
        processes.put_before(child.pid, "sleep")
        assert os.sched_getparam(child.pid).sched_priority == 5
        processes.put_before(child.pid, "CPU ")
        assert os.sched_getparam(child.pid).sched_priority == 6
    finally:
        child.kill()
        child.wait()


def test_disk_computes_its_times_faster_than_it_must_answer():
    """A full write cache: interpreted, each of these completions takes 0.4 ms and more."""
    from hybridsim.scenario import Scenario
    from validate.lab import serve

    scenario = Scenario.load(ROOT / "validate/experiments/machine.toml")
    part = (scenario, "array", 1 << 30)
    serve.compile_model(*part)
    model, _ = serve.model(*part)
    for tag in range(600):  # its write cache has 256 ranges
        model.submit(0, tag, 1, tag * 7919 % 250_000 * 4096, 4096)
    began, done = time.process_time(), 0
    while done < 600:
        done += len(model.advance(model.next_ns))
    assert (time.process_time() - began) / 600 < 0.0003


def test_ranges_of_memory_are_zeroed_also_within_a_page():
    memory = MemoryDisk(MIB)
    memory.view[:] = b"x" * MIB
    memory.clear(100, 200)
    memory.clear(5000, 20000)
    memory.clear(8192, 4096)
    zeroes = [i for i, byte in enumerate(memory.view) if not byte]
    assert zeroes == [*range(100, 300), *range(5000, 25000)]


# Images and command line of a guest.


def module(path, name, *needs):
    path.mkdir(exist_ok=True)
    (path / f"{name}.ko").write_bytes(b"\x7fELF\0depends=" + ",".join(needs).encode() + b"\0rest")


def test_modules_follow_their_dependencies(tmp_path):
    module(tmp_path / "a", "virtio-blk", "virtio_ring", "virtio")
    module(tmp_path / "b", "virtio_ring", "virtio")
    module(tmp_path / "b", "virtio")
    files = image.module_files(tmp_path, ("virtio_blk", "ext4", "virtio"))
    assert [path.stem for path in files] == ["virtio", "virtio_ring", "virtio-blk"]


def test_compressed_modules_are_expanded_for_the_initramfs(tmp_path):
    plain, packed = tmp_path / "a/ext4.ko", tmp_path / "b"
    packed.mkdir()
    module(tmp_path / "a", "ext4", "virtio")
    (packed / "ext4.ko.xz").write_bytes(lzma.compress(plain.read_bytes()))
    (packed / "virtio.ko.xz").write_bytes(lzma.compress(b"\x7fELF\0depends=\0rest"))
    files = image.module_files(packed, ("ext4",))
    assert [path.name for path in files] == ["virtio.ko.xz", "ext4.ko.xz"]
    (tmp_path / "busybox").write_bytes(b"odd")
    image.initramfs(tmp_path / "busybox", packed, tmp_path / "initrd")
    archive = (tmp_path / "initrd").read_bytes()
    assert b"modules/01-ext4.ko\0" in archive
    assert plain.read_bytes() in archive


def test_initramfs_is_a_valid_cpio_archive(tmp_path):
    busybox = tmp_path / "busybox"
    busybox.write_bytes(b"odd")
    (tmp_path / "modules").mkdir()
    image.initramfs(busybox, tmp_path / "modules", tmp_path / "initrd")
    data, at, names = (tmp_path / "initrd").read_bytes(), 0, {}
    while "TRAILER!!!" not in names:
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        assert data[at : at + 6] == b"070701"
        start = at + 110
        name = data[start : start + fields[11] - 1].decode()
        body = start + fields[11] + -(start + fields[11]) % 4
        names[name] = data[body : body + fields[6]]
        at = body + fields[6] + -(body + fields[6]) % 4
    assert names["bin/busybox"] == b"odd"
    assert names["init"].startswith(b"#!/bin/busybox sh")


def test_guest_has_no_devices_but_its_disks():
    lab = Lab(["qemu"], "", "/k", "/m", "/b", "/root.img", "6.1", {})
    words = command(
        lab, [GuestDisk("slow", MIB), GuestDisk("fast", MIB, True, False)], 512, 1, "tcg"
    )
    assert "-nodefaults" in words
    assert not [word for word in words if "net" in word and "node-name" not in word]
    disks = [word for word in words if word.startswith("virtio-blk-pci")]
    assert [word.split(",")[1] for word in disks] == [
        f"drive=lab-{name}" for name in ("slow", "fast", "root", "job", "out")
    ]
    assert "discard=off" in disks[0]
    assert "discard=on" in disks[1]
    assert all("request-merging=off" in word.split(",") for word in disks)


# Missing requirements.


def test_missing_apt_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"apt-get.*Use Debian"):
        packages.Apt(tmp_path)


def test_other_processor_architecture_is_refused(tmp_path, monkeypatch):
    for tool in packages.NEEDED:
        (tmp_path / tool).write_text("#!/bin/sh\necho arm64\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(MissingError, match=r"amd64.*this system is arm64"):
        packages.Apt(tmp_path)


def test_unwritable_cache_folder_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HYBRIDSIM_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(MissingError, match="HYBRIDSIM_CACHE_DIR"):
        places.lab_folder()


# Processes and folders after a kill.


def test_later_run_removes_the_folder_and_processes_of_a_killed_one(tmp_path):
    """A process that outlived its parent is identified by its working folder."""
    started = """
import sys, time
from pathlib import Path
from validate.lab.processes import folder_below
with folder_below(Path(sys.argv[1])) as folder:
    print(folder.path, flush=True)
    time.sleep(60)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", started, tmp_path], stdout=subprocess.PIPE, text=True
    )
    folder = child.stdout.readline().strip()
    assert processes.clear_leftovers(tmp_path) == []  # it is running
    left = subprocess.Popen(["sleep", "60"], cwd=folder)
    bystander = subprocess.Popen(["sleep", "60"])
    for name, process in (("qemu", left), ("other", bystander)):
        with open(f"{folder}/{name}.pid", "w") as file:
            file.write(str(process.pid))
    child.kill()
    child.wait()
    assert processes.clear_leftovers(tmp_path) == [os.path.basename(folder)]
    assert left.wait(10) == -signal.SIGKILL
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
    assert list(tmp_path.iterdir()) == []


def test_child_dies_with_its_parent(tmp_path):
    started = """
import sys, time
from pathlib import Path
from validate.lab.processes import Folder
print(Folder(Path(sys.argv[1])).start("sleeper", ["sleep", "60"]).pid, flush=True)
time.sleep(60)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", started, tmp_path], stdout=subprocess.PIPE, text=True
    )
    pid = int(child.stdout.readline())
    child.kill()
    child.wait()
    until = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(pid)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"  # a zombie may have no parent to reap it
    except OSError:
        return False


def test_a_lab_with_a_kernel_of_its_own_keeps_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_CACHE_DIR", str(tmp_path))
    asked = []

    def built(folder, release, fetch_qemu, progress):
        asked.append(release)
        place = folder / f"guest-{release or 'own'}"
        place.mkdir()
        for name in ("qemu", "vmlinuz", "busybox", "root.img"):
            (place / name).touch()
        return Lab([f"{place}/qemu"], "", f"{place}/vmlinuz", f"{place}/modules",
                   f"{place}/busybox", f"{place}/root.img", release, {})  # fmt: skip

    monkeypatch.setattr(setup, "_build", built)
    (places.lab_folder() / "guest-old").mkdir()
    own, newer = (setup.set_up(guest.ignore, release) for release in ("", "6.12"))
    assert (own, newer) == (setup.find(), setup.find("6.12"))
    assert sorted(path.name for path in places.lab_folder().glob("guest-*")) == [
        "guest-6.12", "guest-own",
    ]  # fmt: skip
    assert setup.set_up(guest.ignore, "6.12") == newer
    assert asked == ["", "6.12"]
    with pytest.raises(ExperimentError, match=r"write a release, for example 6\.12"):
        setup.set_up(guest.ignore, "newest")


# Runs and suites.

EXPERIMENT = """
name = "x"
[cache]
kind = "dm-cache"
size = "64MiB"
[origin]
size = "1GiB"
[load]
duration = "30s"
job = "[a]\\nrw=randread\\n"
"""


def test_disks_of_an_experiment_have_its_sizes(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(EXPERIMENT)
    what = running.experiment.load(path)
    served = running.disks(what, 0)
    assert [each.words for each in served] == [
        f"slow=array:{1 << 30}",
        f"fast=ssd:{what.fast_bytes}",
    ]
    assert running.command(served)[5:] == [
        "experiment.toml", "--slow", "{slow}", "--erase", "{slow}", "--fast", "{fast}",
        "--erase", "{fast}", "--yes", "--state", "/run/validate", "--out", "{out}/run",
    ]  # fmt: skip
    assert [each.part for each in running.disks(what, 3)] == ["member"] * 3 + ["ssd"]


def test_guest_gets_the_programs_of_open_cas(tmp_path):
    for name in ("casadm", "cas_bd.ko", "cas_cache.ko", "other.ko"):
        (tmp_path / name).write_text(name)
    cache = Cache("open-cas", "wt", programs=str(tmp_path))
    assert running.open_cas_files(cache) == {
        f"open-cas/{name}": name.encode() for name in ("casadm", "cas_bd.ko", "cas_cache.ko")
    }
    words = running.command([], has_programs=True)
    assert words[words.index("--open-cas") + 1] == "open-cas"
    assert running.open_cas_files(Cache("bcache", "writeback")) == {}


def test_open_cas_without_programs_is_refused_before_anything_is_done(tmp_path):
    path = tmp_path / "x.toml"
    text = EXPERIMENT.partition("[cache]")[0] + '[cache]\nkind = "open-cas"\nsize = "64MiB"\n'
    path.write_text(f"{text}[load]{EXPERIMENT.partition('[load]')[2]}")
    with pytest.raises(MissingError, match="--open-cas DIR"):
        running.run(path, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_run_that_needs_too_much_memory_is_refused(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(EXPERIMENT.replace("1GiB", "1024TiB").replace("randread", "randwrite"))
    with pytest.raises(MissingError, match=r"MB of memory.*\[origin\] smaller"):
        running.run(path, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_suite_skips_experiments_that_are_done(tmp_path, monkeypatch):
    results = tmp_path / "results"
    for name in "abcd":
        (tmp_path / f"{name}.toml").write_text(EXPERIMENT)

    def ran(path, out, scenario, progress, kernel="", open_cas=None):
        out.mkdir(parents=True)
        (out / "experiment.toml").write_text(EXPERIMENT)
        if path.stem == "c":
            raise MissingError("no fio")
        (out / "environment.json").write_text('{"complete": true}')

    monkeypatch.setattr(running, "run", ran)
    (tmp_path / "machine.toml").write_text("# the scenario, not an experiment")
    todo = suite.items(tmp_path, results)
    assert running.machine_for(tmp_path, None) == tmp_path / "machine.toml"
    assert running.machine_for(results, None) == running.MACHINE
    ran(tmp_path / "a.toml", results / "a", None, None)
    (results / "d").mkdir()
    (results / "d" / "experiment.toml").write_text("another")
    lines = []
    assert suite.run(todo, tmp_path, lines.append) == 2
    assert [line for line in lines if "running" not in line] == [
        "1/4 a: done before",
        "2/4 b: done in 0 s",
        "3/4 c: failed: no fio",
        f"4/4 d: {results}/d is of another experiment: remove it, or specify another folder "
        "with -o",
    ]
    assert [each.state for each in todo] == [suite.DONE, suite.DONE, suite.HALF, suite.OTHER]


def test_suite_leaves_out_open_cas_unless_its_programs_are_named(tmp_path, monkeypatch):
    text = EXPERIMENT.partition("[cache]")[0] + '[cache]\nkind = "open-cas"\nsize = "64MiB"\n'
    (tmp_path / "a.toml").write_text(f"{text}[load]{EXPERIMENT.partition('[load]')[2]}")
    ran, lines = [], []
    monkeypatch.setattr(running, "run", lambda path, *_: ran.append(path.stem))
    todo = suite.items(tmp_path, tmp_path / "results")
    assert suite.run(todo, tmp_path, lines.append) == 0
    assert (ran, lines[0].partition(": ")[2][:24]) == ([], "left out: needs Open CAS")
    assert suite.run(todo, tmp_path, lines.append, open_cas=tmp_path) == 0
    assert ran == ["a"]


def test_folder_without_experiments_is_refused(tmp_path):
    with pytest.raises(ExperimentError, match="no experiments"):
        suite.items(tmp_path, tmp_path)


@pytest.mark.parametrize("disk", ["slow", "slow=", "Slow=1G", "slow=0", "slow=1X"])
def test_invalid_disk_option_is_refused(disk, capsys, tmp_path):
    words = ["lab", "exec", "--disk", disk, "-o", str(tmp_path), "--", "true"]
    assert main(words) == 2
    assert "NAME=SIZE" in capsys.readouterr().err


# Faults of a guest, simulated by a program with the same output.


def watched(script, *, boot_s=5.0, limit_s=5.0):
    lines = []
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        try:
            _, codes, _ = guest._watched(process, time.monotonic(), boot_s, limit_s, lines.append)
        finally:
            process.kill()
    return codes, lines


def test_output_and_exit_codes_of_a_guest_are_returned():
    script = 'echo "LAB-UP 6.1"; echo LAB-BEAT 1; echo ":two words"; echo "LAB-RESULTS [0, 3]"'
    assert watched(script) == ([0, 3], ["two words"])


def test_the_guests_clock_is_known_by_the_heartbeat_that_came_soonest(monkeypatch):
    times = iter((1003.5, 1005.2, 1007.9))
    monkeypatch.setattr(guest.time, "time", lambda: next(times))
    beats = "; ".join(f"echo LAB-BEAT {uptime}" for uptime in ("3.0", "5.0", "7.0"))
    with subprocess.Popen(["sh", "-c", f'{beats}; echo "LAB-RESULTS [0]"'], stdout=-1) as process:
        _, _, zero_unix_s = guest._watched(process, time.monotonic(), 5.0, 5.0, lambda line: None)
    assert zero_unix_s == pytest.approx(1000.2)


def test_guest_that_does_not_boot_times_out():
    with pytest.raises(LabError, match="did not come up"):
        watched("exec sleep 60", boot_s=0.1)


def test_guest_without_heartbeat_times_out(monkeypatch):
    monkeypatch.setattr(guest, "SILENCE_S", 0.2)
    with pytest.raises(LabError, match="it hangs"):
        watched("echo LAB-UP 6.1; exec sleep 60")


def test_guest_that_exceeds_its_limit_times_out():
    with pytest.raises(LabError, match="not done after"):
        watched(
            "echo LAB-UP 6.1; while sleep 0.1; do echo LAB-BEAT 1; done", boot_s=0.2, limit_s=0.3
        )


def test_guest_that_ends_without_results_is_an_error():
    with pytest.raises(LabError, match="without results"):
        watched("echo LAB-UP 6.1")


def test_incomplete_result_archive_is_an_error(tmp_path):
    (tmp_path / "out.img").write_bytes(b"no archive" * 100)
    with pytest.raises(LabError, match="cannot be read"):
        job.unpack(tmp_path / "out.img", tmp_path / "out")
