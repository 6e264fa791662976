"""The positions of arms over platters, and the times of moves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.storage.devices.hdd.platters import Platters

MOVE_NS, ROTATION_NS, TRANSFER_NS = range(3)


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
        track, cylinder = (np.zeros(members, np.int64) for _ in range(2))
        return cls(platters, track, cylinder, np.zeros((members, 3), np.int64))

    @method
    def travel_ns(self, member, track, cylinder, writes):
        """Return the time of a move to a track, settling included."""
        if track == self.track[member]:
            return self.platters.reacquire_ns
        return self.platters.travel_ns(abs(cylinder - self.cylinder[member]), writes)

    @method
    def reach_ns(self, member, ready, arrived, track, cylinder, angle_ns, writes):
        """Return the time from `ready` until a place is under the head, `arrived` or later."""
        travel = self.travel_ns(member, track, cylinder, writes)
        on_track = max(ready + travel, arrived)
        return on_track - ready + (angle_ns - on_track) % self.platters.rev_ns

    @method
    def reach(self, member, ready, arrived, track, cylinder, angle_ns, writes):
        """Move to a place; return the time of the move and of the wait for data and rotation."""
        travel = self.travel_ns(member, track, cylinder, writes)
        on_track = max(ready + travel, arrived)
        rotation = on_track - (ready + travel) + (angle_ns - on_track) % self.platters.rev_ns
        self.spent[member, MOVE_NS] += travel
        self.spent[member, ROTATION_NS] += rotation
        return travel, rotation

    @method
    def transfer(self, member, zone, track, cylinder, offset, length):
        """Read or write from the head's place, that of `offset`; return the time."""
        platters = self.platters
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

    @method
    def access(self, member, ready, offset, length, writes):
        """Move to bytes and pass over them; return when that is done."""
        zone, track, cylinder, angle_ns = self.platters.place(offset)
        travel, rotation = self.reach(member, ready, ready, track, cylinder, angle_ns, writes)
        time_ns = self.transfer(member, zone, track, cylinder, offset, length)
        return ready + travel + rotation + time_ns
