"""The host (2.10), in front of the cache."""

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.limits import Buckets
from hybridsim.reference.parameters import HostParameters, LimitParameters


class Host:
    """Passes requests in order, limited in IOPS and bytes per second."""

    def __init__(self, clock: Clock, parameters: HostParameters) -> None:
        self.clock = clock
        self.overhead_ns = parameters.overhead_ns
        limits = []
        if parameters.max_iops:
            limits.append(LimitParameters(list(Op), 2**62, parameters.max_iops))
        if parameters.max_bytes_per_s:
            limits.append(LimitParameters([Op.READ, Op.WRITE], 1, parameters.max_bytes_per_s))
        self.buckets = Buckets(limits)

    def submit(self, op: Op, length: int, passed: Done) -> None:
        """Take an issued request; `passed` is called when it has passed, never from within."""
        if length == 0 or op not in (Op.READ, Op.WRITE):
            op, length = Op.FLUSH, 0  # it moves no data
        start, _ = self.buckets.admit(self.clock.now, op, length)
        self.clock.at(start + self.overhead_ns, passed)
