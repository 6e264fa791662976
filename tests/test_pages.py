"""What the pages of hybridsim/docs show is true, and the site is made of them without a warning."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner
from desk import run
from pages import DOCS, ROOT, blocks
from test_docs import RUN, SHORT, parsed

from hybridsim.cli import cli

APART = {"questions.md", "how-to/weeks.md"}  # they have tests of their own
WIDE = {"questions.md"}  # addresses, and outputs as they are
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
SHOWING = [page for page in PAGES if page not in APART and any(b.commands for b in blocks(page))]
PROGRAMS = [
    pytest.param(block.text, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page))
    if block.language == "python"
]
OUTPUTS = {  # what a program prints: the words of each line, figures as they come
    "how-to/figure.md": r"none 0\.\d+\nwarm 0\.\d+\n\['evictions'.*\]\n",
    "how-to/notebooks.md": r"yes 0\.\d+\n",
    "how-to/policy.md": r"LastInFirstOut 0\.\d+\nlru 0\.\d+\nbelady 0\.\d+\n",
}


@pytest.fixture
def own_desk(desk, tmp_path):
    """A copy of the desk, for a page that writes files."""
    return shutil.copytree(desk, tmp_path / "desk", symlinks=True)


@pytest.mark.parametrize("page", SHOWING)
def test_commands_of_a_page_run_in_its_order(page, own_desk, monkeypatch):
    monkeypatch.chdir(own_desk)
    ran = 0
    for block in blocks(page):
        if block.language == "toml" and block.file:
            (own_desk / block.file).write_text(block.text, encoding="utf-8")
        for line in block.commands:
            ran += 1
            if line.startswith("sudo "):
                with monkeypatch.context() as patched:
                    parsed(line, patched)
            elif line.startswith(SHORT):
                done = run(line, own_desk, NUMBA_DISABLE_JIT="1")
                assert done.returncode == 0, done.stderr
            elif line not in RUN:  # the examples of --help run in test_docs.py
                done = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
                assert done.exit_code == 0, (line, done.output)
    assert ran


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_of_pages_run(program, own_desk, request):
    done = run(f"'{sys.executable}' - <<'END'\n{program}END", own_desk, MPLBACKEND="agg")
    assert done.returncode == 0, done.stderr
    page = request.node.callspec.id.rpartition("-")[0]
    if "print(" in program:
        assert re.fullmatch(OUTPUTS[page], done.stdout), done.stdout


def test_the_site_is_built_without_a_warning(tmp_path):
    words = [sys.executable, ".github/site/build.py", str(tmp_path / "built")]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "No issues found" in done.stdout + done.stderr
    site = tmp_path / "built" / "site"
    page = (site / "reference" / "commands" / "replay.html").read_text(encoding="utf-8")
    assert "--warm-start" in page
    assert "sequential_cutoff" in (site / "reference" / "scenario.html").read_text(encoding="utf-8")


def test_pages_are_wrapped():
    wide = [
        f"{page}:{number}"
        for page in PAGES
        if page not in WIDE
        for number, line in enumerate((DOCS / page).read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120 and not line.lstrip().startswith(("|", "$ "))
    ]
    assert not wide
