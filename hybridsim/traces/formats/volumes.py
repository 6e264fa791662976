"""The volumes of a multi-volume trace: selects one of them, or concatenates all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Device, Findings, Requests
from hybridsim.traces.formats.line_parser import NUMBER_MAX, Of

ALL = "all"
ALIGN_BYTES = 1 << 20
NAMED_MAX = 8


class Volumes:
    """The volumes of a trace and the selection: a name, ALL, or the one with most bytes.

    ALL concatenates them in the order of their first appearance; the size of each is the end of
    its requests, rounded up to a MiB.
    """

    def __init__(
        self, file: str, asked: str | None, names: list[str], seen: NDArray[np.int64]
    ) -> None:
        self._asked = asked is not None
        self._all = asked == ALL and ALL not in names
        most = max(range(len(names)), key=lambda i: (seen[i, Of.BYTES], -i))
        self._chosen = names[most] if asked is None or self._all else asked
        if self._chosen not in names:
            listed = ", ".join(names[:NAMED_MAX]) + (", ..." if len(names) > NAMED_MAX else "")
            raise TraceError(f"{file}: contains no device {asked!r}, only {listed}; or specify all")
        self.wanted = -1 if self._all else names.index(self._chosen)  # -1: all
        self._begin_bytes: NDArray[np.int64] | None = None
        if self._all:
            ends = seen[: len(names), Of.END]
            sizes = (ends + ALIGN_BYTES - 1) // ALIGN_BYTES * ALIGN_BYTES
            if sum(sizes.tolist()) > NUMBER_MAX:
                raise TraceError(
                    f"{file}: its volumes are too large to be concatenated: "
                    "choose one with --device"
                )
            self._begin_bytes = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self.count(names, seen)

    def laid_out(self, part: Requests) -> Requests:
        """Return requests with their offsets in the concatenation."""
        if self._begin_bytes is None:
            return part
        return part._replace(offset_bytes=part.offset_bytes + self._begin_bytes[part.device])

    def apart(self, part: Requests) -> Requests:
        """Return requests of the concatenation with the offsets on their own volumes."""
        if self._begin_bytes is None:
            return part
        return part._replace(offset_bytes=part.offset_bytes - self._begin_bytes[part.device])

    def of_chosen(self, counts: NDArray[np.int64]) -> int:
        """Return the sum of a per-device count over the selected devices."""
        return int(counts.sum() if self._all else counts[self.wanted])

    def count(self, names: list[str], seen: NDArray[np.int64]) -> None:
        """Set the devices from the counts of a pass."""
        self.devices = [
            Device(
                name,
                int(seen[index, Of.REQUESTS]),
                int(seen[index, Of.BYTES]),
                chosen=self._all or name == self._chosen,
            )
            for index, name in enumerate(names)
        ]

    def report(self, findings: Findings) -> None:
        """Add a finding that there are several volumes, and which one is replayed."""
        others = sorted(
            (each for each in self.devices if not each.chosen), key=lambda each: -each.bytes
        )
        if not others or self._asked:
            return
        more = f", ... ({len(others):,} in all)" if len(others) > NAMED_MAX else ""
        findings.add(
            "several-devices",
            f"only {self._chosen}, the device with most bytes, is replayed",
            count=len(self.devices),
            place="also in the trace: "
            + ", ".join(each.name for each in others[:NAMED_MAX])
            + more,
            fix="choose another with --device, or all, concatenated as on one array, with "
            "--device all",
        )
