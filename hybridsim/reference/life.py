"""Events in the life of a machine (2.17): reboots, the removal of the cache, failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import Change, Mode, Op, Restart
from hybridsim.foundation.machine_parameters import EventParameters
from hybridsim.reference.cache import PageCache
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.parameters import Request

if TYPE_CHECKING:
    from hybridsim.reference.machine import Machine

POLL = 10**9
RESTARTS = {
    Change.REBOOT: Restart.CLEAN,
    Change.CRASH: Restart.UNCLEAN,
    Change.DETACH: Restart.CLEANER,
}


class Gate:
    """Lets the events of a cache through until the cache has stopped."""

    def __init__(self) -> None:
        self.is_open = True

    def through(self, action: Done) -> Done:
        """Return the action, which does nothing once the gate is closed."""

        def act() -> None:
            if self.is_open:
                action()

        return act


class CacheClock:
    """The clock of a cache that can stop."""

    def __init__(self, clock: Clock, gate: Gate) -> None:
        self.clock, self.gate = clock, gate

    @property
    def now(self) -> int:
        """The simulated time in nanoseconds."""
        return self.clock.now

    def at(self, time: int, action: Done) -> None:
        """Call `action` at `time`, unless the cache has stopped."""
        self.clock.at(time, self.gate.through(action))


class CacheTier:
    """A tier as a cache sees it that can stop."""

    def __init__(self, tier: Any, gate: Gate) -> None:
        self.tier, self.gate = tier, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tier, name)

    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Begin a request; its completion is dropped if the cache has stopped."""
        self.tier.submit(op, offset, length, self.gate.through(done))

    def submit_background(
        self, op: int, offset: int, length: int, done: Done, let_in: Done | None = None
    ) -> bool:
        """Take a write that nobody waits for."""
        called = None if let_in is None else self.gate.through(let_in)
        waits = self.tier.submit_background(op, offset, length, self.gate.through(done), called)
        return bool(waits)


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
        self.gate = Gate()
        self.poll: int | None = None  # when to look whether the cache is clean
        self.removed: dict[str, int] | None = None  # counters of a cache that is out
        self.reads: Pass | None = None

    def below(self) -> tuple[Any, Any, Any]:
        """Return the tiers and the clock for a cache."""
        machine = self.machine
        slow = machine.controller or machine.throttle or machine.tiers["slow"]
        fast = machine.tiers.get("fast")
        if not self.events:
            return slow, fast, self.clock
        parts = (part and CacheTier(part, self.gate) for part in (slow, fast))
        return *parts, CacheClock(self.clock, self.gate)  # type: ignore[return-value]

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
            elif todo[0].change in (Change.DISK_FAILS, Change.REBUILD):
                self.change_array(todo.pop(0))
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

        machine.submit(PASS_FROM + reads.number, request, done)
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

    def change_array(self, event: EventParameters) -> None:
        """Let a member fail, or begin its rebuild; the load is not held."""
        array = self.machine.tiers["slow"]
        if event.change == Change.DISK_FAILS:
            array.fail(event.member)
            return
        array.replace(event.rebuild)

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
        self.gate.is_open = False
        self.gate = Gate()
        while not self.machine.tiers_are_idle():
            self.clock.step()

    def wait_until(self, time: int) -> None:
        """Let the tiers run until a time."""
        while self.clock.peek() < time:
            self.clock.step()
        self.skip_to(time)
