"""A checker of `serve`: each block says which write it is of, and no read may return another one.

    python tests/serving_checker.py [--operations N] [--kills N] [--seed N]

Several clients read, write, flush and trim blocks at random, pages shared between them.  The server
is killed at any moment, or ended in order, and started again; meanwhile the SSD may be replaced by
an older copy, with an older state folder or not, or the disk be written to by others.  Both devices
fail at times.  A read must return the last completed write of each block; of a write that was in
progress at the kill, or was answered by an error, the old or the new data.
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

import numpy as np

from hybridsim.serving import nbd

BLOCK = 4096
BLOCKS = 4096
CLIENTS = 4
RUN = 6  # blocks in a row of one writer: pages of 16 KiB are shared
MARK = struct.Struct("<qq")
LONGEST = 24  # blocks of a read
SETTINGS = [
    {"policy": policy, "mode": mode, "page": page}
    for policy, mode, page in (
        ("learned", "write-through", "16KiB"), ("lru", "write-through", "16KiB"),
        ("lru", "read-only", "16KiB"), ("learned", "read-only", "64KiB"),
        ("larc+arc", "write-through", "4KiB"),
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
    """What each block may hold: the versions from `low` to `high`, and zeros if `trimmed`.

    Version 0 is zeros.  A block has one writer.
    """

    def __init__(self):
        self.low, self.high, self.last = (np.zeros(BLOCKS, np.int64) for _ in range(3))
        self.trimmed = np.zeros(BLOCKS, bool)
        self.problems = []

    def version(self, block, data):
        """Return the version of a block's data; -1 if it is not of this block, or torn."""
        if data == bytes(BLOCK):
            return 0
        number, version = MARK.unpack_from(data)
        return version if number == block and data == content(number, version) else -1

    def judge(self, first, data, low, what):
        """Check what was read; `low` are the earliest versions allowed."""
        for at in range(len(data) // BLOCK):
            block = first + at
            version = self.version(block, data[at * BLOCK : (at + 1) * BLOCK])
            high = int(self.high[block])
            if low[at] <= version <= high:
                continue
            if self.trimmed[block] and 0 <= version <= high:
                continue
            self.problems.append(f"{what}: block {block} has version {version}, not "
                                 f"{int(low[at])} to {high}")  # fmt: skip


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
        if draw < 0.5:
            length = self.random.randint(1, LONGEST)
            first = min(self.place(), BLOCKS - length)
            low = blocks.low[first : first + length].copy()
            was_trimmed = blocks.trimmed[first : first + length].copy()
            error, data = client.ask(nbd.READ, first * BLOCK, length * BLOCK)
            low[was_trimmed] = 0
            if not error:
                blocks.judge(first, data, low, "a read")
            self.count("reads", error)
            return
        if draw < 0.52:
            self.count("flushes", client.ask(nbd.FLUSH, 0, 0)[0])
            return
        group = self.place() // RUN // CLIENTS * CLIENTS + self.number
        first = min(group * RUN, BLOCKS - 1) + self.random.randrange(RUN)
        end = min(self.random.randint(first, group * RUN + RUN - 1) + 1, BLOCKS)
        if first >= end:
            return
        here = slice(first, end)
        if draw < 0.55:
            blocks.trimmed[here] = True
            self.count("trims", client.ask(nbd.TRIM, first * BLOCK, (end - first) * BLOCK)[0])
            return
        blocks.last[here] += 1
        blocks.high[here] = blocks.last[here]
        data = b"".join(content(each, int(blocks.last[each])) for each in range(first, end))
        flags = nbd.FUA if self.random.random() < 0.02 else 0
        error, _ = client.ask(nbd.WRITE, first * BLOCK, len(data), data, flags)
        if not error:
            blocks.low[here] = blocks.last[here]
            blocks.trimmed[here] = False
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

    def __init__(self, folder, seed):
        self.folder, self.random = Path(folder), random.Random(seed)
        self.blocks = Blocks()
        self.slow, self.fast = self.folder / "slow.img", self.folder / "fast.img"
        self.state = self.folder / "state"
        self.socket = str(self.folder / "nbd.sock")
        self.old = self.folder / "old"
        for path, size in ((self.slow, BLOCKS * BLOCK), (self.fast, (1 << 20) + (3 << 20))):
            with open(path, "wb") as file:
                file.truncate(size)
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
            "slow": str(self.slow), "fast": str(self.fast), "state": str(self.state),
            "socket": self.socket, "ready": str(ready), "json": str(self.folder / "served.json"),
            "is_late": failures is not None,
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
            error, data = client.ask(nbd.READ, first * BLOCK, 16 * BLOCK)
            assert not error
            here = slice(first, first + 16)
            blocks.judge(first, data, blocks.low[here].copy(), "after a restart")
            for at in range(16):
                version = blocks.version(first + at, data[at * BLOCK : (at + 1) * BLOCK])
                blocks.low[first + at] = blocks.high[first + at] = version
        blocks.trimmed[:] = False
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
        shutil.copy(self.old / "fast.img", self.fast)
        if with_state:
            shutil.rmtree(self.state)
            shutil.copytree(self.old / "state", self.state)

    def write_elsewhere(self):
        """Write to the disk while it is not served."""
        block = self.random.randrange(BLOCKS // 12)
        self.blocks.last[block] += 1
        self.blocks.low[block] = self.blocks.high[block] = self.blocks.last[block]
        self.blocks.trimmed[block] = False
        with open(self.slow, "r+b") as file:
            file.seek(block * BLOCK)
            file.write(content(block, int(self.blocks.last[block])))

    def close(self):
        self.servers.stdin.close()
        self.servers.wait()


def check(folder, operations, kills, seed, settings=SETTINGS, show=lambda text: None):
    """Run until so many operations and kills are done; return the counts."""
    checker = Checker(folder, seed)
    draw = checker.random
    each = max(operations // max(kills, 1), 200)
    count = ("reads", "writes", "trims", "flushes")
    checker.start()
    try:
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
                elif what < 0.4:
                    checker.write_elsewhere()
                    checker.totals["written_elsewhere"] += 1
                elif what < 0.7:
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
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(check(place, chosen.operations, chosen.kills, chosen.seed,
                    show=lambda text: print(text, flush=True)))  # fmt: skip
