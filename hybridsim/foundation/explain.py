"""The glossary of printed words and figures, which `hybridsim explain` prints.

The entries are in explain.toml; a key is the word as reports print it.  ALIASES maps other words
that a user may ask for, in lower case, to the key of the entry that explains them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from hybridsim.foundation.codes import Reason

# How reports print the reasons why a read was not served from the SSD.
REASONS = {
    Reason.COLD: "first touch",
    Reason.NOT_HOT: "not hot enough",
    Reason.BUSY: "fills busy",
    Reason.FILLING: "being filled",
    Reason.EVICTED: "evicted",
    Reason.OVERWRITTEN: "overwritten",
    Reason.SEQUENTIAL: "sequential",
    Reason.NO_CACHE: "no cache",
    Reason.NOT_WRITTEN: "not written lately",
    Reason.CONGESTED: "SSD congested",
}

_ENTRIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TERMS: dict[str, str] = {word: " ".join(text.split()) for word, text in _ENTRIES.items()}

ALIASES = {
    "answer": "verdict",
    "bins of": "bins",
    "cutoff": "sequential cutoff",
    "rated life": "endurance",
    "tbw": "endurance",
    "t50": "t90",
    "t95": "t90",
    "utilisation": "busy",
    "utilization": "busy",
    "backlog": "saturated",
    "overloaded": "saturated",
    "open": "open loop",
    "closed": "closed loop",
    "think": "think time",
    "percentile": "p99",
    "p90": "p99",
    "p95": "p99",
    "lvmcache": "dm-cache",
    "byte hit ratio": "page hits",
    "request hits": "hit",
    "admitted": "fill",
    "p999": "p99.9",
    "wear": "SSD writes",
    "fidelity": "model",
    "likeness": "demerit",
    "match": "demerit",
    "site": "machine",
    "apart": "demerit",
    "dropped": "drops",
    "why not from ssd": "not from SSD",
    "with the cache": "with cache",
    "none": "hit",  # the key of hits among the reasons ("bypass") of --json
    "not hot": "not hot enough",
    "filling": "being filled",
    "not written": "not written lately",
    "congested": "SSD congested",
    "hits": "hit",
    "page hit": "page hits",
    "misses": "miss",
    "mrc": "miss-ratio curve",
    "promoted": "promotion",
    "promotions": "promotion",
    "demoted": "demotion",
    "demotions": "demotion",
    "eviction": "evicted",
    "evictions": "evicted",
    "clean": "dirty",
    "cleaning": "write-back",
    "written back": "write-back",
    "occupancy": "usage",
    "pass-through": "requests",
    "partial miss": "requests",
    "working set": "footprint",
    "throughput": "bandwidth",
    "depth": "queue depth",
    "iodepth": "queue depth",
    "row": "stripe",
    "slow tier": "tier",
    "fast tier": "tier",
    "trim": "discard",
    "discards": "discard",
    "flushes": "flush",
    "second chance": "CLOCK",
    "budget": "write_budget",
}


def explain(word: str) -> tuple[str, str] | None:
    """Return the entry for a word as (name, text), or None if there is none.

    Case, spaces, hyphens and underscores in the word do not matter.
    """
    folded = " ".join(word.replace("_", " ").casefold().split())
    names = {name.casefold(): name for name in TERMS}
    name = names.get(folded) or ALIASES.get(folded)
    if name is None:  # 'warm up' for 'warm-up', 'writethrough' for 'write-through'
        bare = {_bare(known): name for known, name in {**ALIASES, **names}.items()}
        name = bare.get(_bare(folded))
    return None if name is None else (name, TERMS[name])


def _bare(word: str) -> str:
    """Return the letters and digits of a word, in lower case."""
    return "".join(letter for letter in word.casefold() if letter.isalnum())


def known_words() -> list[str]:
    """Return every word that `explain` accepts."""
    return [*TERMS, *ALIASES]
