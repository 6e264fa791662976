"""Weeks: the page of instructions is true; the week by hour; caches beside a running disk."""

import contextlib
import json
import os
import re
import shlex
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
from test_thinned import load, written

from hybridsim.cli import cli
from hybridsim.foundation.errors import UsageError
from hybridsim.show import schemas
from hybridsim.show import week as shown
from hybridsim.studies.hits import hits
from hybridsim.studies.watch import Shadows, of_stream, prometheus, watch
from hybridsim.studies.week import week
from hybridsim.traces.thinned.thinner import HOUR_NS
from hybridsim.traces.trace import Trace

SECOND = 10**9
ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "hybridsim/docs/weeks.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((ROOT / "hybridsim/docs/watch.grafana.json").read_text(encoding="utf-8"))
SUNDAY = 1_795_910_400 * SECOND  # 2026-11-29 00:00 UTC
RUN = ("hybridsim trace thin gen:", "hybridsim trace info load.thin", "hybridsim hits load.thin")


def samples():
    """Return the commands of the page that are run, with the lines shown of their output."""
    found = []
    for block in re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S):
        command, *lines = block.splitlines()
        if command.startswith("$ ") and command[2:].startswith(RUN):
            found.append((command[2:], lines))
    return found


def test_the_page_shows_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(samples()) == len(RUN)
    for line, lines in samples():
        done = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        pattern = "\n".join(re.escape(each) if each != "..." else ".*" for each in lines)
        pattern = pattern.replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, done.output.strip(), re.S), (line, done.output)


class TestWeek:
    @pytest.fixture(scope="class")
    @staticmethod
    def opened(tmp_path_factory):
        path = tmp_path_factory.mktemp("week") / "a"
        rows = load(5 * 3600, rate=5)
        busy = rows.arrival_ns // HOUR_NS == 2
        rows.complete_ns[busy] = rows.arrival_ns[busy] + SECOND
        written(path, rows, origin_unix_ns=SUNDAY, utc_offset_s=3600, region_bytes=65536)
        return Trace.read(path)

    def test_hours_are_those_of_the_clock_at_the_device(self, opened):
        found = week(opened)
        assert [(each.weekday, each.hour) for each in found.hours] == [(6, n) for n in range(1, 6)]
        assert sum(each.requests for each in found.hours) == opened.sample.total.requests
        assert all(each.rate == pytest.approx(5, rel=0.1) for each in found.hours)

    def test_the_worst_hour_is_that_in_which_requests_waited(self, opened):
        found = week(opened)
        assert found.worst.begin_ns == 2 * HOUR_NS
        text = shown.text(opened)
        assert "worst hour Sun 2026-11-29 03:00: " in text
        assert max(map(len, text.splitlines())) <= 80

    def test_hit_ratios_are_those_of_all_requests(self, opened):
        """The capture has all regions, so the mean over the hours is exact."""
        found = week(opened)
        (one,) = hits(opened, f"{found.cache_bytes}B", page="64KiB")
        by_hour = [each.hit_ratio for each in found.hours]
        weights = [each.requests for each in found.hours]
        assert np.average(by_hour, weights=weights) == pytest.approx(one.page_hit_ratio, abs=0.01)

    def test_ascii_only(self, opened):
        assert shown.text(opened, ascii_only=True).isascii()

    def test_the_json_matches_its_schema(self, opened):
        done = CliRunner().invoke(cli, ["trace", "info", "--json", opened.name])
        document = json.loads(done.stdout)
        assert not [*Draft202012Validator(schemas.load("trace")).iter_errors(document)]
        assert document["thinned"]["requests"] == opened.sample.total.requests
        assert len(document["thinned"]["hours"]) == 5


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
        last = watch(of_stream(self.pipe(text)), "x", Shadows([1 << 22], ["lru"], 65536), 5,
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
        shadows = Shadows([1 << 36, 1 << 40], ["lru"], 65536)
        assert shadows.rate == pytest.approx((1 << 16) / (1 << 24))
        with pytest.raises(UsageError, match="too small beside"):
            Shadows([1 << 20, 1 << 40], ["lru"], 65536)
        with pytest.raises(UsageError, match="policy lfu"):
            Shadows([1 << 40], ["lfu"], 65536)

    def test_prometheus_reads_the_figures(self):
        from hybridsim.cli.prometheus import serving

        last = watch(of_stream(self.pipe(lines(400))), 'a"b', Shadows([1 << 20], ["lru"], 65536),
                     1, lambda state: None)  # fmt: skip
        server = serving("127.0.0.1:0", lambda: prometheus(last))
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
        last = watch(of_stream(self.pipe(lines(400))), "x", Shadows([1 << 20], ["lru"], 65536), 1,
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

        last = watch(of_stream(self.pipe(lines(400))), "sd b", Shadows([1 << 20], ["lru"], 65536),
                     1, lambda state: None)  # fmt: skip
        server = serving("127.0.0.1:0", lambda: prometheus(last))
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

    def test_bounded_memory(self):
        """What has settled is not kept: the pending events are those of a second."""
        batches = of_stream(self.pipe(lines(3000)))
        sizes = [rows.rows for rows, _, _ in batches]
        assert max(sizes) <= 210
        assert sum(sizes) == 3000
