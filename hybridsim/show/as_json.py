"""Write a result as JSON."""

from __future__ import annotations

from typing import TextIO

from hybridsim.answers.result import Result


def write(result: Result, stream: TextIO) -> None:
    """Write the result to the stream as one JSON object."""
    stream.write(result.to_json() + "\n")
