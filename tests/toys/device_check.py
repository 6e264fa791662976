"""The drive of memory beside its model."""

from agreement import check
from scenarios import Scenario

from hybridsim.foundation.codes import Level, Mode, Op, Replay
from hybridsim.reference import CacheParameters, Request, SourceParameters, TierParameters
from hybridsim.reference.ram import RamParameters


def test_engine_and_reference_agree_on_ram():
    tier = TierParameters(Level.STRIPE, 2, 2**20, RamParameters(7000, 2**20), 2**21)
    requests = [Request(i * 900, Op(i % 2), i * 4096, 8192) for i in range(40)]
    cache = CacheParameters(4096, 4, Mode.WRITE_THROUGH, 0, 1, ("touches", 1))
    check(Scenario(requests, SourceParameters(Replay.OPEN), cache, tier, tier), interpreted=True)
