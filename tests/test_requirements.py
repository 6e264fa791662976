"""Requirements of a machine: their syntax, and when they are met."""

import json

import pytest
from fakes import SCENARIO, Load, result

from hybridsim.answers.requirements import Checked, Seen, check_answerable, parse, parse_all
from hybridsim.foundation.errors import UsageError
from hybridsim.show.terminal import render

SHORT = Load(seconds=300, iops=200, hit_ratio=lambda share: 0.93 * (1 - 2.718 ** (-share * 20)))
SCENARIO = {**SCENARIO, "capacity_bytes": 10**12}


@pytest.fixture(scope="module")
def answer():
    return result(SHORT, scenario=SCENARIO)


def test_a_requirement_is_a_measure_a_comparison_and_a_value_with_its_unit():
    requirement = parse(" p99.9.writes.cold <= 8.5ms ")
    assert (requirement.measure, requirement.direction, requirement.phase) == (
        "p99.9",
        "writes",
        "cold",
    )
    assert (requirement.compared, requirement.bound) == ("<=", 8_500_000)


@pytest.mark.parametrize(
    ("text", "bound"),
    [("hit>80%", 0.8), ("dwpd<1", 1), ("warmup<1h", 3600 * 10**9), ("iops.whole>=250", 250)],
)
def test_each_measure_has_its_own_unit(text, bound):
    assert parse(text).bound == bound


def test_latencies_default_to_reads_of_the_warm_phase():
    assert (parse("p99<8ms").direction, parse("p99<8ms").phase) == ("reads", "warm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99<8", "needs a unit"),
        ("p99<8ks", "unknown time unit"),
        ("hit>80", "not a percentage"),
        ("hit>101%", "not a share"),
        ("dwpd<1ms", "not a number"),
        ("dwpd<nan", "out of range"),
        ("p99.wram<8ms", "did you mean 'warm'?"),
        ("hit.writes>80%", "hit has no 'writes'"),
        ("dwpd.cold<1", "write dwpd alone"),
        ("p100.5<1s", "the highest is p100"),
        ("throughput>1", "unknown measure 'throughput'"),
        ("p9o<8ms", "unknown measure 'p9o': did you mean 'p99'"),
        ("p99<8mz", "unknown time unit 'mz': choose from ns, us, ms"),
        ("p99=8ms", "is not a requirement"),
        ("", "is not a requirement"),
    ],
)
def test_invalid_requirements_are_refused_with_the_reason(text, message):
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mean<1s", lambda r: r.phases["warm"].figures.reads.mean_ns),
        ("p99.cold<1s", lambda r: r.phases["cold"].figures.reads.percentile(99)),
        ("max.writes.whole<1s", lambda r: r.phases["whole"].figures.writes.max_ns),
        ("hit<100%", lambda r: r.phases["warm"].figures.hit_ratio),
        ("iops<1000", lambda r: r.phases["warm"].iops),
        ("busy<100%", lambda r: r.phases["warm"].utilisation),
        ("dwpd<1000", lambda r: r.wear.drive_writes_per_day),
        ("years>0", lambda r: r.wear.years),
        ("warmup<1h", lambda r: r.warm_up.reached_ns[90]),
    ],
)
def test_the_checked_value_is_that_of_the_report(answer, text, value):
    checked = parse(text).check(Seen.cached(answer))
    assert checked.value == value(answer)
    assert checked.met


def test_the_bound_itself_is_met_only_with_or_equal(answer):
    hit = answer.phases["warm"].figures.hit_ratio
    for compared, met in (("<", False), ("<=", True), (">", False), (">=", True)):
        required = parse(f"hit{compared}0%")
        required = type(required)(**{**vars(required), "bound": hit})
        assert required.check(Seen.cached(answer)).met is met


def test_a_value_that_rounds_to_the_bound_is_shown_as_above_or_below():
    assert Checked(parse("mean<5ms"), 5_001_000, False, "").words == "a little above 5.00 ms"
    assert Checked(parse("hit>80%"), 0.7999, False, "").words == "a little below 80%"
    assert Checked(parse("mean<5ms"), 5_000_000, False, "").words == "5.00 ms"


def test_disks_alone_have_no_hits_and_no_wear(answer):
    texts = ("hit>0%", "dwpd<=0", "years>99", "warmup<=0s", "mean<1s")
    hit, *others = [parse(text).check(Seen.alone(answer)) for text in texts]
    assert hit.value == 0
    assert not hit.met
    assert all(each.met for each in others)
    assert others[-1].value == answer.phases["none"].figures.reads.mean_ns


@pytest.mark.parametrize(
    ("load", "text", "why"),
    [
        (SHORT._replace(hit_ratio=lambda share: share), "warmup<9h", "not steady yet"),
        (
            SHORT._replace(backlog_ns_per_s=50_000_000, cached_backlog_ns_per_s=50_000_000),
            "p99<9h",
            "endless queue",
        ),
        (SHORT._replace(writes=1.0), "p99<9h", "no reads"),
    ],
)
def test_a_requirement_with_an_unknown_value_is_not_met(load, text, why):
    checked = parse(text).check(Seen.cached(result(load, scenario=SCENARIO)))
    assert checked.value is None
    assert not checked.met
    assert why in checked.words


def test_requirements_of_reads_need_a_trace_with_reads():
    check_answerable(parse_all(["p99.writes<8ms", "dwpd<1", "iops>1"]), reads=0, writes=1)
    for text in ("p99<8ms", "hit>1%", "warmup<1h"):
        with pytest.raises(UsageError, match="no reads"):
            check_answerable([parse(text)], reads=0, writes=1)


def test_report_and_json_show_which_requirements_are_met(answer):
    held = answer.with_requirements(parse_all(["mean<1s", "hit>99%"]))
    report = render(held, details=True)
    assert "✓ mean<1s" in report
    assert "✗ hit>99%" in report
    assert "✗ required: hit>99%" in " ".join(render(held).split())
    assert render(held, details=True, ascii_only=True).isascii()
    rows = json.loads(held.to_json())["require"]
    assert [(each["expr"], each["ok"]) for each in rows] == [("mean<1s", True), ("hit>99%", False)]


def test_a_requirement_that_part_of_the_interval_does_not_meet_is_perhaps_met(answer):
    """As `size` prints it of the same machine."""
    mean = answer.with_requirements([parse("mean<1s")]).required[0]
    assert mean.value < mean.interval.high
    between_ns = round((mean.value + mean.interval.high) / 2)
    held = answer.with_requirements([parse(f"mean<{between_ns}ns")])
    assert not held.required[0].is_sure
    words = " ".join(render(held).split())
    assert f"~ Perhaps met: mean<{between_ns}ns: {held.required[0].ranged}" in words
    assert "✓ Met" not in words
    assert f"~ mean<{between_ns}ns" in render(held, details=True)
