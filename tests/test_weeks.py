"""Weeks: the page of instructions is true; the week by hour."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from test_thinned import load, written

from hybridsim.cli import cli
from hybridsim.show import schemas
from hybridsim.show import thinned as shown
from hybridsim.studies.hits import hits
from hybridsim.studies.week import week
from hybridsim.traces.thinned.thinner import HOUR_NS
from hybridsim.traces.trace import Trace

SECOND = 10**9
ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "hybridsim/docs/how-to/weeks.md").read_text(encoding="utf-8")
SUNDAY = 1_795_910_400 * SECOND  # 2026-11-29 00:00 UTC
RUN = ("hybridsim trace thin gen:", "hybridsim trace info load.thin", "hybridsim hits load.thin")


def samples():
    """Return the commands of the page that are run, with the lines shown of their output."""
    found = []
    for block in re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S):
        command, *lines = block.splitlines()
        if command.startswith("$ ") and command[2:].startswith(RUN):
            found.append((command[2:], lines))
    return found


def test_the_page_shows_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(samples()) == len(RUN)
    for line, lines in samples():
        done = CliRunner().invoke(cli, shlex.split(line)[1:], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        pattern = "\n".join(re.escape(each) if each != "..." else ".*" for each in lines)
        pattern = pattern.replace(re.escape("..."), ".*")
        assert re.fullmatch(pattern, done.output.strip(), re.S), (line, done.output)


class TestWeek:
    @pytest.fixture(scope="class")
    @staticmethod
    def opened(tmp_path_factory):
        path = tmp_path_factory.mktemp("week") / "a"
        rows = load(5 * 3600, rate=5)
        busy = rows.arrival_ns // HOUR_NS == 2
        rows.complete_ns[busy] = rows.arrival_ns[busy] + SECOND
        written(path, rows, origin_unix_ns=SUNDAY, utc_offset_s=3600, region_bytes=65536)
        return Trace.read(path)

    def test_hours_are_those_of_the_clock_at_the_device(self, opened):
        found = week(opened)
        assert [(each.weekday, each.hour) for each in found.hours] == [(6, n) for n in range(1, 6)]
        assert sum(each.requests for each in found.hours) == opened.sample.total.requests
        assert all(each.rate == pytest.approx(5, rel=0.1) for each in found.hours)

    def test_the_worst_hour_is_that_in_which_requests_waited(self, opened):
        found = week(opened)
        assert found.worst.begin_ns == 2 * HOUR_NS
        text = shown.text(opened)
        assert "worst hour Sun 2026-11-29 03:00: " in text
        assert max(map(len, text.splitlines())) <= 80

    def test_hit_ratios_are_those_of_all_requests(self, opened):
        """The capture has all regions, so the mean over the hours is exact."""
        found = week(opened)
        (one,) = hits(opened, f"{found.cache_bytes}B", page="64KiB")
        by_hour = [each.hit_ratio for each in found.hours]
        weights = [each.requests for each in found.hours]
        assert np.average(by_hour, weights=weights) == pytest.approx(one.page_hit_ratio, abs=0.01)

    def test_ascii_only(self, opened):
        assert shown.text(opened, ascii_only=True).isascii()

    def test_the_json_matches_its_schema(self, opened):
        done = CliRunner().invoke(cli, ["trace", "info", "--json", opened.name])
        document = json.loads(done.stdout)
        assert not [*Draft202012Validator(schemas.load("trace")).iter_errors(document)]
        assert document["thinned"]["requests"] == opened.sample.total.requests
        assert len(document["thinned"]["hours"]) == 5
