"""Thin a trace: a sample of its regions, counters of all requests, some stretches in full."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable
from hybridsim.requests.pages import SPAN
from hybridsim.requests.rows import UNKNOWN, Requests
from hybridsim.traces.thinned.thinner import HOUR_NS, Settings, Store, Thinner
from hybridsim.traces.trace import Trace


@dataclass(frozen=True)
class Result:
    """What was written."""

    path: str
    bytes: int
    requests: int  # of the trace
    rate: float  # at the end: share of the regions
    stretches: int
    written_again: int  # times that the rate or the stretches were reduced


def thin(
    trace: Trace,
    output: str | os.PathLike[str],
    settings: Settings,
    watch: Callable[[Iterator[Requests]], Iterator[Requests]] = iter,
) -> Result:
    """Write the thinned capture of a trace: completely, or not at all.

    Time 0 of the capture is the full hour before the trace, where its clock is known.  Memory does
    not depend on the length of the trace.  Raises UsageError for settings that cannot be met, or a
    file that cannot be written.
    """
    settings.check()
    if getattr(trace, "sample", None) is not None:
        raise UsageError(f"{trace.name} is thinned already: thin the trace it was made from")
    target = Path(output)
    shift_ns = 0
    if trace.origin is not None and trace.origin >= 0:
        shift_ns = trace.origin % HOUR_NS
        settings = replace(settings, origin_unix_ns=trace.origin - shift_ns)
    temporary = target.absolute().with_name(f".hybridsim-{secrets.token_hex(8)}")
    try:
        store = Store(temporary, settings.max_bytes)
        try:
            thinner = Thinner(store, settings)
            rows = 0
            for chunk in watch(trace.chunks()):
                thinner.take(later(chunk, shift_ns))
                rows += chunk.rows
            thinner.finish()
            store.flush(is_safe=True)
            size = store.size
        finally:
            store.close()
        temporary.chmod(0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise UsageError(f"cannot write {printable(target)}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return Result(
        str(output), size, rows, thinner.threshold / SPAN,
        len(thinner.chosen.all()), thinner.written_again,
    )  # fmt: skip


def later(rows: Requests, shift_ns: int) -> Requests:
    """Return requests with all times later."""
    if not shift_ns:
        return rows
    moved: dict[str, Any] = {"arrival_ns": rows.arrival_ns + shift_ns}
    for name in ("dispatch_ns", "complete_ns"):
        column = getattr(rows, name)
        moved[name] = np.where(column == UNKNOWN, UNKNOWN, column + shift_ns)
    return rows._replace(**moved)
