"""`hybridsim trace record` on a fake machine of files: a fake blktrace, sysfs and tracefs."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from captures import HEADER, as_rows, cpu_files, read, records, reference_rows
from click.testing import CliRunner
from test_schemas import wrong

from hybridsim.cli import cli, trace_record
from hybridsim.foundation.errors import RecordingError, TraceError
from hybridsim.studies.record import prepare, record
from hybridsim.traces import recording as disks
from hybridsim.traces.recording import Host, tracefs
from hybridsim.traces.recording.tracefs import chosen
from hybridsim.traces.trace import Trace

CASE = "loop_errors"  # a capture of device 7,1 by two CPUs
FILES = list(cpu_files(CASE).values())
BLKTRACE = """#!/bin/sh
echo "$@" > "{folder}/arguments"
while [ $# -gt 0 ]; do
  case $1 in -D) folder=$2;; -o) name=$2;; esac
  shift
done
trap 'echo ended > "{folder}/ended"; exit 0' INT
cp "{folder}/cpu0" "$folder/$name.blktrace.0"
cp "{folder}/cpu1" "$folder/$name.blktrace.1"
{rest}
"""
DROPS = 'echo "You have 12 ( 0.1%) dropped events" >&2'
SLOW = "sleep 30 & wait $!; exit 1"
TRACEFS = {
    "available_tracers": "hwlat blk function nop",
    "current_tracer": "nop",
    "trace_clock": "[local] global mono",
    "options/bin": "0",
    "options/context-info": "1",
    "tracing_on": "1",
    "buffer_size_kb": "7 (expanded: 1408)",
}
ENDINGS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
FIRST, LAST = map(int, os.environ.get("HYBRIDSIM_FUZZ", "0-20").split("-"))
STATS = "entries: 5\noverrun: {}\ndropped events: 0\n"


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content)


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A fake machine with a disk sdx, blktrace and tracefs; recordings go to `out`."""
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    disk = tmp_path / "sys/class/block/sdx"
    put(disk / "dev", "7:1\n")
    put(disk / "stat", "100 5 800 9 50 2 400 9 0 0 0\n")
    put(disk / "trace/enable", "0\n")
    put(disk / "trace/act_mask", "disabled\n")
    root = tmp_path / "sys/kernel/tracing"
    for name, text in TRACEFS.items():
        put(root / name, text + "\n")
    for cpu, data in enumerate(FILES):
        unnumbered = (each[:4] + bytes(4) + each[8:] for each in records(data))
        put(root / f"per_cpu/cpu{cpu}/trace_pipe", b"".join(unnumbered))
        put(root / f"per_cpu/cpu{cpu}/stats", STATS.format(0))
        put(tmp_path / f"bin/cpu{cpu}", data)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    install(tmp_path, "")
    return Host(sys=tmp_path / "sys", uid=0, release="6.18.44", sample_s=0)


def install(tmp_path, rest):
    program = tmp_path / "bin/blktrace"
    put(program, BLKTRACE.format(folder=tmp_path / "bin", rest=rest))
    program.chmod(0o755)


def lock(host):
    put(host.sys / "kernel/security/lockdown", "none [integrity] confidentiality\n")


def tracing_of(host):
    root = host.sys / "kernel/tracing"
    settings = {name: chosen((root / name).read_text().strip()) for name in TRACEFS}
    settings["enable"] = (host.sys / "class/block/sdx/trace/enable").read_text().strip()
    return settings


def later(number, seconds=0.3):
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


class TestByBlktrace:
    def test_only_needed_events_are_recorded_and_compressed(self, host, tmp_path):
        recorded = record(prepare("/dev/sdx", None, 600, host=host))
        assert [each.name for each in recorded.files] == [
            "sdx.blktrace.0.zst",
            "sdx.blktrace.1.zst",
        ]
        assert as_rows(read("sdx")) == reference_rows(CASE)
        assert recorded.summary.requests == len(reference_rows(CASE))
        assert recorded.dropped == 0
        assert (tmp_path / "bin/arguments").read_text().split() == [
            *("-d", "/dev/sdx", "-D", ".", "-o", "sdx", "-w", "600", "-b", "512", "-n", "8"),
            *("-a", "queue", "-a", "issue", "-a", "complete", "-a", "requeue"),
        ]

    def test_dropped_events_are_reported(self, host, tmp_path):
        install(tmp_path, DROPS)
        prepared = prepare("sdx", "monday", 5, host=host)
        recorded = record(prepared)
        assert recorded.dropped == 12
        answer = trace_record.answer_text(prepared, recorded)
        assert (
            "12 events: results will be inaccurate; record again with a larger --buffer" in answer
        )
        assert "hybridsim replay monday.blktrace.0.zst" in answer

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_the_recording_and_keeps_its_files(self, number, host, tmp_path):
        install(tmp_path, SLOW)
        before = signal.getsignal(number)
        later(number)
        recorded = record(prepare("sdx", None, 600, host=host))
        assert recorded.was_stopped
        assert recorded.summary.requests == len(reference_rows(CASE))
        assert (tmp_path / "bin/ended").exists()
        assert signal.getsignal(number) is before

    def test_the_error_of_blktrace_is_reported_with_a_way_out(self, host, tmp_path):
        for cpu in range(2):  # empty: access was denied
            put(tmp_path / f"bin/cpu{cpu}", b"")
        install(tmp_path, 'echo "/dev/sdx: Operation not permitted" >&2; exit 1')
        with pytest.raises(RecordingError, match=r"Operation not permitted; .*--via tracefs"):
            record(prepare("sdx", None, 5, "blktrace", host=host))

    def test_a_recording_without_requests_has_no_summary(self, host, tmp_path):
        for cpu in range(2):
            put(tmp_path / f"bin/cpu{cpu}", b"")
        install(tmp_path, "sleep 0.1")
        prepared = prepare("sdx", None, 1, host=host)
        recorded = record(prepared)
        assert recorded.summary is None
        assert "no requests to" in trace_record.answer_text(prepared, recorded)

    def test_the_json_matches_its_schema(self, host):
        prepared = prepare("/dev/sdx", None, 600, host=host)
        document = trace_record.as_object(prepared, record(prepared))
        assert wrong({"schema": trace_record.SCHEMA, **document}) == []


@pytest.mark.parametrize(
    ("output", "prefix"),
    [(None, "sdx"), ("a/b", "a/b"), ("a", "a/sdx"), ("b.blktrace.0.zst", "b")],
)
def test_output_names_follow_the_output_option(output, prefix, host, tmp_path):
    (tmp_path / "out/a").mkdir()
    assert str(prepare("sdx", output, 5, host=host).prefix) == prefix


class TestByTracefs:
    def test_lockdown_selects_tracefs(self, host):
        lock(host)
        assert prepare("sdx", None, 5, host=host).via == "tracefs"

    def test_a_recording_restores_the_tracing_settings(self, host):
        before, during = tracing_of(host), []
        prepared = prepare("sdx", None, 1, "tracefs", 8 << 20, host)
        recorded = record(prepared, lambda passed_s: during.append(tracing_of(host)))
        assert during[0] == {
            **before,
            "current_tracer": "blk",
            "trace_clock": "mono",
            "options/bin": "1",
            "options/context-info": "0",
            "buffer_size_kb": "8192",
            "enable": "1",
        }
        assert tracing_of(host) == before
        assert as_rows(read("sdx")) == reference_rows(CASE)
        assert recorded.summary.requests == len(reference_rows(CASE))
        assert (recorded.dropped, recorded.was_stopped) == (0, False)

    def test_no_pipe_is_open_while_the_tracer_changes(self, host, monkeypatch):
        write, changes = tracefs._write, []

        def checked(path, value):
            if path.name == "current_tracer":
                links = (
                    os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.exists()
                )
                changes.append([value, any("trace_pipe" in each for each in links)])
            write(path, value)

        monkeypatch.setattr(tracefs, "_write", checked)
        record(prepare("sdx", None, 1, "tracefs", host=host))
        assert changes == [["blk", False], ["nop", False]]

    def test_the_first_record_holds_the_wall_clock_time(self, host):
        record(prepare("sdx", None, 1, "tracefs", host=host))
        trace = Trace.read("sdx")
        first_ns = min(HEADER.unpack_from(each)[2] for each in records(FILES[0] + FILES[1]))
        since_boot_ns = time.time_ns() - time.monotonic_ns()
        assert abs(trace.origin - (since_boot_ns + first_ns)) < 10**9

    def test_tracing_settings_are_restored_after_any_error(self, host):
        before = tracing_of(host)

        def fail(passed_s):
            raise OSError(28, "No space left on device")

        with pytest.raises(RecordingError, match="No space left"):
            record(prepare("sdx", None, 5, "tracefs", host=host), fail)
        assert tracing_of(host) == before

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_tracing_settings_are_restored_after_a_signal(self, number, host):
        before = tracing_of(host)
        later(number)
        recorded = record(prepare("sdx", None, 600, "tracefs", host=host))
        assert recorded.was_stopped
        assert recorded.summary.requests
        assert tracing_of(host) == before

    def test_events_overwritten_by_the_kernel_are_reported(self, host):
        stats = host.sys / "kernel/tracing/per_cpu/cpu1/stats"
        put(stats, STATS.format(3))
        prepared = prepare("sdx", None, 1, "tracefs", host=host)
        assert record(prepared, lambda _: put(stats, STATS.format(10))).dropped == 7


RECORD = """
import sys
from pathlib import Path
from hybridsim.cli import handle_signals
from hybridsim.traces.recording import Host
from hybridsim.studies.record import prepare, record
handle_signals()
host = Host(sys=Path(sys.argv[2]), uid=0, release="6.18.44", sample_s=0)
record(prepare("sdx", None, 1, sys.argv[1], host=host))
"""


def check_ended(host, tmp_path, draw):
    """Kill a recording at some moment; check that tracing is restored and files are readable."""
    way, number = draw.choice(["blktrace", "tracefs"]), draw.choice(ENDINGS)
    before, out = tracing_of(host), tmp_path / "out"
    install(tmp_path, draw.choice(["", SLOW]))
    line = [sys.executable, "-c", RECORD, way, str(host.sys)]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "NUMBA_DISABLE_JIT": "1"}
    child = subprocess.Popen(
        line, env=env, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    end = time.monotonic() + draw.uniform(0, 3)
    while time.monotonic() < end and not (draw.random() < 0.01 and any(out.iterdir())):
        time.sleep(0.005)
    child.send_signal(number)
    _, errors = child.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert (
            "Traceback" not in errors or "KeyboardInterrupt" in errors
        )  # because this is not a command
        assert tracing_of(host) == before
        assert not list(out.glob(".hybridsim-*"))
    for name, text in TRACEFS.items():  # as a user must do after SIGKILL
        put(host.sys / "kernel/tracing" / name, text + "\n")
    put(host.sys / "class/block/sdx/trace/enable", "0\n")
    with contextlib.suppress(TraceError):  # no request was recorded yet
        assert set(as_rows(read("sdx"))) <= set(reference_rows(CASE))
    for each in [*out.glob("sdx.*")]:
        each.unlink()
    install(tmp_path, "")
    assert record(prepare("sdx", None, 1, "blktrace", host=host)).summary.requests
    assert as_rows(read("sdx")) == reference_rows(CASE)
    for each in [*out.glob("sdx.*")]:
        each.unlink()


@pytest.mark.long
@pytest.mark.parametrize("number", range(FIRST, LAST))
def test_a_recording_killed_at_any_moment_is_readable(number, host, tmp_path):
    check_ended(host, tmp_path, random.Random(number))


REFUSES = """
: > "$folder/$name.blktrace.0"; : > "$folder/$name.blktrace.1"
echo "Thread 0 failed open /sys/kernel/debug/block/sdx/trace0: 1/Operation not permitted" >&2
"""
DIES = "kill -9 $$"


def run(*words, host, monkeypatch):
    """Run the command on the machine of files; return its exit code and last line."""
    real = prepare
    monkeypatch.setattr(
        "hybridsim.studies.record.prepare", lambda *words: real(*words, host=host)
    )  # fmt: skip
    done = CliRunner().invoke(cli, ["trace", "record", "sdx", *words])
    return done, done.stdout.strip().splitlines()[-1:]


class TestIncompleteRecordings:
    """An incomplete recording is reported in the last line and by the exit code."""

    def test_a_tracer_that_fails_with_exit_code_0_is_replaced_by_the_other(
        self, host, tmp_path, monkeypatch
    ):
        install(tmp_path, REFUSES)
        done, last = run("--time", "1s", host=host, monkeypatch=monkeypatch)
        assert (done.exit_code, last) == (0, ["complete"]), done.output
        assert "tracefs, as blktrace failed" in done.stdout
        assert as_rows(read("sdx")) == reference_rows(CASE)

    @pytest.mark.parametrize("rest", [REFUSES, REFUSES + "exit 1", DIES])
    def test_failure_of_the_requested_tracer_is_an_error(self, rest, host, tmp_path, monkeypatch):
        for cpu in range(2):
            put(tmp_path / f"bin/cpu{cpu}", b"")
        install(tmp_path, rest)
        words = ("--time", "5s", "--via", "blktrace")
        done, _ = run(*words, host=host, monkeypatch=monkeypatch)
        assert isinstance(done.exception, RecordingError)
        assert re.search("not permitted|signal 9", str(done.exception))
        assert not list(Path().glob("sdx.*"))
        assert record(prepare("sdx", None, 1, "tracefs", host=host)).summary.requests

    @pytest.mark.parametrize(
        ("rest", "why"),
        [
            (DIES, r"incomplete: blktrace was ended by signal 9 after \d of 5 s"),
            ("exit 0", r"incomplete: blktrace ended after \d of 5 s without a reason"),
            ("echo 'write failed: No space left on device' >&2; exit 1", "incomplete: .*No space"),
        ],
    )
    def test_records_before_the_death_of_blktrace_are_kept(
        self, rest, why, host, tmp_path, monkeypatch
    ):
        install(tmp_path, rest)
        done, last = run("--time", "5s", host=host, monkeypatch=monkeypatch)
        assert done.exit_code == 3
        assert re.fullmatch(f"{why}.*", last[0])
        assert as_rows(read("sdx")) == reference_rows(CASE)

    def test_dropped_events_are_reported_in_the_last_line(self, host, tmp_path, monkeypatch):
        install(tmp_path, f"{DROPS}; sleep 0.1")
        done, last = run("--time", "1s", host=host, monkeypatch=monkeypatch)
        assert done.exit_code == 3
        assert last[0].startswith("incomplete: dropped 12 events")

    def test_a_recording_ended_by_another_program_is_incomplete(self, host, monkeypatch):
        enable = host.sys / "class/block/sdx/trace/enable"
        monkeypatch.setattr(
            "hybridsim.studies.record.record",
            lambda prepared, _: record(prepared, lambda _: put(enable, "0")),
        )
        words = ("--time", "1s", "--via", "tracefs")
        done, last = run(*words, host=host, monkeypatch=monkeypatch)
        assert done.exit_code == 3
        assert "incomplete: another program ended the kernel's tracing" in last[0]

    def test_a_recording_stopped_by_the_user_is_complete(self, host, tmp_path, monkeypatch):
        install(tmp_path, SLOW)
        later(signal.SIGINT)
        done, last = run("--time", "600s", host=host, monkeypatch=monkeypatch)
        assert (done.exit_code, last) == (0, ["complete: ended early, as requested"])

    def test_auto_selects_the_available_tracer(self, host, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert prepare("sdx", None, 1, host=host).via == "tracefs"


class TestRefusals:
    """Each error names the problem and its correction."""

    def refused(self, message, host, device="sdx", output=None, seconds=5, via="auto"):
        with pytest.raises(RecordingError, match=message):
            prepare(device, output, seconds, via, host=host)

    def test_an_unknown_device_is_refused(self, host):
        self.refused("/dev/sdy: not a block device: did you mean sdx", host, "/dev/sdy")

    def test_recording_without_root_is_refused(self, host):
        other = Host(sys=host.sys, uid=1000, release=host.release, sample_s=0)
        self.refused("only root may record", other)

    def test_a_missing_blktrace_is_refused(self, host, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        self.refused("blktrace is not installed: install it", host, via="blktrace")

    def test_blktrace_under_lockdown_is_refused(self, host):
        lock(host)
        self.refused("lockdown denies blktrace.* --via tracefs", host, via="blktrace")

    def test_an_existing_recording_is_not_overwritten(self, host, tmp_path):
        put(tmp_path / "out/sdx.blktrace.0.zst", b"")
        self.refused("exists already: choose another name with -o", host)

    def test_a_missing_output_folder_is_refused(self, host):
        self.refused("no such folder", host, output="nowhere/x")

    def test_a_recording_larger_than_the_free_space_is_refused(self, host, monkeypatch):
        full = disks.Estimate(1e6, 10**12, 10**9)
        monkeypatch.setattr("hybridsim.studies.record.estimate", lambda *_: full)
        self.refused("has room for 953 MiB, but .* record for a shorter time", host)

    @pytest.mark.parametrize(
        ("file", "content", "message"),
        [
            ("kernel/tracing/current_tracer", "function", r"tracer is in use \(function\)"),
            ("kernel/tracing/available_tracers", "nop", "no `blk` tracer"),
            ("class/block/sdx/trace/enable", "1", "is already being traced"),
        ],
    )
    def test_a_tracer_in_use_is_refused(self, file, content, message, host):
        put(host.sys / file, content)
        self.refused(message, host, via="tracefs")

    def test_a_kernel_with_a_broken_tracer_is_refused(self, host):
        other = Host(sys=host.sys, uid=0, release="6.19.0-rc1", sample_s=0)
        self.refused("writes malformed records", other, via="tracefs")


def test_the_estimate_uses_the_current_request_rate(host, monkeypatch):
    disk = disks.find("sdx", host)
    stat = disk.folder / "stat"
    monkeypatch.setattr(
        time, "sleep", lambda _: put(stat, "160 5 800 9 90 12 400 9 0 0 0\n")
    )  # fmt: skip
    monkeypatch.setattr(time, "monotonic", iter([0.0, 1.0]).__next__)
    expected = disks.estimate(disk, 10, host.sys, host)
    assert expected.requests_per_second == 100
    assert expected.bytes == (3 * 100 + 10) * 48 * 10
