"""Hard disks: seek, rotation, zones, read-ahead, and which request to serve next."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.arrays import Bytes, Int32s, Ints, extended_free_list, free_list, longer
from hybridsim.codes import OP_MASK, Op
from hybridsim.jit import method, state_machine

READ, WRITE = int(Op.READ), int(Op.WRITE)
BUSY_NS, MOVE_NS, ROTATION_NS, TRANSFER_NS, BYTES_READ, BYTES_WRITTEN = range(6)
NOTHING = -1


@state_machine
class Queue(NamedTuple):
    """The requests that wait at the disks of a bank, one slot each, linked oldest first."""

    tag: Ints
    op: Bytes
    offset: Ints
    length: Ints
    submitted_ns: Ints
    track: Ints  # where the request begins
    angle_ns: Ints
    next: Int32s  # younger request of the same disk, or next free slot
    free: Ints  # [first free slot, free slots]
    oldest: Int32s  # by disk, or NOTHING
    youngest: Int32s

    @classmethod
    def new(cls, members: int, capacity: int) -> Queue:
        """Make empty queues for `members` disks with room for `capacity` requests in all."""
        kinds = (np.int64, np.uint8, np.int64, np.int64, np.int64, np.int64, np.int64)
        columns = (np.zeros(capacity, kind) for kind in kinds)
        free = np.array([0, capacity])
        ends = (np.full(members, NOTHING, np.int32) for _ in range(2))
        return cls._make([*columns, free_list(capacity), free, *ends])

    def grown(self, capacity: int) -> Queue:
        """Return the same queues with room for `capacity` requests."""
        added = capacity - len(self.tag)
        links, head = extended_free_list(self.next, int(self.free[0]), capacity)
        free = np.array([head, self.free[1] + added])
        columns = (longer(column, capacity) for column in self[:7])
        return Queue._make([*columns, links, free, self.oldest, self.youngest])

    @method
    def append(self, member):
        """Take a free slot and put it at the young end of a disk's queue."""
        slot = self.free[0]
        self.free[0] = self.next[slot]
        self.free[1] -= 1
        self.next[slot] = NOTHING
        if self.oldest[member] == NOTHING:
            self.oldest[member] = slot
        else:
            self.next[self.youngest[member]] = slot
        self.youngest[member] = slot
        return slot

    @method
    def unlink(self, member, older, slot):
        """Take a request out of its disk's queue; `older` is the one before it, or NOTHING."""
        if older == NOTHING:
            self.oldest[member] = self.next[slot]
        else:
            self.next[older] = self.next[slot]
        if self.youngest[member] == slot:
            self.youngest[member] = older

    @method
    def release(self, slot):
        """Give a slot back."""
        self.next[slot] = self.free[0]
        self.free[0] = slot
        self.free[1] += 1


@state_machine
class HDD(NamedTuple):
    """A bank of equal disks (DESIGN.md 2.6)."""

    rev_ns: int
    surfaces: int
    seek_shift: int
    head_switch_ns: int
    skew_ns: int
    settle_ns: int
    overhead_ns: int
    window: int
    age_limit_ns: int
    read_ahead_bytes: int
    capacity_bytes: int
    zone_byte: Ints  # first byte of each zone
    zone_track: Ints  # first track of each zone
    zone_track_bytes: Ints
    seek_ns: Ints  # by cylinder distance
    queue: Queue
    serving: Int32s  # slot under way, or NOTHING
    until_ns: Ints  # when it will be done
    arm_track: Ints
    ahead_start: Ints  # read-ahead segment, NOTHING if none
    ahead_end: Ints
    ahead_end_ns: Ints
    ahead_stop: Ints
    ahead_stop_ns: Ints
    counts: Ints  # [member, BUSY_NS ... BYTES_WRITTEN]

    @classmethod
    def new(cls, members: int, geometry: dict[str, Any], capacity: int = 256) -> HDD:
        """Make `members` idle disks; `geometry` gives the parameters and tables by name."""
        return cls(
            **{name: geometry[name] for name in cls._fields[:15]},
            queue=Queue.new(members, capacity),
            serving=np.full(members, NOTHING, np.int32),
            until_ns=np.zeros(members, np.int64),
            arm_track=np.zeros(members, np.int64),
            ahead_start=np.full(members, NOTHING, np.int64),
            ahead_end=np.full(members, NOTHING, np.int64),
            ahead_end_ns=np.full(members, NOTHING, np.int64),
            ahead_stop=np.full(members, NOTHING, np.int64),
            ahead_stop_ns=np.full(members, NOTHING, np.int64),
            counts=np.zeros((members, 6), np.int64),
        )

    @method
    def room(self):
        """Return how many requests the bank can still take."""
        return self.queue.free[1]

    def size(self) -> int:
        """Return how many requests the bank can take in all."""
        return len(self.queue.tag)

    def grown(self, capacity: int) -> HDD:
        """Return the same bank with room for `capacity` requests."""
        return self._replace(queue=self.queue.grown(capacity))

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return what all members have done so far, by name."""
        names = ("busy_ns", "seek_ns", "rotation_ns", "transfer_ns", "bytes_read", "bytes_written")
        totals = dict(zip(names, self.counts.sum(axis=0).tolist(), strict=True))
        totals["busy_ns"] -= int(np.maximum(self.until_ns - now_ns, 0).sum())  # still to be done
        return totals

    @method
    def submit(self, now, member, tag, op, offset, length, kind, events):
        """Queue a request; an idle disk starts it at once."""
        queue = self.queue
        slot = queue.append(member)
        queue.tag[slot] = tag
        queue.op[slot] = op & OP_MASK
        queue.offset[slot] = offset
        queue.length[slot] = length
        queue.submitted_ns[slot] = now
        track, angle_ns = self.position(offset)
        queue.track[slot] = track
        queue.angle_ns[slot] = angle_ns
        if self.serving[member] == NOTHING:
            self.start(now, member, kind, events)

    @method
    def complete(self, now, member, kind, events):
        """Start the disk's next request, if any; return the tag of the completed one."""
        slot = self.serving[member]
        tag = self.queue.tag[slot]
        self.queue.release(slot)
        self.serving[member] = NOTHING
        if self.queue.oldest[member] != NOTHING:
            self.start(now, member, kind, events)
        return tag

    @method
    def start(self, now, member, kind, events):
        """Pick a request, move the arm, and schedule the completion."""
        slot = self.pick(now, member)
        self.serving[member] = slot
        done = self.serve(now, member, slot)
        self.until_ns[member] = done
        self.counts[member, BUSY_NS] += done - now
        events.push(done, kind, member)

    @method
    def pick(self, now, member):
        """Take the request to serve next out of the queue: shortest positioning time first."""
        queue = self.queue
        best = queue.oldest[member]
        before_best = NOTHING
        waited = now - queue.submitted_ns[best]
        if self.window > 1 and waited < self.age_limit_ns and queue.next[best] != NOTHING:
            least = self.cost_ns(now, member, best)
            before = best
            slot = queue.next[best]
            for _ in range(self.window - 1):
                if slot == NOTHING or least == 0:
                    break
                cost = self.cost_ns(now, member, slot)
                if cost < least:
                    least = cost
                    best = slot
                    before_best = before
                before = slot
                slot = queue.next[slot]
        queue.unlink(member, before_best, best)
        return best

    @method
    def cost_ns(self, now, member, slot):
        """Return the time until the request's first byte is under the head."""
        queue = self.queue
        op = queue.op[slot]
        length = queue.length[slot]
        if length == 0 or (op != READ and op != WRITE):
            return 0
        ready = self.ready_ns(now, slot)
        offset = queue.offset[slot]
        track = queue.track[slot]
        angle_ns = queue.angle_ns[slot]
        if op == READ and self.is_ahead(member, offset):
            stop = self.ahead_stop[member]
            if offset + length <= stop or self.ahead_stop_ns[member] >= ready:
                return 0
            track, angle_ns = self.position(stop)
        move = self.move_ns(member, track, op)
        return move + (angle_ns - (ready + move)) % self.rev_ns

    @method
    def ready_ns(self, now, slot):
        """Return when the electronics are ready: they prepare a request while it waits."""
        return max(now, self.queue.submitted_ns[slot] + self.overhead_ns)

    @method
    def serve(self, now, member, slot):
        """Carry out a request chosen now; return when it is done."""
        queue = self.queue
        op = queue.op[slot]
        offset = queue.offset[slot]
        length = queue.length[slot]
        ready = self.ready_ns(now, slot)
        if length == 0 or (op != READ and op != WRITE):
            return ready
        if op == READ and self.is_ahead(member, offset):
            self.counts[member, BYTES_READ] += length
            return self.read_ahead(ready, member, offset, offset + length)
        track = queue.track[slot]
        done = self.access(ready, member, op, offset, length, track, queue.angle_ns[slot])
        if op == READ:
            self.counts[member, BYTES_READ] += length
            self.buffer(member, offset, offset + length, done)
        else:
            self.counts[member, BYTES_WRITTEN] += length
            self.ahead_start[member] = NOTHING
        return done

    @method
    def access(self, ready, member, op, offset, length, track, angle_ns):
        """Position the head and transfer; return when the last byte has passed."""
        move = self.move_ns(member, track, op)
        rotation = (angle_ns - (ready + move)) % self.rev_ns
        transfer = self.transfer_ns(offset, length)
        self.counts[member, MOVE_NS] += move
        self.counts[member, ROTATION_NS] += rotation
        self.counts[member, TRANSFER_NS] += transfer
        self.put_arm(member, offset + length)
        return ready + move + rotation + transfer

    @method
    def is_ahead(self, member, offset):
        """Tell whether the read-ahead has, or will soon have, the byte at `offset`."""
        start = self.ahead_start[member]
        return start != NOTHING and start <= offset and offset <= self.ahead_stop[member]

    @method
    def read_ahead(self, ready, member, offset, end):
        """Serve a read from what the disk has read, or is reading, beyond the last one."""
        start = self.ahead_start[member]
        have = self.ahead_end[member]
        stop = self.ahead_stop[member]
        if end <= have:
            return ready
        if self.ahead_stop_ns[member] >= ready:  # still reading
            end_ns = self.ahead_end_ns[member] + self.stream_ns(have, end - have)
            self.put_arm(member, end)
            self.buffer(member, start, end, end_ns)
            return max(ready, end_ns)
        track, angle_ns = self.position(stop)
        if end <= stop:  # there; and there is room to read on from where it stopped
            resumed_ns = ready + (angle_ns - ready) % self.rev_ns
            self.put_arm(member, end)
            self.buffer(member, start, end, resumed_ns - self.stream_ns(end, stop - end))
            return ready
        done = self.access(ready, member, READ, stop, end - stop, track, angle_ns)
        self.buffer(member, start, end, done)
        return done

    @method
    def buffer(self, member, start, end, end_ns):
        """Let the segment be the bytes read from `start` to `end`, and what follows."""
        if self.read_ahead_bytes == 0:
            return
        stop = min(end + self.read_ahead_bytes, self.capacity_bytes)
        self.ahead_start[member] = max(start, end - self.read_ahead_bytes)
        self.ahead_end[member] = end
        self.ahead_end_ns[member] = end_ns
        self.ahead_stop[member] = stop
        self.ahead_stop_ns[member] = end_ns + self.stream_ns(end, stop - end)

    @method
    def move_ns(self, member, track, op):
        """Return the time to bring a head to `track`, and to settle before a write."""
        arm = self.arm_track[member]
        if track == arm:
            return 0
        distance = abs(track // self.surfaces - arm // self.surfaces)
        move = self.head_switch_ns
        if distance > 0:
            move = self.seek_ns[(distance + (1 << self.seek_shift) - 1) >> self.seek_shift]
        if op == WRITE:
            move += self.settle_ns
        return move

    @method
    def put_arm(self, member, end):
        """Leave the arm over the track of the last byte before `end`."""
        zone = self.zone_of(end - 1)
        track = (end - 1 - self.zone_byte[zone]) // self.zone_track_bytes[zone]
        self.arm_track[member] = self.zone_track[zone] + track

    @method
    def zone_of(self, byte):
        """Return the zone that a byte lies in."""
        low = 0
        high = len(self.zone_track) - 1
        while low < high:
            middle = (low + high + 1) >> 1
            if self.zone_byte[middle] <= byte:
                low = middle
            else:
                high = middle - 1
        return low

    @method
    def position(self, byte):
        """Return the track of a byte, and its angle in nanoseconds of rotation."""
        zone = self.zone_of(byte)
        track_bytes = self.zone_track_bytes[zone]
        inside = byte - self.zone_byte[zone]
        track = self.zone_track[zone] + inside // track_bytes
        angle_ns = inside % track_bytes * self.rev_ns // track_bytes + track * self.skew_ns
        return track, angle_ns % self.rev_ns

    @method
    def transfer_ns(self, byte, length):
        """Return how long `length` bytes pass under the heads, track changes included."""
        if length == 0:
            return 0
        zone = self.zone_of(byte)
        track_bytes = self.zone_track_bytes[zone]
        within = (byte - self.zone_byte[zone]) % track_bytes
        crossings = (within + length - 1) // track_bytes
        return length * self.rev_ns // track_bytes + crossings * self.skew_ns

    @method
    def stream_ns(self, byte, length):
        """Return how long the `length` bytes take that follow those just read."""
        transfer = self.transfer_ns(byte, length)
        zone = self.zone_of(byte)
        begins_track = (byte - self.zone_byte[zone]) % self.zone_track_bytes[zone] == 0
        return transfer + self.skew_ns if begins_track and length > 0 else transfer
