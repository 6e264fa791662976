"""Miss-ratio curves: exact ones against a cache of each size, sampled ones within their error."""

import json
from random import Random

import numpy as np
import pytest
from captures import TRACES
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsim import hits, miss_ratio_curve
from hybridsim.cli.mrc import knee, mrc
from hybridsim.engine.stack import Stack
from hybridsim.foundation.errors import TraceError, UsageError

CAPTURE = TRACES / "blktrace" / "loop_ext4_buffered_meta"


def skewed(count, distinct, seed=1):
    random = Random(seed)
    return np.array([int(random.paretovariate(0.6)) % distinct for _ in range(count)])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=300))
def test_the_stack_distance_is_the_number_of_pages_used_since(steps):
    """The time stamps are so few that the marks must be compacted often."""
    stack, order = Stack.new(64), []
    stack.state[0] = len(stack.page) - 9  # time stamps nearly exhausted
    for page in steps:
        expected = len(order) - order.index(page) if page in order else 0
        assert stack.depth(page) == expected
        order = [each for each in order if each != page] + [page]


def test_the_curve_of_lru_equals_caches_of_every_size():
    numbers = skewed(20_000, 30_000)  # more pages than the initial size of the tables
    curve = miss_ratio_curve(numbers)
    assert curve.distinct == len(np.unique(numbers)) == len(curve.pages)
    for counted in hits(numbers, [pages * 4096 for pages in (1, 7, 100, 3_000)]):
        assert curve.at(counted.pages) == pytest.approx(1 - counted.page_hit_ratio, abs=1e-12)
    assert curve.miss_ratio[-1] == pytest.approx(curve.first_uses)
    assert (np.diff(curve.miss_ratio) <= 0).all()


def test_the_curve_of_any_policy_equals_caches_of_its_sizes():
    numbers = skewed(5_000, 900)
    curve = miss_ratio_curve(numbers, "s3-fifo", sizes=[300, 30])
    alone = hits(numbers, [30 * 4096, 300 * 4096], "s3-fifo")
    assert curve.pages.tolist() == [30, 300]
    assert curve.miss_ratio.tolist() == [each.page_misses / 5_000 for each in alone]
    assert curve.error.tolist() == [0, 0]


@pytest.mark.parametrize("policy", ["lru", "s3-fifo"])
def test_no_policy_serves_first_uses(policy):
    curve = miss_ratio_curve(np.array([1, 2, 1, 3, 1, 2, 4, 1]), policy, sizes=[2])
    assert curve.first_uses == curve.to_dict()["first_uses"] == 0.5


def test_the_curve_includes_admission():
    numbers = skewed(5_000, 900)
    curve = miss_ratio_curve(numbers, sizes=[100], admission="touches", touches=3)
    (alone,) = hits(numbers, 100 * 4096, admission="touches", touches=3)
    assert curve.miss_ratio[0] == alone.page_misses / 5_000


@pytest.fixture(scope="module")
def long_trace():
    """Return uniform and hot pages and a scan; 120,000 accesses, 25,000 pages."""
    rng = np.random.default_rng(3)
    some, hot = rng.integers(0, 20_000, 60_000), rng.integers(20_000, 24_000, 55_000)
    mixed = np.concatenate([some, hot, np.arange(24_000, 29_000)])
    rng.shuffle(mixed)
    return mixed


@pytest.mark.parametrize("sample", ["20%", 0.2, 4_000, 1_000])
def test_a_sampled_curve_is_within_its_error(long_trace, sample):
    exact = miss_ratio_curve(long_trace)
    curve = miss_ratio_curve(long_trace, sample=sample)
    assert curve.sampled < 0.6 * curve.accesses == 0.6 * 120_000
    assert curve.distinct == pytest.approx(exact.distinct, rel=0.1)
    truth = np.array([exact.at(int(size)) for size in curve.pages])
    off = abs(curve.miss_ratio - truth)[curve.pages > 1_000]
    error = curve.error[curve.pages > 1_000] + 0.005
    assert np.mean(off <= error) > 0.8
    assert (off <= 2 * error).all()
    assert error.max() < (0.11 if sample == 1_000 else 0.1)


def test_a_sample_of_fixed_size_stays_small(long_trace):
    curve = miss_ratio_curve(long_trace, sample=1_000)
    assert curve.rate < 0.06
    few = miss_ratio_curve(np.arange(500), sample=1_000)
    assert (few.rate, few.sampled) == (1, 500)


def test_a_sampled_curve_of_any_policy_is_within_its_error(long_trace):
    sizes = [2_000, 8_000]
    exact = miss_ratio_curve(long_trace, "sieve", sizes)
    curve = miss_ratio_curve(long_trace, "sieve", sizes, sample="20%")
    assert curve.miss_ratio == pytest.approx(exact.miss_ratio, abs=0.03)
    assert (curve.error > 0).all()
    assert (curve.error < 0.1).all()


@pytest.mark.parametrize("policy", ["lru", "sieve"])
def test_the_error_of_a_sample_covers_19_of_20_samples(policy):
    """Other page numbers are another sample; pages as even as these are an easy case."""
    rng = np.random.default_rng(5)
    rank = np.minimum(rng.zipf(1.15, 20_000), 6_000) + rng.integers(0, 3, 20_000) * 7_000
    sizes = [200, 500, 1_500, 4_000]
    exact = miss_ratio_curve(rank, policy, sizes).miss_ratio
    inside = []
    for salt in range(25):
        curve = miss_ratio_curve(rank + salt * (1 << 30), policy, sizes, sample="10%")
        inside.append(abs(curve.miss_ratio - exact) <= curve.error)
    assert np.mean(inside) >= 0.93
    assert curve.error.max() < 0.2  # an interval of all values would hold too


def test_groups_do_not_agree_because_nearly_all_accesses_miss():
    """Pages of a few uses each: the error is at least the spread of the number of accesses."""
    rng = np.random.default_rng(11)
    pages = rng.integers(0, 100_000, 60_000)
    counts, rate = np.unique(pages, return_counts=True)[1], 0.05
    spread = np.sqrt((1 - rate) / rate * (counts**2).sum()) / len(pages)
    for policy in ("lru", "sieve"):
        for salt in range(8):
            curve = miss_ratio_curve(pages + salt * (1 << 30), policy, [400, 800], sample=rate)
            assert curve.miss_ratio.max() <= 1
            assert (curve.error > spread).all()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"policy": "learned"}, "whole requests and at neighbouring pages"),
        ({"admission": "request-size"}, "whole requests and at neighbouring pages"),
        ({"policy": "lfu"}, "on probation"),
    ],
)
def test_policies_that_depend_on_the_scale_are_not_sampled(options, why):
    with pytest.raises(UsageError, match=why):
        miss_ratio_curve(np.arange(10_000), sample="25%", **options)


@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_a_sample_that_leaves_a_few_pages_of_a_cache_is_refused(policy):
    with pytest.raises(UsageError, match="sizes from 80 pages on"):
        miss_ratio_curve(np.arange(10_000), policy, [79], sample="10%")
    with pytest.raises(UsageError, match="take a larger sample"):
        miss_ratio_curve(np.arange(50), policy, sample="10%")
    assert miss_ratio_curve(np.arange(10_000), policy, sample="1%").pages[0] >= 800


def test_a_sample_of_fixed_size_that_holds_all_pages_is_exact():
    exact = miss_ratio_curve(skewed(5_000, 400))
    curve = miss_ratio_curve(skewed(5_000, 400), sample=1_000)
    assert (curve.error == 0).all()
    truth = np.array([exact.at(int(size)) for size in curve.pages])
    assert curve.miss_ratio == pytest.approx(truth, abs=0.003)  # depths are kept in bins of 0.3 %


def test_the_knee_is_the_size_beyond_which_the_gain_is_small():
    numbers = np.concatenate([np.tile(np.arange(100), 50), np.arange(1_000, 2_000)])
    curve = miss_ratio_curve(numbers)
    assert curve.pages[curve.knee] == 100
    for points in (None, 50, 7):  # the same for any omitted sizes
        assert curve.to_dict(points)["knee_pages"] == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": "0%"}, "above 0"),
        ({"sample": 3}, "neither a share nor"),
        ({"sample": "some"}, "could not convert"),
        ({"sample": 1_000, "policy": "arc"}, "only LRU supports a number of sampled pages"),
        ({"sizes": [0]}, "at least 1"),
        ({"policy": "ark"}, "did you mean 'arc'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        miss_ratio_curve(np.arange(100), **options)


def test_an_empty_trace_gives_no_curve():
    with pytest.raises(TraceError, match="no reads or writes"):
        miss_ratio_curve(np.arange(0))


def test_the_command_draws_a_curve_or_prints_it():
    drawn = CliRunner().invoke(mrc, [str(CAPTURE)])
    assert drawn.exit_code == 0, drawn.output
    assert "knee:" in drawn.output
    document = json.loads(CliRunner().invoke(mrc, [str(CAPTURE), "--json"]).output)
    curve = miss_ratio_curve_of_capture()
    assert document["distinct"] == curve.distinct
    assert document["curve"][-1]["miss_ratio"] == pytest.approx(curve.miss_ratio[-1])
    lines = CliRunner().invoke(mrc, [str(CAPTURE), "--policy", "fifo", "--csv"]).output.splitlines()
    assert lines[0] == "pages,bytes,miss_ratio,error"
    assert len(lines) > 10


def miss_ratio_curve_of_capture():
    from hybridsim import Trace

    return miss_ratio_curve(Trace.read(CAPTURE))


def test_a_thinned_curve_has_the_miss_ratio_at_the_knee():
    """The curve falls at one size, which no spread of sizes meets by chance."""
    curve = miss_ratio_curve(np.concatenate([np.tile(np.arange(1_003), 30), np.arange(10**5)]))
    for points in (64, 7):
        thin = curve.to_dict(points)
        assert len(thin["curve"]) <= points
        (at_knee,) = [each["miss_ratio"] for each in thin["curve"] if each["pages"] == 1_003]
        assert at_knee == curve.at(1_003) == curve.miss_ratio[curve.knee]


def test_a_flat_curve_has_no_knee():
    assert knee(miss_ratio_curve(np.arange(100))) == "no knee: 100% misses at every size"


def test_a_curve_that_hardly_falls_has_no_knee():
    """One page of 2,000 is used twice: no size is worth a word."""
    curve = miss_ratio_curve(np.concatenate([np.arange(2_000), [7]]))
    words = "the misses fall only from 100% to >99.9% at the largest size"
    assert knee(curve) == f"no knee: {words}"
    from hybridsim.show.html.sections.shared import sizes

    shown = sizes({"miss_ratio_curve": curve.to_dict(64), "answer": {"size_bytes": 4096}})
    assert shown is not None
    assert words in str(shown)
    assert "knee" not in [mark.label for mark in shown.blocks[0].marks]


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_screen(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    options = ["gen:zipf,span=64MiB,requests=2k", "--sample", "20%"]
    lines = CliRunner().invoke(mrc, options, catch_exceptions=False).output.splitlines()
    assert max(map(len, lines)) <= width
    assert any("about " in line for line in lines)
