"""A workload read as a trace: a TOML file, a file of Iometer, or a `gen:` line."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator

from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Findings, Requests
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.text import OneDevice

SIZE_MAX = 1 << 26
LOAD = re.compile(rb"(?m)^[ \t]*+\[\[load\]\]")


def detect(head: bytes) -> bool:
    """Return whether the text is a workload."""
    is_of_iometer = head.startswith(b"Version ") and b"\n'" in head
    return head.startswith(b"gen:") or is_of_iometer or LOAD.search(head) is not None


class Reader(OneDevice):
    """A workload; each pass generates the same requests again."""

    format, what, may_be_empty = "workload", "a workload", True

    def __init__(self, sources: list[Source], device: str | None, use_dispatch: bool) -> None:
        from hybridsim.workloads import workload

        super().__init__(sources, device, use_dispatch)
        source = self._source
        with source.open(Findings()) as stream:
            text = stream.read(SIZE_MAX)
        try:
            self._workload = workload.read(
                text.decode("utf-8-sig").replace("\r\n", "\n"), source.name
            )
        except UnicodeDecodeError as error:
            raise TraceError(
                f"{source.name} is not UTF-8 text (byte {error.start}): save it as UTF-8"
            ) from None

    def seeded(self, seed: int) -> Reader:
        """Return the same workload with another random seed."""
        other = copy.copy(self)
        other._workload = self._workload.model_copy(update={"seed": seed})
        return other

    def _parts(self, findings: Findings) -> Iterator[Requests]:
        from hybridsim.workloads.workload import generate

        return generate(self._workload)
