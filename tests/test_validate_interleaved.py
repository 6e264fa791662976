"""Random interleavings of `validate` with another process: `validate` never changes its data.

The machine is simulated with files (fake_blocks.py).  Runs and `clean` are child processes.  At
each point where the other process may run in between (an open, a read, a tool, a line of the
journal, a link) it may write without a claim, or claim a device as mkfs, mount, mdadm, pvcreate,
cryptsetup and ZFS do.  At each of these points but reads, and within a write, the child may be
killed.  Between runs disks are swapped and the machine is rebooted.  A log has all writes of the
other process; after each round the media are compared with it.

Writes without a claim *after the last check and before the end of the load* may be overwritten by
the load: the device is being erased then, and its owner has consented twice.

    HYBRIDSIM_INTERLEAVINGS=2000 pytest -m long tests/test_validate_interleaved.py
"""

import contextlib
import functools
import json
import os
import random
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from fake_blocks import Blocks

from validate import (
    devices,
    experiment,
    journal,
    planning,
    remains,
    request,
    signatures,
    site,
)
from validate.errors import ValidateError
from validate.experiment import parse
from validate.planning import Place
from validate.steps import ends
from validate.steps.ends import HandedOver, Occupy
from validate.steps.files import CreateFile
from validate.steps.mapper import MapCache, MapLinear
from validate.steps.opencas import ZeroPart

MIB = 1 << 20
SIZE = 7 * MIB
END = 128 << 10  # smaller ends than on a real disk, for speed
LONG = 224 << 10  # reaches from one sampled place to the next
SHORT_RUNS = 30
PLACES = 24  # of the points of a preparation
READS = 20  # reads per other point, about: the other process acts at them more rarely
TEXT = """
name = "t"
[cache]
kind = "{kind}"
{cache}
[origin]
{origin}
[load]
duration = "1s"
job = '''
[a]
rw=randwrite
bs=4k
'''
"""
CACHE = 'size = "4MiB"\nblock = "64KiB"\nmetadata = "2MiB"'
KINDS = {
    "a part": ("none", "", 'size = "2MiB"'),
    "all of it": ("none", "", ""),
    "dm-cache": ("dm-cache", CACHE, 'size = "2MiB"'),
    "dm-cache over all of it": ("dm-cache", CACHE, ""),
    "dm-writecache": ("dm-writecache", 'size = "4MiB"', 'size = "2MiB"'),
    "dm-writecache over all of it": ("dm-writecache", 'size = "4MiB"', ""),
    "Open CAS": ("open-cas", 'size = "4MiB"', 'size = "2MiB"'),
    "Open CAS over all of both": ("open-cas", 'size = "7MiB"', ""),
}
FORMATS = {
    "ext4": (1080, b"\x53\xef"),
    "gpt": (512, b"EFI PART"),
    "lvm": (512, b"LABELONE"),
    "luks": (0, b"LUKS\xba\xbe"),
    "md": (4096, signatures.MD),
    "zfs": (128 << 10, (0x00BAB10C).to_bytes(8, "little")),
    "bcachefs": (4096 + 24, bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")),
}


def data_of(seed, length):
    """Return data of the other process; its sectors differ from one another and from zeros."""
    return random.Random(seed).randbytes(length)


class World:
    """The machine, the events on it, and the data that must be intact."""

    def __init__(self, root, seed):
        self.root, self.random = root, random.Random(seed)
        self.seed = seed
        self.log = root / "log"
        root.mkdir(exist_ok=True)
        blocks = Blocks.make(root)
        for name, number, serial in (("sda", "8:0", "naa.1"), ("sdb", "8:16", "")):
            blocks.add(name, number, SIZE, serial)
        (root / "shelf").mkdir()
        (root / "files").mkdir()
        self.log.touch()
        self.read_to = self.line = 0
        self.wanted, self.stamp, self.spans = {}, {}, {}  # by medium
        self.verified, self.files = {}, {}
        self.counts = {"runs": 0, "kills": 0, "done": 0, "refused": 0, "foreign": 0, "reboots": 0,
                       "swaps": 0, "cleans": 0}  # fmt: skip

    # Actions of the other process.

    def record(self, **entry):
        with self.log.open("a") as stream:
            stream.write(json.dumps(entry) + "\n")

    def write(self, path, at, length, rng):
        seed = rng.getrandbits(48)
        data = data_of(seed, length)
        self.record(who="foreign", medium=path.stat().st_ino, at=at, length=length, seed=seed)
        with path.open("r+b", buffering=0) as stream:
            stream.seek(at)
            stream.write(data)

    def exact(self, path, at, data):
        self.record(who="foreign", medium=path.stat().st_ino, at=at, length=len(data),
                  data=data.hex())  # fmt: skip
        with path.open("r+b", buffering=0) as stream:
            stream.seek(at)
            stream.write(data)

    def foreign(self, system, rng):
        """Perform one random action of the other process."""
        path = system.dev / rng.choice(["sda", "sdb"])
        how = rng.choice(
            ["raw", "raw", "raw", "format", "mount", "crypt", "umount", "file", "mapped"]
        )
        with contextlib.suppress(OSError):
            if how == "raw":
                at, length = rng.choice([
                    (0, 21), (0, 4096), (4096, 512), (512 * rng.randrange(END // 512), 512),
                    (END + rng.randrange(SIZE - 2 * END - LONG), LONG), (SIZE - 4096, 4096),
                    (SIZE - 21, 21),
                ])  # fmt: skip
                self.write(path, at, length, rng)
            elif how == "format":
                system.close_device(system.open_device(str(path), os.O_RDWR | os.O_EXCL))
                at, magic = FORMATS[rng.choice(list(FORMATS))]
                self.exact(path, at, magic)
                self.write(path, MIB + 4096 * rng.randrange(1000), LONG, rng)
            elif how in ("mount", "crypt"):
                system.hold(path.name, how)
                if how == "crypt":  # plain dm-crypt has no signature
                    self.write(path, 0, 64 << 10, rng)
                self.write(path, 2 * MIB, LONG, rng)
            elif how == "umount":
                system.unhold(path.name)
            elif how == "mapped":  # it uses a mapped device of a killed run as a disk
                for node in sorted(system.dev.glob("dm-*")):
                    if not (system.sys / "class/block" / node.name / "dm/table").exists():
                        continue  # it has no sectors yet
                    fd = system.open_device(str(node), os.O_RDWR | os.O_EXCL)
                    base, offset = system._bottom(fd, 0)
                    system.close_device(fd)
                    self.write(base, offset, LONG, rng)
            else:
                self.foreign_file(rng)

    def foreign_file(self, rng):
        path = self.root / "files/slow.img"
        how = rng.choice(["make", "replace", "remove"])
        content = rng.choice([b"", bytes(MIB), bytes(MIB + 4096), b"precious"])
        if how == "remove" and path.exists():
            self.record(who="removed", file=path.stat().st_ino)
            path.unlink()
        elif how == "make" and not path.exists():
            self._make(path, content)
        elif how == "replace":
            if path.exists():
                self.record(who="removed", file=path.stat().st_ino)
            other = path.with_suffix(".new")
            self._make(other, content)
            other.replace(path)

    def _make(self, path, content):
        with path.open("xb") as stream:
            stream.write(content)
        self.record(who="made", file=path.stat().st_ino, data=content.hex())

    # Actions of `validate`, each in a child process.

    def child(self, work, *, chance, kill):
        """Run `work` in a child, with actions of the other process and perhaps a kill."""
        rng = random.Random(self.random.getrandbits(64))
        kill_at = rng.randrange(1, 120) if kill else 0
        number = os.fork()
        if number:
            code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
            self.counts["kills"] += code == -9
            self.counts["done"] += code == 0
            self.counts["refused"] += code == 3
            assert code in (0, 3, -9), f"seed {self.seed}: exit code {code}"
            return code
        code = 9
        try:
            os.dup2(os.open(self.root / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
            ends.PATIENCE_S = 0
            signatures.END = ends.ROOM = planning.ROOM = END
            signatures.SAMPLES = 32
            experiment.OPEN_CAS_MIN = MIB
            system = self.system()
            self._hook(system, rng, chance, kill_at)
            try:
                work(system, rng)
                code = 0
            except ValidateError as error:
                os.write(2, f"{error}\n".encode())
                code = 3
        except BaseException:
            import traceback

            traceback.print_exc(file=open(self.root / "traceback", "w"))  # noqa: SIM115
        finally:
            os._exit(code)

    def system(self):
        root = self.root
        return Blocks(sys=root / "sys", proc=root / "proc", state=root / "state", uid=0,
                      dev=root / "dev", root=root)  # fmt: skip

    def _hook(self, system, rng, chance, kill_at):
        """Install the actions of the other process, and the kill, at each point."""
        state = {"remaining": kill_at, "busy": False}

        def point(what):
            if state["busy"]:
                return
            is_read = what == "read"  # frequent; a kill at a read changes nothing
            state["remaining"] -= not is_read
            if state["remaining"] == 0 and not is_read:
                os.kill(os.getpid(), 9)
            if rng.random() < chance / (READS if is_read else 1):
                state["busy"] = True
                try:
                    self.foreign(system, rng)
                finally:
                    state["busy"] = False

        def torn(data):
            if state["busy"]:
                return None
            state["remaining"] -= 1
            return rng.randrange(len(data) // 512 + 1) * 512 if state["remaining"] == 0 else None

        system.point, system.torn = point, torn
        system.formatted = lambda medium, at, data: self.record(
            who="load", medium=medium.stat().st_ino, at=at, length=len(data))  # fmt: skip
        around(journal.Journal, "write", point)
        around(CreateFile, "_link", point)
        around(os, "unlink", point)
        before(HandedOver, "verify", lambda self, *_: self.is_loaded or log_verified(self.device))
        after(Occupy, "seal", lambda self, _: self.token in system.sealed and log_sealed(self))
        before(ZeroPart, "content", lambda self, claim: log_stopped(claim.fd))
        after(remains, "save", lambda device, *_: self.record(
            who="noted", medium=(system.dev / device.name).stat().st_ino))  # fmt: skip

        def log_verified(device):
            self.record(who="verified", medium=(system.dev / device.name).stat().st_ino)

        def log_stopped(fd):
            medium, offset = system._bottom(fd, 0)
            self.record(who="stopped", medium=medium.stat().st_ino, at=offset, length=SIZE)

        def log_sealed(step):
            node = Path(step.path)
            if node.exists():
                self.record(who="sealed", medium=node.stat().st_ino)

    def build(self, system, rng, kind=""):
        """Act like `request.check`, the question to the user, and `building.build`."""
        forced, kind = bool(kind), kind or rng.choice(list(KINDS))
        name, cache, origin = KINDS[kind]
        what = parse(TEXT.format(kind=name, cache=cache, origin=origin))
        names = ["sda", "sdb"]
        if not forced:
            rng.shuffle(names)
        chosen = [devices.find(str(system.dev / each), system) for each in names]
        chosen = chosen if name != "none" else chosen[:1]
        try:
            problems = [why for each in chosen if (why := request._problem(each, system))]
            if problems:
                raise ValidateError("\n".join(problems))
            places = [Place(each.path, each.size_bytes, each.identity(system)) for each in chosen]
            system.point("the question")
            with site.site(system) as here:
                if rng.random() < 0.5:
                    here.do(CreateFile(str(self.root / "files/slow.img"), MIB, "ef" * 16))
                fast = places[1] if len(places) > 1 else None
                plan = planning.plan(what, places[:1], fast, here.scene.facts["id"])
                for step in plan.steps:
                    here.do(step)
                ends.begin_load(here.scene)
                self.load(here, rng)
        finally:
            devices.release_claim(system)

    def load(self, here, rng):
        """Write like fio and the caches: through the mapped devices, or to a whole device."""
        system = here.scene.system
        for role in {"origin", "data", "metadata"} & here.scene.roles.keys():
            device = devices.of_number(here.scene.roles[role], system)
            for _ in range(rng.randrange(1, 4)):
                at = rng.choice([0, 4096 * rng.randrange(device.size_bytes // 4096 - 2)])
                self.load_at(here, role, at, rng)

    def load_at(self, here, role, at, rng):
        system = here.scene.system
        fd = os.open(devices.of_number(here.scene.roles[role], system).node, os.O_RDWR)
        base, offset = system._bottom(fd, at)
        data = rng.randbytes(8192)
        self.record(who="load", medium=base.stat().st_ino, at=offset, length=len(data))
        system.pwrite(fd, at, data)
        system.close_device(fd)

    def clean(self, system, rng):
        with journal.exclusive(system):
            site.clean(system)

    # Between runs.

    def swap(self):
        """Replace a disk by another, perhaps by one that was removed before."""
        system, rng = self.system(), self.random
        name = rng.choice(["sda", "sdb"])
        number = {"sda": "8:0", "sdb": "8:16"}[name]
        folder = (system.sys / "class/block" / name).resolve()
        if any((folder / "holders").iterdir()):
            return  # a disk in use is not removed; reboots simulate that
        serial = system.read(folder / "wwid", "")
        system.take_out(name)
        shelf = self.root / "shelf"
        others = sorted(shelf.iterdir())
        (system.dev / name).rename(shelf / f"{len(others)}-{self.random.getrandbits(32)}")
        if others and rng.random() < 0.5:
            rng.choice(others).rename(system.dev / name)
        serial = rng.choice([serial, "naa.9", ""])
        system.add(name, number, SIZE, serial)
        self.counts["swaps"] += 1

    def step(self):
        rng = self.random
        what = rng.choices(["build", "clean", "foreign", "reboot", "swap", "wipe"],
                           [6, 3, 2, 1, 1, 4])[0]  # fmt: skip
        chance = rng.choice([0, 0, 0.01, 0.05])
        if what == "build":
            self.counts["runs"] += 1
            self.child(self.build, chance=chance, kill=rng.random() < 0.6)
        elif what == "clean":
            self.counts["cleans"] += 1
            self.child(self.clean, chance=chance, kill=rng.random() < 0.3)
        elif what == "foreign":
            self.foreign(self.system(), rng)
        elif what == "reboot":
            self.system().reboot()
            self.counts["reboots"] += 1
        elif what == "swap":
            self.swap()
        else:
            self.wipe()
        self.check()

    def wipe(self):
        """Erase all disks and files, as their owner may."""
        system = self.system()
        for name in ("sda", "sdb"):
            system.unhold(name)
            with contextlib.suppress(OSError):
                system.close_device(
                    system.open_device(str(system.dev / name), os.O_RDWR | os.O_EXCL)
                )
                self.record(who="wiped", medium=(system.dev / name).stat().st_ino)
                os.truncate(system.dev / name, 0)
                os.truncate(system.dev / name, SIZE)
        path = self.root / "files/slow.img"
        if path.exists():
            self.record(who="removed", file=path.stat().st_ino)
            path.unlink()

    # The invariant.

    def check(self):
        """Assert that all bytes and files of the other process are intact."""
        with self.log.open() as stream:
            stream.seek(self.read_to)
            new = stream.read()
            self.read_to = stream.tell()
        for line in new.splitlines():
            self.line += 1
            self.replay(json.loads(line))
        media = {path.stat().st_ino: path for folder in ("dev", "shelf")
                 for path in (self.root / folder).iterdir()}  # fmt: skip
        for medium, spans in self.spans.items():
            path, lost = media[medium], []
            is_there = np.memmap(path, np.uint8, "r")
            for span in spans:
                kept = self.stamp[medium][span] > 0
                bad = kept & (is_there[span] != self.wanted[medium][span])
                lost += [span.start + int(bad.argmax())] if bad.any() else []
            assert not lost, (
                f"seed {self.seed}: byte {lost[0]} of {path.name} was written by another process "
                f"(line {self.stamp[medium][lost[0]]} of its log) and changed"
            )
        there = {path.stat().st_ino: path.read_bytes() for path in (self.root / "files").iterdir()}
        for number, content in self.files.items():
            assert there.get(number) == content, (
                f"seed {self.seed}: a file of another process is lost"
            )

    def replay(self, entry):
        """Apply a line of the log: which bytes belong to others, and where the load may write."""
        who, medium = entry["who"], entry.get("medium")
        if medium is not None and medium not in self.wanted:
            self.wanted[medium] = np.zeros(SIZE, np.uint8)
            self.stamp[medium] = np.zeros(SIZE, np.int16)
            self.spans[medium] = []
        wanted, stamp = self.wanted.get(medium), self.stamp.get(medium)
        verified = self.verified.get(medium, 0)
        span = slice(entry.get("at", 0), entry.get("at", 0) + entry.get("length", 0))
        if who == "foreign":
            is_short = "data" in entry
            data = (
                bytes.fromhex(entry["data"])
                if is_short
                else data_of(entry["seed"], entry["length"])
            )
            wanted[span] = np.frombuffer(data, np.uint8)
            stamp[span] = self.line
            self.spans[medium].append(span)
            self.counts["foreign"] += 1
        elif who == "verified":
            self.verified[medium] = self.line
        elif who == "load":
            early = (stamp[span] > 0) & (stamp[span] < verified)
            assert verified, f"seed {self.seed}: a load on a device that was never verified"
            assert not early.any(), f"seed {self.seed}: the load overwrote data of others: {entry}"
            stamp[span] = 0
        elif who == "sealed":
            for end in (stamp[:END], stamp[-END:]):
                end[end > verified] = 0
        elif who == "stopped":  # until then the cache wrote to it
            stamp[span][stamp[span] > verified] = 0
        elif who == "noted":
            middle = stamp[END:-END]
            middle[middle > verified] = 0
        elif who == "wiped":
            stamp[:] = 0
            self.spans[medium] = []
        elif who == "made":
            self.files[entry["file"]] = bytes.fromhex(entry["data"])
        elif who == "removed":
            self.files.pop(entry["file"], None)


def around(owner, name, point):
    whole = getattr(owner, name)

    def wrapped(*words, **more):
        point(name)
        try:
            return whole(*words, **more)
        finally:
            point(name)

    setattr(owner, name, wrapped)


def before(owner, name, then):
    whole = getattr(owner, name)

    def wrapped(*words, **more):
        then(*words)
        return whole(*words, **more)

    setattr(owner, name, wrapped)


def after(owner, name, then):
    whole = getattr(owner, name)

    def wrapped(*words, **more):
        result = whole(*words, **more)
        then(*words)
        return result

    setattr(owner, name, wrapped)


def interleave(seed, steps=12):
    """Run one interleaving; return the counts of its events."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    root = Path(tempfile.mkdtemp(prefix="interleaved-", dir=place))
    try:
        world = World(root, seed)
        for _ in range(steps):
            world.step()
        return world.counts
    finally:
        if not os.environ.get("HYBRIDSIM_KEEP"):
            shutil.rmtree(root)


def many(seeds):
    total = {}
    for seed in seeds:
        for name, count in interleave(seed).items():
            total[name] = total.get(name, 0) + count
    return total


def test_data_of_others_stay_intact():
    total = many(range(SHORT_RUNS))
    for name in ("kills", "done", "refused", "foreign", "reboots", "swaps", "cleans"):
        assert total[name] > 5, total  # otherwise the test would prove nothing


def zero_both_ends(self, claim, device, system):
    """A former fault: zero a device without a signature in the same boot."""
    for at in (0, device.size_bytes - END):
        claim.write(at, bytes(END))


def remove_it(self, path, system):
    """A former fault: remove a file of that name that is empty or of the same size."""
    if Path(path).is_file() and Path(path).stat().st_size in (0, self.size_bytes):
        Path(path).unlink()


def seal_always(self, system):
    """A fault: seal the ends although no load has begun."""
    device = self._find_again(system)
    if device is not None:
        read = ends._shared(device, system)
        system.sealed[self.token] = ends.of_device(read, device.size_bytes)


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (Occupy, "_give_back", zero_both_ends),
        (CreateFile, "_remove", remove_it),
        (HandedOver, "verify", lambda *_: None),
        (Occupy, "seal", seal_always),
    ],
)
def test_fault_is_detected(owner, name, fault, monkeypatch):
    """Each of these faults loses data; some of 300 interleavings must detect it."""
    monkeypatch.setattr(owner, name, fault)
    with pytest.raises(AssertionError, match=r"lost|changed|overwrote|verified"):
        many(range(500, 800))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind][2]])
def test_undisturbed_runs_accept_the_same_devices_again(kind, tmp_path):
    """The load of the first run fills them between their ends."""
    world = World(tmp_path / "world", 1)
    for _ in range(3):
        code = world.child(lambda *words: world.build(*words, kind), chance=0, kill=False)
        assert code == 0, (world.root / "stderr").read_text()


def test_ends_of_a_device_that_open_cas_had_as_a_whole_are_zeros_again(tmp_path):
    """Open CAS writes as it stops, after the ends of its device were sealed."""
    world = World(tmp_path / "world", 1)
    kind = "Open CAS over all of both"
    code = world.child(lambda *words: world.build(*words, kind), chance=0, kill=False)
    assert code == 0, (world.root / "stderr").read_text()
    for name in ("sda", "sdb"):
        data = (world.root / "dev" / name).read_bytes()
        assert not any(data[:END]), name
        assert not any(data[-END:]), name
    assert not list((world.root / "dev/disk/by-id").iterdir())


def fill(world, here, rng):
    """Act as a load that writes where the next run zeroes the parts."""
    for role in {"origin", "data", "metadata"} & here.scene.roles.keys():
        world.load_at(here, role, 0, rng)


def disturbed(world, number, name):
    """Return a build with a write without a claim at the n-th point of the preparation."""
    count = {"points": 0, "depth": 0}

    def work(system, rng):
        def point(_):
            if count["depth"] != 1:
                return
            count["points"] += 1
            if count["points"] == number:
                at = END + rng.randrange(MIB - LONG)
                world.write(system.dev / name, at, LONG, rng)

        def step(here, one):
            count["depth"] = int(isinstance(one, (Occupy, MapLinear, MapCache)))
            do(here, one)
            count["depth"] = 0

        do = site.Site.do
        site.Site.do = step
        system.point = point
        world.build(system, rng, "dm-cache")
        (world.root / "points").write_text(str(count["points"]))

    return work


@pytest.mark.parametrize("name", ["sda", "sdb"])
def test_data_written_at_any_point_of_the_preparation_stay_intact(name, tmp_path):
    """Write without a claim, at each point in turn, to a part that a former load filled.

    The part is zeroed in the preparation.  Former faults: a write during the check, to a place
    that was already read, was zeroed; and a later one was taken for content of our own.
    """
    world = World(tmp_path / "world", 1)
    world.load = functools.partial(fill, world)
    build = functools.partial(world.build, kind="dm-cache")
    assert world.child(build, chance=0, kill=False) == 0
    assert world.child(disturbed(world, 0, name), chance=0, kill=False) == 0
    points = int((world.root / "points").read_text())
    for number in range(1, points + 1, points // PLACES):
        world.wipe()
        assert world.child(build, chance=0, kill=False) == 0
        world.child(disturbed(world, number, name), chance=0, kill=False)
        world.check()
    assert world.counts["foreign"] >= PLACES
    assert world.counts["refused"] > PLACES / 2


@pytest.mark.long
def test_data_of_others_stay_intact_in_many_runs():
    count = int(os.environ.get("HYBRIDSIM_INTERLEAVINGS", "500"))
    first = int(os.environ.get("HYBRIDSIM_FIRST_SEED", "10000"))
    print(many(range(first, first + count)))
