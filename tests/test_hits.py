"""`hits`: caches without devices, against the reference's policies and published results."""

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
from hybridsim.caches.policies import OFFLINE, REPLACEMENT
from hybridsim.caches.policies.belady import Belady
from hybridsim.caches.policies.lru import LRU
from hybridsim.cli.hits import hits as command
from hybridsim.foundation.errors import UsageError
from hybridsim.jit import method, state_machine
from hybridsim.reference import CacheParameters, Machine
from hybridsim.requests.pages import accesses
from hybridsim.requests.rows import no_requests
from hybridsim.studies.hits import more_ram
from hybridsim.traces.trace import Trace

CAPTURE = TRACES / "blktrace" / "loop_ext4_buffered_meta"
SHARED = Path(os.environ.get("HYBRIDSIM_DATA", Path(__file__).parents[2] / "shared" / "data"))


def plain_hits(numbers, pages, replacement, admission=("always",)):
    """Return the hits of a cache with the reference's policies."""
    parameters = CacheParameters(4096, pages, 0, 0, 1, admission, replacement)
    admits = Machine.make_admission(None, parameters)
    replaces = Machine.make_replacement(None, parameters, admits)
    held, hit_count = set(), 0
    for now, page in enumerate(numbers):
        admits.request(page * 4096, 4096, False)
        wanted = admits.consider(now, page, False, len(held) == pages)
        if page in held:
            replaces.touch(page)
            hit_count += 1
        elif wanted:
            replaces.missed(page)
            if len(held) == pages:
                victim = replaces.evict()
                held.remove(victim)
                admits.evicted(victim)
            replaces.admit(page)
            held.add(page)
    return hit_count


def skewed(count, distinct, seed=1):
    random = Random(seed)
    return np.array([int(random.paretovariate(0.6)) % distinct for _ in range(count)])


@pytest.mark.parametrize("replacement", REPLACEMENT)
def test_hits_equal_those_of_the_reference_policies(replacement):
    """Compiled, with more pages than the initial size of the tables."""
    numbers = skewed(4_000, 900) * 977
    (result,) = hits(numbers, 150 * 4096, replacement)
    assert result.page_hits == plain_hits(numbers.tolist(), 150, replacement)


@pytest.mark.parametrize("admission", ["larc", "reject-first", "tinylfu"])
def test_admission_and_replacement_policies_can_be_combined(admission):
    numbers = skewed(4_000, 900)
    (result,) = hits(numbers, 60 * 4096, "lru", admission)
    assert result.page_hits == plain_hits(numbers.tolist(), 60, "lru", (admission,))
    assert result.admitted - result.evicted == 60


def test_the_learned_policy_is_admission_and_replacement():
    numbers = skewed(6_000, 900)
    (result,) = hits(numbers, 60 * 4096, "learned", "learned", write_price_per_thousand=20)
    assert result.page_hits == plain_hits(numbers.tolist(), 60, "learned", ("learned", 20))
    assert result.evicted > 0


def fewest_misses(numbers, pages):
    """Return the minimum number of misses by an exhaustive search over evictions."""
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
    (result,) = hits(np.array(numbers), pages * 4096, "belady")
    assert result.page_misses == fewest_misses(numbers, pages)


def test_removed_pages_leave_the_heap_of_belady():
    heap = Belady.new(4, 2)
    for page, when in ((0, 7), (1, 9), (2, 8)):
        heap.upcoming[page] = when
        heap.admit(page)
    heap.remove(1)
    assert [heap.evict() for _ in range(3)] == [2, 0, -1]


def test_no_policy_has_more_hits_than_belady():
    numbers = skewed(5_000, 800)
    results = hits(numbers, "20%", [*REPLACEMENT, *OFFLINE])
    assert max(results, key=lambda each: each.page_hits).replacement == "belady"


def test_lhd_learns_reuse_times_of_many_cache_sizes():
    """Zipf, a cache of 1 % of the pages: the coldest pages that fit recur every ten cache sizes."""
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


def test_page_hits_and_request_hits_are_counted_separately():
    trace = Requests(
        (READ, 0, 8192),  # two pages, two misses
        (WRITE, 4096, 8192),  # one hit, one miss
        (READ, 0, 12_288),  # three hits
        (DISCARD, 0, 1 << 20),
        (FLUSH, 0, 0),
        (READ, 4095, 2),  # one byte of each of two pages
    )
    (result,) = hits(trace, "1MiB")
    assert (result.requests, result.request_hits) == (4, 2)
    assert (result.page_accesses, result.page_hits, result.page_misses) == (9, 6, 3)
    assert (result.read_page_accesses, result.read_page_hits) == (7, 5)
    assert (result.read_requests, result.read_request_hits) == (3, 2)
    assert (result.admitted, result.evicted) == (3, 0)


def test_a_relative_cache_size_refers_to_the_distinct_pages():
    results = hits(np.arange(1000), ["10%", "4KiB", "70 pages", "1page"])
    assert [each.pages for each in results] == [100, 1, 70, 1]


@pytest.mark.parametrize(("skip", "first"), [(1, 1), (700, 700), ("25%", 250)])
def test_skipped_requests_fill_the_cache_and_are_not_counted(skip, first):
    rows = [(page % 2, page * 4096, 8192) for page in skewed(1_000, 300).tolist()]
    whole, beginning, result = (
        hits(Requests(*some), "30 pages", skip=left_out)[0]
        for some, left_out in ((rows, 0), (rows[:first], 0), (rows, skip))
    )
    assert result.skipped_requests == first
    for count in ("requests", "request_hits", "page_accesses", "page_hits", "read_page_hits"):
        assert getattr(result, count) == getattr(whole, count) - getattr(beginning, count)
    assert result.admitted == whole.admitted - beginning.admitted


@pytest.mark.parametrize("replacement", ["lru", "belady"])
def test_a_cache_filled_by_skipped_requests_has_only_hits(replacement):
    parts = [np.arange(3), np.arange(3, 5), np.tile(np.arange(5), 2)]
    (result,) = hits(parts, "5 pages", replacement, skip=5)
    assert (result.page_accesses, result.page_hits, result.admitted) == (10, 10, 0)


def test_sequential_runs_beyond_the_cutoff_are_not_admitted():
    run = [(READ, i * 4096, 4096) for i in range(64)]
    (result,) = hits(Requests(*run, *run), "1MiB", sequential_cutoff="64KiB")
    assert result.admitted == 15  # requests before the run reached the cutoff
    assert result.page_hits == 15


def test_requests_above_the_maximum_size_are_not_admitted():
    trace = Requests((READ, 0, 65_536), (READ, 1 << 20, 4096))
    (result,) = hits(trace, "1MiB", admission="request-size", request_max_bytes=4096)
    assert result.admitted == 1


def test_chunk_sizes_do_not_change_the_result():
    numbers = skewed(3_000, 400)
    whole = hits(numbers, "10%", "arc")
    assert hits([numbers[:7], numbers[7:2000], numbers[2000:]], "10%", "arc") == whole


@pytest.mark.parametrize("page_numbers", [True, False])
def test_types_of_trace_chunks_are_registered_with_numba(page_numbers, monkeypatch):
    """Caches run in parallel threads: numba's type search fails while another thread compiles."""

    def another_thread_compiles(*_):
        raise RuntimeError("dictionary changed size during iteration")

    trace = np.arange(9) if page_numbers else Requests((READ, 0, 4096))
    (part,) = accesses(trace, 4096)
    monkeypatch.setattr("functools._find_impl", another_thread_compiles)
    typeof_impl._clear_cache()
    assert type(part).__name__ in str(numba.typeof(part))


class Newest:
    """A user's policy in plain Python: MRU, the last page admitted is the victim."""

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
    """A user's compiled policy: MRU."""

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


def test_a_user_policy_can_be_plain_or_compiled():
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
        ({"cache_size": 1000}, "a number without a unit is bytes; .* '1000 pages'"),
        ({"replacement": Belady.new(9, 2)}, "an object of Belady: specify Belady"),
        ({"toches": 3}, "no policy has a parameter 'toches': did you mean 'touches'"),
        ({"skip": "some", "cache_size": "2 pages"}, "specify a number of requests, or '20%'"),
        ({"skip": -1, "cache_size": "2 pages"}, "-1 is negative; specify a number of requests"),
        ({"skip": 9, "cache_size": "2 pages"}, "no more requests"),
        ({"page": 0}, "at least one byte"),
    ],
)
def test_wrong_options_are_refused_with_the_correction(options, message):
    with pytest.raises(UsageError, match=message):
        hits(np.arange(9), **options)


@pytest.mark.parametrize("trace", ["sda.blktrace.0", [1, 2, 3]])
def test_the_error_for_a_wrong_trace_argument_describes_a_trace(trace):
    with pytest.raises(UsageError, match=r"a trace is the result of Trace.read\(PATH\)"):
        hits(trace)


def test_policy_parameters_are_passed_to_user_classes():
    class Sized(Newest):
        @classmethod
        def new(cls, ids, pages, limit=0):
            assert limit == 7
            return cls()

    assert hits(np.arange(9), "3 pages", Sized, limit=7)[0].replacement == "Sized"


def test_a_page_size_that_is_not_whole_sectors_is_refused():
    refused = CliRunner().invoke(command, [str(CAPTURE), "--page", "3000"])
    assert "must be a multiple of 512 bytes" in str(refused.exception)


def test_the_command_prints_a_table_json_or_csv():
    arguments = [str(CAPTURE), "--cache-size", "5%,50%", "--replacement", "lru,sieve"]
    text = CliRunner().invoke(command, arguments)
    assert text.exit_code == 0, text.output
    assert len([line for line in text.output.splitlines() if line.startswith("always")]) == 4
    document = json.loads(CliRunner().invoke(command, [*arguments, "--json"]).output)
    for each in document["caches"]:
        assert each["page_hits"] + each["page_misses"] == each["page_accesses"]
        assert each["request_hits"] + each["request_misses"] == each["requests"]
    head, *lines = CliRunner().invoke(command, [*arguments, "--csv"]).output.splitlines()
    for each, line in zip(document["caches"], lines, strict=True):
        del each["learning"]
        assert head.split(",") == list(each)
        assert line.split(",") == ["" if value is None else str(value) for value in each.values()]
    both = CliRunner().invoke(command, [*arguments, "--json", "--csv"])
    assert (both.exit_code, "one of them" in both.output) == (2, True)


def test_the_command_can_skip_the_first_requests():
    text = CliRunner().invoke(command, [str(CAPTURE), "--skip", "50%"])
    assert text.exit_code == 0, text.output
    assert "which filled the caches and are not counted" in text.output


def drifting(count):
    """Return pages of a hot spot that drifts, of a loop, and draws from many pages."""
    state, numbers = 1, []
    for at in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        kind, draw = (state >> 33) % 8, (state >> 33) // 8
        if kind < 4:
            numbers.append(draw % 90 + at // 200)
        elif kind < 6:
            numbers.append(10_000 + at % 700)
        else:
            numbers.append(20_000 + draw % 3000 * (draw // 3000 % 2))
    return np.array(numbers)


@pytest.mark.parametrize(
    ("replacement", "misses"),
    [
        # Misses of caches of 60, 300 and 1200 pages in libCacheSim 0.3.5, of the same name there.
        ("fifo", [8685, 5806, 2689]),
        ("clock", [8281, 4668, 2272]),
        ("lru", [8392, 4809, 2294]),
        ("slru", [7298, 4318, 2310]),
        ("2q", [7316, 4394, 2663]),
        ("lfu", [7751, 4596, 2239]),
        ("arc", [6811, 4206, 2225]),
        ("s3-fifo", [6952, 4161, 2286]),
        ("sieve", [7067, 4596, 2239]),
    ],
)
def test_misses_equal_those_of_libcachesim(replacement, misses):
    sizes = [pages * 4096 for pages in (60, 300, 1200)]
    assert [each.page_misses for each in hits(drifting(12_000), sizes, replacement)] == misses


@pytest.mark.parametrize(
    ("replacement", "misses"),
    [
        # cache-policies/miss_ratios.csv: OLTP at 1,868 pages, from an independent simulator
        ("lru", 533_560),
        ("arc", 499_159),
        ("s3-fifo", 489_411),
        ("sieve", 545_815),
        ("belady", 367_867),
    ],
)
def test_misses_of_a_public_trace_equal_an_independent_simulator(replacement, misses):
    path = SHARED / "traces" / "OLTP.lis.zst"
    if not path.exists():
        pytest.skip("the OLTP trace is not at hand: set HYBRIDSIM_DATA")
    (result,) = hits(oltp(path), 1868 * 512, replacement, page=512)
    assert (result.page_accesses, result.page_misses) == (914_145, misses)


KEPT = {}


def oltp(path):
    """Return the page numbers of the trace; read it once."""
    if path not in KEPT:
        chunks = Trace.read(path).chunks()
        KEPT[path] = np.concatenate([chunk.offset_bytes // 512 for chunk in chunks])
    return KEPT[path]


def test_the_learned_policy_reports_its_lessons():
    """A hot spot is read repeatedly between pages that are used once."""
    rng = np.random.default_rng(1)
    hot, cold = rng.integers(0, 100, 20_000), np.arange(1000, 21_000)
    numbers = np.stack([hot, cold], axis=1).ravel()
    result = hits(numbers, 150 * 4096, "learned", "learned")[0]
    known = result.learning
    assert sum(each.share for each in known.lessons) == pytest.approx(1)
    by_words = {each.accesses: each for each in known.lessons}
    once = by_words["read for the first time, in a sequential run"]
    often = by_words["read more often, gap shorter than the stay"]
    assert once.is_wanted == 0
    assert often.is_wanted > 0.9
    assert once.is_touched_again < 0.1 < 0.8 < often.is_touched_again
    assert once.worth_reads < known.price_reads < often.worth_reads
    assert hits(numbers, 150 * 4096)[0].learning is None


def lru_misses(numbers, pages):
    """Return the page numbers that an LRU cache misses, in order."""
    held, missed = {}, []
    for page in numbers:
        if page in held:
            del held[page]
        else:
            missed.append(page)
            if len(held) == pages:
                del held[next(iter(held))]
        held[page] = None
    return missed


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=300),
    st.integers(1, 12),
    st.integers(1, 12),
)
@settings(max_examples=60, deadline=None)
def test_more_ram_serves_at_least_what_is_stated(numbers, ram, more):
    """Below an LRU page cache, the hits of another LRU are a lower bound of a larger page cache."""
    trace = lru_misses(numbers, ram)
    (stated,) = more_ram(np.array(trace), [f"{more} pages"])
    still_missed = lru_misses(numbers, ram + more)
    assert stated.read_requests == len(trace)
    assert stated.read_request_hits <= len(trace) - len(still_missed)


def test_the_command_prints_what_more_ram_serves():
    load = "gen:zipf,read=100%,span=16MiB,requests=2k"
    shown = CliRunner().invoke(command, [load, "--ram", "1MiB,16MiB"], catch_exceptions=False)
    (large,) = more_ram(Trace.read(load), ["16MiB"])
    share = large.read_request_hits / large.read_requests
    assert f"larger by 16.0 MiB serves at least {share:.1%} of these reads" in shown.output
    document = CliRunner().invoke(command, [load, "--ram", "16MiB", "--json"]).output
    assert json.loads(document)["ram"] == [
        {"size_bytes": 16 << 20, "reads": 2000, "served_at_least": large.read_request_hits}
    ]


def test_without_reads_more_ram_serves_none():
    load = "gen:zipf,read=0%,span=16MiB,requests=500"
    shown = CliRunner().invoke(command, [load, "--ram", "1MiB"], catch_exceptions=False)
    assert "there are no reads" in shown.output


@pytest.mark.parametrize("width", [40, 60, 79, 80, 200])
def test_the_table_fits_and_lists_may_have_blanks(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    arguments = ["gen:zipf,span=16MiB,requests=500", "--cache-size", " 5%, 10% ",
                 "--replacement", "lru , arc"]  # fmt: skip
    lines = CliRunner().invoke(command, arguments, catch_exceptions=False).output.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("arc" in line for line in lines) == 2
