"""Advice for a fleet: each member as `advise` answers alone, and a purchase that adds up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hybridsim import Scenario
from hybridsim.answers.result import plain
from hybridsim.cli import cli
from hybridsim.foundation.errors import UsageError
from hybridsim.show.fleet_advice import short, text, worded
from hybridsim.show.html import of
from hybridsim.studies.advise_fleet import Member, best_of, concluded, members_of, server_of
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.traces.trace import captures_of

ROOT = Path(__file__).parent.parent
TB, GIB = 10**12, 2**30
BEGAN_US = 1_577_808_000_000_000


def stretch(mean_ns, n=100):
    one = {"n": n, "mean_ns": mean_ns, "p50_ns": 1, "p99_ns": 1, "p99.9_ns": 1}
    return {"read": one, "write": {**one, "n": 0, "mean_ns": None}, "took_ns": 1, "disk_ns": 1}


def row(name="bcache write-back", size=GIB, busy=0.1, years=20.0, gain=4.0, mirrored=True, **more):
    """A machine of an advice: what the fleet reads of it."""
    copies = 2 if mirrored else 1
    bought = {
        "drives": copies, "drive": "An SSD", "drive_bytes": 2 * TB, "mirrored": mirrored,
        "cost": 100.0 * copies, "disks_cost": 1000.0, "total_cost": 1000 + 100.0 * copies,
    }  # fmt: skip
    judged = {"first": 0, "end": 100, "none": stretch(8e6), "cached": stretch(8e6 / gain)}
    return {
        "name": name, "setting": "", "installable": True, "size_bytes": size, "answer": "yes",
        "gain": gain, "forecast": gain, "low": gain / 2, "high": 2 * gain, "judged": judged,
        "cautious": gain, "keeps_up": True, "ssd_busy": busy, "years": years,
        "bought": bought, "kind": "bcache", "mode": "write-back", "is_forecast": True,
        "p99_ns": {"none": 1, "cached": 1}, "steady": True, "too_short": "", "more_ns": 10**9,
        "load_adapts": False, "options": [], **more,
    }  # fmt: skip


def member(server, answer="yes", volume=None, rows=None, keeps_up=True):
    rows = rows or [row()]
    scenario = {"options": ["--cache bcache"], "file": None, "summary": "disks"}
    trace = {"arguments": [server], "span_ns": 10**9, "requests": 200}
    advice = {
        "answer": answer, "recommended": rows[0], "rows": rows, "disks_keep_up": keeps_up,
        "inputs": {"trace": trace, "scenario": scenario}, "mode": "open", "goal": "time",
        "verdict": {"headline": "So.", "reasons": []},
    }  # fmt: skip
    return Member(server, volume, advice)


def test_volumes_share_the_drives_of_their_server():
    one = server_of("a", [row()])
    assert (one.drives, one.cost, one.mirrored) == (2, 200.0, True)
    both = server_of("a", [row(), row(mirrored=False)])
    assert (both.drives, both.cache_bytes, both.volumes) == (2, 2 * GIB, 2)  # mirrored for one
    assert both.years == pytest.approx(10)
    assert server_of("a", [row(mirrored=False)] * 2).drives == 1


@pytest.mark.parametrize(
    ("rows", "drives", "why"),
    [
        ([row(size=TB, mirrored=False)] * 5, 3, "capacity"),
        ([row(busy=0.5, mirrored=False)] * 3, 3, "load"),  # 1.5 of drives at most 70 % busy
        ([row(years=4.0, mirrored=False)] * 2, 3, "wear"),  # 2 years on one, 6 on three
    ],
)
def test_what_needs_most_drives_decides(rows, drives, why):
    result = server_of("a", rows)
    assert (result.drives, result.decided_by) == (drives, why)


def test_the_purchase_is_of_those_with_a_use():
    members = [member("a"), member("b", "no"), member("c", "unsure"), member("d", keeps_up=False),
               Member("e", None, None, "it is torn")]  # fmt: skip
    result = concluded(members, Scenario.default(), "time")
    assert [each.name for each in result.servers] == ["a", "d"]
    assert (result.drives, result.cost) == (4, 400.0)
    assert (result.later, result.later_cost) == (2, 200.0)
    assert result.waits.members == 1  # the disks of d have a growing queue without the cache
    assert result.waits.gain == pytest.approx(4)
    assert (result.waits.low, result.waits.high) == pytest.approx((2, 8))
    document = plain(result.to_dict())
    assert document["answers"] == {"yes": 2, "no": 1, "unsure": 1, "failed": 1}
    lines = text(result).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    words = " ".join(text(result).split())
    assert "Buy 4 x 1.92 TB" in words
    assert "for 2 of 5 servers" in words
    assert "$400 for the SSDs, mirrored on 2 servers" in words
    assert "4.00 times less (2.00 to 8.00)" in words
    assert "1 array cannot keep up" in words
    assert "At most 2 more drives, $200" in words
    assert "it is torn" in of(document)


def test_no_purchase_where_none_has_a_use():
    result = concluded([member("a", "no"), member("b", "no")], Scenario.default(), "time")
    assert (result.drives, result.waits, result.kinds) == (0, None, [])
    assert "Buy no SSD: none of them has a use for a cache." in text(result)
    undecided = concluded([member("a", "unsure"), member("b", "no")], Scenario.default(), "time")
    assert "Buy nothing yet" in text(undecided)


def test_one_kind_for_all_is_of_what_was_replayed_for_all():
    a = [row(gain=4.0), row("dm-cache write-through", gain=3.0, mirrored=False)]
    b = [row("open-cas write-back", gain=5.0), row("dm-cache write-through", gain=2.5,
                                                   mirrored=False)]  # fmt: skip
    result = concluded([member("a", rows=a), member("b", rows=b)], Scenario.default(), "time")
    best = result.kinds[0]
    assert (best.name, best.members, best.drives) == ("dm-cache write-through", 2, 2)
    assert best.waits.gain == pytest.approx(2 / (1 / 3 + 1 / 2.5))
    assert result.waits.gain == pytest.approx(2 / (1 / 4 + 1 / 5))


def test_of_machines_as_good_the_smaller_is_taken():
    rows = [row(size=2 * GIB, gain=4.02), row(size=GIB, gain=4.0), row(size=1, keeps_up=False)]
    assert best_of(rows) is rows[1]


def test_names_lose_the_folders_that_all_have():
    assert short(["/x/y/a/sda", "/x/y/b/sda"]) == ["a/sda", "b/sda"]
    assert short(["gen:zipf", "b/sda"]) == ["gen:zipf", "b/sda"]
    assert short([]) == []


@pytest.fixture
def traces(tmp_path):
    """Two volumes in Alibaba's format in one file, and one in another."""
    lines = [f"{7 + number % 2},R,{number % 50 * 4096},4096,{BEGAN_US + 900 * number}"
             for number in range(200)]  # fmt: skip
    (tmp_path / "two.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "one.csv").write_text("\n".join(lines[::2]) + "\n")
    return tmp_path


def test_each_volume_of_each_capture_is_a_member_once(traces):
    named = [NamedTrace.here((str(traces / name),)) for name in ("two.csv", "one.csv", "two.csv")]
    members, notes = members_of(named, 0, traces / "kept")
    two, one = str(traces / "two.csv"), str(traces / "one.csv")
    assert list(members) == [(two, "7"), (two, "8"), (one, None)]
    assert notes == [f"{two} is the same capture as {two}: counted once"]
    with pytest.raises(UsageError, match="there is 1"):
        members_of(named[1:2], 0, traces / "kept")


def test_captures_are_told_apart_from_files_of_one_capture(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for cpu in (0, 1):
            (tmp_path / name / f"sda.blktrace.{cpu}").write_bytes(b"")
    a, b = tmp_path / "a", tmp_path / "b"
    assert captures_of([str(a), str(a / "sda.blktrace.0"), str(a / "sda.blktrace.1")]) == 1
    assert captures_of([str(a), str(b / "sda")]) == 2


def test_options_of_a_fleet_need_one():
    done = CliRunner().invoke(cli, ["advise", "gen:zipf,requests=9", "--workers", "2"])
    assert isinstance(done.exception, UsageError)
    assert "--fleet all" in str(done.exception)
    done = CliRunner().invoke(cli, ["advise", "gen:zipf,requests=9", "--fleet", "0"])
    assert "must be a number of volumes, or all" in str(done.exception)


PROGRAM = """
import json, sys
from hybridsim import Scenario, Trace, advise
from hybridsim.answers.result import plain
from hybridsim.show.fleet_advice import text
from hybridsim.studies.advise_fleet import advise_fleet
from hybridsim.studies.sweep.named_trace import NamedTrace
paths, folder = sys.argv[2:], sys.argv[1]
site = Scenario.default().with_options(cache="bcache")
named = [NamedTrace.here((each,)) for each in paths]
fleet = advise_fleet(named, site, folder=folder, workers=1)
seen = []
again = advise_fleet(named, site, folder=folder, workers=1,
                     report=lambda progress, settled: seen.append(progress.known))
alone = advise(Trace.read(paths[1]), site, ["disks"])
print(json.dumps({
    "fleet": plain(fleet.to_dict()), "same": fleet.to_dict() == again.to_dict(),
    "known": seen[-1], "alone": plain(alone.to_dict()), "screen": text(fleet),
    "details": text(fleet, details=True),
}))
"""


@pytest.fixture(scope="module")
def advised(tmp_path_factory):
    """A fleet of three, run twice, and one of them alone; interpreted."""
    folder = tmp_path_factory.mktemp("fleet")
    lines = [f"{7 + number % 2},{'RW'[number % 3 == 0]},{number * 7919 % 90 * 4096},4096,"
             f"{BEGAN_US + 9000 * number}" for number in range(400)]  # fmt: skip
    (folder / "two.csv").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "kept"), str(folder / "two.csv"),
         "gen:zipf,requests=300,span=16MiB"],
        check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("answer", "low", "high", "words"),
    [("yes", 1.2, 2.0, "yes"), ("yes", 0.9, 2.0, "probably yes"), ("no", 0.9, 1.1, "no"),
     ("no", 0.7, 1.5, "probably not"), ("unsure", 0.5, 3.0, "not yet")],
)  # fmt: skip
def test_a_member_is_worded_as_replay_words_it(answer, low, high, words):
    pick = {"low": low, "high": high}
    advice = {"answer": answer, "recommended": pick, "disks_keep_up": True}
    assert worded({"answer": answer, "advice": advice}) == words


def test_a_member_gets_the_answer_that_it_gets_alone(advised):
    assert not any(each["why"] for each in advised["fleet"]["members"])
    every = {each["volume"]: each for each in advised["fleet"]["members"]}
    assert set(every) == {"7", "8", None}
    ours, alone = every[None]["advice"], advised["alone"]
    for key in ("answer", "mode", "recommended", "knee_bytes", "notes", "verdict"):
        assert ours[key] == alone[key], key
    assert [each["gain"] for each in ours["rows"]] == [each["gain"] for each in alone["rows"]]


def test_stored_answers_are_reused(advised):
    assert advised["same"]
    assert advised["known"] == 3


def test_the_screen_and_the_report_name_each_member(advised):
    lines = advised["screen"].splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for words in (advised["screen"], advised["details"], of(advised["fleet"])):
        assert "two.csv 7" in words
        assert "two.csv 8" in words
    use = [each for each in advised["fleet"]["members"] if each["answer"] == "yes"]
    bought = advised["fleet"]["purchase"]["servers"]
    assert sum(each["volumes"] for each in bought) == len(use)
    assert len(bought) == len({each["server"] for each in use})
