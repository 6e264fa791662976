"""Each figure that can be required of a machine, against the phase it is read from."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybridsim.answers.requirements import (
    UNITS,
    Checked,
    Seen,
    check_answerable,
    has_direction,
    parse,
    parse_measure,
)
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.histogram import Distribution

MS = 10**6


def phase(reads=(10, 20, 60), writes=(1, 2, 6), **more):
    """A phase with these latencies in milliseconds."""
    figures = SimpleNamespace(
        reads=Distribution.of(np.array(reads) * MS),
        writes=Distribution.of(np.array(writes) * MS),
        hit_ratio=0.75,
    )
    result = {"figures": figures, "utilisation": 0.4, "iops": 123.0, "saturated": False}
    return SimpleNamespace(**result | more)


def seen(**phases):
    named = {"warm": phase(), "cold": phase(reads=[30, 50]), "whole": phase(writes=[7, 9])}
    return Seen(named | phases, 5 * MS, "", 0.25, 8.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mean", 30 * MS),
        ("mean.writes", 3 * MS),
        ("mean.cold", 40 * MS),
        ("mean.writes.whole", 8 * MS),
        ("mean.whole.writes", 8 * MS),
        ("max", 60 * MS),
        ("max.writes", 6 * MS),
        ("p50.writes.cold", 2 * MS),
        ("hit", 0.75),
        ("busy", 0.4),
        ("iops", 123.0),
        ("dwpd", 0.25),
        ("years", 8.0),
        ("warmup", 5 * MS),
    ],
)
def test_a_measure_is_read_from_its_phase(text, value):
    measure = parse_measure(text)
    bins = 1 / 128 if text.startswith("p") else 0  # a percentile is that of a bin
    assert measure.value(seen())[0] == pytest.approx(value, rel=bins, abs=0)


@pytest.mark.parametrize(
    ("text", "is_of", "is_time", "is_share"),
    [
        ("mean", "reads", True, False),
        ("p99.writes", "writes", True, False),
        ("max.writes", "writes", True, False),
        ("hit", "reads", False, True),
        ("warmup", "reads", True, False),
        ("busy", "requests", False, True),
        ("iops", "requests", False, False),
        ("dwpd", "requests", False, False),
    ],
)
def test_what_a_measure_is_of(text, is_of, is_time, is_share):
    measure = parse_measure(text)
    assert (measure.is_of, measure.is_time, measure.is_share) == (is_of, is_time, is_share)


def test_only_latencies_have_a_direction():
    assert {name for name in UNITS if has_direction(name)} == {"mean", "max"}
    assert has_direction("p99")


@pytest.mark.parametrize(
    ("text", "value", "worded"),
    [
        ("iops", 1234.0, "1.23e+03"),
        ("dwpd", 0.123456, "0.123"),
        ("hit", 0.5, "50%"),
        ("years", float("inf"), "endless"),
        ("warmup", 0, "at once"),
        ("mean", 5 * MS, "5.00 ms"),
    ],
)
def test_a_value_has_its_unit(text, value, worded):
    assert parse_measure(text).worded(value) == worded


@pytest.mark.parametrize("text", ["mean", "max", "p99"])
def test_an_endless_queue_has_no_latency_but_work(text):
    endless = seen(warm=phase(saturated=True))
    value, why = parse_measure(text).value(endless)
    assert value is None
    assert "endless queue" in why
    assert parse_measure("iops").value(endless)[0] == 123.0


@pytest.mark.parametrize("text", ["mean.writes", "max.writes", "p50.writes"])
def test_what_never_happened_has_no_latency(text):
    checked = parse(f"{text}<1s").check(seen(warm=phase(writes=[])))
    assert (checked.value, checked.met) == (None, False)
    assert "no writes" in checked.words


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("mean<30ms", False), ("mean<=30ms", True), ("mean>30ms", False), ("mean>=30ms", True),
        ("mean<31ms", True), ("mean>29ms", True), ("mean>=31ms", False), ("mean<=29ms", False),
        ("years>=8", True), ("years>8", False), ("hit>=75%", True), ("hit<75%", False),
    ],
)  # fmt: skip
def test_a_bound_is_compared_as_written(text, met):
    assert parse(text).check(seen()).met is met
    assert parse(text).wants_less == ("<" in text)


def replayed(steady, needed_ns, wear):
    warm_up = SimpleNamespace(steady=steady, warm_ns=7, why="still rising", needed_ns=needed_ns)
    return SimpleNamespace(phases={"warm": phase()}, warm_up=warm_up, wear=wear)


def test_disks_alone_have_phases_of_their_own():
    """Nothing warms up and no SSD wears out."""
    phases = {name: phase() for name in ("warm", "cold", "whole")}
    alone = {"none": phase([1]), "none_cold": phase([2]), "none_whole": phase([3])}
    result = Seen.alone(SimpleNamespace(phases=phases | alone))
    for number, name in enumerate(("warm", "cold", "whole"), 1):
        assert parse_measure(f"mean.{name}").value(result)[0] == number * MS
    assert result[1:] == (0, "", 0.0, float("inf"))


def worn(bytes_written, years, drive_writes=0.5):
    return SimpleNamespace(
        bytes_written=bytes_written, years=years, drive_writes_per_day=drive_writes
    )


def test_a_machine_that_is_not_steady_has_no_warm_up_time():
    assert Seen.cached(replayed(True, None, None))[1:] == (7, "still rising", None, None)
    unsteady = Seen.cached(replayed(False, 3600 * 10**9, None))
    assert unsteady.warm_ns is None
    assert unsteady.why_not.startswith("still rising; a capture of ")
    assert "not steady yet: still rising" in parse("warmup<1h").check(unsteady).words


@pytest.mark.parametrize(
    ("wear", "years"),
    [
        (worn(100, 3.0), 3.0),
        (worn(100, None), None),  # its rating is unknown
        (worn(0, None), float("inf")),  # nothing wears it out
        (worn(1, None), None),
    ],
)
def test_an_ssd_that_is_never_written_lasts_for_ever(wear, years):
    result = Seen.cached(replayed(True, None, wear))
    assert (result.dwpd, result.years) == (0.5, years)


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("mean<5ms", 5_001_000, "a little above 5.00 ms"),
        ("mean<5ms", 6_000_000, "6.00 ms"),
        ("mean<=5ms", 5_001_000, "a little above 5.00 ms"),
        ("mean>5ms", 4_999_900, "a little below 5.00 ms"),
        ("mean>5ms", 5_000_000, "5.00 ms"),
    ],
)
def test_a_value_that_misses_its_bound_by_less_than_is_printed(text, value, words):
    required = parse(text)
    assert Checked(required, value, False, "").words == words
    assert "little" not in Checked(required, value, True, "").words
    document = Checked(required, value, False, "").to_dict()
    assert document == {
        "expr": text, "value": value, "words": words, "ok": False,
        "interval": None, "ranged": words, "sure": False,
    }  # fmt: skip


@pytest.mark.parametrize("bound", ["hit>0%", "hit<100%", "dwpd<0"])
def test_the_ends_of_a_range_are_in_it(bound):
    parse(bound)


def test_a_percentile_goes_to_a_hundred():
    assert parse("p100<1s").measure == "p100"
    with pytest.raises(UsageError, match="p101 is not a percentile: the highest is p100"):
        parse("p101<1s")


@pytest.mark.parametrize(
    ("reads", "writes", "refused"), [(0, 1, "hit>1%"), (1, 0, "max.writes<1s")]
)
def test_a_trace_answers_what_it_has_requests_of(reads, writes, refused):
    check_answerable([parse("iops>1")], reads, writes)
    check_answerable([parse(refused)], 1, 1)
    with pytest.raises(UsageError):
        check_answerable([parse("iops>1"), parse(refused)], reads, writes)
