"""Commands killed at any moment: each output file is complete, unchanged or absent.

Some moments are random, some soon after the start of an output.  A failing seed is printed with the
command that repeats it.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAD = "arrival_ns,op,offset,length,dispatch_ns,complete_ns\n"
REPLAY = "replay a.csv --json b.json --html b.html --save-cache b.cache"
SWEEP = "sweep a.csv --vary cache.size=10%,20% --workers 1 -o b.csv --html b.html"
COMMANDS = {  # and their outputs
    "replay": (REPLAY, ["b.json", "b.html", "b.cache"]),
    "sweep": (SWEEP, ["b.csv"]),  # its page contains its run time
    "convert": ("trace convert a.csv b.spc.zst", ["b.spc.zst"]),
    "gen": ("trace gen random,requests=20k b.csv", ["b.csv"]),
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
HIDDEN = ".hybridsim-"
OLD = {  # what was there before, of the kind that may be replaced
    "b.json": b"{}",
    "b.html": b"<p>",
    "b.cache": b"PK",
    "b.csv": f"{HEAD}0,R,0,512,,\n".encode(),
    "b.spc.zst": b"0,8,512,R,0.5\n",
}
FIRST, LAST = map(int, os.environ.get("HYBRIDSIM_FUZZ", "0-30").split("-"))


def started(line, folder):
    env = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"}
    env.pop("PYTHONUNBUFFERED", None)
    return subprocess.Popen(
        [sys.executable, "-m", "hybridsim", *line.split()],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def with_trace(folder):
    folder.mkdir(exist_ok=True)
    draw = random.Random(1)
    rows = (f"{i * 10**6},{'RRW'[i % 3]},{draw.randrange(99) * 4096},4096,,\n" for i in range(99))
    (folder / "a.csv").write_text(HEAD + "".join(rows))
    return folder


def undisturbed(name, folder):
    """Return the outputs of a command and its run time."""
    line, outputs = COMMANDS[name]
    begun = time.monotonic()
    child = started(line, with_trace(folder))
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors
    return {each: (folder / each).read_bytes() for each in outputs}, time.monotonic() - begun


def hidden(folder):
    return sorted(each for each in os.listdir(folder) if each.startswith(HIDDEN))


def wait_for_the_moment(child, folder, draw, usual_s):
    """Wait a random time, or a little longer than until an output begins."""
    end = time.monotonic() + draw.uniform(0, usual_s)
    wants_output = draw.random() < 0.6
    while child.poll() is None and (wants_output or time.monotonic() < end):
        if wants_output and hidden(folder):
            time.sleep(draw.choice([0, 0, 0.001, 0.01]))
            return
        time.sleep(0.0005)


def check_killed(name, seed, folder, expected, usual_s):
    line, outputs = COMMANDS[name]
    draw = random.Random(f"{name} {seed}")
    with_trace(folder)
    had = {each for each in outputs if draw.random() < 0.5}
    for each in had:
        (folder / each).write_bytes(OLD[each])
    number = draw.choice(SIGNALS)
    child = started(line, folder)
    wait_for_the_moment(child, folder, draw, usual_s)
    child.send_signal(number)
    _, errors = child.communicate(timeout=300)
    assert "Traceback" not in errors
    assert child.returncode in (0, -number, 128 + number)
    assert number == signal.SIGKILL or hidden(folder) == []
    for each in outputs:
        content = (folder / each).read_bytes() if (folder / each).exists() else None
        is_part = name == "sweep" and is_some_of(
            content, expected[each]
        )  # interrupted, with a message
        assert is_part or content in (expected[each], OLD[each] if each in had else None), each
    left = hidden(folder)
    assert undisturbed(name, folder)[0] == expected
    assert hidden(folder) == left


def is_some_of(table, whole):
    """Return whether a table has the header and a subset of the rows of another."""
    rows, of = (table or b"").splitlines(), whole.splitlines()
    return len(rows) > 1 and rows[0] == of[0] and set(rows) <= set(of)


def kill(name, seeds, folder):
    expected, usual_s = undisturbed(name, folder / "whole")
    for seed in seeds:
        try:
            check_killed(name, seed, folder / str(seed), expected, usual_s)
        except BaseException:
            print(f"HYBRIDSIM_FUZZ={seed}-{seed + 1} python -m pytest {__file__} -m long -k {name}")
            raise


def test_a_killed_command_leaves_no_partial_file(tmp_path):
    kill("gen", range(3), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_killed_at_many_moments_leave_no_partial_file(name, tmp_path):
    kill(name, range(FIRST, LAST), tmp_path)
