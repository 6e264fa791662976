"""Control characters in names and labels never reach the terminal, whatever command prints them."""

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from hybridsim.foundation.printable import printable, shell_line, shell_word
from hybridsim.traces.formats.requests_csv import HEADER

ROOT = Path(__file__).parent.parent
EVIL = "a\x1b]0;owned\x07\x1b[5;45m\x9b2J\u202eb"
NAME = f"{EVIL}.csv"
IOLOG = f"fio version 3 iolog\n0 {EVIL} add\n0 {EVIL} open\n" + "".join(
    f"{number} {EVIL} read {number % 7 * 4096} 4096\n" for number in range(60)
)
# Our own sequences: styles, line clearing, and redrawing of a sweep's table.
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[2?K|\x1b\[1A|\x1b\[\?25[lh]|\r")
COMMANDS = {
    "replay": ["replay", NAME],
    "replay-html": ["replay", NAME, "--html", f"{EVIL}.html", "--json", f"{EVIL}.json"],
    "advise": ["advise", NAME],
    "hits": ["hits", NAME],
    "mrc": ["mrc", NAME],
    "why": ["why", NAME],
    "size": ["size", NAME, "--require", "hit>1%"],
    "sweep": ["sweep", NAME, "--vary", "cache.size=5%,20%", "--workers", "1"],
    "info": ["trace", "info", NAME],
    "doctor": ["trace", "doctor", NAME],
    "head": ["trace", "head", NAME],
    "fit": ["trace", "fit", NAME, "-o", f"{EVIL}.toml"],
    "convert": ["trace", "convert", NAME, f"{EVIL}2.csv"],
    "info-devices": ["trace", "info", f"{EVIL}.log"],
    "doctor-devices": ["trace", "doctor", f"{EVIL}.log", "--device", EVIL],
    "unknown-device": ["trace", "info", f"{EVIL}.log", "--device", f"x{EVIL}"],
    "bad-rows": ["trace", "doctor", "rows.csv"],
    "missing": ["replay", f"no{NAME}"],
    "scenario": ["scenario", "check", f"{EVIL}.scenario"],
    "show": ["scenario", "show", f"{EVIL}.scenario"],
    "replay-on": ["replay", NAME, "--scenario", f"{EVIL}.scenario"],
    "key": ["replay", NAME, "--set", f"cache.{EVIL}=1"],
    "option": ["replay", NAME, f"--{EVIL}"],
    "command": [EVIL],
    "explain": ["explain", EVIL],
    "catalog": ["catalog", "show", EVIL],
    "schema": ["schema", EVIL],
    "compare": ["compare", NAME, NAME],
    "model": ["fit", NAME],
    "fio": ["fio", f"{EVIL}.fio"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("names")
    lines = [
        f"{n * 10**7},{'RRW'[n % 3]},{n % 9 * 4096},4096,,{n * 10**7 + 10**6}" for n in range(90)
    ]
    (place / NAME).write_text("\n".join([HEADER, *lines, ""]))
    (place / "rows.csv").write_text("\n".join([HEADER, *lines, f"1,{EVIL},0,512,,", ""]))
    (place / f"{EVIL}.log").write_text(IOLOG)
    (place / f"{EVIL}.scenario").write_text('[cache]\nkind = "page"\nsize = "1MiB"\n')
    (place / f"{EVIL}.fio").write_text("[job]\nrw=randread\nsize=1m\nnumber_ios=20\n")
    return place


def at_a_terminal(words, folder, columns=80, **more):
    """Return the output of a command on a terminal."""
    here, there = pty.openpty()
    env = os.environ | {
        "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1", "TERM": "xterm", "COLUMNS": str(columns),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "hybridsim", *words], cwd=folder, env=env | more,
        stdin=subprocess.DEVNULL, stdout=there, stderr=there,
    )  # fmt: skip
    os.close(there)
    output = b""
    while True:
        if not select.select([here], [], [], 120)[0]:
            process.kill()
            raise TimeoutError(words)
        try:
            part = os.read(here, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        output += part
    process.wait()
    os.close(here)
    return output.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_control_characters_of_names_are_escaped(name, folder):
    output = at_a_terminal(COMMANDS[name], folder)
    assert "Traceback" not in output
    assert "\x1b[5;45m" not in output
    rest = OURS.sub("", output).replace("\n", "").replace("\t", "")
    assert rest == printable(rest)
    assert output.strip()


@pytest.mark.parametrize(
    "word", [EVIL, "plain", "it's", "a b\\c'\x1b", "\udcff\x00"[:1], "ü€\U000e0001"]
)
def test_a_printed_command_can_be_pasted_into_a_shell(word):
    shown = shell_word(word)
    assert shown.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf %s {shown}"], capture_output=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout == os.fsencode(word)
    assert shell_line(["a", word]) == f"a {shown}"
