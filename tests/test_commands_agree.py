"""No two commands contradict one another: equal questions about application captures.

`advise`, `replay`, `size` and `sweep` answer for the same machine on the same requests: all figures
that they have in common are equal.  Captures are the demo's and, with HYBRIDSIM_DATA, those of
other applications; a short part of each, replayed interpreted, as compiling takes longer.
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
REQUESTS = 120
PROGRAM = """
import json, sys
from hybridsim import Scenario, Trace, advise, replay, size
from hybridsim.answers.requirements import parse_all
from hybridsim.answers.result import plain
from hybridsim.studies.sweep.compute import replayed
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.point import point
table = sys.argv[1]
trace = Trace.read(table)
require = ["mean.whole<1ns", "hit.whole>1%"]
advice = advise(trace, Scenario.default().with_options(cache="open-cas"), compare=["disks"])
answers = []
for row in advice.rows[:2]:
    site = row.candidate.sized(row.size_bytes).with_options(mode=advice.mode)
    result = replay(trace, site, require=parse_all(require))
    named = NamedTrace.here((table,))
    swept = replayed(point(named, named.digest(), site, {}, None))
    answers.append({"advised": row.to_dict(), "replayed": result.to_dict(), "swept": swept})
pick = advice.pick.candidate
sizing = size(trace, Scenario.default().with_options(
    cache=pick.kind, cache_mode=pick.mode, mode=advice.mode), require)
one = sizing.tried[-1]
site = Scenario.default().with_options(
    cache=one.kind, cache_mode=one.mode, cache_size=str(one.size_bytes), mode=advice.mode)
same = replay(trace, site, require=parse_all(require))
print(json.dumps(plain({
    "answers": answers, "advice": advice.to_dict(), "tried": one.to_dict(),
    "sized": same.to_dict(),
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
        [sys.executable, "-c", PROGRAM, str(table)],
        check=False, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_advise_replay_and_sweep_agree_on_each_machine(answers):
    for one in answers["answers"]:
        row, result, swept = one["advised"], one["replayed"], one["swept"]
        judgement, verdict = result["judgement"], result["verdict"]
        assert row["answer"] == verdict["answer"] == swept["answer"]
        assert row["gain"] == judgement["gain"] == swept["gain"]
        assert row["low"] == judgement["low"] == swept["forecast.low"]
        assert row["high"] == judgement["high"] == swept["forecast.high"]
        assert row["forecast"] == swept["forecast"]
        forecast = judgement["forecast"]
        assert row["forecast"] == (forecast["gain"] if forecast else judgement["gain"])
        whole = judgement["pairs"]["whole"]
        assert row["whole"] == whole
        adapts = judgement["load_adapts"]
        assert row["whole_gain"] == whole["took_gain" if adapts else "latency_gain"]
        assert row["whole_gain"] == swept["gain.whole"]
        reads = result["phases"]["whole"]["read"]
        assert row["hit"] == reads["hit"] == swept["hit.whole"]
        assert reads["mean_ns"] == whole["cached"]["read"]["mean_ns"] == swept["mean.reads.whole"]
        alone = result["phases"]["none_whole"]["read"]["mean_ns"]
        assert alone == whole["none"]["read"]["mean_ns"] == swept["alone.mean.reads.whole"]
        needed = {each["expr"]: each["value"] for each in result["require"]}
        assert needed["mean.whole<1ns"] == swept["mean.reads.whole"]
        assert needed["hit.whole>1%"] == swept["hit.whole"]


def test_the_answer_of_advise_is_that_of_its_machine(answers):
    advice, best = answers["advice"], answers["answers"][0]
    assert advice["recommended"]["options"] == best["advised"]["options"]
    if advice["answer"] in ("yes", "no"):
        assert advice["answer"] == best["replayed"]["verdict"]["answer"]


def test_size_and_replay_agree(answers):
    tried, result = answers["tried"], answers["sized"]
    assert tried["whole_ns"] == result["phases"]["whole"]["read"]["mean_ns"]
    for ours, theirs in zip(tried["own"], result["require"], strict=True):
        assert (ours["value"], ours["ok"]) == (theirs["value"], theirs["ok"])
