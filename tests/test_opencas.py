"""Open CAS: the engine against the reference, and both against predictions from its rules.

The predictions follow from the rules of DESIGN.md 2.13.
"""

import re
from dataclasses import replace
from random import Random

import agreement
import pytest
from engine import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import Scenario
from scenarios_opencas import opencas_scenarios

from hybridsim.caches.opencas import lines, transfers
from hybridsim.caches.opencas.lines import Lists
from hybridsim.foundation.codes import (
    CasMode,
    Cleaning,
    Cutoff,
    Op,
    Path,
    Promotion,
    Reason,
    Replay,
)
from hybridsim.foundation.errors import ScenarioError
from hybridsim.reference import (
    OpenCasParameters,
    Request,
    SourceParameters,
)
from hybridsim.reference import opencas as reference
from hybridsim.scenario import Scenario as Site
from hybridsim.scenario import building

KIB, MIB = 1 << 10, 1 << 20
MS, SECOND = 10**6, 10**9
ORIGIN_NS, CACHE_NS = 12 * MS, 20_000

usual = agreement.relaxed(5)


@usual
@given(opencas_scenarios())
def test_interpreted_engine_equals_reference(scenario):
    agreement.check(scenario, interpreted=True)


@pytest.mark.long
@settings(usual, max_examples=40)
@given(opencas_scenarios("disk", "ssd", controller=False))
def test_compiled_engine_equals_reference(scenario):
    agreement.check(scenario)


@settings(usual, max_examples=5)
@given(opencas_scenarios())
def test_batch_sizes_and_stops_do_not_change_the_result(scenario):
    agreement.check_cut(scenario)


@usual
@given(opencas_scenarios(), st.integers(1, 40), st.sampled_from([Cleaning.ALRU, Cleaning.ACP]))
def test_many_chunks_and_pieces_equal_reference(scenario, lines_each, cleaning):
    """Chunks of 100 MiB are more than these machines have: here they are of a few lines.

    So are the pieces of a pass.
    """
    line = scenario.cache.line_bytes
    cache = replace(
        scenario.cache, cleaning=cleaning, mode=CasMode.WB, flush_max_buffers=lines_each + 5
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", lines_each * line)
        patch.setattr(reference, "CHUNK_BYTES", lines_each * line)
        for module in (transfers, reference):
            patch.setattr(module, "PIECE_LINES", 1 + lines_each // 4)
            patch.setattr(module, "LARGE_PIECE_LINES", 1 + lines_each // 2)
            patch.setattr(module, "MANY_LINES", 12)
        agreement.check(replace(scenario, cache=cache), interpreted=True)


# Predictions from its rules (not measured): rows O1 to O6.


def machine_of(requests, depth=1, lines=256, mode=CasMode.WT, line=4 * KIB, **how):
    """Return a machine with these requests at a queue depth or, if 0, open loop."""
    slow, fast = agreement.steady(ORIGIN_NS, 1024 * MIB), agreement.steady(CACHE_NS, 64 * MIB)
    source = SourceParameters(Replay.CLOSED, depth) if depth else SourceParameters(Replay.OPEN)
    how = {"sequential_cutoff_policy": Cutoff.NEVER, "cleaning": Cleaning.NOP, **how}
    return Scenario(requests, source, OpenCasParameters(line, lines, mode, **how), slow, fast)


def ran(requests, *positional, **how):
    """Return the counters and the facts after these requests."""
    facts, finished = simulate(machine_of(requests, *positional, **how), interpreted=True)
    return finished.cache.totals(), facts


def at(op, offsets, length=4 * KIB, gap_ns=0, start_ns=0):
    return [Request(start_ns + i * gap_ns, op, to, length) for i, to in enumerate(offsets)]


def reads(offsets, *positional, **how):
    return at(Op.READ, offsets, *positional, **how)


def writes(offsets, *positional, **how):
    return at(Op.WRITE, offsets, *positional, **how)


def cleaned_by(seconds, requests, **how):
    """Return the lines cleaned some time after these writes, when a read arrives."""
    later = reads([512 * MIB], start_ns=int(seconds * SECOND))
    totals, _ = ran([*requests, *later], depth=0, mode=CasMode.WB, **how)
    return totals["cleaned_blocks"]


def test_nhit_inserts_at_the_third_miss():
    """O1: the third read of a line inserts it, the fourth is a hit."""
    _, facts = ran(reads([MIB] * 4), promotion=Promotion.NHIT)
    assert [fact.path for fact in facts] == [Path.MISS, Path.MISS, Path.MISS, Path.HIT]
    assert [fact.reason for fact in facts[:3]] == [Reason.NOT_HOT, Reason.NOT_HOT, Reason.COLD]


def test_nhit_inserts_every_miss_below_its_occupancy_threshold():
    totals, _ = ran(reads([0, 0, MIB, MIB]), promotion=Promotion.NHIT, trigger_threshold_lines=1)
    assert totals["read_hits"] + totals["read_deferred"] == 1
    assert totals["pass_through_reads"] == 2


def test_sequential_reads_bypass_a_full_cache():
    """O2: cached while there is room; then bypassed from the eighth read of 128 KiB (1 MiB) on."""
    scan = reads(range(0, 2 * MIB, 128 * KIB), 128 * KIB)
    roomy, _ = ran(scan, lines=2048, sequential_cutoff_policy=Cutoff.FULL)
    assert (roomy["read_full_misses"], roomy["pass_through_reads"]) == (16, 0)
    _, facts = ran(scan, lines=256, sequential_cutoff_policy=Cutoff.FULL)
    cut = [fact.number for fact in facts if fact.reason == Reason.SEQUENTIAL]
    assert cut == list(range(7, 16))


def test_reads_bypass_a_cache_full_of_dirty_lines_which_cleans_32_lines():
    """O3: nothing can be evicted; 32 lines at a time are cleaned."""
    fill = writes(range(0, MIB, 4 * KIB))
    totals, facts = ran([*fill, *reads([512 * MIB])], mode=CasMode.WB)
    assert facts[-1].reason == Reason.BUSY
    assert totals["pass_through_reads"] == 1
    assert totals["cleaned_blocks"] == 32
    more = reads(range(512 * MIB, 513 * MIB, 4 * KIB), gap_ns=0)
    totals, _ = ran([*fill, *more], mode=CasMode.WB)
    assert totals["cleaned_blocks"] % 32 == 0
    assert totals["read_full_misses"] > 200


def test_alru_waits_for_idle_time_and_for_age():
    """O4: at least 120 s after the write and 10 s after the last I/O.

    It wakes up each 20.48 s; the pass of 102.40 s is in vain, so that of 122.88 s is left out.
    """
    how = {"cleaning": Cleaning.ALRU}
    busy = reads([0], start_ns=139 * SECOND)
    assert cleaned_by(143, writes([0]), **how) == 0
    assert cleaned_by(144, writes([0]), **how) == 1
    assert cleaned_by(144, [*writes([0]), *busy], **how) == 0
    assert cleaned_by(164, [*writes([0]), *busy], **how) == 1


def test_alru_cleans_the_oldest_first_and_a_hundred_at_a_time():
    how = {"cleaning": Cleaning.ALRU, "staleness_time_ns": SECOND}
    old = writes(range(0, 600 * KIB, 4 * KIB))
    young = writes([0], start_ns=int(19.5 * SECOND))
    assert cleaned_by(29, [*old, *young], **how, activity_threshold_ns=0, lines=1024) == 149
    later = reads([512 * MIB], start_ns=29 * SECOND)
    totals, _ = ran([*old, *later], 0, 1024, CasMode.WB, **how, activity_threshold_ns=0)
    assert totals["metadata_writes"] == 150 + 2  # one per write, one per pass


def test_a_pass_goes_by_pieces_of_128_lines():
    """Each writes its metadata, as a pass of its own does, but all are under way at once."""
    how = {"cleaning": Cleaning.ALRU, "staleness_time_ns": SECOND, "activity_threshold_ns": 0}
    written = [*writes(range(0, 1200 * KIB, 4 * KIB)), *reads([512 * MIB], start_ns=29 * SECOND)]
    totals, _ = ran(written, 0, 1024, CasMode.WB, **how, flush_max_buffers=300)
    assert totals["cleaned_blocks"] == 300
    assert totals["metadata_writes"] == 300 + 3
    totals, _ = ran(written, 0, 1024, CasMode.WB, **how, flush_max_buffers=128)
    assert totals["metadata_writes"] == 300 + 3


def test_alru_waits_twice_after_a_pass_without_a_stale_line():
    """That of 20.48 s finds nothing; that of 40.96 s comes too early by the whole seconds."""
    how = {"cleaning": Cleaning.ALRU, "staleness_time_ns": 30 * SECOND}
    assert cleaned_by(42, writes([0]), **how) == 0
    assert cleaned_by(61, writes([0]), **how) == 0
    assert cleaned_by(62, writes([0]), **how) == 1


def test_alru_compares_ages_in_whole_seconds():
    """At 20.48 s a line of 9.5 s is stale, one of 10.0 s is not; the next pass is at 61.44 s."""
    how = {"cleaning": Cleaning.ALRU, "staleness_time_ns": 10 * SECOND, "activity_threshold_ns": 0}
    assert cleaned_by(30, writes([0], start_ns=int(9.5 * SECOND)), **how) == 1
    assert cleaned_by(30, writes([0], start_ns=10 * SECOND), **how) == 0
    assert cleaned_by(62, writes([0], start_ns=10 * SECOND), **how) == 1


def test_alru_pauses_for_a_second_when_casadm_reads_the_counters():
    """Each pass that a query meets is followed by a second's pause: half of all time is lost."""
    dirty = writes(range(0, 600 * 4 * KIB, 4 * KIB))
    how = {
        "cleaning": Cleaning.ALRU,
        "wake_up_ns": SECOND,
        "staleness_time_ns": -SECOND,
        "activity_threshold_ns": 0,
        "flush_max_buffers": 1,
        "lines": 1024,
    }
    undisturbed = cleaned_by(5, dirty, **how)
    assert 0 < undisturbed < 600
    queried = cleaned_by(5, dirty, **how, stats_interval_ns=SECOND, stats_start_ns=1510 * MS)
    # Passes from 1.02 s to the query of 1.51 s, from 2.54 to 3.51 s, from 4.54 to 5 s.
    assert queried == pytest.approx(undisturbed / 2, abs=8)
    assert (
        cleaned_by(5, dirty, **how, stats_interval_ns=SECOND, stats_start_ns=6 * SECOND)
        == undisturbed
    )


def test_acp_pauses_anyway_so_that_queries_do_not_stop_it():
    """As in a real run, whose passes followed each other by 0.35 s, with a query each second."""
    dirty = writes(range(0, 600 * 4 * KIB, 4 * KIB))
    how = {"cleaning": Cleaning.ACP, "wake_up_ns": MS, "flush_max_buffers": 1, "lines": 1024}
    queried = cleaned_by(5, dirty, **how, stats_interval_ns=SECOND, stats_start_ns=1510 * MS)
    assert 0 < queried == cleaned_by(5, dirty, **how)


def test_a_batch_ends_with_a_flush_of_the_cache_device():
    """Read, write, metadata, and a flush of the cache device: then the line is unlocked."""
    how = {"cleaning": Cleaning.ALRU, "staleness_time_ns": -SECOND, "activity_threshold_ns": 0}
    how["sequential_cutoff_policy"] = Cutoff.NEVER
    slow, fast = agreement.steady(ORIGIN_NS, 1024 * MIB), agreement.steady(10 * MS, 64 * MIB)
    fast.device = fast.device._replace(flush_ns=20 * MS)
    cache = OpenCasParameters(4 * KIB, 256, CasMode.WB, **how)

    def written_again(after_ms):
        """Return whether the line was locked this long after the pass began, at 20.48 s."""
        again = writes([0], start_ns=(20_480 + after_ms) * MS)
        source = SourceParameters(Replay.OPEN)
        machine = Scenario([*writes([0]), *again], source, cache, slow, fast)
        return simulate(machine, interpreted=True)[1].cache.totals()["write_deferred"]

    # 10 ms to read, 12 to write, 10 for the metadata, 20 to flush.
    assert [written_again(after_ms) for after_ms in (31, 33, 51, 53)] == [1, 1, 1, 0]


def test_a_write_makes_only_its_sectors_valid():
    """O5: no read of the core; the rest of the line is invalid, which is a partial miss."""
    line = 64 * KIB
    totals, facts = ran([*writes([8 * KIB]), *reads([0], line)], line=line, mode=CasMode.WB)
    assert totals["reads_from_core"] == 16
    assert (totals["write_full_misses"], totals["read_partial_misses"]) == (1, 1)
    assert facts[1].reason == Reason.COLD
    totals, _ = ran([*writes([8 * KIB]), *reads([8 * KIB])], line=line, mode=CasMode.WB)
    assert (totals["reads_from_core"], totals["read_hits"]) == (0, 1)


def test_acp_cleans_the_densest_chunk_first():
    """O6: at most flush_max_buffers every wake-up, from the 100 MiB with the greatest share."""
    chunk, line = 100 * MIB, 64 * KIB
    some = writes([0, chunk, 2 * chunk])
    dense = writes(range(3 * chunk, 3 * chunk + 400 * line, line))
    how = {"cleaning": Cleaning.ACP, "wake_up_ns": 10 * MS, "flush_max_buffers": 32, "line": line}
    passes = [cleaned_by(1.025 + ms / 1000, [*some, *dense], **how, lines=512) for ms in (0, 100)]
    assert passes[0] == 32
    assert 3 * 32 <= passes[1] - passes[0] <= 10 * 32
    both = reads([0, 3 * chunk], line, start_ns=int(1.05 * SECOND))
    back = [*some, *dense, *both]
    _, facts = ran(back, 0, 512, CasMode.WB, **how)
    took = {fact.number: fact.done_ns - fact.issue_ns for fact in facts}
    assert took[len(back) - 2] > ORIGIN_NS  # still dirty: it must be cleaned first
    assert took[len(back) - 1] == ORIGIN_NS


def of_acp(times_s, requests, **how):
    """Return the dirty lines in each of the first chunks some time after these writes."""
    how = {"cleaning": Cleaning.ACP, "wake_up_ns": 10 * MS, "line": 64 * KIB, "lines": 512, **how}
    counts = []
    for second in times_s:
        later = reads([900 * MIB], start_ns=int(second * SECOND))
        scenario = machine_of([*requests, *later], 0, mode=CasMode.WB, **how)
        _, finished = simulate(scenario, interpreted=True)
        counts.append(finished.cache.lines.dirt.dirty_in_chunk[:3].tolist())
    return counts


def test_acp_cleans_a_chunk_from_end_to_end_before_it_looks_again():
    """O6: what becomes dirty behind the sweep waits for the next one, as does a denser chunk."""
    chunk, line = 100 * MIB, 64 * KIB
    first = writes(range(0, 100 * line, line), 64 * KIB)
    again = writes(range(0, 20 * line, line), 64 * KIB, start_ns=int(1.04 * SECOND))
    dense = writes(range(chunk, chunk + 300 * line, line), 64 * KIB, start_ns=int(1.04 * SECOND))
    swept, later = of_acp([1.07, 1.3], [*first, *again, *dense], flush_max_buffers=25)
    assert swept[0] == 20 + 25  # a part of the chunk, and what is behind the sweep
    assert swept[1] == 300
    assert later[0] == 20
    assert 0 < later[1] < 300  # the denser chunk came next


def test_acp_takes_chunks_in_the_order_in_which_they_became_dirty():
    chunk, line = 100 * MIB, 64 * KIB
    order = [chunk, 2 * chunk, 0]
    some = [each for at_ in order for each in writes([at_, at_ + line], 64 * KIB)]
    times_s = [1.03 + step / 100 for step in range(10)]
    seen = [counts for counts in of_acp(times_s, some) if sum(counts) in (2, 4)]
    assert [2, 0, 2] in seen
    assert [2, 0, 0] in seen
    assert [0, 2, 2] not in seen


# Predictions from its other rules.


def test_a_read_miss_completes_before_its_insert():
    """The request waits for the core only; reads of the same line meanwhile wait for the cache."""
    _, facts = ran(reads([0, 0]), depth=2)
    assert facts[0].done_ns == ORIGIN_NS
    assert facts[1].done_ns == ORIGIN_NS + 2 * CACHE_NS
    totals, _ = ran(reads([0, 0]), depth=2)
    assert (totals["read_full_misses"], totals["read_deferred"], totals["read_hits"]) == (1, 1, 0)


def test_write_back_waits_for_the_cache_and_for_new_metadata():
    totals, facts = ran(writes([0, 0, 512], 512), mode=CasMode.WB)
    spans = [fact.done_ns - fact.issue_ns for fact in facts]
    assert spans == [2 * CACHE_NS, CACHE_NS, 2 * CACHE_NS]
    assert (totals["metadata_writes"], totals["dirty"], totals["writes_to_core"]) == (2, 1, 0)


def test_each_mode_has_its_own_paths_of_writes_and_reads():
    requests = [*reads([0]), *writes([0, MIB]), *reads([0, MIB])]
    paths = {}
    for mode in CasMode:
        _, facts = ran(requests, mode=mode)
        paths[mode.name] = "".join("HMB"[fact.path] for fact in facts if fact.op == Op.READ)
    assert paths == {"WT": "MHH", "WB": "MHH", "WA": "MHM", "PT": "BBB", "WI": "MMM", "WO": "MHH"}


def test_only_lines_of_the_cold_half_move_on_a_hit_and_the_tail_is_evicted():
    """Two lines of a list: the newer one is hot, a hit does not move it; the tail is evicted."""
    lines = 2
    fill = reads(range(0, lines * 4 * KIB, 4 * KIB))
    again = reads([0])  # the cold one moves to the head
    _, facts = ran([*fill, *again, *reads([MIB, 0, 4 * KIB])], lines=lines)
    assert [fact.path for fact in facts[-2:]] == [Path.HIT, Path.MISS]
    assert facts[-1].reason == Reason.EVICTED


CHUNK = 256  # lines next to each other that stand in the same list


def places(requests, lines, core_lines):
    """The lines that hold core lines after these requests."""
    finished = simulate(machine_of(requests, lines=lines), interpreted=True)[1]
    held = finished.cache.lines
    return [int(held.table.find(core_line)) for core_line in core_lines]


@pytest.mark.parametrize(
    ("lines", "chunks"), [(CHUNK, [0, 0, 0]), (CHUNK + 1, [0, 1, 0]), (32 * CHUNK, [0, 1, 2])]
)
def test_each_request_takes_its_lines_from_the_next_list_that_has_some(lines, chunks):
    """In each list the lines ascend."""
    result = places(reads([0, 4 * KIB, 8 * KIB]), lines, range(3))
    assert [line // CHUNK for line in result] == chunks
    assert [line % CHUNK for line in result] == [
        chunks[:at].count(each) for at, each in enumerate(chunks)
    ]


@pytest.mark.parametrize("lines", [CHUNK, 2 * CHUNK, 64 * CHUNK])
def test_a_request_stays_on_its_list(lines):
    first, *others = places([*reads([0]), *reads([MIB], 16 * KIB)], lines, range(256, 260))
    assert others == [first + 1, first + 2, first + 3]


def test_the_lists_that_have_lines_serve_those_that_have_none():
    """Of 32 requests list 1 serves one and list 0 the other 31, when free lines are taken and
    when lines are evicted; so of two chunks the first is emptied by nearly every miss.
    """
    fill = [*reads([0], 2 * MIB), *reads([0])]  # takes list 0, goes on in list 1; is there
    new = reads(range(512 * MIB, 544 * MIB, MIB))
    result = places([*fill, *new], 2 * CHUNK, range(128 * KIB, 136 * KIB, CHUNK))
    assert [line // CHUNK for line in result].count(1) == 1
    assert result[0] // CHUNK == 1  # the second request of all begins at list 1


@pytest.mark.parametrize("mode", [CasMode.WT, CasMode.WB])
@pytest.mark.parametrize("lines", [700, 1100])
def test_engine_and_reference_agree_where_some_lists_are_empty(mode, lines):
    """Three and five lists of 32 have lines; requests of up to 16 lines, also full of dirt."""
    random = Random(lines)
    requests = []
    for number in range(700):
        op = Op.READ if random.random() < 0.4 else Op.WRITE
        offset, length = random.randrange(3000) * 4 * KIB, random.choice([1, 4, 16]) * 4 * KIB
        requests.append(Request(number, op, offset, length))
    scenario = machine_of(requests, 8, lines, mode, cleaning=Cleaning.ALRU)
    agreement.check(scenario, interpreted=True)


def test_dirty_lines_are_cleaned_before_a_miss_is_read():
    line = 64 * KIB
    totals, facts = ran([*writes([0]), *reads([0], line)], line=line, mode=CasMode.WB)
    assert (totals["cleaned_blocks"], totals["writes_to_core"]) == (1, 0)  # users' only, as casadm
    assert totals["reads_from_cache"] == 0
    # line read, dirty part written, core flushed, metadata written; then the core is read
    assert facts[1].done_ns - facts[1].issue_ns == 2 * CACHE_NS + 2 * ORIGIN_NS


def test_dirty_data_are_read_from_the_cache_beyond_the_sequential_cutoff():
    scan = range(0, 2 * MIB, 128 * KIB)
    both = [*writes(scan, 128 * KIB), *reads(scan, 128 * KIB)]
    totals, _ = ran(both, mode=CasMode.WB, lines=2048, sequential_cutoff_policy=Cutoff.ALWAYS)
    assert totals["pass_through_writes"] == 9  # from the eighth request on
    assert totals["read_hits"] == 7
    assert totals["pass_through_reads"] == 9


def test_metadata_of_adjacent_pages_are_written_in_one_request():
    """341 lines of 4 KiB have their metadata in one page."""
    totals, _ = ran(writes([0], 2 * MIB), mode=CasMode.WB, lines=1024)
    assert totals["metadata_writes"] == 1
    totals, _ = ran(writes([0, 2 * MIB], 4 * KIB), mode=CasMode.WB, lines=1024)
    assert totals["metadata_writes"] == 2


@given(st.lists(st.integers(0, 9), max_size=60))
@settings(usual, max_examples=20)
def test_the_first_half_of_a_list_is_hot(moves):
    """A line in the list is removed; any other line is inserted at the head."""
    lists, plain = Lists.new(320), []
    for move in moves:
        line = 32 * move  # all in the same list
        if line in plain:
            plain.remove(line)
            lists.remove(line)
        else:
            plain.insert(0, line)
            lists.add(line, 0)
        assert [line for line in plain if lists.is_hot[line]] == plain[: len(plain) // 2]
        assert [lists.is_held(line) for line in plain] == [True] * len(plain)


# Scenarios.


def test_scenario_keys_set_the_same_parameters_as_casadm():
    loaded = Site.loads('[cache]\nkind = "open-cas"').cache
    assert (loaded.mode, loaded.line_bytes, loaded.promotion) == ("wt", 4 * KIB, "always")
    assert (loaded.sequential_cutoff_policy, loaded.sequential_cutoff_bytes) == ("full", MIB)
    assert (loaded.cleaning, loaded.wake_up_ns, loaded.flush_max_buffers) == (
        "alru",
        20 * SECOND,
        100,
    )
    assert (loaded.staleness_time_ns, loaded.activity_threshold_ns) == (120 * SECOND, 10 * SECOND)
    acp = Site.loads('[cache]\nkind = "open-cas"\ncleaning = "acp"\nmode = "write-back"').cache
    assert (acp.wake_up_ns, acp.flush_max_buffers, acp.mode) == (10 * MS, 128, "wb")
    assert (acp.insertion_threshold, acp.parameters(1000, 1).trigger_threshold_lines) == (3, 800)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('line = "2KiB"', "an Open CAS cache line must be 4, 8, 16, 32 or 64 KiB"),
        ('wake_up = "1us"', "the minimum is 1ms"),
        ("flush_max_buffers = 0", "1 to 10000"),
        ('trigger_threshold = "101%"', "0% to 100%"),
        ('promotoin = "nhit"', "did you mean 'promotion'?"),
        ('mode = "wx"', "mode cannot be 'wx'"),
        ('mode = "read-only"', "choose from write-around, write-through, write-back"),
        ('block = "64KiB"', "'block' is a key of another kind of cache"),
    ],
)
def test_settings_that_casadm_refuses_are_refused(line, message):
    with pytest.raises(ScenarioError, match=re.escape(message)):
        Site.loads(f'[cache]\nkind = "open-cas"\n{line}')


def test_the_metadata_fit_on_the_cache_device():
    site = Site.loads('[cache]\nkind = "open-cas"\nmode = "wb"')
    lines = 1920 * 10**9 // 4096
    tier = building.fast_tier(site.cache, lines)
    assert tier.capacity_bytes >= lines * 4096 + lines // 341 * 4096


def test_disks_that_need_too_much_memory_are_refused():
    site = Site.loads('[cache]\nkind = "open-cas"\nsize = "1GiB"\n')
    with pytest.raises(ScenarioError, match=r"64\.0 TiB for 2048 PiB; use longer lines"):
        building.machine(site, "open", 1 << 61, site.cache.pages(0))
