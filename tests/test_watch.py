"""Caches that are simulated beside a running disk or a real cache."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from hybridsim import Scenario
from hybridsim.cli import cli
from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import no_requests
from hybridsim.scenario import building
from hybridsim.show import schemas
from hybridsim.studies.batches import batches
from hybridsim.studies.hits import hits
from hybridsim.studies.watch import kept as kept_states
from hybridsim.studies.watch import watching
from hybridsim.studies.watch.kept import Journal, Kept
from hybridsim.studies.watch.pieces import Piece, of_stream
from hybridsim.studies.watch.watching import (
    KernelCache,
    PageCaches,
    prometheus,
    settings,
    watch,
)
from hybridsim.traces.trace import Trace

SECOND = 10**9
MIB = 1 << 20
ROOT = Path(__file__).parent.parent
HOW_TO = ROOT / "hybridsim/docs/how-to"
DASHBOARD = json.loads((HOW_TO / "watch.grafana.json").read_text(encoding="utf-8"))


def lines(count, step=0.01):
    """Return block events as text: reads of a few pages, each complete after 3 ms."""
    rng = np.random.default_rng(3)
    out = []
    for at in range(count):
        second, sector = 100 + at * step, int(rng.zipf(1.3)) % 4000 * 128
        out.append(f" fio-1 [001] ..... {second:.6f}: block_bio_queue: 8,16 R {sector} + 8 [fio]")
        out.append(
            f" fio-1 [001] ..... {second + 0.003:.6f}: "
            f"block_rq_complete: 8,16 R () {sector} + 8 [0]"
        )
    return "\n".join(out) + "\n"


def small():
    """Return a page cache of 16 pages."""
    return [PageCaches([1 << 20], ["lru"], 65536)]


class TestWatch:
    def pipe(self, text):
        """Return the end of a pipe that gets a text, piece by piece."""
        read, write = os.pipe()

        def feed():
            with os.fdopen(write, "w") as file:
                for start in range(0, len(text), 5000):
                    file.write(text[start : start + 5000])
                    file.flush()

        threading.Thread(target=feed).start()
        return read

    def test_hits_are_those_of_the_trace(self, tmp_path):
        text = lines(4000)
        (tmp_path / "a.txt").write_text(text)
        states = []
        last = watch(of_stream(self.pipe(text)), "x", [PageCaches([1 << 22], ["lru"], 65536)], 5,
                     states.append)  # fmt: skip
        (one,) = hits(Trace.read(tmp_path / "a.txt"), "4MiB", page="64KiB")
        (shadow,) = last.shadows
        assert (shadow.accesses, shadow.hits) == (one.page_accesses, one.page_hits)
        assert len(states) == 8
        assert sum(each.recent.requests for each in states) == 4000
        assert last.total.mean_latency_ns == pytest.approx(3e6, rel=1e-3)

    def test_a_line_is_printed_before_the_stream_ends(self):
        process = subprocess.Popen(
            [sys.executable, "-m", "hybridsim", "watch", "-", "--cache-size", "1MiB",
             "--every", "1s", "--json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
        )  # fmt: skip
        process.stdin.write(lines(400))
        process.stdin.flush()
        document = json.loads(process.stdout.readline())  # the stream is still open
        assert not [*Draft202012Validator(schemas.load("watch")).iter_errors(document)]
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def test_large_caches_are_scaled_down(self):
        shadows = PageCaches([1 << 36, 1 << 40], ["lru"], 65536)
        assert shadows.rate == pytest.approx((1 << 16) / (1 << 24))
        with pytest.raises(UsageError, match="too small beside"):
            PageCaches([1 << 20, 1 << 40], ["lru"], 65536)
        with pytest.raises(UsageError, match="policy lfu"):
            PageCaches([1 << 40], ["lfu"], 65536)

    def test_prometheus_reads_the_figures(self):
        from hybridsim.cli.prometheus import serving

        last = watch(of_stream(self.pipe(lines(400))), 'a"b', small(),
                     1, lambda state: None)  # fmt: skip
        server = serving(("127.0.0.1", 0), lambda: prometheus(last))
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            with urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                text = answer.read().decode()
        finally:
            server.shutdown()
            server.server_close()
        assert text == prometheus(last)
        assert 'hybridsim_requests_total{device="a\\"b",op="read"} 400' in text
        sample = re.compile(r'[a-z_]+\{([a-z_]+="([^"\\]|\\.)*",?)+\} [0-9.e+-]+')
        for line in text.splitlines():
            assert line.startswith(("# HELP hybridsim_", "# TYPE hybridsim_")) or sample.fullmatch(
                line
            )

    def test_each_query_of_the_dashboard_names_metrics_and_labels_that_are_served(self):
        last = watch(of_stream(self.pipe(lines(400))), "x", small(), 1,
                     lambda state: None)  # fmt: skip
        served = prometheus(last)
        names = set(re.findall(r"^(hybridsim_\w+)\{", served, re.M))
        labels = set(re.findall(r'(\w+)="', served))
        asked = set()
        for panel in DASHBOARD["panels"]:
            assert panel["targets"]
            for target in panel["targets"]:
                asked |= set(re.findall(r"hybridsim_\w+", target["expr"]))
                assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
                assert set(re.findall(r"(\w+)=~", target["expr"])) <= labels
        assert asked == names
        (device,) = (each for each in DASHBOARD["templating"]["list"] if each["name"] == "device")
        assert re.findall(r"\w+", device["query"])[1:] == ["hybridsim_requests_total", "device"]

    @pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
    def test_a_real_prometheus_answers_the_queries_of_the_dashboard(self, tmp_path):
        from hybridsim.cli.prometheus import serving

        last = watch(of_stream(self.pipe(lines(400))), "sd b", small(),
                     1, lambda state: None)  # fmt: skip
        server = serving(("127.0.0.1", 0), lambda: prometheus(last))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (tmp_path / "p.yml").write_text(
            "scrape_configs:\n- job_name: watch\n  scrape_interval: 1s\n  static_configs:\n"
            f"  - targets: ['127.0.0.1:{server.server_port}']\n"
        )
        process = subprocess.Popen(
            ["prometheus", f"--config.file={tmp_path}/p.yml", f"--storage.tsdb.path={tmp_path}/d",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

        def answered(query):
            query = query.replace("$device", ".*").replace("$__rate_interval", "1m")
            address = f"http://127.0.0.1:{port}/api/v1/query?" + urlencode({"query": query})
            with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5) as reply:
                return json.load(reply)["data"]["result"]

        try:
            for panel in DASHBOARD["panels"]:
                for target in panel["targets"]:
                    end = time.monotonic() + 60
                    while not (found := answered(target["expr"])) and time.monotonic() < end:
                        time.sleep(0.2)
                    assert found, target["expr"]
                    assert {each["metric"]["device"] for each in found} == {"sd b"}
            (reads,) = answered('hybridsim_requests_total{op="read"}')
            assert reads["value"][1] == "400"
        finally:
            process.kill()
            process.wait()
            server.shutdown()
            server.server_close()

    @pytest.mark.parametrize(("options", "error"), [
        ("--listen nowhere", "write HOST:PORT"), ("--cache-size 0", "at least a page"),
        ("--policy nope", "no replacement policy"), ("--every never", "--every"),
    ])  # fmt: skip
    def test_options_that_cannot_be_met_are_refused(self, options, error):
        done = CliRunner().invoke(cli, ["watch", "-", *options.split()])
        assert done.exit_code
        assert error in done.output + str(done.exception)

    def test_a_stream_without_events_is_refused(self):
        with pytest.raises(UsageError, match="no block events"):
            list(of_stream(self.pipe("hello\n")))

    def test_lost_events_of_a_stream_are_counted(self):
        text = lines(100) + "CPU:1 [LOST 77 EVENTS]\n" + lines(300)[len(lines(100)) :]
        assert sum(piece.lost for piece in of_stream(self.pipe(text))) == 77

    def test_bounded_memory(self):
        """What has settled is not kept: the pending events are those of a second."""
        batches = of_stream(self.pipe(lines(3000)))
        sizes = [piece.rows.rows for piece in batches]
        assert max(sizes) <= 210
        assert sum(sizes) == 3000


STATUS = (
    "0 16384 cache 8 11/1024 128 {used}/16 {read_hits} {read_misses} {write_hits} {write_misses} "
    "{demotions} {promotions} 0 2 writethrough no_discard_passdown 2 migration_threshold 4096 smq "
    "0 rw -"
)
GEN = "gen:zipf,theta=1.1,requests={requests},span=8MiB,rate=200,read=80%,seed=5"


def machine(kind, size):
    """Return a scenario with a cache of that kind and size."""
    site = Scenario.default().with_options(cache=kind)
    return site if kind == "none" else site.with_options(cache_size=size)


def kernel(kind="dm-cache", size="1MiB"):
    """Return a small cache on simulated devices, with time 0 as its origin."""
    return KernelCache(machine(kind, size), 8 * MIB, 0)


def pieces(requests=3000, at_once=100):
    """Yield generated requests as they would come from a disk."""
    for chunk in Trace.read(GEN.format(requests=requests)).chunks():
        for start in range(0, chunk.rows, at_once):
            part = chunk.between(start, min(start + at_once, chunk.rows))
            yield Piece(part, int(part.arrival_ns[-1]))


class TestDevices:
    @pytest.mark.parametrize("kind", ["dm-cache", "bcache", "none"])
    def test_a_shadow_is_the_cache_of_a_replay(self, kind):
        """Pieces of any length give what one replay of all of them gives."""
        trace = Trace.read(GEN.format(requests=3000))
        site = machine(kind, "4MiB").with_options(mode="open")
        volume_bytes = trace.summary().max_end_bytes
        last = watch(pieces(), "x", [KernelCache(site, volume_bytes, 0)], 2, lambda state: None)
        (shadow,) = last.shadows
        run = Run(building.machine(site, "open", volume_bytes, site.cache.pages(volume_bytes)))
        for batch in batches(trace):
            run.feed(batch)
            while run.advance(1 << 62)[0] not in (loops.NEEDS_BATCH, loops.FINISHED):
                pass
        names = {
            "dm-cache": ("read_hits", "write_hits"), "bcache": ("cache_hits",), "none": ()
        }[kind]  # fmt: skip
        assert shadow.hits == sum(run.cache_totals()[name] for name in names)
        assert (kind == "none") == (shadow.accesses == 0)
        assert shadow.mean_ns > 0

    @pytest.mark.parametrize(
        ("drive", "has_busy_time"), [("hgst-ultrastar-7k8", True), ("samsung-pm9a3-1920gb", False)]
    )
    def test_ssds_have_no_busy_time(self, drive, has_busy_time):
        site = machine("none", "").with_options(backing_drive=drive)
        (shadow,) = watch(pieces(), "x", [KernelCache(site, 8 * MIB, 0)], 1, print).shadows
        assert (shadow.disk_busy_ns is not None) == has_busy_time

    def test_requests_beyond_the_disk_are_refused(self):
        with pytest.raises(UsageError, match="--volume"):
            watch(pieces(), "x", [KernelCache(Scenario.default(), MIB, 0)], 1, print)

    def test_disks_that_are_too_slow_are_refused_before_memory_is_full(self, monkeypatch):

        monkeypatch.setattr(watching, "BACKLOG_MAX", 0)
        with pytest.raises(UsageError, match="wait for the simulated disks"):
            watch(pieces(), "x", [kernel("none")], 1, lambda state: None)


class TestBesideARealCache:
    def test_settings_are_those_of_the_status(self):
        values, volume_bytes = settings(STATUS.format(
            used=0, read_hits=0, read_misses=0, write_hits=0, write_misses=0, demotions=0,
            promotions=0,
        ))  # fmt: skip
        assert volume_bytes == 8 * MIB
        assert values == {
            "cache.kind": "dm-cache", "cache.size": "1048576B", "cache.block": "65536B",
            "cache.mode": "writethrough", "cache.migration_threshold": "2097152B",
        }  # fmt: skip
        assert settings("0 8 linear 8:0 0") is None

    def stream(self):
        """Return events as text with the status of a cache each two seconds, and its counters.

        The cache is a simulated one with the same settings, which starts with the first status.
        """
        counters = dict.fromkeys(
            ("read_hits", "read_misses", "write_hits", "write_misses", "demotions", "promotions"), 0
        )
        values, volume_bytes = settings(STATUS.format(used=0, **counters))
        site = Scenario.default().with_options(cache=values.pop("cache.kind"))
        out, steps, due_ns = [], [], 0

        def put(time_ns, text):
            time_ns += 50 * SECOND
            out.append(f" x-9 [000] ..... {time_ns // SECOND}.{time_ns % SECOND:09d}: {text}")

        def mark(time_ns):
            put(time_ns, "tracing_mark_write: " + STATUS.format(used=0, **counters))
            steps.append(dict(counters))

        for piece in pieces(at_once=1):
            rows, now_ns = piece.rows, int(piece.rows.arrival_ns[0])
            if not steps:
                real = KernelCache(site.with_values(values), volume_bytes, now_ns)
            if now_ns >= due_ns:
                mark(now_ns)
                due_ns += 2 * SECOND
            letter, sector = "RW"[int(rows.op[0])], int(rows.offset_bytes[0]) // 512
            what = f"8,16 {letter} {sector} + {int(rows.length_bytes[0]) // 512} [x]"
            put(now_ns, f"block_bio_queue: {what}")
            put(now_ns + 100, f"block_bio_complete: {what}")
            real.take(rows)
            counters |= {name: real._run.cache_totals()[name] for name in counters}
        mark(now_ns + SECOND)
        return "\n".join(out) + "\n", steps

    def test_shadow_and_real_cache_agree_where_both_are_the_same(self, tmp_path):
        text, steps = self.stream()
        done = subprocess.run(
            [sys.executable, "-m", "hybridsim", "watch", "-", "--every", "1900ms", "--json"],
            input=text, capture_output=True, text=True, cwd=ROOT, check=True,
        )  # fmt: skip
        documents = [json.loads(each) for each in done.stdout.splitlines()]
        assert len(documents) == len(steps) - 1
        for document, before, after in zip(documents, steps, steps[1:]):
            assert not [*Draft202012Validator(schemas.load("watch")).iter_errors(document)]
            grown = {name: after[name] - before[name] for name in after}
            found = grown["read_hits"] + grown["write_hits"]
            assert document["real"]["hit_ratio"] == pytest.approx(
                found / (found + grown["read_misses"] + grown["write_misses"])
            )
            (shadow,) = document["caches"]  # as it runs, and no others unless they are asked for
            assert (shadow["kind"], shadow["size_bytes"]) == ("dm-cache", MIB)
            assert shadow["hit_ratio"] == pytest.approx(document["real"]["hit_ratio"], abs=1e-12)
        assert documents[-1]["real"]["hits"] == steps[-1]["read_hits"] + steps[-1]["write_hits"]

    def test_lines_show_both(self):
        text, _ = self.stream()
        done = subprocess.run(
            [sys.executable, "-m", "hybridsim", "watch", "-", "--every", "5s", "--cache",
             "page,none", "--cache-size", "1MiB"],
            input=text, capture_output=True, text=True, cwd=ROOT, check=True,
        )  # fmt: skip
        title, head, *rows = done.stdout.splitlines()
        assert title.startswith("hits of caches beside standard input")
        assert re.split(r" {2,}", head.strip()) == [
            "time", "requests/s", "mean", "p99", "real dm-cache", "dm-cache 1.00 MiB",
            "lru 1.00 MiB", "no cache",
        ]  # fmt: skip
        assert len(rows) >= 3
        assert all(len(row) == len(head) and re.search(r"\d+ (ms|us)$", row) for row in rows)


class KilledError(Exception):
    """The process ends at once."""


def killed(parts):
    """Yield pieces, then end as if the process were killed."""
    yield from parts
    raise KilledError


def figures(state):
    """Return what is shown of an interval."""
    return (
        state.seconds, state.interval_s, state.recent.requests, state.total.requests,
        [(each.accesses, each.hits, each.hit_ratio, each.mean_ns) for each in state.shadows],
    )  # fmt: skip


class TestState:
    def caches(self):
        return [PageCaches([MIB, 2 * MIB], ["lru", "arc"], 65536), kernel("dm-cache", "4MiB"),
                kernel("bcache", "32MiB")]  # fmt: skip

    def test_a_killed_watch_goes_on_as_if_it_had_not_been(self, tmp_path):
        whole = watch(pieces(), "x", self.caches(), 2, lambda state: None)
        path = str(tmp_path / "state.npz")
        all_pieces = list(pieces())
        half = len(all_pieces) // 2
        for part in (all_pieces[:half], all_pieces[half:]):
            last = watch(part, "x", self.caches(), 2, lambda state: None, kept=Kept(path))
        for one, other in zip(whole.shadows, last.shadows):
            assert (one.name, one.accesses, one.hits) == (other.name, other.accesses, other.hits)
            assert one.ssd_written_bytes == other.ssd_written_bytes
            assert one.disk_busy_ns == other.disk_busy_ns
        assert last.total.requests == whole.total.requests == 3000

    @pytest.mark.parametrize("save_every_s", [0, 3600])
    def test_intervals_are_those_without_a_kill(self, tmp_path, monkeypatch, save_every_s):
        """The state is saved after each piece, or after the first one only, with a journal."""
        monkeypatch.setattr(kept_states, "SAVE_EVERY_S", save_every_s)
        whole, shown, all_pieces = [], [], list(pieces())
        watch(all_pieces, "x", self.caches(), 2, whole.append)
        for part in (all_pieces[:13], all_pieces[13:20], all_pieces[20:]):
            with contextlib.suppress(KilledError):
                watch(killed(part), "x", self.caches(), 2, shown.append,
                      kept=Kept(str(tmp_path / "state.npz")))  # fmt: skip
        assert len(shown) >= 6
        assert [figures(each) for each in shown] == [figures(each) for each in whole[:-1]]

    def test_a_real_cache_counts_on_without_a_gap_and_pauses_in_one(self, tmp_path):
        def reading(second, hits):
            text = STATUS.format(used=0, read_hits=hits, read_misses=0, write_hits=0,
                                 write_misses=0, demotions=0, promotions=0)  # fmt: skip
            return Piece(no_requests(), second * SECOND, 0, text)

        def watched(*parts):
            shown = []
            with contextlib.suppress(KilledError):
                watch(killed(parts), "x", [], 2, shown.append,
                      kept=Kept(str(tmp_path / "state.npz")))  # fmt: skip
            return [each.real.hits for each in shown]

        assert watched(reading(0, 100), reading(2, 110), reading(4, 120)) == [10, 20]
        assert watched(reading(6, 150)) == [50]
        assert watched(reading(600, 9000), reading(602, 9007)) == [57]

    def test_a_journal_ends_with_its_first_damaged_record(self, tmp_path):
        path = tmp_path / "state.npz"
        with contextlib.suppress(KilledError):
            watch(killed(pieces(1000)), "x", small(), 3600, print, kept=Kept(str(path)))
        journal = Path(f"{path}.journal")
        whole = list(Kept(str(path)).pieces())
        assert sum(each.rows.rows for each in whole) == 900  # the first piece is in the state
        data = journal.read_bytes()
        for damaged in (data[:-1], data[:-9] + b"123456789", data + b"more"):
            journal.write_bytes(damaged)
            found = [each.rows.rows for each in Kept(str(path)).pieces()]
            assert found == [100] * (9 if damaged.startswith(data) else 8)
        journal.write_bytes(b"0" * 16 + data[16:])  # of another state
        assert not list(Kept(str(path)).pieces())
        journal.unlink()
        assert not list(Kept(str(path)).pieces())

    def test_a_state_that_another_watch_uses_is_refused(self, tmp_path):
        path = str(tmp_path / "state.npz")

        def while_another(each):
            with pytest.raises(UsageError, match="another watch uses it"):
                watch(pieces(200), "x", small(), 1, lambda state: None, kept=Kept(path))
            seen.append(each)

        seen = []
        watch(pieces(500), "x", small(), 1, while_another, kept=Kept(path))
        assert seen
        assert watch(pieces(200), "x", small(), 1, print, kept=Kept(path)) is not None

    def test_a_journal_takes_what_a_disk_takes_in_parts(self, tmp_path):
        class Short(io.FileIO):
            def write(self, data):
                return super().write(bytes(data[:100]))

        path = str(tmp_path / "journal")
        journal = Journal(path)
        journal.claim()
        journal._file = Short(path, "ab")
        journal.begin("token")
        piece = next(iter(pieces(100)))
        journal.add(piece)
        journal.add(piece)
        assert [each.rows.rows for each in journal.pieces("token")] == [piece.rows.rows] * 2

    def test_a_state_is_on_the_medium_before_it_replaces_the_old_one(self, tmp_path, monkeypatch):
        done = []
        for name in ("fsync", "replace"):
            original = getattr(os, name)
            monkeypatch.setattr(
                os, name, lambda *a, name=name, to=original: (done.append(name), to(*a))
            )
        path = str(tmp_path / "state.npz")
        watch(pieces(100), "x", small(), 3600, lambda state: None, kept=Kept(path))
        assert done[:3] == ["fsync", "replace", "fsync"]

    def test_time_goes_on_after_a_reboot(self, tmp_path):
        path = str(tmp_path / "state.npz")
        for _ in range(2):  # the second time the clock starts at 0 again
            last = watch(pieces(500), "x", [kernel()], 1, lambda state: None, kept=Kept(path))
        assert last.total.requests == 1000
        assert last.shadows[0].hit_ratio_since_start > 0.5

    def test_a_state_of_other_caches_is_refused(self, tmp_path):
        path = str(tmp_path / "state.npz")
        watch(pieces(200), "x", small(), 1, lambda state: None, kept=Kept(path))
        with pytest.raises(UsageError, match="of other caches"):
            watch(pieces(200), "x", [kernel()], 1, lambda state: None, kept=Kept(path))
        with pytest.raises(UsageError, match="of other caches"):
            watch(pieces(200), "y", small(), 1, lambda state: None, kept=Kept(path))

    @pytest.mark.parametrize("damage", [b"", b"hello", b"PK\x03\x04" + bytes(50)])
    def test_a_damaged_state_is_refused(self, tmp_path, damage):
        path = tmp_path / "state.npz"
        path.write_bytes(damage)
        with pytest.raises(UsageError, match="remove it"):
            watch(pieces(200), "x", small(), 1, lambda state: None, kept=Kept(str(path)))

    def test_a_state_whose_fields_are_in_another_order_is_refused(self, tmp_path):
        path = tmp_path / "state.npz"
        watch(pieces(200), "x", [kernel()], 1, lambda state: None, kept=Kept(str(path)))
        with np.load(path) as file:
            held = dict(file)
        head = json.loads(str(held["about"]))
        saved = head["about"]["leaves"][0]
        assert " issue_ns op " in saved[1]
        saved[1] = saved[1].replace(" issue_ns op ", " op issue_ns ")
        held["about"] = np.array(json.dumps(head))
        np.savez(path, **held)
        with pytest.raises(UsageError, match="of another version: remove it"):
            watch(pieces(200), "x", [kernel()], 1, lambda state: None, kept=Kept(str(path)))

    def test_a_state_that_lost_arrays_is_refused(self, tmp_path):
        path = tmp_path / "state.npz"
        watch(pieces(200), "x", [kernel()], 1, lambda state: None, kept=Kept(str(path)))
        with np.load(path) as file:
            fewer = {name: file[name] for name in file.files if name != "00007"}
        np.savez(path, **fewer)
        with pytest.raises(UsageError, match="remove it"):
            watch(pieces(200), "x", [kernel()], 1, lambda state: None, kept=Kept(str(path)))
