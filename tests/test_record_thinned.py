"""Recording for weeks: pages of the kernel's buffer, pairing, and a file that goes on."""

import contextlib
import fcntl
import json
import mmap
import os
import struct
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from hybridsim.cli import cli
from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.errors import RecordingError, UsageError
from hybridsim.requests.rows import no_requests
from hybridsim.show import schemas
from hybridsim.studies import record_thinned as weeks
from hybridsim.traces.formats.pairing import EVENT, Action
from hybridsim.traces.recording import Disk, Host, find
from hybridsim.traces.recording.live import (
    PATIENCE_NS,
    READ_AT_ONCE,
    Decoder,
    Drain,
    Live,
    Paired,
    formats,
)
from hybridsim.traces.recording.tracefs import place
from hybridsim.traces.trace import Trace

SECOND = 10**9
PAGE = 4096
QUEUE, COMPLETE = 2097, 2107  # ids of events, as in formats()
DISK = 8 << 20 | 16
FORMAT = """name: {name}
ID: {number}
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
{rest}
print fmt: "%d"
"""
COUNT = "\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n"
ERROR = "\tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n"
RWBS = "\tfield:char rwbs[10];\toffset:{at};\tsize:10;\tsigned:0;\n"
EVENTS = {
    "block_bio_queue": (QUEUE, COUNT + RWBS.format(at=28)),
    "block_rq_complete": (COMPLETE, COUNT + ERROR + RWBS.format(at=32)),
    "block_bio_complete": (2100, COUNT + ERROR + RWBS.format(at=32)),
    "block_split": (
        2092, "\tfield:sector_t new_sector;\toffset:24;\tsize:8;\tsigned:0;\n" + RWBS.format(at=32),
    ),
    "block_rq_requeue": (2108, COUNT + RWBS.format(at=28)),
}  # fmt: skip


@pytest.fixture
def root(tmp_path):
    """A tracefs with the formats of block events."""
    for name, (number, rest) in EVENTS.items():
        folder = tmp_path / "events/block" / name
        folder.mkdir(parents=True)
        (folder / "format").write_text(FORMAT.format(name=name, number=number, rest=rest))
    return tmp_path


def record(kind, delta, sector, count, rwbs, dev=DISK, error=0, junk=b"\xee"):
    """Return an event as it lies in a page; what follows the letters is left over."""
    body = struct.pack("<HBBiIIQI", kind, 0, 0, 77, dev, 0, sector, count)
    body += struct.pack("<i", error) if kind == COMPLETE else b""
    body += (rwbs + b"\0").ljust(12, junk)
    body = body.ljust(-(-len(body) // 4) * 4, b"\0")
    return struct.pack("<I", len(body) // 4 | delta << 5) + body


def page(base_ns, *parts):
    data = b"".join(parts)
    return (struct.pack("<QQ", base_ns, len(data)) + data).ljust(PAGE, b"\xaa")


class TestPages:
    def test_events_are_those_of_the_page(self, root):
        decoder = Decoder(formats(root), [DISK], PAGE)
        extend = struct.pack("<II", 30 | 5 << 5, 1)  # 2^27 + 5 ns
        discarded = struct.pack("<IIQ", 29 | 1 << 5, 12, 0)
        data = page(
            1000,
            record(QUEUE, 10, 800, 8, b"WS"),
            extend,
            record(QUEUE, 1, 4096, 16, b"RA", dev=DISK + 1),  # another disk
            discarded,
            record(COMPLETE, 7, 800, 8, b"WS", error=-5),
            struct.pack("<I", 29),  # the rest of the page is empty
        )
        events = decoder.events(data, cpu=3)
        late = 1010 + (1 << 27) + 5 + 1 + 1 + 7
        assert events.time_ns.tolist() == [1010, late]
        assert events.action.tolist() == [Action.QUEUE, Action.COMPLETE]
        assert events.offset_bytes.tolist() == [800 * 512] * 2
        assert events.length_bytes.tolist() == [4096] * 2
        assert events.op.tolist() == [Op.WRITE] * 2
        assert events.marks.tolist() == [Flag.SYNC] * 2
        assert events.error.tolist() == [0, -1]
        assert events.pid.tolist() == [77] * 2
        assert events.cpu.tolist() == [3] * 2

    def test_what_is_left_over_behind_the_letters_does_not_matter(self, root):
        decoder = Decoder(formats(root), [DISK], PAGE)
        for junk in range(1, 200):
            data = page(0, record(QUEUE, 1, 8, 8, b"W", junk=bytes([junk])))
            assert decoder.events(data, 0).op.tolist() == [Op.WRITE]

    def test_several_pages_are_decoded_at_once(self, root):
        decoder = Decoder(formats(root), [DISK], PAGE)
        data = b"".join(page(n * 100, record(QUEUE, n, n, 8, b"R")) for n in range(50))
        assert decoder.events(data, 0).offset_bytes.tolist() == [n * 512 for n in range(50)]

    def test_malformed_pages_are_counted(self, root):
        decoder = Decoder(formats(root), [DISK], PAGE)
        rng = np.random.default_rng(5)
        whole = page(0, *(record(QUEUE, 1, n, 8, b"R") for n in range(60)))
        for _ in range(300):
            data = bytearray(whole)
            for at in rng.integers(0, PAGE, 5):
                data[at] = rng.integers(0, 256)
            decoder.events(bytes(data), 0)
        assert decoder.malformed > 0

    def test_a_kernel_without_an_event_is_refused(self, root):
        (root / "events/block/block_split/format").unlink()
        with pytest.raises(RecordingError, match="block_split"):
            formats(root)


def events(*rows):
    """Return events of (time, action, offset, length)."""
    array = np.zeros(len(rows), EVENT).view(np.recarray)
    for at, (time_ns, action, offset, length) in enumerate(rows):
        array[at].time_ns, array[at].action = time_ns, action
        array[at].offset_bytes, array[at].length_bytes = offset, length
    return array


class TestDrain:
    @pytest.mark.parametrize("pages", [1, READ_AT_ONCE, 3 * READ_AT_ONCE + 5])
    def test_all_pages_of_a_pipe_are_read_and_none_twice(self, pages):
        pipe, end = os.pipe()
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.set_blocking(pipe, False)
        data = np.random.default_rng(pages).bytes(pages * PAGE)
        drain = Drain(PAGE)
        os.write(end, data)
        assert bytes(drain.pages(pipe)) == data
        os.write(end, data[: PAGE - 7])  # the end of a page that the kernel left out
        assert bytes(drain.pages(pipe)) == data[: PAGE - 7] + bytes(7)
        assert not len(drain.pages(pipe))
        os.close(end)
        os.close(pipe)


class TestPaired:
    def test_requests_settle_as_soon_as_all_before_them_are_complete(self):
        paired = Paired()
        first = paired.take(
            events((5, Action.QUEUE, 0, 512), (6, Action.QUEUE, 512, 512),
                   (9, Action.COMPLETE, 512, 512)), 10,
        )  # fmt: skip
        assert first.rows == 0
        assert paired.oldest_ns == 5
        then = paired.take(events((12, Action.COMPLETE, 0, 512)), 20)
        assert then.arrival_ns.tolist() == [5, 6]
        assert then.complete_ns.tolist() == [12, 9]
        assert paired.oldest_ns is None

    def test_a_request_without_completion_holds_others_for_a_minute_only(self):
        paired = Paired()
        late = PATIENCE_NS + 100
        rows = paired.take(events((5, Action.QUEUE, 0, 512), (6, Action.QUEUE, 512, 512)), 10)
        assert rows.rows == 0
        rows = paired.take(events((late, Action.QUEUE, 9 << 9, 512)), late)
        assert rows.complete_ns.tolist() == [-1, -1]
        assert paired.oldest_ns == late

    def test_pending_requests_are_returned_at_the_end_once(self):
        paired = Paired()
        paired.take(events((5, Action.QUEUE, 0, 512)), 10)
        assert paired.rest().rows == 1
        assert paired.rest().rows == 0


class Source:
    """Requests in place of a disk's: one every 10 ms until `after` readings, then a signal."""

    def __init__(self, after, lost=0):
        self.readings, self.after, self.closed, self._lost = 0, after, False, lost

    def requests(self):
        import signal

        self.readings += 1
        now = time.monotonic_ns()
        rows = no_requests(100)
        rows.arrival_ns[:] = now - SECOND + np.arange(100) * 10**7
        rows.offset_bytes[:] = np.arange(100) * 4096
        rows.length_bytes[:] = 4096
        rows.complete_ns[:] = rows.arrival_ns + 1000
        if self.readings == self.after:
            os.kill(os.getpid(), signal.SIGTERM)
        return rows, now

    def lost(self):
        lost, self._lost = self._lost, 0
        return lost

    def rest(self):
        return no_requests()

    def close(self):
        self.closed = True


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    monkeypatch.setattr(weeks, "PAUSE_S", 0.01)
    disk = Disk("sdb", "/dev/sdb", tmp_path)
    host = Host(tmp_path)

    def make(seconds=3600):
        path = tmp_path / "week.thin"
        return weeks.Prepared(disk, path, seconds, 1 << 24, 1 << 22, host, path.exists(), False)

    return make


class TestRecord:
    def test_a_recording_is_a_thinned_capture(self, prepared):
        source = Source(3, lost=4)
        done = weeks.record(prepared(), live=source)
        assert source.closed
        assert (done.requests, done.dropped_events, done.complete) == (300, 4, False)
        opened = Trace.read(done.file)
        assert opened.sample.total.requests == 300
        assert opened.sample.total.of("lost")[0] == 4
        assert abs(opened.origin + opened.sample.total.begin_ns - time.time_ns()) < 60 * SECOND

    def test_the_same_command_goes_on(self, prepared):
        first = weeks.record(prepared(), live=Source(2))
        with open(first.file, "ab") as file:
            file.write(b"\xa7HTb\x02 a power cut")
        weeks.record(prepared(), live=Source(2))
        opened = Trace.read(first.file)
        assert opened.sample.total.requests == 400
        assert len(opened.sample.interruptions) == 1
        assert opened.warnings == []

    def test_it_is_complete_once_the_time_since_the_first_start_is_over(self, prepared):
        weeks.record(prepared(), live=Source(2))
        done = weeks.record(prepared(seconds=0), live=Source(2))
        assert done.complete
        assert done.requests == 0

    def test_a_capture_of_another_disk_is_refused(self, prepared, tmp_path):
        weeks.record(prepared(), live=Source(1))
        other = Disk("sdc", "/dev/sdc", tmp_path)
        with pytest.raises(RecordingError, match="is a capture of /dev/sdb, not of /dev/sdc"):
            weeks.record(replace(prepared(), disk=other), live=Source(1))

    def test_a_file_that_is_no_capture_is_not_touched(self, prepared, tmp_path):
        (tmp_path / "week.thin").write_text("my diary")
        with pytest.raises(RecordingError, match="no thinned capture"):
            weeks.record(prepared(), live=Source(1))
        assert (tmp_path / "week.thin").read_text() == "my diary"


class TestPrepare:
    @pytest.fixture
    def host(self, tmp_path):
        folder = tmp_path / "sys/class/block/sdb"
        folder.mkdir(parents=True)
        (folder / "dev").write_text("8:16\n")
        return Host(tmp_path / "sys", uid=0)

    def test_a_maximum_that_counters_fill_is_refused(self, host, tmp_path):
        with pytest.raises(UsageError, match=r"counters of 28\.0 days alone"):
            weeks.prepare("/dev/sdb", str(tmp_path / "a"), 28 * 86_400, 1 << 20, host=host)

    def test_a_folder_without_room_is_refused(self, host, tmp_path):
        with pytest.raises(RecordingError, match="has room for"):
            weeks.prepare("/dev/sdb", str(tmp_path / "a"), 60, 1 << 60, host=host)

    def test_the_unit_starts_the_same_recording(self, host, tmp_path):
        prepared = weeks.prepare("/dev/sdb", str(tmp_path / "a b"), 28 * 86_400, 2 * 10**9,
                                 host=host)  # fmt: skip
        unit = weeks.unit(prepared)
        assert f'trace record /dev/sdb --for 28d --max 2GB -o "{tmp_path}/a b.thin"\n' in unit
        assert "Restart=on-failure" in unit
        assert "WantedBy=multi-user.target" in unit

    def test_without_a_maximum_there_is_no_unit(self):
        done = CliRunner().invoke(cli, ["trace", "record", "sdb", "--unit"])
        assert done.exit_code == 2
        assert "add --max" in done.output


def test_the_json_matches_its_schema(prepared, monkeypatch, capsys):
    monkeypatch.setattr(weeks, "prepare", lambda *_: prepared())
    monkeypatch.setattr(
        weeks, "record", lambda made, tick, run=weeks.record: run(made, tick, Source(2))
    )
    done = CliRunner().invoke(cli, ["trace", "record", "sdb", "--max", "2GB", "--json"])
    document = json.loads(done.stdout)
    assert not [*Draft202012Validator(schemas.load("weeks")).iter_errors(document)]
    assert document["requests"] == 200


def tracefs():
    """Return whether this process may trace block events."""
    with contextlib.suppress(RecordingError):
        return os.geteuid() == 0 and (place(Host()) / "events/block").is_dir()
    return False


@pytest.fixture
def loop_device(tmp_path):
    """A loop device of 16 MiB, if the kernel has one."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(1 << 24)
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "-d", made.stdout.strip()], check=False)


def write_pages(device, places):
    handle = os.open(device, os.O_RDWR | os.O_DIRECT)
    buffer = mmap.mmap(-1, 4096)
    for at in places:
        os.pwritev(handle, [buffer], at * 8192)
    os.close(handle)
    time.sleep(0.2)


@pytest.mark.skipif(not tracefs(), reason="needs root and tracefs")
class TestARealDisk:
    def test_each_request_of_a_few_is_recorded(self, loop_device):
        live = Live(find(loop_device, Host()), Host(), 1 << 20)
        try:
            write_pages(loop_device, range(50))
            rows, _ = live.requests()
        finally:
            live.close()
        assert not live.instance.exists()
        writes = rows.op == Op.WRITE
        assert rows.offset_bytes[writes].tolist() == [at * 8192 for at in range(50)]
        assert (rows.complete_ns >= rows.arrival_ns)[writes].all()

    def test_what_was_traced_after_a_kill_comes_first(self, loop_device):
        code = (
            "import sys, time; from hybridsim.traces.recording import Host, find; "
            "from hybridsim.traces.recording.live import Live; "
            f"live = Live(find({loop_device!r}, Host()), Host(), 1 << 20); "
            "print('begun', flush=True); time.sleep(60)"
        )
        killed = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert killed.stdout.readline() == "begun\n"
        disk = find(loop_device, Host())
        with pytest.raises(RecordingError, match="another recorder"):
            Live(disk, Host(), 1 << 20, goes_on=True)
        killed.kill()
        killed.communicate()
        write_pages(loop_device, range(20))
        live = Live(disk, Host(), 1 << 20, goes_on=True)
        try:
            write_pages(loop_device, range(20, 30))
            rows, _ = live.requests()
            assert live.lost() == 0
        finally:
            live.close()
        assert not live.instance.exists()
        places = rows.offset_bytes[rows.op == Op.WRITE]
        assert places.tolist() == [at * 8192 for at in range(30)]

    @pytest.mark.parametrize(("goes_on", "buffer_bytes"), [(False, 1 << 20), (True, 2 << 20)])
    def test_what_another_left_is_removed_unless_it_is_wanted_and_alike(
        self, loop_device, goes_on, buffer_bytes
    ):
        disk = find(loop_device, Host())
        left = Live(disk, Host(), 1 << 20)
        write_pages(loop_device, range(5))
        for handle in [*left._pipes.values(), *left._stats, left._lock]:
            os.close(handle)
        live = Live(disk, Host(), buffer_bytes, goes_on)
        try:
            write_pages(loop_device, [9])
            rows, _ = live.requests()
        finally:
            live.close()
        assert rows.offset_bytes[rows.op == Op.WRITE].tolist() == [9 * 8192]
