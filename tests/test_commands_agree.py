"""No two commands contradict one another: equal questions about application captures.

`advise`, `replay`, `size`, `sweep` and `mrc` answer for the same machine on the same requests: all
figures that they have in common are equal.  Captures are the demo's and, with HYBRIDSIM_DATA, those
of other applications; a part of each, on every kind of cache.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybridsim import Trace
from hybridsim.foundation.codes import Op

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("HYBRIDSIM_DATA", ROOT.parent / "shared" / "data")) / "app-traces"
CAPTURES = {
    "demo": sorted((ROOT / "traces" / "demo").glob("*.blktrace.*")),
    **{
        name: sorted((DATA / name).glob("*.blktrace.*"))
        for name in ("mariadb_moving_hot", "pg_zipf", "fileserver_newhot")
    },
}
REQUESTS = 2000
# One kind is searched for each capture, besides those that `advise` searches.
SIZED = dict(zip(CAPTURES, ("bcache", "open-cas", "dm-cache", "page")))
PROGRAM = """
import json, sys
from hybridsim import Scenario, Trace, advise, replay, size
from hybridsim.answers.requirements import parse_all
from hybridsim.answers.result import plain
from hybridsim.show.terminal import render
from hybridsim.studies.mrc import miss_ratio_curve
from hybridsim.studies.sweep.point import replayed
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.figures import Objective
from hybridsim.studies.sweep.point import point
table, sized = sys.argv[1:]
trace = Trace.read(table)
require = parse_all(["mean.whole<1ns", "hit.whole>1%", "dwpd<1", "years>1"])
advice = advise(trace, compare=["disks", "hybrid"])
kinds = {}
for row in [*advice.rows]:
    kinds.setdefault((row.candidate.kind, bool(row.candidate.setting)), row)
answers = []
for row in kinds.values():
    site = row.candidate.sized(row.size_bytes)
    result = replay(trace, site, require=require)
    named = NamedTrace.here((table,))
    one = point(named, named.digest(), site, {}, None)
    swept = replayed(one) | {"cost": Objective.parse("cost").value(replayed(one), site)}
    answers.append({
        "advised": row.to_dict(), "replayed": result.to_dict(), "swept": swept,
        "screen": render(result),
    })
sizing = size(trace, Scenario.default().with_options(cache=sized),
              ["mean.whole<1ns", "hit.whole>1%"])
tried = []
for one in sizing.tried[::3]:
    site = Scenario.default().with_options(
        cache=one.kind, cache_size=str(one.size_bytes))
    if one.kind != "dm-writecache":
        site = site.with_options(cache_mode=one.mode)
    if one.setting:
        continue
    same = replay(trace, site, require=sizing.require)
    tried.append({"tried": one.to_dict(), "replayed": same.to_dict()})
page_bytes = Scenario.default().cache.page_bytes
curve = miss_ratio_curve(trace, "lru", None, page_bytes)
print(json.dumps(plain({
    "answers": answers, "advice": advice.to_dict(), "tried": tried, "sizing": sizing.to_dict(),
    "knee": int(curve.pages[curve.knee]) * page_bytes,
})))
"""


def first_requests(parts):
    """The first reads and writes of a capture, as a table."""
    rows = next(Trace.read(parts).chunks())
    lines = ["arrival_ns,op,offset,length,dispatch_ns,complete_ns"]
    for at in range(len(rows.arrival_ns)):
        op = {Op.READ: "R", Op.WRITE: "W"}.get(Op(rows.op[at]))
        if op is not None and rows.length_bytes[at]:
            times = ["" if each[at] < 0 else each[at]
                     for each in (rows.dispatch_ns, rows.complete_ns)]  # fmt: skip
            place = (rows.arrival_ns[at], op, rows.offset_bytes[at], rows.length_bytes[at])
            lines.append(",".join(map(str, (*place, *times))))
        if len(lines) > REQUESTS:
            break
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module", params=CAPTURES)
def answers(request, tmp_path_factory):
    """The answers of all commands for one capture."""
    parts = CAPTURES[request.param]
    if not parts:
        pytest.skip(f"no {DATA}: HYBRIDSIM_DATA names the folder of the captures")
    table = tmp_path_factory.mktemp("agree") / "first.csv"
    table.write_text(first_requests(parts))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(table), SIZED[request.param]],
        check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_all_kinds_are_compared(answers):
    kinds = {each["advised"]["kind"] for each in answers["answers"]}
    assert {"bcache", "dm-cache", "open-cas", "page"} <= kinds
    assert any(each["advised"]["setting"] for each in answers["answers"])


def test_advise_replay_and_sweep_agree_on_each_machine(answers):
    for one in answers["answers"]:
        row, result, swept = one["advised"], one["replayed"], one["swept"]
        judgement, verdict = result["judgement"], result["verdict"]
        assert row["answer"] == verdict["answer"] == swept["answer"]
        for key in ("gain", "low", "high", "measured_gain", "dirty_grown", "more_ns", "means"):
            assert row[key] == judgement[key], key
        assert row["load_adapts"] == judgement["load_adapts"]
        assert row["gain"] == swept["gain"]
        assert row["low"] == swept["forecast.low"]
        assert row["high"] == swept["forecast.high"]
        assert row["forecast"] == swept["forecast"]
        forecast = judgement["forecast"]
        assert row["forecast"] == (forecast["gain"] if forecast else judgement["gain"])
        assert row["judged"] == judgement["pairs"]["judged"]
        whole = judgement["pairs"]["whole"]
        assert row["whole"] == whole
        adapts = judgement["load_adapts"]
        assert row["whole_gain"] == whole["took_gain" if adapts else "latency_gain"]
        assert row["whole_gain"] == swept["gain.whole"]
        phases = result["phases"]
        reads, writes = phases["whole"]["read"], phases["whole"]["write"]
        alone = phases["none_whole"]["read"]
        assert row["hit"] == reads["hit"] == swept["hit.whole"]
        cached = whole["cached"]
        assert (reads["mean_ns"], reads["p"]["99"]) == (
            cached["read"]["mean_ns"],
            cached["read"]["p99_ns"],
        )
        assert writes["mean_ns"] == cached["write"]["mean_ns"]
        assert alone["mean_ns"] == whole["none"]["read"]["mean_ns"]
        # latencies of a queue that grows depend on the length of the trace: sweep has none
        for phase, name, latency_ns in (
            ("whole", "mean.reads.whole", reads["mean_ns"]),
            ("whole", "p99.reads.whole", reads["p"]["99"]),
            ("whole", "mean.writes.whole", writes["mean_ns"]),
            ("none_whole", "alone.mean.reads.whole", alone["mean_ns"]),
        ):
            assert swept[name] == (None if phases[phase]["saturated"] else latency_ns), name
        needed = {each["expr"]: each["value"] for each in result["require"]}
        assert needed["mean.whole<1ns"] == swept["mean.reads.whole"]
        assert needed["hit.whole>1%"] == swept["hit.whole"]
        assert row["steady"] == (result["warm_up"]["state"] in ("steady", "flat"))
        assert row["ssd_busy"] == result["phases"]["whole"]["ssd_utilisation"]


def test_costs_wear_and_dirty_data_agree(answers):
    for one in answers["answers"]:
        row, result, swept = one["advised"], one["replayed"], one["swept"]
        cost, bought, worn = result["cost"], row["bought"], result["wear"]
        assert cost["ssds_cost"] == bought["cost"]
        assert cost["disks_cost"] + cost["ssds_cost"] == bought["total_cost"] == swept["cost"]
        assert cost["ssds"].startswith(f"{bought['drives']} x ")
        assert (", mirrored" in one["screen"].replace("\n", " ")) == bought["mirrored"]
        assert worn["years"] == row["years"] == swept["years"]
        assert worn["drive_writes_per_day"] == row["drive_writes_per_day"] == swept["dwpd"]
        assert row["dirty"] == result["dirty"]
        assert row["metadata_ram"] == result["metadata_ram"]


def test_the_answer_of_advise_is_that_of_its_machine(answers):
    advice, best = answers["advice"], answers["answers"][0]
    assert advice["recommended"]["options"] == best["advised"]["options"]
    assert advice["verdict"]["headline"] == best["replayed"]["verdict"]["headline"]
    if advice["answer"] == "yes":
        assert best["replayed"]["verdict"]["answer"] == "yes"
    hybrid = next(each for each in advice["compared"] if each["name"] == "hybrid")
    assert hybrid["cost"] == advice["recommended"]["bought"]["total_cost"]
    if hybrid["mean_ns"] is not None:  # not of a growing queue
        assert hybrid["mean_ns"] == advice["recommended"]["judged"]["cached"]["read"]["mean_ns"]
    assert advice["knee_bytes"] == answers["knee"]


def test_size_and_replay_agree(answers):
    assert answers["tried"]
    for each in answers["tried"]:
        tried, result = each["tried"], each["replayed"]
        whole = result["phases"]["whole"]  # a queue that grows has no mean
        assert tried["whole_ns"] == (None if whole["saturated"] else whole["read"]["mean_ns"])
        worn = result["wear"]
        assert tried["drive_writes_per_day"] == worn["drive_writes_per_day"]
        for ours, theirs in zip(tried["own"], result["require"], strict=True):
            assert (ours["value"], ours["ok"]) == (theirs["value"], theirs["ok"])
    sizes = {(each["name"], each["size_bytes"]) for each in answers["sizing"]["tried"]}
    assert len(sizes) == len(answers["sizing"]["tried"])
