"""Idle time is no load: times start at the first request, and advice counts active time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hybridsim.traces.formats.requests_csv import HEADER
from hybridsim.traces.trace import Trace

ROOT = Path(__file__).parent.parent
SECOND, DAY = 10**9, 86400 * 10**9
PROGRAM = """
import contextlib, io, json, sys
from hybridsim.cli import cli
found = {}
for name in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        cli.main(["replay", f"{name}.csv", "--json", f"{name}.json"], standalone_mode=False)
    found[name] = {"text": text.getvalue(), "json": json.load(open(f"{name}.json"))}
json.dump(found, sys.stdout)
"""


def rows(times_ns, length=4096, complete_after_ns=None):
    for number, time_ns in enumerate(times_ns):
        done = "" if complete_after_ns is None else time_ns + complete_after_ns
        yield f"{time_ns},R,{number % 97 * 4096},{length},,{done}"


def steady(count=300):
    return [number * SECOND // 20 for number in range(count)]


LATE = [52 * DAY + time_ns for time_ns in steady()]
TRACES = {
    "plain": rows(steady()),
    "late": rows(LATE),
    "gap": rows(steady() + [3 * 365 * DAY + time_ns for time_ns in steady()]),
    "pauses": rows([number * 30 * DAY for number in range(40)]),
    "empty": rows(steady(200), 0),
    "one-empty": rows([0], 0),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("idle")
    for name, lines in TRACES.items():
        (folder / f"{name}.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *TRACES], cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1", "COLUMNS": "80"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def seconds_of(output):
    match = re.search(r"blktrace -d \S+ -w (\d+)", output)
    return int(match[1]) if match else None


def test_idle_time_before_the_first_request_does_not_change_the_answer(answers):
    late, plain = (answers[name]["json"] for name in ("late", "plain"))
    assert late["phases"] == plain["phases"]
    assert late["verdict"] == plain["verdict"] | {"advice": late["verdict"]["advice"]}
    assert late["inputs"]["trace"]["span_ns"] == plain["inputs"]["trace"]["span_ns"] < 20 * SECOND
    assert seconds_of(answers["late"]["text"]) == seconds_of(answers["plain"]["text"])
    assert not re.search(r"\d+d\b", answers["late"]["text"])


@pytest.mark.parametrize("name", TRACES)
def test_advised_capture_times_are_between_a_minute_and_a_week(name, answers):
    output = " ".join(answers[name]["text"].split())
    seconds = seconds_of(output)
    assert seconds is None or 60 <= seconds <= 7 * 86400
    active_ns = answers[name]["json"]["inputs"]["trace"]["active_ns"]
    if seconds:
        assert seconds <= max(600, 10 * active_ns / SECOND + 120)
    span_ns = answers[name]["json"]["inputs"]["trace"]["span_ns"]
    assert ("while the load is active" in output) == bool(seconds and active_ns < span_ns / 2)


def test_active_time_excludes_pauses(answers):
    traces = {name: each["json"]["inputs"]["trace"] for name, each in answers.items()}
    assert traces["plain"]["active_ns"] == steady()[-1]
    assert traces["gap"]["active_ns"] == 2 * steady()[-1] + 60 * SECOND
    assert traces["pauses"]["active_ns"] == 39 * 60 * SECOND
    assert traces["one-empty"]["active_ns"] == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("empty", "All 200 reads are of 0 bytes"), ("one-empty", "The only read is of 0 bytes")],
)
def test_reads_of_zero_bytes_are_counted_as_reads(name, words, answers):
    output = " ".join(answers[name]["text"].split())
    assert words in output
    assert "has no reads" not in output


@pytest.mark.parametrize("form", ["csv", "iolog"])
def test_all_times_are_relative_to_the_first_request(form, tmp_path):
    path = tmp_path / f"late.{form}"
    if form == "csv":
        path.write_text("\n".join([HEADER, "700,R,0,512,750,900", "800,W,0,512,,", ""]))
    else:
        log = "fio version 3 iolog\n7 f add\n7 f open\n7 f read 0 512\n8 f write 0 512\n9 f close\n"
        path.write_text(log)
    trace = Trace.read(path)
    for _ in range(2):  # in each pass
        chunk = next(trace.from_first())
        assert chunk.arrival_ns.tolist() == ([0, 100] if form == "csv" else [0, 1000])
        if form == "csv":
            assert chunk.dispatch_ns.tolist() == [50, -1]
            assert chunk.complete_ns.tolist() == [200, -1]


def test_all_chunks_use_the_origin_of_the_first_one(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("\n".join([HEADER, *rows(LATE), ""]))
    parts = [part.arrival_ns for part in Trace.read(path).from_first()]
    assert np.concatenate(parts).tolist() == steady()
