"""Engine and reference against numbers worked out by hand from DESIGN.md part 2."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from agreement import both
from hypothesis import given, settings
from scenarios import Scenario, scenarios

from hybridsim.foundation.codes import FUA, Level, Mode, Op, Order, Path, Reason, Replay
from hybridsim.reference import (
    CacheParameters,
    Clock,
    Fact,
    Hdd,
    HddParameters,
    Machine,
    Outcome,
    Request,
    SourceParameters,
    SsdParameters,
    Tier,
    TierParameters,
    simulate,
)
from hybridsim.reference import source as source_module
from hybridsim.reference.cache import Runs
from hybridsim.reference.hdd import Platters
from hybridsim.reference.hdd import Segment as ReadSegment
from hybridsim.reference.source import parents
from hybridsim.reference.ssd import Ssd
from hybridsim.reference.tier import Range, Segment, row_segments
from hybridsim.requests import source as compiled_source

US, MS = 1000, 1_000_000
SECTOR, PAGE = 512, 4096
TRACK = 100 * SECTOR

OPEN = SourceParameters(Replay.OPEN)
ONE_AT_A_TIME = SourceParameters(Replay.CLOSED, depth=1)
NO_CACHE = CacheParameters(PAGE, 0, Mode.READ_ONLY, 0, 0, ("touches", 1))
CACHE = CacheParameters(PAGE, 8, Mode.READ_ONLY, 0, 8, ("touches", 1))

# A revolution takes 10 ms, a sector 100 us; cylinders have two tracks; each track begins 500 us
# after the previous one; a seek takes a millisecond per cylinder.
DISK = HddParameters(
    rev_ns=10 * MS,
    zone_byte=[0],
    zone_track=[0],
    zone_track_bytes=[TRACK],
    surfaces=2,
    zone_angle_ns=[0],
    zone_skew_ns=[500 * US],
    zone_cylinder_skew_ns=[0],
    seek_shift=0,
    move_ns=[300 * US] + [MS * distance for distance in range(1, 11)],
    write_move_ns=[500 * US] + [MS * distance + 200 * US for distance in range(1, 11)],
    read_ns=100 * US,
    hit_ns=100 * US,
    write_ns=100 * US,
    write_hit_ns=100 * US,
    window=1,
    age_limit_ns=1000 * MS,
    read_ahead_bytes=0,
    read_behind_bytes=0,
    capacity_bytes=20 * TRACK,
)

# Everything takes no time; each test changes what it needs.
SSD = SsdParameters(
    dies=1,
    unit_bytes=PAGE,
    command_ns=0,
    interval_ns=0,
    read_ns=0,
    program_ns=0,
    scatter_ns=0,
    suspend_ns=0,
    write_ns=0,
    buffer_ns=0,
    link_bytes_per_s=10**18,
    capacity_bytes=64 * PAGE,
)


def single(device: HddParameters | SsdParameters) -> TierParameters:
    return TierParameters(Level.STRIPE, 1, 64 * SECTOR, device, device.capacity_bytes)


def array(level: Level, members: int, chunk: int, device: HddParameters) -> TierParameters:
    data = members - 1 if level == Level.RAID5 else members
    return TierParameters(level, members, chunk, device, data * device.capacity_bytes)


def read(at: float, offset: int, length: int = SECTOR, **more: Any) -> Request:
    """Return a READ that arrives at `at` milliseconds."""
    return Request(round(at * MS), Op.READ, offset, length, **more)


def write(at: float, offset: int, length: int = SECTOR) -> Request:
    return Request(round(at * MS), Op.WRITE, offset, length)


def by_number(outcome: Outcome) -> list[Fact]:
    return sorted(outcome.facts, key=lambda fact: fact.number)


def done(outcome: Outcome) -> list[float]:
    """Return the completion times in milliseconds."""
    return [fact.done_ns / MS for fact in by_number(outcome)]


def on(
    device: HddParameters | SsdParameters, requests: list[Request], source: SourceParameters = OPEN
) -> Outcome:
    """Run requests on a single device without a cache."""
    return both(requests, source, NO_CACHE, single(device))


class TestHdd:
    def test_an_access_is_overhead_then_move_then_rotation_then_transfer(self) -> None:
        requests = [
            # Ready at 0.1; sector 30 is under the head at 3.0; two sectors.
            read(0, 30 * SECTOR, 2 * SECTOR),
            # Ready at 3.3, head switched at 3.6; sector 50 of track 1 is at 5.0 + 0.5.
            read(0, TRACK + 50 * SECTOR),
            # Ready at 5.7, seek and settle end at 8.9; track 6 begins at 3.0, so at 13.0.
            write(0, 6 * TRACK),
        ]
        outcome = on(DISK, requests, ONE_AT_A_TIME)
        assert done(outcome) == [3.2, 5.6, 13.1]
        assert outcome.counters["slow_move_ns"] == 300 * US + 3200 * US
        assert outcome.counters["slow_rotation_ns"] == 2900 * US + 1900 * US + 4100 * US
        assert outcome.counters["slow_transfer_ns"] == 400 * US

    def test_a_transfer_across_a_track_border_waits_for_the_skew(self) -> None:
        # Sectors 95 to 104: ten sectors and one border.
        assert done(on(DISK, [read(0, 95 * SECTOR, 10 * SECTOR)])) == [9.5 + 1.0 + 0.5]

    def test_the_next_track_starts_right_after_a_border(self) -> None:
        # This is the purpose of skew: the data after the border arrive when the head is ready.
        disk = Platters(DISK)
        turned = disk.transfer(0, TRACK + SECTOR) - disk.transfer(TRACK, SECTOR)
        assert disk.angle(TRACK) == (disk.angle(0) + turned) % DISK.rev_ns

    def test_outer_zones_hold_more_per_track(self) -> None:
        two_zones = replace(
            DISK,
            zone_byte=[0, 2 * TRACK],
            zone_track=[0, 2],
            zone_track_bytes=[TRACK, TRACK // 2],
            zone_angle_ns=[0, 0],
            zone_skew_ns=[500 * US, 500 * US],
            zone_cylinder_skew_ns=[0, 0],
            capacity_bytes=3 * TRACK,
        )
        disk = Platters(two_zones)
        assert disk.transfer(0, SECTOR) == 100 * US
        assert disk.transfer(2 * TRACK, SECTOR) == 200 * US
        assert [disk.track(b) for b in (2 * TRACK - 1, 2 * TRACK, 3 * TRACK - 1)] == [1, 2, 3]

    def test_cylinder_skew_may_differ_from_track_skew(self) -> None:
        wide = Platters(replace(DISK, zone_cylinder_skew_ns=[400 * US]))
        # Track 1 is in the same cylinder, track 2 in the next: 0.5, then 0.9 ms.
        assert [wide.angle(track * TRACK) / MS for track in range(4)] == [0, 0.5, 1.4, 1.9]
        assert wide.transfer(0, 3 * TRACK) == 30 * MS + 1400 * US

    def test_a_coarse_seek_table_rounds_up(self) -> None:
        disk = Platters(replace(DISK, seek_shift=2, move_ns=[0, 4 * MS, 8 * MS, 12 * MS]))
        # 1 to 4 cylinders: entry 1; 5 to 8: entry 2.
        moves = [disk.move(0, 2 * d, write=False) // MS for d in (0, 1, 4, 5, 8, 9)]
        assert moves == [0, 4, 4, 8, 8, 12]

    def test_resettling_takes_time(self) -> None:
        # Ready at 3.3; sector 35, at 3.5, is missed.
        requests = [read(0, 30 * SECTOR, 2 * SECTOR), read(0, 35 * SECTOR)]
        slow = replace(DISK, reacquire_ns=400 * US)
        assert done(on(DISK, requests, ONE_AT_A_TIME)) == [3.2, 3.6]
        assert done(on(slow, requests, ONE_AT_A_TIME)) == [3.2, 13.6]

    def test_reads_overlap_with_the_bus_transfer_and_writes_follow_it(self) -> None:
        slow = replace(DISK, host_ps_per_byte=400 * US * 1000 // SECTOR)  # 0.4 ms a sector
        # Sector 30 is under the head at 3.0; two sectors are transferred until 3.8.
        assert done(on(slow, [read(0, 30 * SECTOR, 2 * SECTOR)])) == [3.8]
        # Ready at 0.1, all received at 0.9: sector 8, at 0.8, is missed.
        assert done(on(slow, [write(0, 8 * SECTOR, 2 * SECTOR)])) == [11.0]

    # The first keeps the disk busy until 3.1. From there sector 80 is 4.8 ms away, sector 50 1.8 ms
    # and sector 40 0.8 ms.
    QUEUE = [
        read(0, 30 * SECTOR),
        read(1, 80 * SECTOR),
        read(1, 50 * SECTOR),
        read(1, 40 * SECTOR),
    ]

    @pytest.mark.parametrize(
        ("window", "order"),
        [(1, [0, 1, 2, 3]), (2, [0, 2, 1, 3]), (3, [0, 3, 2, 1])],
        ids=["first come first served", "the nearer of two", "the nearest of three"],
    )
    def test_the_cheapest_of_the_window_is_next(self, window: int, order: list[int]) -> None:
        outcome = on(replace(DISK, window=window), self.QUEUE)
        assert [fact.number for fact in outcome.facts] == order

    def test_at_equal_cost_the_older_request_is_next(self) -> None:
        requests = [read(0, 0), read(1, 50 * SECTOR, SECTOR), read(1, 50 * SECTOR, 2 * SECTOR)]
        outcome = on(replace(DISK, window=8), requests)
        assert [fact.number for fact in outcome.facts] == [0, 1, 2]

    @pytest.mark.parametrize(("age_limit", "second"), [(2.1, 1), (2.100001, 3)])
    def test_a_request_beyond_the_age_limit_is_next(self, age_limit: float, second: int) -> None:
        limited = replace(DISK, window=3, age_limit_ns=round(age_limit * MS))
        assert on(limited, self.QUEUE).facts[1].number == second

    @pytest.mark.parametrize(("aging_ppm", "second"), [(0, 2), (499_999, 2), (500_001, 1)])
    def test_waiting_counts_against_the_time_to_the_place(
        self, aging_ppm: int, second: int
    ) -> None:
        # At 3.2 sector 50 is 1.8 ms away and has waited for 2.2; sector 40 is 0.8 away, for 0.2.
        queue = [read(0, 30 * SECTOR), read(1, 50 * SECTOR), read(3, 40 * SECTOR)]
        outcome = on(replace(DISK, window=8, aging_ppm=aging_ppm), queue)
        assert outcome.facts[1].number == second

    @pytest.mark.parametrize(
        ("order", "numbers"),
        [
            (Order.POSITION, [0, 3, 1, 2]),
            (Order.DISTANCE, [0, 1, 2, 3]),
            (Order.SWEEP, [0, 3, 2, 1]),
        ],
    )
    def test_each_scheduler_orders_the_queue_by_its_rule(
        self, order: Order, numbers: list[int]
    ) -> None:
        # The arm is over cylinder 4 at 14.1; the others lie 2 and 3 cylinders back, and 4 ahead,
        # where their sectors are under the head at 19.0, 20.0 and 18.2.
        requests = [read(0, 8 * TRACK)]
        requests += [read(1, 4 * TRACK + 70 * SECTOR), read(1, 2 * TRACK + 90 * SECTOR)]
        requests += [read(1, 16 * TRACK + 2 * SECTOR)]
        outcome = on(replace(DISK, window=8, order=order), requests)
        assert [fact.number for fact in outcome.facts] == numbers

    def test_a_flush_without_dirty_data_takes_its_overhead(self) -> None:
        requests = [read(0, 0), read(1, 50 * SECTOR), Request(2 * MS, Op.FLUSH, 0, 0)]
        assert done(on(DISK, requests))[2] == 2.1


class TestReadAhead:
    # The first ten sectors are read from 10 to 11 ms, the next ten ahead until 12 ms.
    DISK = replace(DISK, read_ahead_bytes=10 * SECTOR, read_behind_bytes=10 * SECTOR)
    FIRST = read(0, 0, 10 * SECTOR)

    @pytest.mark.parametrize(
        ("then", "completion"),
        [
            (read(20, 3 * SECTOR), 20.1),  # (a) already read
            (read(11, 10 * SECTOR, 5 * SECTOR), 11.5),  # (b) about to be read
            (read(11, 10 * SECTOR, 20 * SECTOR), 13.0),  # (b) extends beyond
            (read(11.8, 10 * SECTOR, 5 * SECTOR), 11.9),  # (b) just passed
            (read(20, 10 * SECTOR, 5 * SECTOR), 20.1),  # (c) read ahead
            (read(20, 10 * SECTOR, 15 * SECTOR), 22.5),  # (d) sector 20 is under the head at 22.0
            (read(20, 20 * SECTOR, 5 * SECTOR), 22.5),  # (d) nothing of it buffered
            (read(20, 21 * SECTOR, 4 * SECTOR), 22.5),  # not buffered at all
        ],
    )
    def test_a_read_after_a_read_is_served_by_the_read_ahead(
        self, then: Request, completion: float
    ) -> None:
        assert done(on(self.DISK, [self.FIRST, then])) == [11.0, completion]

    def test_without_read_ahead_every_read_goes_to_the_media(self) -> None:
        requests = [self.FIRST, read(20, 3 * SECTOR)]
        assert done(on(replace(self.DISK, read_ahead_bytes=0), requests)) == [11.0, 20.4]

    def test_a_write_pauses_the_read_ahead(self) -> None:
        # It begins at 11.5; half of the next ten sectors have passed by then, but the head moved.
        requests = [self.FIRST, write(11.5, 50 * SECTOR), read(40, 14 * SECTOR)]
        assert done(on(self.DISK, requests)) == [11.0, 15.1, 40.1]
        requests[2] = read(40, 15 * SECTOR)
        assert done(on(self.DISK, requests)) == [11.0, 15.1, 41.6]

    def test_alternating_streams_use_one_segment_each(self) -> None:
        far = 5 * TRACK
        requests = [self.FIRST, read(100, far), read(200, 10 * SECTOR), read(300, far + SECTOR)]
        both = done(on(replace(self.DISK, segments=2), requests))
        assert [both[2], both[3]] == [200.1, 300.1]
        one = done(on(self.DISK, requests))
        assert one[2] > 201

    def test_data_delivered_to_the_host_may_be_dropped(self) -> None:
        forgets = replace(self.DISK, read_behind_bytes=0)
        requests = [self.FIRST, read(20, 3 * SECTOR), read(60, 10 * SECTOR)]
        assert done(on(self.DISK, requests)) == [11.0, 20.1, 60.1]
        assert done(on(forgets, requests))[1] == 20.4

    def test_read_ahead_may_cover_the_whole_track(self) -> None:
        tracks = replace(
            self.DISK, read_ahead_bytes=2 * TRACK, read_behind_bytes=2 * TRACK, read_tracks=True
        )
        first = read(0, 50 * SECTOR)
        assert done(on(tracks, [first, read(30, 3 * SECTOR)]))[1] == 30.1
        assert done(on(tracks, [first, read(30, 99 * SECTOR)]))[1] == 30.1
        assert done(on(tracks, [first, read(30, TRACK + 5 * SECTOR)]))[1] > 30.2

    def test_the_buffer_holds_only_the_last_sectors(self) -> None:
        # After 20 sectors, the last ten are in the buffer.
        requests = [read(0, 0, 20 * SECTOR), read(20, 10 * SECTOR), read(21, 9 * SECTOR)]
        assert done(on(self.DISK, requests)) == [12.0, 20.1, 31.0]

    def test_a_segment_is_a_ring_in_which_the_read_ahead_replaces_what_was_read(self) -> None:
        # Read until 15 ms: sectors 0 to 50, of which the ring keeps the last 20.
        ring = replace(self.DISK, read_ahead_bytes=40 * SECTOR, segment_bytes=20 * SECTOR)
        assert done(on(ring, [self.FIRST, read(13, 15 * SECTOR)]))[1] == 13.1  # 10 to 30
        assert done(on(ring, [self.FIRST, read(13, 9 * SECTOR)]))[1] == 21.0
        assert done(on(ring, [self.FIRST, read(40, 30 * SECTOR)]))[1] == 40.1
        assert done(on(ring, [self.FIRST, read(40, 29 * SECTOR)]))[1] == 43.0
        stopped = [self.FIRST, write(13, 50 * SECTOR), read(40, 9 * SECTOR)]
        assert done(on(ring, stopped))[2] == 41.0
        stopped[2] = read(40, 10 * SECTOR)
        assert done(on(ring, stopped))[2] == 40.1

    @pytest.mark.parametrize(("to", "track"), [(0, 3), (1, 1), (2, 1)])
    def test_read_ahead_may_stop_at_the_end_of_the_track(self, to: int, track: int) -> None:
        disk = replace(self.DISK, read_ahead_bytes=2 * TRACK, read_stop_tracks=to)
        hdd = Hdd(Clock(), disk)
        segment = ReadSegment(5 * SECTOR, 10 * SECTOR, 0)
        hdd.segments.append(segment)
        hdd.read_on(segment, 5 * SECTOR, 10 * SECTOR, 0)
        assert hdd.reading is not None
        assert hdd.reading.stop == min(track * TRACK, 10 * SECTOR + 2 * TRACK)

    def test_a_stream_from_an_earlier_track_reads_the_next_one_ahead(self) -> None:
        disk = replace(self.DISK, read_ahead_bytes=9 * TRACK, read_stop_tracks=2)
        hdd = Hdd(Clock(), replace(disk, read_behind_bytes=9 * TRACK))
        segment = ReadSegment(90 * SECTOR, TRACK + 10 * SECTOR, 0)
        hdd.segments.append(segment)
        hdd.read_on(segment, 90 * SECTOR, TRACK + 10 * SECTOR, 0)
        assert hdd.reading is not None
        assert hdd.reading.stop == 3 * TRACK

    def test_a_hit_does_not_read_on_where_the_read_ahead_would_stop_at_once(self) -> None:
        disk = replace(self.DISK, read_ahead_bytes=9 * TRACK, read_stop_tracks=1)
        requests = [self.FIRST, read(40, 20 * SECTOR), read(40.2, 30 * SECTOR)]
        assert done(on(disk, requests)) == [11.0, 40.1, 40.3]

    def test_a_read_may_end_where_the_last_zone_does(self) -> None:
        # Geometries from a catalog end their list of zones with the end of the disk.
        end = 4 * TRACK
        disk = replace(self.DISK, zone_byte=[0, end], capacity_bytes=end)
        last = read(0, end - 10 * SECTOR, 10 * SECTOR)
        then = read(5, end - 20 * SECTOR, 5 * SECTOR)
        assert len(done(on(disk, [last, then]))) == 2

    def test_read_ahead_stops_at_the_end_of_the_disk(self) -> None:
        hdd = Hdd(Clock(), replace(self.DISK, capacity_bytes=64 * SECTOR))
        segment = ReadSegment(50 * SECTOR, 60 * SECTOR, 0)
        hdd.segments.append(segment)
        hdd.read_on(segment, 50 * SECTOR, 60 * SECTOR, 0)
        assert hdd.reading is not None
        assert hdd.reading.stop == 64 * SECTOR


class TestWriteCache:
    # Four single sectors, far apart.
    DISK = replace(
        DISK, write_cache_bytes=4 * SECTOR, write_cache_ranges=4, destage_window=4, flush_ns=MS
    )

    def test_a_cached_write_completes_before_its_destage(self) -> None:
        outcome = on(self.DISK, [write(0, 50 * SECTOR)])
        assert done(outcome) == [0.1]
        assert outcome.counters["slow_destages"] == 1

    def test_overheads_depend_on_whether_a_write_is_cached_and_on_what_it_follows(self) -> None:
        other = [0, 10 * US, 20 * US, 30 * US]  # read, hit, write, cached write
        disk = replace(self.DISK, write_hit_ns=50 * US, after_other_ns=other)
        requests = [write(0, 0), write(100, SECTOR), read(200, 10 * TRACK), write(300, 49 * SECTOR)]
        requests += [Request(400 * MS, Op.FLUSH, 0, 0)]
        requests += [write(500, 50 * SECTOR), read(500.2, 50 * SECTOR)]
        ends = done(on(disk, requests))
        assert [ends[0], ends[1], ends[3]] == [0.05, 100.05, 300.03]  # a flush is of neither kind
        assert [ends[5], ends[6]] == [500.05, 500.21]

    def test_a_cached_write_that_continues_no_write_costs_as_much_as_after_a_read(self) -> None:
        other = [0, 10 * US, 20 * US, 30 * US]  # read, hit, write, cached write
        disk = replace(self.DISK, write_hit_ns=50 * US, after_other_ns=other)
        requests = [write(0, 0), write(100, SECTOR), write(200, SECTOR), write(300, 3 * SECTOR)]
        assert done(on(disk, requests)) == [0.05, 100.05, 200.03, 300.03]
        through = replace(disk, write_cache_bytes=0, write_ns=50 * US)
        near, far = (done(on(through, [write(0, 0), write(90, n * SECTOR)]))[1] for n in (1, 2))
        assert far - near == pytest.approx(0.1)  # to the platters: one overhead, a sector apart

    def test_a_write_with_fua_completes_on_the_platters(self) -> None:
        hdd = Hdd(Clock(), self.DISK)
        ends: list[int] = []
        hdd.submit(Op.WRITE | FUA, 50 * SECTOR, SECTOR, lambda: ends.append(hdd.clock.now))
        hdd.clock.run()
        assert ends == [5100 * US]

    def test_a_flush_waits_for_all_acknowledged_writes(self) -> None:
        # Sectors 90 and 50 are written at 5.0 and 9.0; the flush ignores a third, later one.
        flush = Request(MS, Op.FLUSH, 0, 0)
        requests = [write(0, 50 * SECTOR), write(0.5, 90 * SECTOR), flush, write(2, 70 * SECTOR)]
        assert done(on(self.DISK, requests)) == [0.1, 0.6, 10.1, 2.1]

    def test_nothing_waits_for_a_write_cache_that_survives_a_loss_of_power(self) -> None:
        disk = replace(self.DISK, is_protected=True)
        requests = [write(0, 50 * SECTOR), Request(MS // 2, Op.FLUSH, 0, 0)]
        assert done(on(disk, requests)) == [0.1, 0.6]
        hdd = Hdd(Clock(), disk)
        ends: list[int] = []
        hdd.submit(Op.WRITE | FUA, 50 * SECTOR, SECTOR, lambda: ends.append(hdd.clock.now))
        hdd.clock.run()
        assert ends == [100 * US]

    def test_a_write_without_room_waits_for_a_destage(self) -> None:
        requests = [write(0, place * 20 * SECTOR) for place in (1, 2, 3, 4)]
        requests += [write(0, 10 * SECTOR), read(0, 3 * TRACK)]
        # The first is on the platters at 2.1.
        assert done(on(self.DISK, requests))[:5] == [0.1, 0.1, 0.1, 0.1, 2.1]

    def test_cached_data_are_read_from_the_cache(self) -> None:
        requests = [write(0, 50 * SECTOR, 2 * SECTOR), read(1, 51 * SECTOR)]
        outcome = on(self.DISK, requests)
        assert done(outcome) == [0.1, 1.1]
        assert outcome.counters["slow_write_cache_hits"] == 1

    def test_adjacent_writes_are_merged(self) -> None:
        # The first is in flight when the others arrive.
        requests = [write(0, 50 * SECTOR)]
        requests += [write(1, place * SECTOR) for place in (10, 11, 9)] + [read(60, 0)]
        outcome = on(self.DISK, requests)
        assert outcome.counters["slow_destages"] == 2
        assert outcome.counters["slow_write_bytes"] == 4 * SECTOR

    def test_a_crowded_cache_alternates_destages_and_reads(self) -> None:
        # Four ranges wait; the arm serves one of the reads between two destages.
        requests = [read(0, 0)] + [write(1, place * TRACK) for place in (2, 4, 6, 8)]
        requests += [read(1, place * TRACK) for place in (3, 5)]
        outcome = on(self.DISK, requests)
        first, second = done(outcome)[5:]
        assert first < second
        # Without writes the reads are served at once.
        assert first > done(on(self.DISK, [requests[0], *requests[5:]]))[1]

    def test_a_read_waits_for_as_many_destages_as_writes_wait_for_room(self) -> None:
        hdd = Hdd(Clock(), self.DISK)
        for place in range(24):
            hdd.submit(Op.WRITE, 3 * place % 100 * SECTOR, SECTOR, lambda: None)
        seen = []

        def after_a_read() -> None:
            seen.append((hdd.counters["destages"], len(hdd.without_room)))
            if len(seen) < 2:
                hdd.submit(Op.READ, 5 * TRACK, SECTOR, after_a_read)

        hdd.submit(Op.READ, 4 * TRACK, SECTOR, after_a_read)
        hdd.clock.run()
        # One destage begins when the first read is complete, 18 as 18 writes wait.
        assert seen == [(3, 18), (3 + 1 + 18, 0)]

    def test_a_disk_that_takes_turns_serves_a_read_after_each_destage(self) -> None:
        full = [write(0, 3 * place % 100 * SECTOR) for place in range(24)]
        disk = replace(self.DISK, takes_turns=True)
        hdd = Hdd(Clock(), disk)
        seen: list[int] = []

        def again() -> None:
            seen.append(hdd.counters["destages"])
            if len(seen) < 3:
                hdd.submit(Op.READ, (4 + len(seen)) * TRACK, SECTOR, again)

        for request in full:
            hdd.submit(request.op, request.offset, request.length, lambda: None)
        hdd.submit(Op.READ, 4 * TRACK, SECTOR, again)
        hdd.clock.run()
        # When a read is complete the next destage has begun: one lies between two reads.
        assert seen == [2, 3, 4]

    @pytest.mark.parametrize(
        ("place", "age_limit_ns", "completion"),
        [
            (4 * TRACK + SECTOR, 1000 * MS, 12.2),  # the read-ahead serves it
            (4 * TRACK + SECTOR, 1 * MS, 32.2),  # but not before writes past the age limit
            (8 * TRACK, 1000 * MS, 34.1),
        ],
    )
    def test_a_read_without_movement_comes_before_destages(
        self, place: int, age_limit_ns: int, completion: float
    ) -> None:
        reads_ahead = {"read_ahead_bytes": 50 * SECTOR, "read_behind_bytes": 100 * SECTOR}
        disk = replace(self.DISK, segments=1, age_limit_ns=age_limit_ns, **reads_ahead)
        writes = [write(0, 3 * place % 100 * SECTOR) for place in range(24)]
        requests = [read(0, 4 * TRACK), *writes, read(0, place)]
        ends = done(on(disk, requests))
        assert (ends[0], ends[-1]) == (12.1, completion)


class TestTier:
    def tier(self, level: Level, members: int, chunk: int = PAGE) -> Tier:
        parameters = array(level, members, chunk, DISK)
        return Tier(parameters, [Hdd(Clock(), DISK) for _ in range(members)])

    def test_a_stripe_distributes_chunks_in_turn(self) -> None:
        tier = self.tier(Level.STRIPE, 3)
        assert [tier.place(k) for k in range(4)] == [(0, 0), (1, 0), (2, 0), (0, PAGE)]

    def test_raid5_has_the_left_symmetric_layout(self) -> None:
        tier = self.tier(Level.RAID5, 4)
        layout = [["P"] * 4 for _ in range(4)]
        for chunk in range(12):
            member, start = tier.place(chunk)
            layout[start // PAGE][member] = str(chunk)
        assert [" ".join(row) for row in layout] == ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11"]

    def test_a_member_reads_adjacent_chunks_in_one_request(self) -> None:
        tier = self.tier(Level.STRIPE, 2)
        assert list(tier.ranges(PAGE // 2, 3 * PAGE)) == [
            Range(0, PAGE // 2, 2 * PAGE),
            Range(1, 0, 3 * PAGE // 2),
        ]

    def test_parity_between_two_chunks_splits_a_read(self) -> None:
        # Chunks 0 to 7 of 3 members: 0 1 P / 3 P 2 / P 4 5 / 6 7 P
        tier = self.tier(Level.RAID5, 3)
        assert list(tier.ranges(0, 8 * PAGE)) == [
            Range(1, 0, PAGE),  # issued because chunk 4 does not continue it
            Range(0, 0, 2 * PAGE),  # likewise chunk 6
            Range(0, 3 * PAGE, 4 * PAGE),
            Range(1, 2 * PAGE, 4 * PAGE),
            Range(2, PAGE, 3 * PAGE),
        ]

    def test_a_row_is_split_where_the_set_of_written_chunks_changes(self) -> None:
        assert row_segments(10, 7, 12, 15) == [Segment(7, 2, 5, [1])]
        # From 6 of chunk 0 to 3 of chunk 1: two disjoint parts.
        assert row_segments(10, 7, 6, 13) == [Segment(7, 0, 3, [1]), Segment(7, 6, 10, [0])]
        # From 3 of chunk 0 to 6 of chunk 1: in the middle both.
        assert row_segments(10, 7, 3, 16) == [
            Segment(7, 0, 3, [1]),
            Segment(7, 3, 6, [0, 1]),
            Segment(7, 6, 10, [0]),
        ]
        # With whole chunks in between.
        assert row_segments(10, 7, 6, 33) == [
            Segment(7, 0, 3, [1, 2, 3]),
            Segment(7, 3, 6, [1, 2]),
            Segment(7, 6, 10, [0, 1, 2]),
        ]
        assert row_segments(10, 7, 0, 40) == [Segment(7, 0, 10, [0, 1, 2, 3])]

    def run(self, members: int, request: Request) -> Outcome:
        return both([request], OPEN, NO_CACHE, array(Level.RAID5, members, PAGE, DISK))

    def bytes(self, outcome: Outcome) -> tuple[int, int]:
        return outcome.counters["slow_read_bytes"], outcome.counters["slow_write_bytes"]

    def test_a_small_write_takes_four_accesses_and_a_revolution(self) -> None:
        # Data and parity are read at 10.0 to 10.1; their sector is under the head again at 20.0.
        outcome = self.run(5, write(0, 0))
        assert self.bytes(outcome) == (2 * SECTOR, 2 * SECTOR)
        assert done(outcome) == [20.1]

    def test_parity_is_computed_from_the_other_chunks_if_that_reads_less(self) -> None:
        # 4 data chunks: one written reads 2 rather than 3; two written read the 2 others.
        assert self.bytes(self.run(5, write(0, 0, PAGE))) == (2 * PAGE, 2 * PAGE)
        assert self.bytes(self.run(5, write(0, 0, 2 * PAGE))) == (2 * PAGE, 3 * PAGE)
        assert self.bytes(self.run(5, write(0, 0, 3 * PAGE))) == (1 * PAGE, 4 * PAGE)

    def test_a_full_stripe_is_written_without_reads(self) -> None:
        outcome = self.run(5, write(0, 0, 4 * PAGE))
        assert self.bytes(outcome) == (0, 5 * PAGE)
        assert done(outcome) == [10.8]

    def test_a_flush_goes_to_every_member(self) -> None:
        outcome = self.run(5, Request(0, Op.FLUSH, 0, 0))
        assert done(outcome) == [0.1]


class TestSsd:
    SSD = SSD._replace(
        command_ns=10 * US,
        read_ns=50 * US,
        program_ns=1000 * US,
        write_ns=5 * US,
        buffer_ns=2000 * US,
        link_bytes_per_s=10**9,  # a byte per nanosecond
    )

    def done(self, device: SsdParameters, *requests: Request) -> list[int]:
        return [fact.done_ns for fact in by_number(on(device, list(requests)))]

    def test_dies_read_in_parallel(self) -> None:
        two = read(0, 0, 2 * PAGE)
        assert self.done(self.SSD._replace(dies=2), two) == [10 * US + 50 * US + PAGE]
        assert self.done(self.SSD._replace(dies=1), two) == [10 * US + 100 * US + PAGE]

    def test_reads_of_one_die_queue(self) -> None:
        requests = [read(0, 0, PAGE), read(0, 2 * PAGE, PAGE), read(0, PAGE, PAGE)]
        first, again, other = self.done(self.SSD._replace(dies=2), *requests)
        assert (again - first, other - first) == (50 * US, 0)

    def test_the_link_transfers_one_request_at_a_time(self) -> None:
        slow_link = self.SSD._replace(dies=8, link_bytes_per_s=10**8)
        requests = [read(0, die * PAGE, PAGE) for die in range(3)]
        wire = 10 * PAGE  # nanoseconds
        begin = 10 * US
        assert self.done(slow_link, *requests) == [
            begin + 50 * US + wire,  # the link is free again when the die read ends
            begin + 50 * US + wire,
            begin + 3 * wire,
        ]

    def test_the_controller_accepts_one_command_per_interval(self) -> None:
        flushes = [Request(0, Op.FLUSH, 0, 0) for _ in range(3)]
        controller = self.SSD._replace(interval_ns=7 * US)
        assert self.done(controller, *flushes) == [10 * US, 17 * US, 24 * US]

    def test_a_write_completes_when_it_is_in_the_buffer(self) -> None:
        assert self.done(self.SSD, write(0, 0, PAGE)) == [10 * US + PAGE + 5 * US]

    def test_units_of_a_page_are_read_at_once(self) -> None:
        four = read(0, 2 * PAGE, 4 * PAGE)  # of two pages
        paged = self.SSD._replace(dies=2, page_units=4)
        assert self.done(paged, four) == [10 * US + 50 * US + 2 * PAGE]
        first, same, other = self.done(paged, *(read(0, unit * PAGE, PAGE) for unit in (0, 3, 4)))
        assert (same - first, other - first) == (50 * US, 0)

    def test_writes_of_one_lane_queue(self) -> None:
        """By a hash of their addresses units 1 and 2 have the same lane of two, 4 the other."""
        free = self.SSD._replace(program_ns=0, link_bytes_per_s=10**18)
        lanes = free._replace(write_lanes=2, write_ns=100 * US)
        writes = [write(0, unit * PAGE, PAGE) for unit in (1, 2, 4)]
        assert self.done(lanes, *writes) == [110 * US, 210 * US, 110 * US]

    def test_an_idle_drive_wakes_up(self) -> None:
        asleep = self.SSD._replace(wake_ns=30 * US, sleep_ns=MS)
        took = 10 * US + 50 * US + PAGE
        times = (0, 1, 1 + 1.063, 1 + 2.2)  # the second ends at 1.064: 0.999 and more than 1 later
        ends = self.done(asleep, *(read(time, 0, PAGE) for time in times))
        waits = [end - round(time * MS) for end, time in zip(ends, times, strict=True)]
        assert waits == [took, took, took, took + 30 * US]

    def test_with_a_full_buffer_writes_wait_for_the_dies(self) -> None:
        one, two, three = self.done(self.SSD, *[write(0, 0, PAGE)] * 3)
        buffered = 10 * US + PAGE + 5 * US
        assert (one, two) == (buffered, buffered + PAGE)
        assert three == buffered + 3000 * US - 2000 * US

    def test_the_cost_of_a_scattered_write_is_per_request(self) -> None:
        scatter = self.SSD._replace(scatter_ns=300 * US, buffer_ns=0)
        buffered = 10 * US + 2 * PAGE + 5 * US
        assert self.done(scatter, write(0, 0, 2 * PAGE)) == [buffered + 2300 * US]

    def test_by_stream_a_scattered_write_costs_more_and_one_that_continues_does_not(self) -> None:
        scatter = self.SSD._replace(scatter_ns=300 * US, buffer_ns=0, is_by_stream=1, write_ns=0)
        pages = [0, 9, 1, 10, 3]  # two streams, begun by 0 and 9; 3 belongs to neither
        ends = self.done(scatter, *[write(0, page * PAGE, PAGE) for page in pages])
        took = [1300, 1300, 1000, 1000, 1300]
        assert ends == [10 * US + PAGE + sum(took[: n + 1]) * US for n in range(5)]
        large = self.done(scatter, write(0, 0, 2 * PAGE))
        assert large == [10 * US + 2 * PAGE + 2300 * US]

    def test_a_ninth_stream_replaces_the_one_that_was_begun_first(self) -> None:
        scatter = self.SSD._replace(scatter_ns=300 * US, buffer_ns=0, is_by_stream=1, write_ns=0)
        begun = [write(0, 100 * n * PAGE, PAGE) for n in range(9)]
        last, first, second = self.done(
            scatter, *begun, write(0, 1 * PAGE, PAGE), write(0, 201 * PAGE, PAGE)
        )[-3:]
        assert (first - last, second - first) == (1300 * US, 1000 * US)

    def test_writes_enter_no_faster_than_the_pipe(self) -> None:
        slow = self.SSD._replace(pipe_bytes_per_s=10**8, program_ns=0, write_ns=0)
        begin, piped = 10 * US, 10 * PAGE
        assert self.done(slow, *[write(0, 0, PAGE)] * 3) == [begin + n * piped for n in (1, 2, 3)]
        assert self.done(slow, read(0, 0, PAGE)) == [begin + 50 * US + PAGE]

    def test_large_map_entries_are_programmed_whole_but_not_twice_by_a_stream(self) -> None:
        entries = self.SSD._replace(map_units=4, buffer_ns=0, write_ns=0)
        first, same, next_one, other = self.done(
            entries,
            write(0, 0, PAGE),
            write(0, PAGE, PAGE),  # in the entry that the stream began
            write(0, 2 * PAGE, 4 * PAGE),  # its rest, and the next one
            write(0, 5 * PAGE, PAGE),  # not where the stream ended
        )
        assert first == 10 * US + PAGE + 4000 * US
        assert same == 10 * US + 2 * PAGE  # nothing to program
        assert (next_one, other) == (first + 4000 * US, first + 8000 * US)

    SLC = SSD._replace(
        buffer_ns=0, write_ns=0, slc_units=2, slc_units_per_s=100, slc_idle_ns=5 * MS,
        native_program_ns=3000 * US,
    )  # fmt: skip

    def test_an_slc_cache_fills_and_is_folded_while_no_write_arrives(self) -> None:
        begin = 10 * US + PAGE
        ends = self.done(
            self.SLC,
            write(0, 0, 3 * PAGE),  # two units into the cache, one past it
            write(100, 0, PAGE),  # 9.5 units' time of folding: it is empty
            write(110, 0, PAGE),  # not a unit's time after 5 ms: one unit of it in use
            write(120, 0, PAGE),  # full
            write(135, 0, PAGE),  # one was folded
        )
        took = [5000, 1000, 1000, 3000, 1000]
        first = 10 * US + 3 * PAGE + took[0] * US
        later = [at * MS + begin + time * US for at, time in zip((100, 110, 120, 135), took[1:])]
        assert ends == [first, *later]

    def test_the_full_slc_cache_is_folded_while_writes_go_on(self) -> None:
        """Two units are in it; the three units after them take longer."""
        folding = self.SLC._replace(folding_units=3, folding_program_ns=4000 * US)
        begin = 10 * US + PAGE
        took = [1000, 1000, 4000, 4000, 4000, 3000, 3000]
        without_idle = folding._replace(slc_idle_ns=MS * 10**6)
        ends = self.done(without_idle, *(write(20 * number, 0, PAGE) for number in range(7)))
        assert ends == [20 * n * MS + begin + time * US for n, time in enumerate(took)]

    def test_beyond_the_slc_cache_erased_flash_runs_out(self) -> None:
        """Room for two units: one is written there, one is taken by what is folded while idle."""
        cached = self.SLC._replace(erased_units=2, folded_program_ns=7000 * US)
        begin = 10 * US + PAGE
        ends = self.done(
            cached,
            write(0, 0, 3 * PAGE),  # two units into the cache, one past it: one is left
            write(20, 0, PAGE),  # a unit was folded, which takes it; the cache has room for one
            write(21, 0, PAGE),  # the cache is full, and nothing erased
            write(37, 0, PAGE),  # a unit was folded: into the cache
            write(38, 0, PAGE),
        )
        took = [5000, 1000, 7000, 1000, 7000]
        later = [
            at * MS + begin + time * US for at, time in zip((20, 21, 37, 38), took[1:], strict=True)
        ]
        assert ends == [10 * US + 3 * PAGE + took[0] * US, *later]

    def test_a_drive_without_a_volatile_cache_is_sent_no_flush(self) -> None:
        flush = Request(0, Op.FLUSH, 0, 0)
        assert self.done(self.SSD._replace(needs_flush=0), flush) == [0]

    def test_a_read_suspends_programming(self) -> None:
        suspending = self.SSD._replace(suspend_ns=20 * US, buffer_ns=0)
        first, reading, second = self.done(
            suspending, write(0, 0, PAGE), read(0.1, 0, PAGE), write(0.1, 0, PAGE)
        )
        assert reading == 100 * US + 10 * US + 20 * US + 50 * US + PAGE
        assert second == first + 20 * US + 50 * US + 1000 * US

    # Dies are given whole programs: here of 2 units, so 2 ms each, and 100 us of it are the load.
    WHOLE = SSD._replace(
        program_units=2, load_ns=100 * US, suspend_ns=20 * US, write_ns=0, dies=1, buffer_ns=0
    )

    def test_a_program_begins_when_its_units_are_there(self) -> None:
        one, two, three = self.done(self.WHOLE, *[write(0, 0, PAGE)] * 3)
        assert one == 10 * US + PAGE  # nothing to wait for yet
        assert two == one + PAGE + 2000 * US
        assert three == two  # waits for the program that is there; its own is not complete

    def test_a_program_is_not_suspended_while_its_data_cross_the_channel(self) -> None:
        begin = 10 * US + 2 * PAGE  # of the program, which ends 2 ms later
        for at_us, wait_ns in (
            (108, begin + 2000 * US - 118 * US),  # at the die within the load: until the end
            (109, 20 * US),  # after it
            (2000, begin + 2000 * US - 2010 * US),  # the end is nearer than a suspension
            (2009, 0),
        ):
            requests = [write(0, 0, 2 * PAGE), read(at_us / 1000, 0, PAGE)]
            _, reading = self.done(self.WHOLE, *requests)
            assert reading == (at_us + 10 + 50) * US + PAGE + wait_ns, at_us

    def test_without_protection_a_flush_and_fua_complete_the_program(self) -> None:
        volatile = self.WHOLE._replace(is_protected=0, buffer_ns=10 * MS)
        first, flushed = self.done(volatile, write(0, 0, PAGE), Request(MS, Op.FLUSH, 0, 0))
        assert (first, flushed) == (10 * US + PAGE, MS + 10 * US + 2000 * US)
        ssd = Ssd(Clock(), volatile)
        ends: list[int] = []
        ssd.submit(Op.WRITE | FUA, 0, PAGE, lambda: ends.append(ssd.clock.now))
        ssd.clock.run()
        assert ends == [10 * US + PAGE + 2000 * US]

    def test_collection_reads_and_programs_a_program_for_what_scattered_writes_owe(self) -> None:
        collecting = self.WHOLE._replace(scatter_ns=1200 * US, collect_ns=400 * US)
        first, second, third = self.done(
            collecting, write(0, 0, PAGE), write(50, 9 * PAGE, 2 * PAGE), write(100, 5 * PAGE, PAGE)
        )
        begin = 10 * US + PAGE
        assert first == begin  # 1.2 ms owed
        # a program; 2.4 ms owed, what a collection costs: its read, after the program, and another
        assert second == 50 * MS + begin + PAGE + 2000 * US + 400 * US + 2000 * US
        assert third == 100 * MS + begin + 2000 * US  # its unit completes a program; 1.2 ms owed


class TestCache:
    """A slow tier that takes 1 ms per request, and a fast one that takes 0.1 ms."""

    SLOW = single(SSD._replace(command_ns=MS))
    FAST = single(SSD._replace(command_ns=MS // 10))

    def run(
        self, *requests: Request, cache: CacheParameters = CACHE, slow: TierParameters = SLOW
    ) -> Outcome:
        return both(requests, OPEN, cache, slow, self.FAST)

    def reasons(
        self, *requests: Request, cache: CacheParameters = CACHE
    ) -> list[tuple[Path, Reason]]:
        return [(f.path, f.reason) for f in by_number(self.run(*requests, cache=cache))]

    HIT = (Path.HIT, Reason.NONE)
    COLD = (Path.MISS, Reason.COLD)
    NOT_HOT = (Path.MISS, Reason.NOT_HOT)
    BUSY = (Path.MISS, Reason.BUSY)
    FILLING = (Path.MISS, Reason.FILLING)
    EVICTED = (Path.MISS, Reason.EVICTED)
    OVERWRITTEN = (Path.MISS, Reason.OVERWRITTEN)
    SEQUENTIAL = (Path.BYPASS, Reason.SEQUENTIAL)
    WRITE = (Path.BYPASS, Reason.WRITE)

    def test_a_page_is_first_cold_then_filling_then_a_hit(self) -> None:
        # Read until 1.0; its page is read from the slow tier until 2.0 and written until 2.1.
        requests = [read(0, 0), read(2.0999, 512), read(2.1, 512)]
        outcome = self.run(*requests)
        assert [(f.path, f.reason) for f in by_number(outcome)] == [
            self.COLD,
            self.FILLING,
            self.HIT,
        ]
        assert done(outcome) == [1.0, 3.0999, 2.2]
        counters = {name: count for name, count in outcome.counters.items() if count > 0}
        assert counters == {
            "fills_started": 1,
            "fills_completed": 1,
            "slow_read_bytes": 2 * SECTOR + PAGE,
            "slow_requests_ns": 3 * MS,  # one after the other
            "slow_in_use_ns": 3 * MS,
            "fast_read_bytes": SECTOR,
            "fast_write_bytes": PAGE,
            "fast_requests_ns": 2 * MS // 10,
            "fast_in_use_ns": 2 * MS // 10,
        }

    def test_the_fill_of_a_page_read_whole_does_not_read_it_again(self) -> None:
        assert self.reasons(read(0, 0, PAGE), read(1.1, 0)) == [self.COLD, self.HIT]

    def test_the_fill_of_the_last_page_ends_at_the_capacity(self) -> None:
        short = single(SSD._replace(command_ns=MS, capacity_bytes=PAGE + 2 * SECTOR))
        outcome = self.run(read(0, PAGE), slow=short)
        assert outcome.counters["slow_read_bytes"] == 3 * SECTOR
        assert outcome.counters["fast_write_bytes"] == PAGE

    def test_a_write_dooms_a_fill_in_flight(self) -> None:
        requests = [read(0, 0), write(1.5, 0), read(1.6, 0), read(3, 0)]
        outcome = self.run(*requests)
        assert [(f.path, f.reason) for f in by_number(outcome)] == [
            self.COLD,
            self.WRITE,
            self.FILLING,
            self.OVERWRITTEN,
        ]
        assert outcome.counters["fills_doomed"] == 1
        assert outcome.counters["fills_completed"] == 1  # by the last read

    def test_the_least_recently_used_page_is_evicted(self) -> None:
        two = replace(CACHE, pages=2)
        pages = [0, 1, 0, 2, 0, 1]  # page 2 evicts page 1
        requests = [read(10 * at, PAGE * page) for at, page in enumerate(pages)]
        assert self.reasons(*requests, cache=two)[2:] == [
            self.HIT,
            self.COLD,
            self.HIT,
            self.EVICTED,
        ]

    def test_the_number_of_fills_in_flight_is_limited(self) -> None:
        one = replace(CACHE, max_fills=1)
        requests = [read(0, 0), read(0, PAGE), read(5, 0), read(5, PAGE)]
        assert self.reasons(*requests, cache=one) == [self.COLD, self.COLD, self.HIT, self.BUSY]

    def test_a_page_still_filling_is_not_evicted(self) -> None:
        one = replace(CACHE, pages=1)
        requests = [read(0, 0), read(0, PAGE), read(5, 0), read(5, PAGE)]
        assert self.reasons(*requests, cache=one) == [self.COLD, self.COLD, self.HIT, self.BUSY]

    def test_a_page_below_the_touch_threshold_is_not_admitted(self) -> None:
        twice = replace(CACHE, admission=("touches", 2))
        requests = [read(at, 0) for at in (0, 5, 10)]
        assert self.reasons(*requests, cache=twice) == [self.COLD, self.NOT_HOT, self.HIT]

    def test_a_read_only_cache_drops_written_pages(self) -> None:
        requests = [read(0, 0), write(5, 0), read(10, 0)]
        assert self.reasons(*requests) == [self.COLD, self.WRITE, self.OVERWRITTEN]

    def test_a_write_through_cache_updates_written_pages(self) -> None:
        through = replace(CACHE, mode=Mode.WRITE_THROUGH)
        requests = [write(0, 0), read(5, 0), write(10, 0), read(15, 0)]
        assert self.reasons(*requests, cache=through) == [
            self.WRITE,
            self.HIT,
            self.WRITE,
            self.HIT,
        ]

    def test_a_discard_drops_pages(self) -> None:
        requests = [read(0, 0), Request(5 * MS, Op.DISCARD, 0, SECTOR), read(10, 0)]
        assert self.reasons(*requests)[1:] == [(Path.BYPASS, Reason.DISCARD), self.OVERWRITTEN]

    def test_the_missing_parts_are_read_in_one_request(self) -> None:
        # Pages 0 1 2 3 4, only 2 is present: two reads of the slow tier, one of the fast.
        outcome = self.run(read(0, 2 * PAGE), read(5, 0, 5 * PAGE))
        fact = outcome.facts[1]
        assert (fact.path, fact.reason, fact.pages, fact.pages_hit) == (*self.COLD, 5, 1)
        assert outcome.counters["fast_read_bytes"] == PAGE
        assert outcome.counters["slow_read_bytes"] == SECTOR + PAGE + 4 * PAGE

    def test_a_read_may_evict_its_own_pages(self) -> None:
        # Page 1 is present; page 0 takes its slot before page 1 is read.
        outcome = self.run(read(0, PAGE), read(5, 0, 2 * PAGE), cache=replace(CACHE, pages=1))
        fact = outcome.facts[1]
        assert (fact.path, fact.reason, fact.pages_hit) == (*self.COLD, 0)
        assert outcome.counters["evictions"] == 1

    def test_sequential_reads_bypass_the_cache(self) -> None:
        cutoff = replace(CACHE, sequential_cutoff_bytes=3 * PAGE)
        requests = [read(5 * at, PAGE * at, PAGE) for at in range(4)]
        assert self.reasons(*requests, cache=cutoff) == [
            self.COLD,
            self.COLD,
            self.SEQUENTIAL,
            self.SEQUENTIAL,
        ]
        # Present pages are hits nevertheless.
        assert self.reasons(read(0, PAGE), *requests[1:], cache=cutoff)[1] == self.HIT

    def test_flushes_and_empty_requests_go_to_the_slow_tier(self) -> None:
        flush = (Path.BYPASS, Reason.FLUSH)
        assert self.reasons(Request(0, Op.FLUSH, 0, 0), read(0, 0, 0)) == [flush, flush]

    def test_a_cache_without_pages_passes_every_request_on(self) -> None:
        assert self.reasons(read(0, 0), cache=NO_CACHE) == [(Path.BYPASS, Reason.NO_CACHE)]

    def test_freed_slots_are_used_first(self) -> None:
        cache = Machine([], OPEN, replace(CACHE, pages=4), single(SSD), single(SSD)).cache

        def taken(*pages: int) -> list[int]:
            for page in pages:
                cache.take_slot(cache.page(page))
            return [cache.page(page).slot for page in pages]

        assert taken(10, 11, 12) == [0, 1, 2]
        cache.leave(cache.page(10), Reason.EVICTED)
        cache.leave(cache.page(11), Reason.EVICTED)
        assert not cache.is_full
        assert taken(13, 14, 15) == [1, 0, 3]
        assert cache.is_full

    def test_a_limited_number_of_sequential_runs_is_tracked(self) -> None:
        runs = Runs()
        for start in range(33):
            runs.extend(1000 * start, 10)
        assert runs.extend(1010, 10).length == 20
        assert runs.extend(10, 10).length == 10  # the first was forgotten
        assert runs.extend(20, 5).length == 15


class TestSource:
    def issued(self, requests: list[Request], source: SourceParameters) -> list[float]:
        """Return issue times in milliseconds for a device that takes 10 ms per request."""
        outcome = on(SSD._replace(command_ns=10 * MS), requests, source)
        return [fact.issue_ns / MS for fact in by_number(outcome)]

    def test_open_mode_issues_at_the_trace_times(self) -> None:
        requests = [read(at, 0) for at in (0, 1, 1, 5)]
        assert self.issued(requests, OPEN) == [0, 1, 1, 5]
        assert self.issued(requests, SourceParameters(Replay.OPEN, speed=2.0)) == [0, 0.5, 0.5, 2.5]

    def test_scaled_times_are_rounded_half_to_even(self) -> None:
        requests = [Request(at, Op.FLUSH, 0, 0) for at in (1, 3, 5, 7)]
        outcome = on(SSD, requests, SourceParameters(Replay.OPEN, speed=2.0))
        assert [fact.issue_ns for fact in outcome.facts] == [0, 2, 2, 4]

    def test_closed_mode_keeps_the_queue_depth(self) -> None:
        requests = [read(99, 0)] * 5
        assert self.issued(requests, SourceParameters(Replay.CLOSED, depth=2)) == [0, 0, 10, 10, 20]

    def test_think_mode_keeps_the_time_since_the_previous_completion(self) -> None:
        requests = [
            read(1, 0, complete_ns=2 * MS),  # completes at 11 here
            read(5, 0, complete_ns=6 * MS),  # 3 ms after the first: 14 to 24
            read(5, 0, complete_ns=9 * MS),  # likewise
            read(7, 0, complete_ns=8 * MS),  # 1 ms after the second: 25 to 35
            read(9, 0, complete_ns=10 * MS),  # at once after the third
        ]
        think = SourceParameters(Replay.THINK)
        assert self.issued(requests, think) == [1, 14, 14, 25, 24]

    def test_think_mode_at_twice_the_speed_halves_the_gaps(self) -> None:
        requests = [read(1, 0, complete_ns=2 * MS), read(5, 0)]
        assert self.issued(requests, SourceParameters(Replay.THINK, speed=2.0)) == [0.5, 12]

    def test_a_parent_is_of_the_same_process_if_possible(self) -> None:
        requests = [
            read(0, 0, complete_ns=2 * MS, stream=1),
            read(1, 0, complete_ns=3 * MS, stream=2),
            read(4, 0, stream=1),
            read(4, 0, stream=3),
        ]
        assert parents(requests) == [-1, -1, 0, 1]

    def test_of_equal_completions_the_later_request_is_the_parent(self) -> None:
        requests = [read(0, 0, complete_ns=MS), read(0, 0, complete_ns=MS), read(1, 0)]
        assert parents(requests) == [-1, -1, 1]

    def test_a_request_without_completion_is_no_parent(self) -> None:
        assert parents([read(0, 0), read(1, 0)]) == [-1, -1]

    def test_a_completion_too_long_ago_is_no_parent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source_module, "WINDOW", 2)
        requests = [
            read(0, 0, complete_ns=MS, stream=1),
            read(0, 0, complete_ns=2 * MS, stream=2),
            read(3, 0, stream=1),
            read(3, 0, stream=1),
        ]
        assert parents(requests) == [-1, -1, 0, 1]

    def test_the_number_of_loaded_requests_is_limited(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source_module.ThinkSource, "LOADED", 2)
        monkeypatch.setattr(compiled_source, "WINDOW", 2)
        think = SourceParameters(Replay.THINK)
        assert self.issued([read(1, 0)] * 5, think) == [1, 1, 11, 11, 21]


class TestOrder:
    def test_events_of_an_instant_come_before_its_arrivals(self) -> None:
        # The fill ends at 2.1, and so the request that arrives at 2.1 finds the page.
        TestCache().test_a_page_is_first_cold_then_filling_then_a_hit()

    def test_events_of_one_arrival_come_before_the_next_arrival(self) -> None:
        # On devices that take no time the first request and its fill are complete by then.
        outcome = both([read(0, 0), read(0, 0)], OPEN, CACHE, single(SSD), single(SSD))
        assert [fact.path for fact in outcome.facts] == [Path.MISS, Path.HIT]

    def test_arrivals_of_an_instant_come_in_order_of_number(self) -> None:
        # A request takes 10 ms. At 10 request 3 becomes due at 20; at 20 request 2 is due at once.
        requests = [
            read(0, 0, stream=0, complete_ns=20 * MS),
            read(10, 0, stream=1, complete_ns=30 * MS),
            read(30, 0, stream=1),
            read(30, 0, stream=0),
        ]
        device = SSD._replace(command_ns=10 * MS)
        outcome = on(device, requests, SourceParameters(Replay.THINK))
        assert [fact.issue_ns // MS for fact in outcome.facts] == [0, 10, 20, 20]
        assert [fact.number for fact in outcome.facts] == [0, 1, 2, 3]

    def test_a_disk_chooses_its_next_request_before_the_completion_is_delivered(self) -> None:
        # Request 2 arrives at the completion of 0, when 1 is already chosen although it is far.
        requests = [read(0, 0), read(0, 90 * SECTOR), read(0, 5 * SECTOR)]
        source = SourceParameters(Replay.CLOSED, depth=2)
        outcome = on(replace(DISK, window=8), requests, source)
        assert [fact.number for fact in outcome.facts] == [0, 1, 2]


class TestLaws:
    @settings(max_examples=60, deadline=None)
    @given(scenarios())
    def test_requests_bytes_and_fills_are_conserved(self, scenario: Scenario) -> None:
        outcome = scenario.run()
        facts = by_number(outcome)
        assert [fact.number for fact in facts] == list(range(len(scenario.requests)))
        times = [fact.done_ns for fact in outcome.facts]
        assert times == sorted(times)
        assert all(0 <= fact.issue_ns <= fact.done_ns for fact in facts)
        assert all(type(value) is int for fact in facts for value in (fact.issue_ns, fact.done_ns))
        for fact in facts:
            assert 0 <= fact.pages_hit <= fact.pages
            if fact.path == Path.HIT:
                assert fact.pages_hit == fact.pages > 0
                assert (fact.op, fact.reason) == (Op.READ, Reason.NONE)
            elif fact.path == Path.MISS:
                assert fact.op == Op.READ
                assert Reason.COLD <= fact.reason <= Reason.OVERWRITTEN
            else:
                assert fact.reason >= Reason.SEQUENTIAL
        counters = outcome.counters
        assert counters["fills_started"] == counters["fills_completed"] + counters["fills_doomed"]
        assert scenario.run() == outcome

    @settings(max_examples=60, deadline=None)
    @given(scenarios())
    def test_the_final_state_of_the_cache_is_consistent(self, scenario: Scenario) -> None:
        machine = Machine(
            scenario.requests, scenario.source, scenario.cache, scenario.slow, scenario.fast
        )
        machine.run()
        cache = machine.cache
        slots = [page.slot for page in cache.pages.values() if page.slot >= 0]
        assert cache.fills.under_way == 0
        assert sorted(slots + cache.free) == list(range(scenario.cache.pages))

    @settings(max_examples=50, deadline=None)
    @given(scenarios())
    def test_closed_mode_always_has_its_queue_depth_in_flight(self, scenario: Scenario) -> None:
        depth = scenario.source.depth
        source = replace(scenario.source, mode=Replay.CLOSED)
        facts = replace(scenario, source=source).run().facts
        changes = [(f.issue_ns, 1) for f in facts] + [(f.done_ns, -1) for f in facts]
        outstanding = 0
        for _, change in sorted(changes):  # completions of an instant come first
            outstanding += change
            assert outstanding <= depth

    def test_littles_law(self) -> None:
        random = Random(1)
        requests = [read(0, random.randrange(20 * 100) * SECTOR) for _ in range(5000)]
        source = SourceParameters(Replay.CLOSED, depth=8)
        facts = on(replace(DISK, window=4), requests, source).facts
        throughput = len(facts) / facts[-1].done_ns
        response = sum(fact.done_ns - fact.issue_ns for fact in facts) / len(facts)
        assert throughput * response == pytest.approx(8, rel=0.01)

    @pytest.mark.parametrize("load", [0.3, 0.7])
    def test_the_queue_of_a_constant_device_waits_as_in_m_d_1(self, load: float) -> None:
        service = 100 * US
        random = Random(7)
        arrival = 0.0
        requests = []
        for _ in range(40_000):
            arrival += random.expovariate(load / service)
            requests.append(Request(round(arrival), Op.READ, 0, SECTOR))
        slow = single(SSD._replace(read_ns=service))
        facts = simulate(requests, OPEN, NO_CACHE, slow, None).facts
        waiting = sum(fact.done_ns - fact.issue_ns - service for fact in facts) / len(facts)
        # Pollaczek and Khinchine, M/D/1.
        assert waiting == pytest.approx(load * service / (2 * (1 - load)), rel=0.04)

    def test_a_random_read_takes_half_a_revolution_on_average(self) -> None:
        random = Random(3)
        requests = [read(0, random.randrange(20 * 100) * SECTOR) for _ in range(5000)]
        outcome = on(DISK, requests, ONE_AT_A_TIME)
        assert outcome.counters["slow_rotation_ns"] / 5000 == pytest.approx(5 * MS, rel=0.03)


class TestInterface:
    def test_numpy_input_gives_python_output(self) -> None:
        disk = replace(
            DISK,
            rev_ns=np.int64(10 * MS),
            move_ns=np.array(DISK.move_ns),
            zone_byte=np.array([0]),
        )
        requests = [
            Request(*row)
            for row in zip(np.zeros(2, np.int64), np.uint8([0, 4]), [0, 0], [512, 512])
        ]
        outcome = on(disk, requests)
        assert [type(fact.done_ns) for fact in outcome.facts] == [int, int]
        assert [fact.op for fact in outcome.facts] == [Op.READ, Op.WRITE]

    def test_parts_of_the_machine_can_be_replaced(self) -> None:
        class FailingDisk(Hdd):
            """Needs three more revolutions per request."""

            def pass_over(self, offset: int, length: int) -> int:
                return super().pass_over(offset, length) + 3 * self.parameters.rev_ns

        class FailingMachine(Machine):
            def make_device(self, parameters: Any, tier: str, member: int) -> Any:
                if (tier, member) == ("slow", 0):
                    return FailingDisk(self.clock, parameters)
                return super().make_device(parameters, tier, member)

        machine = FailingMachine([read(0, 0)], OPEN, NO_CACHE, single(DISK), None)
        assert done(machine.run()) == [40.1]

    def test_pages_need_a_fast_tier(self) -> None:
        with pytest.raises(ValueError, match="fast tier"):
            simulate([], OPEN, CACHE, single(DISK), None)

    def test_policies_are_selected_by_name(self) -> None:
        for wrong in (
            replace(CACHE, admission=("tossed",)),
            replace(CACHE, replacement="lifo"),
        ):
            with pytest.raises(ValueError, match="unknown"):
                simulate([], OPEN, wrong, single(DISK), single(SSD))
