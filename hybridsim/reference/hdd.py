"""The hard disk (2.6): platters, arm, read-ahead, write cache, media cache."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hybridsim.foundation.codes import FUA, OP_MASK, Op, Order
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.reference.clock import Clock, Done, Step, in_turn
from hybridsim.reference.device import Device
from hybridsim.reference.runs import split, touched


class Platters:
    """The geometry of one disk."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters

    def place(self, byte: int) -> tuple[int, int, int]:
        """Return zone and track of a byte, and its offset in the track; the end is in the last."""
        p = self.parameters
        z = min(bisect_right(p.zone_byte, byte), len(p.zone_track_bytes)) - 1
        track, within = divmod(byte - p.zone_byte[z], p.zone_track_bytes[z])
        return z, p.zone_track[z] + track, within

    def track(self, byte: int) -> int:
        """Return the track of a byte."""
        return self.place(byte)[1]

    def angle(self, byte: int) -> int:
        """Return the time within a revolution at which a byte passes under the head."""
        p = self.parameters
        z, track, within = self.place(byte)
        skews = track * p.zone_skew_ns[z]
        skews += track // p.surfaces * p.zone_cylinder_skew_ns[z]
        turn = within * p.rev_ns // p.zone_track_bytes[z]
        return (turn + p.zone_angle_ns[z] + skews) % p.rev_ns

    def move(self, here: int, there: int, write: bool) -> int:
        """Return the time of the arm from track to track."""
        p = self.parameters
        if here == there:
            return p.reacquire_ns
        distance = abs(here // p.surfaces - there // p.surfaces)
        table = p.write_move_ns if write else p.move_ns
        return table[(distance + (1 << p.seek_shift) - 1) >> p.seek_shift]

    def transfer(self, byte: int, length: int) -> int:
        """Return the time of bytes under the head, with the skew of each track border."""
        p = self.parameters
        if length == 0:
            return 0
        z, first, within = self.place(byte)
        borders = (within + length - 1) // p.zone_track_bytes[z]
        time = length * p.rev_ns // p.zone_track_bytes[z]
        return time + sum(self.border(z, first + i) for i in range(1, borders + 1))

    def border(self, zone: int, track: int) -> int:
        """Return the skew between the end of the track before and the start of this one."""
        p = self.parameters
        new_cylinder = track % p.surfaces == 0
        return p.zone_skew_ns[zone] + (p.zone_cylinder_skew_ns[zone] if new_cylinder else 0)

    def stream(self, byte: int, length: int) -> int:
        """Return the time of bytes that follow the bytes just read."""
        zone, track, within = self.place(byte)
        begins_track = length > 0 and within == 0
        return self.transfer(byte, length) + (self.border(zone, track) if begins_track else 0)

    def passed(self, byte: int, time: int) -> int:
        """Return approximately how many bytes pass in a time, from `byte` on."""
        p = self.parameters
        z, _, within = self.place(byte)
        track_bytes = p.zone_track_bytes[z]
        left = track_bytes - within
        until_border = left * p.rev_ns // track_bytes
        if time <= until_border:
            return time * track_bytes // p.rev_ns
        beyond = (time - until_border) * track_bytes // (p.rev_ns + p.zone_skew_ns[z])
        return left + beyond

    def track_start(self, byte: int) -> int:
        """Return the first byte of a byte's track."""
        return byte - self.place(byte)[2]

    def track_end(self, byte: int) -> int:
        """Return the byte after the end of a byte's track."""
        return self.track_start(byte) + self.parameters.zone_track_bytes[self.place(byte)[0]]


CLASSES = 17  # of entries, by sixteenths of a band


@dataclass(eq=False)
class Logged:
    """Bytes [start, end) of one band, in the log from position `place` on."""

    start: int
    end: int
    place: int
    size: int  # bytes that it takes
    is_live: bool = True


class MediaCache:
    """A log on the platters (2.6.2): which bytes are in it, and where."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        # by class, oldest first; entries that died wait for older ones
        self.queues: list[deque[Logged]] = [deque() for _ in range(CLASSES)]
        self.bands: dict[int, list[Logged]] = {}  # live entries, oldest first
        self.entries = 0  # live ones
        self.used = 0  # bytes that all take
        self.head = 0  # position after the last write

    def band(self, byte: int) -> int:
        """Return the band of a byte."""
        return byte // self.parameters.band_bytes

    def extent(self, band: int) -> tuple[int, int]:
        """Return the first byte of a band, and the one after its last."""
        p = self.parameters
        return band * p.band_bytes, min((band + 1) * p.band_bytes, p.capacity_bytes)

    def byte(self, position: int) -> int:
        """Return the byte whose place on the platters a position of the log has."""
        p = self.parameters
        return p.media_cache_first_byte + position % p.media_cache_span_bytes

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Divide bytes by band."""
        return [(first, last) for _, first, last in split(start, end, self.parameters.band_bytes)]

    def size(self, pieces: list[tuple[int, int]]) -> int:
        """Return the bytes that pieces take in the log."""
        padding = self.parameters.media_cache_padding_bytes
        return sum(end - start + padding for start, end in pieces)

    def fits(self, start: int, end: int, entries: int = 0, used: int = 0) -> bool:
        """Whether a log with these entries and bytes could take a write."""
        p, pieces = self.parameters, self.pieces(start, end)
        has_entries = entries + len(pieces) <= p.media_cache_entries
        return has_entries and used + self.size(pieces) <= p.media_cache_span_bytes

    def has_room(self, start: int, end: int) -> bool:
        """Whether the log can take a write now."""
        return self.fits(start, end, self.entries, self.used)

    def add(self, start: int, end: int) -> tuple[int, int]:
        """Log a write; return its position and the bytes that it takes."""
        pieces = self.pieces(start, end)
        length, span = self.size(pieces), self.parameters.media_cache_span_bytes
        if self.head % span + length > span:
            self.head += span - self.head % span
        place = self.head
        self.drop(start, end)
        for first, last in pieces:
            self.append(first, last, self.size([(first, last)]))
        return place, length

    def add_along(self, start: int, end: int) -> bool:
        """Log bytes behind those just logged, without padding; return whether that is possible."""
        size, span = end - start, self.parameters.media_cache_span_bytes
        inside = self.head % span
        if len(self.pieces(start, end)) > 1 or inside == 0 or inside + size > span:
            return False
        if self.entries == self.parameters.media_cache_entries or self.used + size > span:
            return False
        self.drop(start, end)
        self.append(start, end, size)
        return True

    def append(self, start: int, end: int, size: int) -> None:
        """Log bytes of one band at the head, which take `size` bytes."""
        entry = Logged(start, end, self.head, size)
        self.queues[16 * (end - start) // self.parameters.band_bytes].append(entry)
        self.bands.setdefault(self.band(start), []).append(entry)
        self.head += size
        self.entries += 1
        self.used += size

    def drop(self, start: int, end: int) -> None:
        """Let entries die that lie within bytes that are written anew."""
        for band in touched(start, end, self.parameters.band_bytes):
            entries = self.bands.get(band, [])
            for entry in entries:
                entry.is_live = not (start <= entry.start and entry.end <= end)
                self.entries -= not entry.is_live
            self.bands[band] = [entry for entry in entries if entry.is_live]
        # What dead entries take is free when they are the oldest of their class.
        for queue in self.queues:
            while queue and not queue[0].is_live:
                self.used -= queue.popleft().size

    def next_to_clean(self) -> int:
        """Return the band of the oldest entry of the longest class."""
        longest = [queue for queue in self.queues if queue][-1]
        return self.band(longest[0].start)

    def overlaps(self, start: int, end: int) -> bool:
        """Whether one of these bytes is in the log."""
        return any(
            entry.start < end and start < entry.end
            for band in touched(start, end, self.parameters.band_bytes)
            for entry in self.bands.get(band, [])
        )

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return where byte `start` is, and up to which byte what follows it is there as well."""
        entry, stop = self.newest_at(start, end)
        if entry is not None:
            return self.byte(entry.place) + start - entry.start, stop
        while stop < end and stop == self.extent(self.band(stop - 1))[1]:
            entry, beyond = self.newest_at(stop, end)
            if entry is not None:
                break
            stop = beyond
        return start, stop

    def newest_at(self, start: int, end: int) -> tuple[Logged | None, int]:
        """Return the entry that has a byte, if one has, and up to where that is so in the band."""
        stop = min(end, self.extent(self.band(start))[1])
        for entry in reversed(self.bands.get(self.band(start), [])):
            if entry.start <= start < entry.end:
                return entry, min(stop, entry.end)
            if entry.start > start:
                stop = min(stop, entry.start)
        return None, stop


@dataclass
class Command:
    """A command from the host."""

    op: Op
    offset: int
    length: int
    submitted: int
    done: Done
    prepared: int = 0  # when it can go to the platters
    arrived: int = 0  # when enough of a write's data is in the disk to write it
    entered: int = 0  # when it entered the window that the arm chooses from
    follows_other: bool = False  # a read after a write, or a write after a read
    is_apart: bool = False  # a write that does not continue the write before it
    serial: int = 0  # of a FLUSH: the last write that it waits for

    @property
    def end(self) -> int:
        """The byte after the last byte."""
        return self.offset + self.length


@dataclass(eq=False)
class Segment:
    """Bytes [start, end) that were read; the last one passed the head at `time`."""

    start: int
    end: int
    time: int
    stop: int = 0  # of its read-ahead, which gets there at `stop_time`
    stop_time: int = 0


@dataclass
class Range:
    """Bytes in the write cache."""

    start: int
    end: int
    ready: int  # when they have arrived from the host
    serial: int


class Hdd(Device):
    """A disk: the arm serves one access at a time, the electronics serve cache hits."""

    def __init__(self, clock: Clock, parameters: HddParameters) -> None:
        super().__init__(clock)
        self.parameters = parameters = parameters.plain()
        self.platters = Platters(parameters)
        self.track = 0
        self.busy = False
        self.link_free = 0
        self.last_kind: Op | None = None  # of the last command with data
        self.last_write_end = 0
        self.queue: list[Command] = []  # for the arm; all lists here are oldest first
        # Reading.
        self.segments: list[Segment] = []  # least recently used first
        self.reading: Segment | None = None  # which the disk reads ahead, or did last
        # The write cache.
        self.ranges: list[Range] = []
        self.writing: list[Range] = []
        self.without_room: list[Command] = []
        self.flushes: list[Command] = []
        self.admitted = 0
        self.destaged_last = False
        self.claim = 0  # of the commands in the queue; above 0: a command is next, no destage
        # The media cache.
        self.media = MediaCache(parameters)
        self.run = 0  # bytes written in sequence since the last other write or flush
        self.last_event = 0

    # The electronics.

    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Answer a command, or queue it for the arm."""
        p = self.parameters
        what = Op(op & OP_MASK)
        command = Command(what, offset, length, self.clock.now, done)
        self.clean_while_idle()
        self.last_event = self.clock.now
        if what == Op.WRITE:
            self.run = self.run + length if offset == self.last_write_end else length
        elif what == Op.FLUSH:
            self.run = 0
        if length > 0 and what in (Op.READ, Op.WRITE):
            command.follows_other = self.last_kind not in (None, what)
            if what == Op.WRITE:
                command.is_apart = self.last_kind == what and offset != self.last_write_end
                self.last_write_end = offset + length
            self.last_kind = what
        if length > 0 and what == Op.READ:
            if self.is_at_hand(command):
                self.answer(self.clock.now + self.overhead("hit_ns", command), command)
            else:
                self.enqueue(command, self.overhead("read_ns", command))
        elif length > 0 and what == Op.WRITE:
            if (op & FUA and not p.is_protected) or length > p.write_cache_bytes:
                self.enqueue(command, self.overhead("write_ns", command))
                percent = p.write_watermark
                command.arrived = command.prepared + self.wire(length) * percent // 100
            elif self.without_room or not self.has_room(command):
                self.without_room.append(command)
            else:
                self.admit(command)
        elif what == Op.FLUSH and not p.is_protected and not self.is_written(self.admitted):
            command.serial = self.admitted
            self.flushes.append(command)
        else:
            in_turn(self.ending(self.clock.now + p.hit_ns), done)
        if not self.busy:
            self.start()

    def overhead(self, name: str, command: Command) -> int:
        """Return an overhead of a command, by the kind and place of the one before it."""
        names = ("read_ns", "hit_ns", "write_ns", "write_hit_ns")
        other = command.follows_other or (name == "write_hit_ns" and command.is_apart)
        if other and self.parameters.after_other_ns:
            return self.parameters.after_other_ns[names.index(name)]
        return int(getattr(self.parameters, name))

    def enqueue(self, command: Command, preparation: int) -> None:
        """Queue a command for the arm."""
        command.prepared = self.clock.now + preparation
        self.queue.append(command)
        if len(self.queue) <= self.parameters.window:
            command.entered = self.clock.now

    def wire(self, length: int) -> int:
        """Return the transfer time of bytes between host and disk."""
        return length * self.parameters.host_ps_per_byte // 1000

    def answer(self, ready: int, command: Command) -> int:
        """Complete a command when its data have crossed the link; return that time."""
        self.link_free = max(ready, self.link_free) + self.wire(command.length)
        in_turn(self.ending(self.link_free), command.done)
        return self.link_free

    def ending(self, time: int, of_arm: bool = False) -> Iterator[Step]:
        """Let something end at a time; the arm, if it carries that out, is busy until then."""
        self.busy |= of_arm
        yield partial(self.clock.at, time)
        if of_arm:
            self.busy = False
            self.writing.clear()
        self.go_on()

    def go_on(self) -> None:
        """After an event: serve one flush and one write that waits for room, then start the arm."""
        p = self.parameters
        self.last_event = self.clock.now
        if self.flushes and self.is_written(self.flushes[0].serial):
            flush = self.flushes.pop(0)
            ready = max(self.clock.now, flush.submitted + p.hit_ns)
            in_turn(self.ending(ready + p.flush_ns), flush.done)
        if self.without_room and self.has_room(self.without_room[0]):
            write = self.without_room.pop(0)
            self.counters["queue_ns"] += self.clock.now - write.submitted
            self.admit(write)
        if not self.busy:
            self.start()

    # The arm.

    def start(self) -> None:
        """Begin a destage or a command, if there is one."""
        if self.is_destage_next():
            self.destaged_last = True
            self.claim += len(self.queue)
            self.destage()
        elif self.queue:
            command = self.choose()
            self.queue.remove(command)
            self.counters["queue_ns"] += self.clock.now - command.submitted
            if len(self.queue) >= self.parameters.window:
                self.queue[self.parameters.window - 1].entered = self.clock.now
            self.destaged_last = False
            self.claim -= max(len(self.without_room), 1)
            self.serve(command)

    def is_destage_next(self) -> bool:
        """Whether a destage is next, rather than a command."""
        if not self.ranges:
            return False
        if not self.queue or self.flushes:
            self.claim = -len(self.without_room)
            return True
        if not self.without_room and not self.is_crowded():
            self.claim = 0
            return False
        if self.parameters.takes_turns:
            return not self.destaged_last
        if self.claim > 0:
            return False
        if self.without_room:
            waited = self.clock.now - self.without_room[0].submitted
            if waited >= self.parameters.age_limit_ns:
                return True
        window = self.queue[: self.parameters.window]
        covered = ((each, self.covering(each)) for each in window)
        return not any(reading and self.is_streamed(each, reading) for each, reading in covered)

    def choose(self) -> Command:
        """Choose the oldest command past the age limit, else the cheapest in the window."""
        oldest = self.queue[0]
        if self.clock.now - oldest.entered >= self.parameters.age_limit_ns:
            return oldest
        # min() returns the first of equal elements, the oldest.
        return min(self.queue[: self.parameters.window], key=self.cost)

    def cost(self, command: Command) -> int:
        """Return the cost of a command by the scheduling order; 0 if it needs no movement."""
        p = self.parameters
        write = command.op == Op.WRITE
        place = command.offset
        reading = self.covering(command)
        if reading is not None:
            if self.is_streamed(command, reading):
                return 0
            place = reading.stop
        track = self.platters.track(place)
        if p.order == Order.POSITION:
            ready = self.ready(command)
            reach = sum(self.positioning(ready, place, write, command.arrived))
            waited = self.clock.now - command.entered
            return max(0, reach - waited * p.aging_ppm // 1_000_000)
        if p.order == Order.DISTANCE:
            return abs(track // p.surfaces - self.track // p.surfaces)
        return track - self.track if track >= self.track else track - self.track + 2**40

    def serve(self, command: Command) -> None:
        """Carry out a command; its completion time is computed here."""
        if command.op == Op.WRITE:
            self.pause()
            done = self.write(self.ready(command), command.arrived, command.offset, command.end)
        else:
            reading = self.covering(command)
            if self.is_in_media_cache(command):
                done = self.read_pieces(command)
            elif reading is None:
                done = self.read(command)
            elif self.is_streamed(command, reading):
                done = self.stream(command, reading)
            else:
                done = self.read_rest(command, reading)
        in_turn(self.ending(done, of_arm=True), command.done)

    def ready(self, command: Command) -> int:
        """Return when a chosen command can go to the platters."""
        return max(self.clock.now, command.prepared)

    def reach(self, ready: int, place: int, write: bool, arrived: int = 0) -> int:
        """Move the arm to a byte; return when the byte is under the head, `arrived` or later."""
        move, rotation = self.positioning(ready, place, write, arrived)
        self.counters["move_ns"] += move
        self.counters["rotation_ns"] += rotation
        return ready + move + rotation

    def positioning(self, ready: int, place: int, write: bool, arrived: int = 0) -> tuple[int, int]:
        """Return how long the arm moves to a byte, and how long it then waits for the byte."""
        move = self.platters.move(self.track, self.platters.track(place), write)
        there = max(ready + move, arrived)
        turn = (self.platters.angle(place) - there) % self.parameters.rev_ns
        return move, there - (ready + move) + turn

    def pass_over(self, offset: int, length: int) -> int:
        """Read or write from the head's position; return the duration."""
        self.track = self.platters.track(offset + length - 1)
        time = self.platters.transfer(offset, length)
        self.counters["transfer_ns"] += time
        return time

    # Reading.

    def is_at_hand(self, command: Command) -> bool:
        """Whether the data of a READ are in the write cache or a read segment."""
        first, end = command.offset, command.end
        if any(each.start <= first and end <= each.end for each in self.cached()):
            self.counters["write_cache_hits"] += 1
            return True
        if self.is_in_media_cache(command):
            return False
        for segment in reversed(self.segments):
            begins = self.first_byte(segment) <= first
            if begins and end <= segment.end and segment.time <= self.clock.now:
                self.use(segment)
                self.counters["read_ahead_hits"] += 1
                return True
        return False

    def use(self, segment: Segment) -> None:
        """Make a segment the most recently used."""
        self.segments.remove(segment)
        self.segments.append(segment)

    def pause(self) -> None:
        """Stop the read-ahead; the segment keeps what has passed by now."""
        if self.reading is None:
            return
        segment = self.reading
        segment.start = self.first_byte(segment)
        segment.end = self.position(segment)
        segment.time = self.clock.now
        self.reading = None

    def covering(self, command: Command) -> Segment | None:
        """Return the read-ahead that has or will reach the first byte of a READ, or None."""
        reading = self.reading
        if command.op != Op.READ or reading is None or self.is_in_media_cache(command):
            return None
        first = self.first_byte(reading)
        return reading if first <= command.offset <= reading.stop else None

    def position(self, reading: Segment) -> int:
        """Return the byte that the read-ahead has reached."""
        if self.clock.now >= reading.stop_time:
            return reading.stop
        passed = self.platters.passed(reading.end, max(0, self.clock.now - reading.time))
        return min(reading.end + passed, reading.stop)

    def first_byte(self, segment: Segment) -> int:
        """Return the first byte of a segment that later ones have not replaced."""
        end = self.position(segment) if segment is self.reading else segment.end
        return max(segment.start, end - self.parameters.segment_bytes)

    def ready_for_hit(self, command: Command) -> int:
        """Return when a command without an access of its own is ready."""
        return max(self.clock.now, command.submitted + self.overhead("hit_ns", command))

    def is_streamed(self, command: Command, reading: Segment) -> bool:
        """Whether the read-ahead serves a covered READ."""
        return command.end <= reading.stop or reading.stop_time >= self.ready_for_hit(command)

    def stream(self, command: Command, segment: Segment) -> int:
        """Serve a READ from the read-ahead; return its completion time."""
        ready = self.ready_for_hit(command)
        arrived = ready + self.wire(command.length)
        self.counters["read_ahead_hits"] += 1
        if command.end <= segment.end:  # (a) all read
            self.use(segment)
            return arrived
        still_reads = segment.stop_time >= ready
        segment.start = self.first_byte(segment)
        if not still_reads and self.stop(segment.start, command.end) <= segment.stop:
            self.use(segment)  # (c) all read, and nothing to read ahead
            return arrived
        self.track = self.platters.track(command.end - 1)
        if still_reads:  # (b) still reading: wait until the end passes under the head
            passed = segment.time + self.platters.stream(segment.end, command.end - segment.end)
            self.read_on(segment, segment.end, command.end, passed)
            return max(arrived, passed)
        # (c) all read; there is room again, so the disk reads on from where it stopped
        turn = (self.platters.angle(segment.stop) - ready) % self.parameters.rev_ns
        back = self.platters.stream(command.end, segment.stop - command.end)
        self.read_on(segment, segment.end, command.end, ready + turn - back)
        return arrived

    def read_rest(self, command: Command, segment: Segment) -> int:
        """(d) Read the bytes beyond where the read-ahead stopped; return the completion time."""
        segment.start = self.first_byte(segment)
        begin = self.reach(self.ready(command), segment.stop, write=False)
        length = command.end - segment.stop
        passed = begin + self.pass_over(segment.stop, length)
        self.read_on(segment, segment.stop, command.end, passed)
        return self.sent(begin, passed, length)

    def sent(self, begin: int, passed: int, length: int) -> int:
        """Return when a read is at the host, whose transfer begins when enough is buffered."""
        buffered = begin + (passed - begin) * self.parameters.read_watermark // 100
        return max(passed, buffered + self.wire(length))

    def read(self, command: Command) -> int:
        """Read a command from the platters; return its completion time."""
        p = self.parameters
        self.pause()
        begin = self.reach(self.ready(command), command.offset, write=False)
        passed = begin + self.pass_over(command.offset, command.length)
        done = self.sent(begin, passed, command.length)
        if p.read_ahead_bytes == 0:
            return done
        for segment in reversed(self.segments):
            if segment.start <= command.offset <= segment.end:
                break
        else:
            if len(self.segments) == p.segments:
                self.segments.pop(0)
            segment = Segment(command.offset, command.end, passed)
            self.segments.append(segment)
        self.read_on(segment, command.offset, command.end, passed)
        return done

    def stop(self, start: int, end: int) -> int:
        """Return where the read-ahead from `end` stops, of a segment that begins at `start`."""
        p = self.parameters
        stop = min(end + p.read_ahead_bytes, p.capacity_bytes)
        tracks = max(p.read_stop_tracks, int(p.read_tracks))
        if tracks == 0:
            return stop
        limit = self.platters.track_end(end - 1)
        if tracks == 2 and start < self.platters.track_start(end - 1) and limit < stop:
            limit = self.platters.track_end(limit)
        return min(stop, limit)

    def read_on(self, segment: Segment, begin: int, end: int, time: int) -> None:
        """Start the read-ahead of a segment from `end` at `time`, after [begin, end) was read."""
        p = self.parameters
        if p.read_tracks:
            segment.start = min(segment.start, self.platters.track_start(begin))
        segment.stop = self.stop(segment.start, end)
        segment.start = max(segment.start, end - p.read_behind_bytes)
        segment.end = end
        segment.time = time
        segment.stop_time = time + self.platters.stream(end, segment.stop - end)
        self.reading = segment
        self.use(segment)

    # The write cache.

    def has_room(self, write: Command) -> bool:
        """Whether a write fits into the write cache."""
        p = self.parameters
        fits = self.cached_bytes() + write.length <= p.write_cache_bytes
        return fits and len(self.ranges) < p.write_cache_ranges

    def cached(self) -> list[Range]:
        """Return what is in the write cache, including what is being written."""
        return [*self.ranges, *self.writing]

    def cached_bytes(self) -> int:
        """Return the bytes in the write cache."""
        return sum(each.end - each.start for each in self.cached())

    def is_crowded(self) -> bool:
        """Whether more than three quarters of the write cache are used."""
        p = self.parameters
        ranges = 4 * len(self.ranges) > 3 * p.write_cache_ranges
        return ranges or 4 * self.cached_bytes() > 3 * p.write_cache_bytes

    def admit(self, write: Command) -> None:
        """Admit a write to the cache; it completes when its data have arrived."""
        ready = max(self.clock.now, write.submitted + self.overhead("write_hit_ns", write))
        arrived = self.answer(ready, write)
        self.admitted += 1
        for each in self.ranges:
            if each.start <= write.end and write.offset <= each.end:
                each.start = min(each.start, write.offset)
                each.end = max(each.end, write.end)
                each.ready = arrived
                return
        self.ranges.append(Range(write.offset, write.end, arrived, self.admitted))

    def is_written(self, serial: int) -> bool:
        """Whether all writes up to a serial number are on the platters."""
        return all(each.serial > serial for each in self.cached())

    def destage(self) -> None:
        """Write the range reached first, preferably one that a flush waits for."""
        choice = self.ranges[: self.parameters.destage_window]
        if self.flushes:
            wanted = [each for each in choice if each.serial <= self.flushes[0].serial]
            choice = wanted or choice[:1]
        chosen = min(choice, key=self.destage_cost)
        self.begin(chosen)
        self.pause()
        ready = max(self.clock.now, chosen.ready)
        latest = self.flushes[0].serial if self.flushes else self.admitted
        written = self.write(ready, ready, chosen.start, chosen.end, latest)
        in_turn(self.ending(written, of_arm=True))

    def begin(self, each: Range) -> None:
        """Take a range from the write cache, to be written."""
        self.ranges.remove(each)
        self.writing.append(each)
        self.counters["destages"] += 1

    def destage_cost(self, each: Range) -> int:
        """Return the time until a range can be written."""
        ready = max(self.clock.now, each.ready)
        return ready - self.clock.now + sum(self.positioning(ready, each.start, write=True))

    # The media cache.

    def access(self, ready: int, offset: int, length: int, write: bool, arrived: int = 0) -> int:
        """Move to bytes and pass over them, `arrived` or later; return when that is done."""
        return self.reach(ready, offset, write, arrived) + self.pass_over(offset, length)

    def write(self, ready: int, arrived: int, start: int, end: int, latest: int = 0) -> int:
        """Write to the platters, at home or to the media cache; return when that is done.

        Of the write cache, ranges that begin with writes up to `latest` are logged along with it.
        """
        if not self.parameters.media_cache_span_bytes:
            return self.access(ready, start, end - start, True, arrived)
        if self.passes_by(start, end):
            self.media.drop(start, end)
            return self.access(ready, start, end - start, True, arrived)
        while not self.media.has_room(start, end):
            ready = self.clean(ready)
        place, length = self.media.add(start, end)
        left = self.parameters.media_cache_write_bytes - (end - start)
        for each in [each for each in self.ranges if each.serial <= latest]:
            size = each.end - each.start
            if each.ready > ready or size > left or self.passes_by(each.start, each.end):
                continue
            if self.media.add_along(each.start, each.end):
                self.begin(each)
                left -= size
                length += size
        return self.log(ready, arrived, place, length)

    def log(self, ready: int, arrived: int, place: int, length: int) -> int:
        """Write `length` bytes from a position on, in pieces; return when that is done."""
        p = self.parameters
        while length > p.media_cache_write_bytes + p.media_cache_padding_bytes:
            byte = self.media.byte(place)
            ready = self.access(ready, byte, p.media_cache_write_bytes, True, arrived) + p.write_ns
            place += p.media_cache_write_bytes
            length -= p.media_cache_write_bytes
        done = self.access(ready, self.media.byte(place), length, True, arrived)
        return done + p.media_cache_map_write_ns * (self.media.entries > p.media_cache_map)

    def passes_by(self, start: int, end: int) -> bool:
        """Whether a write goes home at once: in a long run of writes, or too large for the log."""
        is_long = self.run >= self.parameters.media_cache_run_bytes
        within = self.last_write_end - self.run <= start and end <= self.last_write_end
        return (is_long and within) or not self.media.fits(start, end)

    def is_in_media_cache(self, command: Command) -> bool:
        """Whether a command's bytes, or some of them, are in the media cache."""
        return self.media.entries > 0 and self.media.overlaps(command.offset, command.end)

    def read_pieces(self, command: Command) -> int:
        """Read each piece where it is; return the completion time."""
        self.pause()
        where, at = self.media.locate(command.offset, command.end)
        begin = self.reach(self.ready(command), where, write=False)
        passed = begin + self.pass_over(where, at - command.offset)
        while at < command.end:
            where, stop = self.media.locate(at, command.end)
            passed = self.access(passed, where, stop - at, write=False)
            at = stop
        return self.sent(begin, passed, command.length)

    def clean(self, time: int) -> int:
        """From `time` on, bring the data of the next band home; return the end."""
        band = self.media.next_to_clean()
        first, last = self.media.extent(band)
        entries = self.media.bands[band]
        if (entries[-1].start, entries[-1].end) != (first, last):
            time = self.access(time, first, last - first, write=False)
        for entry in entries:
            where = self.media.byte(entry.place)
            time += self.parameters.media_cache_piece_ns
            time = self.access(time, where, entry.end - entry.start, write=False)
        self.media.drop(first, last)
        return self.access(time, first, last - first, write=True)

    def clean_while_idle(self) -> None:
        """Clean bands from a while after the last event until now; the last one to its end."""
        time = self.last_event + self.parameters.media_cache_idle_ns
        if self.busy or not self.media.entries or time >= self.clock.now:
            return
        self.pause()
        while self.media.entries and time < self.clock.now:
            time = self.clean(time)
        if time > self.clock.now:
            in_turn(self.ending(time, of_arm=True))
