"""Answers on a stream that has not ended."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hybridsim import Scenario
from hybridsim.foundation.errors import TraceError
from hybridsim.studies import replay as so_far
from hybridsim.studies.replay import replay
from hybridsim.traces.formats import files
from hybridsim.traces.trace import Trace

ROOT = Path(__file__).parent.parent


def events(count):
    """Return block events as text: reads of 4 KiB, each complete after 3 ms."""
    return "".join(
        f" x-1 [000] ..... {1 + at * 0.01:.6f}: block_bio_queue: 8,0 R {at % 50 * 800} + 8 [x]\n"
        f" x-1 [000] ..... {1.003 + at * 0.01:.6f}: block_bio_complete: 8,0 R "
        f"{at % 50 * 800} + 8 [0]\n"
        for at in range(count)
    )


@pytest.fixture
def stream(monkeypatch):
    """Return the writing end of standard input, which is looked at often."""
    read, write = os.pipe()
    monkeypatch.setattr(files, "ARRIVING_S", 0.01)
    monkeypatch.setattr(so_far, "EVERY_S", 0)
    with os.fdopen(read) as reader, os.fdopen(write, "w") as writer:
        monkeypatch.setattr("sys.stdin", reader)
        yield writer


def test_what_has_arrived_is_a_trace_of_its_own(stream):
    seen = []

    def look(trace):
        seen.append(sum(chunk.rows for chunk in trace.chunks()))
        if seen[-1] == 100 and not stream.closed:
            stream.write(events(300)[len(events(100)) :])
            stream.close()

    stream.write(events(100))
    stream.flush()
    trace = Trace.read("-", so_far=look)
    assert seen[-1] >= 100
    assert sum(chunk.rows for chunk in trace.chunks()) == 300


def test_the_answer_so_far_is_that_of_a_capture_that_ends_there(stream, tmp_path):
    (tmp_path / "part.txt").write_text(events(200))
    site = Scenario.default().with_options(cache_size="256KiB")
    results = []

    def show(result):
        results.append(result)
        stream.close()

    stream.write(events(200))
    stream.flush()
    Trace.read("-", so_far=so_far.SoFar(site, "time", show))
    whole = replay(Trace.read(tmp_path / "part.txt"), site)
    assert results[0].trace["requests_sha256"] == whole.trace["requests_sha256"]
    assert results[0].verdict.effect == whole.verdict.effect


def test_too_little_for_an_answer_is_waited_for(stream):
    stream.write("nothing that is known\n")
    stream.flush()

    def end():
        stream.write(events(1))
        stream.close()

    threading.Timer(0.3, end).start()
    monitor = so_far.SoFar(Scenario.default(), "time", lambda result: None)
    assert Trace.read("-", so_far=monitor).format == "ftrace"


def test_an_event_may_still_be_to_come(stream):
    site = Scenario.default().with_options(cache_size="256KiB")
    site = site.with_events([{"at": "2s", "reboot": "clean"}])
    answers = []

    def show(result):
        answers.append(result)
        stream.close()

    def go_on():
        stream.write(events(300)[len(events(100)) :])
        stream.flush()

    stream.write(events(100))  # of one second
    stream.flush()
    threading.Timer(0.3, go_on).start()
    Trace.read("-", so_far=so_far.SoFar(site, "time", show))
    assert answers[0].trace["requests"] == 300


def test_a_stream_that_ends_without_a_request_is_refused(stream):
    stream.close()
    with pytest.raises(TraceError, match="empty"):
        Trace.read("-", so_far=print)


def test_a_line_comes_before_the_end_of_the_stream():
    """The stream stays open until the line is read."""
    code = (
        "from hybridsim.studies import replay; replay.EVERY_S = 0; "
        "from hybridsim.cli import cli; cli(['replay', '-', '--cache-size', '256KiB'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    process.stdin.write(events(300))
    process.stdin.flush()
    line = ""
    while not line.startswith("so far"):
        line = process.stderr.readline()
        assert line
    assert line.startswith("so far, 300 requests in ")
    out, _ = process.communicate()
    assert process.returncode == 0
    assert out.startswith("VERDICT")
