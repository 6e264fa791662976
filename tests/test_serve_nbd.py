"""`serve` on exports of NBD servers: what reaches them, refusals, lost connections."""

import errno
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from nbd_disk import Disk
from serving_checker import SETTINGS, Client, check

from hybridsim.cli.arguments import machine
from hybridsim.foundation.errors import DeviceError
from hybridsim.serving import nbd
from hybridsim.serving.generations import DATA_FROM
from hybridsim.studies import serve

VOLUME, PAGE = 8 << 20, 65536
SLOW, FAST = "nbd+unix:///?socket=slow.sock", "nbd+unix:///?socket=fast.sock"


@pytest.fixture
def disks(tmp_path, monkeypatch):
    """Return the servers of a disk with data and of an SSD."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nbd, "SETTLES_S", 0.0)
    Path("slow.img").write_bytes(b"".join(bytes([n + 1]) * PAGE for n in range(VOLUME // PAGE)))
    with open("fast.img", "wb") as file:
        file.truncate(DATA_FROM + 32 * PAGE)
    return [Disk(f"{name}.img", f"{name}.sock").start() for name in ("slow", "fast")]


def setting(slow=SLOW, fast=FAST, **others):
    site = machine(None, ["cache.policy=lru", "cache.sequential_cutoff=0"])
    socket = Path("nbd.sock").absolute()
    return serve.Setting(slow, fast, site, Path("state"), socket, None, threads=4, **others)


def page(number, of=None):
    error, data = (of or Client("nbd.sock", VOLUME)).ask(nbd.READ, number * PAGE, PAGE)
    return data if error == 0 else error


def wait_for(what):
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_data_go_to_both_exports_and_come_from_the_fast_one(disks):
    slow, _ = disks
    with serve.served(setting()) as ready:
        assert page(3) == bytes([4]) * PAGE
        wait_for(lambda: ready.figures.counters()["pages_present"] == 1)
        before = len(slow.asked)
        assert page(3) == bytes([4]) * PAGE
        assert len(slow.asked) == before
        assert ready.figures.read_hits == 1
        one = Client("nbd.sock", VOLUME)
        assert one.ask(nbd.WRITE, 3 * PAGE, 4096, b"x" * 4096, nbd.FUA) == (0, b"")
        assert (nbd.WRITE, nbd.FUA, 3 * PAGE, 4096) in slow.asked
        assert one.ask(nbd.FLUSH, 0, 0)[0] == 0
        assert slow.asked[-1][0] == nbd.FLUSH
        assert page(3) == b"x" * 4096 + bytes([4]) * (PAGE - 4096)
        assert one.ask(nbd.TRIM, 0, PAGE)[0] == 0
        assert page(0) == bytes(PAGE)
    assert Path("slow.img").read_bytes()[3 * PAGE :][:4096] == b"x" * 4096


def test_pages_are_not_kept_as_nobody_knows_who_wrote_to_an_export(disks):
    with serve.served(setting()) as ready:
        assert page(3) == bytes([4]) * PAGE
        wait_for(lambda: ready.figures.counters()["pages_present"] == 1)
    with serve.served(setting()) as ready:
        assert ready.why_empty.startswith("the slow device is an NBD export")
        assert ready.pages_warm == 0
    with serve.served(setting("slow.img")) as ready:
        assert ready.pages_warm == 0


def test_it_waits_for_what_a_killed_one_had_sent(disks, monkeypatch):
    waited = []
    monkeypatch.setattr(serve.time, "sleep", waited.append)
    monkeypatch.setattr(nbd, "SETTLES_S", 5.0)
    with serve.served(setting()):
        assert 5.0 in waited


def test_requests_are_under_way_at_the_same_time(disks):
    disks[0].before = threading.Barrier(4, timeout=60).wait
    with serve.served(setting()):
        clients = [Client("nbd.sock", VOLUME) for _ in range(4)]
        found = []
        threads = [
            threading.Thread(target=lambda at=at, one=one: found.append(page(at, one)))
            for at, one in enumerate(clients)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(set(found)) == 4
        disks[0].before = lambda: None


def test_a_lost_slow_export_is_an_error_and_stays_one(disks):
    with serve.served(setting()) as ready:
        assert page(3) == bytes([4]) * PAGE
        disks[0].cut()
        assert page(5) == errno.EIO
        Disk("slow.img", "slow.sock").start()
        assert page(5) == errno.EIO
        assert Client("nbd.sock", VOLUME).ask(nbd.FLUSH, 0, 0)[0] == errno.EIO
        assert ready.figures.slow_errors >= 3


def test_a_lost_fast_export_costs_its_copies_only(disks):
    with serve.served(setting()) as ready:
        assert page(3) == bytes([4]) * PAGE
        wait_for(lambda: ready.figures.counters()["pages_present"] == 1)
        disks[1].cut()
        for number in range(40):
            assert page(number) == bytes([number + 1]) * PAGE
        wait_for(lambda: ready.figures.is_detached)
        assert "not connected" in ready.figures.detached_because
        assert page(3) == bytes([4]) * PAGE
    assert not ready.is_closed


def test_long_requests_are_split_and_a_write_is_durable_without_fua(disks, monkeypatch):
    flags = nbd.HAS_FLAGS | nbd.SENDS_FLUSH
    monkeypatch.setattr(nbd.Export, "flags", flags)
    device = nbd.open_export(SLOW)
    device._longest = 4096
    device.write(memoryview(b"y" * 10000 + bytes(240)), 512, True)
    device.discard(0, 512)
    device.release()
    asked = disks[0].asked
    assert asked == [
        (nbd.WRITE, 0, 512, 4096), (nbd.WRITE, 0, 4608, 4096), (nbd.WRITE, 0, 8704, 2048),
        (nbd.FLUSH, 0, 0, 0),
    ]  # fmt: skip


def test_exports_that_cannot_be_used_are_refused(disks, monkeypatch):
    def refusal(name):
        with pytest.raises(DeviceError) as error:
            nbd.open_export(name)
        return str(error.value)

    assert "encryption" in refusal("nbds://host/x")
    assert "names no host" in refusal("nbd:///x")
    assert "names no socket" in refusal("nbd+unix:///x")
    assert "is the server running?" in refusal("nbd+unix:///?socket=none.sock")
    for flags, why in (
        (nbd.HAS_FLAGS | nbd.SENDS_FLUSH | nbd.READ_ONLY, "can only be read"),
        (nbd.HAS_FLAGS, "has no FLUSH"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(nbd.Export, "flags", flags)
            assert why in refusal(SLOW)
    with pytest.raises(DeviceError, match="are the same"), serve.served(setting(SLOW, SLOW)):
        pass


def test_an_export_with_data_is_erased_only_if_it_is_named_again(disks):
    Path("fast.img").write_bytes(b"data" * (DATA_FROM // 2))
    with pytest.raises(DeviceError, match="holds data"), serve.served(setting()):
        pass
    with pytest.raises(DeviceError, match="is not --fast"), serve.served(setting(erase=SLOW)):
        pass
    with serve.served(setting(erase=FAST)):
        assert page(3) == bytes([4]) * PAGE


def test_servers_of_the_old_way_to_choose_an_export(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("old.sock")
    listener.listen()
    names = []

    def one():
        client, _ = listener.accept()
        client.sendall(struct.pack(">8s8sH", b"NBDMAGIC", b"IHAVEOPT", 1))
        nbd.received(client, 4)
        for _ in range(2):
            _, option, length = nbd.OPTION.unpack(nbd.received(client, nbd.OPTION.size))
            names.append(nbd.received(client, length))
            if option == nbd.GO:
                client.sendall(nbd.OPTION_REPLY.pack(nbd.REPLY_MAGIC, option, nbd.UNSUPPORTED, 0))
        flags = nbd.HAS_FLAGS | nbd.SENDS_FLUSH | nbd.SENDS_FUA
        client.sendall(struct.pack(">QH", VOLUME, flags) + bytes(124))
        nbd.received(client, nbd.REQUEST.size)

    thread = threading.Thread(target=one)
    thread.start()
    device = nbd.open_export("nbd+unix:///some%20disk?socket=old.sock")
    assert device.size_bytes == VOLUME
    device.release()
    thread.join()
    listener.close()
    assert names[1] == b"some disk"


@pytest.mark.parametrize(("uri", "found"), [
    ("nbd://host", ("", "host", 10809, "")), ("nbd://[::1]:99/a/b", ("", "::1", 99, "a/b")),
    ("nbd+unix:///e?socket=/run/x", ("/run/x", "", 0, "e")),
])  # fmt: skip
def test_addresses(uri, found):
    assert nbd.is_uri(uri)
    assert nbd.place_of(uri) == found
    assert not nbd.is_uri("/dev/nbd0")


def test_no_read_returns_old_data_over_nbd(tmp_path):
    totals = check(tmp_path, 1500, 3, seed=5, settings=SETTINGS[:2], remote=True)
    assert totals["kills"] == 3
    assert totals["warm_starts"] == 0
