"""Where the bytes of a hard disk lie (2.6), and how long they take to pass under the head."""

from bisect import bisect_right

from hybridsim.reference.parameters import HddParameters


class Platters:
    """The geometry of one disk."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters

    def zone(self, byte: int) -> int:
        """The zone of a byte."""
        return bisect_right(self.parameters.zone_byte, byte) - 1

    def track(self, byte: int) -> int:
        """The track of a byte."""
        p = self.parameters
        z = self.zone(byte)
        return p.zone_track[z] + (byte - p.zone_byte[z]) // p.zone_track_bytes[z]

    def within(self, byte: int) -> int:
        """How many bytes of its track come before a byte."""
        p = self.parameters
        z = self.zone(byte)
        return (byte - p.zone_byte[z]) % p.zone_track_bytes[z]

    def angle(self, byte: int) -> int:
        """The time after the start of a revolution at which a byte passes under the head."""
        p = self.parameters
        z = self.zone(byte)
        track = self.track(byte)
        skews = track * p.zone_skew_ns[z]
        skews += track // p.surfaces * p.zone_cylinder_skew_ns[z]
        turn = self.within(byte) * p.rev_ns // p.zone_track_bytes[z]
        return (turn + p.zone_angle_ns[z] + skews) % p.rev_ns

    def move(self, here: int, there: int, write: bool) -> int:
        """How long the arm takes from track to track."""
        p = self.parameters
        if here == there:
            return p.reacquire_ns
        distance = abs(here // p.surfaces - there // p.surfaces)
        table = p.write_move_ns if write else p.move_ns
        return table[(distance + (1 << p.seek_shift) - 1) >> p.seek_shift]

    def transfer(self, byte: int, length: int) -> int:
        """How long the bytes take to pass under the head, with the skew of each track border."""
        p = self.parameters
        if length == 0:
            return 0
        z = self.zone(byte)
        borders = (self.within(byte) + length - 1) // p.zone_track_bytes[z]
        first = self.track(byte)
        time = length * p.rev_ns // p.zone_track_bytes[z]
        return time + sum(self.border(z, first + i) for i in range(1, borders + 1))

    def border(self, zone: int, track: int) -> int:
        """How much later a track begins than the one before it ends."""
        p = self.parameters
        new_cylinder = track % p.surfaces == 0
        return p.zone_skew_ns[zone] + (p.zone_cylinder_skew_ns[zone] if new_cylinder else 0)

    def stream(self, byte: int, length: int) -> int:
        """How long the bytes take that follow those just read."""
        if length == 0:
            return 0
        time = self.transfer(byte, length)
        if self.within(byte) == 0:
            time += self.border(self.zone(byte), self.track(byte))
        return time

    def passed(self, byte: int, time: int) -> int:
        """About how many bytes pass in a time, the first being `byte`."""
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
        """The first byte of a byte's track."""
        return byte - self.within(byte)

    def track_end(self, byte: int) -> int:
        """The byte after the last of a byte's track."""
        return self.track_start(byte) + self.parameters.zone_track_bytes[self.zone(byte)]
