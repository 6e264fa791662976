"""Token buckets (2.9) of volumes and hosts, in exact rational numbers."""

from collections.abc import Sequence
from fractions import Fraction

from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import LimitParameters


class Bucket:
    """One limit; `due` is when the bucket is full again if no more requests pass."""

    def __init__(self, parameters: LimitParameters) -> None:
        self.parameters = parameters
        self.due = Fraction(0)

    def counts(self, op: Op) -> bool:
        """Whether the limit applies to an op."""
        return op in self.parameters.ops

    @property
    def free(self) -> int:
        """The time from which the next request may pass, whatever its size."""
        return int(self.due) - self.parameters.burst_ns

    def charge(self, start: int, length: int) -> None:
        """Charge a request that passes at `start`."""
        units = max(1, -(-length // self.parameters.unit_bytes))
        if int(self.due) < start:
            self.due = Fraction(start)
        self.due += Fraction(units * 10**9, self.parameters.units_per_s)


class Buckets:
    """All limits of one volume or host."""

    def __init__(self, parameters: Sequence[LimitParameters]) -> None:
        self.buckets = [Bucket(each) for each in parameters]

    def admit(self, now: int, op: Op, length: int) -> tuple[int, Bucket | None]:
        """Charge a request; return when it may pass, and the bucket that delays it (the first)."""
        start, binding = now, None
        concerned = [bucket for bucket in self.buckets if bucket.counts(op)]
        for bucket in concerned:
            if bucket.free > start:
                start, binding = bucket.free, bucket
        for bucket in concerned:
            bucket.charge(start, length)
        return start, binding
