"""The two ends of a device of the user's, where everything that can be recognised is kept.

What is ours there is told by its content alone: a mark with a token that no other run has, written
to both ends under an exclusive claim.  Where the device is large enough, the cache lies between
(`ROOM`) and the mark stays all the time: when the run is over, both ends must be exactly the mark
and zeros, and only the mark is zeroed.  Where the device is used up to its ends (bcache or an array
right on it), the mark goes when a tool takes the device.  What the tool and the load wrote is then
compared with what was there while the kernel still held the device for us, sector by sector; after
a kill nothing can be compared, and only superblocks that bear the run's UUID are removed.

The seam: dmsetup, mdadm and make-bcache claim a device exclusively themselves, so our own claim is
released right before they run.  Whoever gets in between either has the device, and the tool fails,
or wrote without a claim, and `HandedOver.verify` sees it before anything is written between the
ends.  What a tool made is claimed at once, and let go of for the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from validate import guards, remains, signatures
from validate.devices import Claim, Device, find, held, let_go, of_number
from validate.errors import NotOursError, UnsafeError
from validate.sizes import MIB
from validate.steps import Scene
from validate.system import System

PATIENCE_S = 10
ROOM = signatures.END  # at each end: more than all that tools look for
MARK_BYTES, SECTOR = 4096, 512
SUPERBLOCKS = (  # magic, UUID: where they stand in their sector, which begins at 4096
    (24, signatures.BCACHE, 56), (0, signatures.MD, 16),
)  # fmt: skip
SUPERBLOCK_AT = 4096
# What is asked again under the claim; that others use its disk was asked when it was chosen.
AGAIN = tuple(each for each in guards.GUARDS if each is not guards.not_of_a_used_disk)
BY_HAND = "if nothing on it is needed, erase it by hand (wipefs -a, blkdiscard -z)"


@dataclass(frozen=True)
class Occupy:
    """A device of the user's, empty when it is taken and when it is given back."""

    path: str
    role: str
    identity: dict[str, str]  # see Device.identity
    token: str = ""  # 32 hexadecimal digits, of this step alone
    uuid: str = ""  # of the run's arrays and cache sets
    has_room: bool = True  # whether the cache leaves both ends alone

    def describe(self) -> str:
        """Say what it does."""
        return f"take {self.path} ({self.role}); its first and last MiB are zeros when it is back"

    def do(self, scene: Scene) -> None:
        """See that it is still the one that was checked, and mark it; the claim on it is kept."""
        system = scene.system
        device = find(self.path, system)
        if device.identity(system) != self.identity:
            raise UnsafeError(f"{self.path}: is another device than a moment ago")
        claim = held(device, system)
        claim.verify()
        guards.check(device, system, AGAIN)
        why = guards.empty(device, claim, system)
        if why:
            raise UnsafeError(f"{self.path}: {why}")
        for at, mark in self._marks(device.size_bytes):
            claim.write(at, mark)
        scene.roles[self.role] = device.number
        content = signatures.content(claim.read, device.size_bytes)
        scene.taken[device.number] = HandedOver(self, device, content)

    def seal(self, system: System) -> None:
        """Note what the ends hold while the kernel still keeps others away; see the module."""
        if self.has_room or self.token not in system.loaded:
            return
        device = self._again(system)
        if device is not None:
            system.sealed[self.token] = _ends(_shared(device, system), device.size_bytes)

    def undo(self, system: System) -> None:
        """Zero what is ours at its ends, if it is the same device; NotOursError where more is."""
        device = self._again(system)
        if device is None:
            return
        claim = system.claims.pop(device.number, None) or _claim_soon(device, system)
        try:
            self._give_back(claim, device, system)
        finally:
            claim.release()
            system.loaded.discard(self.token)

    def _give_back(self, claim: Claim, device: Device, system: System) -> None:
        if self.has_room:
            strange = self._without_marks(claim, device.size_bytes)
            if strange:
                raise self._left(claim, device)
        self._zero_ours(claim, device, system)
        if any(signatures.not_zero(data) for data in _ends(claim.read, device.size_bytes).values()):
            raise self._left(claim, device)
        content = signatures.content(claim.read, device.size_bytes)
        if self.token in system.loaded:
            remains.note(device, content, system)
        elif content and not set(content) <= set(remains.known(device, system)):
            raise NotOursError(
                f"{self.path}: its ends are zeros again; what it holds between them may be of "
                f"others: left as it is; {BY_HAND}"
            )

    def _left(self, claim: Claim, device: Device) -> NotOursError:
        names = signatures.found(claim.read, device.size_bytes)
        names = [name for name in names if name != signatures.MARK_OF_A_RUN] or ["data"]
        return NotOursError(
            f"{self.path}: holds {', '.join(names)}, which is not ours: left as it is; {BY_HAND}"
        )

    def _zero_ours(self, claim: Claim, device: Device, system: System) -> None:
        """Zero each sector of the ends whose content is ours."""
        ours = dict(self._sectors(device.size_bytes))
        sealed = system.sealed.pop(self.token, {})
        for start, data in _ends(claim.read, device.size_bytes).items():
            before = sealed.get(start, b"")
            for at in range(0, len(data), SECTOR):
                sector = data[at : at + SECTOR]
                if signatures.not_zero(sector) and (
                    sector in (ours.get(start + at), before[at : at + SECTOR])
                    or (start + at == SUPERBLOCK_AT and self._bears_our_uuid(sector))
                ):
                    self._zero_if(claim, start + at, sector)
        inside = ROOM + SUPERBLOCK_AT  # where a superblock lies that is kept off the beginning
        sector = claim.read(inside, SECTOR)
        if self.has_room and self._bears_our_uuid(sector):
            self._zero_if(claim, inside, sector)

    def _zero_if(self, claim: Claim, at: int, wanted: bytes) -> None:
        """Zero a sector that is, at this moment, what it was judged by."""
        if claim.read(at, len(wanted)) == wanted:
            claim.write(at, bytes(len(wanted)))

    def _bears_our_uuid(self, sector: bytes) -> bool:
        wanted = bytes.fromhex(self.uuid.replace("-", ""))
        return len(wanted) == 16 and any(
            sector[at : at + len(magic)] == magic and sector[uuid_at : uuid_at + 16] == wanted
            for at, magic, uuid_at in SUPERBLOCKS
        )

    def _marks(self, size_bytes: int) -> list[tuple[int, bytes]]:
        """Return what is written, and where."""
        return [(0, self._mark("beginning")), (size_bytes - MARK_BYTES, self._mark("end"))]

    def _mark(self, where: str) -> bytes:
        """Return a block no sector of which is like another, nor holds only zeros."""
        words = (
            f"{signatures.OURS.decode()}: taken for a run; `validate clean` gives it back.\n"
            f"{self.token} {where} {number}\n"
            for number in range(MARK_BYTES // SECTOR)
        )
        return b"".join(each.encode().ljust(SECTOR, b".") for each in words)

    def _sectors(self, size_bytes: int) -> list[tuple[int, bytes]]:
        return [
            (start + at, mark[at : at + SECTOR])
            for start, mark in self._marks(size_bytes)
            for at in range(0, MARK_BYTES, SECTOR)
        ]

    def _without_marks(self, claim: Claim, size_bytes: int) -> bool:
        """Tell whether the ends hold anything but sectors of our mark, whole or cut short."""
        ends = {start: bytearray(data) for start, data in _ends(claim.read, size_bytes).items()}
        for at, sector in self._sectors(size_bytes):
            for start, data in ends.items():
                if data[at - start : at - start + SECTOR] == sector and at >= start:
                    data[at - start : at - start + SECTOR] = bytes(SECTOR)
        return any(signatures.not_zero(data) for data in ends.values())

    def _again(self, system: System) -> Device | None:
        """Return the device, also after a reboot; None where it is gone.

        Raises NotOursError where it cannot be told from another.
        """
        same_boot = system.boot() == self.identity["boot"]
        if not same_boot and not self.identity["hardware"]:
            raise NotOursError(
                f"{self.path}: after a reboot nothing tells it from another: left as it is; if it "
                f"begins with the words {signatures.OURS.decode()!r}, it is the one, and its first "
                "and last 4096 bytes are ours: zero those by hand"
            )
        wanted = {key: value for key, value in self.identity.items()
                  if same_boot or key in ("size", "hardware", "start")}  # fmt: skip
        candidates = []
        for folder in sorted((system.sys / "class/block").iterdir()):
            number = system.read(folder / "dev", "")
            found = of_number(number, system).identity(system) if number else {}
            if number and wanted.items() <= found.items():
                node = f"{system.dev}/{folder.name.replace('!', '/')}"
                candidates.append(of_number(number, system, node))
        if len(candidates) > 1:
            raise NotOursError(
                f"{self.path}: may be {' or '.join(each.path for each in candidates)}, which "
                f"nothing tells apart: left as they are; {BY_HAND}"
            )
        return candidates[0] if candidates else None


@dataclass
class HandedOver:
    """A device that was taken, on its way to a tool or to the load."""

    step: Occupy
    device: Device
    content: list[signatures.Piece]  # between the ends, as it was when it was marked
    is_marked: bool = True
    is_loaded: bool = False  # the load wrote to it: nothing to compare with is left

    def verify(self, system: System) -> None:
        """Raise UnsafeError where anybody wrote to it since it was marked."""
        if self.is_loaded:
            return
        read = _shared(self.device, system)
        size_bytes = self.device.size_bytes
        wanted = self.step._marks(size_bytes) if self.is_marked else []
        ends = {start: bytearray(data) for start, data in _ends(read, size_bytes).items()}
        for at, mark in wanted:
            for start, data in ends.items():
                if at >= start and data[at - start : at - start + len(mark)] == mark:
                    data[at - start : at - start + len(mark)] = bytes(len(mark))
                    break
            else:
                raise self._changed()
        if any(signatures.not_zero(data) for data in ends.values()):
            raise self._changed()
        if signatures.content(read, size_bytes) != self.content:
            raise self._changed()

    def look_again(self, system: System) -> None:
        """Take what is between the ends for what is to be there: we wrote it."""
        self.content = signatures.content(_shared(self.device, system), self.device.size_bytes)

    def unmark(self, system: System) -> None:
        """Take the mark off, for a tool that wants the whole device."""
        if self.is_marked and not self.step.has_room:
            self.verify(system)
            claim = held(self.device, system)
            for at, sector in self.step._sectors(self.device.size_bytes):
                self.step._zero_if(claim, at, sector)
            self.is_marked = False

    def _changed(self) -> UnsafeError:
        return UnsafeError(
            f"{self.device.path}: somebody wrote to it after it was checked: left as it is"
        )


def hand_over(
    numbers: Iterable[str], scene: Scene, tool: Callable[[], None], *, kept: bool
) -> None:
    """Run a tool that claims devices itself.

    `kept`: it writes nothing to them by itself, so that they can be compared afterwards.
    """
    taken = [scene.taken[each] for each in numbers if each in scene.taken]
    for each in taken:
        each.unmark(scene.system)
    for number in numbers:  # also our own mapped devices
        let_go(scene.system, number)
    tool()  # the seam, see the module
    if kept:
        for each in taken:
            each.verify(scene.system)


def begin_load(scene: Scene) -> None:
    """Note that programs write to the devices from here on; those without room lose their mark."""
    for each in scene.taken.values():
        each.unmark(scene.system)
        each.is_loaded = True
        scene.system.loaded.add(each.step.token)


def _ends(read: signatures.Reader, size_bytes: int) -> dict[int, bytes]:
    """Return both ends by where they begin; a small device has one."""
    first = min(ROOM, size_bytes)
    second = max(first, size_bytes - ROOM)
    ends = {0: read(0, first)}
    if second < size_bytes:
        ends[second] = read(second, size_bytes - second)
    return ends


def _shared(device: Device, system: System) -> signatures.Reader:
    """Return a reader of a device that the kernel holds for us."""

    def read(offset: int, length: int) -> bytes:
        fd = system.open_device(device.node, 0)
        try:
            return system.pread(fd, offset, length)
        finally:
            system.close_device(fd)

    return read


def _claim_soon(device: Device, system: System) -> Claim:
    """Take a device that the kernel may only be about to let go of."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Claim(device, system, write=True)
        except UnsafeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def zero_device(device: Device, system: System) -> None:
    """Write zeros to the ends of a device that is ours: a mapped one, or one that is taken."""
    claim = system.claims.get(device.number) or Claim(device, system, write=True)
    try:
        length = min(MIB, device.size_bytes)
        for at in dict.fromkeys((0, device.size_bytes - length)):
            if signatures.not_zero(claim.read(at, length)):
                claim.write(at, bytes(length))
    finally:
        if device.number not in system.claims:
            claim.release()
