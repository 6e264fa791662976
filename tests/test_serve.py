"""`serve`: real files through NBD clients, restarts, errors of a device, and refusals."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from serving_checker import SETTINGS, Client, check

from hybridsim.answers.measurements import gather
from hybridsim.answers.measurements.measurement import CACHE, HIT_RATIO, Name
from hybridsim.cli import cli
from hybridsim.cli.arguments import machine
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import DeviceError, UsageError
from hybridsim.serving import cache, claims, nbd
from hybridsim.serving.generations import DATA_FROM
from hybridsim.serving.server import listen_unix
from hybridsim.show import schemas
from hybridsim.studies import serve
from hybridsim.studies.replay import replay
from hybridsim.traces.trace import Trace

VOLUME = 8 << 20
PAGE = 65536


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("slow.img").write_bytes(bytes(range(256)) * (VOLUME // 256))
    with open("fast.img", "wb") as file:
        file.truncate(DATA_FROM + 32 * PAGE)
    return tmp_path


def setting(*words, **others):
    values = {"slow": "slow.img", "fast": "fast.img", "state": Path("state"), "port": None,
              "socket": Path("nbd.sock").absolute(), "threads": 4} | others  # fmt: skip
    return serve.Setting(site=machine(None, ["cache.policy=lru", *words]), **values)


def client():
    return Client("nbd.sock", VOLUME)


def test_clients_read_what_was_written_from_the_ssd_too(place):
    with serve.served(setting()) as ready:
        one = client()
        assert one.ask(nbd.READ, 512, 1024) == (0, bytes(range(256)) * 4)
        # A write to a page that is being filled may end the fill.
        wait_for(lambda: ready.figures.counters()["pages_present"] == 1)
        assert one.ask(nbd.WRITE, 4096, 4096, b"x" * 4096, nbd.FUA)[0] == 0
        assert Path("slow.img").read_bytes()[4096:8192] == b"x" * 4096
        assert client().ask(nbd.READ, 4096, 8192)[1] == b"x" * 4096 + bytes(range(256)) * 16
        assert ready.figures.read_hits == 1
        assert Path("fast.img").read_bytes()[DATA_FROM + 4096 :][:4096] == b"x" * 4096
        assert one.ask(nbd.FLUSH, 0, 0)[0] == 0
        assert one.ask(nbd.TRIM, 0, PAGE)[0] == 0
        assert one.ask(nbd.READ, 0, 4096)[1] == bytes(4096)


def test_wrong_requests_are_errors_and_the_connection_goes_on(place):
    with serve.served(setting()):
        one = client()
        assert one.ask(nbd.READ, 1, 512)[0] == errno.EINVAL
        assert one.ask(nbd.READ, VOLUME, 512)[0] == errno.EINVAL
        assert one.ask(nbd.WRITE, VOLUME, 512, bytes(512))[0] == errno.ENOSPC
        assert one.ask(nbd.WRITE_ZEROES, 0, 512)[0] == errno.EINVAL
        assert one.ask(99, 0, 512)[0] == errno.EINVAL
        assert one.ask(nbd.READ, 0, 0) == (0, b"")
        assert one.ask(nbd.READ, 0, 512)[0] == 0


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_pages_are_kept_over_an_orderly_end(place):
    fill_pages(8)
    with serve.served(setting()) as ready:
        assert ready.pages_warm == 8
        assert client().ask(nbd.READ, 3 * PAGE, PAGE)[1] == page_of_file(3)
        assert ready.figures.read_hits == 1


def fill_pages(pages, first=0):
    with serve.served(setting("cache.sequential_cutoff=0")) as ready:
        for page in range(first, first + pages):
            assert client().ask(nbd.READ, page * PAGE, PAGE)[0] == 0
        wait_for(lambda: ready.figures.counters()["pages_present"] == pages)


def page_of_file(page):
    return Path("slow.img").read_bytes()[page * PAGE : (page + 1) * PAGE]


def older_ssd():
    shutil.copy("fast.img", "copy.img")
    fill_pages(9)
    shutil.copy("copy.img", "fast.img")


def older_ssd_and_state():
    shutil.copytree("state", "old")
    older_ssd()
    shutil.rmtree("state")
    shutil.copytree("old", "state")
    written_by_others()


def written_by_others():
    with open("slow.img", "r+b") as file:
        file.write(b"new")


def ssd_written_by_others():
    with open("fast.img", "r+b") as file:
        file.seek(DATA_FROM)
        file.write(b"new")


def state_of_another_kind():
    next(Path("state").glob("*.json")).write_text("[1]")


def other_page():
    return setting("cache.page=32KiB")


def no_state():
    shutil.rmtree("state")


def damaged_list():
    next(Path("state").glob("*.slots")).write_bytes(b"")


def damaged_superblock():
    with open("fast.img", "r+b") as file:
        file.seek(40)
        file.write(b"!!!!")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (older_ssd, "it is of generation 1, and the last one was 2"),
        (older_ssd_and_state, "the slow device may have been written to"),
        (written_by_others, "the slow device may have been written to"),
        (ssd_written_by_others, "the fast device may have been written to"),
        (state_of_another_kind, "there is no state of it"),
        (other_page, "its pages, policy or devices were others"),
        (no_state, "there is no state of it"),
        (damaged_list, "the list of its pages is damaged"),
        (damaged_superblock, "its superblock is damaged"),
    ],
)
def test_the_cache_starts_empty_unless_all_agrees(place, change, why):
    fill_pages(8)
    wanted = change() or setting()
    with serve.served(wanted) as ready:
        assert ready.pages_warm == 0
        assert ready.why_empty.startswith(why)
        assert client().ask(nbd.READ, 0, PAGE)[1] == page_of_file(0)


def test_two_copies_of_an_ssd_that_took_turns_are_distinguished(place, monkeypatch):
    """The host does not see that they are exchanged, as with snapshots below it."""
    monkeypatch.setattr(claims.Claim, "stamp", lambda self: [self.path])
    Path("slow.img").write_bytes(b"".join(bytes([n]) * PAGE for n in range(VOLUME // PAGE)))
    fill_pages(8)
    shutil.copy("fast.img", "copy.img")
    fill_pages(8)  # generation 2 of the one
    os.rename("fast.img", "original.img")
    os.rename("copy.img", "fast.img")
    fill_pages(8, first=8)  # generation 2 of the other
    os.rename("original.img", "fast.img")
    with serve.served(setting()) as ready:
        for page in range(8, 16):
            assert client().ask(nbd.READ, page * PAGE, PAGE)[1] == page_of_file(page)
        assert ready.why_empty == "it is another copy of generation 2 than the last one"


def test_errors_of_the_ssd_cost_copies_and_then_it_is_left_alone(place, monkeypatch):
    fill_pages(8)
    with serve.served(setting()) as ready:
        one = client()
        break_medium(monkeypatch, DATA_FROM)
        for page in (0, 0, 1):
            assert one.ask(nbd.READ, page * PAGE, PAGE) == (0, page_of_file(page))
        assert ready.figures.fast_errors >= 2
        assert ready.figures.counters()["pages_present"] <= 6
        for page in range(VOLUME // PAGE):
            assert one.ask(nbd.READ, page * PAGE, PAGE) == (0, page_of_file(page))
        assert ready.figures.is_detached
        assert one.ask(nbd.WRITE, 0, 4096, b"y" * 4096)[0] == 0
        assert one.ask(nbd.READ, 0, 4096)[1] == b"y" * 4096
    assert not ready.is_closed
    monkeypatch.undo()
    os.chdir(place)
    with serve.served(setting()) as ready:
        assert ready.why_empty == "it was not closed in order"


def break_medium(monkeypatch, start, error=errno.EIO):
    before = cache.Medium.read, cache.Medium.write

    def fail(original):
        def failing(self, *arguments):
            if self.start == start:
                raise OSError(error, "broken")
            original(self, *arguments)

        return failing

    monkeypatch.setattr(cache.Medium, "read", fail(before[0]))
    monkeypatch.setattr(cache.Medium, "write", fail(before[1]))


def test_errors_of_the_disk_are_the_clients_and_its_copies_are_dropped(place, monkeypatch):
    fill_pages(8)
    with serve.served(setting()) as ready:
        one = client()
        break_medium(monkeypatch, 0)
        assert one.ask(nbd.READ, 2 * PAGE, PAGE) == (0, page_of_file(2))
        assert one.ask(nbd.READ, 20 * PAGE, PAGE)[0] == errno.EIO
        assert one.ask(nbd.WRITE, 2 * PAGE, PAGE, bytes(PAGE))[0] == errno.EIO
        monkeypatch.undo()
        os.chdir(place)
        assert one.ask(nbd.READ, 2 * PAGE, PAGE) == (0, page_of_file(2))
        assert ready.figures.slow_errors == 2


def test_errors_that_the_protocol_does_not_have_are_replaced(place, monkeypatch):
    with serve.served(setting()):
        for error, answered in (
            (errno.ENODATA, errno.EIO), (errno.EDQUOT, errno.ENOSPC), (errno.ENOSPC, errno.ENOSPC),
        ):  # fmt: skip
            with monkeypatch.context() as broken:
                break_medium(broken, 0, error)
                assert client().ask(nbd.READ, 0, 4096)[0] == answered


def test_a_trim_with_fua_is_on_the_medium_before_its_answer(place, monkeypatch):
    done = []
    monkeypatch.setattr(cache.Medium, "discard", lambda *_: done.append("discard"))
    monkeypatch.setattr(cache.Medium, "flush", lambda *_: done.append("flush"))
    with serve.served(setting()):
        assert client().ask(nbd.TRIM, 0, PAGE)[0] == 0
        assert done == ["discard"]
        assert client().ask(nbd.TRIM, 0, PAGE, flags=nbd.FUA)[0] == 0
        assert done == ["discard", "discard", "flush"]


# Refusals: nothing is written.


def refusal(**others):
    before = Path("fast.img").read_bytes()
    with pytest.raises((DeviceError, UsageError)) as error, serve.served(setting(**others)):
        pass
    assert Path("fast.img").read_bytes() == before
    return str(error.value)


@pytest.mark.parametrize("at", [0, 1080, DATA_FROM + 32 * PAGE - 512])
def test_a_fast_device_with_other_data_is_refused_unless_it_is_named_again(place, at):
    with open("fast.img", "r+b") as file:
        file.seek(at)
        file.write(b"\x53\xef")
    text = refusal()
    assert "would be overwritten: if you do not need it, name it again: --erase fast.img" in text
    assert "is not --fast fast.img" in refusal(erase="slow.img")
    with serve.served(setting(erase="fast.img")) as ready:
        assert ready.why_empty == "it is new"


def test_devices_in_use_the_same_or_too_small_are_refused(place):
    assert refusal(fast="./slow.img") == "./slow.img: is in use by another process that locks it"
    os.link("slow.img", "link.img")
    with open("slow.img", "rb") as file:
        user = subprocess.Popen(["sleep", "60"], stdin=file)
    assert f"slow.img: is open in sleep ({user.pid})" in refusal()
    user.kill()
    user.wait()
    with serve.served(setting()), pytest.raises(DeviceError, match="is in use by another"):
        claims.claim("fast.img")
    assert "no_such: No such file or directory" in refusal(slow="no_such")
    assert "is neither a block device nor a file" in refusal(slow="/dev/null")
    os.truncate("fast.img", DATA_FROM)
    assert "fast.img: has 1.00 MiB; at least 1.50 MiB" in refusal()


def test_write_back_and_parts_of_pages_are_refused(place):
    with pytest.raises(UsageError, match="serve keeps only clean copies on the SSD"):
        serve.checked(machine(None, ["cache.mode=write-back"]).cache)
    with pytest.raises(UsageError, match=r"cache\.sub_page cannot be served"):
        serve.checked(machine(None, ["cache.sub_page=true"]).cache)
    with pytest.raises(UsageError, match="page cache only"):
        serve.checked(machine(None, ["cache.kind=bcache"]).cache)


def test_a_socket_in_use_is_refused_and_one_left_behind_replaced(place):
    path = Path("nbd.sock").absolute()
    first = listen_unix(path)
    with pytest.raises(DeviceError, match="another server listens there"):
        listen_unix(path)
    first.close()
    listen_unix(path).close()
    Path("file").write_text("")
    with pytest.raises(DeviceError, match="is not a socket"):
        listen_unix(Path("file"))


# Reads that grow to the pages that are filled by them.


def reads_of(monkeypatch, start):
    """Return the list of the offsets and lengths of reads of a device from now on."""
    seen, read = [], cache.Medium.read

    def noted(self, where, offset):
        if self.start == start:
            seen.append((offset, len(where)))
        read(self, where, offset)

    monkeypatch.setattr(cache.Medium, "read", noted)
    return seen


def test_a_miss_reads_its_whole_page_once_if_it_is_filled_by_it(place, monkeypatch):
    with serve.served(setting("cache.fill=piggyback", "cache.sequential_cutoff=0")) as ready:
        of_disk = reads_of(monkeypatch, 0)
        one, whole = client(), Path("slow.img").read_bytes()
        at = 3 * PAGE + 512
        assert one.ask(nbd.READ, at, 1024) == (0, whole[at : at + 1024])
        wait_for(lambda: ready.figures.counters()["pages_present"] == 1)
        assert of_disk == [(3 * PAGE, PAGE)]
        at = 4 * PAGE + 4096
        assert one.ask(nbd.READ, at, 2 * PAGE) == (0, whole[at : at + 2 * PAGE])
        wait_for(lambda: ready.figures.counters()["pages_present"] == 4)
        assert of_disk[1:] == [(4 * PAGE, 3 * PAGE)]
        assert one.ask(nbd.READ, 3 * PAGE, 4 * PAGE) == (0, whole[3 * PAGE : 7 * PAGE])
        assert ready.figures.read_hits == 1
        assert len(of_disk) == 2


def test_a_wider_read_that_fails_is_done_again_without_what_only_the_cache_wanted(
    place, monkeypatch
):
    with serve.served(setting("cache.fill=piggyback", "cache.sequential_cutoff=0")) as ready:
        read, whole = cache.Medium.read, Path("slow.img").read_bytes()

        def bad_sector(self, where, offset):
            if self.start == 0 and offset <= 3 * PAGE < offset + len(where):
                raise OSError(errno.EIO, "broken")
            read(self, where, offset)

        monkeypatch.setattr(cache.Medium, "read", bad_sector)
        one, at = client(), 3 * PAGE + 4096
        assert one.ask(nbd.READ, at, 1024) == (0, whole[at : at + 1024])
        assert one.ask(nbd.READ, 3 * PAGE, 512)[0] == errno.EIO
        assert ready.figures.counters()["pages_present"] == 0
        assert ready.figures.slow_errors == 3
        monkeypatch.setattr(cache.Medium, "read", read)
        assert one.ask(nbd.READ, 3 * PAGE, 512)[0] == 0
        wait_for(lambda: ready.figures.counters()["pages_present"] == 1)


# Beside the simulation of the same requests.


@pytest.mark.parametrize("mode", ["write-through", "read-only"])
@pytest.mark.parametrize(("policy", "fill"), [
    ("lru", "re-read"), ("learned", "re-read"), ("lru", "piggyback"),
])  # fmt: skip
def test_the_counters_are_those_of_the_simulation_of_the_same_requests(place, mode, policy, fill):
    words = [f"cache.policy={policy}", f"cache.mode={mode}", "cache.fill_when=foreground",
             f"cache.fill={fill}"]  # fmt: skip
    with serve.served(setting(*words, record="load.csv")) as ready:
        one, draw = client(), np.random.default_rng(1)
        for page, offset, kind in zip(
            draw.zipf(1.2, 1500) * 7 % 128, draw.integers(0, 8, 1500), draw.random(1500)
        ):
            at = int(page * PAGE + offset * 8192)
            if kind < 0.2:
                assert one.ask(nbd.WRITE, at, 4096, bytes(4096))[0] == 0
            else:
                assert one.ask(nbd.READ, at, 8192)[0] == 0
        counters, hits = ready.figures.counters(), ready.figures.read_hits
    trace = Trace.read("load.csv")
    site = machine(None, [*words, f"cache.size={32 * PAGE}", "replay.mode=closed",
                          "replay.depth=1", f"backing.capacity={VOLUME}"])  # fmt: skip
    phase = replay(trace, site).to_dict()["phases"]["whole"]
    assert hits == round(phase["read"]["hit"] * phase["read"]["n"])
    same = ("fills_started", "fills_done", "fills_doomed", "evictions", "pages_present")
    assert [counters[name] for name in same] == [phase["counters"][name] for name in same]
    assert counters["evictions" if policy == "lru" else "fills_done"] > 20


# The command, its figures and the checker.


def test_the_command_serves_until_a_signal_and_writes_figures_that_compare_reads(place):
    program = shutil.which("hybridsim") or pytest.skip("not installed")
    words = "serve --slow slow.img --fast fast.img --policy lru --state state --json served.json"
    process = subprocess.Popen(
        [program, *words.split(), "--socket", "nbd.sock", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "serving 8.00 MiB with a cache of 2.00 MiB at nbd+unix:" in process.stdout.readline()
    assert process.stdout.readline() == "the cache starts empty: it is new\n"
    assert "--set cache.fill=piggyback reads it with the miss (" in process.stdout.readline()
    port = int(process.stderr.readline().split()[-1])
    for _ in range(4):
        assert client().ask(nbd.READ, 0, 4096)[0] == 0
        time.sleep(0.1)
    with socket.create_connection(("127.0.0.1", port)) as scrape:
        scrape.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = scrape.makefile().read()
    assert 'hybridsim_serve_requests_total{op="read"} 4' in text
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("served 4 reads and 0 writes")
    document = json.loads(Path("served.json").read_text())
    Draft202012Validator(schemas.load("served")).validate(document)
    measured = gather("served.json")
    assert measured.figures[Name("", CACHE, HIT_RATIO)] == document["read_hits"] / 4
    assert measured.figures[Name("", CACHE, "fills_done")] == 1


def test_errors_of_the_command_are_one_line(place):
    done = CliRunner().invoke(cli, ["serve", "--slow", "slow.img", "--fast", "no_such"])
    assert isinstance(done.exception, DeviceError)


def test_the_run_writes_figures_meanwhile(place):
    stop = Event()
    wanted = setting(json_file="served.json", every_s=0.05)

    def show(ready):
        assert client().ask(nbd.READ, 0, 512)[0] == 0
        wait = Event()
        while not Path("served.json").exists() and not wait.wait(0.02):
            stop.clear()
            if wanted.json_file:
                break
        stop.set()

    serve.run(wanted, stop, show)
    assert json.loads(Path("served.json").read_text())["requests"]["read"]["n"] == 1


def test_no_read_returns_anything_but_the_last_write(tmp_path):
    totals = check(tmp_path, operations=2500, kills=4, seed=5, settings=SETTINGS[:2])
    assert totals["kills"] == 4
    assert totals["reads"] > 500


def test_jobs_that_overlap_wait_for_each_other_and_others_do_not():
    line = cache.Line()

    def job(op, offset, length):
        order = cache.Order(0, 0, int(op), offset, length, offset)
        return cache.Job(order, memoryview(b""))

    write, read, beside = job(Op.WRITE, 0, 8), job(Op.READ, 4, 8), job(Op.READ, 8, 8)
    later, again = job(Op.WRITE, 6, 4), job(Op.READ, 0, 4)
    assert [line.add(each) for each in (write, read, beside, later, again)] == [
        True, False, True, False, False,
    ]  # fmt: skip
    write.error = errno.EIO
    assert line.end(write) == [read, again]
    assert read.is_void
    assert not later.is_void
    assert line.end(beside) == []
    assert line.end(read) == [later]


def test_the_blocks_of_a_device_are_zeros_or_not():
    size = 4 << 20
    zeros = bytearray(size)
    read = lambda at, length: bytes(zeros[at : at + length])  # noqa: E731
    assert claims.data_in(read, size) is None
    zeros[size - 1] = 1
    assert claims.data_in(read, size) == 3 << 20
