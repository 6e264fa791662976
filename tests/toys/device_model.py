"""The drive of memory, plain."""

from dataclasses import dataclass

from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.device import Device
from hybridsim.reference.parameters import DeviceParameters


@dataclass
class RamParameters(DeviceParameters):
    """A drive of memory."""

    latency_ns: int
    capacity_bytes: int


class RamModel(Device):
    """Completes each request after the same time."""

    def __init__(self, clock: Clock, parameters: RamParameters, member: int) -> None:
        super().__init__(clock)
        self.parameters = parameters

    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Complete the request after the latency."""
        self.clock.at(self.clock.now + self.parameters.latency_ns, done)
