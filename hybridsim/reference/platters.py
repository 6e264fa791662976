"""The geometry of a hard disk (2.6): places of bytes, seek and transfer times."""

from bisect import bisect_right

from hybridsim.foundation.machine_parameters import HddParameters


class Platters:
    """The geometry of one disk."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters

    def zone(self, byte: int) -> int:
        """Return the zone of a byte; the end of the disk is in the last one."""
        p = self.parameters
        return min(bisect_right(p.zone_byte, byte), len(p.zone_track_bytes)) - 1

    def track(self, byte: int) -> int:
        """Return the track of a byte."""
        p = self.parameters
        z = self.zone(byte)
        return p.zone_track[z] + (byte - p.zone_byte[z]) // p.zone_track_bytes[z]

    def within(self, byte: int) -> int:
        """Return the offset of a byte in its track."""
        p = self.parameters
        z = self.zone(byte)
        return (byte - p.zone_byte[z]) % p.zone_track_bytes[z]

    def angle(self, byte: int) -> int:
        """Return the time within a revolution at which a byte passes under the head."""
        p = self.parameters
        z = self.zone(byte)
        track = self.track(byte)
        skews = track * p.zone_skew_ns[z]
        skews += track // p.surfaces * p.zone_cylinder_skew_ns[z]
        turn = self.within(byte) * p.rev_ns // p.zone_track_bytes[z]
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
        z = self.zone(byte)
        borders = (self.within(byte) + length - 1) // p.zone_track_bytes[z]
        first = self.track(byte)
        time = length * p.rev_ns // p.zone_track_bytes[z]
        return time + sum(self.border(z, first + i) for i in range(1, borders + 1))

    def border(self, zone: int, track: int) -> int:
        """Return the skew between the end of the track before and the start of this one."""
        p = self.parameters
        new_cylinder = track % p.surfaces == 0
        return p.zone_skew_ns[zone] + (p.zone_cylinder_skew_ns[zone] if new_cylinder else 0)

    def stream(self, byte: int, length: int) -> int:
        """Return the time of bytes that follow the bytes just read."""
        if length == 0:
            return 0
        time = self.transfer(byte, length)
        if self.within(byte) == 0:
            time += self.border(self.zone(byte), self.track(byte))
        return time

    def passed(self, byte: int, time: int) -> int:
        """Return approximately how many bytes pass in a time, from `byte` on."""
        p = self.parameters
        z = self.zone(byte)
        track_bytes = p.zone_track_bytes[z]
        left = track_bytes - self.within(byte)
        until_border = left * p.rev_ns // track_bytes
        if time <= until_border:
            return time * track_bytes // p.rev_ns
        beyond = (time - until_border) * track_bytes // (p.rev_ns + p.zone_skew_ns[z])
        return left + beyond

    def track_start(self, byte: int) -> int:
        """Return the first byte of a byte's track."""
        return byte - self.within(byte)

    def track_end(self, byte: int) -> int:
        """Return the byte after the end of a byte's track."""
        return self.track_start(byte) + self.parameters.zone_track_bytes[self.zone(byte)]
