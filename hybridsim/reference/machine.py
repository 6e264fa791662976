"""The machine: source, host, cache and tiers assembled."""

from collections.abc import Callable, Sequence
from typing import Any

from hybridsim.foundation.cache_parameters import (
    WRITE_PRICE,
    BcacheParameters,
    CacheParameters,
    DmCacheParameters,
    OpenCasParameters,
    WritecacheParameters,
)
from hybridsim.foundation.codes import SYNC, Op, Replay
from hybridsim.foundation.machine_parameters import (
    ControllerParameters,
    DeviceParameters,
    EventParameters,
    HostParameters,
    ThrottleParameters,
    TierParameters,
)
from hybridsim.reference.bcache import Bcache
from hybridsim.reference.budget import Budget, Budgeted
from hybridsim.reference.cache import PageCache, Verdict
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.controller import Controller
from hybridsim.reference.device import Device
from hybridsim.reference.dmcache import DmCache
from hybridsim.reference.jobs import JobsSource
from hybridsim.reference.learned import Learned
from hybridsim.reference.life import PASS_FROM, Life
from hybridsim.reference.limits import Host
from hybridsim.reference.models import ADMISSION, DEVICES, REPLACEMENT
from hybridsim.reference.opencas import OpenCas
from hybridsim.reference.parameters import Fact, Outcome, Request, SourceParameters
from hybridsim.reference.policies import Admission, Replacement
from hybridsim.reference.source import ClosedSource, OpenSource, Source, ThinkSource
from hybridsim.reference.throttle import Throttle
from hybridsim.reference.tier import Tier
from hybridsim.reference.volume import Volume
from hybridsim.reference.writecache import Writecache

COUNTERS = (
    "read_bytes",
    "write_bytes",
    "move_ns",
    "rotation_ns",
    "transfer_ns",
    "read_ahead_hits",
    "write_cache_hits",
    "destages",
    "queue_ns",
)
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
VOLUME_COUNTERS = ("throttled_ns", "iops_limit_ns", "bandwidth_limit_ns", "latency_ns")


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
        self.controller: Controller | None = None
        if controller is not None:
            self.controller = Controller(self.clock, controller, self.tiers["slow"])
        self.throttle: Throttle | None = None
        if throttle is not None:
            self.throttle = Throttle(self.clock, throttle, self.tiers["slow"])
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
        parts = [*self.tiers.values(), self.controller, self.throttle]
        return not any(part.outstanding for part in parts if part is not None)

    def issue(self, number: int) -> None:
        """Submit a request to the cache; on completion append its fact and notify the source."""
        self.submit(number, self.source.request(number), lambda: self.source.completed(number))

    def submit(self, number: int, request: Request, then: Done) -> None:
        """Submit a request to the cache; on completion append its fact, and call `then`."""
        issued = self.clock.now - self.source.shift
        self.under_way += 1
        flags = request.flags & ~SYNC if request.op == Op.WRITE else 0
        verdict: Verdict

        def done() -> None:
            self.under_way -= 1
            self.answered += number < PASS_FROM
            self.facts.append(
                Fact(
                    number=number,
                    issue_ns=issued,
                    done_ns=self.clock.now - self.source.shift,
                    op=request.op,
                    length=request.length,
                    path=verdict.path,
                    reason=verdict.reason,
                    pages=verdict.pages,
                    pages_hit=verdict.pages_hit,
                )
            )
            then()

        def complete() -> None:
            if self.host is None:
                done()
            else:
                self.host.complete(done)

        def submit() -> None:
            nonlocal verdict
            if isinstance(self.cache, Bcache):
                verdict = self.cache.submit(request, complete)
                return
            verdict = self.cache.submit(request.op, request.offset, request.length, complete, flags)

        if self.host is None:
            submit()
        else:
            self.host.submit(request.op, request.length, submit)

    def counters(self) -> dict[str, int]:
        """Return the counters of the cache, of each tier's devices, and of the controller."""
        result: dict[str, int] = dict(self.life.removed or {}) | self.cache.counters
        for name in ("slow", "fast"):
            tier = self.tiers.get(name)
            devices = tier.devices if tier else []
            is_volume = any(isinstance(device, Volume) for device in devices)
            for key in COUNTERS + VOLUME_COUNTERS * is_volume:
                result[f"{name}_{key}"] = sum(device.totals()[key] for device in devices)
            if tier is not None:
                result |= {f"{name}_{key}": value for key, value in tier.usage().items()}
            if tier is not None and tier.rebuild is not None:
                result[f"{name}_rebuilt_bytes"] = tier.rebuild.line
        for part in (self.controller, self.throttle):
            result |= part.counters if part is not None else {}
        return result

    # The parts.

    def make_source(self, parameters: SourceParameters) -> Source:
        """Create the source."""
        if parameters.jobs:
            return JobsSource(self.clock, parameters, self.requests, self.issue)
        kinds: dict[Replay, Callable[..., Source]] = {
            Replay.OPEN: OpenSource,
            Replay.CLOSED: ClosedSource,
            Replay.THINK: ThinkSource,
        }
        kind = kinds[Replay(parameters.mode)]
        return kind(self.clock, parameters, self.requests, self.issue)

    def make_cache(self, parameters: CacheKind) -> Any:
        """Create the cache with its policies."""
        slow, fast, clock = self.life.below()
        if not isinstance(parameters, CacheParameters):
            return CACHES[type(parameters)](clock, parameters, slow, fast)
        admission = self.make_admission(parameters)
        replacement = self.make_replacement(parameters, admission)
        if parameters.budget and parameters.pages:
            budget = Budget(parameters.pages, *vars(parameters.budget).values())
            admission = replacement = Budgeted(admission, replacement, budget)
        return PageCache(clock, parameters, admission, replacement, slow, fast)

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
        devices = [
            self.make_device(parameters.device, tier, member)
            for member in range(parameters.members)
        ]
        return Tier(parameters, devices)

    def make_device(self, parameters: DeviceParameters, tier: str, member: int) -> Device:
        """Create one member of the tier named "slow" or "fast"."""
        return DEVICES[type(parameters)](self.clock, parameters, member)


def simulate(*parts: Any, **more: Any) -> Outcome:
    """Run a trace through a `Machine`, of which these are the arguments."""
    return Machine(*parts, **more).run()
