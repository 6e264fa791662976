"""The search for the smallest SSD: which sizes it tries, and what it answers."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from captures import TRACES
from fakes import SCENARIO, TRACE, Load, result
from hypothesis import given
from hypothesis import strategies as st

from hybridsim import Scenario, Trace, replay
from hybridsim.answers.requirements import Checked, Seen, parse_all
from hybridsim.answers.result import plain
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.show.size import text
from hybridsim.studies.candidates import Candidate, candidates
from hybridsim.studies.mrc import Curve
from hybridsim.studies.size import (
    Search,
    Sizing,
    Tried,
    _why_worse,
    first_sizes,
    possible,
    size,
    sizes_of,
)

ROOT = Path(__file__).parent.parent
GRID = list(range(100, 200))


def curve(distinct=1000, page_bytes=4096):
    pages = np.arange(1, distinct + 1)
    ratio = np.maximum(1 - pages / 400, 0.1)
    return Curve("lru", "always", page_bytes, pages, ratio, 0 * ratio, 1, 1, distinct, 1.0)


def searched(meets, grid=GRID, first=(150, 199)):
    """Return the search when it is over, and how often each size was tried."""
    search, tried, sizes = Search(grid), [], list(first)
    while sizes:
        tried += sizes
        for each in sizes:
            search.record(each, meets(each))
        sizes = search.next()
    return search, tried


def below(search, grid=GRID):
    """Return the largest size below the answer that fails; None if there is none."""
    low, high = search.low_high
    return None if high is None or low < 0 else grid[low]


@given(st.integers(100, 199))
def test_the_answer_is_the_smallest_size_that_meets_and_the_one_below_fails(smallest):
    search, tried = searched(lambda size: size >= smallest)
    assert search.answer == smallest
    assert below(search) == (smallest - 1 if smallest > 100 else None)
    assert len(tried) == len(set(tried)) <= 15


@given(st.lists(st.booleans(), min_size=100, max_size=100))
def test_whatever_meets_the_answer_was_tried_and_so_was_its_neighbour(meets):
    search, tried = searched(lambda size: meets[size - 100])
    assert len(tried) == len(set(tried))
    if search.answer is not None:
        assert meets[search.answer - 100]
        assert below(search) == (search.answer - 1 if search.answer > 100 else None)
        assert below(search) is None or not meets[below(search) - 100]


def test_in_front_of_a_system_without_a_cache_all_kinds_are_searched():
    for volume in ("digitalocean-volume", "alibaba-ultra"):
        every, notes = candidates(Scenario.default().with_options(preset=volume))
        assert {"bcache", "dm-cache", "open-cas"} <= {each.kind for each in every}
        assert notes == []
    with pytest.raises(UsageError, match="--cache page"):
        candidates(Scenario.default().with_options(cache="none"))


def test_before_it_says_that_nothing_meets_it_looks_between():
    search, tried = searched(lambda size: size == 174, first=[100, 150, 199])
    assert search.answer == 174
    search, tried = searched(lambda size: False, first=[100, 150, 199])
    assert (search.answer, below(search)) == (None, None)
    assert sorted(tried) == [100, 125, 150, 174, 199]


def test_sizes_are_whole_pages_four_to_a_doubling_up_to_all_that_is_touched():
    sizes = [each // 4096 for each in sizes_of(curve(40))]
    assert sizes == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40]
    assert sizes_of(curve(1)) == [4096]
    assert sizes_of(curve(40), times=2)[-1] == 80 * 4096


def test_the_curve_says_where_to_look_first():
    known = curve()
    grid = sizes_of(known)
    wanted = [each // 4096 for each in first_sizes(known, grid)]
    assert wanted == [192, 320, 384, 1024]  # half, 80 % and 95 % of the fall to 360 pages


def test_sizes_that_the_cache_cannot_have_are_left_out():
    small = Scenario.loads('[cache]\nkind = "bcache"\n')
    sizes, why = possible(Candidate(small), [2**power for power in range(12, 50)])
    assert sizes[0] == 2**22  # 513 buckets of 4 KiB are a little more than 2 MiB
    assert sizes[-1] == 2**40
    assert "drive holds" in why
    tiny = small.with_values({"cache.drive.capacity": "1MiB"})
    with pytest.raises(ScenarioError):
        possible(Candidate(tiny), [4096])


def test_a_trace_that_touches_less_than_the_smallest_cache_gets_that():
    small = Scenario.loads('[cache]\nkind = "bcache"\n')
    assert possible(Candidate(small), [4096, 786432])[0] == [2**22]


@pytest.mark.parametrize(
    ("scenario", "require", "expected"),
    [("", [], "specify a requirement"), ('[cache]\nkind = "none"', ["hit>1%"], "no cache")],
)
def test_what_cannot_be_answered_is_refused_before_the_trace_is_read(scenario, require, expected):
    with pytest.raises(UsageError, match=expected):
        size(None, Scenario.loads(scenario), require)


PAGE = Candidate(Scenario.default().with_options(cache="page"))


@cache
def replayed():
    """Fake results of three sizes, of which the last two are alike."""
    poor = Load(seconds=120, iops=200, hit_ratio=lambda share: 0.2 * (1 - np.exp(-share * 20)))
    good = poor._replace(hit_ratio=lambda share: 0.9 * (1 - np.exp(-share * 20)))
    known = {**SCENARIO, "capacity_bytes": 10**12}
    first, second = (result(each, scenario=known) for each in (poor, good))
    return first, second, second


def sizing(require):
    """A fake answer from them."""
    wanted, results = parse_all(require), replayed()
    tried = [Tried.of(PAGE, 4096 << n, each, wanted) for n, each in enumerate(results)]
    met = [each for each in tried if each.meets]
    about = {**TRACE, "requests": 60_000, "reads": 42_000, "writes": 18_000}
    return Sizing(
        about, {"summary": "8 x disks", "mode": "open"}, wanted,
        [each.check(Seen.alone(results[0])) for each in wanted], curve(), tried,
        met[0] if met else None, tried[0] if met and met[0] is not tried[0] else None,
        "more than the trace touches",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("require", "expected"),
    [
        (
            ["hit>50%", "dwpd<100"],
            "8.00 KiB is the smallest SSD that meets all 2 requirements, with page write-through.",
        ),
        (["hit>50%"], "The next smaller size, 4.00 KiB, does not: hit>50% ("),
        (["hit>1%"], "It is the smallest possible cache of this kind."),
        (["mean<1h"], "No SSD is needed: the disks alone meet mean<1h."),
        (["hit>99%", "hit>50%"], "hit>50%: met with 8.00 KiB, 16.0 KiB."),
    ],
)
def test_the_answer_says_what_was_found(require, expected):
    report = text(sizing(require))
    assert expected in " ".join(report.split())
    assert max(map(len, report.splitlines())) <= 80
    assert len(report.splitlines()) <= 24
    assert text(sizing(require), ascii_only=True).isascii()


def test_the_best_figure_stands_with_its_interval_and_its_size():
    report = " ".join(text(sizing(["hit>99%"])).split())
    best = re.search(r"hit>99%: the best is 89% \((\d+)% to (\d+)%\), with 8\.00 KiB\.", report)
    assert best is not None
    assert int(best[1]) <= 89 <= int(best[2])


def test_all_of_it_is_in_the_json():
    as_json = json.loads(json.dumps(plain(sizing(["hit>50%"]).to_dict()), allow_nan=False))
    assert as_json["answer"]["size_bytes"] == 8192
    assert as_json["below"]["checked"][0]["ok"] is False
    assert len(as_json["tried"]) == 3


def test_a_size_has_the_figures_of_its_replay():
    """Several caches side by side do what each does alone."""
    trace = Trace.read(TRACES / "blktrace" / "loop_ext4_buffered_meta")
    results = size(trace, Scenario.default().with_options(cache="page"), ["hit>100%"])
    one = results.tried[0]
    site = Scenario.default().with_options(cache="page", cache_mode=one.mode)
    alone = replay(trace, Candidate(site).sized(one.size_bytes))
    assert [each.value for each in one.own] == [alone.phases["warm"].figures.hit_ratio]
    assert one.whole_ns == alone.phases["whole"].figures.reads.mean_ns
    assert one.drive_writes_per_day == alone.wear.drive_writes_per_day
    assert len({each.alone_ns for each in results.tried}) == 1  # of the same requests
    assert {each.mode for each in results.tried} == {"write-through", "write-back"}
    assert results.answer is None
    assert results.alone[0].value == 0


PROGRAM = """
import json, sys
from hybridsim import Scenario, Trace, replay, size
from hybridsim.answers.requirements import parse_all
from hybridsim.answers.result import plain
trace = Trace.read(sys.argv[1])
require = ["mean.writes<300us"]
found = size(trace, None, require)
through = size(trace, Scenario.default().with_options(cache_mode="write-through"), require)
site = Scenario.default().with_options(
    cache=found.answer.kind, cache_size=str(found.answer.size_bytes), mode=found.scenario["mode"]
)
if found.answer.kind != "dm-writecache":
    site = site.with_options(cache_mode=found.answer.mode)
result = replay(trace, site, require=parse_all(require))
print(json.dumps(plain({
    "found": found.to_dict(), "through": through.to_dict(),
    "replayed": [each.to_dict() for each in result.required],
})))
"""


def test_a_write_back_machine_is_found_where_write_through_does_not_meet_it():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "gen:zipf,requests=300,span=16MiB"],
        check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    results = answers["found"]
    assert answers["through"]["answer"] is None
    assert results["answer"]["mode"] in ("write-back", "write-only")
    assert results["bought"]["mirrored"]
    assert answers["replayed"] == results["answer"]["own"]
    assert len({each["alone_ns"] for each in results["tried"]}) == 1


def test_without_reads_the_table_has_what_is_required():
    found = sizing(["mean.writes<1h"])
    found.trace.update(reads=0)
    report = text(found, details=True)
    head, first = report[report.index("replayed") :].splitlines()[:2]
    assert head.split() == ["replayed", "SSD", "mean.writes<1h"]
    assert found.tried[0].decisive[0].ranged in first
    assert "hit, read" not in report


def test_a_hit_ratio_that_is_hardly_lower_is_not_the_reason_why_a_larger_cache_fails():
    def tried(hit):
        return SimpleNamespace(warm_ns=1, checked=[], hit=hit, drive_writes_per_day=1.0)

    failed = [SimpleNamespace(met=False)]
    one, smaller = tried(0.3790), tried(0.3801)
    one.checked = failed
    assert _why_worse(one, smaller) == "its misses, writes and write-backs meet at other moments"
    assert _why_worse(one, tried(0.45)) == "its hit ratio is 38%, not 45%"


def test_the_figures_of_the_answer_are_those_of_the_table_unless_its_own_phase_is_less_sure():
    (require,) = parse_all(["mean.warm<4ms"])

    def tried(alike_ns, own_ns):
        both = [[Checked(require, ns, ns < 4e6, "")] for ns in (alike_ns, own_ns)]
        return Tried("bcache write-back", "bcache", "write-back", "", 1 << 20, *[None] * 8, *both)

    assert tried(2.97e6, 2.90e6).decisive[0].value == 2.97e6
    assert tried(2.97e6, 4.10e6).decisive[0].value == 4.10e6
    assert tried(4.10e6, 2.90e6).decisive[0].value == 4.10e6
