"""Pairing of events to requests: examples by hand, and a slow naive program."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_pairing import Event, pair

from hybridsim.foundation.codes import Flag, Op
from hybridsim.requests.rows import joined
from hybridsim.traces.formats import pairing
from hybridsim.traces.formats.pairing import EVENT, Action, At, InOrder, Pairer, room_for

Q, R, D, C, X = Action.QUEUE, Action.REQUEUE, Action.ISSUE, Action.COMPLETE, Action.SPLIT
KIB4 = 4096


def lane(events, batch):
    """Return a lane that supplies `events`, at most `batch` at a time."""
    rest = [events[i : i + batch] for i in range(0, len(events), batch)]

    def fill(room):
        part = rest.pop(0) if rest else []
        room[: len(part)] = np.array(part, EVENT)
        return len(part)

    return fill


def requests_of(*lanes, by_issue=False, batch=16):
    pairer = Pairer([lane(each, batch) for each in lanes], batch, by_issue=by_issue)
    requests = joined(list(pairer.requests(0, lambda: 0)))
    columns = (requests.arrival_ns, requests.dispatch_ns, requests.complete_ns, requests.op)
    rows = zip(*(c.tolist() for c in (*columns, requests.offset_bytes, requests.length_bytes)))
    return list(rows), requests, pairer


def event(time, action, start=0, blocks=1, op=Op.WRITE, flags=0, error=0):
    """Return an event in blocks of 4 KiB."""
    return Event(time, start * KIB4, blocks * KIB4, 1, error, 0, int(action), int(op), int(flags))


class TestByHand:
    def test_a_plain_request_has_its_three_times(self):
        rows, *_ = requests_of([event(0, Q), event(2, D), event(9, C)])
        assert rows == [(0, 2, 9, Op.WRITE, 0, KIB4)]

    def test_merged_requests_end_together(self):
        queued = [event(0, Q, 0), event(1, Q, 1)]
        rows, *_ = requests_of([*queued, event(2, D, 0, 2), event(9, C, 0, 2)])
        assert [row[:3] for row in rows] == [(0, 2, 9), (1, 2, 9)]

    def test_a_split_request_ends_with_its_last_part(self):
        cut = [event(0, Q, 0, 4), event(1, X, 0, 1), event(2, D, 0), event(3, D, 1, 3)]
        rows, *_ = requests_of([*cut, event(5, C, 1, 3), event(9, C, 0)])
        assert rows == [(0, 2, 9, Op.WRITE, 0, 4 * KIB4)]

    def test_a_request_completed_in_parts_ends_with_the_last(self):
        rows, *_ = requests_of([event(0, Q, 0, 3), event(4, C, 0, 1), event(6, C, 1, 2)])
        assert [row[:3] for row in rows] == [(0, -1, 6)]

    def test_a_requeued_request_has_its_last_dispatch_time(self):
        rows, requests, pairer = requests_of(
            [event(0, Q), event(1, D), event(2, R), event(5, D), event(9, C)]
        )
        assert [row[:3] for row in rows] == [(0, 5, 9)]
        assert requests.flags[0] & Flag.REQUEUED
        assert pairer.count(At.REQUEUES) == 1

    def test_a_journal_commit_ends_after_its_second_flush(self):
        flags = Flag.PREFLUSH | Flag.FUA
        internal = {"op": Op.READ, "flags": Flag.PREFLUSH}
        rows, *_ = requests_of(
            [
                event(0, Q, 8, 1, flags=flags),
                event(1, D, 0, 0, **internal),
                event(2, C, 0, 0, **internal),
                event(3, D, 8, 1),
                event(4, C, 8, 1),
                event(5, D, 0, 0, **internal),
                event(6, C, 0, 0, **internal),
                event(7, C, 8, 0),
            ]
        )
        assert rows == [(0, 3, 7, Op.WRITE, 8 * KIB4, KIB4)]

    def test_empty_flushes_complete_in_order(self):
        flush = {"blocks": 0, "flags": Flag.PREFLUSH}
        rows, *_ = requests_of(
            [event(0, Q, **flush), event(1, Q, **flush), event(5, C, 0, 0), event(8, C, 0, 0)]
        )
        assert [row[:4] for row in rows] == [(0, -1, 5, Op.FLUSH), (1, -1, 8, Op.FLUSH)]

    def test_a_remainder_reported_by_device_mapper_completes_the_request(self):
        rows, *_ = requests_of(
            [event(0, Q, 0, 8), event(1, X, 3, 0), event(2, X, 6, 0), event(9, C, 6, 2)]
        )
        assert rows == [(0, -1, 9, Op.WRITE, 0, 8 * KIB4)]

    def test_writes_to_a_device_with_native_fua_end_without_a_flush(self):
        events = []
        for i in range(200):
            events += [event(10 * i, Q, i, flags=Flag.FUA), event(10 * i + 5, C, i)]
        rows, *_ = requests_of(events)
        assert [row[2] - row[0] for row in rows] == [5] * 200

    def test_an_event_out_of_order_gets_the_current_time(self):
        rows, _, pairer = requests_of([event(5, Q), event(3, D), event(9, C)])
        assert [row[:3] for row in rows] == [(5, 5, 9)]
        assert pairer.count(At.DISORDER) == 1


class TestBounds:
    """Memory is bounded: requests that wait too long are given up."""

    def test_requests_without_completion_are_returned(self):
        count = pairing.PENDING_MAX + 1000
        events = [(i, i * KIB4, KIB4, 1, 0, 0, int(Q), 0, 0) for i in range(count)]
        pairer = Pairer([lane(events, 1 << 14)], 1 << 14, by_issue=False)
        requests = joined(list(pairer.requests(0, lambda: 0)))
        assert requests.arrival_ns.tolist() == list(range(count))
        assert pairer.count(At.INCOMPLETE) == count
        assert (requests.complete_ns == -1).all()


SECTORS = st.integers(0, 12)
FLAGS = st.sampled_from([0, 0, Flag.SYNC, Flag.FUA, Flag.PREFLUSH, Flag.PREFLUSH | Flag.FUA])
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 3),  # ns since the previous event
        st.sampled_from([Q, Q, D, C, C, X, R]),
        SECTORS,
        st.integers(0, 4),
        st.sampled_from([Op.READ, Op.WRITE, Op.DISCARD]),
        FLAGS,
        st.sampled_from([0, 0, 0, -5]),
    ),
    max_size=80,
)


@settings(max_examples=100, deadline=None)
@given(EVENTS, st.booleans(), st.integers(1, 40))
def test_the_compiled_pairing_equals_the_naive_one(steps, by_issue, batch):
    time = 0
    events = []
    for after, action, start, blocks, op, flags, error in steps:
        time += after
        events.append(event(time, action, start, blocks, op, flags, error))
    assert requests_of(events, by_issue=by_issue, batch=batch)[0] == pair(events, by_issue)


@settings(max_examples=60, deadline=None)
@given(EVENTS, st.lists(st.integers(0, 2), min_size=80, max_size=80), st.integers(1, 9))
def test_lanes_are_merged_by_time_and_then_by_number(steps, cpus, batch):
    time = 0
    lanes = [[], [], []]
    for (after, action, start, blocks, op, flags, error), cpu in zip(steps, cpus):
        time += after
        lanes[cpu].append(event(time, action, start, blocks, op, flags, error))
    merged = sorted(
        ((e.time_ns, cpu, i, e) for cpu, part in enumerate(lanes) for i, e in enumerate(part)),
    )
    expected = pair([e for *_, e in merged], by_issue=False)
    assert requests_of(*lanes, batch=batch)[0] == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), max_size=200))
def test_a_stream_is_sorted_by_time_and_cpu(stamps):
    events = [event(time, Q)._replace(cpu=cpu) for time, cpu in stamps]
    ordered = InOrder(lane(events, 8), 8)
    room = room_for(1 << 9)
    count = ordered.fill(room)
    assert ordered.fill(room[count:]) == 0
    assert list(zip(room.time_ns[:count].tolist(), room.cpu[:count].tolist())) == sorted(stamps)
