"""Saying what is done, while it is done."""

from __future__ import annotations

import sys
from collections.abc import Callable

Say = Callable[[str], None]


def to_stderr(line: str) -> None:
    """Say what is done now."""
    print(f"validate: {line}", file=sys.stderr, flush=True)
