"""Progress of long work: reading a trace has a total and an estimate."""

import gzip
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hybridsim.cli import running
from hybridsim.cli.running import _progress_line
from hybridsim.jit import waiting
from hybridsim.studies.replay import read_once
from hybridsim.studies.runs import Progress
from hybridsim.traces.formats.requests_csv import HEADER
from hybridsim.traces.trace import Trace

CAPTURE = Path(__file__).parents[1] / "traces/blktrace/loop_raw_split_discard_flush"
ROWS = 200_000


def csv_text():
    lines = (f"{number * 1000},R,{number % 977 * 4096},4096,," for number in range(ROWS))
    return "\n".join([HEADER, *lines, ""]).encode()


@pytest.fixture(scope="module", params=["plain.csv", "packed.csv.gz", "capture"])
def path(request, tmp_path_factory):
    if request.param == "capture":
        return CAPTURE
    path = tmp_path_factory.mktemp("progress") / request.param
    path.write_bytes(gzip.compress(csv_text()) if path.suffix == ".gz" else csv_text())
    return path


def size_of(path):
    files = path.glob("*.blktrace.*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files)


def test_the_first_pass_reports_bytes_that_rise_to_the_size_on_disk(path):
    seen = []
    summary = read_once(Trace.read(path), seen.append)
    assert {each.of_bytes for each in seen} <= {0, size_of(path)}
    places = [each.read_bytes for each in seen if each.of_bytes]
    assert places == sorted(places)
    assert places[-1] == size_of(path)
    assert seen[-1].requests == summary.requests
    assert not any(each.of_requests for each in seen)


def test_later_passes_report_no_reading(path):
    trace, seen = Trace.read(path), []
    read_once(trace, seen.append)
    seen.clear()
    for _ in trace.chunks():
        pass
    assert seen == []


def test_the_line_of_reading_has_a_share_a_total_and_an_estimate():
    line = _progress_line(Progress(5000, 0, 0, 256 << 20, 1 << 30), 10.0)
    assert line == "reading the trace: 5,000 requests · 25% of 1.00 GiB · 30 s to go"
    assert _progress_line(Progress(0, 0, 0, 1 << 30, 1 << 30), 10.0) == "reading the trace"


def test_the_line_of_a_replay_has_a_share_and_an_estimate():
    line = _progress_line(Progress(250, 1000, 40 * 10**9), 4.0)
    assert line == "replayed 25% · 40 s simulated, 10 times real time · 12 s to go"


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only where a test says so."""
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr("hybridsim.cli.running.time.monotonic", lambda: now.s)
    return now


def test_without_a_terminal_there_is_a_line_now_and_then_with_the_stage(clock, capsys):
    """What takes less than ten seconds prints nothing; nor does a line for terminals alone."""
    with running.Line(in_lines=True) as line, running.Line() as silent:
        line.stage("replays of bcache")
        for clock.s in (101.5, 109.0, 111.0, 115.0, 121.5):
            line.update(lambda: f"at {clock.s:.0f} s")
            silent.update(lambda: "never")
        line.stays("failed: why")
    assert capsys.readouterr().err.splitlines() == [
        "replays of bcache: at 111 s", "replays of bcache: at 122 s", "failed: why",
    ]  # fmt: skip
    assert not silent.is_wanted


def test_at_a_terminal_one_line_is_replaced_and_erased(clock, monkeypatch):
    shown = []
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(running, "show", shown.append)
    monkeypatch.setattr(running, "clear", lambda: shown.append(None))
    with running.Line() as line:
        for clock.s in (100.5, 101.5, 101.55, 102.0):
            line.update(lambda: f"at {clock.s:g} s")
    assert shown == ["at 101.5 s", "at 102 s", None]


def test_compiling_shows_what_how_far_and_how_long():
    waiting.begin("hybridsim.engine.loops.run")
    try:
        now = waiting.under_way()
        begun = time.monotonic()
        with waiting.translating(iter((3, 384)).__next__):
            time.sleep(0.01)
        line = "compiling hybridsim.engine.loops.run · 381 methods · translating"
        assert now.words(begun) == line
        waiting.optimizing()
        least_s = waiting.LLVM_PER_TRANSLATION * 0.01
        since = now.optimizing_since_s
        assert now.left_s(since) >= least_s
        assert now.left_s(since + 60) < now.left_s(since + 0.1) < now.left_s(since)
        now.translating_s = 0.5
        assert now.words(since + 3).endswith(" · 381 methods · optimizing · 5 s to go")
        assert now.words(since + 30).endswith(" · optimizing · soon")
    finally:
        waiting.end()
    assert waiting.under_way() is None


def test_what_a_thread_left_when_it_failed_is_not_shown():
    thread = threading.Thread(target=waiting.begin, args=("hybridsim.engine.loops.run",))
    thread.start()
    thread.join()
    assert waiting.under_way() is None
