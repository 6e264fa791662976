"""Token buckets (2.9): what a volume and a host let pass, in exact rational numbers."""

from collections.abc import Sequence
from fractions import Fraction

from hybridsim.foundation.codes import Op
from hybridsim.reference.parameters import LimitParameters


class Bucket:
    """One limit; `due` is when the bucket will be full again if nothing more passes."""

    def __init__(self, parameters: LimitParameters) -> None:
        self.parameters = parameters
        self.due = Fraction(0)

    def counts(self, op: Op) -> bool:
        """Whether the limit counts such requests."""
        return op in self.parameters.ops

    @property
    def free(self) -> int:
        """When the next request may pass, whatever it costs."""
        return int(self.due) - self.parameters.burst_ns

    def charge(self, start: int, length: int) -> None:
        """Take what passes at `start` out of the bucket."""
        units = max(1, -(-length // self.parameters.unit_bytes))
        if int(self.due) < start:
            self.due = Fraction(start)
        self.due += Fraction(units * 10**9, self.parameters.units_per_s)


class Buckets:
    """All limits of one volume or host."""

    def __init__(self, parameters: Sequence[LimitParameters]) -> None:
        self.buckets = [Bucket(each) for each in parameters]

    def admit(self, now: int, op: Op, length: int) -> tuple[int, Bucket | None]:
        """When a request may pass, and the bucket that holds it up (of equal ones the first)."""
        start, binding = now, None
        concerned = [bucket for bucket in self.buckets if bucket.counts(op)]
        for bucket in concerned:
            if bucket.free > start:
                start, binding = bucket.free, bucket
        for bucket in concerned:
            bucket.charge(start, length)
        return start, binding
