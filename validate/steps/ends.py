"""Mark both ends of a user's device when it is claimed, and zero them when it is released.

Formats keep their signatures at the ends, so data of others is recognised there.  Only content
decides what is ours: a mark with a random token of this run, written to both ends under an
exclusive claim (O_EXCL).

- The device has room for the cache and `ROOM` bytes at each end: the cache lies between the ends
  and the marks stay during the run.  Afterwards the ends must hold exactly marks and zeros, and
  only the marks are zeroed.
- The cache needs the whole device (bcache, an array or dm-cache directly on it): the marks are
  removed before a tool gets the device.  `Occupy.seal` reads the ends while the kernel still holds
  the device for the cache; afterwards a sector is zeroed only if it equals the sealed one or our
  mark, or is a superblock with the run's UUID.  After a kill there is no seal, and only sectors of
  our mark and superblocks with the run's UUID are zeroed.

The gap: dmsetup, mdadm and make-bcache claim devices exclusively themselves, so our claim is
released right before they run.  If another process claims the device in the gap, the tool fails.
If one writes without a claim, `HandedOver.verify` detects the change after dmsetup, which writes
nothing itself, before a tool that writes at once (mdadm, make-bcache, and dmsetup for a dm-cache,
whose metadata the kernel formats), and before the load begins.  A device that a tool creates is
claimed at once, and released for the next tool.

A check takes time, and a process without a claim may write to a place that was already read.  So
our own writes overwrite only content that was read before the check, and that is read again and
compared right before the write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from validate import guards, remains, signatures
from validate.devices import Claim, Device, find, held, of_number, release_claim
from validate.errors import NotOursError, UnsafeError
from validate.sizes import KIB, MIB
from validate.steps import Scene
from validate.system import System

PATIENCE_S = 10  # to wait for the kernel to release a device
ROOM = signatures.END  # bytes at each end: includes all places of signatures
MARK_BYTES, SECTOR = 4096, 512
ZEROED_BYTES = 64 * KIB  # compared and zeroed at a time
SUPERBLOCKS = (  # offset of the magic, the magic, offset of the UUID; within the sector
    (24, signatures.BCACHE, 56), (0, signatures.MD, 16),
)  # fmt: skip
SUPERBLOCK_AT = 4096
# Guards that are checked again under the claim.  Other partitions of its disk are not: they
# were checked when the device was chosen.
RECHECKED = tuple(each for each in guards.GUARDS if each is not guards.not_of_a_used_disk)
BY_HAND = "if you need nothing on it, erase it by hand (wipefs -a, blkdiscard -z)"


@dataclass(frozen=True)
class Occupy:
    """Claim an empty device of the user; its ends are zeroed again when it is released."""

    path: str
    role: str
    identity: dict[str, str]  # see Device.identity
    token: str = ""  # 32 random hexadecimal digits, unique to this step
    uuid: str = ""  # of the run's array or cache set
    has_room: bool = True  # whether the cache lies between the ends

    def describe(self) -> str:
        """Return what the step does."""
        return f"claim and mark {self.path} ({self.role}); its ends are zeroed afterwards"

    def do(self, scene: Scene) -> None:
        """Check that it is still the same empty device, mark it, and keep the claim.

        Raises UnsafeError if it is another device, is in use or holds data.
        """
        system = scene.system
        device = find(self.path, system)
        if device.identity(system) != self.identity:
            raise UnsafeError(f"{self.path}: is no longer the device that was checked")
        claim = held(device, system)
        claim.verify()
        guards.check(device, system, RECHECKED)
        # Before the check, so that content that it did not accept is never taken for ours.
        content = signatures.content(claim.read, device.size_bytes)
        why = guards.empty(device, claim, system)
        if why:
            raise UnsafeError(f"{self.path}: {why}")
        for at, mark in self._marks(device.size_bytes):
            if signatures.not_zero(claim.read(at, len(mark))):
                raise _changed_error(device)
            claim.write(at, mark)
        scene.roles[self.role] = device.number
        scene.taken[device.number] = HandedOver(self, device, content)

    def seal(self, system: System) -> None:
        """Read the ends while the kernel still holds the device for the cache; see the module.

        Nothing is read if the marks stay, or if the load never began.
        """
        if self.has_room or self.token not in system.loaded:
            return
        device = self._find_again(system)
        if device is not None:
            system.sealed[self.token] = of_device(_shared(device, system), device.size_bytes)

    def undo(self, system: System) -> None:
        """Zero what is ours at the ends; nothing if the device is gone.

        Raises NotOursError if the device may be another one or holds content that is not ours.
        """
        device = self._find_again(system)
        if device is None:
            return
        claim = system.claims.pop(device.number, None) or _claim_with_retry(device, system)
        try:
            self._give_back(claim, device, system)
        finally:
            claim.release()
            system.loaded.discard(self.token)

    def _give_back(self, claim: Claim, device: Device, system: System) -> None:
        if self.has_room:
            if self._holds_more_than_marks(claim, device.size_bytes):
                raise self._foreign_content(claim, device)
        self._zero_ours(claim, device, system)
        if any(
            signatures.not_zero(data) for data in of_device(claim.read, device.size_bytes).values()
        ):
            raise self._foreign_content(claim, device)
        content = signatures.content(claim.read, device.size_bytes)
        if self.token in system.loaded:
            remains.save(device, content, system)
        elif content and not set(content) <= set(remains.load(device, system)):
            raise NotOursError(
                f"{self.path}: its ends are zeroed; the data between them may not be ours: left as "
                f"it is; {BY_HAND}"
            )

    def _foreign_content(self, claim: Claim, device: Device) -> NotOursError:
        names = signatures.contents(claim.read, device.size_bytes)
        names = [name for name in names if name != signatures.MARK_OF_A_RUN] or ["data"]
        return NotOursError(
            f"{self.path}: holds {', '.join(names)}, which is not ours: left as it is; {BY_HAND}"
        )

    def _zero_ours(self, claim: Claim, device: Device, system: System) -> None:
        """Zero each sector at the ends that equals our mark or the seal, and our superblocks."""
        ours = dict(self._sectors(device.size_bytes))
        sealed = system.sealed.pop(self.token, {})
        for start, data in of_device(claim.read, device.size_bytes).items():
            seal = sealed.get(start, b"")
            for at in range(0, len(data), SECTOR):
                sector = data[at : at + SECTOR]
                if signatures.not_zero(sector) and (
                    sector in (ours.get(start + at), seal[at : at + SECTOR])
                    or (start + at == SUPERBLOCK_AT and self._bears_our_uuid(sector))
                ):
                    self._zero_if(claim, start + at, sector)
        inside = ROOM + SUPERBLOCK_AT  # of a superblock on a mapped part, which begins at ROOM
        sector = claim.read(inside, SECTOR)
        if self.has_room and self._bears_our_uuid(sector):
            self._zero_if(claim, inside, sector)

    def _zero_if(self, claim: Claim, at: int, expected: bytes) -> None:
        """Zero a sector if it still holds the expected content."""
        if claim.read(at, len(expected)) == expected:
            claim.write(at, bytes(len(expected)))

    def _bears_our_uuid(self, sector: bytes) -> bool:
        wanted = bytes.fromhex(self.uuid.replace("-", ""))
        return len(wanted) == 16 and any(
            sector[at : at + len(magic)] == magic and sector[uuid_at : uuid_at + 16] == wanted
            for at, magic, uuid_at in SUPERBLOCKS
        )

    def _marks(self, size_bytes: int) -> list[tuple[int, bytes]]:
        """Return the marks with their offsets."""
        return [(0, self._mark("beginning")), (size_bytes - MARK_BYTES, self._mark("end"))]

    def _mark(self, where: str) -> bytes:
        """Return a mark of MARK_BYTES; its sectors differ from one another and from zeros."""
        words = (
            f"{signatures.OURS.decode()}: taken for a run; `validate clean` gives it back.\n"
            f"{self.token} {where} {number}\n"
            for number in range(MARK_BYTES // SECTOR)
        )
        return b"".join(each.encode().ljust(SECTOR, b".") for each in words)

    def _sectors(self, size_bytes: int) -> list[tuple[int, bytes]]:
        """Return the sectors of the marks with their offsets."""
        return [
            (start + at, mark[at : at + SECTOR])
            for start, mark in self._marks(size_bytes)
            for at in range(0, MARK_BYTES, SECTOR)
        ]

    def _holds_more_than_marks(self, claim: Claim, size_bytes: int) -> bool:
        """Return whether the ends hold more than sectors of our marks, which may be incomplete."""
        ends = {start: bytearray(data) for start, data in of_device(claim.read, size_bytes).items()}
        for at, sector in self._sectors(size_bytes):
            for start, data in ends.items():
                if data[at - start : at - start + SECTOR] == sector and at >= start:
                    data[at - start : at - start + SECTOR] = bytes(SECTOR)
        return any(signatures.not_zero(data) for data in ends.values())

    def _find_again(self, system: System) -> Device | None:
        """Return the device by its identity, also after a reboot; None if it is gone.

        Raises NotOursError if it cannot be identified with certainty.
        """
        same_boot = system.boot() == self.identity["boot"]
        if not same_boot and not self.identity["hardware"]:
            raise NotOursError(
                f"{self.path}: has no serial number, so it cannot be identified after a reboot: "
                f"left as it is; if it begins with the text {signatures.OURS.decode()!r}, its "
                "first and last 4096 bytes are ours: zero those by hand"
            )
        wanted = {key: value for key, value in self.identity.items()
                  if same_boot or key in ("size", "hardware", "start")}  # fmt: skip
        candidates = []
        for folder in sorted((system.sys / "class/block").iterdir()):
            number = system.read(folder / "dev", "")
            identity = of_number(number, system).identity(system) if number else {}
            if number and wanted.items() <= identity.items():
                node = f"{system.dev}/{folder.name.replace('!', '/')}"
                candidates.append(of_number(number, system, node))
        if len(candidates) > 1:
            raise NotOursError(
                f"{self.path}: may be {' or '.join(each.path for each in candidates)}, whose "
                f"identities are equal: left as they are; {BY_HAND}"
            )
        return candidates[0] if candidates else None


@dataclass
class HandedOver:
    """A device that Occupy marked, and that a tool or the load will get."""

    step: Occupy
    device: Device
    content: list[signatures.Piece]  # between the ends, when it was marked
    is_marked: bool = True
    is_loaded: bool = False  # a tool or the load writes to it, so that changes prove nothing

    def verify(self, system: System) -> None:
        """Raise UnsafeError if a process wrote to it since it was marked; nothing once loaded."""
        if self.is_loaded:
            return
        read = _shared(self.device, system)
        size_bytes = self.device.size_bytes
        wanted = self.step._marks(size_bytes) if self.is_marked else []
        ends = {start: bytearray(data) for start, data in of_device(read, size_bytes).items()}
        for at, mark in wanted:
            for start, data in ends.items():
                if at >= start and data[at - start : at - start + len(mark)] == mark:
                    data[at - start : at - start + len(mark)] = bytes(len(mark))
                    break
            else:
                raise _changed_error(self.device)
        if any(signatures.not_zero(data) for data in ends.values()):
            raise _changed_error(self.device)
        if signatures.content(read, size_bytes) != self.content:
            raise _changed_error(self.device)

    def zero_ends_of(self, part: Device, start_bytes: int, system: System) -> None:
        """Zero the ends of our mapped part of it, which an earlier load of ours wrote.

        Raises UnsafeError if another process wrote to them since the device was marked.
        """
        claim, read = held(part, system), _shared(self.device, system)
        result = of_device(claim.read, part.size_bytes, MIB)

        def with_zeros(offset: int, length: int) -> bytes:
            data = bytearray(read(offset, length))
            for at, old in result.items():
                first = max(start_bytes + at - offset, 0)
                last = min(start_bytes + at + len(old) - offset, length)
                if first < last:
                    data[first:last] = bytes(last - first)
            return bytes(data)

        content = signatures.content(with_zeros, self.device.size_bytes)
        self.verify(system)  # what was read above is what was accepted
        for start, old in result.items():
            for at in range(0, len(old), ZEROED_BYTES):
                expected = old[at : at + ZEROED_BYTES]
                if claim.read(start + at, len(expected)) != expected:
                    raise _changed_error(self.device)
                if signatures.not_zero(expected):
                    claim.write(start + at, bytes(len(expected)))
        self.content = content

    def unmark(self, system: System) -> None:
        """Verify it and remove the marks, for a tool that needs the whole device."""
        if self.is_marked and not self.step.has_room:
            self.verify(system)
            claim = held(self.device, system)
            for at, sector in self.step._sectors(self.device.size_bytes):
                self.step._zero_if(claim, at, sector)
            self.is_marked = False


def hand_over(
    numbers: Iterable[str], scene: Scene, tool: Callable[[], None], *, kept: bool
) -> None:
    """Release the claims on devices and run a tool that claims them itself.

    `kept`: the tool itself writes nothing to them, so they are verified after it; otherwise all
    devices are verified before it, since it may write to parts of them.  Raises UnsafeError if
    another process wrote to them.
    """
    taken = [scene.taken[each] for each in numbers if each in scene.taken]
    for each in taken:
        each.unmark(scene.system)
    for number in numbers:  # includes our own mapped devices
        release_claim(scene.system, number)
    if not kept:
        verify_all(scene)
    tool()  # the gap, see the module
    if kept:
        for each in taken:
            each.verify(scene.system)
    else:
        for each in scene.taken.values():
            each.is_loaded = True


def verify_all(scene: Scene) -> None:
    """Raise UnsafeError if another process wrote to a device of the run since it was marked."""
    for each in scene.taken.values():
        each.verify(scene.system)


def begin_load(scene: Scene, *, verified: bool = False) -> None:
    """Record that programs write to the devices from now on; unmark those without room.

    `verified`: they were verified before a cache wrote its metadata.  Raises UnsafeError if
    another process wrote to them since they were marked.
    """
    if not verified:
        verify_all(scene)
    for each in scene.taken.values():
        each.unmark(scene.system)
        each.is_loaded = True
        scene.system.loaded.add(each.step.token)


def _changed_error(device: Device) -> UnsafeError:
    return UnsafeError(f"{device.path}: another process wrote to it after the check: left as it is")


def of_device(read: signatures.Reader, size_bytes: int, length: int = 0) -> dict[int, bytes]:
    """Return the content of both ends (of ROOM bytes) by offset; a small device has one end."""
    length = length or ROOM
    first = min(length, size_bytes)
    second = max(first, size_bytes - length)
    ends = {0: read(0, first)}
    if second < size_bytes:
        ends[second] = read(second, size_bytes - second)
    return ends


def _shared(device: Device, system: System) -> signatures.Reader:
    """Return a reader of a device that the kernel holds for our cache: it needs no claim."""

    def read(offset: int, length: int) -> bytes:
        fd = system.open_device(device.node, 0)
        try:
            return system.pread(fd, offset, length)
        finally:
            system.close_device(fd)

    return read


def _claim_with_retry(device: Device, system: System) -> Claim:
    """Claim a device; retry for PATIENCE_S, since the kernel may still be releasing it."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Claim(device, system, write=True)
        except UnsafeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def zero_device(device: Device, system: System) -> None:
    """Zero the ends of a device after a load of ours: a mapped one, or one that Occupy marked."""
    claim = system.claims.get(device.number) or Claim(device, system, write=True)
    try:
        length = min(MIB, device.size_bytes)
        for at in dict.fromkeys((0, device.size_bytes - length)):
            if signatures.not_zero(claim.read(at, length)):
                claim.write(at, bytes(length))
    finally:
        if device.number not in system.claims:
            claim.release()
