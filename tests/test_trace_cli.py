"""`hybridsim trace …` as a user sees it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from captures import TRACES, as_rows, capture, cpu_files, read, reference_rows, write_files
from click.testing import CliRunner

from hybridsim.cli import running, trace_convert
from hybridsim.cli.trace import trace
from hybridsim.cli.trace_text import diagnose, duration
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.traces.trace import Trace, TraceWarning

ERRORS = str(capture("loop_errors"))
SPLITS = str(capture("loop_raw_split_discard_flush"))


def run(*arguments):
    result = CliRunner().invoke(trace, list(map(str, arguments)))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def shell(*arguments):
    code = "from hybridsim.cli import main; main()"
    command = [sys.executable, "-c", code, "trace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=TRACES.parent)


class TestInfo:
    def test_text_is_short_aligned_and_in_human_units(self):
        out = run("info", SPLITS).stdout
        assert "requests    301 in 158 ms, from 2026-11-21 03:45:20 UTC" in out
        assert "discards    1, 64.0 MiB" in out
        assert len(out.splitlines()) <= 12

    def test_a_format_without_completions_is_not_reported_as_incomplete(self):
        out = run("info", "gen:zipf,requests=10,span=16MiB").stdout
        assert "completions none:" in out
        assert "incomplete" not in out

    @pytest.mark.parametrize(
        ("time_ns", "expected"),
        [(999_400_000, "999 ms"), (999_999_500, "1.0 s"), (999_800, "1 ms"), (999.9, "1 us")],
    )
    def test_a_time_just_below_a_unit_is_rounded_to_it(self, time_ns, expected):
        assert duration(time_ns) == expected

    def test_the_json_is_one_object(self):
        document = json.loads(run("info", "--json", SPLITS).stdout)
        expected = {
            "format": "blktrace",
            "requests": 301,
            "reads": 120,
            "writes": 113,
            "discards": 1,
            "flushes": 67,
            "incomplete": 0,
            "warnings": [],
        }
        assert {key: document[key] for key in expected} == expected
        size = sum(row[-1] for row in reference_rows("loop_raw_split_discard_flush"))
        assert document["devices"] == [
            {"name": "7,0", "requests": 301, "bytes": size, "chosen": True}
        ]
        assert {"bytes_read", "bytes_written", "span_ns", "footprint_bytes"} <= set(document)

    def test_several_devices_are_listed(self, tmp_path):
        write_files(tmp_path, cpu_files("loop_errors"))
        write_files(tmp_path, cpu_files("loop_raw_split_discard_flush"))
        out = run("info", tmp_path).stdout
        assert re.search(r"device +7,0 .*<- used", out)
        assert re.search(r"device +7,1  22 requests", out)


class TestDoctor:
    def test_a_sound_trace_is_usable(self):
        result = run("doctor", SPLITS)
        assert result.stdout.startswith("sound  ")
        assert result.exit_code == 0

    def test_a_damaged_trace_is_usable_with_reservations(self, tmp_path):
        files = cpu_files("loop_errors")
        files["loop1.blktrace.1"] = files["loop1.blktrace.1"][:-7]
        result = run("doctor", write_files(tmp_path, files))
        assert result.stdout.startswith("usable with reservations  ")
        for word in ("truncated x 1", "where  ", "byte ", "fix    "):
            assert word in result.stdout
        assert result.exit_code == 0

    def test_an_unusable_trace_exits_with_3(self, tmp_path):
        (tmp_path / "x").write_bytes(b"nothing\n")
        result = run("doctor", tmp_path / "x")
        assert result.stdout.startswith("unusable  ")
        assert result.exit_code == 3
        assert shell("doctor", tmp_path / "x").returncode == 3

    def test_the_json_has_the_verdict(self):
        assert json.loads(run("doctor", "--json", SPLITS).stdout)["verdict"] == "sound"


def test_head_shows_the_first_requests():
    out = run("head", "-n", 3, ERRORS).stdout.splitlines()
    assert len(out) == 4
    assert re.fullmatch(r" +0\.000387 s   W +65,536  64\.0 KiB   2\.58 us   2\.33 ms  sync", out[2])


class TestConvert:
    @pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".xz", ".csv.bz2"])
    def test_a_converted_trace_reads_back_equal(self, suffix, tmp_path):
        target = tmp_path / f"out{suffix}"
        assert run("convert", ERRORS, target).stdout == f"{target}: 22 requests\n"
        assert as_rows(read(target)) == reference_rows("loop_errors")
        assert list(tmp_path.iterdir()) == [target]

    @pytest.mark.parametrize(
        ("name", "format"), [("a.spc", "spc"), ("a.msr.gz", "msr"), ("spc", "csv"), ("a.b", "csv")]
    )
    def test_the_suffix_selects_the_output_format(self, name, format, tmp_path):
        run("convert", ERRORS, tmp_path / name)
        assert Trace.read(tmp_path / name).format == format

    def test_the_output_can_be_standard_output(self):
        lines = run("convert", ERRORS, "-").stdout.splitlines()
        assert lines[0] == "arrival_ns,op,offset,length,dispatch_ns,complete_ns"
        assert lines[1] == "0,W,0,65536,119583,192280"
        assert len(lines) == 23

    def test_the_input_is_never_overwritten(self, tmp_path):
        run("convert", ERRORS, tmp_path / "a.csv")
        before = (tmp_path / "a.csv").read_bytes()
        with pytest.raises(UsageError, match="also the input"):
            run("convert", tmp_path / "a.csv", tmp_path / "a.csv")
        assert (tmp_path / "a.csv").read_bytes() == before

    @pytest.mark.parametrize(
        "words",
        [
            ("convert", "loop1.blktrace.0", "loop1.blktrace.1"),  # of a glob
            ("convert", "loop1.blktrace.0", "notes.csv"),
            ("convert", "a.csv", "b.csv"),
            ("thin", "loop1.blktrace.0", "--max", "1MiB", "-o", "loop1.blktrace.1"),
            ("thin", "loop1.blktrace.0", "--max", "1MiB", "-o", "notes.csv"),
        ],
    )
    def test_a_file_that_is_no_earlier_output_is_never_replaced(self, words, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        write_files(tmp_path, cpu_files("loop_errors"))
        for output in ("a.csv", "b.csv", "b.csv"):  # an earlier output is replaced
            run("convert", "loop1.blktrace.0", output)
        Path("notes.csv").write_text("to buy: an SSD\n")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(UsageError, match="would be lost"):
            run(*words)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_a_failed_conversion_leaves_no_file(self, tmp_path):
        (tmp_path / "bad.csv").write_text("arrival_ns,op,offset,length,dispatch_ns,complete_ns\n")
        with pytest.raises(TraceError, match="contains no request"):
            run("convert", tmp_path / "bad.csv", tmp_path / "out.csv")
        assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]

    def test_one_path_alone_is_a_usage_error(self):
        assert run("convert", ERRORS).exit_code == 2


class TestErrors:
    """A user's mistake gives one line and an exit code, never a traceback."""

    def cases(self, folder):
        (folder / "empty").write_bytes(b"")
        (folder / "random").write_bytes(bytes(range(7, 256)) * 50)
        (folder / "folder").mkdir()
        return ["empty", "random", "folder", "absent", "absent/absent"]

    @pytest.mark.parametrize("command", ["info", "head", "doctor"])
    def test_missing_and_unreadable_files_are_refused(self, command, tmp_path):
        for name in self.cases(tmp_path):
            result = shell(command, tmp_path / name)
            assert result.returncode == 3, name
            assert "Traceback" not in result.stderr + result.stdout
            assert name in result.stderr + result.stdout

    def test_an_unknown_device_is_refused(self):
        result = shell("info", ERRORS, "--device", "9,9")
        assert result.returncode == 3
        assert "contains no device '9,9', only 7,1" in result.stderr


def commands():
    return [trace, *trace.commands.values()]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_help_ends_with_runnable_examples(command, tmp_path, monkeypatch):
    text = command.get_help(click.Context(command, info_name="hybridsim trace"))
    examples = re.findall(r"^ +hybridsim trace (.*)$", text.split("Examples:")[1], re.M)
    assert 2 <= text.split("Examples:")[1].strip().count("\n") + 1 <= 8
    write_files(
        tmp_path, {f"sda.blktrace.{n}": d for n, d in enumerate(cpu_files("loop_errors").values())}
    )
    (tmp_path / "traces").symlink_to(TRACES)
    monkeypatch.chdir(tmp_path)
    for example in examples:
        words = shlex.split(example.split("|")[0])
        assert run(*words).exit_code == 0, example


def test_help_does_not_import_numpy_or_numba():
    code = (
        "import sys; sys.argv = ['hybridsim', 'trace', '--help']\n"
        "from hybridsim.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_ends_the_command_quietly_with_exit_code_141():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "hybridsim", "trace", "convert", str(ERRORS), "-"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_files_are_written_even_if_the_pipe_is_closed(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    load = "gen:zipf,requests=300,span=16MiB"
    files = ["--json", "result.json", "--html", "report.html"]
    done = subprocess.run(
        [sys.executable, "-m", "hybridsim", "replay", load, *files],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TRACES.parent), "NUMBA_DISABLE_JIT": "1"},
        stdout=writer,
    )
    os.close(writer)
    assert done.returncode == 141
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "report.html"}


@pytest.mark.parametrize(("number", "verdict"), [(200, "sound"), (201, "usable with reservations")])
def test_requests_cut_at_the_ends_of_a_capture_cause_no_reservation(number, verdict):
    cut_off = TraceWarning("incomplete", "no completion", number, "", "")
    summary = SimpleNamespace(requests=200_000, reads=200_000, writes=0, warnings=[cut_off])
    assert diagnose(summary) == verdict


def test_a_trace_of_flushes_alone_is_unusable():
    assert diagnose(SimpleNamespace(requests=20, reads=0, writes=0, warnings=[])) == "unusable"


def test_a_trace_without_times_has_no_span(tmp_path):
    """Lines of the ARC paper's lists: first block, number of blocks, two numbers of no use."""
    (tmp_path / "db.lis").write_text("1 1 0 0\n7 1 0 1\n1 1 0 2\n")
    assert "3 in an unknown time" in run("info", tmp_path / "db.lis", "--format", "lis").stdout


def test_a_trace_that_is_read_in_three_passes_shows_progress_over_all(monkeypatch):
    shown = []
    monkeypatch.setattr(running, "show", shown.append)
    monkeypatch.setattr(running, "clear", lambda: None)
    monkeypatch.setattr(running, "QUIET_S", -1)
    monkeypatch.setattr(running, "REDRAW_S", -1)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True))

    @contextlib.contextmanager
    def reading(on_read):
        for _ in range(3):
            for read_bytes in (1 << 19, 1 << 20):
                on_read(read_bytes, 1 << 20)
        yield

    with trace_convert.with_progress(SimpleNamespace(reading=reading), 3):
        pass
    assert [re.search(r"pass (\d) of 3", line)[1] for line in shown] == list("112233")
    assert "50% of 1.00 MiB" in shown[2]
