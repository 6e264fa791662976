"""Caches without devices: page by page, against plain policies and known results."""

import json
import os
from pathlib import Path
from random import Random
from typing import NamedTuple

import numba
import numpy as np
import pytest
from captures import TRACES
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.extending import typeof_impl

from hybridsim import hits
from hybridsim.caches.policies import KNOWS_THE_FUTURE, REPLACEMENT
from hybridsim.caches.policies.belady import Belady
from hybridsim.caches.policies.lru import LRU
from hybridsim.cli.hits import hits as command
from hybridsim.foundation.errors import UsageError
from hybridsim.jit import method, state_machine
from hybridsim.reference import CacheParameters, Machine
from hybridsim.requests.pages import accesses
from hybridsim.requests.rows import no_requests
from hybridsim.traces.trace import Trace

CAPTURE = TRACES / "blktrace" / "loop_ext4_buffered_meta"
SHARED = Path(os.environ.get("HYBRIDSIM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def plain_hits(numbers, pages, replacement, admission=("always",)):
    """The hits of a cache made of the reference's policies."""
    said = CacheParameters(4096, pages, 0, 0, 1, admission, replacement)
    admits = Machine.make_admission(None, said)
    replaces = Machine.make_replacement(None, said, admits)
    held, found = set(), 0
    for now, page in enumerate(numbers):
        admits.request(page * 4096, 4096, False)
        wanted = admits.consider(now, page, False, len(held) == pages)
        if page in held:
            replaces.touch(page)
            found += 1
        elif wanted:
            replaces.missed(page)
            if len(held) == pages:
                victim = replaces.evict()
                held.remove(victim)
                admits.evicted(victim)
            replaces.admit(page)
            held.add(page)
    return found


def skewed(count, distinct, seed=1):
    random = Random(seed)
    return np.array([int(random.paretovariate(0.6)) % distinct for _ in range(count)])


@pytest.mark.parametrize("replacement", REPLACEMENT)
def test_a_cache_hits_as_its_policies_say(replacement):
    """Compiled, over more pages than there is room for at first."""
    numbers = skewed(4_000, 900) * 977
    (found,) = hits(numbers, 150 * 4096, replacement)
    assert found.page_hits == plain_hits(numbers.tolist(), 150, replacement)


@pytest.mark.parametrize("admission", ["larc", "reject-first", "tinylfu"])
def test_admission_and_replacement_combine(admission):
    numbers = skewed(4_000, 900)
    (found,) = hits(numbers, 60 * 4096, "lru", admission)
    assert found.page_hits == plain_hits(numbers.tolist(), 60, "lru", (admission,))
    assert found.admitted - found.evicted == 60


def test_the_learned_policy_is_both_in_one():
    numbers = skewed(6_000, 900)
    (found,) = hits(numbers, 60 * 4096, "learned", "learned", write_price_per_thousand=20)
    assert found.page_hits == plain_hits(numbers.tolist(), 60, "learned", ("learned", 20))
    assert found.evicted > 0


def fewest_misses(numbers, pages):
    """By trying all ways to evict."""
    states = {frozenset(): 0}
    for page in numbers:
        after: dict[frozenset, int] = {}
        for held, misses in states.items():
            ways = [held]
            if page not in held:
                misses += 1
                without = [held] if len(held) < pages else [held - {each} for each in held]
                ways = [way | {page} for way in without]
            for way in ways:
                after[way] = min(after.get(way, misses), misses)
        states = after
    return min(states.values())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=25), st.integers(1, 4))
def test_belady_has_the_fewest_misses(numbers, pages):
    (found,) = hits(np.array(numbers), pages * 4096, "belady")
    assert found.page_misses == fewest_misses(numbers, pages)


def test_belady_takes_out_what_is_removed():
    heap = Belady.new(4, 2)
    for page, when in ((0, 7), (1, 9), (2, 8)):
        heap.upcoming[page] = when
        heap.admit(page)
    heap.remove(1)
    assert [heap.evict() for _ in range(3)] == [2, 0, -1]


def test_no_policy_beats_the_bound():
    numbers = skewed(5_000, 800)
    found = hits(numbers, "20%", [*REPLACEMENT, *KNOWS_THE_FUTURE])
    assert max(found, key=lambda each: each.page_hits).replacement == "belady"


def test_lhd_knows_pages_that_come_again_after_many_cache_sizes():
    """Zipf, a cache of a hundredth of the pages: those that just fit come each tenth cache size."""
    random = np.random.default_rng(1)
    shares = np.cumsum(1 / np.arange(1, 200_001))
    numbers = np.searchsorted(shares, random.random(1_000_000) * shares[-1])
    lru, lhd = hits([numbers], 2000 * 4096, ["lru", "lhd"])
    assert lhd.page_misses < 0.9 * lru.page_misses


class Requests:
    """A trace of reads and writes."""

    def __init__(self, *rows):
        self.rows = rows

    def chunks(self):
        requests = no_requests(len(self.rows))
        for i, (op, offset, length) in enumerate(self.rows):
            requests.op[i], requests.offset_bytes[i], requests.length_bytes[i] = op, offset, length
        yield requests


READ, WRITE, DISCARD, FLUSH = range(4)


def test_pages_and_requests_are_counted_apart():
    trace = Requests(
        (READ, 0, 8192),  # two pages, both missed
        (WRITE, 4096, 8192),  # one of two held
        (READ, 0, 12_288),  # all three
        (DISCARD, 0, 1 << 20),
        (FLUSH, 0, 0),
        (READ, 4095, 2),  # a byte of each of two
    )
    (found,) = hits(trace, "1MiB")
    assert (found.requests, found.request_hits) == (4, 2)
    assert (found.page_accesses, found.page_hits, found.page_misses) == (9, 6, 3)
    assert (found.read_page_accesses, found.read_page_hits) == (7, 5)
    assert (found.read_requests, found.read_request_hits) == (3, 2)
    assert (found.admitted, found.evicted) == (3, 0)


def test_a_share_is_of_the_distinct_pages():
    found = hits(np.arange(1000), ["10%", "4KiB", "70 pages", "1page"])
    assert [each.pages for each in found] == [100, 1, 70, 1]


@pytest.mark.parametrize(("skip", "first"), [(1, 1), (700, 700), ("25%", 250)])
def test_the_first_requests_can_fill_the_cache_and_not_be_counted(skip, first):
    rows = [(page % 2, page * 4096, 8192) for page in skewed(1_000, 300).tolist()]
    whole, beginning, found = (
        hits(Requests(*some), "30 pages", skip=left_out)[0]
        for some, left_out in ((rows, 0), (rows[:first], 0), (rows, skip))
    )
    assert found.skipped_requests == first
    for count in ("requests", "request_hits", "page_accesses", "page_hits", "read_page_hits"):
        assert getattr(found, count) == getattr(whole, count) - getattr(beginning, count)
    assert found.admitted == whole.admitted - beginning.admitted


@pytest.mark.parametrize("replacement", ["lru", "belady"])
def test_a_cache_that_was_filled_before_only_hits(replacement):
    parts = [np.arange(3), np.arange(3, 5), np.tile(np.arange(5), 2)]
    (found,) = hits(parts, "5 pages", replacement, skip=5)
    assert (found.page_accesses, found.page_hits, found.admitted) == (10, 10, 0)


def test_long_runs_are_left_to_the_disks():
    run = [(READ, i * 4096, 4096) for i in range(64)]
    (found,) = hits(Requests(*run, *run), "1MiB", sequential_cutoff="64KiB")
    assert found.admitted == 15  # what came before the run was long
    assert found.page_hits == 15


def test_large_requests_can_be_refused():
    trace = Requests((READ, 0, 65_536), (READ, 1 << 20, 4096))
    (found,) = hits(trace, "1MiB", admission="request-size", request_max_bytes=4096)
    assert found.admitted == 1


def test_how_a_trace_is_cut_changes_nothing():
    numbers = skewed(3_000, 400)
    whole = hits(numbers, "10%", "arc")
    assert hits([numbers[:7], numbers[7:2000], numbers[2000:]], "10%", "arc") == whole


@pytest.mark.parametrize("page_numbers", [True, False])
def test_numba_need_not_search_for_what_a_part_of_a_trace_is(page_numbers, monkeypatch):
    """Caches go on side by side: a search fails while another's loop is compiled."""

    def another_thread_compiles(*_):
        raise RuntimeError("dictionary changed size during iteration")

    trace = np.arange(9) if page_numbers else Requests((READ, 0, 4096))
    (part,) = accesses(trace, 4096)
    monkeypatch.setattr("functools._find_impl", another_thread_compiles)
    typeof_impl._clear_cache()
    assert type(part).__name__ in str(numba.typeof(part))


class Newest:
    """A policy as one begins to write it: the page that came last leaves."""

    def __init__(self):
        self.pages = []

    @classmethod
    def new(cls, ids, pages):
        return cls()

    def grown(self, ids):
        return self

    def missed(self, page):
        pass

    def admit(self, page):
        self.pages.append(int(page))

    def touch(self, page):
        pass

    def remove(self, page):
        self.pages.remove(int(page))

    def evict(self):
        return self.pages.pop()


@state_machine
class CompiledMru(NamedTuple):
    """A policy of one's own, compiled: LRU from the other end."""

    list: LRU

    @classmethod
    def new(cls, ids, pages):
        return cls(LRU.new(ids))

    def grown(self, ids):
        return CompiledMru(self.list.grown(ids))

    @method
    def missed(self, page):
        pass

    @method
    def admit(self, page):
        self.list.admit(page)

    @method
    def touch(self, page):
        self.list.touch(page)

    @method
    def remove(self, page):
        self.list.remove(page)

    @method
    def evict(self):
        queues = self.list.queues
        page = queues.log[queues.tail[0] - 1]
        queues.drop(page)
        queues.tail[0] -= 1
        return page


def test_a_policy_of_ones_own():
    loop = np.tile(np.arange(20), 10)
    plain, compiled, lru = hits(loop, 10 * 4096, [Newest, CompiledMru, "lru"])
    assert (plain.replacement, compiled.replacement) == ("Newest", "CompiledMru")
    assert lru.page_hits == 0
    assert plain.page_hits > 80
    assert compiled.page_hits > 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replacement": "lur"}, "did you mean 'lru'"),
        ({"admission": "sometimes"}, "no admission policy"),
        ({"cache_size": "1KiB"}, "holds no page of 4096 bytes: at least 4KiB"),
        ({"cache_size": "10%"}, "holds no page of 4096 bytes: one of 9 pages is 11.12%"),
        ({"cache_size": "ten"}, "not a size"),
        ({"cache_size": 0.1}, "'10%' of the pages"),
        ({"cache_size": 1000}, "a number alone is bytes; .* '1000 pages'"),
        ({"replacement": Belady.new(9, 2)}, "an object of Belady: say Belady"),
        ({"toches": 3}, "no policy has a parameter 'toches': did you mean 'touches'"),
        ({"skip": "some", "cache_size": "2 pages"}, "say a number of requests, or '20%'"),
        ({"skip": -1, "cache_size": "2 pages"}, "-1 requests cannot be left out"),
        ({"skip": 9, "cache_size": "2 pages"}, "no more requests"),
        ({"page": 0}, "at least one byte"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        hits(np.arange(9), **options)


@pytest.mark.parametrize("trace", ["sda.blktrace.0", [1, 2, 3]])
def test_what_is_no_trace_is_told_by_what_is_one(trace):
    with pytest.raises(UsageError, match=r"a trace is the result of Trace.read\(PATH\)"):
        hits(trace)


def test_parameters_go_to_a_class_of_ones_own():
    class Sized(Newest):
        @classmethod
        def new(cls, ids, pages, limit=0):
            assert limit == 7
            return cls()

    assert hits(np.arange(9), "3 pages", Sized, limit=7)[0].replacement == "Sized"


def test_a_page_is_one_that_a_machine_could_have():
    refused = CliRunner().invoke(command, [str(CAPTURE), "--page", "3000"])
    assert "must be a multiple of 512 bytes" in str(refused.exception)


def test_the_command_prints_a_table_or_json():
    said = [str(CAPTURE), "--cache-size", "5%,50%", "--replacement", "lru,sieve"]
    text = CliRunner().invoke(command, said)
    assert text.exit_code == 0, text.output
    assert len([line for line in text.output.splitlines() if line.startswith("always")]) == 4
    told = json.loads(CliRunner().invoke(command, [*said, "--json"]).output)
    for each in told["caches"]:
        assert each["page_hits"] + each["page_misses"] == each["page_accesses"]
        assert each["request_hits"] + each["request_misses"] == each["requests"]
    head, *lines = CliRunner().invoke(command, [*said, "--csv"]).output.splitlines()
    for each, line in zip(told["caches"], lines, strict=True):
        del each["learning"]
        assert head.split(",") == list(each)
        assert line.split(",") == ["" if value is None else str(value) for value in each.values()]
    both = CliRunner().invoke(command, [*said, "--json", "--csv"])
    assert (both.exit_code, "one of them" in both.output) == (2, True)


def test_the_command_can_leave_out_the_first_requests():
    text = CliRunner().invoke(command, [str(CAPTURE), "--skip", "50%"])
    assert text.exit_code == 0, text.output
    assert "which filled the caches and are not counted" in text.output


@pytest.mark.parametrize(
    ("replacement", "misses"),
    [
        # cache-policies/miss_ratios.csv: OLTP at 1,868 pages, of an independent simulator
        ("lru", 533_560),
        ("arc", 499_159),
        ("s3-fifo", 489_411),
        ("sieve", 545_815),
        ("belady", 367_867),
    ],
)
def test_a_public_trace_misses_as_an_independent_simulator_says(replacement, misses):
    path = SHARED / "traces" / "OLTP.lis.zst"
    if not path.exists():
        pytest.skip("the OLTP trace is not at hand: set HYBRIDSIM_DATA")
    (found,) = hits(oltp(path), 1868 * 512, replacement, page=512)
    assert (found.page_accesses, found.page_misses) == (914_145, misses)


KEPT = {}


def oltp(path):
    """The pages of the trace, read once."""
    if path not in KEPT:
        chunks = Trace.read(path).chunks()
        KEPT[path] = np.concatenate([chunk.offset_bytes // 512 for chunk in chunks])
    return KEPT[path]


def test_what_was_learned_is_told():
    """A hot spot read again and again between pages that never come back."""
    rng = np.random.default_rng(1)
    hot, cold = rng.integers(0, 100, 20_000), np.arange(1000, 21_000)
    numbers = np.stack([hot, cold], axis=1).ravel()
    found = hits(numbers, 150 * 4096, "learned", "learned")[0]
    known = found.learning
    assert sum(each.share for each in known.lessons) == pytest.approx(1)
    by_words = {each.accesses: each for each in known.lessons}
    once = by_words["read for the first time, in a sequential run"]
    often = by_words["read more often, sooner than pages stay"]
    assert once.is_wanted == 0
    assert often.is_wanted > 0.9
    assert once.is_touched_again < 0.1 < 0.8 < often.is_touched_again
    assert once.worth_reads < known.price_reads < often.worth_reads
    assert hits(numbers, 150 * 4096)[0].learning is None
