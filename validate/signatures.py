"""Detect what a device holds, by reads of the device itself, not of udev's or blkid's caches.

The offsets and magic numbers are those of the formats' documentation.  A device without a
signature counts as empty only if its ends and all sampled places between them are zeros.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass

from validate.sizes import KIB, MIB

Reader = Callable[[int, int], bytes]  # offset, length
Piece = tuple[int, str]  # offset, SHA-256
END = MIB  # bytes at each end that must be zeros; the next END bytes are read in full too
SAMPLES, SAMPLE_BYTES = 128, 4 * KIB  # between the ends
OURS = b"hybridsim validate"  # the first bytes of the mark of a run
MARK_OF_A_RUN = "the mark of a run of validate"
BCACHE = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
MD = bytes.fromhex("fc4e2ba9")


@dataclass(frozen=True)
class Mark:
    """The signature of a format: its offset and magic number."""

    name: str
    offset: int  # in bytes; negative: from the end
    magic: bytes


MARKS = (
    Mark("a GPT partition table", 512, b"EFI PART"),
    Mark("a GPT partition table", 4096, b"EFI PART"),
    Mark("a GPT partition table (its copy)", -512, b"EFI PART"),
    Mark("a GPT partition table (its copy)", -4096, b"EFI PART"),
    Mark("an ext2/3/4 file system", 1024 + 56, b"\x53\xef"),
    Mark("an XFS file system", 0, b"XFSB"),
    Mark("a Btrfs file system", 64 * KIB + 64, b"_BHRfS_M"),
    Mark("an F2FS file system", 1024, b"\x10\x20\xf5\xf2"),
    Mark("a JFS file system", 32 * KIB, b"JFS1"),
    Mark("a ReiserFS file system", 64 * KIB + 52, b"ReIsEr"),
    Mark("a bcachefs file system", 4096 + 24, bytes.fromhex("c68573f666ce90a9d96a60cf803df7ef")),
    Mark("a GFS2 file system", 64 * KIB, b"\x01\x16\x19\x70"),
    Mark("an OCFS2 file system", 4 * KIB, b"OCFSV2"),
    Mark("an NTFS file system", 3, b"NTFS    "),
    Mark("an exFAT file system", 3, b"EXFAT   "),
    Mark("a FAT file system", 54, b"FAT1"),
    Mark("a FAT file system", 82, b"FAT32"),
    Mark("a SquashFS file system", 0, b"hsqs"),
    Mark("an EROFS file system", 1024, b"\xe2\xe1\xf5\xe0"),
    Mark("an ISO 9660 file system", 32 * KIB + 1, b"CD001"),
    Mark("a UDF file system", 32 * KIB + 1, b"BEA01"),
    Mark("an HFS+ file system", 1024, b"H+"),
    Mark("an APFS container", 32, b"NXSB"),
    Mark("a VMFS volume", MIB, b"\x0d\xd0\x01\xc0"),
    Mark("a VMFS file system", 2 * MIB, b"\x5e\xf1\xab\x2f"),
    Mark("LUKS encryption", 0, b"LUKS\xba\xbe"),
    Mark("LUKS encryption", 16 * KIB, b"SKUL\xba\xbe"),
    Mark("BitLocker encryption", 3, b"-FVE-FS-"),
    Mark("swap space", 4096 - 10, b"SWAPSPACE2"),
    Mark("swap space", 4096 - 10, b"SWAP-SPACE"),
    Mark("swap space", 64 * KIB - 10, b"SWAPSPACE2"),
    Mark("a hibernated system", 4096 - 10, b"S1SUSPEND"),
    *(Mark("an LVM physical volume", sector * 512, b"LABELONE") for sector in range(4)),
    Mark("a member of an md RAID", 0, MD),
    Mark("a member of an md RAID", 4096, MD),
    Mark("a member of an Intel RAID", -1024, b"Intel Raid ISM Cfg Sig. "),
    Mark("a member of a DDF RAID", -512, b"\xde\x11\xde\x11"),
    Mark("a bcache superblock", 4096 + 24, BCACHE),
    Mark("a dm-cache's metadata", 32, (0o6142003).to_bytes(8, "little")),
    Mark("a thin pool's metadata", 32, (27022010).to_bytes(8, "little")),
    Mark("an Open CAS cache", 4, (0x187E1CA6).to_bytes(4, "little")),
    Mark("a dm-writecache", 0, bytes.fromhex("21934823")),
    Mark("a dm-integrity device", 0, b"integrt\0"),
    Mark("a VDO volume", 0, b"dmvdo001"),
    Mark("a Ceph BlueStore", 0, b"bluestore block device"),
    Mark("an Oracle ASM disk", 32, b"ORCLDISK"),
    Mark("a DRBD device", -4096 + 60, b"\x83\x74\x02\x6d"),
    Mark("a DRBD device", -4096 + 60, b"\x83\x74\x02\x6b"),
    Mark("a qcow2 image", 0, b"QFI\xfb"),
    Mark("a Stratis pool", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    Mark("GELI encryption", -512, b"GEOM::ELI"),
    Mark(MARK_OF_A_RUN, 0, OURS),
)


def contents(read: Reader, size_bytes: int, allowed: Collection[Piece] = ()) -> list[str]:
    """Return names of what a device holds; an empty list if its ends and all samples are zeros.

    `allowed` are pieces between the ends that are ignored: those that a run of ours left.
    """
    names = [mark.name for mark in MARKS if _has(read, size_bytes, mark)]
    names += _md_at_the_end(read, size_bytes)
    names += _zfs(read, size_bytes)
    table = read(0, 512)
    if table[510:512] == b"\x55\xaa" and not names:
        names.append("a DOS partition table or boot sector")
    if not names:
        names += [f"data at its {place}" for place in _not_empty(read, size_bytes)]
    if not names:
        others = [piece[0] for piece in content(read, size_bytes) if piece not in allowed]
        names += [f"data in its middle (at byte {at})" for at in others[:1]]
    return list(dict.fromkeys(names))


def not_zero(data: bytes | bytearray) -> bool:
    """Return whether data holds anything but zeros; far faster than `any`."""
    return data.count(0) != len(data)


def content(read: Reader, size_bytes: int) -> list[Piece]:
    """Return the sampled pieces between the ends that are not zeros."""
    pieces = []
    for at, length in _pieces(size_bytes):
        data = read(at, length)
        if not_zero(data):
            pieces.append((at, hashlib.sha256(data).hexdigest()))
    return pieces


def _pieces(size_bytes: int) -> list[tuple[int, int]]:
    """Return offset and length of the pieces that are read between the ends."""
    start, end = END, size_bytes - END
    if end <= start:
        return []
    length = min(END, end - start)
    pieces = [(start, length), (end - length, length)]
    for number in range(SAMPLES):
        at = (start + (end - start) * number // SAMPLES) // SAMPLE_BYTES * SAMPLE_BYTES
        pieces.append((at, min(SAMPLE_BYTES, end - at)))
    return list(dict.fromkeys(pieces))


def of_file(fd: int) -> Reader:
    """Return a reader of an open file or device."""
    return lambda offset, length: os.pread(fd, length, offset)


def _has(read: Reader, size_bytes: int, mark: Mark) -> bool:
    at = mark.offset if mark.offset >= 0 else size_bytes + mark.offset
    return 0 <= at <= size_bytes - len(mark.magic) and read(at, len(mark.magic)) == mark.magic


def _md_at_the_end(read: Reader, size_bytes: int) -> list[str]:
    """Detect md superblocks of versions 0.90 and 1.0, whose offset depends on the size."""
    of_0_90 = size_bytes // (64 * KIB) * 64 * KIB - 64 * KIB
    of_1_0 = (size_bytes // 512 - 16) // 8 * 8 * 512
    places = [at for at in (of_0_90, of_1_0) if at >= 0]
    return ["a member of an md RAID"] if any(read(at, 4) == MD for at in places) else []


def _zfs(read: Reader, size_bytes: int) -> list[str]:
    """Detect an uberblock in ZFS's four labels."""
    label, magic = 256 * KIB, (0x00BAB10C).to_bytes(8, "little")
    end = size_bytes // label * label
    for start in (0, label, end - 2 * label, end - label):
        ring = read(start + 128 * KIB, 128 * KIB) if start >= 0 else b""
        if any(ring[at : at + 8] in (magic, magic[::-1]) for at in range(0, len(ring), KIB)):
            return ["a member of a ZFS pool"]
    return []


def _not_empty(read: Reader, size_bytes: int) -> list[str]:
    length = min(END, size_bytes)
    ends = {"beginning": 0, "end": size_bytes - length}
    return [name for name, at in ends.items() if not_zero(read(at, length))]
