"""A policy of the user's own that chooses an impossible victim is an error that names it."""

import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import steady
from engine import machine, simulate
from scenarios import Scenario

from hybridsim.caches.policies import ADMISSION, LRU, REPLACEMENT, check_growth
from hybridsim.foundation.arrays import longer
from hybridsim.foundation.codes import Mode, Op, Replay
from hybridsim.foundation.errors import PolicyError
from hybridsim.jit import method, state_machine
from hybridsim.reference import CacheParameters, Request, SourceParameters
from hybridsim.studies.hits import hits
from hybridsim.studies.mrc import miss_ratio_curve
from hybridsim.traces.trace import Trace

PAGE = 4096


class Queue:
    """First in, first out."""

    def __init__(self):
        self.pages = []

    @classmethod
    def new(cls, ids, pages):
        return cls()

    def grown(self, ids):
        return self

    def missed(self, page): ...

    def admit(self, page):
        self.pages.append(page)

    def touch(self, page): ...

    def remove(self, page):
        self.pages.remove(page)

    def evict(self):
        return self.pages.pop(0)


class NeverEvicts(Queue):
    def evict(self):
        return -1


class EvictsAnotherPage(Queue):
    def evict(self):
        return self.pages[0] + 5


class EvictsTwice(Queue):
    def evict(self):
        return 0


class EvictsBeyond(Queue):
    def evict(self):
        return 1 << 40


class Forgets(Queue):
    def evict(self):
        self.pages.pop(0)


READS = np.arange(8).repeat(2)
NEVER = np.iinfo(np.int64).max


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (
            NeverEvicts,
            r"NeverEvicts\.evict\(\) returned no page \(-1 or None\), though the cache holds pages",
        ),
        (EvictsAnotherPage, r"EvictsAnotherPage\.evict\(\) returned page 5, which the cache does"),
        (EvictsTwice, r"EvictsTwice\.evict\(\) returned page 0, .* page 4, after 4 pages"),
        (EvictsBeyond, r"EvictsBeyond\.evict\(\) returned page 1099511627776, which"),
        (
            Forgets,
            r"Forgets\.evict\(\) returned no page \(-1 or None\), though the cache holds pages",
        ),
    ],
)
def test_hits_name_the_policy_its_victim_and_the_page_that_came(policy, problem):
    with pytest.raises(PolicyError, match=problem):
        hits(READS, "3 pages", [policy])


def test_the_error_names_the_access_and_the_page_of_the_trace_also_after_a_skip():
    with pytest.raises(
        PolicyError, match=r"for page 3, .* at page access 6, counted from 0, page 1003 of"
    ):
        hits(READS + 1000, "3 pages", [NeverEvicts], skip=2)


def test_a_miss_ratio_curve_raises_the_same_error():
    with pytest.raises(
        PolicyError, match=r"EvictsTwice\.evict\(\) returned page 0, .* at page access 8,"
    ):
        miss_ratio_curve(READS, EvictsTwice, sizes=[3])


def test_hits_accept_a_policy_that_keeps_the_rules():
    (result,) = hits(READS, "3 pages", [Queue])
    assert result.page_hits == 8


@state_machine
class WrongLRU(LRU):
    """Compiled."""

    @method
    def evict(self):
        """Return a page far outside of the tables."""
        return 1 << 30


def test_a_compiled_policy_ends_in_the_same_error_and_not_in_a_fault_of_memory():
    with pytest.raises(PolicyError, match=r"WrongLRU\.evict\(\) returned page 1073741824, which"):
        hits(READS, "3 pages", [WrongLRU])


class FailsLater(Queue):
    """Its wrong victim is followed by an error of its own."""

    def evict(self):
        return 99

    def touch(self, page):
        self.pages[self.pages.index(page) - 99]


def test_a_later_error_of_the_policy_does_not_hide_its_wrong_victim():
    with pytest.raises(PolicyError, match=r"FailsLater\.evict\(\) returned page 99"):
        hits(READS[np.arange(8) * 2], "3 pages", [FailsLater])
    with pytest.raises(PolicyError, match=r"FailsLater\.evict\(\) returned page 99"):
        hits(np.array([0, 1, 2, 3, 3, 3]), "3 pages", [FailsLater])


class Stays(LRU):
    """Compiled, and never larger."""

    def grown(self, ids):
        return self


class Loses(LRU):
    """Compiled; what has grown is no policy."""

    def grown(self, ids):
        return None


@state_machine
class Oldest(NamedTuple):
    """First in, first out, with a function of numpy that our own compiler leaves to numba."""

    turn: Any  # by page; NEVER: not cached
    last: Any

    @classmethod
    def new(cls, ids, pages):
        return cls(np.full(ids, NEVER), np.zeros(1, np.int64))

    def grown(self, ids):
        return self._replace(turn=longer(self.turn, ids, NEVER))

    @method
    def missed(self, page):
        """Ignore a miss."""

    @method
    def admit(self, page):
        self.last[0] += 1
        self.turn[page] = self.last[0]

    @method
    def touch(self, page):
        """Ignore a use."""

    @method
    def remove(self, page):
        self.turn[page] = NEVER

    @method
    def evict(self):
        page = self.turn.argmin()
        self.turn[page] = NEVER
        return page


@pytest.mark.parametrize(
    "accessed",
    [Trace.read("gen:zipf,requests=2000,span=64MiB"), np.arange(2000) ** 2 % 127],
    ids=["requests", "pages"],
)
def test_a_compiled_policy_may_call_whatever_numba_compiles(accessed):
    own, fifo = hits(accessed, "5%", [Oldest, "fifo"])
    assert own.page_hit_ratio == fifo.page_hit_ratio > 0


@pytest.mark.parametrize("method_name", ["new", "grown"])
def test_a_class_that_cannot_be_made_or_grow_is_refused_by_name(method_name):
    own = {name: part for name, part in vars(Queue).items() if name != method_name}
    with pytest.raises(PolicyError, match=rf"Lacking is not a policy: it lacks {method_name}\(\)"):
        hits(READS, "3 pages", [type("Lacking", (), own)])


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (Stays, r"Stays\.grown\(64\): \S+ has room for 1\d ids, that of new\(64, 16\) for 6\d"),
        (Loses, r"Loses\.grown\(64\) returned NoneType: it must return a Loses"),
    ],
)
def test_a_compiled_policy_that_does_not_grow_is_refused_before_it_can_write_beyond(
    policy, problem
):
    with pytest.raises(PolicyError, match=problem):
        hits(READS, "3 pages", [state_machine(policy)])


@pytest.mark.parametrize("policy", [*ADMISSION.values(), *REPLACEMENT.values()])
def test_the_policies_of_hybridsim_grow(policy):
    parameters = inspect.signature(policy.new).parameters
    given = {"page_bytes": PAGE} if "page_bytes" in parameters else {}
    check_growth(policy, given)


@pytest.mark.parametrize(
    ("policy", "victim", "interpreted"),
    [
        (lambda: NeverEvicts(), "no page", True),
        (lambda: EvictsTwice(), "page 0,", True),
        (lambda: EvictsBeyond(), "page 1099511627776,", True),
        (lambda: Forgets(), "no page", True),
        pytest.param(
            lambda: WrongLRU.new(1 << 10),
            "page 1073741824,",
            False,
            id="compiled",
            marks=pytest.mark.long,
        ),
    ],
)
def test_the_simulation_with_time_raises_the_same_error(policy, victim, interpreted):
    requests = [Request(0, Op.READ, page * PAGE, PAGE) for page in READS]
    cache = CacheParameters(PAGE, 3, Mode.READ_ONLY, 0, 1, ("always",))
    slow, fast = steady(8_000_000, 1 << 20), steady(20_000, 1 << 20)
    scenario = Scenario(requests, SourceParameters(Replay.CLOSED, 1), cache, slow, fast)
    built = machine(scenario)
    built = built._replace(cache=built.cache._replace(replacement=policy()))
    name = type(built.cache.replacement).__name__
    problem = rf"{name}\.evict\(\) returned {victim}.*to make room for page \d, .* at request \d+, "
    problem += r"counted from 0, page \d of the trace"
    with pytest.raises(PolicyError, match=problem):
        simulate(scenario, interpreted=interpreted, built=built)
