"""A full disk, closed streams, odd names, signals: one message, no partial file."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridsim.cli import cli
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.writing import whole_file, write_text
from hybridsim.show.html.sections.shared import digest
from hybridsim.traces.formats.requests_csv import HEADER

ROOT = Path(__file__).parents[1]
ROWS = "".join(f"{i},R,{i * 4096},4096,,\n" for i in range(3))
HYBRIDSIM = [sys.executable, "-m", "hybridsim"]


def heeds_signals():
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def started(command, folder, **how):
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    env = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # on a full disk that would be partial too
    env.pop("PYTHONUNBUFFERED", None)
    how["preexec_fn"] = heeds_signals  # also where these tests run under nohup
    return subprocess.Popen(command, cwd=folder, env=env, text=True, **how)


def shell(line, folder):
    """Run a shell line in which $H is the program; return exit code, stdout and stderr."""
    line = line.replace("$H", " ".join(HYBRIDSIM))
    child = started(["bash", "-c", line], folder)
    out, err = child.communicate()
    assert "Traceback" not in err
    return child.returncode, out, err


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "\n" + ROWS)
    return tmp_path


class TestWholeFile:
    def test_a_file_is_replaced_when_it_is_complete(self, tmp_path):
        target = tmp_path / "a"
        target.write_text("old")
        target.chmod(0o640)
        with whole_file(target) as stream:
            stream.write(b"new")
            stream.flush()
            assert target.read_text() == "old"
        assert target.read_text() == "new"
        assert target.stat().st_mode & 0o777 == 0o640
        assert os.listdir(tmp_path) == ["a"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
    def test_a_failed_write_leaves_no_file(self, error, tmp_path):
        def fail():
            with whole_file(tmp_path / "a") as stream:
                stream.write(b"half")
                raise error

        with pytest.raises(error):
            fail()
        assert os.listdir(tmp_path) == []

    def test_writing_through_a_link_keeps_the_link(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "a")
        write_text(tmp_path / "link", "x")
        assert (tmp_path / "a").read_text() == "x"
        assert (tmp_path / "link").is_symlink()

    @pytest.mark.parametrize("name", ["nowhere/a", ".", "/dev/full", "a" * 300])
    def test_the_error_of_a_failed_write_names_the_file(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UsageError, match=f"cannot write {name[:200]}"):
            write_text(name, "x" * 10_000)

    def test_bytes_that_are_not_utf_8_are_written_as_escapes(self, tmp_path):
        name = os.fsdecode(b"\xff.toml")
        write_text(tmp_path / "a", name)
        assert (tmp_path / "a").read_text() == "\\udcff.toml"
        assert len(digest(name)) == 64


PARTS = """
import os, resource, signal, sys
from hybridsim.foundation.writing import whole_file
with whole_file("a") as stream:
    for part in range(4):
        if part == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        stream.write(b"x" * 9999)
        stream.flush()
if sys.argv[1] == "4":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("part", range(5))
def test_a_killed_writer_leaves_a_complete_file_or_none(part, tmp_path):
    child = started([sys.executable, "-c", PARTS, str(part)], tmp_path)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    seen = {each.name: each.stat().st_size for each in tmp_path.glob("[!.]*")}
    assert seen == ({"a": 4 * 9999} if part == 4 else {})


@pytest.mark.parametrize(
    ("line", "code", "expected"),
    [
        ("$H trace convert a.csv b.csv <&- >&- 2>&- && cat b.csv", 0, HEADER),
        ("$H trace info nowhere 2>/dev/full", 3, ""),
        ("$H trace info - <&-", 3, "the file is empty"),
        ("$H trace info a.csv >/dev/full", 2, "cannot write: No space left"),
        ("$H trace info $'a\\nb\\e[31m'", 3, "a\\nb\\x1b[31m: no such file"),
        ("PYTHONIOENCODING=ascii:strict $H trace info \u2603.csv", 3, "\\u2603.csv: no such file"),
        ("(ulimit -f 1; $H trace gen random,requests=99 a.csv); cat a.csv", 0, ROWS),
        ("$H trace gen random,requests=9999 - | head -1; echo ${PIPESTATUS[0]}", 0, "141"),
    ],
)
def test_odd_environments_give_output_or_one_message(line, code, expected, trace):
    returned, out, err = shell(line, trace)
    assert returned == code
    assert expected in out + err


def test_a_sweep_stopped_by_a_full_disk_can_be_continued(trace):
    line = "$H sweep a.csv --vary cache.size=10%,20%,30% --workers 1 --folder f"
    code, out, err = shell(f"ulimit -f 10; {line}", trace)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"hybridsim: error: cannot store results in f: File too large; .*\n", err)
    code, out, err = shell(f"{line} --json -", trace)
    assert code == 0
    assert json.loads(out)["replays"] == {"computed": 2, "known": 1, "failed": 0, "missing": 0}


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_leaves_no_partial_file(number, code, tmp_path):
    """It arrives while the output is being written."""
    out = tmp_path / "out"
    out.mkdir()
    child = started([*HYBRIDSIM, "trace", "gen", "random,requests=100M", str(out / "b.csv")], out)
    until = time.monotonic() + 60
    while not os.listdir(out):
        assert time.monotonic() < until
        time.sleep(0.02)
    child.send_signal(number)
    _, err = child.communicate()
    assert child.returncode == code
    assert "Traceback" not in err
    assert os.listdir(out) == []


def test_a_generated_trace_never_replaces_its_workload(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '[[load]]\nkind = "random"\n'
    Path("load.toml").write_text(text)
    outcome = CliRunner().invoke(cli, ["trace", "gen", "load.toml", "load.toml"])
    assert "load.toml is also the input" in str(outcome.exception)
    assert Path("load.toml").read_text() == text


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("replay a.csv --html a.csv", "a.csv"),
        ("replay a.csv --json ./a.csv", "./a.csv"),
        ("replay a.csv --save-cache a.csv", "a.csv"),
        ("replay a.csv --scenario site.toml --html site.toml", "site.toml"),
        ("replay a.csv --json both --html both", "both"),
        ("size a.csv --require hit>1% --json a.csv", "a.csv"),
        ("advise a.csv --json a.csv", "a.csv"),
        ("sweep a.csv --vary cache.size=5% -o a.csv", "a.csv"),
        ("bench site.toml --json site.toml", "site.toml"),
        ("fit a.csv -o a.csv", "a.csv"),
        ("trace fit a.csv -o a.csv", "a.csv"),
    ],
)
def test_an_output_never_replaces_another_file_of_the_command(words, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"a.csv": HEADER + "\n" + ROWS, "site.toml": "[cache]\n"}
    for name, text in texts.items():
        Path(name).write_text(text)
    outcome = CliRunner().invoke(cli, words.split())
    assert isinstance(outcome.exception, UsageError)
    assert f"cannot write {named}: the command names this file twice" in str(outcome.exception)
    assert {name: Path(name).read_text() for name in texts} == texts


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("replay --json a.csv b.csv", "JSON"),  # --json takes no file with `hits` and others
        ("size --require hit>1% --json a.csv b.csv", "JSON"),
        ("replay --html a.csv b.csv", "HTML"),
        ("explore -o a.csv b.csv", "HTML"),
        ("replay --save-cache a.csv b.csv", "a saved cache"),
    ],
)
def test_an_output_never_replaces_a_file_of_another_kind(words, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        Path(name).write_text(HEADER + "\n" + ROWS)
    outcome = CliRunner().invoke(cli, words.split())
    assert isinstance(outcome.exception, UsageError)
    assert f"cannot write a.csv: this file is not {what}, and would be lost" in str(
        outcome.exception
    )
    assert Path("a.csv").read_text() == HEADER + "\n" + ROWS


def test_an_output_replaces_an_earlier_one_and_an_empty_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(HEADER + "\n" + ROWS)
    Path("out.json").touch()
    for _ in range(2):
        words = ["replay", "a.csv", "--json", "out.json", "--html", "out.html"]
        outcome = CliRunner().invoke(cli, words)
        assert outcome.exit_code == 0, outcome.output
    assert json.loads(Path("out.json").read_text())["schema"].startswith("hybridsim.result/")
