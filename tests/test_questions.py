"""The page of questions: each has a status; its commands exist, and setup prints what it shows."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hybridsim.cli import cli
from hybridsim.scenario import Scenario
from hybridsim.scenario.origin import assignments

PAGE = Path(__file__).parent.parent / "hybridsim" / "docs" / "questions.md"
TEXT = PAGE.read_text(encoding="utf-8")
STATUSES = ("answered", "in part", "not answered")
HEADING = re.compile(r"^\*\*(\d+)\. (.+?)\*\* \((answered|in part), \[\S+\]\((http\S+)\)\)", re.M)
ROW = re.compile(r"^\| (\d+) \| (.+?) \| \[\S+\]\((http\S+)\) \| (.+?) \|$", re.M)
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.M | re.S)


def entries():
    """Return number, status and address of each question."""
    found = [(int(number), status, url) for number, _, status, url in HEADING.findall(TEXT)]
    return found + [(int(number), "not answered", url) for number, _, url, _ in ROW.findall(TEXT)]


def runs():
    """Return the commands of the page, each with the lines that are shown of its output."""
    result = []
    for block in BLOCKS:
        for line in block.splitlines():
            if line.startswith("$ "):
                result.append((line[2:], []))
            else:
                result[-1][1].append(line)
    return result


COMMANDS = [words for line, _ in runs() for words in [line.rpartition("| ")[2]]]
SETUPS = [(line, shown) for line, shown in runs()
          if line.startswith("hybridsim setup ") and ".json" not in line]  # fmt: skip


def test_each_question_has_one_status_and_address():
    found = entries()
    assert sorted(number for number, _, _ in found) == list(range(1, 65))
    assert len({url for _, _, url in found}) == 64


def test_the_count_at_the_end_is_that_of_the_questions():
    counts = {status: sum(one == status for _, one, _ in entries()) for status in STATUSES}
    (text,) = re.findall(r"^(\d+) answered, (\d+) in part, (\d+) not\b", TEXT, re.M)
    assert tuple(map(int, text)) == tuple(counts.values())


def test_links_within_the_page_lead_somewhere():
    titles = re.findall(r"^### ([A-Z]\. .+)$", TEXT, re.M)
    targets = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    used = set(re.findall(r"\]\(#([^)]+)\)", TEXT))
    assert used <= targets
    assert targets <= used


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_parsed(line):
    """Its options exist and take these values; the scenario keys are valid."""
    words = shlex.split(line)
    assert words[0] == "hybridsim"
    command = cli.get_command(click.Context(cli), words[1])
    context = command.make_context(words[1], words[2:])
    settings = context.params.get("settings") or ()
    if settings:
        values = assignments(settings)
        kind = context.params.get("cache")
        Scenario.default().with_options(cache=kind).with_values(values)


@pytest.mark.parametrize(("line", "shown"), SETUPS)
def test_setup_prints_what_the_page_shows(line, shown):
    done = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
    printed = done.output.splitlines()
    for each in shown:
        if each != "...":
            assert each in printed, each


HITS = [(line, shown) for line, shown in runs()
        if line.startswith("hybridsim hits traces/") and shown]  # fmt: skip
CHECKS = [(line, shown) for line, shown in runs()
          if line.startswith("hybridsim check tests/") and shown]  # fmt: skip


@pytest.mark.parametrize(("line", "shown"), [*HITS, *CHECKS])
def test_hits_and_check_print_what_the_page_shows(line, shown, monkeypatch):
    monkeypatch.chdir(PAGE.parents[2])
    done = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
    printed = done.output.splitlines()
    assert shown
    for each in shown:
        if each != "...":
            assert each in printed, each
