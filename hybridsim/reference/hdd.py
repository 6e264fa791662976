"""The hard disk (2.6): an arm, a turning platter, a read-ahead buffer and a queue."""

from bisect import bisect_right
from dataclasses import dataclass

from hybridsim.codes import OP_MASK, Op
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.device import Device
from hybridsim.reference.parameters import HddParameters


@dataclass
class Command:
    """A request in the disk's queue."""

    op: Op
    offset: int
    length: int
    submitted: int
    done: Done

    @property
    def end(self) -> int:
        """The byte after the last."""
        return self.offset + self.length


@dataclass
class Segment:
    """The buffer: from byte `start` up to `end`, which passed at `time`; the disk reads on."""

    start: int
    end: int
    time: int


@dataclass
class Plan:
    """How a command would go if it were chosen now."""

    done: int
    track: int  # where the arm will be
    segment: Segment | None
    move: int = 0  # settling included
    rotation: int = 0
    transfer: int = 0

    @property
    def cost(self) -> int:
        """What the disk would spend on getting there; what the queue is ordered by."""
        return self.move + self.rotation


class Hdd(Device):
    """A disk that serves one command at a time, the cheapest of those that have waited longest."""

    def __init__(self, clock: Clock, parameters: HddParameters) -> None:
        super().__init__(clock)
        self.parameters = parameters
        self.track = 0
        self.segment: Segment | None = None
        self.busy = False
        self.queue: list[Command] = []  # the oldest first

    # The queue.

    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Queue a command; an idle disk starts it in this very instant."""
        command = Command(Op(op & OP_MASK), offset, length, self.clock.now, done)
        if self.busy:
            self.queue.append(command)
        else:
            self.start(command)

    def start(self, command: Command) -> None:
        """Carry out a command, which is known to its end from here on."""
        plan = self.plan(command)
        self.busy = True
        self.track = plan.track
        self.segment = plan.segment
        self.counters["move_ns"] += plan.move
        self.counters["rotation_ns"] += plan.rotation
        self.counters["transfer_ns"] += plan.transfer
        self.clock.at(plan.done, lambda: self.complete(command))

    def complete(self, command: Command) -> None:
        """Go on with the next command before the world hears that this one is complete."""
        self.busy = False
        if self.queue:
            chosen = self.choose()
            self.queue.remove(chosen)
            self.start(chosen)
        command.done()

    def choose(self) -> Command:
        """The oldest if it has waited too long, else the cheapest of the oldest few."""
        oldest = self.queue[0]
        if self.clock.now - oldest.submitted >= self.parameters.age_limit_ns:
            return oldest
        # min() gives the first of equals: the older.
        return min(self.queue[: self.parameters.window], key=lambda each: self.plan(each).cost)

    # One command.

    def plan(self, command: Command) -> Plan:
        """How the command would go, chosen now; changes nothing."""
        # the electronics prepare a command while it waits
        ready = max(self.clock.now, command.submitted + self.parameters.overhead_ns)
        if command.length == 0 or command.op in (Op.FLUSH, Op.DISCARD):
            return Plan(ready, self.track, self.segment)
        if command.op == Op.WRITE:
            plan = self.access(ready, command.offset, command.end, write=True)
            plan.segment = None
            return plan
        if self.segment is not None:
            if self.segment.start <= command.offset <= self.stop(self.segment):
                return self.plan_buffered(ready, command, self.segment)
        plan = self.access(ready, command.offset, command.end)
        plan.segment = self.buffer(command.offset, command.end, plan.done)
        return plan

    def plan_buffered(self, ready: int, command: Command, segment: Segment) -> Plan:
        """How a READ goes that begins in the buffer, or where the disk is about to read."""
        if command.end <= segment.end:  # (a) all there
            return Plan(ready, self.track, segment)

        stop = self.stop(segment)
        stopped = segment.time + self.stream(segment.end, stop - segment.end)
        track = self.track_of(command.end - 1)
        if stopped >= ready:  # (b) still reading: wait until the end passes under the head
            passed = segment.time + self.stream(segment.end, command.end - segment.end)
            return Plan(max(ready, passed), track, self.buffer(segment.start, command.end, passed))
        if (
            command.end <= stop
        ):  # (c) all there; with room again, the disk reads on where it stopped
            resumed = ready + (self.angle(stop) - ready) % self.parameters.rev_ns
            passed = resumed - self.stream(command.end, stop - command.end)
            return Plan(ready, track, self.buffer(segment.start, command.end, passed))

        plan = self.access(ready, stop, command.end)  # (d) the beginning is there, the rest is not
        plan.segment = self.buffer(segment.start, command.end, plan.done)
        return plan

    def access(self, ready: int, offset: int, end: int, write: bool = False) -> Plan:
        """Move the arm, wait for the first byte to come round, transfer."""
        p = self.parameters
        track = self.track_of(offset)
        move = self.move(self.track, track)
        if write and track != self.track:
            move += p.settle_ns
        rotation = (self.angle(offset) - (ready + move)) % p.rev_ns
        transfer = self.transfer(offset, end - offset)
        done = ready + move + rotation + transfer
        return Plan(done, self.track_of(end - 1), None, move, rotation, transfer)

    # The read-ahead buffer.

    def buffer(self, start: int, end: int, time: int) -> Segment | None:
        """What is buffered after a READ; no more than the read-ahead is kept of what was read."""
        size = self.parameters.read_ahead_bytes
        if size == 0:
            return None
        return Segment(max(start, end - size), end, time)

    def stop(self, segment: Segment) -> int:
        """Where the disk stops reading on."""
        return min(segment.end + self.parameters.read_ahead_bytes, self.parameters.capacity_bytes)

    # Geometry.

    def zone(self, byte: int) -> int:
        """The zone of a byte."""
        return bisect_right(self.parameters.zone_byte, byte) - 1

    def track_of(self, byte: int) -> int:
        """The track of a byte."""
        p = self.parameters
        z = self.zone(byte)
        return p.zone_track[z] + (byte - p.zone_byte[z]) // p.zone_track_bytes[z]

    def angle(self, byte: int) -> int:
        """The time after the start of a revolution at which a byte passes under the head."""
        p = self.parameters
        z = self.zone(byte)
        within = (byte - p.zone_byte[z]) % p.zone_track_bytes[z]
        turn = within * p.rev_ns // p.zone_track_bytes[z]
        return (turn + self.track_of(byte) * p.skew_ns) % p.rev_ns

    def move(self, here: int, there: int) -> int:
        """How long the arm takes from track to track."""
        p = self.parameters
        if here == there:
            return 0
        distance = abs(here // p.surfaces - there // p.surfaces)
        if distance == 0:
            return p.head_switch_ns
        index = (distance + (1 << p.seek_shift) - 1) >> p.seek_shift
        return p.seek_ns[index]

    def transfer(self, byte: int, length: int) -> int:
        """How long the bytes take to pass under the head, with the skew of each track border."""
        p = self.parameters
        if length == 0:
            return 0
        z = self.zone(byte)
        track_bytes = p.zone_track_bytes[z]
        within = (byte - p.zone_byte[z]) % track_bytes
        borders = (within + length - 1) // track_bytes
        return length * p.rev_ns // track_bytes + borders * p.skew_ns

    def stream(self, byte: int, length: int) -> int:
        """How long the bytes take that follow those just read."""
        p = self.parameters
        z = self.zone(byte)
        begins_track = (byte - p.zone_byte[z]) % p.zone_track_bytes[z] == 0
        return self.transfer(byte, length) + (p.skew_ns if begins_track and length > 0 else 0)
