"""Solid-state drives: a controller, a link, and dies that read and program in parallel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, filled
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import SsdParameters
from hybridsim.jit import kernel, method, state_machine

BYTES_READ, BYTES_WRITTEN = 0, 1
UNITS, REQUESTS, OWED_NS = 0, 1, 2
IS_DIRTY, LAST_DONE_NS = 0, 1
IN_SLC, BUFFERED_NS, ERASED, UNFOLDED = 0, 1, 2, 3
STREAMS = 8  # writes in sequence that a drive follows at once
SCATTER = 1_327_217_885  # 2^31 over the golden ratio
state_machine(SsdParameters)  # a part of this one


# What a drive derives from addresses as if by chance: the lane of a write, the level of a page.


@kernel
def scattered(address):
    """Return a number below 32,768 that differs between neighbouring addresses."""
    return address % 2_147_483_648 * SCATTER % 2_147_483_648 // 65_536


@kernel
def level(address):
    """Return the extra read steps of a page over the fastest page: 0, 1 or 3, a third each."""
    kind = scattered(address) % 3
    return kind + kind // 2


@state_machine
class SSD(NamedTuple):
    """A bank of equal drives; rows of the arrays are the members (DESIGN.md 2.7)."""

    model: SsdParameters
    controller_free_ns: Ints
    link_free_ns: Ints
    pipe_free_ns: Ints  # [member]: of writes
    lane_free_ns: Ints  # [member, lane]: of the controller, for writes
    read_free_ns: Ints  # [member, die]
    write_free_ns: Ints  # [member, die]
    # [member, UNITS | REQUESTS | OWED_NS]: counts that determine the next die; REQUESTS, where dies
    # are given whole programs: collections, and then OWED_NS: their die time not begun
    written: Ints
    # [member, IN_SLC | BUFFERED_NS | ERASED | UNFOLDED]: units in the SLC cache; time of the last
    # write; units for which there is erased flash beyond the SLC cache; units to write until what
    # is in the full SLC cache is folded
    slc: Ints
    stream_end: Ints  # [member, STREAMS + 1]: ends of writes, and the number of the next to replace
    flush: Ints  # [member, IS_DIRTY | LAST_DONE_NS]: written since the last flush; last completion
    counts: Ints  # [member, BYTES_READ | BYTES_WRITTEN]

    @classmethod
    def new(cls, members: int, model: SsdParameters) -> SSD:
        """Return `members` idle drives."""
        dies = (members, model.dies)
        return filled(
            cls,
            members,
            model=model,
            lane_free_ns=np.zeros((members, max(model.write_lanes, 1)), np.int64),
            read_free_ns=np.zeros(dies, np.int64),
            write_free_ns=np.zeros(dies, np.int64),
            written=np.zeros((members, 3), np.int64),
            slc=np.tile(np.array([0, 0, model.erased_units, 0], np.int64), (members, 1)),
            stream_end=np.tile(np.array([-1] * STREAMS + [0]), (members, 1)),
            flush=np.zeros((members, 2), np.int64),
            counts=np.zeros((members, 2), np.int64),
        )

    @property
    def capacity_bytes(self) -> int:
        """Bytes of each drive."""
        return self.model.capacity_bytes

    @method
    def room(self):
        """Return a number larger than any demand: the bank stores no requests."""
        return 1 << 62

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the counters of all members so far, by name."""
        read, written = self.counts.sum(axis=0).tolist()
        return {"bytes_read": read, "bytes_written": written}

    @method
    def submit(self, now, member, tag, op, offset, length, kind, events):
        """Take a request; its completion is scheduled at once."""
        what = op & OP_MASK
        if what == Op.FLUSH and self.model.needs_flush == 0:
            events.push(now, kind, tag)  # no volatile cache: the host sends no FLUSH
            return
        start = max(now, self.controller_free_ns[member])
        if now - self.flush[member, LAST_DONE_NS] >= self.model.sleep_ns:
            start += self.model.wake_ns
        interval_ns = self.model.write_interval_ns if what == Op.WRITE else self.model.interval_ns
        self.controller_free_ns[member] = start + interval_ns
        begin = start + self.model.command_ns
        if what == Op.FLUSH or op & PREFLUSH != 0:
            begin = self.flush_done(member, begin)
        done = begin
        if length > 0 and (what == Op.READ or what == Op.WRITE):
            link_free = max(self.link_free_ns[member], begin) + self.wire_ns(length)
            self.link_free_ns[member] = link_free
            if what == Op.READ:
                done = self.read_done(member, offset, length, begin, link_free)
            else:
                pipe_ns = length * 1_000_000_000 // self.model.pipe_bytes_per_s
                pipe_free = max(self.pipe_free_ns[member], begin) + pipe_ns
                self.pipe_free_ns[member] = pipe_free
                forced = op & FUA != 0 and self.model.is_protected == 0
                buffered = self.buffered(member, offset, max(link_free, pipe_free))
                done = self.write_done(member, offset, length, buffered, forced)
        self.flush[member, LAST_DONE_NS] = max(self.flush[member, LAST_DONE_NS], done)
        events.push(done, kind, tag)

    @method
    def complete(self, now, tag, kind, events):
        """Return the tag of the completed request."""
        return tag

    @method
    def buffered(self, member, offset, arrived):
        """Return when a write is in the buffer, behind others on its lane of the controller."""
        if self.model.write_lanes == 0:
            return arrived + self.model.write_ns
        lane = scattered(offset // self.model.unit_bytes) % self.model.write_lanes
        done = max(arrived, self.lane_free_ns[member, lane]) + self.model.write_ns
        self.lane_free_ns[member, lane] = done
        return done

    @method
    def wire_ns(self, length):
        """Return the time of `length` bytes on the link."""
        return length * 1_000_000_000 // self.model.link_bytes_per_s

    @method
    def flush_done(self, member, begin):
        """Return when written data is durable; a SATA drive serves nothing else until then."""
        if self.flush[member, IS_DIRTY] == 0:
            return begin
        self.flush[member, IS_DIRTY] = 0
        if self.model.is_protected == 1:
            return begin + self.model.flush_ns
        drained = self.close(member, begin)
        for die in range(self.model.dies):
            drained = max(drained, self.write_free_ns[member, die])
        if self.model.is_blocking == 0:
            return drained + self.model.flush_ns
        done = max(drained, self.flush[member, LAST_DONE_NS]) + self.model.flush_ns
        self.controller_free_ns[member] = max(self.controller_free_ns[member], done)
        return done

    @method
    def read_done(self, member, offset, length, begin, link_free):
        """Read every page from its die; return when the last byte has crossed the link."""
        self.counts[member, BYTES_READ] += length
        page_bytes = self.model.unit_bytes * self.model.page_units
        done = link_free
        end = offset + length
        at = offset
        while at < end:
            page = at // page_bytes
            upto = min((page + 1) * page_bytes, end)
            die = page % self.model.dies
            end_ns = self.sense(member, die, page, begin)
            done = max(done, end_ns + self.wire_ns(upto - at))
            at = upto
        return done

    @method
    def sense(self, member, die, page, begin):
        """Read a page from its die; return when it is read."""
        sense_ns = self.model.read_ns
        if self.model.step_ns > 0:
            sense_ns += self.model.step_ns * level(page)
        return self.occupy(member, die, sense_ns, begin)

    @method
    def occupy(self, member, die, sense_ns, begin):
        """Read from a die for a time, suspending a program if needed; return when it is done."""
        start = max(begin, self.read_free_ns[member, die])
        left = self.write_free_ns[member, die] - start
        if left > 0 and self.read_free_ns[member, die] >= begin:  # a program is already suspended
            self.write_free_ns[member, die] += sense_ns
        elif left > 0:
            period = self.model.program_ns * self.model.program_units
            if self.slc_is_full(member):
                period = self.program_beyond(member) * self.model.program_units
            if period > 0:
                left = (left - 1) % period + 1  # of the program in progress
            is_loading = self.model.load_ns > 0 and left > period - self.model.load_ns
            if left > self.model.suspend_ns and not is_loading:
                left = self.model.suspend_ns
                self.write_free_ns[member, die] += left
            self.write_free_ns[member, die] += sense_ns
            start += left
        self.read_free_ns[member, die] = start + sense_ns
        return start + sense_ns

    @method
    def write_done(self, member, offset, length, buffered, forced):
        """Assign every unit to a die; return when the drive acknowledges the data as safe."""
        self.counts[member, BYTES_WRITTEN] += length
        self.flush[member, IS_DIRTY] = 1
        self.fold(member, buffered)
        follows = self.follows(member, offset, length)
        units = self.units_to_program(offset, length, follows)
        is_collected = self.model.is_by_stream == 0 or not follows
        if self.model.load_ns > 0:
            programmed = self.program_whole(member, units, is_collected, buffered)
        else:
            programmed = self.program(member, units, is_collected, buffered)
        if forced:
            return max(programmed, self.close(member, buffered)) + self.model.flush_ns
        return max(buffered, programmed - self.model.buffer_ns)

    @method
    def program(self, member, units, is_collected, buffered):
        """Give the dies units of a write, and the cost of its collection; return the latest end."""
        programmed = buffered
        for _ in range(units):
            program_ns = self.model.program_ns
            if self.slc_is_full(member):
                program_ns = self.program_beyond(member)
                self.slc[member, ERASED] = max(self.slc[member, ERASED] - 1, 0)
                self.slc[member, UNFOLDED] = max(self.slc[member, UNFOLDED] - 1, 0)
            elif self.model.slc_units > 0:
                self.slc[member, IN_SLC] += 1
                self.slc[member, UNFOLDED] = self.model.folding_units
            turn = self.written[member, UNITS] // self.model.program_units
            programmed = max(programmed, self.work(member, turn, buffered, program_ns))
            self.written[member, UNITS] += 1
        scatter_ns = self.model.scatter_ns
        if self.slc_is_full(member):
            scatter_ns = self.model.native_scatter_ns
        if scatter_ns > 0 and is_collected:
            turn = self.written[member, REQUESTS]
            programmed = max(programmed, self.work(member, turn, buffered, scatter_ns))
            self.written[member, REQUESTS] += 1
        return programmed

    @method
    def program_whole(self, member, units, is_collected, buffered):
        """Give the dies the programs that a write completes, and the collections that it owes.

        Each collection reads a program of old data from a die, and programs one.
        """
        written = self.written
        whole_ns = self.model.program_ns * self.model.program_units
        programmed = buffered
        for _ in range(units):
            turn = written[member, UNITS] // self.model.program_units
            written[member, UNITS] += 1
            is_whole = written[member, UNITS] % self.model.program_units == 0
            work_ns = whole_ns if is_whole else 0
            programmed = max(programmed, self.work(member, turn, buffered, work_ns))
        if is_collected:
            written[member, OWED_NS] += self.model.scatter_ns
        while written[member, OWED_NS] >= whole_ns + self.model.collect_ns:
            written[member, OWED_NS] -= whole_ns + self.model.collect_ns
            victim = written[member, REQUESTS] % self.model.dies
            written[member, REQUESTS] += 1
            self.occupy(member, victim, self.model.collect_ns, buffered)
            turn = written[member, UNITS] // self.model.program_units
            written[member, UNITS] += self.model.program_units
            programmed = max(programmed, self.work(member, turn, buffered, whole_ns))
        return programmed

    @method
    def close(self, member, begin):
        """Program the units that complete no program yet; return when that ends, or `begin`."""
        written = self.written
        rest = written[member, UNITS] % self.model.program_units
        if self.model.load_ns == 0 or rest == 0:
            return begin
        turn = written[member, UNITS] // self.model.program_units
        written[member, UNITS] += self.model.program_units - rest
        return self.work(member, turn, begin, self.model.program_ns * self.model.program_units)

    @method
    def follows(self, member, offset, length):
        """Return whether a write begins where one of the last streams of writes ended."""
        end = self.stream_end
        for stream in range(STREAMS):
            if end[member, stream] == offset:
                end[member, stream] = offset + length
                return True
        end[member, end[member, STREAMS]] = offset + length
        end[member, STREAMS] = (end[member, STREAMS] + 1) % STREAMS
        return False

    @method
    def units_to_program(self, offset, length, follows):
        """Return the units of the map entries that a write touches and its stream did not begin.

        A drive that maps more than a unit at once programs all of it for any part of it.
        """
        entry = self.model.map_units * self.model.unit_bytes
        first = offset // entry
        if self.model.map_units > 1 and follows:
            first = -(-offset // entry)
        return ((offset + length - 1) // entry - first + 1) * self.model.map_units

    @method
    def slc_is_full(self, member):
        """Return whether a drive with an SLC cache has none of it free."""
        return self.model.slc_units > 0 and self.slc[member, IN_SLC] >= self.model.slc_units

    @method
    def program_beyond(self, member):
        """Return the die time of a unit beyond the SLC cache: longer if it has to fold."""
        if self.model.folded_program_ns > 0 and self.slc[member, ERASED] == 0:
            return self.model.folded_program_ns
        if self.slc[member, UNFOLDED] > 0:
            return self.model.folding_program_ns
        return self.model.native_program_ns

    @method
    def fold(self, member, buffered):
        """Free the SLC cache by as much as the drive has folded since its last write."""
        if self.model.slc_units == 0:
            return
        slc = self.slc
        idle_ns = buffered - slc[member, BUFFERED_NS] - self.model.slc_idle_ns
        slc[member, BUFFERED_NS] = buffered
        if idle_ns > 0:
            # at most the time that empties it: the product stays small
            idle_ns = min(
                idle_ns, self.model.slc_units * 1_000_000_000 // self.model.slc_units_per_s + 1
            )
            folded = min(idle_ns * self.model.slc_units_per_s // 1_000_000_000, slc[member, IN_SLC])
            slc[member, IN_SLC] -= folded
            slc[member, ERASED] = max(slc[member, ERASED] - folded, 0)

    @method
    def work(self, member, turn, begin, work_ns):
        """Assign work to the next die in turn; return when it will be done."""
        die = turn % self.model.dies
        free = max(self.write_free_ns[member, die], begin) + work_ns
        self.write_free_ns[member, die] = free
        return free
