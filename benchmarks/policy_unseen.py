"""Traces for judging policies that no constant of a policy was chosen on, by family.

    python benchmarks/policy_unseen.py [the options of policies.py]

All were written on 27 November 2026 before any policy had replayed one of them.  "Tuned" seeds of
the two loads that are new here are for finding causes, with policy_scans.py too; the others judge,
and are looked at once for a change.  The servers are those of decision_unseen.py, by another seed.

desktop  a list of reads in pages of 512 bytes, as of the ARC paper's workstations: files are opened
         and read from their beginning in requests that grow, some only at their head; a project of
         some files is worked on and then another; one large mailbox is read at random places; twice
         all files are read once
ledger   a database in pages of 8 KiB: rows by skewed keys behind an index of three levels,
         checkpoints that write the changed pages in order, one backup and one clean-up of a table
"""

from __future__ import annotations

import functools

import numpy as np
import policies
from decision_unseen import UNSEEN
from policy_traces import KIB, NUMBERED, SECOND, Traced, _requests

from hybridsim.requests.rows import Requests, joined
from hybridsim.traces.trace import Trace

SECTOR = 512
SERVER_REQUESTS, SERVER_SEED = 60_000, 5
TUNED_SEEDS, JUDGED_SEEDS = (1,), (5, 6)
FAMILIES = {
    "mail and homes": ("spool", "homes", "sessions"),
    "virtual machines": ("logons", "thin"),
    "databases": ("night", "bookings", "lsm"),
    "streams": ("cameras", "broker", "metrics", "dedup", "spills", "imaging"),
    "content": ("git", "cdn", "photos", "search", "builds", "epochs"),
}

FILES, FILE_PAGES, FILE_SPREAD, FILE_MOST = 6_000, 24, 1.6, 8_192
OPENS, PROJECT_OPENS, PROJECT_FILES, PROJECT_SHARE = 40_000, 4_000, 250, 0.5
HEAD_SHARE, MAIL_SHARE, MAIL_PAGES = 0.3, 0.15, 60_000
DIRECTORIES, FIRST_READ, LONGEST_READ = 400, 8, 128
READ_ALL_AT = (0.45, 0.8)

ROWS, ROW_PAGES, LEAF, INNER = 400_000, 180_000, 2_000, 60
BLOCK = 8 * KIB
LEDGER_REQUESTS, WRITE_SHARE, CHECKPOINT = 220_000, 0.25, 12_000
BACKUP_AT, CLEAN_AT, CLEAN_SHARE, COPY_BYTES = 0.5, 0.75, 0.2, 128 * KIB
LEDGER_RATE = 120


def traces() -> list[Traced]:
    """Return the traces that judge."""
    return [each for family in by_family().values() for each in family]


def by_family() -> dict[str, list[Traced]]:
    """Return the traces that judge, by family."""
    result = {family: [server(kind) for kind in kinds] for family, kinds in FAMILIES.items()}
    result["lists"] = [listed(seed) for seed in JUDGED_SEEDS]
    result["databases"] += [booked(seed) for seed in JUDGED_SEEDS]
    return result


def server(kind: str, seed: int = SERVER_SEED) -> Traced:
    """Return a load of decision_unseen.py."""
    make = functools.partial(generated, UNSEEN[kind], seed)
    return Traced(kind, False, (64 * KIB,), make)


def listed(seed: int) -> Traced:
    """Return the list of a workstation."""
    make = functools.partial(desktop, seed)
    return Traced(f"desktop {seed}", seed in TUNED_SEEDS, NUMBERED, make, mode="closed")


def booked(seed: int) -> Traced:
    """Return the database."""
    make = functools.partial(ledger, seed)
    return Traced(f"ledger {seed}", seed in TUNED_SEEDS, (4 * KIB, 64 * KIB), make)


def generated(line: str, seed: int) -> Requests:
    """Return the requests of a line of decision_unseen.py."""
    text = line.replace("{n}", str(SERVER_REQUESTS))
    return joined(list(Trace.read(f"gen:{text}").seeded(seed).chunks()))


def desktop(seed: int, reads_all: bool = True) -> Requests:
    """Return the reads of a workstation, in sectors."""
    rng = np.random.Generator(np.random.PCG64([seed, 101]))
    size = np.exp(rng.normal(np.log(FILE_PAGES), FILE_SPREAD, FILES))
    size = np.clip(size.astype(np.int64), 1, FILE_MOST)
    start = DIRECTORIES + MAIL_PAGES + np.concatenate([[0], np.cumsum(size)[:-1]])
    usual = rng.permutation(FILES)[skewed(rng, FILES, 0.9, OPENS)]
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    all_at = {int(share * OPENS) for share in READ_ALL_AT} if reads_all else set()
    project = rng.integers(FILES, size=PROJECT_FILES)
    for opened in range(OPENS):
        if opened % PROJECT_OPENS == 0:
            project = rng.integers(FILES, size=PROJECT_FILES)
        if opened in all_at:
            parts += [reads(int(start[file]), int(size[file])) for file in range(FILES)]
        if rng.random() < MAIL_SHARE:
            place = DIRECTORIES + int(MAIL_PAGES * rng.random() ** 3)
            parts.append((np.array([place]), np.array([int(rng.integers(1, 5))])))
            continue
        file = int(usual[opened])
        if rng.random() < PROJECT_SHARE:
            file = int(project[int(PROJECT_FILES * rng.random() ** 2)])
        parts.append((np.array([file * DIRECTORIES // FILES]), np.array([1])))
        pages = int(size[file])
        is_head = rng.random() < HEAD_SHARE
        parts.append(reads(int(start[file]), min(pages, FIRST_READ) if is_head else pages))
    offset, length = (np.concatenate(column) for column in zip(*parts))
    number = np.arange(len(offset))
    return _requests(number, np.zeros(len(offset), np.bool_), offset * SECTOR, length * SECTOR)


def reads(start: int, pages: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the requests that read a file: first pages, and the length of each."""
    lengths, left, longest = [], pages, FIRST_READ
    while left > 0:
        lengths.append(min(left, longest))
        left -= lengths[-1]
        longest = min(2 * longest, LONGEST_READ)
    length = np.array(lengths)
    return start + np.cumsum(length) - length, length


def ledger(seed: int, copies: bool = True) -> Requests:
    """Return the requests of a database, with arrivals."""
    rng = np.random.Generator(np.random.PCG64([seed, 102]))
    rows = rng.permutation(ROWS)[skewed(rng, ROWS, 0.8, LEDGER_REQUESTS)]
    step = np.arange(LEDGER_REQUESTS)
    kind = rng.random(LEDGER_REQUESTS)
    leaf, inner = rows * LEAF // ROWS, rows * INNER // ROWS
    page = np.where(kind < 0.12, INNER + leaf, rows * ROW_PAGES // ROWS + INNER + LEAF)
    page = np.where(kind < 0.02, inner, page)
    changed = (rng.random(LEDGER_REQUESTS) < WRITE_SHARE) & (kind >= 0.12)
    at_ns = np.cumsum(rng.exponential(SECOND / LEDGER_RATE, LEDGER_REQUESTS)).astype(np.int64)
    parts = [
        _requests(at_ns, np.zeros(len(page), np.bool_), page * BLOCK, np.full(len(page), BLOCK))
    ]
    for first in range(0, LEDGER_REQUESTS, CHECKPOINT):
        mine = slice(first, first + CHECKPOINT)
        dirty = np.unique(page[mine][changed[mine]])
        begin = at_ns[mine][-1]
        when = begin + np.arange(len(dirty)) * SECOND // (4 * LEDGER_RATE)
        writes = np.ones(len(dirty), np.bool_)
        parts.append(_requests(when, writes, dirty * BLOCK, np.full(len(dirty), BLOCK)))
    whole = (ROW_PAGES + LEAF + INNER) * BLOCK
    tables = ((BACKUP_AT, 0, whole), (CLEAN_AT, whole // 3, int(CLEAN_SHARE * whole)))
    for share, begin, length in tables if copies else ():
        offset = np.arange(begin, begin + length - COPY_BYTES, COPY_BYTES) // BLOCK * BLOCK
        when = at_ns[int(share * len(step))] + np.arange(len(offset)) * SECOND // (2 * LEDGER_RATE)
        no = np.zeros(len(offset), np.bool_)
        parts.append(_requests(when, no, offset, np.full(len(offset), COPY_BYTES)))
    merged = joined(parts)
    order = np.argsort(merged.arrival_ns, kind="stable")
    return Requests._make(column[order] for column in merged)


def skewed(rng: np.random.Generator, count: int, theta: float, draws: int) -> np.ndarray:
    """Return ranks that are drawn with Zipf's frequencies."""
    weight = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -theta)
    return np.searchsorted(weight / weight[-1], rng.random(draws))


if __name__ == "__main__":
    policies.main(traces=traces())
