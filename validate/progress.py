"""Progress messages of a run."""

from __future__ import annotations

import sys
from collections.abc import Callable

Progress = Callable[[str], None]  # takes one message, without a newline


def to_stderr(line: str) -> None:
    """Print a message to standard error."""
    print(f"validate: {line}", file=sys.stderr, flush=True)
