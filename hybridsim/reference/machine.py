"""The machine: source, host, cache and tiers assembled; events in its life (2.17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hybridsim.foundation.cache_parameters import (
    WRITE_PRICE,
    BcacheParameters,
    CacheParameters,
    DmCacheParameters,
    OpenCasParameters,
    WritecacheParameters,
)
from hybridsim.foundation.codes import SYNC, Change, Mode, Op, Replay, Restart
from hybridsim.foundation.machine_parameters import (
    ControllerParameters,
    DeviceParameters,
    EventParameters,
    HostParameters,
    ThrottleParameters,
    TierParameters,
)
from hybridsim.reference.bcache import Bcache
from hybridsim.reference.cache import PageCache, Verdict
from hybridsim.reference.clock import Clock, Done, Step, in_turn
from hybridsim.reference.controller import Controller
from hybridsim.reference.device import Device, Store
from hybridsim.reference.dmcache import DmCache
from hybridsim.reference.learned import Budgeted, Learned
from hybridsim.reference.limits import Host
from hybridsim.reference.models import ADMISSION, DEVICES, REPLACEMENT
from hybridsim.reference.opencas import OpenCas
from hybridsim.reference.parameters import Fact, Outcome, Request, SourceParameters
from hybridsim.reference.policies import Admission, Replacement
from hybridsim.reference.source import ClosedSource, JobsSource, OpenSource, Source, ThinkSource
from hybridsim.reference.throttle import Throttle
from hybridsim.reference.tier import Health, Tier
from hybridsim.reference.writecache import Writecache

CacheKind = (
    CacheParameters
    | BcacheParameters
    | DmCacheParameters
    | OpenCasParameters
    | WritecacheParameters
)
CACHES: dict[type, Any] = {
    BcacheParameters: Bcache,
    DmCacheParameters: DmCache,
    OpenCasParameters: OpenCas,
    WritecacheParameters: Writecache,
}

SOURCES: dict[Replay, type[Source]] = {
    Replay.OPEN: OpenSource,
    Replay.CLOSED: ClosedSource,
    Replay.THINK: ThinkSource,
}


class Machine:
    """A source, a cache and two tiers; override a `make_` method to replace a part.

    `fast` may be None if the cache has no pages.

    >>> class FailingDisk(Hdd):
    ...     '''A disk whose accesses take three more revolutions after its first second.'''
    ...     def pass_over(self, offset, length):
    ...         time = super().pass_over(offset, length)
    ...         return time + 3 * self.parameters.rev_ns * (self.clock.now > 10**9)
    >>> class FailingMachine(Machine):
    ...     def make_device(self, parameters, tier, member):
    ...         if tier == "slow" and member == 0:
    ...             return FailingDisk(self.clock, parameters)
    ...         return super().make_device(parameters, tier, member)
    """

    def __init__(
        self,
        requests: Sequence[Request],
        source: SourceParameters,
        cache: CacheKind,
        slow: TierParameters,
        fast: TierParameters | None,
        host: HostParameters | None = None,
        controller: ControllerParameters | None = None,
        throttle: ThrottleParameters | None = None,
        events: Sequence[EventParameters] = (),
    ) -> None:
        if fast is None and not (isinstance(cache, CacheParameters) and cache.pages == 0):
            raise ValueError("a cache with pages needs a fast tier")
        self.requests = requests
        self.facts: list[Fact] = []
        self.under_way = 0  # requests issued and not complete
        self.answered = 0  # requests of the load that are complete
        self.clock = Clock()
        self.tiers = {"slow": self.make_tier(slow, "slow")}
        if fast is not None:
            self.tiers["fast"] = self.make_tier(fast, "fast")
        self.slow: Store = self.tiers["slow"]
        if controller is not None:
            self.slow = Controller(self.clock, controller, self.slow)
        if throttle is not None:
            self.slow = Throttle(self.clock, throttle, self.slow)
        self.parameters = cache
        self.life = Life(self, events)
        self.cache = self.make_cache(cache)
        if isinstance(self.cache, PageCache):
            self.cache.preloader.start()
        self.source = self.make_source(source)
        self.host = None if host is None else Host(self.clock, host)

    def run(self) -> Outcome:
        """Run until all requests are complete, including those of the cache to the tiers."""
        self.source.start()
        self.life.run()
        while not self.is_over():
            self.clock.step()
        return Outcome(self.facts, self.counters())

    def is_over(self) -> bool:
        """Whether no request is outstanding; a rebuild may still be under way."""
        return self.is_answered() and not self.under_way and self.tiers_are_idle()

    def is_answered(self) -> bool:
        """Whether all requests of the load are complete."""
        return self.source.is_over(self.answered)

    def tiers_are_idle(self) -> bool:
        """Whether all requests to the tiers are complete."""
        return all(store.is_idle for store in (self.slow, *self.tiers.values()))

    def issue(self, number: int) -> None:
        """Submit a request to the cache, and notify the source of its completion."""
        steps = self.serving(number, self.source.request(number))
        in_turn(steps, lambda: self.source.completed(number))

    def serving(self, number: int, request: Request) -> Iterator[Step]:
        """Pass a request through host and cache, and back; append its fact."""
        issued = self.clock.now - self.source.shift
        self.under_way += 1
        verdicts: list[Verdict] = []
        if self.host is not None:
            yield partial(self.host.submit, request.op, request.length)
        yield lambda done: verdicts.append(self.to_cache(request, done))
        if self.host is not None:
            yield self.host.complete
        self.under_way -= 1
        self.answered += number < PASS_FROM
        times = issued, self.clock.now - self.source.shift
        self.facts.append(Fact(number, *times, request.op, request.length, **vars(verdicts[0])))

    def to_cache(self, request: Request, done: Done) -> Verdict:
        """Submit a request to the cache; return its path, final when it completes."""
        if isinstance(self.cache, Bcache):
            return self.cache.submit(request, done)
        flags = request.flags & ~SYNC if request.op == Op.WRITE else 0
        where = request.offset, request.length
        verdict: Verdict = self.cache.submit(request.op, *where, done, flags)
        return verdict

    def counters(self) -> Counter[str]:
        """Return the counters of the cache, of each tier and its devices, and of a controller."""
        result = Counter((self.life.removed or {}) | self.cache.counters)
        for name, tier in self.tiers.items():
            for counted in (tier.usage(), *(device.totals() for device in tier.devices)):
                result.update({f"{name}_{key}": value for key, value in counted.items()})
            if tier.rebuild is not None:
                result[f"{name}_rebuilt_bytes"] = tier.rebuild.line
        return result if isinstance(self.slow, Tier) else result + self.slow.counters

    # The parts.

    def make_source(self, parameters: SourceParameters) -> Source:
        """Create the source."""
        kind = JobsSource if parameters.jobs else SOURCES[Replay(parameters.mode)]
        return kind(self.clock, parameters, self.requests, self.issue)

    def make_cache(self, parameters: CacheKind) -> Any:
        """Create the cache with its policies."""
        clock, slow, fast = self.life.below()
        if not isinstance(parameters, CacheParameters):
            return CACHES[type(parameters)](clock, parameters, slow, fast)
        admission = self.make_admission(parameters)
        replacement = self.make_replacement(parameters, admission)
        policies: tuple[Any, Any] = admission, replacement
        if parameters.budget and parameters.pages:
            policies = (Budgeted(*policies, parameters.pages, parameters.budget),) * 2
        return PageCache(*policies, clock, parameters, slow, fast)

    def make_admission(self, parameters: CacheParameters) -> Admission:
        """Create the admission policy."""
        name, *own = parameters.admission
        if name == "learned":
            price = int(own[0]) if own else round(1000 * WRITE_PRICE)
            replaces = parameters.replacement == "learned"
            page_bytes = parameters.page_bytes
            return Learned(parameters.pages, price, replaces=replaces, page_bytes=page_bytes)
        if name not in ADMISSION:
            raise ValueError(f"unknown admission policy {parameters.admission}")
        return ADMISSION[name](parameters.pages, *own)

    def make_replacement(self, parameters: CacheParameters, admission: Admission) -> Replacement:
        """Create the replacement policy, or return the admission policy if it is both."""
        if parameters.replacement == parameters.admission[0] and isinstance(admission, Replacement):
            return admission
        if parameters.replacement == "learned":
            return Learned(parameters.pages, admits=False, page_bytes=parameters.page_bytes)
        if parameters.replacement not in REPLACEMENT:
            raise ValueError(f"unknown replacement policy {parameters.replacement}")
        return REPLACEMENT[parameters.replacement](parameters.pages)

    def make_tier(self, parameters: TierParameters, tier: str) -> Tier:
        """Create the tier named "slow" or "fast"."""
        make = partial(self.make_device, parameters.device, tier)
        return Tier(parameters, [make(member) for member in range(parameters.members)])

    def make_device(self, parameters: DeviceParameters, tier: str, member: int) -> Device:
        """Create one member of the tier named "slow" or "fast"."""
        return DEVICES[type(parameters)](self.clock, parameters, member)


# Reboots, the removal of the cache, failures.

POLL = 10**9
RESTARTS = {
    Change.REBOOT: Restart.CLEAN,
    Change.CRASH: Restart.UNCLEAN,
    Change.DETACH: Restart.CLEANER,
}


@dataclass
class Gated:
    """The clock or a tier as a cache sees it that can stop: calls of it are dropped then."""

    part: Any
    life: Life
    stops: int  # of caches, up to the begin of this one

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.part, name)
        if not callable(found):
            return found

        def through(given: Any) -> Any:
            return (lambda: self.life.stops == self.stops and given()) if callable(given) else given

        return lambda *given: found(*map(through, given))


PASS_FROM, PASS_STREAM = 1 << 60, 1 << 40
PASS_DEPTH, PASS_BYTES = 16, 1 << 20


@dataclass
class Pass:
    """A sequential pass of reads beside the load."""

    next: int  # load time
    every: int
    end: int
    at: int = 0
    under_way: int = 0
    number: int = 0


class Life:
    """Carries out the events of a machine."""

    def __init__(self, machine: Machine, events: Sequence[EventParameters]) -> None:
        self.machine = machine
        self.clock = machine.clock
        self.events = sorted(events, key=lambda event: event.at_ns)
        self.stops = 0  # of caches
        self.poll: int | None = None  # when to look whether the cache is clean
        self.removed: dict[str, int] | None = None  # counters of a cache that is out
        self.reads: Pass | None = None

    def below(self) -> list[Any]:
        """Return the clock and the tiers for a cache."""
        parts = [self.clock, self.machine.slow, self.machine.tiers.get("fast")]
        return [part and Gated(part, self, self.stops) for part in parts] if self.events else parts

    def run(self) -> None:
        """Run until all events have happened, or the load is over."""
        todo = list(self.events)
        while todo or self.poll is not None or self.reads is not None:
            shift = self.machine.source.shift
            events = [event.at_ns + shift for event in todo[:1]]
            reads = [self.reads.next + shift] if self.reads else []
            polls = [] if self.poll is None else [self.poll]
            due = min(events + reads + polls)
            if not self.run_until(due):
                return
            if self.poll == due:
                self.look(due)
            elif due not in events:
                self.read_on()
            elif todo[0].change == Change.PASS:
                event = todo.pop(0)
                self.reads = Pass(event.at_ns, event.every_ns, event.end_bytes)
            elif todo[0].change == Change.DISK_FAILS:  # the load is not held
                self.machine.tiers["slow"].members[todo.pop(0).member].health = Health.FAILED
            elif todo[0].change == Change.REBUILD:
                self.machine.tiers["slow"].replace(todo.pop(0).rebuild)
            else:
                self.happen(todo.pop(0), due)

    def read_on(self) -> None:
        """Issue the next read of the pass, unless too many are under way or the load is over."""
        reads = self.reads
        assert reads is not None
        reads.next += reads.every
        machine = self.machine
        if machine.is_answered() or reads.under_way == PASS_DEPTH:
            return
        length = min(PASS_BYTES, reads.end - reads.at)
        request = Request(0, Op.READ, reads.at, length, stream=PASS_STREAM)
        reads.at += length
        reads.under_way += 1

        def done() -> None:
            reads.under_way -= 1

        in_turn(machine.serving(PASS_FROM + reads.number, request), done)
        reads.number += 1
        if reads.at == reads.end:
            self.reads = None

    def run_until(self, time: int) -> bool:
        """Take all events before a time; return False if the load is over before it."""
        while not self.machine.is_over():
            if self.clock.peek() >= time:
                self.skip_to(time)
                return True
            self.clock.step()
        return False

    def skip_to(self, time: int) -> None:
        """Let the time pass in which nothing happens."""
        if time > self.clock.now:
            self.clock.run(until=time)

    def hold(self) -> bool:
        """Issue no more requests, and wait for the others; return False if the load is over."""
        self.machine.source.is_held = True
        while self.machine.under_way:
            self.clock.step()
        return not self.machine.is_over()

    def look(self, due: int) -> None:
        """Take the cache out if it is clean."""
        if self.machine.cache.dirty_bytes > 0:
            self.poll = due + POLL
            return
        self.poll = None
        if self.hold():
            self.remove(due)

    def happen(self, event: EventParameters, due: int) -> None:
        """Carry out an event."""
        if not self.hold():
            return
        machine = self.machine
        old = machine.cache
        is_clean = isinstance(old, PageCache)  # nothing is to be written back
        if event.change == Change.SSD_DIES or (event.change == Change.DETACH and is_clean):
            self.remove(due)
            return
        self.stop()
        self.wait_until(self.clock.now + event.down_ns)
        machine.cache = machine.make_cache(machine.parameters)
        machine.cache.after(old, RESTARTS[event.change])
        machine.source.delay(self.clock.now - due)
        if event.change == Change.DETACH:
            self.poll = self.clock.now + POLL

    def remove(self, due: int) -> None:
        """Take the cache out: all requests go to the slow tier from now on."""
        machine = self.machine
        old = machine.cache
        self.stop()
        self.removed = old.counters
        none = CacheParameters(4096, 0, Mode.READ_ONLY, 0, 1, ("touches", 1))
        machine.cache = machine.make_cache(none)
        machine.source.delay(self.clock.now - due)

    def stop(self) -> None:
        """Stop the cache, and wait for the tiers."""
        self.stops += 1
        while not self.machine.tiers_are_idle():
            self.clock.step()

    def wait_until(self, time: int) -> None:
        """Let the tiers run until a time."""
        while self.clock.peek() < time:
            self.clock.step()
        self.skip_to(time)


def simulate(*parts: Any, **more: Any) -> Outcome:
    """Run a trace through a `Machine`, of which these are the arguments."""
    return Machine(*parts, **more).run()
