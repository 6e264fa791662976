"""The source (2.2): when each request of a trace is issued."""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Sequence

from hybridsim.reference.clock import Clock
from hybridsim.reference.parameters import Request, SourceParameters


class Source(ABC):
    """Issues requests by number, and is notified of their completion."""

    def __init__(
        self,
        clock: Clock,
        parameters: SourceParameters,
        requests: Sequence[Request],
        issue: Callable[[int], None],
    ) -> None:
        self.clock = clock
        self.parameters = parameters
        self.requests = requests
        self.issue = issue
        self.is_held = False
        self.shift = 0  # for how long the load was held so far
        self.scheduled: dict[int, int] = {}  # arrivals to come, by number

    @abstractmethod
    def start(self) -> None:
        """Begin, at time 0."""

    def completed(self, number: int) -> None:  # noqa: B027 - optional
        """Record that a request has completed."""

    def request(self, number: int) -> Request:
        """Return a request by its number."""
        return self.requests[number]

    def is_over(self, answered: int) -> bool:
        """Whether all requests are complete; `answered` is the number of complete ones."""
        return answered == len(self.requests)

    def arrive(self, number: int, time: int) -> None:
        """Issue a request at `time`, or now if that is past."""
        time = self.scheduled[number] = max(time, self.clock.now)

        def arrive() -> None:
            if not self.is_held and self.scheduled.get(number) == time:
                del self.scheduled[number]
                self.issue(number)

        self.clock.arrive(time, number, arrive)

    def delay(self, by: int) -> None:
        """End the hold of the load: what is to come does so later (2.17)."""
        self.is_held = False
        self.shift += by
        for number, time in sorted(self.scheduled.items()):
            self.arrive(number, time + by)

    def scaled(self, time: int) -> int:
        """Return a trace time divided by the replay speed, rounded half to even as in float64."""
        return round(float(time) / self.parameters.speed)

    def arrival(self, number: int) -> int:
        """Return when a request arrives that waits for no other one."""
        return self.scaled(self.requests[number].arrival_ns) + self.shift


class OpenSource(Source):
    """Issues requests at their recorded arrival times, whatever the machine's speed."""

    def start(self) -> None:
        """Schedule all arrivals."""
        for number in range(len(self.requests)):
            self.arrive(number, self.arrival(number))


class ClosedSource(Source):
    """Keeps a fixed number of requests outstanding."""

    def start(self) -> None:
        """Issue the first requests, up to the depth."""
        self.next = 0
        for _ in range(self.parameters.depth):
            self.issue_next()

    def completed(self, number: int) -> None:
        """Issue the next request."""
        self.issue_next()

    def delay(self, by: int) -> None:
        """End the hold of the load: the next requests are issued now."""
        self.scheduled = dict.fromkeys(self.scheduled, self.clock.now - by)
        super().delay(by)

    def issue_next(self) -> None:
        """Issue the next request now, if there is one."""
        if self.next < len(self.requests):
            self.arrive(self.next, self.clock.now)
            self.next += 1


class ThinkSource(Source):
    """Issues each request after its parent in the trace completes, after the same think time."""

    LOADED = 4096

    def start(self) -> None:
        """Determine the parents and load the first requests."""
        self.parents = parents(self.requests)
        self.next = 0
        self.outstanding = 0  # requests loaded and not complete
        self.completion: dict[int, int] = {}
        self.waiting: dict[int, list[int]] = defaultdict(list)  # by parent
        self.load()

    def load(self) -> None:
        """Load requests in order while there is room."""
        while self.outstanding < self.LOADED and self.next < len(self.requests):
            number = self.next
            parent = self.parents[number]
            self.next += 1
            self.outstanding += 1
            if parent < 0:
                self.arrive(number, self.arrival(number))
            elif parent in self.completion:
                self.follow(number)
            else:
                self.waiting[parent].append(number)

    def completed(self, number: int) -> None:
        """Schedule the requests that waited for this one, and load more."""
        self.completion[number] = self.clock.now
        self.outstanding -= 1
        for child in self.waiting.pop(number, []):
            self.follow(child)
        self.load()

    def delay(self, by: int) -> None:
        """End the hold of the load: think times do not pass while it is held."""
        self.completion = {number: time + by for number, time in self.completion.items()}
        super().delay(by)

    def follow(self, number: int) -> None:
        """Schedule a request at its gap after the completion of its parent."""
        parent = self.parents[number]
        gap = self.requests[number].arrival_ns - self.requests[parent].complete_ns
        self.arrive(number, self.completion[parent] + self.scaled(gap))


WINDOW = 65_536  # maximum distance to a parent, in requests


def parents(requests: Sequence[Request]) -> list[int]:
    """Return, for each request, the number of its parent in the trace; -1: none.

    The parent is the last request to complete before the arrival: of the same stream if there is
    one, otherwise of any stream.
    A request without a recorded completion is no parent.
    """
    all_streams: list[tuple[int, int]] = []  # (completion, number) in order
    by_stream: dict[int, list[tuple[int, int]]] = defaultdict(list)

    result = []
    for number, request in enumerate(requests):
        parent = latest(by_stream[request.stream], request.arrival_ns)
        if number - parent > WINDOW or parent < 0:
            parent = latest(all_streams, request.arrival_ns)
        if number - parent > WINDOW:
            parent = -1
        result.append(parent)

        if request.complete_ns >= 0:
            insort(all_streams, (request.complete_ns, number))
            insort(by_stream[request.stream], (request.complete_ns, number))
    return result


def latest(completions: list[tuple[int, int]], time: int) -> int:
    """Return the number of the last of the sorted (completion, number) not after `time`, or -1."""
    after = bisect_right(completions, time, key=lambda each: each[0])
    return completions[after - 1][1] if after > 0 else -1
