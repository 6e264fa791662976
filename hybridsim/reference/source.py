"""The source (2.2): when each request of a trace is issued."""

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Sequence

from hybridsim.reference.clock import Clock
from hybridsim.reference.parameters import Request, SourceParameters


class Source(ABC):
    """Issues requests by their number, and hears of their completion."""

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

    @abstractmethod
    def start(self) -> None:
        """Begin, at time 0."""

    def completed(self, number: int) -> None:  # noqa: B027 - an open source does not care
        """Hear that a request has just completed."""

    def request(self, number: int) -> Request:
        """The request of a number."""
        return self.requests[number]

    def is_over(self, answered: int) -> bool:
        """Tell whether all is answered, being told how many are."""
        return answered == len(self.requests)

    def arrive(self, number: int, time: int) -> None:
        """Issue a request at `time`, or at once if that is past."""
        self.clock.arrive(max(time, self.clock.now), number, lambda: self.issue(number))

    def scaled(self, time: int) -> int:
        """A time of the trace at the speed of the replay, half to even as in float64."""
        return round(float(time) / self.parameters.speed)


class OpenSource(Source):
    """Requests arrive when they did in the trace, however slow the machine is."""

    def start(self) -> None:
        """Let them all arrive."""
        for number, request in enumerate(self.requests):
            self.arrive(number, self.scaled(request.arrival_ns))


class ClosedSource(Source):
    """A fixed number of requests is outstanding at all times."""

    def start(self) -> None:
        """Issue the first few."""
        self.next = 0
        for _ in range(self.parameters.depth):
            self.issue_next()

    def completed(self, number: int) -> None:
        """Put the next in its place."""
        self.issue_next()

    def issue_next(self) -> None:
        """Issue the next request now, if there is one."""
        if self.next < len(self.requests):
            self.arrive(self.next, self.clock.now)
            self.next += 1


class ThinkSource(Source):
    """A request follows one that completed before it in the trace, after the same time to think."""

    LOADED = 4096

    def start(self) -> None:
        """Find out who follows whom, and load the first requests."""
        self.parents = parents(self.requests)
        self.next = 0
        self.outstanding = 0  # loaded and not complete
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
                self.arrive(number, self.scaled(self.requests[number].arrival_ns))
            elif parent in self.completion:
                self.follow(number)
            else:
                self.waiting[parent].append(number)

    def completed(self, number: int) -> None:
        """Let those follow that waited for this one, and load more."""
        self.completion[number] = self.clock.now
        self.outstanding -= 1
        for child in self.waiting.pop(number, []):
            self.follow(child)
        self.load()

    def follow(self, number: int) -> None:
        """Issue a request after its gap from the completion of its parent."""
        parent = self.parents[number]
        gap = self.requests[number].arrival_ns - self.requests[parent].complete_ns
        self.arrive(number, self.completion[parent] + self.scaled(gap))


WINDOW = 65_536  # requests back that a parent may be


def parents(requests: Sequence[Request]) -> list[int]:
    """For each request the one it followed in the trace, -1 if none.

    That is the last to complete before it arrived: of its own stream if there is one, else of any.
    A request whose completion is not known is nobody's parent.
    """
    everyone: list[tuple[int, int]] = []  # (completion, number) in order
    by_stream: dict[int, list[tuple[int, int]]] = defaultdict(list)

    result = []
    for number, request in enumerate(requests):
        parent = latest(by_stream[request.stream], request.arrival_ns)
        if number - parent > WINDOW or parent < 0:
            parent = latest(everyone, request.arrival_ns)
        if number - parent > WINDOW:
            parent = -1
        result.append(parent)

        if request.complete_ns >= 0:
            insort(everyone, (request.complete_ns, number))
            insort(by_stream[request.stream], (request.complete_ns, number))
    return result


def latest(completions: list[tuple[int, int]], time: int) -> int:
    """The number of the last of some ordered (completion, number) not after `time`, or -1."""
    after = bisect_right(completions, time, key=lambda each: each[0])
    return completions[after - 1][1] if after > 0 else -1
