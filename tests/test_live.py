"""A live array gives the completion times of a replay of the same arrivals."""

import numpy as np
import pytest
from engine import facts_of

from hybridsim.engine import loops
from hybridsim.engine.live import NEVER, LiveArray
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import Op
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building

MIB = 1 << 20
VOLUME_BYTES = 64 * MIB
MACHINES = {
    "disks, striped": '[backing]\nkind = "stripe"\nmembers = 3\n',
    "disks with parity": '[backing]\nkind = "raid5"\nmembers = 4\nchunk = "16KiB"\n',
    "one request at a time": '[backing]\nkind = "raid1"\nmembers = 2\nqueue_depth = 1\n',
    "a rebuild": '[backing]\nrebuild = {member = 2, min = "1MB/s", max = "200MB/s"}\n',
    "behind DRAM": '[backing]\n[backing.controller]\nread_memory = "4MiB"\nwrite_memory = "4MiB"\n',
    "an SSD": '[backing]\nkind = "single"\nmembers = 1\ndrive = "samsung-pm883-960gb"\n',
    "a cloud volume": '[backing]\nkind = "single"\nmembers = 1\ndrive = "aws-gp3"\n',
}


def requests(count, seed):
    """Return requests in bursts and pauses, some simultaneous, of all sizes and kinds."""
    random = np.random.default_rng(seed)
    arrival = np.cumsum(random.choice([0, 0, 1000, 300_000, 20_000_000], count))
    op = random.choice([Op.READ, Op.READ, Op.READ, Op.WRITE, Op.WRITE, Op.FLUSH], count)
    length = np.where(op == Op.FLUSH, 0, random.choice([4096, 65536, 300 * 1024], count))
    offset = random.integers(0, (VOLUME_BYTES - MIB) // 4096, count) * 4096
    return arrival, op, np.where(op == Op.FLUSH, 0, offset), length


def replayed(scenario, arrival, op, offset, length):
    """Return the completion times in a simulation without a cache."""
    run = Run(building.machine(scenario, "open", VOLUME_BYTES, 0), interpreted=True)
    count = len(arrival)
    nothing = np.full(count, -1, np.int64)
    zeros = np.zeros(count, np.int64)
    columns = arrival, op.astype(np.uint8), offset, length, nothing, zeros
    run.feed(Batch(*columns, np.array([0, 1, 0]), zeros))
    while run.advance(loops.NEVER)[0] != loops.FINISHED:
        pass
    done = {fact.number: fact.done_ns for fact in facts_of(run.facts.drained())}
    return [done[number] for number in range(count)]


def live(scenario, arrival, op, offset, length, late_ns):
    """Return the completion times of a live array that is polled late, as by a busy process."""
    array = LiveArray(building.slow_tier(scenario.backing, VOLUME_BYTES, scenario.seed), True)
    done = {}
    for number, row in enumerate(zip(arrival.tolist(), op.tolist(), offset.tolist(), length)):
        while array.next_ns + late_ns <= row[0]:
            done |= dict(array.advance(array.next_ns + late_ns))
        array.submit(row[0], number, *map(int, row[1:]))
    while len(done) < len(arrival):
        done |= dict(array.advance(array.next_ns + late_ns))
    return [done[number] for number in range(len(arrival))]


@pytest.mark.parametrize("late_ns", [0, 3_000_000])
@pytest.mark.parametrize("name", MACHINES)
def test_live_completion_times_equal_those_of_the_replay(name, late_ns):
    scenario = Scenario.loads(MACHINES[name])
    some = requests(60, 7)
    assert live(scenario, *some, late_ns) == replayed(scenario, *some)


def test_a_clock_that_goes_back_is_treated_as_stopped():
    array = LiveArray(building.slow_tier(Scenario.loads(MACHINES["an SSD"]).backing, MIB), True)
    array.submit(1000, 1, Op.READ, 0, 4096)
    array.submit(500, 2, Op.READ, 0, 4096)
    first, second = array.advance(NEVER - 1)
    assert first[1] > 1000
    assert second[1] > first[1]


def test_pools_grow_with_the_waiting_requests():
    array = LiveArray(
        building.slow_tier(Scenario.loads(MACHINES["an SSD"]).backing, 64 * MIB), True
    )
    for number in range(400):
        array.submit(0, number, Op.WRITE, 0, 4096)
    assert sorted(tag for tag, _ in array.advance(10**12)) == list(range(400))
    assert array.next_ns == NEVER
