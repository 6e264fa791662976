"""The place of bytes on the platters, the arms, and the times to reach and to pass bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, filled
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.jit import method, state_machine


@state_machine
class Platters(NamedTuple):
    """The geometry shared by all disks of a bank (DESIGN.md 2.6)."""

    rev_ns: int
    surfaces: int
    capacity_bytes: int
    zone_byte: Ints  # first byte of each zone
    zone_track: Ints  # first track of each zone
    zone_track_bytes: Ints
    zone_angle_ns: Ints
    zone_skew_ns: Ints  # from a track to the next
    zone_cylinder_skew_ns: Ints  # additional skew if the next track is on another cylinder
    reacquire_ns: int  # minimum time to another place of the same track
    seek_shift: int
    move_ns: Int32s  # by cylinder distance; 0: to another track of the cylinder
    write_move_ns: Int32s

    @classmethod
    def new(cls, parameters: HddParameters) -> Platters:
        """Return the geometry in a disk's parameters."""
        values = {name: getattr(parameters, name) for name in cls._fields}
        zones = {name: np.asarray(values[name]) for name in cls._fields if name[:4] == "zone"}
        tables = {name: np.asarray(values[name], np.int32) for name in ("move_ns", "write_move_ns")}
        return cls(**values | zones | tables)

    @method
    def zone_of(self, byte):
        """Return the zone of a byte."""
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
    def place(self, byte):
        """Return zone, track and cylinder of a byte, and its angle as a time in a revolution."""
        zone = self.zone_of(byte)
        track_bytes = self.zone_track_bytes[zone]
        inside = byte - self.zone_byte[zone]
        within_zone = inside // track_bytes
        track = self.zone_track[zone] + within_zone
        cylinder = track // self.surfaces
        angle_ns = (
            (inside - within_zone * track_bytes) * self.rev_ns // track_bytes
            + self.zone_angle_ns[zone]
            + track * self.zone_skew_ns[zone]
            + cylinder * self.zone_cylinder_skew_ns[zone]
        )
        return zone, track, cylinder, angle_ns % self.rev_ns

    @method
    def track_of(self, byte):
        """Return the track of a byte."""
        zone = self.zone_of(byte)
        return self.zone_track[zone] + (byte - self.zone_byte[zone]) // self.zone_track_bytes[zone]

    @method
    def is_on_track(self, zone, track, end):
        """Return whether the byte before `end` is on a track of a zone, not after it.

        The last track of a zone may end where the next zone begins, before it is full.
        """
        track_end = (track - self.zone_track[zone] + 1) * self.zone_track_bytes[zone]
        if zone + 1 < len(self.zone_track) and end > self.zone_byte[zone + 1]:
            return False
        return end <= self.zone_byte[zone] + track_end

    @method
    def travel_ns(self, distance, writes):
        """Return the time of a move over `distance` cylinders; 0: to another track of one."""
        index = (distance + (1 << self.seek_shift) - 1) >> self.seek_shift
        return self.write_move_ns[index] if writes else self.move_ns[index]

    @method
    def transfer_ns(self, byte, length):
        """Return the time of `length` bytes under the heads, track changes included."""
        if length == 0:
            return 0
        zone = self.zone_of(byte)
        track_bytes = self.zone_track_bytes[zone]
        inside = byte - self.zone_byte[zone]
        crossings = (inside % track_bytes + length - 1) // track_bytes
        time_ns = length * self.rev_ns // track_bytes
        if crossings == 0:
            return time_ns
        track = self.zone_track[zone] + inside // track_bytes
        cylinders = (track + crossings) // self.surfaces - track // self.surfaces
        time_ns += crossings * self.zone_skew_ns[zone]
        return time_ns + cylinders * self.zone_cylinder_skew_ns[zone]

    @method
    def stream_ns(self, byte, length):
        """Return the time of the `length` bytes that follow those just read."""
        if length == 0:
            return 0
        time_ns = self.transfer_ns(byte, length)
        zone = self.zone_of(byte)
        inside = byte - self.zone_byte[zone]
        if inside % self.zone_track_bytes[zone] == 0:
            time_ns += self.zone_skew_ns[zone]
            track = self.zone_track[zone] + inside // self.zone_track_bytes[zone]
            if track % self.surfaces == 0:
                time_ns += self.zone_cylinder_skew_ns[zone]
        return time_ns

    @method
    def passed_bytes(self, byte, time_ns):
        """Return about how many bytes from `byte` on pass in that time, without a new access."""
        zone = self.zone_of(byte)
        track_bytes = self.zone_track_bytes[zone]
        left = track_bytes - (byte - self.zone_byte[zone]) % track_bytes
        left_ns = left * self.rev_ns // track_bytes
        if time_ns <= left_ns:
            return time_ns * track_bytes // self.rev_ns
        return left + (time_ns - left_ns) * track_bytes // (self.rev_ns + self.zone_skew_ns[zone])

    @method
    def track_start(self, byte):
        """Return the first byte of a byte's track."""
        zone = self.zone_of(byte)
        return byte - (byte - self.zone_byte[zone]) % self.zone_track_bytes[zone]

    @method
    def track_end(self, byte):
        """Return the byte after the last of a byte's track."""
        return self.track_start(byte) + self.zone_track_bytes[self.zone_of(byte)]


MOVE_NS, ROTATION_NS, TRANSFER_NS = range(3)
_, TRACK, CYLINDER, ANGLE_NS = range(4)  # of a place


@state_machine
class Arm(NamedTuple):
    """The arms of a bank of disks with the same geometry."""

    platters: Platters
    track: Ints  # [member]
    cylinder: Ints
    spent: Ints  # [member, MOVE_NS | ROTATION_NS | TRANSFER_NS]

    @classmethod
    def new(cls, members: int, platters: Platters) -> Arm:
        """Return arms over their first track."""
        return filled(cls, members, platters=platters, spent=np.zeros((members, 3), np.int64))

    @method
    def travel_ns(self, member, place, writes):
        """Return the time of a move to a place's track, settling included."""
        if place[TRACK] == self.track[member]:
            return self.platters.reacquire_ns
        return self.platters.travel_ns(abs(place[CYLINDER] - self.cylinder[member]), writes)

    @method
    def reach_ns(self, member, ready, arrived, place, writes):
        """Return the time from `ready` until a place is under the head, `arrived` or later."""
        travel = self.travel_ns(member, place, writes)
        on_track = max(ready + travel, arrived)
        return on_track - ready + (place[ANGLE_NS] - on_track) % self.platters.rev_ns

    @method
    def access(self, member, ready, arrived, place, offset, length, writes):
        """Move to a place, that of `offset`, and pass over bytes; return begin and end of that."""
        travel = self.travel_ns(member, place, writes)
        on_track = max(ready + travel, arrived)
        rotation = on_track - (ready + travel) + (place[ANGLE_NS] - on_track) % self.platters.rev_ns
        self.spent[member, MOVE_NS] += travel
        self.spent[member, ROTATION_NS] += rotation
        begin = ready + travel + rotation
        return begin, begin + self.transfer(member, place, offset, length)

    @method
    def access_to(self, member, ready, arrived, offset, length, writes):
        """Move to bytes and pass over them; return when that is done."""
        place = self.platters.place(offset)
        _, end_ns = self.access(member, ready, arrived, place, offset, length, writes)
        return end_ns

    @method
    def transfer(self, member, place, offset, length):
        """Read or write from the head's place, that of `offset`; return the time."""
        platters = self.platters
        zone, track, cylinder, _ = place
        if platters.is_on_track(zone, track, offset + length):
            time_ns = length * platters.rev_ns // platters.zone_track_bytes[zone]
            self.track[member] = track
            self.cylinder[member] = cylinder
        else:
            time_ns = platters.transfer_ns(offset, length)
            self.put(member, offset + length)
        self.spent[member, TRANSFER_NS] += time_ns
        return time_ns

    @method
    def put(self, member, end):
        """Put the arm over the track of the last byte before `end`."""
        track = self.platters.track_of(end - 1)
        self.track[member] = track
        self.cylinder[member] = track // self.platters.surfaces
