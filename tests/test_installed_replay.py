"""The replayer of benchmarks/installed.py: each request when the one that it waits for is done."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parent.parent / "benchmarks" / "installed_replay.c"
READ, WRITE, FLUSH = 0, 1, 3
MS = 1_000_000
# kind, offset, length, the request that it waits for, gap, arrival
ORDERS = [
    (WRITE, 8192, 4096, -1, 0, 2 * MS),
    (READ, 0, 65536, -1, 0, 0),
    (FLUSH, 0, 0, 0, 3 * MS, 0),
    (READ, 4096, 4096, 1, 5 * MS, 0),
    (WRITE, 0, 8192, 3, 0, 0),
]


@pytest.fixture(scope="module")
def replayer(tmp_path_factory):
    """Return the compiled program."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("replay") / "replay"
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-o", program, SOURCE], check=True)
    return program


def replayed(replayer, folder, orders):
    """Return issue and completion of each request on a file of letters, and what the file holds."""
    device = folder / "device"
    device.write_bytes(b"a" * 65536)
    try:
        os.close(os.open(device, os.O_RDWR | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system has no direct I/O")
    (folder / "orders").write_bytes(np.array(orders, np.int64).tobytes())
    words = [replayer, device, folder / "orders", folder / "facts"]
    done = subprocess.run(words, capture_output=True, text=True)
    facts = folder / "facts"
    table = np.fromfile(facts, np.int64).reshape(-1, 2) if facts.exists() else None
    return done, table, device.read_bytes()


def test_each_request_waits_for_its_parent(replayer, tmp_path):
    done, facts, _ = replayed(replayer, tmp_path, ORDERS)
    assert done.returncode == 0, done.stderr
    for number, (_, _, _, parent, gap_ns, arrival_ns) in enumerate(ORDERS):
        due_ns = facts[parent, 1] + gap_ns if parent >= 0 else arrival_ns
        assert facts[number, 0] >= due_ns
        assert facts[number, 1] > facts[number, 0]
    assert facts[1, 0] < facts[0, 0]  # in order of time, not of number


def test_writes_are_written_where_they_belong(replayer, tmp_path):
    _, _, content = replayed(replayer, tmp_path, ORDERS)
    assert content == bytes(12288) + b"a" * (65536 - 12288)


def test_more_requests_than_are_loaded_at_a_time(replayer, tmp_path):
    """A chain of waits: all are done, one after the other."""
    chain = [(READ, 4096 * (n % 16), 4096, n - 1, 0, 0) for n in range(6000)]
    done, facts, _ = replayed(replayer, tmp_path, chain)
    assert done.returncode == 0, done.stderr
    assert (facts[1:, 0] >= facts[:-1, 1]).all()


def test_a_failed_request_is_an_error(replayer, tmp_path):
    done, facts, _ = replayed(replayer, tmp_path, [(READ, 1 << 20, 4096, -1, 0, 0)])
    assert done.returncode == 1
    assert "request 0" in done.stderr
    assert facts is None
