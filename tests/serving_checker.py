"""A checker of `serve`: each block says which write it is of, and no read may return another one.

    python tests/serving_checker.py [--operations N] [--kills N] [--seed N] [--devices | --nbd]

Several clients read, write, flush and trim the same blocks at random; the last page is not whole.
The server is killed at any moment, or ended in order, and started again; meanwhile the SSD may be
replaced by an older copy, with an older state folder or not, or exchanged by one that takes turns
with it, and the disk be written to by others.  The host sees nothing of what happens to the SSD.
Both devices fail at times.  A read must return the last completed write of each block; of writes at
the same time any one, but the same one each time; of a write that was in progress at the kill, or
was answered by an error, the old or the new data.  With --devices both are loop devices, with --nbd
exports of servers that outlive the kills.
"""

import argparse
import collections
import errno
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from hybridsim.serving import nbd
from hybridsim.serving.generations import DATA_FROM

BLOCK = 1024
BLOCKS = 4093
CLIENTS = 6
MARK = struct.Struct("<qq")
LONGEST, WRITTEN = 80, 24  # blocks of a read, and of a write
FAST_BYTES = 1 << 20  # besides the superblock's
SETTINGS = [
    {"policy": policy, "mode": mode, "page": page, "fill": fill}
    for policy, mode, page, fill in (
        ("learned", "write-through", "16KiB", "re-read"),
        ("lru", "write-through", "16KiB", "piggyback"),
        ("lru", "read-only", "16KiB", "re-read"), ("learned", "read-only", "64KiB", "piggyback"),
        ("larc+arc", "write-through", "4KiB", "re-read"),
    )
]  # fmt: skip
FAILURES = [(0, 0), (0, 0), (0, 0), (0.001, 0), (0.02, 0), (0.3, 0), (0.002, 0.002)]


class Client:
    """A connection; an answer at a time."""

    def __init__(self, path, expected_bytes):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(path)
        greeting = nbd.received(self.socket, len(nbd.GREETING))
        assert greeting == nbd.GREETING
        self.socket.sendall(struct.pack(">I", nbd.NO_ZEROES))
        self.socket.sendall(nbd.OPTION.pack(b"IHAVEOPT", nbd.EXPORT_NAME, 0))
        size, _ = struct.unpack(">QH", nbd.received(self.socket, 10))
        assert size == expected_bytes

    def ask(self, kind, offset, length, data=b"", flags=0):
        """Return the errno and the data."""
        self.socket.sendall(
            nbd.REQUEST.pack(nbd.REQUEST_MAGIC, flags, kind, 7, offset, length) + data
        )
        magic, error, cookie = nbd.REPLY.unpack(nbd.received(self.socket, nbd.REPLY.size))
        assert (magic, cookie) == (nbd.SIMPLE_MAGIC, 7)
        is_read = kind == nbd.READ and not error
        return error, nbd.received(self.socket, length) if is_read else b""


def content(block, version):
    return MARK.pack(block, version) * (BLOCK // MARK.size)


class Blocks:
    """What each block may hold: the versions that no completed write or read has ruled out.

    A version is the number of a write, and may be of several blocks; 0 is zeros.  Writes of several
    clients overlap: of those that do, any may be the last one, but all reads must agree on it.
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.clock, self.last = 0, 0  # of events; the last version
        self.live = [{0: 0} for _ in range(BLOCKS)]  # version: when its write ended, or None
        self.gone = [{} for _ in range(BLOCKS)]  # version: since when it is ruled out
        self.unsure = [{0} for _ in range(BLOCKS)]  # those of failed writes and of trims
        self.trims = [0] * BLOCKS  # in progress
        self.problems = []

    def tick(self):
        self.clock += 1
        return self.clock

    def begin_write(self, blocks):
        """Return the version and the time."""
        with self.lock:
            self.last += 1
            for block in blocks:
                self.live[block][self.last] = None
            return self.last, self.tick()

    def end_write(self, blocks, version, begin, error):
        with self.lock:
            now = self.tick()
            for block in blocks:
                self.live[block][version] = now
                if error:
                    self.unsure[block].add(version)
                else:
                    self.rule_out(block, version, begin, now)

    def begin_trim(self, blocks):
        with self.lock:
            for block in blocks:
                self.trims[block] += 1
                self.live[block][0] = None

    def end_trim(self, blocks):
        with self.lock:
            now = self.tick()
            for block in blocks:
                self.trims[block] -= 1
                if not self.trims[block]:
                    self.live[block][0] = now

    def begin_read(self):
        with self.lock:
            return self.tick()

    def rule_out(self, block, version, before, now):
        """Rule out the others that ended before a time."""
        live = self.live[block]
        for other in [
            each for each, end in live.items()
            if each != version and end is not None and end < before
        ]:  # fmt: skip
            del live[other]
            self.gone[block][other] = now

    def end_read(self, first, data, begin, what):
        """Check what was read.

        A write that ended before the read began, and is not what was read, is before that one.
        """
        with self.lock:
            now = self.tick()
            for at in range(len(data) // BLOCK):
                block = first + at
                version = self.version(block, data[at * BLOCK : (at + 1) * BLOCK])
                live = self.live[block]
                if version not in live and self.gone[block].get(version, -1) <= begin:
                    self.problems.append(
                        f"{what}: block {block} has version {version}, not one of {sorted(live)}"
                    )
                elif live.get(version) is not None and version not in self.unsure[block]:
                    self.rule_out(block, version, begin, now)

    def settle(self, first, data):
        """Take what was read while nothing else was in progress: it must stay so."""
        for at in range(len(data) // BLOCK):
            block = first + at
            version = self.version(block, data[at * BLOCK : (at + 1) * BLOCK])
            self.live[block], self.gone[block] = {version: self.tick()}, {}
            self.unsure[block], self.trims[block] = set(), 0

    def version(self, block, data):
        """Return the version of a block's data; -1 if it is not of this block, or torn."""
        if data == bytes(BLOCK):
            return 0
        number, version = MARK.unpack_from(data)
        return version if number == block and data == content(number, version) else -1


class Load(threading.Thread):
    """A client that reads, writes, flushes and trims at random."""

    def __init__(self, checker, number, operations):
        super().__init__(daemon=True)
        self.checker, self.number, self.operations = checker, number, operations
        self.random = random.Random(checker.random.random())
        self.done = collections.Counter()

    def run(self):
        blocks = self.checker.blocks
        try:
            client = Client(self.checker.socket, BLOCKS * BLOCK)
            for _ in range(self.operations):
                if blocks.problems:
                    return
                self.operation(client, blocks)
        except (OSError, nbd.ProtocolError):
            pass  # killed

    def operation(self, client, blocks):
        draw = self.random.random()
        length = self.random.randint(1, LONGEST if draw < 0.5 else WRITTEN)
        first = min(self.place(), BLOCKS - length)
        here, at, bytes_ = range(first, first + length), first * BLOCK, length * BLOCK
        if draw < 0.5:
            begin = blocks.begin_read()
            error, data = client.ask(nbd.READ, at, bytes_)
            if not error:
                blocks.end_read(first, data, begin, "a read")
            self.count("reads", error)
        elif draw < 0.52:
            self.count("flushes", client.ask(nbd.FLUSH, 0, 0)[0])
        elif draw < 0.55:
            blocks.begin_trim(here)
            error, _ = client.ask(nbd.TRIM, at, bytes_)
            blocks.end_trim(here)
            self.count("trims", error)
        else:
            version, begin = blocks.begin_write(here)
            data = b"".join(content(each, version) for each in here)
            flags = nbd.FUA if self.random.random() < 0.02 else 0
            error, _ = client.ask(nbd.WRITE, at, bytes_, data, flags)
            blocks.end_write(here, version, begin, error)
            self.count("writes", error)

    def place(self):
        """Draw a block: most from a part that a cache can hold."""
        span = BLOCKS if self.random.random() < 0.2 else BLOCKS // 12
        return self.random.randrange(span)

    def count(self, what, error):
        assert error in (0, errno.EIO), error
        self.done[what] += 1
        self.done["errors"] += error != 0


class Checker:
    """The files, the server and its restarts."""

    def __init__(self, folder, seed, devices=False, remote=False):
        self.folder, self.random = Path(folder), random.Random(seed)
        self.blocks = Blocks()
        self.slow, self.fast = self.folder / "slow.img", self.folder / "fast.img"
        self.state = self.folder / "state"
        self.socket = str(self.folder / "nbd.sock")
        self.old = self.folder / "old"
        self.other = self.folder / "other.img"  # takes turns with the SSD
        for path, size in ((self.slow, BLOCKS * BLOCK), (self.fast, DATA_FROM + FAST_BYTES)):
            with open(path, "wb") as file:
                file.truncate(size)
        self.served = [str(self.slow), str(self.fast)]
        self.has_devices = devices
        if devices:
            self.served = [
                subprocess.check_output(["losetup", "--find", "--show", each], text=True).strip()
                for each in self.served
            ]
        self.remote = []
        if remote:
            disk, sockets = str(Path(__file__).with_name("nbd_disk.py")), []
            for each in self.served:
                sockets.append(f"{each}.sock")
                self.remote.append(subprocess.Popen([sys.executable, disk, each, sockets[-1]]))
            wait_for_all(sockets)
            self.served = [f"nbd+unix:///?socket={each}" for each in sockets]
        servers = Path(__file__).with_name("serving_servers.py")
        self.servers = subprocess.Popen(
            [sys.executable, str(servers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.setting = SETTINGS[0]
        self.totals = collections.Counter()

    def start(self, failures=None):
        """Start a server; return the number of pages it kept, and why it kept none.

        With `failures`, shares of those of the SSD and of the disk, its devices are also late at
        times.
        """
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        values = self.setting | {
            "slow": self.served[0], "fast": self.served[1], "state": str(self.state),
            "socket": self.socket, "ready": str(ready), "json": str(self.folder / "served.json"),
            "is_late": failures is not None, "is_remote": bool(self.remote),
            "is_blind": not self.has_devices,
            "fast_errors": failures[0] if failures else 0,
            "slow_errors": failures[1] if failures else 0,
        }  # fmt: skip
        self.servers.stdin.write(json.dumps(values) + "\n")
        self.servers.stdin.flush()
        self.pid = int(self.servers.stdout.readline())
        end = time.monotonic() + 300
        while not (ready.exists() and ready.read_text().endswith("]")):
            assert time.monotonic() < end, "the server did not start"
            assert self.is_alive(), "the server ended at its start"
            time.sleep(0.005)
        return json.loads(ready.read_text())

    def is_alive(self):
        return Path(f"/proc/{self.pid}").exists()

    def end(self, kind):
        os.kill(self.pid, kind)
        while self.is_alive():
            time.sleep(0.002)

    def load(self, operations, kill_after_s=None):
        """Run the clients; kill the server meanwhile if wanted."""
        clients = [Load(self, number, operations // CLIENTS) for number in range(CLIENTS)]
        for each in clients:
            each.start()
        if kill_after_s is not None:
            time.sleep(kill_after_s)
            self.end(signal.SIGKILL)
            self.totals["kills"] += 1
        for each in clients:
            each.join()
            self.totals += each.done
        assert not self.blocks.problems, self.blocks.problems[:5]

    def settle(self):
        """Read all blocks; from now on each must stay as it was read."""
        client, blocks = Client(self.socket, BLOCKS * BLOCK), self.blocks
        places = list(range(0, BLOCKS, 16))
        self.random.shuffle(places)
        for first in places:
            length = min(16, BLOCKS - first)
            begin = blocks.begin_read()
            error, data = client.ask(nbd.READ, first * BLOCK, length * BLOCK)
            assert not error
            blocks.end_read(first, data, begin, "after a restart")
            blocks.settle(first, data)
        self.totals["settled"] += 1
        assert not blocks.problems, blocks.problems[:5]

    def keep_copy(self):
        """Keep a copy of the SSD and of the state folder."""
        shutil.rmtree(self.old, ignore_errors=True)
        self.old.mkdir()
        shutil.copy(self.fast, self.old / "fast.img")
        shutil.copytree(self.state, self.old / "state")

    def bring_back(self, with_state):
        """Replace the SSD by the older copy."""
        self.fast.write_bytes((self.old / "fast.img").read_bytes())
        if with_state:
            shutil.rmtree(self.state)
            shutil.copytree(self.old / "state", self.state)

    def exchange(self):
        """Exchange the SSD and the copy that takes turns with it."""
        here = self.fast.read_bytes()
        if self.other.exists():
            self.fast.write_bytes(self.other.read_bytes())
        self.other.write_bytes(here)

    def write_elsewhere(self):
        """Write to the disk while it is not served."""
        here = [self.random.randrange(BLOCKS // 12)]
        version, begin = self.blocks.begin_write(here)
        with open(self.served[0] if self.has_devices else self.slow, "r+b") as file:
            file.seek(here[0] * BLOCK)
            file.write(content(here[0], version))
        self.blocks.end_write(here, version, begin, 0)

    def close(self):
        self.servers.stdin.close()
        self.servers.wait()
        for each in self.remote:
            each.kill()
            each.wait()
        if self.has_devices:
            subprocess.run(["losetup", "--detach", *self.served], check=True)


def wait_for_all(paths):
    end = time.monotonic() + 60
    while not all(Path(each).exists() for each in paths):
        assert time.monotonic() < end
        time.sleep(0.01)


def check(folder, operations, kills, seed, settings=SETTINGS, show=lambda text: None,
          devices=False, remote=False):  # fmt: skip
    """Run until so many operations and kills are done; return the counts."""
    checker = Checker(folder, seed, devices, remote)
    draw = checker.random
    each = max(operations // max(kills, 1), 200)
    count = ("reads", "writes", "trims", "flushes")
    try:
        checker.start()
        while (
            sum(checker.totals[what] for what in count) < operations
            or checker.totals["kills"] < kills
        ):
            is_kill = draw.random() < 0.7 or not checker.old.exists()
            if is_kill and checker.totals["kills"] < kills and checker.old.exists():
                took = draw.uniform(0, 1.5 if draw.random() < 0.8 else 0.1)
                checker.load(10 * each, kill_after_s=took)
                if draw.random() < 0.3:
                    checker.bring_back(with_state=draw.random() < 0.5)
                    checker.totals["older_copies"] += 1
            else:
                checker.load(each)
                checker.end(signal.SIGTERM)
                checker.totals["orderly_ends"] += 1
                what = draw.random()
                if what < 0.25 and checker.old.exists():
                    checker.bring_back(with_state=draw.random() < 0.5)
                    checker.totals["older_copies"] += 1
                elif what < 0.35:
                    checker.write_elsewhere()
                    checker.totals["written_elsewhere"] += 1
                elif what < 0.55:
                    checker.exchange()
                    checker.totals["exchanged"] += 1
                elif what < 0.75:
                    checker.keep_copy()
            if draw.random() < 0.15:
                checker.setting = draw.choice(settings)
            failures = draw.choice(FAILURES) if draw.random() < 0.5 else None
            warm, _ = checker.start(failures)
            checker.totals["warm_starts"] += warm > 0
            if not failures or not failures[1]:
                checker.settle()
            show(dict(checker.totals))
        checker.end(signal.SIGTERM)
        checker.start()
        checker.settle()
        checker.end(signal.SIGTERM)
    finally:
        if checker.is_alive():
            os.kill(checker.pid, signal.SIGKILL)
        checker.close()
    return checker.totals


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--operations", type=int, default=1_000_000)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--devices", action="store_true")
    options.add_argument("--nbd", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(check(place, chosen.operations, chosen.kills, chosen.seed, devices=chosen.devices,
                    remote=chosen.nbd, show=lambda text: print(text, flush=True)))  # fmt: skip
