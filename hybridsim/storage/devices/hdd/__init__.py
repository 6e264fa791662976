"""Hard disks: the commands that wait, which one or which cached write is next, and when it ends.

platters     the place of each byte, the arms, and the times of moves and transfers
buffer       read-ahead, and acknowledged writes that are not yet on the platters
media_cache  writes in a log on the platters, on the way to shingled bands
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, pool_of, roomy_pool
from hybridsim.foundation.codes import FUA, OP_MASK, Op, Order
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken
from hybridsim.storage.devices.hdd.buffer import ReadAhead, WriteCache
from hybridsim.storage.devices.hdd.media_cache import MediaCache
from hybridsim.storage.devices.hdd.platters import ANGLE_NS, CYLINDER, TRACK, Arm, Platters

BUSY_NS, QUEUE_NS, BYTES_READ, BYTES_WRITTEN, READ_AHEAD_HITS, WRITE_CACHE_HITS, DESTAGES = range(7)
COUNTS = ("bytes_read", "bytes_written", "read_ahead_hits", "write_cache_hits", "destages")
DESTAGE, CLEAN = -2, -3  # served instead of a command
LINES = 3  # queues of each disk: commands for the platters, writes without room, flushes
READS, WRITES = 0, 1  # kinds of commands with data
PLATTERS, HIT = 0, 1  # their overheads: with an access, or with the buffer or write cache alone
SAME, OTHER, APART = range(3)  # ... after the same kind, the other, or a WRITE that ends elsewhere
BEHIND = 1 << 40  # added to tracks that a sweep has already passed


def overheads(parameters: HddParameters) -> list[tuple[int, int, int]]:
    """Return each overhead after a command of the same kind, of the other kind, and apart.

    A cached write that does not continue the write before it costs as much as after a read.
    """
    p = parameters
    same = [p.read_ns, p.hit_ns, p.write_ns, p.write_hit_ns]
    other = list(p.after_other_ns) or same
    apart = [*same[:3], other[3]]
    return list(zip(same, other, apart, strict=True))


@state_machine
class Queue(NamedTuple):
    """The commands at the disks of a bank, one slot each; lines are queues, oldest first."""

    tag: Ints
    member: Int32s
    op: Bytes
    after: Bytes  # what a read or a write follows: an index of the overheads
    offset: Ints
    length: Ints
    submitted_ns: Ints
    entered_ns: Ints  # when it became one of those that the arm chooses from
    prepared_ns: Ints  # earliest time at which it can go to the platters
    zone: Ints  # place of its first byte
    track: Ints
    cylinder: Ints
    angle_ns: Ints
    lines: Fifos
    following: Int32s  # younger command of the same line, or next free slot
    free: Ints  # [first free slot, number of free slots]

    @method
    def take(self, now, member, tag, op, offset, length):
        """Put a command into a free slot; return the slot."""
        slot = taken(self)
        self.tag[slot] = tag
        self.member[slot] = member
        self.op[slot] = op
        self.offset[slot] = offset
        self.length[slot] = length
        self.submitted_ns[slot] = now
        return slot

    @method
    def find(self, slot, platters):
        """Set the place of a command on the platters."""
        place = platters.place(self.offset[slot])
        self.zone[slot], self.track[slot], self.cylinder[slot], self.angle_ns[slot] = place

    @method
    def place(self, slot):
        """Return the place of a command on the platters."""
        return self.zone[slot], self.track[slot], self.cylinder[slot], self.angle_ns[slot]


@state_machine
class Window(NamedTuple):
    """The `size` oldest commands of each disk's queue; a command's age starts when it enters."""

    size: int
    waiting: Ints  # number of commands in the queue, inside the window or after it
    youngest: Int32s  # of those inside, or NOTHING

    @classmethod
    def new(cls, members: int, size: int) -> Window:
        """Return empty windows."""
        return cls(size, np.zeros(members, np.int64), np.full(members, NOTHING, np.int32))

    @method
    def append(self, now, member, line, slot, queue):
        """Append a command to a disk's queue."""
        queue.lines.append(line, slot, queue.following)
        self.waiting[member] += 1
        if self.waiting[member] <= self.size:
            self.enter(now, member, slot, queue)

    @method
    def unlink(self, now, member, line, older, slot, queue):
        """Remove a command from its queue; `older` is the one before it, or NOTHING."""
        queue.lines.unlink(line, older, slot, queue.following)
        self.waiting[member] -= 1
        if self.youngest[member] == slot:
            self.youngest[member] = older
        if self.waiting[member] >= self.size:
            last = self.youngest[member]
            following = queue.lines.first[line] if last == NOTHING else queue.following[last]
            self.enter(now, member, following, queue)

    @method
    def enter(self, now, member, slot, queue):
        """Move the next command into the window."""
        queue.entered_ns[slot] = now
        self.youngest[member] = slot


@state_machine
class HDD(NamedTuple):
    """A bank of equal disks (DESIGN.md 2.6).

    The number of an event is 2 * member for the arm, 2 * slot + 1 for the electronics.
    """

    capacity_bytes: int
    hit_ns: int  # overhead of commands without data
    flush_ns: int  # time of a flush after the writes that it waits for
    host_ps_per_byte: int
    order: int
    age_limit_ns: int
    aging_ppm: int  # share of a command's waiting that counts against its positioning time
    takes_turns: int  # 1: destages and commands take turns while the write cache is crowded
    read_watermark: int  # part of a read that is in the buffer before its transfer begins
    write_watermark: int  # part of a write that has arrived before the platters are written
    is_protected: int  # 1: the write cache survives a loss of power
    overhead_ns: Ints  # [READS | WRITES, PLATTERS | HIT, SAME | OTHER | APART]
    window: Window
    arm: Arm
    queue: Queue
    read_ahead: ReadAhead
    write_cache: WriteCache
    media: MediaCache
    serving: Int32s  # slot being served, DESTAGE, CLEAN, or NOTHING
    until_ns: Ints  # when it will be done
    link_free_ns: Ints
    writes_waiting: Ints  # number of writes that wait for room in the write cache
    last_direction: Ints  # READS or WRITES: of the command before; NOTHING at first
    last_write_end: Ints  # byte after the last write
    claim: Ints  # of the commands that wait for the arm; above 0: a command is next, no destage
    counts: Ints  # [member, BUSY_NS ... DESTAGES]

    @classmethod
    def new(cls, members: int, parameters: HddParameters, capacity: int = 256) -> HDD:
        """Return `members` idle disks."""
        p = parameters
        return filled(
            cls,
            members,
            p,
            overhead_ns=np.array(overheads(p), np.int64).reshape(2, 2, 3),
            window=Window.new(members, p.window),
            arm=Arm.new(members, Platters.new(p)),
            queue=pool_of(Queue, capacity, lines=Fifos.new(LINES * members)),
            read_ahead=ReadAhead.new(members, p),
            write_cache=WriteCache.new(
                members, p.write_cache_ranges, p.write_cache_bytes, p.destage_window
            ),
            media=MediaCache.new(members, p),
            serving=np.full(members, NOTHING, np.int32),
            last_direction=np.full(members, NOTHING, np.int64),
            counts=np.zeros((members, 2 + len(COUNTS)), np.int64),
        )

    @method
    def room(self):
        """Return how many more commands the bank can take."""
        return self.queue.free[1]

    def with_room(self, demand: int) -> HDD:
        """Return the same bank with room for `demand` more commands."""
        return self._replace(queue=roomy_pool(self.queue, demand, Queue._fields[:13]))

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the counters of all members so far, by name."""
        names = ("busy_ns", "queue_ns", *COUNTS, "seek_ns", "rotation_ns", "transfer_ns")
        parts = [*self.counts.sum(axis=0).tolist(), *self.arm.spent.sum(axis=0).tolist()]
        totals = dict(zip(names, parts, strict=True))
        totals["busy_ns"] -= int(np.maximum(self.until_ns - now_ns, 0).sum())  # not yet elapsed
        return totals

    # Submission and completion of commands.

    @method
    def submit(self, now, member, tag, op, offset, length, kind, events):
        """Take a command: the electronics complete it, or it waits for the arm."""
        queue = self.queue
        plain = op & OP_MASK
        slot = queue.take(now, member, tag, plain, offset, length)
        if self.media.span_bytes > 0:
            self.prepare(now, member, plain, offset, length, kind, events)
        if length > 0 and (plain == Op.READ or plain == Op.WRITE):
            direction = READS if plain == Op.READ else WRITES
            last = self.last_direction[member]
            if last == NOTHING or last == direction:
                queue.after[slot] = SAME
            else:
                queue.after[slot] = OTHER
            if direction == WRITES:
                if last == WRITES and offset != self.last_write_end[member]:
                    queue.after[slot] = APART
                self.last_write_end[member] = offset + length
            self.last_direction[member] = direction
        if length > 0 and plain == Op.READ:
            self.submit_read(now, member, slot, kind, events)
        elif length > 0 and plain == Op.WRITE:
            self.submit_write(now, member, slot, op & FUA, kind, events)
        elif plain == Op.FLUSH and self.is_protected == 0 and not self.write_cache.is_clean(member):
            queue.offset[slot] = self.write_cache.admitted[member]
            queue.lines.append(LINES * member + 2, slot, queue.following)
        else:
            events.push(now + self.hit_ns, kind, 2 * slot + 1)

    @method
    def submit_read(self, now, member, slot, kind, events):
        """Serve a read from the buffer, or queue it for the arm."""
        queue = self.queue
        offset = queue.offset[slot]
        end = offset + queue.length[slot]
        self.counts[member, BYTES_READ] += end - offset
        if self.write_cache.holds(member, offset, end):
            self.counts[member, WRITE_CACHE_HITS] += 1
        elif not self.media.overlaps(member, offset, end) and self.read_ahead.holds(
            now, member, offset, end, self.arm.platters
        ):
            self.counts[member, READ_AHEAD_HITS] += 1
        else:
            read_ns = self.overhead_ns[READS, PLATTERS, queue.after[slot]]
            self.wait_for_arm(now, member, slot, read_ns, kind, events)
            return
        self.answer(
            now + self.overhead_ns[READS, HIT, queue.after[slot]], member, slot, kind, events
        )

    @method
    def submit_write(self, now, member, slot, fua, kind, events):
        """Cache a write, queue it until there is room, or send it to the platters."""
        length = self.queue.length[slot]
        self.counts[member, BYTES_WRITTEN] += length
        if (fua and self.is_protected == 0) or length > self.write_cache.size_bytes:
            write_ns = self.overhead_ns[WRITES, PLATTERS, self.queue.after[slot]]
            self.wait_for_arm(now, member, slot, write_ns, kind, events)
            return
        waits = self.queue.lines.first[LINES * member + 1] != NOTHING
        if waits or not self.write_cache.has_room(member, length):
            self.queue.lines.append(LINES * member + 1, slot, self.queue.following)
            self.writes_waiting[member] += 1
            return
        self.admit(now, member, slot, kind, events)
        if self.serving[member] == NOTHING:
            self.start(now, member, kind, events)

    @method
    def wait_for_arm(self, now, member, slot, prepare_ns, kind, events):
        """Queue a command; an idle disk starts it at once."""
        queue = self.queue
        queue.prepared_ns[slot] = now + prepare_ns
        queue.find(slot, self.arm.platters)
        self.window.append(now, member, LINES * member, slot, queue)
        if self.serving[member] == NOTHING:
            self.start(now, member, kind, events)

    @method
    def answer(self, ready, member, slot, kind, events):
        """Transfer a command's data over the link; return when it is complete."""
        begin = max(ready, self.link_free_ns[member])
        done = begin + self.wire_ns(self.queue.length[slot])
        self.link_free_ns[member] = done
        events.push(done, kind, 2 * slot + 1)
        return done

    @method
    def wire_ns(self, length):
        """Return the transfer time of `length` bytes between host and disk."""
        return length * self.host_ps_per_byte // 1000

    @method
    def arrived_ns(self, slot):
        """Return when enough of a write's data is in the disk to write it."""
        queue = self.queue
        return (
            queue.prepared_ns[slot] + self.wire_ns(queue.length[slot]) * self.write_watermark // 100
        )

    @method
    def complete(self, now, number, kind, events):
        """Process an event; return the tag of a completed command, or NOTHING."""
        queue = self.queue
        if number & 1:
            slot = number >> 1
            member = queue.member[slot]
        else:
            member = number >> 1
            slot = self.serving[member]
            self.serving[member] = NOTHING
        tag = NOTHING
        if self.media.span_bytes > 0:
            self.media.last_event_ns[member] = now
        if slot == DESTAGE:
            self.write_cache.finish(member)
        elif slot != CLEAN:
            tag = queue.tag[slot]
            give_back(queue, slot)
        if self.write_cache.size_bytes > 0:
            self.go_on(now, member, kind, events)
        if self.serving[member] == NOTHING:
            self.start(now, member, kind, events)
        return tag

    # The write cache.

    @method
    def go_on(self, now, member, kind, events):
        """Complete the oldest flush, and cache the oldest waiting write, if possible."""
        queue = self.queue
        flush = queue.lines.first[LINES * member + 2]
        if flush != NOTHING and self.write_cache.is_written(member, queue.offset[flush]):
            queue.lines.pop(LINES * member + 2, queue.following)
            ready = max(now, queue.submitted_ns[flush] + self.hit_ns)
            events.push(ready + self.flush_ns, kind, 2 * flush + 1)
        write = queue.lines.first[LINES * member + 1]
        if write != NOTHING and self.write_cache.has_room(member, queue.length[write]):
            queue.lines.pop(LINES * member + 1, queue.following)
            self.writes_waiting[member] -= 1
            self.counts[member, QUEUE_NS] += now - queue.submitted_ns[write]
            self.admit(now, member, write, kind, events)

    @method
    def admit(self, now, member, slot, kind, events):
        """Cache a write; it completes when its data has arrived."""
        queue = self.queue
        offset = queue.offset[slot]
        hit_ns = self.overhead_ns[WRITES, HIT, queue.after[slot]]
        ready = max(now, queue.submitted_ns[slot] + hit_ns)
        here = self.answer(ready, member, slot, kind, events)
        self.write_cache.add(member, offset, offset + queue.length[slot], here, self.arm.platters)

    @method
    def is_destage_next(self, now, member):
        """Return whether the arm destages before it serves a command.

        Each waiting request, a write without room among them, has the same claim to the arm.
        """
        if self.write_cache.ranges[member] == 0:
            return False
        queue = self.queue
        if (
            queue.lines.first[LINES * member] == NOTHING
            or queue.lines.first[LINES * member + 2] != NOTHING
        ):
            if self.takes_turns == 0:
                self.claim[member] = -self.writes_waiting[member]
            return True
        if self.writes_waiting[member] == 0 and not self.write_cache.is_crowded(member):
            if self.takes_turns == 0:
                self.claim[member] = 0
            return False
        if self.claim[member] > 0:
            return False
        if self.takes_turns == 1:
            return True
        write = queue.lines.first[LINES * member + 1]
        if write != NOTHING and now - queue.submitted_ns[write] >= self.age_limit_ns:
            return True
        return not self.has_streamed(now, member)

    @method
    def has_streamed(self, now, member):
        """Return whether one of the waiting reads needs no movement of the arm."""
        queue = self.queue
        slot = queue.lines.first[LINES * member]
        for _ in range(self.window.size):
            if slot == NOTHING:
                break
            if (
                queue.op[slot] == Op.READ
                and self.covers(now, member, slot)
                and self.is_streamed(now, member, slot)
            ):
                return True
            slot = queue.following[slot]
        return False

    @method
    def destage(self, now, member):
        """Write a range of the cache to the platters; return when that is done."""
        cache = self.write_cache
        flush = self.queue.lines.first[LINES * member + 2]
        latest = cache.admitted[member] if flush == NOTHING else self.queue.offset[flush]
        each = cache.pick(now, member, latest, self.arm)
        ready = max(now, cache.ready_ns[member, each])
        offset = cache.start[member, each]
        length = cache.end[member, each] - offset
        place = cache.place(member, each)
        cache.begin(member, each)
        self.counts[member, DESTAGES] += 1
        return self.write(member, ready, ready, place, offset, length, latest)

    @method
    def write(self, member, ready, arrived, place, offset, length, latest):
        """Write to the platters; return when that is done."""
        if self.media.span_bytes > 0:
            return self.write_shingled(member, ready, arrived, offset, length, latest)
        _, end_ns = self.arm.access(member, ready, arrived, place, offset, length, True)
        return end_ns

    # The media cache.

    @method
    def prepare(self, now, member, plain, offset, length, kind, events):
        """Clean as long as the disk was idle before a command, and count the command."""
        self.clean_while_idle(now, member, kind, events)
        self.media.last_event_ns[member] = now
        if plain == Op.WRITE:
            self.media.follow(member, offset, length, self.last_write_end[member])
        elif plain == Op.FLUSH:
            self.media.run[member] = 0

    @method
    def clean_while_idle(self, now, member, kind, events):
        """Clean bands from a while after the last event until now; the last one to its end."""
        media = self.media
        begin = media.last_event_ns[member] + media.idle_ns
        if self.serving[member] != NOTHING or media.is_empty(member) or begin >= now:
            return
        self.read_ahead.pause(now, member)
        done = begin
        while not media.is_empty(member) and done < now:
            done = media.clean(member, done, self.arm)
        self.until_ns[member] = done
        self.counts[member, BUSY_NS] += done - begin
        if done > now:
            self.serving[member] = CLEAN
            events.push(done, kind, 2 * member)

    @method
    def write_shingled(self, member, ready, arrived, offset, length, latest):
        """Write to the platters, at home or to the media cache; return when that is done.

        Of the write cache, ranges that begin with writes up to `latest` are logged along with it.
        """
        media, arm = self.media, self.arm
        end = offset + length
        if media.passes_by(member, offset, end, self.last_write_end[member]):
            media.drop(member, offset, end)
            return arm.access_to(member, ready, arrived, offset, length, True)
        while not media.has_room(member, offset, end):
            ready = media.clean(member, ready, arm)
        logged_bytes = media.logged_bytes(offset, end)
        position = media.add(member, offset, end)
        logged_bytes += self.log_along(member, ready, length, latest)
        pause_ns = self.overhead_ns[WRITES, PLATTERS, SAME]
        return media.log(member, ready, arrived, position, logged_bytes, pause_ns, arm)

    @method
    def log_along(self, member, ready, length, latest):
        """Log what else of the write cache is there by `ready`; return the bytes that it takes."""
        cache, media = self.write_cache, self.media
        logged = length
        for each in range(cache.ranges[member]):
            offset, end = cache.start[member, each], cache.end[member, each]
            if (
                cache.serial[member, each] > latest
                or cache.ready_ns[member, each] > ready
                or logged + end - offset > media.write_bytes
                or media.passes_by(member, offset, end, self.last_write_end[member])
                or not media.takes_along(member, offset, end)
            ):
                continue
            media.add_along(member, offset, end)
            cache.begin_along(member, each)
            self.counts[member, DESTAGES] += 1
            logged += end - offset
        if logged > length:
            cache.close(member)
        return logged - length

    @method
    def read_pieces(self, now, member, slot):
        """Read each piece of a command where it is; return when it is done."""
        queue, arm, media = self.queue, self.arm, self.media
        self.read_ahead.pause(now, member)
        at = queue.offset[slot]
        end = at + queue.length[slot]
        byte, stop = media.locate(member, at, end)
        ready = max(now, queue.prepared_ns[slot])
        place = arm.platters.place(byte)
        begin, end_ns = arm.access(member, ready, ready, place, byte, stop - at, False)
        while stop < end:
            at = stop
            byte, stop = media.locate(member, at, end)
            end_ns = arm.access_to(member, end_ns, end_ns, byte, stop - at, False)
        buffered = begin + (end_ns - begin) * self.read_watermark // 100
        return max(end_ns, buffered + self.wire_ns(queue.length[slot]))

    @method
    def covers(self, now, member, slot):
        """Return whether the read-ahead has or will soon have the first byte of a read."""
        offset = self.queue.offset[slot]
        if self.media.overlaps(member, offset, offset + self.queue.length[slot]):
            return False
        return self.read_ahead.covers(now, member, offset, self.arm.platters)

    # The arm.

    @method
    def start(self, now, member, kind, events):
        """Choose the next work of the arm, if there is any, and schedule its end."""
        if self.is_destage_next(now, member):
            self.read_ahead.pause(now, member)
            self.serving[member] = DESTAGE
            claim = self.claim[member] + self.window.waiting[member]
            self.claim[member] = 1 if self.takes_turns == 1 else claim
            done = self.destage(now, member)
        elif self.queue.lines.first[LINES * member] != NOTHING:
            slot = self.pick(now, member)
            self.serving[member] = slot
            claim = self.claim[member] - max(self.writes_waiting[member], 1)
            self.claim[member] = 0 if self.takes_turns == 1 else claim
            done = self.serve(now, member, slot)
        else:
            return
        self.until_ns[member] = done
        self.counts[member, BUSY_NS] += done - now
        events.push(done, kind, 2 * member)

    @method
    def pick(self, now, member):
        """Remove and return the command of lowest cost, or the oldest if it is due."""
        queue = self.queue
        best, before_best = queue.lines.first[LINES * member], NOTHING
        waited = now - queue.entered_ns[best]
        if self.window.size > 1 and waited < self.age_limit_ns and queue.following[best] != NOTHING:
            lowest = self.cost(now, member, best)
            before = best
            slot = queue.following[best]
            for _ in range(self.window.size - 1):
                if slot == NOTHING or lowest == 0:
                    break
                cost = self.cost(now, member, slot)
                if cost < lowest:
                    lowest = cost
                    best = slot
                    before_best = before
                before = slot
                slot = queue.following[slot]
        self.window.unlink(now, member, LINES * member, before_best, best, queue)
        self.counts[member, QUEUE_NS] += now - queue.submitted_ns[best]
        return best

    @method
    def cost(self, now, member, slot):
        """Return the cost of a command by the scheduling order; 0 if it needs no movement."""
        queue = self.queue
        place = queue.place(slot)
        reads = queue.op[slot] == Op.READ
        ready = max(now, queue.prepared_ns[slot])
        if reads and self.covers(now, member, slot):
            if self.is_streamed(now, member, slot):
                return 0
            stop = self.read_ahead.stop[member, self.read_ahead.reading[member]]
            place = self.arm.platters.place(stop)
        if self.order == Order.POSITION:
            arrived = ready if reads else self.arrived_ns(slot)
            reach = self.arm.reach_ns(member, ready, arrived, place, not reads)
            return max(0, reach - (now - queue.entered_ns[slot]) * self.aging_ppm // 1_000_000)
        if self.order == Order.DISTANCE:
            return abs(place[CYLINDER] - self.arm.cylinder[member])
        ahead = place[TRACK] - self.arm.track[member]
        return ahead if ahead >= 0 else ahead + BEHIND

    @method
    def serve(self, now, member, slot):
        """Serve the chosen command; return when it is done."""
        queue = self.queue
        offset = queue.offset[slot]
        if queue.op[slot] == Op.READ:
            if self.media.overlaps(member, offset, offset + queue.length[slot]):
                return self.read_pieces(now, member, slot)
            covered = self.read_ahead.covers(now, member, offset, self.arm.platters)
            if covered and self.is_streamed(now, member, slot):
                return self.stream(now, member, slot)
            return self.read(now, member, slot)
        self.read_ahead.pause(now, member)
        ready, arrived = max(now, queue.prepared_ns[slot]), self.arrived_ns(slot)
        place, length = queue.place(slot), queue.length[slot]
        return self.write(member, ready, arrived, place, offset, length, 0)

    @method
    def read(self, now, member, slot):
        """Read the missing data from the platters and start read-ahead; return when it is done."""
        arm, ahead, queue = self.arm, self.read_ahead, self.queue
        offset = queue.offset[slot]
        end = offset + queue.length[slot]
        start = offset
        place = queue.place(slot)
        goes_on = ahead.covers(now, member, offset, arm.platters)
        if goes_on:  # the beginning is in the buffer
            ahead.trim(now, member, ahead.reading[member], arm.platters)
            start = ahead.stop[member, ahead.reading[member]]
            place = arm.platters.place(start)
        else:
            ahead.pause(now, member)
        ready = max(now, queue.prepared_ns[slot])
        begin, end_ns = arm.access(member, ready, ready, place, start, end - start, False)
        buffered = begin + (end_ns - begin) * self.read_watermark // 100
        arrived = buffered + self.wire_ns(end - start)
        if goes_on:
            ahead.read_on(member, ahead.reading[member], start, end, end_ns, arm.platters)
        else:
            ahead.begin(member, offset, end, end_ns, arm.platters)
        return max(end_ns, arrived)

    @method
    def is_streamed(self, now, member, slot):
        """Return whether a read covered by the read-ahead needs no access of its own."""
        queue = self.queue
        hit_ns = self.overhead_ns[READS, HIT, queue.after[slot]]
        ready = max(now, queue.submitted_ns[slot] + hit_ns)
        end = queue.offset[slot] + queue.length[slot]
        ahead = self.read_ahead
        segment = ahead.reading[member]
        if end <= ahead.stop[member, segment]:
            return True
        return ahead.stop_ns(member, segment, self.arm.platters) >= ready

    @method
    def stream(self, now, member, slot):
        """Serve a read from data that the disk has read ahead or is about to; return when."""
        ahead, platters = self.read_ahead, self.arm.platters
        end = self.queue.offset[slot] + self.queue.length[slot]
        hit_ns = self.overhead_ns[READS, HIT, self.queue.after[slot]]
        ready = max(now, self.queue.submitted_ns[slot] + hit_ns)
        arrived = ready + self.wire_ns(self.queue.length[slot])
        self.counts[member, READ_AHEAD_HITS] += 1
        segment = ahead.reading[member]
        have = ahead.end[member, segment]
        if end <= have:
            ahead.touch(member, segment)
            return arrived
        stop = ahead.stop[member, segment]
        still_reads = ahead.stop_ns(member, segment, platters) >= ready
        ahead.trim(now, member, segment, platters)
        start = ahead.start[member, segment]
        if not still_reads and ahead.end_of_reading(start, end, platters) <= stop:
            ahead.touch(member, segment)  # all in the buffer, and nothing to read ahead
            return arrived
        self.arm.put(member, end)
        if still_reads:
            end_ns = ahead.end_ns[member, segment] + platters.stream_ns(have, end - have)
            ahead.read_on(member, segment, have, end, end_ns, platters)
            return max(arrived, end_ns)
        # all in the buffer; and there is room to read ahead from where the disk stopped
        resumed_ns = ready + (platters.place(stop)[ANGLE_NS] - ready) % platters.rev_ns
        end_ns = resumed_ns - platters.stream_ns(end, stop - end)
        ahead.read_on(member, segment, have, end, end_ns, platters)
        return arrived
